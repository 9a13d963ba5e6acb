"""The operators of the equations on a staggered grid: differences, advection, diffusion."""
