"""Relaxation to mechanical equilibrium: any interaction, any minimizer, in free space or a cell, as a simulation."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once
from simkit.core.pytrees import pytree
from simkit.core.settings import arguments
from simkit.core.simulation import Arrays, Equilibrium, Params, Simulation
from simkit.core.status import Status, is_finite
from simkit.errors import UserError
from simkit.molecular import minimizers, spaces
from simkit.molecular.declarations import TOLERANCE
from simkit.molecular.interactions.interaction import Interaction, Quantities
from simkit.molecular.minimizers import Minimizer, Scale, largest_norm
from simkit.molecular.minimizers.protocol import energy_noise
from simkit.molecular.relaxation.equilibrium import residual
from simkit.molecular.relaxation.landscape import Landscape, Rattlers
from simkit.molecular.spaces import Cell, check_frozen, checked_positions, frozen_mask

# Relative excess of the smallest width over twice the cut-off, below which a stalled cell counts as too small.
NEARLY = 1e-5

type Measure = Callable[[jax.Array, Cell, Params], Arrays]
type Inspect = Callable[[jax.Array, Cell, Params, Any], tuple[Arrays, Arrays]]


@pytree
class RelaxationState:
    """State of a relaxation.

    Attributes:
        descent: state of the minimizer; its positions include the strain if the cell relaxes.
        neighbors: neighbor data of the interaction.
        relaxed_for: params of the stored energy and force, as one vector.
        least_force: minimum over the iterations of the largest force.
        least_energy: minimum over the iterations of the energy; unused unless the minimizer is ``monotone``.
        idle: int32, iterations since either minimum fell.

    Example:
        >>> trap = molecular.relaxation.relaxation(
        ...     molecular.interactions.user_energy(lambda x, cell, params: params["k"] / 2 * jnp.sum(x**2)),
        ...     lambda params, key: jnp.array([[1.0, 2.0]]),
        ...     params={"k": 1.0},
        ...     scale=lambda params: molecular.minimizers.Scale(1.0, params["k"]),
        ... )
        >>> state = trap.init(trap.params, jax.random.key(0))
        >>> isinstance(state, molecular.relaxation.RelaxationState), state.descent.position.tolist()
        (True, [[1.0, 2.0]])
    """

    descent: Any
    neighbors: Any
    relaxed_for: jax.Array
    least_force: jax.Array
    least_energy: jax.Array
    idle: jax.Array


@dataclasses.dataclass(frozen=True)
class Relaxation:
    """Parts of a relaxation to mechanical equilibrium; see `relaxation`.

    Attributes:
        landscape: energy or enthalpy.
        params: the default parameters.
        minimizer: the method.
        force_tolerance: largest residual force, in units of force.
        force_unit: ``params -> force``, or ``None``.
        stiffness: ``(position, cell, params) -> stiffness`` of an arrangement, or ``None``.
        observe: further arrays of a frame, or ``None``.
        measure: further diagnostics, or ``None``.
        inspect: further arrays and diagnostics computed from the neighbors, or ``None``.
        dimensions: dimension names of the arrays from ``observe`` and ``inspect``.
    """

    landscape: Landscape
    params: dict[str, Any]
    minimizer: Minimizer
    force_tolerance: float
    force_unit: Callable[[Params], jax.Array] | None
    stiffness: Callable[[jax.Array, Cell, Params], jax.Array] | None
    observe: Measure | None
    measure: Measure | None
    inspect: Inspect | None
    dimensions: Mapping[str, tuple[str, ...]]

    def init(self, params: Params, key: jax.Array) -> RelaxationState:
        """Return the state before the first iteration."""
        landscape = self.landscape
        # Without the barrier the compiler evaluates a constant start, with the sort of the list build.
        position = computed_once(checked_positions(landscape.start(params, key)))
        if landscape.frozen is not None:
            check_frozen(landscape.frozen, len(position))
        coordinates = landscape.coordinates(position)
        neighbors = landscape.interaction.prepare(*landscape.arrangement(coordinates, params), params)
        energy, force = landscape.evaluate(coordinates, params, neighbors)
        # Not infinity: the status would be NON_FINITE.
        largest = jnp.asarray(jnp.finfo(position.dtype).max, position.dtype)
        return RelaxationState(
            descent=self.minimizer.start(coordinates, energy, force, landscape.scale(params)),
            neighbors=neighbors,
            relaxed_for=_vector(params),
            least_force=largest,
            least_energy=largest,
            idle=jnp.int32(0),
        )

    def step(self, state: RelaxationState, params: Params) -> RelaxationState:
        """Return the state after one iteration, with one evaluation of the force, and of the energy if monotone."""
        landscape, minimizer = self.landscape, self.minimizer
        is_current = _is_same(state.relaxed_for, _vector(params))
        descent = jax.tree.map(
            lambda kept, reset: kept if kept is reset else jnp.where(is_current, kept, reset),
            state.descent,
            self._begun_again(state, params),
        )
        arrangement = landscape.arrangement(descent.trial, params)
        neighbors = landscape.interaction.refresh(state.neighbors, *arrangement, params)
        if minimizer.monotone:
            energy, force = landscape.evaluate(descent.trial, params, neighbors)
        else:
            force = landscape.force(descent.trial, params, neighbors)
            energy = jnp.asarray(jnp.nan, force.dtype)
        descent = minimizer.advance(descent, energy, force, landscape.scale(params))

        largest = jnp.asarray(jnp.finfo(force.dtype).max, force.dtype)
        least_force = jnp.where(is_current, state.least_force, largest)
        force_now = largest_norm(descent.force)
        gained = force_now < least_force
        least_energy = state.least_energy
        if minimizer.monotone:
            least_energy, energy_now = jnp.where(is_current, least_energy, largest), descent.energy
            noise = energy_noise(energy_now, len(descent.force), landscape.scale(params))
            gained |= energy_now < least_energy - noise
            least_energy = jnp.minimum(least_energy, energy_now)
        return RelaxationState(
            descent=descent,
            neighbors=neighbors,
            relaxed_for=jnp.where(is_current, state.relaxed_for, _vector(params)),
            least_force=jnp.minimum(least_force, force_now),
            least_energy=least_energy,
            idle=jnp.where(gained, 0, state.idle + 1),
        )

    def _begun_again(self, state: RelaxationState, params: Params) -> Any:
        """Return the state of the minimizer for other params, with frozen particles in their places.

        The energy is evaluated again, since the stored one is not valid.
        """
        descent, frozen = state.descent, self.landscape.frozen
        if frozen is not None:
            # The start of frozen particles does not depend on the key.
            placed = self.landscape.start(params, jax.random.key(0))
            descent = dataclasses.replace(descent, position=jnp.where(frozen[:, None], placed, descent.position))
        energy = {"energy": jnp.full_like(descent.energy, jnp.inf)} if hasattr(descent, "energy") else {}
        return dataclasses.replace(descent, trial=descent.position, **energy)

    def limit(self, state: RelaxationState, params: Params) -> jax.Array:
        """Return the largest residual force at convergence."""
        if self.force_unit is not None:
            return self.force_tolerance * self.force_unit(params)
        length, stiffness = self.landscape.scale(params)
        if self.stiffness is not None:
            stiffness = self.stiffness(*self.landscape.arrangement(state.descent.position, params), params)
        return self.force_tolerance * stiffness * length

    def is_at_rest(self, state: RelaxationState, params: Params) -> jax.Array:
        """Return whether forces, and stresses if the cell relaxes, are within the tolerance."""
        # A stored force for other parameters does not count.
        is_current = _is_same(state.relaxed_for, _vector(params))
        landscape, coordinates, force = self.landscape, state.descent.position, state.descent.force
        limit = self.limit(state, params)
        at_rest = is_current & (largest_norm(landscape.forces(coordinates, force, params)) < limit)
        if not landscape.relax_cell:
            return at_rest
        excess = landscape.excess(coordinates, force, params)
        allowed = limit / landscape.scale(params).length ** (len(excess) - 1)
        return at_rest & (jnp.abs(excess).max() < allowed)

    def status(self, state: RelaxationState, params: Params) -> jax.Array:
        """Return the `simkit.core.status.Status` code, except that of a buffer overflow."""
        stalled, failed = jnp.int32(Status.STALLED), jnp.int32(Status.NON_FINITE)
        if self.landscape.relax_cell:
            is_too_small = self.landscape.interaction.misses_pairs
            # A monotone minimizer stalls within round-off of the smallest permitted cell.
            current = is_too_small(self.landscape.arrangement(state.descent.position, params)[1], params, NEARLY)
            trial = is_too_small(self.landscape.arrangement(state.descent.trial, params)[1], params)
            stalled = jnp.where(current, jnp.int32(Status.CELL_TOO_SMALL), stalled)
            failed = jnp.where(current | trial, jnp.int32(Status.CELL_TOO_SMALL), failed)
        code = jnp.where(state.idle >= self.minimizer.patience, stalled, jnp.int32(Status.OK))
        code = jnp.where(self.is_at_rest(state, params), jnp.int32(Status.CONVERGED), code)
        # The history of a minimizer is not tested, to save time: NaN there reaches the next trial.
        descent = state.descent
        finite = is_finite((descent.position, descent.force, descent.trial))
        if self.minimizer.monotone:
            finite &= jnp.isfinite(descent.energy)
        return jnp.where(finite, code, failed)

    def current(self, state: RelaxationState, params: Params) -> tuple[jax.Array, Cell, Any]:
        """Return position, cell and neighbors of the current state."""
        position, deformed = self.landscape.arrangement(state.descent.position, params)
        # The list was last refreshed at a trial, which may have been rejected.
        return position, deformed, self.landscape.interaction.refresh(state.neighbors, position, deformed, params)

    def observed(self, state: RelaxationState, params: Params) -> Arrays:
        """Return the arrays of a frame."""
        position, deformed, neighbors = self.current(state, params)
        extra = {} if self.observe is None else self.observe(position, deformed, params)
        if self.inspect is not None:
            extra |= self.inspect(position, deformed, params, neighbors)[0]
        length = jnp.broadcast_to(self.landscape.scale(params).length, len(position)).astype(position.dtype)
        return spaces.in_cell(position, deformed) | {"diameter": length} | extra

    def diagnose(self, state: RelaxationState, params: Params) -> Arrays:
        """Return iterations, energy, forces, stresses and the further diagnostics."""
        interaction = self.landscape.interaction
        position, deformed, neighbors = self.current(state, params)
        quantities: Quantities = ("energy", "force") if deformed is None else ("energy", "force", "stress")
        energy, force, *stresses = interaction.several(quantities, position, deformed, params, neighbors)
        numbers = {
            "iteration": state.descent.iteration,
            "force_evaluations": state.descent.iteration + 1,
            "energy": energy,
            "energy_per_particle": energy / len(position),
            "max_force": largest_norm(self.landscape.on_mobile(force)),
        }
        if self.measure is not None:
            numbers |= self.measure(position, deformed, params)
        if self.inspect is not None:
            numbers |= self.inspect(position, deformed, params, neighbors)[1]
        if deformed is None:
            return numbers
        (stress,) = stresses
        numbers |= {
            "pressure": -jnp.trace(stress) / len(stress),
            "volume": spaces.of_cell(deformed, position.shape[1]).volume,
        }
        if self.landscape.relax_cell:
            joint = stress + self.landscape.pressure(params) * jnp.eye(len(stress), dtype=stress.dtype)
            numbers["max_stress_error"] = jnp.abs(self.landscape.free(joint)).max()
        return numbers

    def sized_like(self, state: RelaxationState) -> Simulation:
        """Return the same simulation with neighbor lists as large as those of a state."""
        resize = self.landscape.interaction.sized_like
        assert resize is not None  # an interaction without it has no buffers
        landscape = dataclasses.replace(self.landscape, interaction=resize(state.neighbors))
        return dataclasses.replace(self, landscape=landscape).simulation()

    def simulation(self) -> Simulation:
        """Return the `Simulation` record."""
        has_cell = self.landscape.cell is not None
        return Simulation(
            init=self.init,
            step=self.step,
            observe=self.observed,
            diagnose=self.diagnose,
            params=self.params,
            converges=True,
            equilibrium=Equilibrium(
                unknowns=lambda state: state.descent.position,
                residual=functools.partial(residual, self.landscape),
                replace=lambda state, coordinates: dataclasses.replace(
                    state, descent=dataclasses.replace(state.descent, position=coordinates)
                ),
            ),
            status=self.status,
            sized_like=self.landscape.interaction.sized_like and self.sized_like,
            dimensions=spaces.dimensions_of(has_cell=has_cell, diameter=("particle",)) | dict(self.dimensions),
        )


@arguments(force_tolerance=TOLERANCE)
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
    stiffness: Callable[[jax.Array, Cell, Params], jax.Array] | None = None,
    relax_cell: bool = False,
    isotropic: bool = False,
    pressure: Callable[[Params], jax.Array] | None = None,
    rattlers: Rattlers | None = None,
    frozen: Sequence[bool] | np.ndarray | None = None,
    observe: Measure | None = None,
    measure: Measure | None = None,
    inspect: Inspect | None = None,
    dimensions: Mapping[str, tuple[str, ...]] | None = None,
) -> Simulation:
    """Return the simulation of a relaxation to mechanical equilibrium.

    It has converged when no force exceeds the tolerance and, if the cell relaxes, no free component of
    ``stress + pressure`` does, in the frame of the undeformed cell. It has stalled when neither the largest force nor,
    if the minimizer is monotone, the energy fell within its ``patience``, limited by round-off. The implicit derivative
    of the relaxed state excludes rigid motions without a restoring force
    (`simkit.molecular.relaxation.equilibrium.zero_modes`): all of them in free space, fewer in an external field.

    Args:
        interaction: energy of the particles.
        start: ``(params, key) -> position``, (N, d).
        params: the default parameters, numbers, arrays or `simkit.core.parameter.Parameter`.
        scale: ``params -> Scale``: a particle diameter and the stiffness of a contact.
        cell: ``params -> cell``, (d, d), rows are the lattice vectors; ``None`` for free space.
        minimizer: a `Minimizer` or the name of one.
        force_tolerance: largest residual force, in units of force, and largest residual stress, in units of
            force / length^(d-1). Good values: 1e-10 in float64, 1e-5 in float32.
        force_unit: ``params -> force``; ``None`` for stiffness times length.
        stiffness: ``(position, cell, params) -> stiffness`` of an arrangement, by which its forces are judged, such as
            beside walls that are stiff where nothing is at rest; ``None`` for that of the scale.
        relax_cell: whether the cell deforms (six strains in three dimensions) along with the particles.
        isotropic: whether a relaxing cell keeps its shape.
        pressure: ``params -> `` external pressure on a relaxing cell, energy / length^d; ``None`` takes the parameter
            of that name.
        rattlers: ``(position, cell, params, neighbors) -> (N,)`` booleans, particles with too few contacts to be held;
            the derivative keeps them fixed.
        frozen: mask of particles that do not move, (N,) booleans: they act on the others, and follow the params as
            their start does, which must not depend on the key (otherwise the implicit derivative is NaN). ``None``: all
            move.
        observe: ``(position, cell, params) -> arrays``, arrays of a frame in addition to the positions.
        measure: ``(position, cell, params) -> scalars``, further diagnostics.
        inspect: ``(position, cell, params, neighbors) -> (arrays, scalars)``, further arrays of a frame and
            diagnostics that are computed from the neighbors.
        dimensions: dimension names of the arrays from ``observe`` and ``inspect``.

    Raises:
        UserError: if a cell that relaxes contradicts another argument.

    Example:
        >>> dimer = molecular.relaxation.relaxation(
        ...     molecular.interactions.pair_interaction(molecular.potentials.lennard_jones(), cutoff=None),
        ...     lambda params, key: jnp.array([[0.0, 0.0, 0.0], [1.3, 0.0, 0.0]]),
        ...     params={"epsilon": 1.0, "sigma": 1.0},
        ...     scale=lambda params: molecular.minimizers.Scale(params["sigma"], 57 * params["epsilon"]),
        ...     force_tolerance=1e-5,
        ... )
        >>> print(f"{float(simkit.run(dimer, steps=100)['energy'][-1]):.4f}")
        -1.0000
    """
    if isinstance(minimizer, str):
        minimizer = minimizers.by_name(minimizer)
    mask = frozen_mask(frozen)
    if relax_cell and (cell is None or mask is not None or (pressure is None and "pressure" not in params)):
        raise UserError("relax_cell = true needs a cell, particles of which none is frozen, and the parameter pressure")

    return Relaxation(
        landscape=Landscape(
            interaction=interaction,
            start=start,
            scale=scale,
            cell=cell,
            relax_cell=relax_cell,
            isotropic=isotropic,
            pressure=pressure or (lambda params: params["pressure"]),
            frozen=mask,
            rattlers=rattlers,
        ),
        params=params,
        minimizer=minimizer,
        force_tolerance=force_tolerance,
        force_unit=force_unit,
        stiffness=stiffness,
        observe=observe,
        measure=measure,
        inspect=inspect,
        dimensions=dimensions or {},
    ).simulation()


def _vector(params: Params) -> jax.Array:
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(params)])


# Units in the last place by which derived params may differ between two programs: the pressures of `jamming`, which are
# powers, differ by 10 between XLA and onnxruntime.
_ROUNDINGS = 32


def _is_same(stored: jax.Array, now: jax.Array) -> jax.Array:
    """Return whether two vectors of params are equal to rounding, scalar boolean."""
    return (jnp.abs(now - stored) <= _ROUNDINGS * jnp.finfo(now.dtype).eps * jnp.abs(now)).all()
