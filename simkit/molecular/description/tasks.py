"""Tasks of a system: relaxation, molecular dynamics, one after the other, and the path between two minima."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.fluctuations import Weight, weight_of, weighted
from simkit.core.formulation import computed_once
from simkit.core.parts import declaration_of, formulas_in
from simkit.core.pytrees import pytree
from simkit.core.settings import Settings
from simkit.core.simulation import Arrays, Equilibrium, Params, Simulation, State
from simkit.core.status import Status
from simkit.molecular import spaces
from simkit.molecular.barriers.band import KEYS as BAND_KEYS
from simkit.molecular.barriers.band import nudged_elastic_band
from simkit.molecular.description.composition import System
from simkit.molecular.description.formulas import TIME, with_converted_params
from simkit.molecular.description.observables import Moment, observe, observed_dimensions, rattlers, see
from simkit.molecular.description.padding import unpadded
from simkit.molecular.description.particles import particles_of, refuse_open
from simkit.molecular.description.settings import BAROSTAT, MINIMIZER, MINIMIZER_OF_BAND, START, THERMOSTAT
from simkit.molecular.description.starts import Places, placing_of
from simkit.molecular.dynamics.brownian import brownian
from simkit.molecular.dynamics.measures import half_kick
from simkit.molecular.dynamics.method import DynamicsState
from simkit.molecular.dynamics.splitting import Barostat
from simkit.molecular.minimizers import Minimizer, largest_norm
from simkit.molecular.relaxation import RelaxationState, relaxation
from simkit.molecular.relaxation.landscape import deformation_by, deformed
from simkit.molecular.spaces import Cell

# The parameters of the system among those of the method of dynamics.
OWN = "own"


def simulation_of(system: System) -> Simulation:
    """Return the simulation of the tasks of a system; all name the potential energy alike, as objectives do.

    Args:
        system: the system.

    Raises:
        UserError: if a setting contradicts the system.
    """
    if system.sequence == ("dynamics",):
        return with_sites(moved(system), system)
    if system.sequence == ("barrier",):
        return bridged(system)
    simulation = relaxed(system) if system.dynamics is None else moved_then_relaxed(system).simulation()

    def diagnose(state: State, params: Params) -> Arrays:
        numbers = simulation.diagnose(state, params)
        potential = {"energy": "potential_energy", "energy_per_particle": "potential_energy_per_particle"}
        return numbers | {other: numbers[name] for name, other in potential.items()}

    named, padding = dataclasses.replace(simulation, diagnose=diagnose), system.placing.places.padding
    return with_sites(named, system) if padding is None else unpadded(named, padding)


def with_sites(simulation: Simulation, system: System) -> Simulation:
    """Return a simulation whose frames have virtual sites in their places."""
    if system.particles.molecules.sites is None:
        return simulation

    def observe(state: State, params: Params) -> Arrays:
        arrays = simulation.observe(state, params)
        return arrays | {"position": system.placed(arrays["position"], arrays.get("cell"))}

    return dataclasses.replace(simulation, observe=observe)


def _refuse_moving_cell(system: System, settings: Settings, key: str, value: str) -> None:
    """Refuse a cell that moves where it has no volume, or there are fields."""
    refuse_open(settings, system.room, key)
    if system.interactions.fields:
        misfit = "in which a field that fits it at the start would fit no longer"
        problem = f"changes the cell, {misfit}; leave the fields out, or keep the cell as it is"
        raise settings.refuse(key, f"{value} {problem}")


def relaxed(system: System, position: jax.Array | None = None) -> Simulation:
    """Return the relaxation of a system, in fields as they are after the time steps before it, if there are any.

    Args:
        system: the system.
        position: where it starts, (N, d); ``None`` for the start of the system.

    Raises:
        UserError: if settings contradict each other.
    """
    settings = system.settings["relax"]
    if settings["cell"]:
        _refuse_moving_cell(system, settings, "cell", "= true")
    steps, stiffness = 0 if system.dynamics is None else system.dynamics["steps"], system.stiffness

    def view(params: Params) -> Params:
        return system.timed(params, steps)

    def moment(position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> Moment:
        return Moment(system.placed(position, cell), cell, view(params), neighbors)

    padding, sites = system.placing.places.padding, system.particles.molecules.sites

    def loose(*at: Any) -> jax.Array:
        """Return the mask of rattlers, absent particles and virtual sites, which the derivative keeps in place."""
        mask = jnp.zeros(len(at[0]), bool) if sites is None else jnp.asarray(sites.mask(len(at[0])))
        mask = mask if padding is None else mask | padding.absent(at[2])
        return mask | rattlers(system, moment(*at)) if system.has_rattlers else mask

    return relaxation(
        with_converted_params(system.interaction, view),
        system.placing.start if position is None else lambda params, key: position,
        params=system.params,
        scale=lambda params: computed_once(system.scale(view(params))),
        cell=system.cell,
        minimizer=MINIMIZER.make(settings, (Minimizer,)),
        force_tolerance=settings["force_tolerance"],
        stiffness=stiffness and (lambda position, cell, params: stiffness(position, cell, view(params))),
        relax_cell=settings["cell"],
        isotropic=settings["isotropic"],
        pressure=system.names.number(settings["pressure"]).number,
        rattlers=loose if system.has_rattlers or padding is not None or sites is not None else None,
        frozen=system.frozen,
        observe=lambda position, cell, params: observe(system, position, params),
        inspect=lambda *at: see(system, moment(*at)),
        dimensions=observed_dimensions(system),
    )


def bridged(system: System) -> Simulation:
    """Return the path between the start of a system and another minimum.

    Args:
        system: the system.

    Raises:
        UserError: if the other start is of other particles, or the minimizer is monotone.
    """
    settings, names, particles = system.settings["barrier"], system.names, system.particles

    def start_of(key: str) -> Callable[[Params, jax.Array], jax.Array] | None:
        table = settings[key]
        if table is None:
            return None
        places = START.call(table, (Places,), table, names)
        if places.count is None:
            raise table.refuse("kind", "is random; give positions, a lattice or a structure")
        same = particles_of(
            system.settings["particles"],
            names,
            places.count,
            places.arrangement,
            places.structure,
            particles.molecules,
        )
        if not np.array_equal(same.species, particles.species):
            raise settings.refuse(key, "holds other particles than start; give the same ones in the same order")
        return placing_of(table, places, particles, system.room, names, system.params, ()).start

    last, temperature = start_of("last"), settings["temperature"]
    assert last is not None  # a required key
    return nudged_elastic_band(
        system.interaction,
        system.placing.start,
        last,
        params=system.params,
        scale=lambda params: computed_once(system.scale(params)),
        middle=start_of("middle"),
        cell=system.cell,
        minimizer=MINIMIZER_OF_BAND.make(settings, (Minimizer,)),
        mass=None if temperature is None else lambda params: particles.of_each("mass", params),
        temperature=None if temperature is None else names.number(temperature).number,
        frozen=system.held,
        observe=lambda position, cell, params: observe(system, position, params),
        dimensions=observed_dimensions(system),
        **{key: settings[key] for key in (*BAND_KEYS, "force_tolerance")},
    )


def moved(system: System) -> Simulation:
    """Return the dynamics of a system, as a simulation of the system's own parameters.

    The parameters of the method are given by formulas; those that may depend on time are passed as its schedules.

    Args:
        system: the system.

    Raises:
        UserError: if a setting contradicts the system.
    """
    settings, names, interaction = system.dynamics, system.names, system.interaction
    assert settings is not None  # called only where there is dynamics
    thermostat, has_barostat = THERMOSTAT.part(settings), settings["barostat"] is not None
    has_bath = "temperature" in inspect.signature(thermostat).parameters
    if has_barostat:
        _refuse_moving_cell(system, settings, "pressure", "of a barostat")
    texts = formulas_in(settings)
    formulas = {key: names.number(text) for key, text in texts.items()}
    schedules = frozenset(key for key, text in texts.items() if TIME in text.takes)
    if not has_bath and formulas["temperature"].takes(TIME):
        raise settings.refuse(
            "temperature", f"changes in time, and method = '{settings['method']}' has no bath; choose another"
        )

    def of_method(params: Params, steps: jax.Array) -> Params:
        time = jnp.zeros_like(formulas["time_step"].number(params))
        numbers = {name: formula.number(params) for name, formula in formulas.items() if name not in schedules}
        numbers["temperature"] = formulas["temperature"].number(params, time=time)
        # Without the barrier some programs fuse formulas into other kernels, which changes their rounding.
        return computed_once({OWN: system.timed(params, steps), **numbers})

    def schedule(key: str) -> Callable[[Params, jax.Array], jax.Array]:
        return lambda params, time: computed_once(formulas[key].number(params[OWN], time=time))

    def at(state: DynamicsState, cell: Cell, params: Params, neighbors: Any) -> Moment:
        kick = None
        if thermostat is not brownian:  # all others split their steps, which end with half a kick
            mass = system.particles.of_each("mass", params[OWN])[:, None]
            kick = half_kick(state.force, mass, params["time_step"])
        return Moment(system.placed(state.position, cell), cell, params[OWN], neighbors, state.velocity, kick)

    def moment(state: DynamicsState, cell: Cell, params: Params) -> Moment:
        # Params may have changed since the list was refreshed.
        return at(state, cell, params, interaction.refresh(state.neighbors, state.position, cell, params[OWN]))

    def of_part(part: Any) -> dict[str, Any]:
        """Return the arguments of a thermostat or barostat: schedules of its values, and its options."""
        declared = declaration_of(part)
        of_time = {key: schedule(key) for key in schedules & declared.values.keys()}
        return of_time | {key: settings[key] for key in declared.keys}

    cell, sites = system.cell, system.particles.molecules.sites
    options: dict[str, Any] = of_part(thermostat) | {
        "params": jax.eval_shape(of_method, system.params, jnp.int32(0)),
        "cell": cell and (lambda params: cell(params[OWN])),
        "mass": lambda params: computed_once(system.particles.of_each("mass", params[OWN])),
        "frozen": system.held,
        "massless": None if sites is None else sites.mask(system.particles.count),
        "observe": lambda state, cell, params: (
            observe(system, state.position, params[OWN]) | see(system, moment(state, cell, params)).arrays
        ),
        "measure": lambda state, cell, params: see(system, at(state, cell, params, state.neighbors)).numbers,
        "dimensions": observed_dimensions(system),
    }
    if has_barostat:
        options["barostat"] = BAROSTAT.call(settings, (Barostat,), **of_part(BAROSTAT.part(settings)))
    if (rigid := system.rigid_bonds(lambda params: params[OWN])) is not None:
        options["constraints"] = rigid
    if system.conserves_momentum:
        # Conserved momentum is measured at the start, which is not valid later if a field depends on time.
        options["isolated"] = system.particles.count > 1 and not system.takes_time
    if has_bath:
        options["temperature"] = schedule("temperature")
    start = system.placing.start
    inner = THERMOSTAT.call(
        settings,
        (Simulation,),
        with_converted_params(interaction, lambda params: params[OWN]),
        lambda params, key: start(params[OWN], key),
        **options,
    )

    def at_state(function: Callable[[Any, Params], Any]) -> Callable[[Any, Params], Any]:
        return lambda state, params: function(state, of_method(params, state.iteration))

    def weight() -> Weight | str:
        """Return the distribution of the states as a function of the system's parameters, or why there is none."""
        if isinstance(found := weight_of(inner), str):
            return found
        if system.takes_time:
            return "a field changes in time"
        return found._replace(
            log=at_state(found.log),
            carried=at_state(found.carried),
            fixed=lambda params: found.fixed(of_method(params, jnp.int32(0))),
        )

    assert inner.status is not None  # dynamics tells whether it is finite
    resize = interaction.sized_like
    return Simulation(
        init=lambda params, key: inner.init(of_method(params, jnp.int32(0)), key),
        step=weighted(lambda state, params: inner.step(state, of_method(params, state.iteration + 1)), weight()),
        observe=at_state(inner.observe),
        diagnose=at_state(inner.diagnose),
        params=system.params,
        status=at_state(inner.status),
        sized_like=resize and (lambda state: moved(dataclasses.replace(system, interaction=resize(state.neighbors)))),
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
        rest: relaxation of the system.
    """

    system: System
    motion: Simulation
    rest: Simulation

    def begin(self, position: jax.Array, params: Params) -> RelaxationState:
        """Return the relaxation from given positions, (N, d), without neighbors."""
        simulation = relaxed(self.system, position)
        return dataclasses.replace(simulation.init(params, jax.random.key(0)), neighbors=())

    def init(self, params: Params, key: jax.Array) -> SequenceState:
        """Return the state before the first step."""
        moving = self.motion.init(params, key)
        return SequenceState(moving=moving, resting=self.begin(moving.position, params), has_begun=jnp.bool_(False))

    def step(self, state: SequenceState, params: Params) -> SequenceState:
        """Return the state one step later: a time step, or an iteration of the minimizer."""
        assert self.system.dynamics is not None  # dynamics comes first
        steps = self.system.dynamics["steps"]

        def move(state: SequenceState) -> SequenceState:
            moving = self.motion.step(state.moving, params)
            is_over = moving.iteration >= steps
            resting = jax.lax.cond(is_over, lambda: self.begin(moving.position, params), lambda: state.resting)
            return SequenceState(moving=moving, resting=resting, has_begun=is_over)

        def rest(state: SequenceState) -> SequenceState:
            resting = self.rest.step(self.whole(state), params)
            moving = dataclasses.replace(state.moving, neighbors=resting.neighbors)
            return dataclasses.replace(state, moving=moving, resting=dataclasses.replace(resting, neighbors=()))

        return jax.lax.cond(state.has_begun, rest, move, state)

    def whole(self, state: SequenceState) -> RelaxationState:
        """Return the relaxation with its neighbors."""
        return dataclasses.replace(state.resting, neighbors=state.moving.neighbors)

    def status(self, state: SequenceState, params: Params) -> jax.Array:
        """Return the `simkit.core.status.Status` code, apart from overflows of lists."""
        assert self.motion.status is not None and self.rest.status is not None  # both phases tell
        moving = self.motion.status(state.moving, params)
        resting = self.rest.status(self.whole(state), params)
        return jnp.where(state.has_begun, resting, jnp.where(moving == Status.CONVERGED, Status.OK, moving))

    def moment(self, state: SequenceState, params: Params) -> Moment:
        """Return the current positions, cell and neighbors."""
        system = self.system
        position, cell = self.arrangement(state, params)
        current = system.timed(params, state.moving.iteration)
        neighbors = system.interaction.refresh(state.moving.neighbors, position, cell, current)
        return Moment(position, cell, current, neighbors)

    def arrangement(self, state: SequenceState, params: Params) -> tuple[jax.Array, Cell]:
        """Return positions and cell, which is constant in dynamics and may relax afterwards."""
        system, settings = self.system, self.system.settings["relax"]
        cell = None if system.cell is None else system.cell(params)
        position, coordinates = state.moving.position, state.resting.descent.position
        if not settings["cell"]:
            return jnp.where(state.has_begun, coordinates, position), cell
        assert cell is not None and system.dynamics is not None  # a cell relaxes only where there is one
        cell = cell if settings["isotropic"] else spaces.lattice_vectors(cell)
        length = system.scale(system.timed(params, system.dynamics["steps"])).length
        strain = deformation_by(coordinates, length, isotropic=settings["isotropic"])
        relaxed = deformed(coordinates, cell, strain)
        return jax.tree.map(lambda now, before: jnp.where(state.has_begun, now, before), relaxed, (position, cell))

    def observe(self, state: SequenceState, params: Params) -> Arrays:
        """Return the arrays of a frame."""
        moment = self.moment(state, params)
        further = observe(self.system, moment.position, params) | see(self.system, moment).arrays
        return spaces.in_cell(moment.position, moment.cell) | further

    def diagnose(self, state: SequenceState, params: Params) -> Arrays:
        """Return the diagnostics: steps of both phases, potential energy, largest force, temperature and observed."""
        interaction, moment = self.system.interaction, self.moment(state, params)
        at = moment.position, moment.cell, moment.params, moment.neighbors
        energy, force = interaction.several(("energy", "force"), *at)
        if self.system.held is not None:
            force = jnp.where(jnp.asarray(self.system.held)[:, None], 0, force)
        motion = self.motion.diagnose(state.moving, params)
        return {
            "iteration": state.moving.iteration + jnp.where(state.has_begun, state.resting.descent.iteration, 0),
            "time": motion["time"],
            "energy": energy,
            "energy_per_particle": energy / len(moment.position),
            "temperature": jnp.where(state.has_begun, 0, motion["temperature"]),
            "max_force": largest_norm(force),
        } | see(self.system, moment).numbers

    def simulation(self) -> Simulation:
        """Return the `Simulation` record."""
        system, solution, resize = self.system, self.rest.equilibrium, self.system.interaction.sized_like
        assert solution is not None  # every relaxation has one

        def sized_like(state: SequenceState) -> Simulation:
            assert resize is not None  # called only where there is
            resized = dataclasses.replace(system, interaction=resize(state.moving.neighbors))
            return moved_then_relaxed(resized).simulation()

        return Simulation(
            init=self.init,
            step=self.step,
            observe=self.observe,
            diagnose=self.diagnose,
            params=system.params,
            converges=True,
            equilibrium=Equilibrium(
                unknowns=lambda state: solution.unknowns(state.resting),
                residual=solution.residual,
                replace=lambda state, x: dataclasses.replace(state, resting=solution.replace(state.resting, x)),
            ),
            status=self.status,
            sized_like=resize and sized_like,
            dimensions=self.rest.dimensions,
        )


def moved_then_relaxed(system: System) -> DynamicsThenRelaxation:
    """Return the dynamics of a system and its relaxation afterwards."""
    return DynamicsThenRelaxation(system, moved(system), relaxed(system))
