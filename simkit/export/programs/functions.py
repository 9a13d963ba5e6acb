"""Functions of a simulation that are exported (step, segment, trajectory, gradient, final state), of arrays by name."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.core import paths
from simkit.errors import UserError, nearest
from simkit.export.programs.ports import Port, decoded, encoded, ports_of

if TYPE_CHECKING:
    from simkit.core.simulation import Params, Simulation
    from simkit.scenario.scenario import Scenario

# What each returns, in a sentence for io.json and the help.
FORMS = {
    "step": "one step: the next state, what a frame shows of it, its diagnostics and its status",
    "segment": "the steps between two frames: as step, after that many of them",
    "trajectory": "a whole run from the initial state: every frame, its diagnostics, and the last state",
    "gradient": "an objective and its derivatives with respect to all parameters",
    "final": "the diagnostics at the end of a run; of one that converges with an implicit derivative",
    "start": "the initial state",
    "advance": "one step: the next state alone",
    "show": "what a frame shows of a state, its diagnostics and its status",
}
# Those of an interactive program, which calls ``start`` once, ``advance`` at every step and ``show`` when it draws.
PARTS = ("start", "advance", "show")
type Function = Callable[..., tuple[Any, ...]]


@dataclasses.dataclass(frozen=True)
class Program:
    """A pure function of plain arrays.

    Attributes:
        form: one of `FORMS`.
        function: of the inputs, in order; returns the outputs, in order.
        inputs: what it takes.
        outputs: what it returns.
        start: ``seed -> inputs`` at the start of a run.
        steps: how many steps one call takes.
        calls: of a step or segment, how many lead to the next frame; otherwise 0.
    """

    form: str
    function: Function
    inputs: list[Port]
    outputs: list[Port]
    start: Callable[[int], list[np.ndarray]]
    steps: int
    calls: int

    def following(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the inputs of the next call: ``next.NAME`` is given as ``state.NAME``.

        Args:
            inputs: of a step or segment.
            outputs: what came of them.
        """
        found = {port.name: array for port, array in zip(self.outputs, outputs, strict=True)}
        return [
            found.get(port.name.replace("state.", "next.", 1), array)
            for port, array in zip(self.inputs, inputs, strict=True)
        ]


def program_of(scenario: "Scenario", simulation: "Simulation", form: str, objective: str | None = None) -> Program:
    """Return one of the functions of a simulation that can be exported, in the precision that JAX runs in.

    Args:
        scenario: for the seed, the steps, the distance of frames and the objectives.
        simulation: built from it.
        form: one of `FORMS`.
        objective: whose gradient; ``None`` takes the first of the scenario.

    Raises:
        UserError: if there is no such form or objective.
    """
    import jax

    if form not in FORMS:
        raise UserError(f"'{form}' is not a form of program{nearest(form, list(FORMS))}")
    if objective is not None and form != "gradient":
        raise UserError(f"objective = '{objective}' is for the form 'gradient' only; leave it out")
    params, quantities = simulation.params, dict(simulation.quantities)
    parameters = [_with_declaration(port, scenario) for port in ports_of(params, "params", {})]
    if form in ("step", "segment"):
        from simkit.core.rollout import frame

        steps = scenario.run.every if form == "segment" else 1
        start, advance = jax.jit(simulation.init), frame(simulation, steps)

        def run(state: Any, params: "Params") -> dict[str, Any]:
            state, told = advance(state, params)
            return {
                "next": state,
                "frame": told.observed,
                "diagnostic": told.diagnosed,
                "status": told.status,
            }

        state = jax.eval_shape(simulation.init, params, jax.random.key(0))
        ports = [ports_of(state, "state", quantities), parameters]
        program = _flat(
            form, run, ports, (state, params), lambda seed: (start(params, jax.random.key(seed)), params), quantities
        )
        return dataclasses.replace(program, steps=steps, calls=scenario.run.every // steps)
    if form in ("advance", "show"):
        return part_of(simulation, form, parameters, scenario.run.every)
    key = jax.random.key(scenario.run.seed)
    ports = [parameters, [dataclasses.replace(ports_of(key, "key", {})[0], doc="from which the start is drawn")]]
    made = _of_runs(scenario, simulation, form, objective)
    program = _flat(form, made, ports, (params, key), lambda seed: (params, jax.random.key(seed)), quantities)
    steps = 0 if form == "start" else scenario.run.steps
    return dataclasses.replace(program, steps=steps)


def part_of(
    simulation: "Simulation", form: str, parameters: list[Port], calls: int, names: Sequence[str] | None = None
) -> Program:
    """Return what an interactive program calls again and again: ``advance`` or ``show``.

    Args:
        simulation: whose.
        form: ``"advance"`` or ``"show"``.
        parameters: its parameters, as inputs.
        calls: how many steps lead to the next frame.
        names: of what is observed, the arrays that are shown; ``None`` shows all.
    """
    import jax

    from simkit.core.rollout import segment
    from simkit.core.status import status_of

    params, start = simulation.params, jax.jit(simulation.init)
    advance, status = segment(simulation, 1), status_of(simulation)

    def shown(state: Any, params: "Params") -> dict[str, Any]:
        observed = simulation.observe(state, params)
        return {
            "frame": observed if names is None else {name: observed[name] for name in names if name in observed},
            "diagnostic": simulation.diagnose(state, params),
            "status": status(state, params),
        }

    function = shown if form == "show" else lambda state, params: {"next": advance(state, params)}
    state = jax.eval_shape(simulation.init, params, jax.random.key(0))
    ports = [ports_of(state, "state", quantities := dict(simulation.quantities)), parameters]
    program = _flat(
        form, function, ports, (state, params), lambda seed: (start(params, jax.random.key(seed)), params), quantities
    )
    return dataclasses.replace(program, steps=int(form == "advance"), calls=calls if form == "advance" else 0)


def _of_runs(
    scenario: "Scenario", simulation: "Simulation", form: str, name: str | None
) -> "Callable[..., dict[str, Any]]":
    """Return ``(params, key) -> {group: arrays}`` for a form that runs from the start to the end."""
    import jax

    from simkit.core import gradient
    from simkit.core.converge import converge
    from simkit.core.rollout import segment, trajectory
    from simkit.jobs.derivatives import objective_name, objective_of

    params, key, steps = simulation.params, jax.random.key(scenario.run.seed), scenario.run.steps
    if form == "start":
        return lambda params, key: {"state": simulation.init(params, key)}
    if form == "gradient":
        objective = objective_of(scenario, simulation, objective_name(scenario, name))
        if simulation.sized_like is not None:
            objective = objective.with_room(params, key)
        derive = gradient.with_derivative(objective, list(paths.leaves(params)))

        def differentiated(params: "Params", key: Any) -> dict[str, Any]:
            value, derivative = derive(params, key)
            return {"objective": value, "gradient": derivative}

        return differentiated
    simulation = _with_room(simulation, steps, key)
    if form == "trajectory":
        run = trajectory(simulation, steps, scenario.run.every)
        return lambda params, key: dict(zip(("last", "frame", "diagnostic"), run(params, key), strict=True))

    def final(params: "Params", key: Any) -> dict[str, Any]:
        state = simulation.init(params, key)
        if simulation.equilibrium is not None:
            state = converge(simulation, steps)(state, params).state
        else:
            state = segment(simulation, steps)(state, params)
        return {"diagnostic": simulation.diagnose(state, params)}

    return final


def _with_room(simulation: "Simulation", steps: int, key: Any) -> "Simulation":
    """Return a simulation with buffers large enough for its run: those of a program cannot grow."""
    import jax

    from simkit.core.growth import with_room
    from simkit.core.rollout import segment
    from simkit.core.status import status_of

    if simulation.sized_like is None:
        return simulation

    def attempt(simulation: "Simulation", _: Any) -> tuple[Any, Any, "Simulation"]:
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
    quantities: Any,
) -> Program:
    """Return a function of trees as one of plain arrays."""
    import jax

    structures = [jax.tree.structure(argument) for argument in example]

    def run(*arrays: Any) -> tuple[Any, ...]:
        left = iter(arrays)
        trees = [
            jax.tree.unflatten(structure, [decoded(port, next(left)) for port in ports])
            for structure, ports in zip(structures, inputs, strict=True)
        ]
        return tuple(encoded(leaf) for leaf in jax.tree.leaves(function(*trees)))

    shapes = jax.eval_shape(function, *example)
    outputs = [port for group in sorted(shapes) for port in ports_of(shapes[group], group, quantities)]

    def arrays(seed: int) -> list[np.ndarray]:
        return [np.asarray(encoded(leaf)) for leaf in jax.tree.leaves(start(seed))]

    return Program(form, run, [port for ports in inputs for port in ports], outputs, arrays, steps=0, calls=0)


def _with_declaration(port: Port, scenario: "Scenario") -> Port:
    declared = scenario.parameters.get(port.name.removeprefix("params."))
    if declared is None:
        return port
    bounds = None if declared.bounds is None else (float(declared.bounds[0]), float(declared.bounds[1]))
    return dataclasses.replace(port, unit=declared.unit, doc=declared.doc, bounds=bounds)
