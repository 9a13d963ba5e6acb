"""Tasks: relaxation, molecular dynamics, and one after the other."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.expressions.scope import Formula
from simkit.core.formulation import computed_once
from simkit.core.parts import declaration_of, formulas_in
from simkit.core.pytrees import pytree
from simkit.core.settings import Settings
from simkit.core.simulation import Arrays, Equilibrium, Params, Simulation
from simkit.core.status import Status
from simkit.molecular import spaces
from simkit.molecular.description.formulas import TIME, Names, with_converted_params
from simkit.molecular.description.interactions import StiffnessAt
from simkit.molecular.description.observables import Moment, Observations, Observer
from simkit.molecular.description.settings import BAROSTAT, MINIMIZER, THERMOSTAT
from simkit.molecular.dynamics.method import DynamicsState
from simkit.molecular.dynamics.splitting import Barostat
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.minimizers import Minimizer, Scale, largest_norm
from simkit.molecular.relaxation import RelaxationState, relaxation
from simkit.molecular.spaces import Cell

OWN = "own"
FIELDS_IN_A_CELL = (
    "changes the cell, in which a field that fits it at the start would fit no longer; leave the fields out, or keep "
    "the cell as it is"
)


@dataclasses.dataclass(frozen=True)
class System:
    """Particles, interactions and starting positions; see `simkit.molecular.description.system.system`.

    Attributes:
        params: the default parameters.
        interaction: interactions and fields; its params may hold the time.
        start: ``(params, key) -> position``.
        cell: ``params -> cell``, or ``None`` for free space.
        mass: ``params -> (N,)``.
        scale: ``params -> Scale``.
        stiffness: ``(position, cell, params) -> stiffness`` of an arrangement, or ``None``, see `scale_of`.
        frozen: mask of the particles that do not move, (N,) booleans, or ``None``.
        observe: ``(position, cell, params) -> arrays``, further arrays of frames.
        see: ``moment -> `` observed quantities.
        rattlers: ``moment -> `` mask of the particles without load-bearing contacts, (N,) booleans; ``None`` if there
            are none.
        dimensions: the dimension names of these.
        is_closed: whether the cell repeats along all axes.
        has_fields: whether there are external fields.
    """

    params: dict[str, Any]
    interaction: Interaction
    start: Callable[[Params, jax.Array], jax.Array]
    cell: Callable[[Params], jax.Array] | None
    mass: Callable[[Params], jax.Array]
    scale: Callable[[Params], Scale]
    stiffness: StiffnessAt | None
    frozen: Any
    observe: Callable[[jax.Array, Cell, Params], Arrays]
    see: Observer
    rattlers: Callable[[Moment], jax.Array] | None
    dimensions: dict[str, tuple[str, ...]]
    is_closed: bool
    has_fields: bool


def refuse_moving_cell(system: System, settings: Settings, key: str, what: str) -> None:
    """Refuse a cell that moves where it has no volume, or there are fields.

    Args:
        system: the system.
        settings: of the relaxation or dynamics.
        key: key by which the cell moves.
        what: its value, for the message.

    Raises:
        UserError: if the cell cannot move.
    """
    if not system.is_closed or system.has_fields:
        problem = FIELDS_IN_A_CELL if system.is_closed else "needs a cell that repeats along all axes"
        raise settings.refuse(key, f"{what} {problem}")


def relaxed(
    system: System, settings: Settings, names: Names, ends_at: Callable[[Params], jax.Array] | None
) -> Simulation:
    """Return the relaxation of a system.

    Args:
        system: the system.
        settings: settings of the relaxation.
        names: names that formulas may use.
        ends_at: ``params -> `` time at which fields are evaluated; ``None`` if there is no time.

    Raises:
        UserError: if settings contradict each other.
    """
    if settings["cell"]:
        refuse_moving_cell(system, settings, "cell", "= true")
    pressure = names.number(settings["pressure"])

    def view(params: Params) -> Params:
        return params if ends_at is None else {**params, TIME: ends_at(params)}

    def seen(position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> Moment:
        return Moment(position, cell, view(params), neighbors)

    rattlers, stiffness = system.rattlers, system.stiffness
    return relaxation(
        with_converted_params(system.interaction, view),
        system.start,
        params=system.params,
        scale=lambda params: system.scale(view(params)),
        cell=system.cell,
        minimizer=MINIMIZER.make(settings, (Minimizer,)),
        force_tolerance=settings["force_tolerance"],
        stiffness=stiffness and (lambda position, cell, params: stiffness(position, cell, view(params))),
        relax_cell=settings["cell"],
        isotropic=settings["isotropic"],
        pressure=pressure.number,
        rattlers=rattlers and (lambda *moment: rattlers(seen(*moment))),
        frozen=system.frozen,
        observe=system.observe,
        inspect=lambda *moment: system.see(seen(*moment)),
        dimensions=system.dimensions,
    )


@dataclasses.dataclass(frozen=True)
class Motion:
    """Dynamics of a system, whose method's parameters are given by formulas.

    Attributes:
        inner: the simulation with the parameters of the method, those of the system under `OWN`.
        formulas: formulas of the method's parameters.
        schedules: names of the parameters that may depend on time.
        takes_time: whether fields depend on time.
    """

    inner: Simulation
    formulas: dict[str, Formula]
    schedules: frozenset[str]
    takes_time: bool

    def params(self, params: Params, steps: jax.Array) -> Params:
        """Return the params of the method.

        Args:
            params: params of the system.
            steps: number of time steps so far, from which the time of fields follows.
        """
        return _method_params(self.formulas, self.schedules, params, steps, takes_time=self.takes_time)

    def init(self, params: Params, key: jax.Array) -> Any:
        """Return the state before the first step."""
        return self.inner.init(self.params(params, jnp.int32(0)), key)

    def step(self, state: Any, params: Params) -> Any:
        """Return the state one time step later."""
        return self.inner.step(state, self.params(params, state.iteration + 1))

    def of_state(self, function: Callable[[Any, Params], Any]) -> Callable[[Any, Params], Any]:
        """Return a function of the inner simulation's params as a function of the system's params."""
        return lambda state, params: function(state, self.params(params, state.iteration))


def _method_params(
    formulas: dict[str, Formula], schedules: frozenset[str], params: Params, steps: jax.Array, *, takes_time: bool
) -> dict[str, Any]:
    step = formulas["time_step"].number(params)
    own = {**params, TIME: steps.astype(step.dtype) * step} if takes_time else params
    begin = formulas["temperature"].number(params, time=jnp.zeros_like(step))
    # Schedules are passed to the method as functions of time.
    numbers = {name: formula.number(params) for name, formula in formulas.items() if name not in schedules}
    # Without the barrier some programs fuse formulas into other kernels, which changes their rounding.
    return computed_once({OWN: own, "temperature": begin, **numbers})


def conserves_momentum(thermostat: Callable[..., Simulation]) -> bool:
    """Return whether a method sets conserved momentum apart from the thermal motion."""
    return "isolated" in inspect.signature(thermostat).parameters


def motion_of(system: System, settings: Settings, names: Names, *, takes_time: bool) -> Motion:
    """Return the dynamics of a system.

    Args:
        system: the system.
        settings: settings of the dynamics.
        names: names that formulas may use.
        takes_time: whether fields depend on time.

    Raises:
        UserError: if a setting contradicts the system.
    """
    thermostat, has_barostat = THERMOSTAT.part(settings), settings["barostat"] is not None
    has_bath = "temperature" in inspect.signature(thermostat).parameters
    if has_barostat:
        refuse_moving_cell(system, settings, "pressure", "of a barostat")
    texts = formulas_in(settings)
    formulas = {key: names.number(text) for key, text in texts.items()}
    schedules = frozenset(key for key, text in texts.items() if TIME in text.takes)
    if not has_bath and formulas["temperature"].takes(TIME):
        raise settings.refuse(
            "temperature", f"changes in time, and method = '{settings['method']}' has no bath; choose another"
        )

    def schedule(key: str) -> Callable[[Params, jax.Array], jax.Array]:
        return lambda params, time: computed_once(formulas[key].number(_timeless(params[OWN]), time=time))

    def cell(params: Params) -> jax.Array:
        assert system.cell is not None  # passed on only where there is one
        return system.cell(_timeless(params[OWN]))

    def seen(state: DynamicsState, cell: Cell, params: Params) -> Observations:
        return system.see(Moment(state.position, cell, params[OWN], state.neighbors))

    def observe(state: DynamicsState, cell: Cell, params: Params) -> Arrays:
        # Params may have changed since the list was refreshed.
        neighbors = system.interaction.refresh(state.neighbors, state.position, cell, params[OWN])
        current = dataclasses.replace(state, neighbors=neighbors)
        return system.observe(state.position, cell, _timeless(params[OWN])) | seen(current, cell, params).arrays

    defaults = system.params
    options: dict[str, Any] = {
        "params": jax.eval_shape(
            lambda params: _method_params(formulas, schedules, params, jnp.int32(0), takes_time=takes_time), defaults
        ),
        "cell": None if system.cell is None else cell,
        "mass": lambda params: system.mass(_timeless(params[OWN])),
        "frozen": system.frozen,
        "observe": observe,
        "measure": lambda state, cell, params: seen(state, cell, params).numbers,
        "dimensions": system.dimensions,
    }
    if has_barostat:
        barostat = BAROSTAT.part(settings)
        declared = declaration_of(barostat)
        timed = {key: schedule(key) for key in schedules & declared.values.keys()}
        plain = {key: settings[key] for key in declared.keys}
        options["barostat"] = BAROSTAT.call(settings, (Barostat,), **timed, **plain)
    interaction = with_converted_params(system.interaction, lambda params: params[OWN])

    def start(params: Params, key: jax.Array) -> jax.Array:
        return system.start(_timeless(params[OWN]), key)

    if conserves_momentum(thermostat):
        # Conserved momentum is measured at the start, which is not valid later if a field depends on time.
        count = len(jax.eval_shape(system.start, defaults, jax.eval_shape(jax.random.key, 0)))
        options["isolated"] = count > 1 and not takes_time
    if has_bath:
        options["temperature"] = schedule("temperature")
    declared = declaration_of(thermostat)
    options |= {key: schedule(key) for key in schedules & declared.values.keys()}
    options |= {key: settings[key] for key in declared.keys}
    inner = THERMOSTAT.call(settings, (Simulation,), interaction, start, **options)
    return Motion(inner, formulas, schedules, takes_time)


def _timeless(params: Params) -> Params:
    return {name: value for name, value in params.items() if name != TIME}


def moving(motion: Motion, system: System) -> Simulation:
    """Return dynamics as a simulation of the system's own parameters.

    Args:
        motion: dynamics of the system.
        system: the system, with its parameters.
    """
    inner = motion.inner

    def sized_like(state: Any) -> Simulation:
        assert inner.sized_like is not None  # called only where there is
        return moving(dataclasses.replace(motion, inner=inner.sized_like(state)), system)

    assert inner.status is not None  # dynamics tells whether it is finite
    return Simulation(
        init=motion.init,
        step=motion.step,
        observe=motion.of_state(inner.observe),
        diagnose=motion.of_state(inner.diagnose),
        params=system.params,
        status=motion.of_state(inner.status),
        sized_like=inner.sized_like and sized_like,
        dimensions=inner.dimensions,
    )


@pytree
class SequenceState:
    """State of dynamics followed by a relaxation.

    Attributes:
        moving: state of the dynamics; after its end it holds the neighbors of the relaxation.
        resting: state of the relaxation, without neighbors; undefined before it begins.
        has_begun: whether the relaxation has begun, bool.
    """

    moving: DynamicsState
    resting: RelaxationState
    has_begun: jax.Array


@dataclasses.dataclass(frozen=True)
class DynamicsThenRelaxation:
    """Dynamics for a number of steps, then relaxation to mechanical equilibrium.

    The derivative of the result is that of the minimum, whatever trajectory led to it.

    Attributes:
        system: the system, with its parameters.
        motion: dynamics of the system.
        relax: ``system -> relaxation``.
        steps: number of time steps before the relaxation.
        resized: ``neighbors -> simulation``, the same simulation with lists of other sizes.
    """

    system: System
    motion: Motion
    relax: Callable[[System], Simulation]
    steps: int
    resized: Callable[[object], Simulation]

    def begin(self, position: jax.Array, params: Params) -> RelaxationState:
        """Return the relaxation from given positions, (N, d), without neighbors."""
        simulation = self.relax(dataclasses.replace(self.system, start=lambda params, key: position))
        return dataclasses.replace(simulation.init(params, jax.random.key(0)), neighbors=())

    def init(self, params: Params, key: jax.Array) -> SequenceState:
        """Return the state before the first step."""
        moving = self.motion.init(params, key)
        return SequenceState(moving=moving, resting=self.begin(moving.position, params), has_begun=jnp.bool_(False))

    def step(self, state: SequenceState, params: Params) -> SequenceState:
        """Return the state one step later: a time step, or an iteration of the minimizer."""

        def move(state: SequenceState) -> SequenceState:
            moving = self.motion.step(state.moving, params)
            is_over = moving.iteration >= self.steps
            resting = jax.lax.cond(is_over, lambda: self.begin(moving.position, params), lambda: state.resting)
            return SequenceState(moving=moving, resting=resting, has_begun=is_over)

        def rest(state: SequenceState) -> SequenceState:
            resting = self.relax(self.system).step(self.whole(state), params)
            moving = dataclasses.replace(state.moving, neighbors=resting.neighbors)
            return dataclasses.replace(state, moving=moving, resting=dataclasses.replace(resting, neighbors=()))

        return jax.lax.cond(state.has_begun, rest, move, state)

    def whole(self, state: SequenceState) -> RelaxationState:
        """Return the relaxation with its neighbors."""
        return dataclasses.replace(state.resting, neighbors=state.moving.neighbors)

    def position(self, state: SequenceState) -> jax.Array:
        """Return the current positions, (N, d)."""
        return jnp.where(state.has_begun, state.resting.descent.position, state.moving.position)

    def status(self, state: SequenceState, params: Params) -> jax.Array:
        """Return the `simkit.core.status.Status` code, apart from overflows of lists."""
        tells = self.motion.inner.status, self.relax(self.system).status
        assert tells[0] is not None and tells[1] is not None  # both phases tell
        moving = self.motion.of_state(tells[0])(state.moving, params)
        resting = tells[1](self.whole(state), params)
        return jnp.where(state.has_begun, resting, jnp.where(moving == Status.CONVERGED, Status.OK, moving))

    def cell(self, params: Params) -> jax.Array | None:
        """Return the cell."""
        return None if self.system.cell is None else self.system.cell(params)

    def moment(self, state: SequenceState, params: Params) -> Moment:
        """Return the current positions, cell and neighbors."""
        position, cell = self.position(state), self.cell(params)
        current = self.motion.params(params, state.moving.iteration)[OWN]
        return Moment(
            position, cell, current, self.system.interaction.refresh(state.moving.neighbors, position, cell, current)
        )

    def observe(self, state: SequenceState, params: Params) -> Arrays:
        """Return the arrays of a frame."""
        moment = self.moment(state, params)
        further = self.system.observe(moment.position, moment.cell, params) | self.system.see(moment).arrays
        return spaces.in_cell(moment.position, moment.cell) | further

    def diagnose(self, state: SequenceState, params: Params) -> Arrays:
        """Return the diagnostics: steps of both phases, potential energy, largest force, temperature and observed."""
        interaction, moment = self.system.interaction, self.moment(state, params)
        position, cell, params_now, neighbors = moment.position, moment.cell, moment.params, moment.neighbors
        energy = interaction.energy(position, cell, params_now, neighbors)
        force = interaction.force(position, cell, params_now, neighbors)
        if self.system.frozen is not None:
            force = jnp.where(jnp.asarray(self.system.frozen)[:, None], 0, force)
        motion = self.motion.of_state(self.motion.inner.diagnose)(state.moving, params)
        return {
            "iteration": state.moving.iteration + jnp.where(state.has_begun, state.resting.descent.iteration, 0),
            "time": motion["time"],
            "energy": energy,
            "energy_per_particle": energy / len(position),
            "temperature": jnp.where(state.has_begun, 0, motion["temperature"]),
            "max_force": largest_norm(force),
        } | self.system.see(moment).numbers

    def simulation(self) -> Simulation:
        """Return the `Simulation` record."""
        resting = self.relax(self.system)
        solution = resting.equilibrium
        assert solution is not None  # every relaxation has one
        return Simulation(
            init=self.init,
            step=self.step,
            observe=self.observe,
            diagnose=self.diagnose,
            params=self.system.params,
            converges=True,
            equilibrium=Equilibrium(
                unknowns=lambda state: solution.unknowns(state.resting),
                residual=solution.residual,
                replace=lambda state, x: dataclasses.replace(state, resting=solution.replace(state.resting, x)),
            ),
            status=self.status,
            sized_like=self.system.interaction.sized_like and (lambda state: self.resized(state.moving.neighbors)),
            dimensions=resting.dimensions,
        )
