"""Step functions of jax-cfd as simulations."""

from simkit.flow.jax_cfd.compatibility import load, on_current_jax
from simkit.flow.jax_cfd.finite_volume import from_jax_cfd
from simkit.flow.jax_cfd.spectral import from_jax_cfd_spectral

__all__ = ["from_jax_cfd", "from_jax_cfd_spectral", "load", "on_current_jax"]
