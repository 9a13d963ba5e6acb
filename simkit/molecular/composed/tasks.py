"""Tasks of a system of particles: relaxation and molecular dynamics."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.barrier import computed_once
from simkit.core.expressions.scope import Formula
from simkit.core.parts import declaration_of, formulas_in
from simkit.core.settings import Settings
from simkit.core.simulation import Arrays, Params, Simulation
from simkit.molecular.composed.bonds import StiffnessAt
from simkit.molecular.composed.converted_params import with_converted_params
from simkit.molecular.composed.moment import Moment, Observations, Observer
from simkit.molecular.composed.names import TIME, Names
from simkit.molecular.composed.settings import BAROSTAT, MINIMIZER, THERMOSTAT
from simkit.molecular.dynamics.protocol import DynamicsState
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.minimizers import Scale
from simkit.molecular.relaxation import relaxation
from simkit.molecular.spaces import Cell

OWN = "own"

FIELDS_IN_A_CELL = (
    "changes the cell, in which a field that fits it at the start would fit no longer; leave the fields out, or keep "
    "the cell as it is"
)


@dataclasses.dataclass(frozen=True)
class System:
    """Particles, interactions and starting positions; see `simkit.molecular.composed.system.system`.

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
    for key in ("isotropic", "pressure"):
        if key in settings.given and not settings["cell"]:
            raise settings.refuse(key, "has an effect on a cell that relaxes only; set relax.cell = true")
    if settings["cell"] and not system.is_closed:
        raise settings.refuse("cell", "= true needs a cell that repeats along all axes")
    if settings["cell"] and system.has_fields:
        raise settings.refuse("cell", f"= true {FIELDS_IN_A_CELL}")
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
        minimizer=MINIMIZER.make(settings),
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
    if has_barostat and not system.is_closed:
        raise settings.refuse("pressure", "of a barostat needs a cell that repeats along all axes")
    if has_barostat and system.has_fields:
        raise settings.refuse("pressure", f"of a barostat {FIELDS_IN_A_CELL}")
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
        options["barostat"] = barostat(**timed, **{key: settings[key] for key in declared.keys})
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
    inner = thermostat(interaction, start, **options)
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
