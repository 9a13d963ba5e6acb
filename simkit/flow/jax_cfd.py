"""Step functions of jax-cfd as simulations, with what jax-cfd 0.2.1 needs to run on current JAX."""

import contextlib
import copy
import dataclasses
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_integer, check_type
from simkit.core.dependence import without_effect
from simkit.core.pytrees import pytree
from simkit.core.simulation import Arrays, Params, Simulation, as_arrays
from simkit.errors import UserError, package

# Removed from JAX's top level in version 0.6.
MOVED = ("tree_flatten", "tree_leaves", "tree_map", "tree_structure", "tree_unflatten")
# Functions of jax-cfd 0.2.1 that cannot be traced, the reason, and the replacement.
REASONS = {
    "implicit_evm_solve_with_diffusion": (
        "'implicit_smagorinsky_navier_stokes' multiplies NumPy arrays of objects by traced numbers, which JAX refuses; "
        "use explicit_smagorinsky_navier_stokes"
    ),
    "stable_time_step": (
        "'stable_time_step' and 'dynamic_time_step' compare traced numbers; let the step take params['time_step']"
    ),
}
_one_at_a_time = threading.RLock()


@contextlib.contextmanager
def on_current_jax() -> Iterator[types.ModuleType]:
    """Return a context in which jax-cfd runs, and in it the package `jax_cfd.base`.

    jax-cfd 0.2.1 fails on JAX 0.6 and later for two reasons. It calls functions removed from JAX's top level
    (``jax.tree_map``); its modules are given a JAX that has them. And boundary conditions of fluxes hold None on
    periodic axes, which ``jnp.pad`` refuses; they are padded with zero, a value that is never read.

    Only jax-cfd's modules are patched, only inside the context, by one thread at a time; ``import jax`` elsewhere is
    unaffected. Code that traces jax-cfd's functions must run inside; compiled programs need not.

    Raises:
        UserError: if jax-cfd is not installed.
    """
    base = load("base")
    # Imported here, so that it is among the patched modules even if a step would be the first to import it.
    load("collocated")
    with _one_at_a_time, contextlib.ExitStack() as stack:
        lent = _JaxWithMovedNames(jax.__name__)
        for name, module in list(sys.modules.items()):
            if name.startswith("jax_cfd.") and getattr(module, "jax", None) is jax:
                stack.enter_context(mock.patch.object(module, "jax", lent))
        conditions = base.boundaries.ConstantBoundaryConditions
        stack.enter_context(mock.patch.object(conditions, "_pad", _with_numbers(conditions._pad)))
        yield base


def load(name: str) -> types.ModuleType:
    """Return the subpackage of jax-cfd of that name, such as ``"spectral"``.

    Raises:
        UserError: if jax-cfd is not installed.
    """
    return package(f"jax_cfd.{name}", "this flow", "jax-cfd")


@contextlib.contextmanager
def told_in_one_line(part: str) -> Iterator[None]:
    """Return a context in which an error inside jax-cfd becomes one line that names the function and the reason.

    Args:
        part: the function being traced, which begins the message.

    Raises:
        UserError: in place of any error that jax-cfd's functions raise.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        root = Path(str(load("base").__file__)).parent.parent
        codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
        names = [code.co_name for code in codes if Path(code.co_filename).is_relative_to(root)]
        if not names:
            raise
        reason = next((REASONS[name] for name in reversed(names) if name in REASONS), None)
        if reason is None:
            first = (str(error).splitlines() or [""])[0][:200]
            reason = f"'{names[-1]}' fails with {type(error).__name__}: {first}"
        raise UserError(f"{part} cannot be traced: {reason}") from error


class _JaxWithMovedNames(types.ModuleType):
    """JAX with the removed functions that jax-cfd calls."""

    def __getattr__(self, name: str) -> Any:
        return getattr(jax.tree_util if name in MOVED else jax, name)


def _with_numbers(pad: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``ConstantBoundaryConditions._pad`` with zero where a periodic axis has no boundary value."""

    def padded(conditions: Any, *arguments: Any, **keywords: Any) -> Any:
        values = tuple(tuple(0.0 if value is None else value for value in pair) for pair in conditions.bc_values)
        conditions = copy.copy(conditions)
        object.__setattr__(conditions, "bc_values", values)
        return pad(conditions, *arguments, **keywords)

    return padded


AXES = ("x", "y", "z")


@pytree
class JaxCfdState:
    """State of a step function of jax-cfd, and the number of steps taken.

    Attributes:
        flow: the flow as jax-cfd's step takes it; complex arrays as real ones with one more axis in front, for the real
            and the imaginary part.
        iteration: int32, steps taken.
    """

    flow: Any
    iteration: jax.Array


@dataclasses.dataclass(frozen=True)
class Measures:
    """Observed arrays and diagnostics of a flow as functions of ``(flow, params)``, with dimensions and coordinates."""

    observe: Callable[[Any, Params], Arrays]
    diagnose: Callable[[Any, Params], Arrays]
    dimensions: Mapping[str, tuple[str, ...]]
    coordinates: Mapping[str, np.ndarray]


def stepping(
    step: Callable[[Any, Params], Any],
    initial: Callable[[Params, jax.Array], Any],
    params: Mapping[str, Any],
    check: Callable[[Any], None],
    measures: Callable[[Any], Measures],
) -> Simulation:
    """Return the simulation of a step function of jax-cfd.

    Args:
        step: ``(flow, params) -> flow``.
        initial: ``(params, key) -> flow``.
        params: default parameters, ``time_step`` among them.
        check: raises `UserError` for an abstract flow of wrong structure or shapes.
        measures: observed arrays and diagnostics of such a flow.

    Raises:
        UserError: if the parameters lack a time step, the flow has a wrong structure, a step changes it, or
            a parameter has no effect.
    """
    if "time_step" not in params:
        raise UserError("params has no 'time_step'; add it, and let the step take params['time_step']")
    defaults = as_arrays(params)
    kind = jnp.result_type(float)

    def start(params: Params, key: jax.Array) -> Any:
        with on_current_jax():
            return jax.tree.map(lambda leaf: _of_precision(leaf, kind), initial(params, key))

    with told_in_one_line("initial"):
        template = jax.eval_shape(start, defaults, jax.random.key(0))
    check(template)

    def advanced(flow: Any, params: Params) -> Any:
        with on_current_jax():
            return jax.tree.map(lambda leaf: _of_precision(leaf, kind), step(flow, params))

    with told_in_one_line("the step of jax-cfd"):
        after = jax.eval_shape(advanced, template, defaults)
    if _description(after) != _description(template) or jax.tree.structure(after) != jax.tree.structure(template):
        raise UserError(
            f"the step of jax-cfd turns {_description(template)} into {_description(after)}; "
            "it must return the flow it is given: the same structure, grid, offsets, boundary conditions and shapes"
        )
    seen = measures(template)

    def everything(params: Params, flow: Any) -> tuple:
        with on_current_jax():
            seen_of_it = seen.observe(flow, params), seen.diagnose(flow, params)
        return start(params, jax.random.key(0)), advanced(flow, params), seen_of_it

    _refuse_ignored(without_effect(everything, defaults, template), "nothing depends on it")
    stepped = without_effect(lambda params, flow: advanced(flow, params), defaults, template)
    _refuse_ignored([name for name in stepped if name == "time_step"], "the step does not depend on it")

    def of(state: JaxCfdState) -> Any:
        return jax.tree.map(lambda leaf, like: _joined(leaf, like.dtype), state.flow, template)

    def init(params: Params, key: jax.Array) -> JaxCfdState:
        return JaxCfdState(flow=jax.tree.map(_parts, start(params, key)), iteration=jnp.int32(0))

    def move(state: JaxCfdState, params: Params) -> JaxCfdState:
        flow = jax.tree.map(_parts, advanced(of(state), params))
        return JaxCfdState(flow=flow, iteration=state.iteration + 1)

    def observe(state: JaxCfdState, params: Params) -> Arrays:
        with on_current_jax():
            return seen.observe(of(state), params)

    def diagnose(state: JaxCfdState, params: Params) -> Arrays:
        with on_current_jax():
            return {"time": state.iteration * params["time_step"], **seen.diagnose(of(state), params)}

    return Simulation(
        init=init,
        step=move,
        observe=observe,
        diagnose=diagnose,
        params=dict(params),
        dimensions=seen.dimensions,
        coordinates=seen.coordinates,
    )


def _refuse_ignored(names: list[str], reason: str) -> None:
    for name in names:
        raise UserError(f"params['{name}'] has no effect: {reason}; build the step from it, or remove it from params")


def places(grid: Any, offset: float) -> dict[str, np.ndarray]:
    """Return the coordinates of the grid's points along each axis, offset by this part of a cell."""
    axes = zip(AXES, grid.shape, grid.step, grid.domain, strict=False)
    return {name: low + (np.arange(cells) + offset) * width for name, cells, width, (low, _) in axes}


def _of_precision(leaf: Any, kind: jnp.dtype) -> jax.Array:
    """Return an array in the precision of the parameters; integers are unchanged."""
    leaf = jnp.asarray(leaf)
    if not jnp.issubdtype(leaf.dtype, jnp.inexact):
        return jnp.asarray(leaf, leaf.dtype)
    is_complex = jnp.issubdtype(leaf.dtype, jnp.complexfloating)
    return jnp.asarray(leaf, jnp.result_type(kind, jnp.complex64) if is_complex else kind)


def _parts(leaf: jax.Array) -> jax.Array:
    return jnp.stack([leaf.real, leaf.imag]) if jnp.issubdtype(leaf.dtype, jnp.complexfloating) else leaf


def _joined(leaf: jax.Array, dtype: jnp.dtype) -> jax.Array:
    return jax.lax.complex(leaf[0], leaf[1]) if jnp.issubdtype(dtype, jnp.complexfloating) else leaf


def _description(flow: Any) -> str:
    shapes = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in jax.tree.leaves(flow)]
    return ", ".join(shapes) if shapes else repr(type(flow).__name__)


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

    Example:
        >>> from jax_cfd.base import equations, grids, initial_conditions
        >>> grid = grids.Grid((16, 16), domain=((0, 2 * np.pi), (0, 2 * np.pi)))
        >>> def step(velocity, params):
        ...     advance = equations.semi_implicit_navier_stokes(1.0, params["viscosity"], params["time_step"], grid)
        ...     return advance(velocity)
        >>> start = lambda params, key: initial_conditions.filtered_velocity_field(key, grid, 1.0, 2)
        >>> eddies = flow.from_jax_cfd(step, grid, start, {"viscosity": 0.1, "time_step": 0.02})
        >>> run = simkit.run(eddies, steps=10)
        >>> bool(run["kinetic_energy"][-1] < run["kinetic_energy"][0])
        True

    Reference: Kochkov et al., PNAS 118, e2101784118 (2021), doi:10.1073/pnas.2101784118.
    """
    base = load("base")
    check_type("grid", grid, "a jax_cfd.base.grids.Grid", base.grids.Grid)
    check_integer("dimension of the grid", grid.ndim, 2, 3)
    axes, components = AXES[: grid.ndim], COMPONENTS[: grid.ndim]

    def check(flow: Any) -> None:
        velocities = velocity(flow)
        is_one = isinstance(velocities, tuple) and len(velocities) == grid.ndim
        if not is_one or not all(isinstance(u, base.grids.GridVariable) and u.grid == grid for u in velocities):
            raise UserError(
                f"initial gives {_shortened(velocities)} for a velocity; give a tuple of {grid.ndim} GridVariables on "
                "the grid, or say with velocity= where they are"
            )
        offsets = tuple(tuple(u.offset) for u in velocities)
        if offsets not in (grid.cell_faces, (grid.cell_center,) * grid.ndim):
            raise UserError(
                f"the velocity lives at the offsets {offsets}; give it on the faces {grid.cell_faces}, or for "
                f"jax_cfd.collocated at the centers {grid.cell_center}"
            )

    def at_centers(velocities: Any) -> list[Any]:
        return [base.interpolation.linear(u, grid.cell_center) for u in velocities]

    def divergence(velocities: Any) -> Any:
        differences = base.finite_differences
        if velocities[0].offset == grid.cell_center:
            # The divergence that the projection of jax_cfd.collocated makes zero.
            return sum(differences.central_difference(u, axis) for axis, u in enumerate(velocities))
        return differences.divergence(velocities)

    def observed(flow: Any, params: Params) -> Arrays:
        centered = at_centers(velocity(flow))
        arrays = {name: u.data for name, u in zip(components, centered, strict=True)}
        arrays["speed"] = jnp.sqrt(sum(u.data**2 for u in centered))
        if grid.ndim == 2:
            slope = base.finite_differences.central_difference
            arrays["vorticity"] = (slope(centered[1], axis=0) - slope(centered[0], axis=1)).data
        return arrays | (observe(flow, params) if observe else {})

    def diagnosed(flow: Any, params: Params) -> Arrays:
        velocities = velocity(flow)
        crossed = sum(jnp.abs(u.data) / width for u, width in zip(at_centers(velocities), grid.step, strict=True))
        scalars = {
            "kinetic_energy": sum(jnp.mean(u.data**2) for u in velocities) / 2,
            "divergence": jnp.max(jnp.abs(divergence(velocities).data)),
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

    Example:
        >>> from jax_cfd.base import grids
        >>> grid = grids.Grid((16, 16), domain=((0, 2 * np.pi), (0, 2 * np.pi)))
        >>> x = grid.mesh()[0]
        >>> decay = lambda vorticity, params: vorticity * (1 - params["viscosity"] * params["time_step"])
        >>> wave = flow.from_jax_cfd_spectral(
        ...     decay, grid, lambda params, key: jnp.fft.rfftn(jnp.cos(x)), {"viscosity": 0.1, "time_step": 0.1}
        ... )
        >>> print(f"{float(simkit.run(wave, steps=10)['enstrophy'][-1]):.4f}, by hand {0.99**20 / 4:.4f}")
        0.2045, by hand 0.2045

    Reference: Dresdner et al. (2022), arXiv:2207.00556.
    """
    base, spectral = load("base"), load("spectral")
    check_type("grid", grid, "a jax_cfd.base.grids.Grid", base.grids.Grid)
    check_integer("dimension of the grid", grid.ndim, 2, 2)
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


__all__ = ["from_jax_cfd", "from_jax_cfd_spectral", "load", "on_current_jax"]
