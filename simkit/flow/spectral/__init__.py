"""Flow between plane walls to spectral accuracy, and its linear stability."""

from simkit.flow.spectral.fourier_chebyshev import spectral_channel
from simkit.flow.spectral.orr_sommerfeld import Wave, leading_wave, waves

__all__ = ["Wave", "leading_wave", "spectral_channel", "waves"]
