"""Exported functions of a simulation (step, segment, trajectory, gradient, ...), of named arrays."""

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import gradient, paths
from simkit.core.converge import converge, with_room
from simkit.core.formulation import computed_once
from simkit.core.rollout import recorded_frame, segment, trajectory
from simkit.core.simulation import Params, Quantity, Simulation
from simkit.core.status import status_of
from simkit.errors import UserError
from simkit.jobs.derivatives import objective_name, objective_of
from simkit.scenario.scenario import Scenario

NUMBER, COMPLEX, KEY = "number", "complex number", "random key"
KINDS = (NUMBER, COMPLEX, KEY)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.]")


@dataclasses.dataclass(frozen=True)
class Port:
    """One array that a program takes or returns.

    Attributes:
        name: the same in every runtime and in ``reference.npz``.
        shape: without the batch axis.
        dtype: name of the element type.
        unit: physical unit, ``"1"`` for a pure number; empty if not declared.
        doc: meaning; empty if not declared.
        kind: ``"number"``; ``"complex number"``, with a last axis of real and imaginary part; or ``"random key"``, its
            words as ``uint32``.
        bounds: lowest and highest value allowed, for a parameter that declares them.
        axes: names of the axes of ``shape``, where declared.
        implementation: of random keys, the name of JAX's generator.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    unit: str = ""
    doc: str = ""
    kind: str = NUMBER
    bounds: tuple[float, float] | None = None
    axes: tuple[str, ...] = ()
    implementation: str = ""

    def described(self, batch: "int | str | None") -> dict[str, Any]:
        """Return the entry of this port in ``io.json``.

        Args:
            batch: size of the leading batch axis, ``"symbolic"`` for any, ``None`` without one.
        """
        entry = dataclasses.asdict(self)
        entry["shape"] = [*([] if batch is None else [batch]), *self.shape]
        entry["axes"] = [*([] if batch is None else ["member"]), *self.axes] if self.axes else None
        return {key: value for key, value in entry.items() if value not in (None, "")}


def ports_of(tree: Any, prefix: str, quantities: dict[str, Quantity]) -> list[Port]:
    """Return the ports of a tree's arrays, in the order of its leaves.

    Args:
        tree: of arrays, or of their shapes and types.
        prefix: first word of the names, which are ``PREFIX.PATH``.
        quantities: units and meanings by the last step of a path.
    """
    ports: list[Port] = []
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        steps = [_NOT_IN_NAMES.sub("_", jax.tree_util.keystr((key,), simple=True)) for key in path]
        name = ".".join([prefix, *steps])
        if any(port.name == name for port in ports):
            name = f"{name}_{len(ports)}"
        quantity = quantities.get(steps[-1]) if steps else None
        ports.append(_port(name, leaf, {} if quantity is None else {"unit": quantity.unit, "doc": quantity.doc}))
    return ports


def encoded(leaf: Any) -> Any:
    """Return an array as a plain one: the words of random keys, or real and imaginary parts along a last axis."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(leaf)
    if jnp.issubdtype(leaf.dtype, jnp.complexfloating):
        return jnp.stack([leaf.real, leaf.imag], -1)
    return leaf


def decoded(port: Port, array: Any) -> Any:
    """Return the array of which `encoded` returned ``array``.

    Args:
        port: of the array.
        array: encoded.
    """
    if port.kind == KEY:
        return jax.random.wrap_key_data(array, impl=port.implementation)
    return jax.lax.complex(array[..., 0], array[..., 1]) if port.kind == COMPLEX else array


def _port(name: str, leaf: Any, declared: dict[str, Any]) -> Port:

    shape = jax.eval_shape(encoded, leaf)
    kind, names = NUMBER, [""]
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        kind, declared = KEY, {}
        jax.eval_shape(lambda key: names.append(str(jax.random.key_impl(key))), leaf)
    elif np.issubdtype(leaf.dtype, np.complexfloating):
        kind = COMPLEX
    return Port(name, tuple(shape.shape), shape.dtype.name, kind=kind, implementation=names[-1], **declared)


# Results of each form, in a sentence for io.json and the help.
FORMS = {
    "step": "one step: the next state, its observed arrays, its diagnostics and its status",
    "segment": "the steps between two frames: the outputs of step after the last of them",
    "trajectory": "a whole run from the initial state: every frame, its diagnostics, and the last state",
    "gradient": "an objective and its derivatives with respect to all parameters",
    "final": "the diagnostics at the end of a run, with an implicit derivative if the run converges",
    "start": "the initial state",
    "advance": "one step: the next state alone",
    "show": "the observed arrays of a state, its diagnostics and its status",
}
# Forms of an interactive program, which calls ``start`` once, ``advance`` at every step and ``show`` when it draws.
PARTS = ("start", "advance", "show")
type Function = Callable[..., tuple[Any, ...]]


@dataclasses.dataclass(frozen=True)
class Program:
    """A pure function of plain arrays.

    Attributes:
        form: one of `FORMS`.
        function: ``(*inputs) -> outputs``, in the order of the ports.
        inputs: ports of the arguments.
        outputs: ports of the results.
        start: ``seed -> inputs`` at the start of a run.
        steps: number of time steps in one call.
        calls: number of calls from one frame to the next, of the forms ``step``, ``segment`` and ``advance``; else 0.
        converges: whether it runs until the simulation converges, of the forms ``final`` and ``gradient``.
    """

    form: str
    function: Function
    inputs: list[Port]
    outputs: list[Port]
    start: Callable[[int], list[np.ndarray]]
    steps: int
    calls: int
    converges: bool = False

    def following(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the inputs of the next call, in which ``state.NAME`` is ``next.NAME`` of this one.

        Args:
            inputs: of this call.
            outputs: of this call.
        """
        by_name = {port.name: array for port, array in zip(self.outputs, outputs, strict=True)}
        return [
            by_name.get(port.name.replace("state.", "next.", 1), array)
            for port, array in zip(self.inputs, inputs, strict=True)
        ]


def program_of(
    scenario: Scenario,
    simulation: Simulation,
    form: str,
    objective: str | None = None,
    names: Sequence[str] | None = None,
    wrt: Sequence[str] | None = None,
) -> Program:
    """Return an exported function of a simulation, in JAX's present precision.

    Args:
        scenario: for its seed, steps, frame interval and objectives.
        simulation: built from the scenario.
        form: one of `FORMS`.
        objective: name of the objective to differentiate; ``None`` takes the scenario's first.
        names: of the observed arrays that ``show`` returns; ``None`` returns all.
        wrt: paths of the parameters of the form ``gradient``; ``None`` takes all.

    Raises:
        UserError: if the objective is unknown.
    """
    if objective is not None and form != "gradient":
        raise UserError(f"objective = '{objective}' is for the form 'gradient' only; leave it out")
    params = simulation.params
    parameters = [_with_declaration(port, scenario) for port in ports_of(params, "params", {})]
    if form in ("step", "segment", *PARTS[1:]):
        steps = {"segment": scenario.run.every, "show": 0}.get(form, 1)
        start, function = jax.jit(simulation.init), _of_states(simulation, form, steps, names)
        state = jax.eval_shape(simulation.init, params, jax.random.key(0))
        ports = [ports_of(state, "state", dict(simulation.quantities)), parameters]

        def begin(seed: int) -> tuple[Any, ...]:
            return start(params, jax.random.key(seed)), params

        program = _flat(form, function, ports, (state, params), begin, simulation)
        return dataclasses.replace(program, steps=steps, calls=scenario.run.every // steps if steps else 0)
    key = jax.random.key(scenario.run.seed)
    ports = [parameters, [dataclasses.replace(ports_of(key, "key", {})[0], doc="random key of the initial state")]]
    function = _of_runs(scenario, simulation, form, objective, wrt)
    program = _flat(form, function, ports, (params, key), lambda seed: (params, jax.random.key(seed)), simulation)
    steps = 0 if form == "start" else scenario.run.steps
    converges = form in ("final", "gradient") and simulation.equilibrium is not None
    return dataclasses.replace(program, steps=steps, converges=converges)


def _of_states(
    simulation: Simulation, form: str, steps: int, names: Sequence[str] | None
) -> Callable[..., dict[str, Any]]:
    """Return ``(state, params) -> {group: arrays}`` for a form that begins at any state."""
    advance, record = segment(simulation, steps), recorded_frame(simulation)

    def run(state: Any, params: Params) -> dict[str, Any]:
        results: dict[str, Any] = {}
        if steps:
            state = results["next"] = computed_once(advance(state, params))
        if form != "advance":
            shown = record(state, params)
            observed = {name: shown.observed[name] for name in names or shown.observed if name in shown.observed}
            results |= {"frame": observed, "diagnostic": shown.diagnosed, "status": shown.status}
        return results

    return run


def _of_runs(
    scenario: Scenario, simulation: Simulation, form: str, name: str | None, wrt: Sequence[str] | None
) -> Callable[..., dict[str, Any]]:
    """Return ``(params, key) -> {group: arrays}`` for a form that begins at the initial state."""
    params, key, steps = simulation.params, jax.random.key(scenario.run.seed), scenario.run.steps
    if form == "start":
        return lambda params, key: {"state": simulation.init(params, key)}
    if form == "gradient":
        objective = objective_of(scenario, simulation, objective_name(scenario, name))
        if simulation.sized_like is not None:
            objective = objective.with_room(params, key)
        derive = gradient.with_derivative(objective, list(paths.leaves(params)) if wrt is None else wrt)

        def differentiated(params: Params, key: Any) -> dict[str, Any]:
            value, derivative = derive(params, key)
            return {"objective": value, "gradient": derivative}

        return differentiated
    simulation = _with_room(simulation, steps, key)
    if form == "trajectory":
        run = trajectory(simulation, steps, scenario.run.every)
        return lambda params, key: dict(zip(("last", "frame", "diagnostic"), run(params, key), strict=True))

    def final(params: Params, key: Any) -> dict[str, Any]:
        state = simulation.init(params, key)
        if simulation.equilibrium is not None:
            state = converge(simulation, steps)(state, params).state
        else:
            state = segment(simulation, steps)(state, params)
        return {"diagnostic": simulation.diagnose(state, params)}

    return final


def _with_room(simulation: Simulation, steps: int, key: Any) -> Simulation:
    """Return a simulation with buffers large enough for its run, since those of an exported program cannot grow."""
    if simulation.sized_like is None:
        return simulation

    def attempt(simulation: Simulation, _: Any) -> tuple[Any, Any, Simulation]:
        run = segment(simulation, steps)
        state = jax.jit(lambda params, key: run(simulation.init(params, key), params))(simulation.params, key)
        return state, status_of(simulation)(state, simulation.params), simulation

    return with_room(simulation, attempt)


def _flat(
    form: str,
    function: Callable[..., dict[str, Any]],
    inputs: list[list[Port]],
    example: tuple[Any, ...],
    start: Callable[[int], tuple[Any, ...]],
    simulation: Simulation,
) -> Program:
    """Return a function of trees as a program of plain arrays."""
    quantities = dict(simulation.quantities)
    structures = [jax.tree.structure(argument) for argument in example]

    def run(*arrays: Any) -> tuple[Any, ...]:
        leaves = iter(arrays)
        trees = [
            jax.tree.unflatten(structure, [decoded(port, next(leaves)) for port in ports])
            for structure, ports in zip(structures, inputs, strict=True)
        ]
        return tuple(encoded(leaf) for leaf in jax.tree.leaves(function(*trees)))

    shapes = jax.eval_shape(function, *example)
    outputs = [
        _with_axes(port, form, simulation)
        for group in sorted(shapes)
        for port in ports_of(shapes[group], group, quantities)
    ]

    def arrays(seed: int) -> list[np.ndarray]:
        return [np.asarray(encoded(leaf)) for leaf in jax.tree.leaves(start(seed))]

    return Program(form, run, [port for ports in inputs for port in ports], outputs, arrays, steps=0, calls=0)


def _with_axes(port: Port, form: str, simulation: Simulation) -> Port:
    """Return the port of a frame's array with the names of its axes, in the simulation's own order."""
    group, _, name = port.name.partition(".")
    axes = ("frame",) if form == "trajectory" and group in ("frame", "diagnostic") else ()
    axes += simulation.dimensions.get(name, ()) if group == "frame" else ()
    return dataclasses.replace(port, axes=axes) if len(axes) == len(port.shape) else port


def _with_declaration(port: Port, scenario: Scenario) -> Port:
    declared = scenario.parameters.get(port.name.removeprefix("params."))
    if declared is None:
        return port
    bounds = None if declared.bounds is None else (float(declared.bounds[0]), float(declared.bounds[1]))
    return dataclasses.replace(port, unit=declared.unit, doc=declared.doc, bounds=bounds)
