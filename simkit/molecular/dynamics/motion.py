"""Particles in motion: any interaction, any method, in free space or a cell, as a simulation."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.simulation import Arrays, Params, Simulation
from simkit.core.status import Status, is_finite
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.dynamics.conserved import conserved_directions
from simkit.molecular.dynamics.measures import thermodynamics, without_drift
from simkit.molecular.dynamics.protocol import DynamicsState, Method
from simkit.molecular.dynamics.velocities import maxwell_boltzmann
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.spaces import Cell

type Measure = Callable[[DynamicsState, Cell, Params], Arrays]


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

    def mass_of(params: Params) -> jax.Array:
        value = params["mass"] if mass is None else mass(params)
        return value if value.ndim == 0 else value[:, None]

    def cell_of(params: Params) -> Cell:
        return None if cell is None else cell(params)

    def conserved(position: jax.Array, neighbors: Any, params: Params) -> jax.Array:
        if isolated:
            return conserved_directions(interaction, position, cell_of(params), params, neighbors)
        return jnp.zeros((position.shape[1],) * 2, position.dtype)

    def evaluate(position: jax.Array, neighbors: Any, params: Params) -> tuple[jax.Array, Any]:
        neighbors = interaction.refresh(neighbors, position, cell_of(params), params)
        return interaction.force(position, cell_of(params), params, neighbors), neighbors

    def init(params: Params, key: jax.Array) -> DynamicsState:
        position_key, velocity_key, bath_key = jax.random.split(key, 3)
        # A start that is a constant would be folded when compiling, and the sort of the list build with it: 12 s for
        # 62,500 atoms.
        position = jax.lax.optimization_barrier(start(params, position_key))
        if isolated and len(position) < 2:
            raise UserError("isolated = true needs at least 2 particles; for one alone give isolated = false")
        neighbors = interaction.prepare(position, cell_of(params), params)
        if velocity is None:
            masses = mass_of(params)
            drawn = maxwell_boltzmann(velocity_key, params["temperature"], masses, position.shape, drift=True)
            moving = without_drift(drawn, masses, conserved(position, neighbors, params))
        else:
            moving = velocity(params, velocity_key)
        return DynamicsState(
            iteration=jnp.int32(0),
            position=position,
            velocity=moving,
            force=interaction.force(position, cell_of(params), params, neighbors),
            neighbors=neighbors,
            bath=method.start(params, bath_key),
        )

    def step(state: DynamicsState, params: Params) -> DynamicsState:
        moved = method.advance(state, params, mass_of(params), lambda x, neighbors: evaluate(x, neighbors, params))
        return dataclasses.replace(moved, iteration=state.iteration + 1)

    def status(state: DynamicsState, params: Params) -> jax.Array:
        finite = is_finite((state.position, state.velocity, state.force))
        return jnp.where(finite, jnp.int32(Status.OK), jnp.int32(Status.NON_FINITE))

    def observed(state: DynamicsState, params: Params) -> Arrays:
        present, position = cell_of(params), state.position
        arrays = {
            "position": position,
            "velocity": state.velocity,
            "speed": jnp.sqrt(jnp.sum(state.velocity**2, axis=1)),
        }
        if present is not None:
            vectors = spaces.lattice_vectors(present)
            box = jnp.sqrt(jnp.sum(vectors**2, axis=1))
            wrapped = spaces.of_cell(present, position.shape[1]).wrap(position)
            arrays |= {"position": wrapped, "cell": vectors, "box": box}
        return arrays if observe is None else arrays | observe(state, present, params)

    def diagnose(state: DynamicsState, params: Params) -> Arrays:
        present = cell_of(params)
        # Params may have changed since the list was refreshed.
        neighbors = interaction.refresh(state.neighbors, state.position, present, params)
        state = dataclasses.replace(state, neighbors=neighbors)
        numbers = {"time": state.iteration * params["time_step"]}
        along = conserved(state.position, neighbors, params)
        numbers |= thermodynamics(interaction, state, present, params, mass_of(params), conserved=along)
        return numbers if measure is None else numbers | measure(state, present, params)

    def sized_like(state: DynamicsState) -> Simulation:
        assert interaction.sized_like is not None
        return motion(
            interaction.sized_like(state.neighbors),
            start,
            method,
            params=params,
            isolated=isolated,
            cell=cell,
            mass=mass,
            velocity=velocity,
            observe=observe,
            measure=measure,
            dimensions=dimensions,
        )

    names = {"position": ("particle", "axis"), "velocity": ("particle", "axis"), "speed": ("particle",)}
    if cell is not None:
        names |= {"cell": ("lattice_vector", "axis"), "box": ("lattice_vector",)}
    return Simulation(
        init=init,
        step=step,
        observe=observed,
        diagnose=diagnose,
        params=params,
        status=status,
        sized_like=interaction.sized_like and sized_like,
        dimensions=names | dict(dimensions or {}),
    )
