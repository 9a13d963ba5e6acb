"""Any step function of jax-cfd's finite volumes as a simulation, to be run, swept and differentiated like our own."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.simulation import Arrays, Params, Simulation
from simkit.errors import UserError
from simkit.flow.jax_cfd.compatibility import load
from simkit.flow.jax_cfd.stepping import AXES, Measures, places, stepping

COMPONENTS = ("u", "v", "w")


def from_jax_cfd(
    step: Callable[[Any, Params], Any],
    grid: Any,
    initial: Callable[[Params, jax.Array], Any],
    params: Mapping[str, Any],
    *,
    velocity: Callable[[Any], Any] = lambda flow: flow,
    observe: Callable[[Any, Params], Arrays] | None = None,
    diagnose: Callable[[Any, Params], Arrays] | None = None,
    dimensions: Mapping[str, Sequence[str]] | None = None,
) -> Simulation:
    """Return the simulation of a step function of jax-cfd, staggered or collocated, on a grid of jax-cfd.

    Frames hold the components ``u``, ``v`` (``w``) and the ``speed`` at the cell centers, in two dimensions the
    ``vorticity`` too. Diagnostics are ``time``, ``kinetic_energy`` (per unit volume and density), ``divergence`` (its
    largest absolute value) and ``courant_number``, the largest number of cells crossed in a step.

    Args:
        step: ``(flow, params) -> flow``, one time step of ``params["time_step"]``. Build jax-cfd's own step inside it,
            from traced parameters.
        grid: a `jax_cfd.base.grids.Grid` of two or three dimensions.
        initial: ``(params, key) -> flow``, for instance one velocity: a tuple of `GridVariable`, one per axis.
        params: default parameters by name, numbers or arrays that may be swept and differentiated, among them
            ``time_step``.
        velocity: ``flow -> velocity``, needed if the flow holds more than its velocity.
        observe: ``(flow, params) -> {name: array}``, further arrays of a frame.
        diagnose: ``(flow, params) -> {name: scalar}``, further diagnostics.
        dimensions: names of the axes of the arrays of ``observe``; ``"x"``, ``"y"``, ``"z"`` are those of the cells.

    Raises:
        UserError: if jax-cfd is not installed, ``params`` has no ``time_step``, there is no velocity on that grid, or a
            step returns another structure than it was given, or calls functions of jax-cfd that cannot be traced, such
            as ``implicit_smagorinsky_navier_stokes`` and ``dynamic_time_step``.

    Reference: Kochkov et al., PNAS 118, e2101784118 (2021), doi:10.1073/pnas.2101784118.
    """
    base = load("base")
    if not isinstance(grid, base.grids.Grid) or grid.ndim not in (2, 3):
        raise UserError(f"grid is {_shortened(grid)}; give a jax_cfd.base.grids.Grid of 2 or 3 dimensions")
    axes, components = AXES[: grid.ndim], COMPONENTS[: grid.ndim]

    def check(flow: Any) -> None:
        found = velocity(flow)
        is_one = isinstance(found, tuple) and len(found) == grid.ndim
        if not is_one or not all(isinstance(u, base.grids.GridVariable) and u.grid == grid for u in found):
            raise UserError(
                f"initial gives {_shortened(found)} for a velocity; give a tuple of {grid.ndim} GridVariables on the "
                "grid, or say with velocity= where they are"
            )
        offsets = tuple(tuple(u.offset) for u in found)
        if offsets not in (grid.cell_faces, (grid.cell_center,) * grid.ndim):
            raise UserError(
                f"the velocity lives at the offsets {offsets}; give it on the faces {grid.cell_faces}, or for "
                f"jax_cfd.collocated at the centers {grid.cell_center}"
            )

    def at_centers(found: Any) -> list[Any]:
        return [base.interpolation.linear(u, grid.cell_center) for u in found]

    def divergence(found: Any) -> Any:
        differences = base.finite_differences
        if found[0].offset == grid.cell_center:
            # The divergence that the projection of jax_cfd.collocated makes zero.
            return sum(differences.central_difference(u, axis) for axis, u in enumerate(found))
        return differences.divergence(found)

    def observed(flow: Any, params: Params) -> Arrays:
        centered = at_centers(velocity(flow))
        arrays = {name: u.data for name, u in zip(components, centered, strict=True)}
        arrays["speed"] = jnp.sqrt(sum(u.data**2 for u in centered))
        if grid.ndim == 2:
            slope = base.finite_differences.central_difference
            arrays["vorticity"] = (slope(centered[1], axis=0) - slope(centered[0], axis=1)).data
        return arrays | (observe(flow, params) if observe else {})

    def diagnosed(flow: Any, params: Params) -> Arrays:
        found = velocity(flow)
        crossed = sum(jnp.abs(u.data) / width for u, width in zip(at_centers(found), grid.step, strict=True))
        scalars = {
            "kinetic_energy": sum(jnp.mean(u.data**2) for u in found) / 2,
            "divergence": jnp.max(jnp.abs(divergence(found).data)),
            "courant_number": params["time_step"] * jnp.max(crossed),
        }
        return scalars | (diagnose(flow, params) if diagnose else {})

    def measures(flow: Any) -> Measures:
        names = [*components, "speed", *(["vorticity"] if grid.ndim == 2 else [])]
        coordinates = places(grid, offset=0.5)
        types = [kind for pair in velocity(flow)[0].bc.types[:2] for kind in pair]
        periodic = base.boundaries.BCType.PERIODIC
        coordinates["sides"] = np.array(["periodic" if kind == periodic else "wall" for kind in types])
        return Measures(
            observe=observed,
            diagnose=diagnosed,
            dimensions={name: axes for name in names} | {k: tuple(v) for k, v in (dimensions or {}).items()},
            coordinates=coordinates,
        )

    return stepping(step, initial, params, check, measures)


def _shortened(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
