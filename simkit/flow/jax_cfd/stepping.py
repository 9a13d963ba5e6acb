"""State and step common to all simulations made of a step function of jax-cfd, and their checks."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.dependence import without_effect
from simkit.core.pytree import pytree
from simkit.core.simulation import Arrays, Params, Simulation, as_arrays
from simkit.errors import UserError
from simkit.flow.jax_cfd.compatibility import on_current_jax, told_in_one_line

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
