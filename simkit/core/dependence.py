"""Dependence of a function on its parameters, from its traced program."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
from jax.extend.core import Literal

from simkit.core import paths
from simkit.core.simulation import Params, Simulation


def without_effect(function: Callable[..., Any], params: Params, *arguments: Any) -> list[str]:
    """Return the paths of the parameters on which ``function(params, *arguments)`` does not depend.

    The function is traced and operations that do not contribute to its result are removed (dead-code elimination);
    nothing is computed. A parameter that is multiplied by zero counts as used.

    Args:
        function: function of params and arrays.
        params: arrays, or their shapes.
        *arguments: pytrees of arrays or of their shapes.
    """
    used = used_leaves(function, params, *arguments)
    # Arguments are flattened in order, the params first.
    names = jax.tree.leaves(paths.mapped(lambda path, _: path, params))
    return [name for name, is_used in zip(names, used, strict=False) if not is_used]


def idle_parameters(simulation: Simulation) -> list[str]:
    """Return the paths of the parameters on which start, steps, frames and status of a simulation do not depend.

    Args:
        simulation: any; it is traced, which takes about a second, and nothing is computed.
    """

    def outputs(params: Params, key: jax.Array) -> Any:
        state = simulation.step(simulation.init(params, key), params)
        functions = (simulation.observe, simulation.diagnose, simulation.status)
        return state, [function(state, params) for function in functions if function is not None]

    return without_effect(outputs, simulation.params, jax.eval_shape(jax.random.key, 0))


def in_steps_only(function: Callable[..., Any], params: Params, *arguments: Any) -> list[str]:
    """Return the paths of the parameters that change what ``function(params, *arguments)`` returns, but not smoothly.

    They enter through comparisons, roundings or integers alone: the derivative is zero wherever there is one. The
    function and its derivative are traced, and nothing is computed.

    Args:
        function: of params and arrays; ``jax.jvp`` must be able to differentiate it.
        params: arrays.
        *arguments: pytrees of arrays or of their shapes.
    """

    def slope(tangents: Params, *inputs: Any) -> Any:
        return jax.jvp(lambda numbers: function(numbers, *inputs), (params,), (tangents,))[1]

    idle = without_effect(function, params, *arguments)
    return [name for name in without_effect(slope, params, *arguments) if name not in idle]


def depends(function: Callable[..., Any], *arguments: Any) -> bool:
    """Return whether the result of ``function(*arguments)`` depends on any of its arguments, as `without_effect` does.

    Args:
        function: function of arrays.
        *arguments: pytrees of arrays or of their shapes.
    """
    return any(used_leaves(function, *arguments))


def sizes_of_scan(params: Mapping[str, Any]) -> tuple[int, int]:
    """Return the number of constants and of carried arrays of a ``scan``.

    Args:
        params: of its equation, in any supported release of JAX.
    """
    if "ft_in" in params:
        constants, carried, _ = (len(part) for part in params["ft_in"].unpack())
        return constants, carried
    return params["num_consts"], params["num_carry"]


def draws(simulation: Simulation) -> bool:
    """Return whether the initial state of a simulation depends on its random key.

    Args:
        simulation: simulation of which ``init`` is traced; nothing is computed.
    """
    return depends(lambda key: simulation.init(simulation.params, key), jax.eval_shape(jax.random.key, 0))


def used_leaves(function: Callable[..., Any], *arguments: Any) -> list[bool]:
    """Return for each leaf of the arguments whether the result depends on it."""
    traced = jax.make_jaxpr(function)(*arguments)
    return _inputs_of(traced.jaxpr, [True] * len(traced.out_avals), {})


# Results of programs that are called at several sites, by identity and outputs: valid while their caller is alive.
type Known = dict[tuple[int, tuple[bool, ...]], list[bool]]


def _inputs_of(jaxpr: Any, outputs: list[bool], known: Known) -> list[bool]:
    """Return which inputs of a program the given outputs depend on."""
    key = id(jaxpr), tuple(outputs)
    if key not in known:
        known[key] = _searched(jaxpr, outputs, known)
    return known[key]


def _searched(jaxpr: Any, outputs: list[bool], known: Known) -> list[bool]:
    """Return `_inputs_of` a program that is not known yet."""
    live = {variable for variable, needed in zip(jaxpr.outvars, outputs, strict=True) if needed and _varies(variable)}
    for equation in reversed(jaxpr.eqns):
        needed = [variable in live for variable in equation.outvars]
        if any(needed):
            used = zip(equation.invars, _inputs_of_equation(equation, needed, known), strict=True)
            live |= {variable for variable, is_used in used if is_used and _varies(variable)}
    return [variable in live for variable in jaxpr.invars]


def _inputs_of_equation(equation: Any, outputs: list[bool], known: Known) -> list[bool]:
    """Return which inputs of one equation the given outputs depend on, number by number through barriers and loops."""
    name, params = equation.primitive.name, equation.params
    if name in ("optimization_barrier", "computed_once_on_cpu"):
        return outputs
    if name == "is_finite":
        # Every run stops where its state is not finite, which is no effect of a parameter.
        return [False]
    if name == "scan":
        return _inputs_of_loop(_plain(params["jaxpr"]), outputs, *sizes_of_scan(params), known)
    if name == "while":
        n_test, n_body = params["cond_nconsts"], params["body_nconsts"]
        # The test decides on every output.
        test = _inputs_of(_plain(params["cond_jaxpr"]), [True], known)
        needed = [out or by_test for out, by_test in zip(outputs, test[n_test:], strict=True)]
        return test[:n_test] + _inputs_of_loop(_plain(params["body_jaxpr"]), needed, n_body, len(outputs), known)
    if name == "cond":
        branches = [_inputs_of(_plain(branch), outputs, known) for branch in params["branches"]]
        return [True, *map(any, zip(*branches, strict=True))]
    for program in map(_plain, params.values()):
        shape = len(getattr(program, "invars", ())), len(getattr(program, "outvars", ()))
        if hasattr(program, "eqns") and shape == (len(equation.invars), len(outputs)):
            return _inputs_of(program, outputs, known)
    return [True] * len(equation.invars)


def _inputs_of_loop(body: Any, outputs: list[bool], n_consts: int, n_carried: int, known: Known) -> list[bool]:
    """Return which inputs of a loop its outputs depend on: constants, then carried arrays, then those of each turn."""
    while True:
        used = _inputs_of(body, outputs, known)
        carried = used[n_consts : n_consts + n_carried]
        widened = [a or b for a, b in zip(outputs, carried, strict=False)] + outputs[n_carried:]
        if widened == outputs:
            return [*used[:n_consts], *widened[:n_carried], *used[n_consts + n_carried :]]
        outputs = widened


def _plain(program: Any) -> Any:
    """Return a program without its constants; anything else as it is."""
    return getattr(program, "jaxpr", program)


def _varies(variable: Any) -> bool:
    """Return whether a variable of a program is one, and no number written into it."""
    return not isinstance(variable, Literal)
