"""Checks of the functions of a `Simulation` record against its contract, by tracing them."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.core import paths
from simkit.errors import UserError, nearest, one_line
from simkit.scenario import checks

if TYPE_CHECKING:
    from simkit.core.simulation import Arrays, Simulation


def check_record(simulation: "Simulation", where: str) -> "tuple[Arrays, Arrays]":
    """Return the shapes of observed arrays and diagnostics, refusing functions that break the contract of the record.

    Args:
        simulation: of a package or a user.
        where: name of the simulation in errors.

    Raises:
        UserError: if its state is not made of arrays, a step changes their shapes or types, ``observe`` or ``diagnose``
            return no dictionaries of arrays (``diagnose``: of scalars), ``status`` no single integer, or dimensions,
            coordinates or quantities do not match the arrays.
    """
    import jax

    for name in paths.leaves(simulation.params):
        checks.path(name, f"{where}: the parameter {checks.show(name)}")
    key = jax.eval_shape(jax.random.key, 0)
    state = _traced(simulation.init, where, "init", _arrays_of_state, simulation.params, key)
    _check_step(state, jax.eval_shape(simulation.step, state, simulation.params), where)
    observed = _traced(simulation.observe, where, "observe", _arrays_by_name, state, simulation.params)
    diagnosed = _traced(simulation.diagnose, where, "diagnose", _arrays_by_name, state, simulation.params)
    for name, array in diagnosed.items():
        if array.shape:
            raise UserError(
                f"{where}: diagnose gives '{name}' of shape {array.shape}; return single numbers from diagnose and "
                "arrays from observe"
            )
    _check_status(simulation, state, where)
    _check_dimensions(simulation, observed, where)
    _check_quantities(simulation, {*observed, *diagnosed}, where)
    return observed, diagnosed


def _traced(function: Any, where: str, what: str, check: Callable[[Any, str], None], *arguments: Any) -> Any:
    """Return the shapes of the result of a function, which is checked as it was returned."""
    import jax

    try:
        shapes = jax.eval_shape(function, *arguments)
    except TypeError:
        if function.returned is not None:  # JAX refuses the result, in more words
            check(function.returned, f"{where}: {what}")
        raise
    check(function.returned, f"{where}: {what}")
    return shapes


def _arrays_of_state(state: Any, where: str) -> None:
    import jax

    for path, leaf in jax.tree.leaves_with_path(state):
        if not hasattr(leaf, "dtype"):
            raise UserError(
                f"{where} gives state{jax.tree_util.keystr(path)} as {checks.kind(leaf)}; make it an array, such as "
                "jnp.asarray(0.0, dtype=float)"
            )


def _arrays_by_name(result: Any, where: str) -> None:
    if not isinstance(result, Mapping):
        raise UserError(f"{where} gives {type(result).__name__}; return a dictionary of arrays by name")
    for name, array in result.items():
        checks.path(str(name), f"{where}: {checks.show(str(name))}")
        if not hasattr(array, "dtype"):
            raise UserError(
                f"{where} gives '{name}' as {checks.kind(array)}; return an array, such as jnp.stack([...]) or "
                "jnp.asarray(value)"
            )


def _check_step(state: Any, stepped: Any, where: str) -> None:
    import jax

    if jax.tree.structure(state) != jax.tree.structure(stepped):
        names = [one_line(jax.tree.structure(tree), 100) for tree in (state, stepped)]
        raise UserError(f"{where}: step gives another structure than init: {names[1]} instead of {names[0]}")
    leaves = zip(jax.tree.leaves_with_path(state), jax.tree.leaves(stepped), strict=True)
    for (path, before), after in leaves:
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            kinds = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in (before, after)]
            raise UserError(
                f"{where}: step changes state{jax.tree_util.keystr(path)} from {kinds[0]} to {kinds[1]}; return the "
                "shapes and types of init"
            )


def _check_status(simulation: "Simulation", state: Any, where: str) -> None:
    import jax

    from simkit.core.status import status_of

    try:
        status = jax.eval_shape(status_of(simulation), state, simulation.params)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    if status.shape:
        raise UserError(
            f"{where}: status gives an array of shape {status.shape}; return one integer, such as the largest of them"
        )


def _check_dimensions(simulation: "Simulation", observed: Mapping[str, Any], where: str) -> None:
    lengths: dict[str, int] = {}
    for name, axes in simulation.dimensions.items():
        if name not in observed:
            raise UserError(f"{where}: dimensions names '{name}', which is not observed{nearest(name, list(observed))}")
        shape = observed[name].shape
        if isinstance(axes, str) or len(axes) != len(shape):
            raise UserError(
                f"{where}: dimensions of '{name}' are {checks.show(axes)}; its shape is {shape}, give a tuple of "
                f"{len(shape)} names"
            )
        if clash := {"time", "iteration", "frame", "member"} & set(axes):
            raise UserError(f"{where}: '{name}' has an axis named {clash.pop()}, a reserved name; choose another")
        lengths |= zip(axes, shape, strict=True)
    for axis, values in simulation.coordinates.items():
        if axis in lengths and len(values) != lengths[axis]:
            raise UserError(
                f"{where}: coordinates of '{axis}' are {len(values)} values; the axis has {lengths[axis]} entries"
            )
        cells = lengths.get(axis.removesuffix("_widths")) if axis.endswith("_widths") else None
        if cells is not None and not (np.shape(values) == (cells,) and np.all(np.asarray(values) > 0)):
            raise UserError(
                f"{where}: coordinates '{axis}' are not {cells} widths above 0, one for each cell of the axis"
            )


def _check_quantities(simulation: "Simulation", names: set[str], where: str) -> None:
    from simkit.core.simulation import Quantity

    for name, quantity in simulation.quantities.items():
        if not isinstance(quantity, Quantity):
            raise UserError(
                f"{where}: quantities['{name}'] is of type {type(quantity).__name__}; write Quantity(unit, meaning)"
            )
        # Factories may declare quantities of other configurations; a misspelled name is close to an undeclared array.
        hint = "" if name in names else nearest(name, sorted(names - set(simulation.quantities)))
        if "did you mean" in hint:
            raise UserError(f"{where}: quantities names '{name}', which is neither observed nor diagnosed{hint}")
