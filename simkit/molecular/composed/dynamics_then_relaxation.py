"""Dynamics, then relaxation, as one simulation: a melt that is cooled and brought to rest, for instance."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.pytree import pytree
from simkit.core.simulation import Arrays, Equilibrium, Params, Simulation
from simkit.core.status import Status
from simkit.molecular import frames
from simkit.molecular.composed.moment import Moment
from simkit.molecular.composed.tasks import OWN, Motion, System
from simkit.molecular.dynamics.protocol import DynamicsState
from simkit.molecular.minimizers import largest_norm
from simkit.molecular.relaxation import RelaxationState


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
        return frames.in_cell(moment.position, moment.cell) | further

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
            least_steps={"dynamics.steps": self.steps},
            sized_like=self.system.interaction.sized_like and (lambda state: self.resized(state.moving.neighbors)),
            dimensions=resting.dimensions,
        )
