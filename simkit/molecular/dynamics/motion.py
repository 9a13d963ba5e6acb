"""Molecular dynamics as a simulation: any interaction and any method, in free space or a cell."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.dependence import used_leaves
from simkit.core.fluctuations import Weight, weighted
from simkit.core.formulation import computed_once, precise_product
from simkit.core.settings import arguments
from simkit.core.simulation import Arrays, Params, Simulation, as_arrays
from simkit.core.status import Status, is_finite
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.constraints import Constraints
from simkit.molecular.constraints.groups import Groups
from simkit.molecular.dynamics.measures import (
    conserved_directions,
    half_kick,
    kinetic_energy,
    maxwell_boltzmann,
    thermodynamics,
    without_drift,
)
from simkit.molecular.dynamics.method import (
    DynamicsState,
    Evaluate,
    Freedom,
    Measure,
    Method,
    Options,
    Schedule,
    check_given,
    is_unresolved,
    mobility,
    scheduled,
)
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.spaces import Cell, check_frozen, frozen_mask

# Share of its mass that a particle without mass keeps, far below round-off, so that its force of zero over it is zero.
NEGLIGIBLE = 2.0**-80


@dataclasses.dataclass(frozen=True)
class MolecularDynamics:
    """Parts of a simulation of molecular dynamics; see `motion`.

    Attributes:
        interaction: energy of the particles.
        start: ``(params, key) -> position``.
        method: integrator, with its thermostat and barostat.
        params: the default parameters.
        isolated: whether nothing but the interaction changes the total momentum.
        temperature: ``(params, time) -> temperature`` of velocities drawn at the start.
        cell: ``params -> cell``, or ``None`` for free space.
        mass: ``params -> mass``, or ``None`` for the parameter.
        velocity: ``(params, key) -> velocity``, or ``None`` for the Maxwell-Boltzmann distribution.
        frozen: mask of the particles that do not move, (N,) booleans, or ``None``.
        massless: mask of those of them that have no mass, (N,) booleans, or ``None``.
        constraints: rigid bonds, or ``None``.
        observe: further arrays of a frame, or ``None``.
        measure: further diagnostics, or ``None``.
        dimensions: dimension names of the arrays from ``observe``.
    """

    interaction: Interaction
    start: Callable[[Params, jax.Array], jax.Array]
    method: Method
    params: dict[str, Any]
    isolated: bool
    temperature: Schedule
    cell: Callable[[Params], jax.Array] | None = None
    mass: Callable[[Params], jax.Array] | None = None
    velocity: Callable[[Params, jax.Array], jax.Array] | None = None
    frozen: np.ndarray | None = None
    massless: np.ndarray | None = None
    constraints: Constraints | None = None
    observe: Measure | None = None
    measure: Measure | None = None
    dimensions: Mapping[str, tuple[str, ...]] | None = None

    def mass_of(self, params: Params) -> jax.Array:
        """Return the mass, scalar or (N, 1)."""
        value = params["mass"] if self.mass is None else self.mass(params)
        value = value if value.ndim == 0 else value[:, None]
        if self.massless is None or not self.excludes_momentum():
            return value
        return jnp.where(jnp.asarray(self.massless)[:, None], NEGLIGIBLE * value, value)

    def cell_of(self, state: DynamicsState, params: Params) -> Cell:
        """Return the cell."""
        return state.cell if self.method.moves_cell else self.cell_at_start(params)

    def cell_at_start(self, params: Params) -> Cell:
        """Return the cell at the start."""
        return None if self.cell is None else self.cell(params)

    def conserved(self, position: jax.Array, cell: Cell, neighbors: Any, params: Params) -> jax.Array:
        """Return the projection onto the directions excluded from the thermal motion, (d, d)."""
        if self.excludes_momentum():
            return conserved_directions(self.interaction, position, cell, params, neighbors)
        return jnp.zeros((position.shape[1],) * 2, position.dtype)

    def excludes_momentum(self) -> bool:
        """Return whether conserved momentum is excluded from the thermal motion; frozen mass takes up momentum."""
        fixed = self.frozen if self.massless is None or self.frozen is None else self.frozen & ~self.massless
        return self.isolated and (fixed is None or not fixed.any())

    def mobile(self, count: int) -> int:
        """Return the number of particles that move.

        Raises:
            UserError: if the frozen mask does not match the count, or an isolated system is a single particle.
        """
        if self.frozen is None:
            if self.isolated and count < 2:
                raise UserError("isolated = true needs at least 2 particles; for one alone give isolated = false")
            return count
        check_frozen(self.frozen, count)
        return count - int(self.frozen.sum())

    def init(self, params: Params, key: jax.Array) -> DynamicsState:
        """Return the state before the first step.

        Raises:
            UserError: as `mobile` does.
        """
        position_key, velocity_key, bath_key = jax.random.split(key, 3)
        # Without the barrier the compiler evaluates a constant start, with the sort of the list build: 12 s for
        # 62,500 atoms.
        position = computed_once(spaces.checked_positions(self.start(params, position_key)))
        mobile, cell = self.mobile(len(position)), self.cell_at_start(params)
        if self.constraints is not None:
            self.constraints.check(len(position), position.shape[1], self.frozen)
            position = self.constraints.whole(position, cell)
            position = position + self.constraints.shift(position, position, self.mobility(position, params), params)
        neighbors = self.interaction.prepare(position, cell, params)
        excluded = self.conserved(position, cell, neighbors, params)
        force = self.interaction.force(position, cell, params, neighbors)
        return DynamicsState(
            iteration=jnp.int32(0),
            position=position,
            velocity=self._first_velocity(position, excluded, params, velocity_key),
            force=self._masked(force),
            neighbors=neighbors,
            bath=self.method.start(params, bath_key),
            freedom=Freedom(
                count=jnp.asarray(self.freedom(position.shape[1], mobile), position.dtype) - jnp.trace(excluded),
                conserved=excluded if self.excludes_momentum() else None,
            ),
            cell=cell if self.method.moves_cell else None,
            unresolved=jnp.bool_(False),
            bond_error=self._bond_error(position, params),
        )

    def freedom(self, dimension: int, mobile: int) -> int:
        """Return the degrees of freedom of particles that are not frozen, conserved momentum included."""
        return dimension * mobile - (0 if self.constraints is None else self.constraints.count)

    def mobility(self, position: jax.Array, params: Params) -> jax.Array:
        """Return the inverse masses, zero for frozen particles, (N,)."""
        held = None if self.frozen is None else jnp.asarray(self.frozen)[:, None]
        return mobility(self.mass_of(params), held, position)

    def _bond_error(self, position: jax.Array, params: Params) -> Any:
        return () if self.constraints is None else jax.lax.stop_gradient(self.constraints.error(position, params))

    def _first_velocity(self, position: jax.Array, excluded: jax.Array, params: Params, key: jax.Array) -> jax.Array:
        if self.velocity is not None:
            velocity = self.velocity(params, key)
        else:
            mass = self.mass_of(params)
            temperature = self.temperature(params, jnp.zeros_like(params["time_step"]))
            drawn = maxwell_boltzmann(key, temperature, mass, position.shape, drift=True)
            velocity = without_drift(self._masked(drawn), mass, excluded)
        velocity = self._masked(velocity)
        if self.constraints is None:
            return velocity
        return self.constraints.tangent(velocity, position, self.mobility(position, params))

    def _masked(self, vectors: jax.Array) -> jax.Array:
        return vectors if self.frozen is None else jnp.where(self.frozen[:, None], 0, vectors)

    def step(self, state: DynamicsState, params: Params) -> DynamicsState:
        """Return the state one time step later."""
        held = None if self.frozen is None else jnp.asarray(self.frozen)[:, None]
        mass, cell = self.mass_of(params), self.cell_of(state, params)
        evaluate = Evaluate(self.interaction, params, cell, held, state.position, mass, self.constraints)
        moved = self.method.advance(state, params, mass, evaluate)
        if held is not None:
            position = jnp.where(held, state.position, moved.position)
            moved = dataclasses.replace(moved, position=position, velocity=self._masked(moved.velocity))
        unresolved = state.unresolved | is_unresolved(state, moved, mass, self.method.inertial_step(params))
        error = self._bond_error(moved.position, params)
        return dataclasses.replace(moved, iteration=state.iteration + 1, unresolved=unresolved, bond_error=error)

    def status(self, state: DynamicsState, params: Params) -> jax.Array:
        """Return the `simkit.core.status.Status` code, except that of a buffer overflow."""
        finite = is_finite((state.position, state.velocity, state.force))
        resolved = jnp.where(state.unresolved, jnp.int32(Status.UNRESOLVED), jnp.int32(Status.OK))
        if self.constraints is not None:
            # One more iteration would reach round-off.
            is_apart = state.bond_error > jnp.finfo(state.position.dtype).eps ** 0.5
            resolved = jnp.where(is_apart, jnp.int32(Status.JOINTS_APART), resolved)
        too_small = self.method.moves_cell & self.interaction.misses_pairs(self.cell_of(state, params), params)
        failed = jnp.where(too_small, jnp.int32(Status.CELL_TOO_SMALL), jnp.int32(Status.NON_FINITE))
        return jnp.where(finite, resolved, failed)

    def observed(self, state: DynamicsState, params: Params) -> Arrays:
        """Return the arrays of a frame."""
        cell = self.cell_of(state, params)
        speed = jnp.sqrt(jnp.sum(state.velocity**2, axis=1))
        arrays = spaces.in_cell(state.position, cell) | {"velocity": state.velocity, "speed": speed}
        return arrays if self.observe is None else arrays | self.observe(state, cell, params)

    def diagnose(self, state: DynamicsState, params: Params) -> Arrays:
        """Return time, energies, temperature, pressure and the further diagnostics."""
        cell = self.cell_of(state, params)
        # Params may have changed since the list was refreshed.
        neighbors = self.interaction.refresh(state.neighbors, state.position, cell, params)
        state = dataclasses.replace(state, neighbors=neighbors)
        numbers = {"time": state.iteration * params["time_step"]}
        excluded = self.conserved(state.position, cell, neighbors, params)
        mobile = self.mobile(len(state.position))
        mass, groups, kick = self.mass_of(params), None, None
        if self.method.ends_with_kick:
            kick = half_kick(state.force, mass, params["time_step"])
        if self.constraints is not None:
            groups = self.groups(state.position, params)
            numbers["bond_error"] = state.bond_error
            if kick is not None:
                kick = self.constraints.tangent(kick, state.position, self.mobility(state.position, params))
        numbers |= thermodynamics(
            self.interaction,
            state,
            cell,
            params,
            mass,
            kick=kick,
            freedom=self.freedom(state.position.shape[1], mobile) - jnp.trace(excluded),
            conserved=excluded,
            mobile=mobile if groups is None else groups.mobile(self.frozen),
            groups=groups,
        )
        if self.method.received is not None:
            numbers["conserved_energy"] = numbers["energy"] + self.method.received(state.bath)
        if self.method.moves_cell:
            numbers["volume"] = spaces.of_cell(cell, state.position.shape[1]).volume
        return numbers if self.measure is None else numbers | self.measure(state, cell, params)

    def weight(self) -> Weight | str:
        """Return the distribution of the states, or why there is none."""
        bath = self.method.bath
        if bath is None:
            return "no bath with a known distribution; take langevin, nose_hoover, bussi or brownian"
        params, still = as_arrays(self.params), jax.eval_shape(lambda: jnp.zeros(()))
        for schedule in filter(None, (bath.temperature, bath.pressure)):
            if used_leaves(lambda time, params, schedule=schedule: schedule(params, time), still, params)[0]:
                return "temperature or pressure change in time; leave schedules out"

        def log(state: DynamicsState, params: Params) -> jax.Array:
            cell, time = self.cell_of(state, params), state.iteration * params["time_step"]
            neighbors = self.interaction.refresh(state.neighbors, state.position, cell, params)
            energy = self.interaction.energy(state.position, cell, params, neighbors)
            energy += kinetic_energy(state.velocity, self.mass_of(params))
            if bath.pressure is not None:
                energy += bath.pressure(params, time) * spaces.volume_of(cell, state.position.shape[1])
            return -energy / bath.temperature(params, time)

        def carried(state: DynamicsState, params: Params) -> DynamicsState:
            cell = self.cell_at_start(params)
            if self.method.moves_cell or cell is None:
                return state
            # Zero, but not its derivative.
            change = spaces.deformation_between(jax.lax.stop_gradient(cell), cell)
            if self.constraints is None:
                return dataclasses.replace(state, position=state.position + precise_product(state.position, change))
            groups = self.groups(state.position, jax.lax.stop_gradient(params))
            centers = groups.centers(state.position)
            moved = groups.carried(state.position, centers + precise_product(centers, change))
            return dataclasses.replace(state, position=moved)

        def fixed(params: Params) -> Arrays:
            found = {}
            if self.constraints is not None:
                found["lengths of rigid bonds"] = self.constraints.lengths(params)
            if self.frozen is not None:
                found["places of frozen particles"] = self.start(params, jax.random.key(0))[self.frozen]
            return found

        return Weight(log, carried, fixed, bath.caution)

    def groups(self, position: jax.Array, params: Params) -> Groups:
        """Return the particles joined by rigid bonds."""
        assert self.constraints is not None  # called only with rigid bonds
        mass = jnp.broadcast_to(self.mass_of(params), (len(position), 1))[:, 0]
        return Groups.of(self.constraints, mass, self.frozen)

    def sized_like(self, state: DynamicsState) -> Simulation:
        """Return the same simulation with neighbor lists as large as those of a state."""
        resize = self.interaction.sized_like
        assert resize is not None  # an interaction without it has no buffers
        return dataclasses.replace(self, interaction=resize(state.neighbors)).simulation()

    def simulation(self) -> Simulation:
        """Return the `Simulation` record."""
        names = spaces.dimensions_of("velocity", has_cell=self.cell is not None, speed=("particle",))
        return Simulation(
            init=self.init,
            step=weighted(self.step, self.weight()),
            observe=self.observed,
            diagnose=self.diagnose,
            params=self.params,
            status=self.status,
            sized_like=self.interaction.sized_like and self.sized_like,
            dimensions=names | dict(self.dimensions or {}),
        )


@arguments()
def motion(
    interaction: Interaction,
    start: Callable[[Params, jax.Array], jax.Array],
    method: Method,
    *,
    params: dict[str, Any],
    isolated: bool,
    temperature: Schedule | None = None,
    **options: Unpack[Options],
) -> Simulation:
    """Return the simulation of molecular dynamics by a method.

    Units are any consistent ones, with temperatures in units of energy: k_B = 1. The diagnostics are ``time`` and those
    of `simkit.molecular.dynamics.measures.thermodynamics`; if the method has ``received`` also ``conserved_energy``,
    energy of the particles plus energy taken up by the bath; if the cell changes also ``volume``.

    Neighbor lists are checked at every new position. The force at the end of a step is used again at the beginning of
    the next: where params change in between, the force follows them half a step later.

    Args:
        interaction: energy of the particles.
        start: ``(params, key) -> position``, (N, d).
        method: integrator, with its thermostat and barostat.
        params: the default parameters, numbers, arrays or `simkit.core.parameter.Parameter`; with ``time_step``, and
            those of the method.
        isolated: whether nothing but the interaction changes the total momentum: false with a Langevin bath, true
            where velocities are scaled. Components of the momentum that the interaction conserves
            (`simkit.molecular.dynamics.measures.conserved_directions`) are then excluded from the thermal motion: they
            are no degrees of freedom, and the thermostat does not change them. No component is, if particles are
            frozen.
        temperature: ``(params, time) -> temperature`` at which velocities are drawn at the start; ``None`` for the
            parameter.
        **options: the following, of which all may be left out.
        cell: ``params -> cell``, as for `simkit.molecular.spaces.of_cell`; ``None`` for free space.
        mass: ``params -> mass``, scalar or (N,); ``None`` takes the parameter ``mass``.
        velocity: ``(params, key) -> velocity`` at the start, (N, d); ``None`` draws from the Maxwell-Boltzmann
            distribution at the temperature, in an isolated system without the conserved momentum.
        frozen: mask of particles that do not move, (N,) booleans: their velocity is zero, no force acts on them, they
            have no degrees of freedom; they act on the others. ``None``: all move.
        massless: mask of those frozen particles that have no mass and follow others, such as virtual sites, (N,)
            booleans: they take up no momentum. ``None``: none.
        constraints: rigid bonds, from `simkit.molecular.constraints`; ``None``: none. Positions and velocities of the
            start are moved to satisfy them, molecules across faces of the cell made whole. A barostat moves the centers
            of mass of particles joined by rigid bonds, and the pressure is theirs.
        observe: ``(state, cell, params) -> arrays``, further arrays of a frame.
        measure: ``(state, cell, params) -> scalars``, further diagnostics.
        dimensions: dimension names of the arrays from ``observe``.

    Raises:
        UserError: if a parameter is missing, a barostat is given in free space or with frozen particles, or the method
            does not keep rigid bonds; at the start, if the frozen mask or rigid bonds do not match the particles, or an
            isolated system is a single particle.

    Example:
        >>> spring = molecular.interactions.user_energy(lambda x, cell, params: jnp.sum(x**2) / 2)
        >>> verlet = molecular.dynamics.splitting(thermostat=None)
        >>> bead = molecular.dynamics.motion(
        ...     spring,
        ...     lambda params, key: jnp.array([[1.0, 0.0]]),
        ...     verlet,
        ...     params={"time_step": 0.1, "mass": 1.0},
        ...     isolated=False,
        ...     velocity=lambda params, key: jnp.zeros((1, 2)),
        ... )
        >>> run = simkit.run(bead, steps=100, every=100)
        >>> print(f"{float(run['energy'][-1]):.2f}, at the start 1/2")
        0.50, at the start 1/2
    """
    check_given(params, ["time_step", *(["mass"] if options.get("mass") is None else [])])
    if options.get("velocity") is None:
        temperature = scheduled("temperature", temperature, params)
    chosen: dict[str, Any] = {**options, "frozen": frozen_mask(options.get("frozen"))}
    if method.moves_cell and (options.get("cell") is None or chosen["frozen"] is not None):
        raise UserError("a barostat moves all particles with the cell; give a cell, or leave out barostat and frozen")
    if options.get("constraints") is not None and not method.keeps_bonds:
        raise UserError("this method does not keep rigid bonds; take velocity_verlet, langevin, nose_hoover or bussi")
    temperature = temperature or (lambda params, time: params["temperature"])
    return MolecularDynamics(interaction, start, method, params, isolated, temperature, **chosen).simulation()
