"""Building of the simulation of a scenario, with checks of its record and its validations."""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.core.dependence import idle_parameters
from simkit.core.expressions.measures import ExpressedQuantity, measure_of, stopped_when, with_expressions
from simkit.core.expressions.syntax import parse
from simkit.core.simulation import Arrays, Quantity, Simulation
from simkit.core.status import status_of
from simkit.errors import LONGEST_ERROR, Hint, Mistakes, Remedy, UserError, about, closest, nearest, one_line
from simkit.scenario import checks
from simkit.scenario.catalog import find_scenario
from simkit.scenario.drawing import UNKNOWN, check_view
from simkit.scenario.overrides import single_parameter, with_values
from simkit.scenario.registry import SIMULATIONS
from simkit.scenario.scenario import Scenario, declared_in, has_own_parameters, make, merged, refuse_unknown, refused


def check_record(simulation: Simulation, where: str) -> tuple[Arrays, Arrays]:
    """Return the shapes of observed arrays and diagnostics, refusing functions that break the contract of the record.

    Args:
        simulation: of a package or a user.
        where: name of the simulation in errors.

    Raises:
        UserError: if its state is not made of arrays, a step changes their shapes or types, ``observe`` or ``diagnose``
            return no dictionaries of arrays (``diagnose``: of scalars), ``status`` no single integer, or dimensions,
            coordinates or quantities do not match the arrays; ``others`` has the further mistakes.
    """
    _raise_first(where, (_wrong_name(name, "the parameter ") for name in paths.leaves(simulation.params)))
    key = jax.eval_shape(jax.random.key, 0)
    state = _traced(simulation, "init", where, _wrong_leaves, simulation.params, key)
    _raise_first(where, _changes_of_step(state, jax.eval_shape(simulation.step, state, simulation.params)))
    observed = _traced(simulation, "observe", where, _wrong_arrays, state, simulation.params)
    diagnosed = _traced(simulation, "diagnose", where, _wrong_arrays, state, simulation.params)
    problems = (
        *_wrong_shapes(diagnosed),
        *_wrong_status(simulation, state),
        *_wrong_dimensions(simulation, observed),
        *_wrong_quantities(simulation, {*observed, *diagnosed}),
    )
    _raise_first(where, problems)
    return observed, diagnosed


def _raise_first(where: str, problems: Iterable[str]) -> None:
    """Raise the problems that are not empty as one error."""
    mistakes = Mistakes()
    mistakes.found = [UserError(f"{where}: ", problem) for problem in problems if problem]
    mistakes.raise_if_any()


def _traced(
    simulation: Simulation, name: str, where: str, check: Callable[[Any, str], Iterable[str]], *arguments: Any
) -> Any:
    """Return the shapes of the result of a function of the record, which is checked as it was returned."""
    function = getattr(simulation, name)
    try:
        shapes = jax.eval_shape(function, *arguments)
    except TypeError:
        if function.returned is not None:  # JAX refuses the result, in more words
            _raise_first(where, check(function.returned, name))
        raise
    _raise_first(where, check(function.returned, name))
    return shapes


def _wrong_name(name: str, what: str = "") -> str:
    is_path = re.fullmatch(checks.PATH, name)
    return "" if is_path else f"{what}{checks.show(name)} is not a name; use up to 64 letters, digits and _"


def _wrong_leaves(state: Any, what: str) -> Iterator[str]:
    for path, leaf in jax.tree.leaves_with_path(state):
        if not hasattr(leaf, "dtype"):
            given = f"state{jax.tree_util.keystr(path)} as {checks.kind(leaf)}"
            yield f"{what} gives {given}; make it an array, such as jnp.asarray(0.0, dtype=float)"


def _wrong_arrays(result: Any, what: str) -> Iterator[str]:
    if not isinstance(result, Mapping):
        yield f"{what} gives {type(result).__name__}; return a dictionary of arrays by name"
        return
    for name, array in result.items():
        yield _wrong_name(str(name), f"{what}: ")
        if not hasattr(array, "dtype"):
            remedy = "return an array, such as jnp.stack([...]) or jnp.asarray(value)"
            yield f"{what} gives '{name}' as {checks.kind(array)}; {remedy}"


def _changes_of_step(state: Any, stepped: Any) -> Iterator[str]:
    if jax.tree.structure(state) != jax.tree.structure(stepped):
        names = [one_line(jax.tree.structure(tree), 100) for tree in (state, stepped)]
        yield f"step gives another structure than init: {names[1]} instead of {names[0]}"
        return
    for (path, before), after in zip(jax.tree.leaves_with_path(state), jax.tree.leaves(stepped), strict=True):
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            kinds = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in (before, after)]
            place = f"state{jax.tree_util.keystr(path)}"
            yield f"step changes {place} from {kinds[0]} to {kinds[1]}; return the shapes and types of init"


def _wrong_shapes(diagnosed: Mapping[str, Any]) -> Iterator[str]:
    for name, array in diagnosed.items():
        if array.shape:
            remedy = "return single numbers from diagnose and arrays from observe"
            yield f"diagnose gives '{name}' of shape {array.shape}; {remedy}"


def _wrong_status(simulation: Simulation, state: Any) -> Iterator[str]:
    try:
        status = jax.eval_shape(status_of(simulation), state, simulation.params)
    except UserError as error:
        yield str(error)
        return
    if status.shape:
        yield f"status gives an array of shape {status.shape}; return one integer, such as the largest of them"


def _wrong_dimensions(simulation: Simulation, observed: Mapping[str, Any]) -> Iterator[str]:
    lengths: dict[str, int] = {}
    for name, axes in simulation.dimensions.items():
        if name not in observed:
            hint = nearest(name, list(observed))
            yield Hint(f"dimensions names '{name}', which is not observed{hint}", hint.meant)
            continue
        shape = observed[name].shape
        if isinstance(axes, str) or len(axes) != len(shape):
            remedy = f"its shape is {shape}, give a tuple of {len(shape)} names"
            yield f"dimensions of '{name}' are {checks.show(axes)}; {remedy}"
            continue
        if clash := {"time", "iteration", "frame", "member"} & set(axes):
            yield f"'{name}' has an axis named {clash.pop()}, a reserved name; choose another"
        for axis, length in zip(axes, shape, strict=True):
            if lengths.setdefault(axis, length) != length:
                yield f"axis '{axis}' has {length} entries in '{name}' and {lengths[axis]} elsewhere; name them apart"
    for axis, values in simulation.coordinates.items():
        if axis in lengths and len(values) != lengths[axis]:
            yield f"coordinates of '{axis}' are {len(values)} values; the axis has {lengths[axis]} entries"
        cells = lengths.get(axis.removesuffix("_widths")) if axis.endswith("_widths") else None
        if cells is not None and not (np.shape(values) == (cells,) and np.all(np.asarray(values) > 0)):
            yield f"coordinates '{axis}' are not {cells} widths above 0, one for each cell of the axis"


def _wrong_quantities(simulation: Simulation, names: set[str]) -> Iterator[str]:
    for name, quantity in simulation.quantities.items():
        if not isinstance(quantity, Quantity):
            yield f"quantities['{name}'] is of type {type(quantity).__name__}; write Quantity(unit, meaning)"
        # Factories may declare quantities of other configurations; a misspelled name is close to an undeclared array.
        meant = None if name in names else closest(name, sorted(names - set(simulation.quantities)))
        if meant is not None:
            problem = f"quantities names '{name}', which is neither observed nor diagnosed; did you mean '{meant}'?"
            yield Hint(problem, meant)


def check_validations(scenario: Scenario) -> None:
    """Refuse overrides, and parameters of derivatives, that do not exist in the scenario.

    Args:
        scenario: with its validations.

    Raises:
        UserError: for the first of them.
    """
    for index in range(len(scenario.validations)):
        check_validation(scenario, index)


def check_validation(scenario: Scenario, index: int) -> None:
    """Refuse overrides, and the parameter of a derivative, that do not exist in the scenario.

    Args:
        scenario: with its validations.
        index: of the validation.

    Raises:
        UserError: for the first of them.
    """
    validation, where = scenario.validations[index], f"{scenario.file}: validation[{index}]"
    with about(f"validation[{index}].set"):
        changed = with_values(scenario, validation.overrides, lambda key: f"{where}.set.{key}")
    if (name := validation.derivative) is None:
        return
    with about(f"validation[{index}].derivative"):
        single_parameter(changed, name, f"{where}.derivative = '{one_line(name, 60)}'")


def build(
    scenario: str | Path | Scenario,
    *,
    examine: Callable[[Simulation], None] | None = None,
    find_all: bool = False,
) -> Simulation:
    """Return the simulation of a scenario, with the values of the scenario as default parameters.

    Arrays have the precision of JAX at the time of the call; run the result in the same precision. A parameter that the
    scenario does not mention keeps the default of the factory. Nothing is computed: names of diagnostics and observed
    arrays are found by tracing with abstract arrays.

    Args:
        scenario: shipped name, path of a TOML file, or a `Scenario`.
        examine: called with the simulation before it is traced, which takes seconds on a fine grid; may refuse it.
        find_all: whether to continue after the first mistake and list the others in ``UserError.others``.

    Raises:
        UserError: if there is no such scenario, if the factory is unknown or refuses the configuration or the
            parameters, if a parameter, diagnostic or observed array that the scenario names does not exist, or if a
            float64 scenario is built in 32-bit mode.

    Example:
        >>> with jax.enable_x64(True):
        ...     simulation = simkit.build("projectile")
        ...     state = simulation.init(simulation.params, jax.random.key(0))
        ...     state = jax.jit(simulation.step)(state, simulation.params)
        ...     height = simulation.diagnose(state, simulation.params)["height"]
        >>> print(f"{height:.4f}")
        1.5688
    """
    if not isinstance(scenario, Scenario):
        scenario = find_scenario(scenario)
    if scenario.run.precision == "float64" and not jax.config.jax_enable_x64:
        raise UserError(
            f"{scenario.file}: run.precision = 'float64' but JAX runs in 32 bits; "
            "build and run inside `with jax.enable_x64(True):`"
        )
    mistakes = Mistakes()
    simulation = make(scenario)
    with mistakes.kept("params"):
        simulation = _with_defaults(scenario, simulation)
    if not find_all:
        mistakes.raise_if_any()
    if examine is not None:
        examine(simulation)
    with mistakes.kept("params"):
        _check_values(scenario, simulation)
    if not find_all:
        mistakes.raise_if_any()
    if mistakes.found:
        return _examined(scenario, simulation, mistakes)[0]
    examined, idle = simulation.programs.cached(
        _key_of(scenario), lambda: _examined(scenario, simulation.unshared(), mistakes)
    )
    _refuse_idle(scenario, idle)
    return examined.at(simulation.params)


def _key_of(scenario: Scenario) -> str:
    """Return all of a scenario on which `_examined` depends besides the simulation."""
    texts = (scenario.quantities, scenario.run.stop, scenario.objectives, scenario.validations, scenario.render)
    names = (scenario.file, *sorted(scenario.parameter_settings))
    return repr((names, scenario.is_reconfigured, scenario.config, texts))


def _examined(scenario: Scenario, simulation: Simulation, mistakes: Mistakes) -> tuple[Simulation, list[str]]:
    """Return the simulation with the expressions of the scenario, and its idle parameters; refuse unfit names."""
    simulation, idle = _with_expressions(scenario, simulation, mistakes), []
    foreign = scenario.simulation not in SIMULATIONS.own
    try:
        if foreign and scenario.made is None:  # one made in Python was checked before its scenario was made
            check_record(simulation, scenario.file)
        _check_names(scenario, simulation, mistakes)
        mistakes.raise_if_any()
        # A new configuration may not use all parameters of the file; those of simkit are covered by its tests.
        if (foreign or has_own_parameters(scenario)) and not scenario.is_reconfigured:
            idle = idle_parameters(simulation)
    except OverflowError as error:  # an array with more than 2^31 entries
        raise refused(scenario, error) from error
    return simulation, idle


def _check_values(scenario: Scenario, simulation: Simulation) -> None:
    """Refuse values that the simulation cannot run with."""
    try:
        # A condition may end the run sooner.
        steps = None if scenario.run.stop else scenario.run.steps
        simulation.check_values(simulation.params, jax.random.key(scenario.run.seed), steps)
    except UserError as error:
        table = "config" if re.split(r"[.\[]", error.key)[0] in scenario.config else "params"
        raise error.within(table, f"{scenario.file}: [{table}]: ", LONGEST_ERROR) from error
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:  # from a check that does not expect them
        reason = one_line(error) or type(error).__name__
        leaves = paths.leaves(simulation.params).items()
        values = one_line(", ".join(f"{name} = {one_line(value, 40)}" for name, value in leaves), 1000)
        raise UserError(
            f"{scenario.file}: [params]: {scenario.simulation} cannot run with these values ({reason}): {values}"
        ) from error


def _with_defaults(scenario: Scenario, simulation: Simulation) -> Simulation:
    """Return the simulation with the parameter values of the scenario."""
    leaves = paths.leaves(simulation.params)
    # A stored run keeps the values that it began with, even if its file or its factory changed since.
    stored = {name: parameter for name, parameter in (scenario.known_parameters or {}).items() if name in leaves}
    given = (name for name, settings in scenario.parameter_settings.items() if settings.default is not None)
    if scenario.is_reconfigured and (lost := [name for name in given if name not in leaves]):
        warnings.warn(
            f"params.{lost[0]} of {scenario.file} has no effect with this configuration, which has no such parameter"
            + (f", nor have {', '.join(lost[1:])}" if lost[1:] else ""),
            stacklevel=2,
        )
    parameters = merged(scenario, declared_in(simulation) | stored)
    changed = [name for name in parameters if name in scenario.parameter_settings or name in stored]
    for name in changed:
        limits = jnp.finfo(leaves[name].dtype)
        default = parameters[name].default
        sizes = np.abs(np.asarray(default, dtype=np.float64))
        if np.any((sizes > limits.max) | ((sizes > 0.0) & (sizes < limits.tiny))):
            raise UserError(
                f"{scenario.file}: params.{name}.default = {checks.show(default)} is out of the range of "
                f"{limits.dtype}; use run.precision = 'float64' or another unit"
            )
    return simulation.with_params(**{name: parameters[name].default for name in changed})


def _with_expressions(scenario: Scenario, simulation: Simulation, mistakes: Mistakes) -> Simulation:
    """Return the simulation with the quantities and the stop condition of the scenario."""
    if scenario.quantities:
        expressed = {
            name: ExpressedQuantity(
                quantity.expression,
                Quantity(quantity.unit, quantity.doc),
                f"{scenario.file}: quantities.{name}.expression",
            )
            for name, quantity in scenario.quantities.items()
        }
        simulation = with_expressions(simulation, expressed, mistakes)
    if scenario.run.stop:
        broken = set(scenario.quantities) - set(simulation.quantities)
        with mistakes.kept("run.stop"):
            if not _follows(scenario.run.stop, "", broken, is_condition=True):
                simulation = stopped_when(simulation, scenario.run.stop, f"{scenario.file}: run.stop")
    return simulation


def _check_names(scenario: Scenario, simulation: Simulation, mistakes: Mistakes) -> None:
    """Refuse names of diagnostics and observed arrays that do not exist in the simulation."""
    key = jax.eval_shape(jax.random.key, 0)
    state = jax.eval_shape(simulation.init, simulation.params, key)
    diagnostics = jax.eval_shape(simulation.diagnose, state, simulation.params)
    observed = jax.eval_shape(simulation.observe, state, simulation.params)
    broken = set(scenario.quantities) - set(simulation.quantities)
    for name, objective in scenario.objectives.items():
        with mistakes.kept(f"objectives.{name}"):
            if _follows(objective.expression, objective.quantity, broken):
                continue
            if objective.expression:
                measure_of(simulation, objective.expression, f"{scenario.file}: objectives.{name}")
                continue
            label = f"objectives.{name}.quantity = '{{}}'"
            refuse_unknown(scenario, label, "not a diagnostic of {}", [objective.quantity], diagnostics)
            if name in diagnostics and name != objective.quantity:
                raise UserError(
                    f"{scenario.file}: objectives.{name} has the name of a diagnostic, and is of another, "
                    f"'{objective.quantity}'; choose another name"
                )
            if simulation.equilibrium is not None and objective.reduce != "final":
                raise UserError(
                    f"{scenario.file}: objectives.{name}.reduce = '{objective.reduce}' has no meaning for "
                    f"{scenario.simulation}, which runs until it converges; use 'final'"
                )
    for index, validation in enumerate(scenario.validations):
        with mistakes.kept(f"validation[{index}]"):
            if _follows(validation.expression, validation.quantity, broken):
                continue
            if validation.expression:
                measure_of(simulation, validation.expression, f"{scenario.file}: validation[{index}].expression")
            label = f"validation[{index}].quantity = '{{}}'"
            if validation.quantity:  # not for the derivative of an expression
                refuse_unknown(scenario, label, "not a diagnostic of {}", [validation.quantity], diagnostics)
    if scenario.render != UNKNOWN and scenario.render.quantity not in broken:
        with mistakes.kept("render.quantity"):
            check_view(scenario.render, observed, diagnostics, scenario.simulation, scenario.file)


def _follows(expression: str, quantity: str, broken: set[str], *, is_condition: bool = False) -> bool:
    """Return whether a value cannot be checked, because of a mistake that is known already.

    Args:
        expression: of the value; may be empty.
        quantity: whose value it is; empty beside an expression, also one that was refused.
        broken: names of quantities with a mistake.
        is_condition: whether the expression is a condition.
    """
    if expression == checks.IN_PLACE:
        return True
    if expression:
        return not broken.isdisjoint(parse(expression, "expression", is_condition=is_condition).names)
    return not quantity or quantity in broken


def _parameters_of_user(scenario: Scenario) -> set[str]:
    """Return the parameters of the file; of a simulation made in Python those that got another value.

    Whoever calls a factory in Python does not choose which parameters it declares.
    """
    settings = scenario.parameter_settings
    if scenario.made is None:
        return set(settings)
    return {name for name, setting in settings.items() if setting != scenario.file_parameter_settings.get(name)}


def _refuse_idle(scenario: Scenario, idle: list[str]) -> None:
    """Refuse parameters without effect that a package or the user's file declares."""
    names = _parameters_of_user(scenario) if idle else set()
    for name in idle:
        # A formula may be used by a check alone, such as the largest expected speed of a flow.
        if name in names and not _is_named(name, scenario.config):
            raise UserError(
                f"{scenario.file}: params.{name} has no effect: nothing that the simulation does depends on it; "
                "remove it, or let the simulation use it",
                key=f"params.{name}",
                remedy=Remedy("remove"),
            )


def _is_named(name: str, value: Any) -> bool:
    """Return whether a text in a configuration names a parameter."""
    if isinstance(value, Mapping):
        return any(_is_named(name, inner) for inner in value.values())
    if isinstance(value, list | tuple):
        return any(_is_named(name, inner) for inner in value)
    return isinstance(value, str) and re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", value) is not None
