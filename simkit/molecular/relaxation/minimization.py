"""Relaxation to mechanical equilibrium: any interaction, any minimizer, in free space or a cell, as a simulation."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.pytree import pytree
from simkit.core.simulation import Arrays, Equilibrium, Params, Simulation
from simkit.core.status import Status, is_finite
from simkit.errors import UserError
from simkit.molecular import minimizers, spaces
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.minimizers import Minimizer, Scale, largest_norm
from simkit.molecular.minimizers.protocol import energy_noise
from simkit.molecular.relaxation.cell_coordinates import CellCoordinates
from simkit.molecular.relaxation.zero_modes import onto, unopposed
from simkit.molecular.spaces import Cell


@pytree
class RelaxationState:
    """A relaxation under way.

    Attributes:
        descent: the minimizer's state; its positions include the strain of the cell where that relaxes too.
        neighbors: what the interaction keeps between evaluations.
        relaxed_for: the params that the kept energy and force belong to, one vector.
        least_force: smallest of the largest forces so far.
        least_energy: smallest energy so far; of no meaning for a minimizer that does not look at it.
        idle: int32, iterations since either fell.
    """

    descent: Any
    neighbors: Any
    relaxed_for: jax.Array
    least_force: jax.Array
    least_energy: jax.Array
    idle: jax.Array


def relaxation(
    interaction: Interaction,
    start: Callable[[Params, jax.Array], jax.Array],
    *,
    params: dict[str, Any],
    scale: Callable[[Params], Scale],
    cell: Callable[[Params], jax.Array] | None = None,
    minimizer: Minimizer | str = "lbfgs",
    force_tolerance: float = 1e-10,
    force_unit: Callable[[Params], jax.Array] | None = None,
    relax_cell: bool = False,
    isotropic: bool = False,
    loose: Callable[[jax.Array, Cell, Params], jax.Array] | None = None,
    observe: Callable[[jax.Array, Cell, Params], Arrays] | None = None,
    measure: Callable[[jax.Array, Cell, Params], Arrays] | None = None,
    dimensions: Mapping[str, tuple[str, ...]] | None = None,
) -> Simulation:
    """Return the simulation that walks from a start downhill to mechanical equilibrium.

    It is done when no force exceeds the tolerance and, where the cell relaxes, no free component of
    ``stress + pressure`` does, in the frame of the undeformed cell. It has stalled when the minimizer's patience passes
    without a smaller force or a lower energy: round-off allows no more. The implicit derivative of what it relaxes to
    leaves out the rigid motions that no force opposes (`simkit.molecular.relaxation.zero_modes.unopposed`): in free
    space all of them, in a field those that it leaves free.

    Args:
        interaction: what acts between the particles.
        start: ``(params, key) -> position``, (N, d).
        params: the default parameters, numbers, arrays or `simkit.core.parameter.Parameter`; with ``pressure``,
            energy / length^d, where the cell relaxes.
        scale: ``params -> Scale``: a particle diameter and the stiffness of a contact.
        cell: ``params -> cell``, (d, d), rows are the lattice vectors; ``None`` for free space.
        minimizer: a `Minimizer` or the name of one.
        force_tolerance: largest force left, in units of force, and largest stress, in units of
            force / length^(d-1). Good values: 1e-10 in float64, 1e-5 in float32.
        force_unit: ``params -> force``; ``None`` for stiffness times length.
        relax_cell: whether the cell deforms (six strains in three dimensions) along with the particles.
        isotropic: whether a cell that relaxes keeps its shape.
        loose: ``(position, cell, params) -> (N,)`` booleans, particles that nothing holds (rattlers); the derivative
            leaves them where they are.
        observe: ``(position, cell, params) -> arrays``, what else a frame stores; positions are stored anyway.
        measure: ``(position, cell, params) -> scalars``, further diagnostics.
        dimensions: the dimension names of what ``observe`` returns.

    Raises:
        UserError: if an argument is out of its range or does not fit the others.
    """
    if isinstance(minimizer, str):
        minimizer = minimizers.by_name(minimizer)
    if not 0 < force_tolerance < 1:
        raise UserError(f"force_tolerance = {force_tolerance} is not between 0 and 1; choose 1e-10 (1e-5 in float32)")
    if relax_cell and cell is None:
        raise UserError("relax_cell = true needs a cell; free space has none to relax")
    if relax_cell and "pressure" not in params:
        raise UserError("relax_cell = true needs the parameter pressure; choose 0")

    def limit(params: Params) -> jax.Array:
        length, stiffness = scale(params)
        return force_tolerance * (stiffness * length if force_unit is None else force_unit(params))

    def deformable(params: Params) -> CellCoordinates:
        return CellCoordinates(length=scale(params).length, isotropic=isotropic)

    def undeformed(params: Params) -> jax.Array:
        assert cell is not None  # relax_cell without a cell is refused above
        return cell(params) if isotropic else spaces.lattice_vectors(cell(params))

    def arrangement(coordinates: jax.Array, params: Params) -> tuple[jax.Array, Cell]:
        if relax_cell:
            return deformable(params).split(coordinates, undeformed(params))
        return coordinates, None if cell is None else cell(params)

    def evaluate(coordinates: jax.Array, params: Params, neighbors: Any) -> tuple[jax.Array, jax.Array]:
        position, deformed = arrangement(coordinates, params)
        energy = interaction.energy(position, deformed, params, neighbors)
        force = interaction.force(position, deformed, params, neighbors)
        if not relax_cell:
            return energy, force
        stress = interaction.stress(position, deformed, params, neighbors)
        coordinator, original = deformable(params), undeformed(params)
        joint = coordinator.force(coordinates, force, stress, original, params["pressure"])
        return energy + params["pressure"] * coordinator.volume(coordinates, original), joint

    def forces(state: RelaxationState, params: Params) -> jax.Array:
        descent = state.descent
        return deformable(params).on_particles(descent.position, descent.force) if relax_cell else descent.force

    def current(state: RelaxationState, params: Params) -> tuple[jax.Array, Cell, Any]:
        position, deformed = arrangement(state.descent.position, params)
        # The list was last refreshed at a trial, which may have been rejected.
        return position, deformed, interaction.refresh(state.neighbors, position, deformed, params)

    def init(params: Params, key: jax.Array) -> RelaxationState:
        # A start that is a constant would be folded when compiling, and the sort of the list build with it.
        position = jax.lax.optimization_barrier(start(params, key))
        coordinates = deformable(params).join(position) if relax_cell else position
        neighbors = interaction.prepare(*arrangement(coordinates, params), params)
        energy, force = evaluate(coordinates, params, neighbors)
        # Not infinity, which would look like a failure.
        largest = jnp.asarray(jnp.finfo(position.dtype).max, position.dtype)
        return RelaxationState(
            descent=minimizer.start(coordinates, energy, force, scale(params)),
            neighbors=neighbors,
            relaxed_for=_vector(params),
            least_force=largest,
            least_energy=largest,
            idle=jnp.int32(0),
        )

    def step(state: RelaxationState, params: Params) -> RelaxationState:
        is_current = (state.relaxed_for == _vector(params)).all()
        descent = jax.tree.map(
            lambda kept, again: jnp.where(is_current, kept, again), state.descent, _reconsidered(state.descent)
        )
        neighbors = interaction.refresh(state.neighbors, *arrangement(descent.trial, params), params)
        energy, force = evaluate(descent.trial, params, neighbors)
        descent = minimizer.advance(descent, energy, force, scale(params))

        largest = jnp.asarray(jnp.finfo(energy.dtype).max, energy.dtype)
        least_force = jnp.where(is_current, state.least_force, largest)
        least_energy = jnp.where(is_current, state.least_energy, largest)
        force_now = largest_norm(descent.force)
        energy_now = descent.energy if minimizer.monotone else least_energy
        gained = (force_now < least_force) | (energy_now < least_energy - energy_noise(energy_now))
        return RelaxationState(
            descent=descent,
            neighbors=neighbors,
            relaxed_for=_vector(params),
            least_force=jnp.minimum(least_force, force_now),
            least_energy=jnp.minimum(least_energy, energy_now),
            idle=jnp.where(gained, 0, state.idle + 1),
        )

    def done(state: RelaxationState, params: Params) -> jax.Array:
        # What was relaxed under other parameters is not done under these, whatever its kept force says.
        is_current = (state.relaxed_for == _vector(params)).all()
        at_rest = is_current & (largest_norm(forces(state, params)) < limit(params))
        if not relax_cell:
            return at_rest
        coordinates, force = state.descent.position, state.descent.force
        excess = deformable(params).on_cell(coordinates, force, undeformed(params))
        return at_rest & (jnp.abs(excess).max() < limit(params) / scale(params).length ** (len(excess) - 1))

    def status(state: RelaxationState, params: Params) -> jax.Array:
        code = jnp.where(state.idle >= minimizer.patience, jnp.int32(Status.STALLED), jnp.int32(Status.OK))
        code = jnp.where(done(state, params), jnp.int32(Status.CONVERGED), code)
        # Asked at every step, so what a minimizer remembers is left out: it shows in the next trial.
        descent = state.descent
        finite = is_finite((descent.position, descent.force, descent.trial))
        if minimizer.monotone:
            finite &= jnp.isfinite(descent.energy)
        return jnp.where(finite, code, jnp.int32(Status.NON_FINITE))

    def sized_like(state: RelaxationState) -> Simulation:
        assert interaction.sized_like is not None
        return relaxation(
            interaction.sized_like(state.neighbors),
            start,
            params=params,
            scale=scale,
            cell=cell,
            minimizer=minimizer,
            force_tolerance=force_tolerance,
            force_unit=force_unit,
            relax_cell=relax_cell,
            isotropic=isotropic,
            loose=loose,
            observe=observe,
            measure=measure,
            dimensions=dimensions,
        )

    def residual(coordinates: jax.Array, params: Params) -> jax.Array:
        fixed, given = jax.lax.stop_gradient((coordinates, params))
        held, dimension = coordinates - fixed, coordinates.shape[1]
        position, deformed = arrangement(fixed, given)
        count = len(position)
        neighbors = interaction.prepare(position, deformed, given)
        is_loose = None if loose is None else loose(position, deformed, given)

        def force(moved: jax.Array) -> jax.Array:
            return evaluate(jnp.concatenate([moved, fixed[count:]]), given, neighbors)[1][:count]

        # A body turns as a whole in a cell that is far larger, but not one that strains the cell.
        motions = unopposed(
            force, fixed[:count], rotations=not relax_cell, among=None if is_loose is None else ~is_loose
        )
        grip = onto(motions, held[:count])
        if is_loose is not None:
            particles = jnp.where(is_loose[:, None], fixed[:count], coordinates[:count])
            coordinates = jnp.concatenate([particles, coordinates[count:]])
        pull = evaluate(coordinates, params, neighbors)[1]
        if is_loose is not None:
            grip = jnp.where(is_loose[:, None], held[:count], grip)
            pull = jnp.concatenate([jnp.where(is_loose[:, None], 0, pull[:count]), pull[count:]])
        if relax_cell:
            strain = held[-dimension:]
            grip = jnp.concatenate([grip, strain - deformable(params).free(strain)])
        # The grip is zero, but not its derivative: it holds every motion that no force opposes, and no other.
        return scale(given).stiffness * grip - pull

    def observed(state: RelaxationState, params: Params) -> Arrays:
        position, deformed, _ = current(state, params)
        extra = {} if observe is None else observe(position, deformed, params)
        length = jnp.broadcast_to(scale(params).length, len(position)).astype(position.dtype)
        arrays = {"position": position, "diameter": length}
        if deformed is not None:
            space = spaces.of_cell(deformed, position.shape[1])
            vectors = spaces.lattice_vectors(deformed)
            box = jnp.sqrt(jnp.sum(vectors**2, axis=1))
            arrays |= {"position": space.wrap(position), "cell": vectors, "box": box}
        return arrays | extra

    def diagnose(state: RelaxationState, params: Params) -> Arrays:
        position, deformed, neighbors = current(state, params)
        energy = interaction.energy(position, deformed, params, neighbors)
        numbers = {
            "iteration": state.descent.iteration,
            "force_evaluations": state.descent.iteration + 1,
            "energy": energy,
            "energy_per_particle": energy / len(position),
            "max_force": largest_norm(interaction.force(position, deformed, params, neighbors)),
        }
        if measure is not None:
            numbers |= measure(position, deformed, params)
        if deformed is None:
            return numbers
        stress = interaction.stress(position, deformed, params, neighbors)
        numbers |= {
            "pressure": -jnp.trace(stress) / len(stress),
            "volume": spaces.of_cell(deformed, position.shape[1]).volume,
        }
        if relax_cell:
            excess = deformable(params).free(stress + params["pressure"] * jnp.eye(len(stress), dtype=stress.dtype))
            numbers["max_stress_error"] = jnp.abs(excess).max()
        return numbers

    names = {"position": ("particle", "axis"), "diameter": ("particle",)}
    if cell is not None:
        names |= {"cell": ("lattice_vector", "axis"), "box": ("lattice_vector",)}
    return Simulation(
        init=init,
        step=step,
        observe=observed,
        diagnose=diagnose,
        params=params,
        converges=True,
        equilibrium=Equilibrium(
            unknowns=lambda state: state.descent.position,
            residual=residual,
            replace=lambda state, coordinates: dataclasses.replace(
                state, descent=dataclasses.replace(state.descent, position=coordinates)
            ),
        ),
        status=status,
        sized_like=interaction.sized_like and sized_like,
        dimensions=names | dict(dimensions or {}),
    )


def _vector(params: Params) -> jax.Array:
    return jnp.concatenate([jnp.ravel(params[name]) for name in sorted(params)])


def _reconsidered(descent: Any) -> Any:
    """Return a minimizer's state that evaluates where it stands, forgetting an energy that no longer holds."""
    energy = {"energy": jnp.full_like(descent.energy, jnp.inf)} if hasattr(descent, "energy") else {}
    return dataclasses.replace(descent, trial=descent.position, **energy)
