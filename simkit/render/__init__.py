"""Pictures and animations from stored frames; knows no simulation and needs no JAX."""

from simkit.render.animate import parse_size, render

__all__ = ["parse_size", "render"]
