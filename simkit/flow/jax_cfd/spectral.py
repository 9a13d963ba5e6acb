"""Any step function of jax-cfd's Fourier modes as a simulation: plane periodic flow, given by its vorticity."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.simulation import Arrays, Params, Simulation
from simkit.errors import UserError
from simkit.flow.jax_cfd.compatibility import load
from simkit.flow.jax_cfd.stepping import Measures, places, stepping


def from_jax_cfd_spectral(
    step: Callable[[jax.Array, Params], jax.Array],
    grid: Any,
    initial: Callable[[Params, jax.Array], jax.Array],
    params: Mapping[str, Any],
    *,
    observe: Callable[[jax.Array, Params], Arrays] | None = None,
    diagnose: Callable[[jax.Array, Params], Arrays] | None = None,
    dimensions: Mapping[str, Sequence[str]] | None = None,
) -> Simulation:
    """Return the simulation of a step function of jax-cfd's spectral module.

    The flow is the vorticity's Fourier transform, ``rfftn`` of its values at the points ``x_i = i dx, y_j = j dy``: a
    complex array ``(nx, ny // 2 + 1)``. The velocity follows from its stream function, and so has no divergence.

    Frames hold ``u``, ``v``, ``speed`` and ``vorticity`` at those points. Diagnostics are ``time``, ``kinetic_energy``
    and ``enstrophy`` (means of half the squared speed and vorticity) and ``courant_number``, the largest number of
    cells crossed in a step.

    Args:
        step: ``(vorticity_hat, params) -> vorticity_hat``, one time step of ``params["time_step"]``. Build jax-cfd's
            equation and time stepper inside it, from traced parameters.
        grid: a `jax_cfd.base.grids.Grid` of two dimensions.
        initial: ``(params, key) -> vorticity_hat``.
        params: default parameters by name, which may be swept and differentiated, among them ``time_step``.
        observe: ``(vorticity_hat, params) -> {name: array}``, further arrays of a frame.
        diagnose: ``(vorticity_hat, params) -> {name: scalar}``, further diagnostics.
        dimensions: names of the axes of the arrays of ``observe``.

    Raises:
        UserError: if jax-cfd is not installed, ``params`` has no ``time_step``, the vorticity has another shape, or a
            step returns another structure than it was given.

    Reference: Dresdner et al. (2022), arXiv:2207.00556.
    """
    base, spectral = load("base"), load("spectral")
    if not isinstance(grid, base.grids.Grid) or grid.ndim != 2:
        raise UserError(f"grid is {grid!r}; give a jax_cfd.base.grids.Grid of 2 dimensions")
    modes = (grid.shape[0], grid.shape[1] // 2 + 1)

    def check(flow: Any) -> None:
        shape, dtype = getattr(flow, "shape", None), getattr(flow, "dtype", None)
        if shape != modes or dtype is None or not jnp.issubdtype(dtype, jnp.complexfloating):
            raise UserError(
                f"initial gives {dtype or type(flow).__name__} of shape {shape} for the vorticity's Fourier transform; "
                f"give a complex array of shape {modes}, rfftn of the vorticity at the grid's points"
            )

    def at_points(flow: jax.Array) -> Arrays:
        velocity = spectral.utils.vorticity_to_velocity(grid)(flow)
        hats = dict(zip(("u", "v", "vorticity"), (*velocity, flow), strict=True))
        return {name: jnp.fft.irfftn(hat, grid.shape) for name, hat in hats.items()}

    def observed(flow: jax.Array, params: Params) -> Arrays:
        arrays = at_points(flow)
        arrays["speed"] = jnp.sqrt(arrays["u"] ** 2 + arrays["v"] ** 2)
        return arrays | (observe(flow, params) if observe else {})

    def diagnosed(flow: jax.Array, params: Params) -> Arrays:
        arrays = at_points(flow)
        crossed = jnp.abs(arrays["u"]) / grid.step[0] + jnp.abs(arrays["v"]) / grid.step[1]
        scalars = {
            "kinetic_energy": jnp.mean(arrays["u"] ** 2 + arrays["v"] ** 2) / 2,
            "enstrophy": jnp.mean(arrays["vorticity"] ** 2) / 2,
            "courant_number": params["time_step"] * jnp.max(crossed),
        }
        return scalars | (diagnose(flow, params) if diagnose else {})

    def measures(flow: Any) -> Measures:
        names = dict.fromkeys(("u", "v", "speed", "vorticity"), ("x", "y"))
        return Measures(
            observe=observed,
            diagnose=diagnosed,
            dimensions=names | {name: tuple(axes) for name, axes in (dimensions or {}).items()},
            coordinates=places(grid, offset=0.0),
        )

    return stepping(step, initial, params, check, measures)
