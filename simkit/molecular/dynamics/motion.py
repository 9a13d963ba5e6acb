"""Particles in motion: any interaction, any method, in free space or a cell, as a simulation."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.barrier import computed_once
from simkit.core.simulation import Arrays, Params, Simulation
from simkit.core.status import Status, is_finite
from simkit.errors import UserError
from simkit.molecular import frames, spaces
from simkit.molecular.dynamics.conserved import conserved_directions
from simkit.molecular.dynamics.inputs import Measure, Schedule, check_given, scheduled
from simkit.molecular.dynamics.measures import thermodynamics, without_drift
from simkit.molecular.dynamics.protocol import DynamicsState, Evaluate, Freedom, Method
from simkit.molecular.dynamics.resolution import is_unresolved
from simkit.molecular.dynamics.velocities import maxwell_boltzmann
from simkit.molecular.frozen import check_frozen, frozen_mask
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.spaces import Cell


@dataclasses.dataclass(frozen=True)
class MolecularDynamics:
    """Particles in motion; for what each part means see `motion`.

    Attributes:
        interaction: what acts between the particles.
        start: ``(params, key) -> position``.
        method: how they move.
        params: the default parameters.
        isolated: whether nothing but the interaction changes the total momentum.
        temperature: ``(params, time) -> temperature`` of velocities that are drawn at the start.
        cell: ``params -> cell``, or ``None`` for free space.
        mass: ``params -> mass``, or ``None`` for the parameter.
        velocity: ``(params, key) -> velocity``, or ``None`` for the Maxwell-Boltzmann distribution.
        frozen: which particles do not move, (N,), or ``None``.
        observe: what else a frame stores, or ``None``.
        measure: further diagnostics, or ``None``.
        dimensions: the dimension names of what ``observe`` returns.
    """

    interaction: Interaction
    start: Callable[[Params, jax.Array], jax.Array]
    method: Method
    params: dict[str, Any]
    isolated: bool
    temperature: Schedule
    cell: Callable[[Params], jax.Array] | None
    mass: Callable[[Params], jax.Array] | None
    velocity: Callable[[Params, jax.Array], jax.Array] | None
    frozen: np.ndarray | None
    observe: Measure | None
    measure: Measure | None
    dimensions: Mapping[str, tuple[str, ...]]

    def mass_of(self, params: Params) -> jax.Array:
        """Return the mass, scalar or (N, 1)."""
        value = params["mass"] if self.mass is None else self.mass(params)
        return value if value.ndim == 0 else value[:, None]

    def cell_of(self, state: DynamicsState, params: Params) -> Cell:
        """Return the cell."""
        return state.cell if self.method.moves_cell else self.first_cell(params)

    def first_cell(self, params: Params) -> Cell:
        """Return the cell at the start."""
        return None if self.cell is None else self.cell(params)

    def conserved(self, position: jax.Array, cell: Cell, neighbors: Any, params: Params) -> jax.Array:
        """Return the projector on the directions along which the total momentum is conserved, (d, d)."""
        if self.sets_momentum_apart():
            return conserved_directions(self.interaction, position, cell, params, neighbors)
        return jnp.zeros((position.shape[1],) * 2, position.dtype)

    def sets_momentum_apart(self) -> bool:
        """Return whether conserved momentum is set apart: what is frozen takes up momentum."""
        return self.isolated and self.frozen is None

    def mobile(self, count: int) -> int:
        """Return how many particles move.

        Raises:
            UserError: if the frozen particles do not fit the count, or one that is isolated is alone.
        """
        if self.frozen is None:
            if self.isolated and count < 2:
                raise UserError("isolated = true needs at least 2 particles; for one alone give isolated = false")
            return count
        check_frozen(self.frozen, count)
        return count - int(self.frozen.sum())

    def held(self) -> jax.Array | None:
        """Return which particles do not move, (N, 1), or ``None``."""
        return None if self.frozen is None else jnp.asarray(self.frozen)[:, None]

    def init(self, params: Params, key: jax.Array) -> DynamicsState:
        """Return the state before the first step.

        Raises:
            UserError: if an isolated particle is alone, or the frozen particles do not fit the others.
        """
        position_key, velocity_key, bath_key = jax.random.split(key, 3)
        # A start that is a constant would be folded when compiling, and the sort of the list build with it: 12 s for
        # 62,500 atoms.
        position = computed_once(self.start(params, position_key))
        mobile, cell = self.mobile(len(position)), self.first_cell(params)
        neighbors = self.interaction.prepare(position, cell, params)
        along = self.conserved(position, cell, neighbors, params)
        force = self.interaction.force(position, cell, params, neighbors)
        return DynamicsState(
            iteration=jnp.int32(0),
            position=position,
            velocity=self._at_rest(self._first_velocity(position, along, params, velocity_key)),
            force=self._at_rest(force),
            neighbors=neighbors,
            bath=self.method.start(params, bath_key),
            freedom=Freedom(
                count=jnp.asarray(position.shape[1] * mobile, position.dtype) - jnp.trace(along),
                conserved=along if self.sets_momentum_apart() else None,
            ),
            cell=cell if self.method.moves_cell else None,
            unresolved=jnp.bool_(False),
        )

    def _first_velocity(self, position: jax.Array, along: jax.Array, params: Params, key: jax.Array) -> jax.Array:
        if self.velocity is not None:
            return self.velocity(params, key)
        masses = self.mass_of(params)
        temperature = self.temperature(params, jnp.zeros_like(params["time_step"]))
        drawn = maxwell_boltzmann(key, temperature, masses, position.shape, drift=True)
        return without_drift(drawn, masses, along)

    def _at_rest(self, vectors: jax.Array) -> jax.Array:
        held = self.held()
        return vectors if held is None else jnp.where(held, 0, vectors)

    def step(self, state: DynamicsState, params: Params) -> DynamicsState:
        """Return the state one time step later."""
        held = self.held()
        evaluate = Evaluate(self.interaction, params, self.cell_of(state, params), held, state.position)
        moved = self.method.advance(state, params, self.mass_of(params), evaluate)
        if held is not None:
            position = jnp.where(held, state.position, moved.position)
            moved = dataclasses.replace(moved, position=position, velocity=self._at_rest(moved.velocity))
        unresolved = state.unresolved | is_unresolved(state, moved, self.mass_of(params), params["time_step"])
        return dataclasses.replace(moved, iteration=state.iteration + 1, unresolved=unresolved)

    def status(self, state: DynamicsState, params: Params) -> jax.Array:
        """Return the `simkit.core.status.Status` code, but for an overflow of lists."""
        finite = is_finite((state.position, state.velocity, state.force))
        resolved = jnp.where(state.unresolved, jnp.int32(Status.UNRESOLVED), jnp.int32(Status.OK))
        too_small = self.method.moves_cell & self.interaction.misses_pairs(self.cell_of(state, params), params)
        failed = jnp.where(too_small, jnp.int32(Status.CELL_TOO_SMALL), jnp.int32(Status.NON_FINITE))
        return jnp.where(finite, resolved, failed)

    def observed(self, state: DynamicsState, params: Params) -> Arrays:
        """Return what a frame stores."""
        present = self.cell_of(state, params)
        speed = jnp.sqrt(jnp.sum(state.velocity**2, axis=1))
        arrays = frames.in_cell(state.position, present) | {"velocity": state.velocity, "speed": speed}
        return arrays if self.observe is None else arrays | self.observe(state, present, params)

    def diagnose(self, state: DynamicsState, params: Params) -> Arrays:
        """Return time, energies, temperature and pressure, and what is measured besides."""
        present = self.cell_of(state, params)
        # Params may have changed since the list was refreshed.
        neighbors = self.interaction.refresh(state.neighbors, state.position, present, params)
        state = dataclasses.replace(state, neighbors=neighbors)
        numbers = {"time": state.iteration * params["time_step"]}
        along = self.conserved(state.position, present, neighbors, params)
        numbers |= thermodynamics(
            self.interaction,
            state,
            present,
            params,
            self.mass_of(params),
            conserved=along,
            mobile=self.mobile(len(state.position)),
        )
        if self.method.received is not None:
            numbers["conserved_energy"] = numbers["energy"] + self.method.received(state.bath)
        if self.method.moves_cell:
            numbers["volume"] = spaces.of_cell(present, state.position.shape[1]).volume
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
    temperature: Schedule | None = None,
    cell: Callable[[Params], jax.Array] | None = None,
    mass: Callable[[Params], jax.Array] | None = None,
    velocity: Callable[[Params, jax.Array], jax.Array] | None = None,
    frozen: Sequence[bool] | np.ndarray | None = None,
    observe: Measure | None = None,
    measure: Measure | None = None,
    dimensions: Mapping[str, tuple[str, ...]] | None = None,
) -> Simulation:
    """Return the simulation in which a method moves particles, one time step after another.

    Units are any consistent ones, with temperatures in units of energy: k_B = 1. The diagnostics are ``time`` and those
    of `simkit.molecular.dynamics.measures.thermodynamics`; where the bath tells what it has received also
    ``conserved_energy``, that of the particles and what it received; where the cell changes also ``volume``.

    Neighbor lists are checked at every new position. The force at the end of a step serves the beginning of the next:
    where params change in between, the force follows them half a step later.

    Args:
        interaction: what acts between the particles.
        start: ``(params, key) -> position``, (N, d).
        method: how they move.
        params: the default parameters, numbers, arrays or `simkit.core.parameter.Parameter`; with ``time_step``, and
            what the method asks for.
        isolated: whether nothing but the interaction changes the total momentum; a Langevin bath does, scaling of
            velocities does not. What the interaction conserves
            (`simkit.molecular.dynamics.conserved.conserved_directions`) is then set apart, unless particles are frozen.
        temperature: ``(params, time) -> temperature`` at which velocities are drawn at the start; ``None`` for the
            parameter.
        cell: ``params -> cell``, as for `simkit.molecular.spaces.of_cell`; ``None`` for free space.
        mass: ``params -> mass``, scalar or (N,); ``None`` takes the parameter ``mass``.
        velocity: ``(params, key) -> velocity`` at the start, (N, d); ``None`` draws from the Maxwell-Boltzmann
            distribution at the temperature, in an isolated system without the conserved momentum.
        frozen: which particles do not move, (N,) booleans: their velocity is zero, no force acts on them, they have no
            degrees of freedom; they act on the others. ``None``: all move.
        observe: ``(state, cell, params) -> arrays``, what else a frame stores.
        measure: ``(state, cell, params) -> scalars``, further diagnostics.
        dimensions: the dimension names of what ``observe`` returns.

    Raises:
        UserError: if a parameter is missing, or the cell changes where it cannot; at the start, if an isolated particle
            is alone, or the frozen particles do not fit the others.
    """
    check_given(params, ["time_step", *(["mass"] if mass is None else [])])
    if velocity is None:
        temperature = scheduled("temperature", temperature, params)
    mask = frozen_mask(frozen)
    if method.moves_cell and cell is None:
        raise UserError("a barostat changes the cell, and free space has none; give a cell or leave out the barostat")
    if method.moves_cell and mask is not None:
        raise UserError("a barostat moves all particles with the cell; leave out the barostat or the frozen particles")
    return MolecularDynamics(
        interaction=interaction,
        start=start,
        method=method,
        params=params,
        isolated=isolated,
        temperature=temperature or (lambda params, time: params["temperature"]),
        cell=cell,
        mass=mass,
        velocity=velocity,
        frozen=mask,
        observe=observe,
        measure=measure,
        dimensions=dimensions or {},
    ).simulation()
