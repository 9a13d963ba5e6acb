"""Particles in motion: any interaction, any method, in free space or a cell, as a simulation."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.barrier import computed_once
from simkit.core.simulation import Arrays, Params, Simulation
from simkit.core.status import Status, is_finite
from simkit.errors import UserError
from simkit.molecular import frames
from simkit.molecular.dynamics.conserved import conserved_directions
from simkit.molecular.dynamics.measures import thermodynamics, without_drift
from simkit.molecular.dynamics.protocol import DynamicsState, Method
from simkit.molecular.dynamics.velocities import maxwell_boltzmann
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.spaces import Cell

type Measure = Callable[[DynamicsState, Cell, Params], Arrays]


@dataclasses.dataclass(frozen=True)
class MolecularDynamics:
    """Particles in motion; for what each part means see `motion`.

    Attributes:
        interaction: what acts between the particles.
        start: ``(params, key) -> position``.
        method: how they move.
        params: the default parameters.
        isolated: whether nothing but the interaction changes the total momentum.
        cell: ``params -> cell``, or ``None`` for free space.
        mass: ``params -> mass``, or ``None`` for the parameter.
        velocity: ``(params, key) -> velocity``, or ``None`` for the Maxwell-Boltzmann distribution.
        observe: what else a frame stores, or ``None``.
        measure: further diagnostics, or ``None``.
        dimensions: the dimension names of what ``observe`` returns.
    """

    interaction: Interaction
    start: Callable[[Params, jax.Array], jax.Array]
    method: Method
    params: dict[str, Any]
    isolated: bool
    cell: Callable[[Params], jax.Array] | None
    mass: Callable[[Params], jax.Array] | None
    velocity: Callable[[Params, jax.Array], jax.Array] | None
    observe: Measure | None
    measure: Measure | None
    dimensions: Mapping[str, tuple[str, ...]]

    def mass_of(self, params: Params) -> jax.Array:
        """Return the mass, scalar or (N, 1)."""
        value = params["mass"] if self.mass is None else self.mass(params)
        return value if value.ndim == 0 else value[:, None]

    def cell_of(self, params: Params) -> Cell:
        """Return the cell."""
        return None if self.cell is None else self.cell(params)

    def conserved(self, position: jax.Array, neighbors: Any, params: Params) -> jax.Array:
        """Return the projector on the directions along which the total momentum is conserved, (d, d)."""
        if self.isolated:
            return conserved_directions(self.interaction, position, self.cell_of(params), params, neighbors)
        return jnp.zeros((position.shape[1],) * 2, position.dtype)

    def evaluate(self, position: jax.Array, neighbors: Any, params: Params) -> tuple[jax.Array, Any]:
        """Return force and neighbors at new positions."""
        neighbors = self.interaction.refresh(neighbors, position, self.cell_of(params), params)
        return self.interaction.force(position, self.cell_of(params), params, neighbors), neighbors

    def init(self, params: Params, key: jax.Array) -> DynamicsState:
        """Return the state before the first step.

        Raises:
            UserError: if an isolated particle is alone.
        """
        position_key, velocity_key, bath_key = jax.random.split(key, 3)
        # A start that is a constant would be folded when compiling, and the sort of the list build with it: 12 s for
        # 62,500 atoms.
        position = computed_once(self.start(params, position_key))
        if self.isolated and len(position) < 2:
            raise UserError("isolated = true needs at least 2 particles; for one alone give isolated = false")
        neighbors = self.interaction.prepare(position, self.cell_of(params), params)
        return DynamicsState(
            iteration=jnp.int32(0),
            position=position,
            velocity=self._first_velocity(position, neighbors, params, velocity_key),
            force=self.interaction.force(position, self.cell_of(params), params, neighbors),
            neighbors=neighbors,
            bath=self.method.start(params, bath_key),
        )

    def _first_velocity(self, position: jax.Array, neighbors: Any, params: Params, key: jax.Array) -> jax.Array:
        if self.velocity is not None:
            return self.velocity(params, key)
        masses = self.mass_of(params)
        drawn = maxwell_boltzmann(key, params["temperature"], masses, position.shape, drift=True)
        return without_drift(drawn, masses, self.conserved(position, neighbors, params))

    def step(self, state: DynamicsState, params: Params) -> DynamicsState:
        """Return the state one time step later."""
        moved = self.method.advance(
            state, params, self.mass_of(params), lambda x, neighbors: self.evaluate(x, neighbors, params)
        )
        return dataclasses.replace(moved, iteration=state.iteration + 1)

    def status(self, state: DynamicsState, params: Params) -> jax.Array:
        """Return the `simkit.core.status.Status` code, but for an overflow of lists."""
        finite = is_finite((state.position, state.velocity, state.force))
        return jnp.where(finite, jnp.int32(Status.OK), jnp.int32(Status.NON_FINITE))

    def observed(self, state: DynamicsState, params: Params) -> Arrays:
        """Return what a frame stores."""
        present = self.cell_of(params)
        speed = jnp.sqrt(jnp.sum(state.velocity**2, axis=1))
        arrays = frames.in_cell(state.position, present) | {"velocity": state.velocity, "speed": speed}
        return arrays if self.observe is None else arrays | self.observe(state, present, params)

    def diagnose(self, state: DynamicsState, params: Params) -> Arrays:
        """Return time, energies, temperature and pressure, and what is measured besides."""
        present = self.cell_of(params)
        # Params may have changed since the list was refreshed.
        neighbors = self.interaction.refresh(state.neighbors, state.position, present, params)
        state = dataclasses.replace(state, neighbors=neighbors)
        numbers = {"time": state.iteration * params["time_step"]}
        along = self.conserved(state.position, neighbors, params)
        numbers |= thermodynamics(self.interaction, state, present, params, self.mass_of(params), conserved=along)
        return numbers if self.measure is None else numbers | self.measure(state, present, params)

    def sized_like(self, state: DynamicsState) -> Simulation:
        """Return the simulation whose lists are as large as those of a state."""
        resize = self.interaction.sized_like
        assert resize is not None  # without it no list is limited
        return dataclasses.replace(self, interaction=resize(state.neighbors)).simulation()

    def simulation(self) -> Simulation:
        """Return the record that everything else takes."""
        names = frames.dimensions_of("velocity", has_cell=self.cell is not None, speed=("particle",))
        return Simulation(
            init=self.init,
            step=self.step,
            observe=self.observed,
            diagnose=self.diagnose,
            params=self.params,
            status=self.status,
            sized_like=self.interaction.sized_like and self.sized_like,
            dimensions=names | dict(self.dimensions),
        )


def motion(
    interaction: Interaction,
    start: Callable[[Params, jax.Array], jax.Array],
    method: Method,
    *,
    params: dict[str, Any],
    isolated: bool,
    cell: Callable[[Params], jax.Array] | None = None,
    mass: Callable[[Params], jax.Array] | None = None,
    velocity: Callable[[Params, jax.Array], jax.Array] | None = None,
    observe: Measure | None = None,
    measure: Measure | None = None,
    dimensions: Mapping[str, tuple[str, ...]] | None = None,
) -> Simulation:
    """Return the simulation in which a method moves particles, one time step after another.

    Units are any consistent ones, with temperatures in units of energy: k_B = 1. The diagnostics are ``time`` and those
    of `simkit.molecular.dynamics.measures.thermodynamics`.

    Neighbor lists are checked at every new position. The force at the end of a step serves the beginning of the next:
    where params change in between, the force follows them half a step later.

    Args:
        interaction: what acts between the particles.
        start: ``(params, key) -> position``, (N, d).
        method: how they move.
        params: the default parameters, numbers, arrays or `simkit.core.parameter.Parameter`; with ``time_step``, and
            what the method asks for.
        isolated: whether nothing but the interaction changes the total momentum; a bath does. The components that the
            interaction conserves (`simkit.molecular.dynamics.conserved.conserved_directions`) are then set apart.
        cell: ``params -> cell``, as for `simkit.molecular.spaces.of_cell`; ``None`` for free space.
        mass: ``params -> mass``, scalar or (N,); ``None`` takes the parameter ``mass``.
        velocity: ``(params, key) -> velocity`` at the start, (N, d); ``None`` draws from the Maxwell-Boltzmann
            distribution at the parameter ``temperature``, in an isolated system without the conserved momentum.
        observe: ``(state, cell, params) -> arrays``, what else a frame stores.
        measure: ``(state, cell, params) -> scalars``, further diagnostics.
        dimensions: the dimension names of what ``observe`` returns.

    Raises:
        UserError: if a parameter is missing; at the start, if an isolated particle is alone.
    """
    needed = ["time_step", *(["mass"] if mass is None else []), *(["temperature"] if velocity is None else [])]
    for name in needed:
        if name not in params:
            raise UserError(f"params lack '{name}'; there are {', '.join(sorted(params)) or 'none'}")
    return MolecularDynamics(
        interaction=interaction,
        start=start,
        method=method,
        params=params,
        isolated=isolated,
        cell=cell,
        mass=mass,
        velocity=velocity,
        observe=observe,
        measure=measure,
        dimensions=dimensions or {},
    ).simulation()
