"""Pictures and animations from stored frames, independent of simulations and of JAX."""

from simkit.render.animate import parse_size, render

__all__ = ["parse_size", "render"]
