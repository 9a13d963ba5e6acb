"""Scale of a system, found from its energies: the length and the stiffness of a bond."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.simulation import Params
from simkit.molecular import spaces
from simkit.molecular.composed.cells import SystemCell
from simkit.molecular.composed.converted_params import without_time
from simkit.molecular.composed.fields import Field
from simkit.molecular.composed.interactions import Acting
from simkit.molecular.composed.names import TIME
from simkit.molecular.composed.pair_terms import BETWEEN, PairTerm
from simkit.molecular.composed.particles import Particles
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.interactions.stillinger_weber import BOND, STIFFNESS
from simkit.molecular.minimizers import Scale
from simkit.molecular.spaces import Cell

# Distances searched for the minimum, in units of the spacing of the particles, and iterations of its refinement.
NEAREST, FURTHEST, DISTANCES, IMPROVEMENTS = 0.1, 30.0, 108, 5
# Pairs much nearer than the spacing are rare: their stiffness is not that of a bond.
USUAL = 0.7
# Share of the cut-off at which the stiffness of a hard contact is taken, whose curvature jumps there.
BEGINNING = 0.999
# Distance from a particle, in units of the spacing, at which the curvature of a field is taken: where it is flat the
# curvature vanishes at the minimum.
BESIDE = 0.02
# Largest number of particles whose nearest neighbors are measured.
NEIGHBORED = 16
# Least number of places around the origin at which the curvature of a field is taken.
SAMPLES = 64

type StiffnessAt = Callable[[jax.Array, Cell, Params], jax.Array]


def scale_of(
    acts: Acting,
    particles: Particles,
    spacing: Callable[[Params], jax.Array],
    places: Callable[[Params], jax.Array],
    cell: SystemCell,
    dimension: int,
) -> tuple[Callable[[Params], Scale], StiffnessAt | None]:
    """Return ``params -> Scale``, and the stiffness ``(position, cell, params) -> stiffness`` of an arrangement.

    The energy U of all pair terms of two species together has its minimum at a bond's length, and the curvature there
    is the stiffness. Of a pair that only repels the length is the spacing of the particles, or the cut-off of an energy
    that ends by itself, and the stiffness the largest curvature near that distance. The scale is that of the stiffest
    of all pairs of species; without interactions, that of all fields together, whose stiffness is the lower quartile of
    the curvatures at the starting positions, or around the origin if that is less.

    Where particles start much nearer than a bond, or deep in a wall, the curvature is enormous, and says nothing of
    forces at rest. So the stiffness of an arrangement, by which forces are judged, has the curvatures of pairs that
    only repel at the distances of its own nearest neighbors, and those of fields at its own positions. Of contacts and
    three-body energies alone, which have a length of their own, it is that of the scale, and ``None`` is returned.

    Args:
        acts: all energies.
        particles: particles of the system.
        spacing: ``params -> `` typical distance of neighbors.
        places: ``params -> `` typical starting positions, (N, d).
        cell: cell of the system.
        dimension: dimension of space.
    """
    pairs, species = acts.pairs, range(len(particles.names))

    def bond(params: Params, near: jax.Array, now: jax.Array, first: int, second: int) -> tuple[jax.Array, jax.Array]:
        acting = [term for term in pairs if term.between[first, second]]

        def bent(r: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
            """Return U, U' and U'' at distances r."""

            def force(r: jax.Array) -> jax.Array:
                return _summed("force", acting, params, first, second, r)

            push, change = jax.jvp(force, (r,), (jnp.ones_like(r),))
            return _summed("energy", acting, params, first, second, r), -push, -change

        shares = jnp.asarray(np.geomspace(NEAREST, FURTHEST, DISTANCES), near.dtype)
        distances = near * shares
        energies, _, bends = bent(distances)
        # NaN is excluded.
        energies = jnp.where(jnp.isfinite(energies), energies, jnp.inf)
        least = jnp.argmin(energies[1:-1]) + 1
        is_bond = (energies[least] < energies[least - 1]) & (energies[least] < energies[least + 1])

        def improved(index: int, found: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            del index
            _, slope, bend = bent(found[0])
            better = found[0] - slope / jnp.where(bend > 0, bend, 1)
            is_near = (bend > 0) & (better > distances[least - 1]) & (better < distances[least + 1])
            return jnp.where(is_near, better, found[0]), bend

        length, at_bond = jax.lax.fori_loop(0, IMPROVEMENTS, improved, (distances[least], bends[least]))
        bends = jnp.where(jnp.isfinite(bends), jnp.abs(bends), 0)
        usual = jnp.max(jnp.where(shares >= USUAL, bends, 0))
        repulsive = jnp.where(usual > 0, usual, _lower_quartile(bends))
        if now is not near:
            at_now = jnp.abs(bent(now)[2])
            repulsive = jnp.where(jnp.isfinite(at_now), at_now, repulsive)
        is_bond &= at_bond > 0
        return jnp.where(is_bond, length, near), jnp.where(is_bond, at_bond, repulsive)

    def bonds(params: Params, near: jax.Array, now: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
        """Return lengths and stiffnesses of all but fields, for distances of neighbors at the start and now."""
        found = [
            bond(params, near, now, first, second)
            for first in species
            for second in species
            if first <= second and any(term.between[first, second] and not term.is_contact for term in pairs)
        ]
        found += [_touch(term, params) for term in pairs if term.is_contact]
        for parameters in acts.silicon:
            values = parameters(params)
            unit = values["epsilon"] / values["sigma"] ** 2
            found.append((BOND * values["sigma"], STIFFNESS * unit))
        for other in acts.others:
            length = other.reach(params) if other.is_contact else now
            found.append((length, _of_two(other.interaction, cell.cell(params), params, length, dimension)))
        return found

    def bends(position: jax.Array, params: Params, near: jax.Array) -> jax.Array:
        """Return the curvatures of the fields at positions, (fields, N)."""
        at = params if TIME in params else {**params, TIME: jnp.zeros_like(near)}
        return jnp.stack([_bends(field, at, position, ~particles.frozen) for field in acts.fields])

    def scale(params: Params) -> Scale:
        given = jax.lax.stop_gradient(params)
        params = without_time(given)
        near = spacing(params)
        found = bonds(params, near, near)
        if acts.are_contacts and len(found) == 1:
            return Scale(*found[0])
        if not found:
            around = jnp.asarray(places(params), near.dtype)
            draws = _normal((-(-SAMPLES // len(around)), *around.shape), near)
            elsewhere = jax.vmap(lambda position: bends(position, given, near), out_axes=1)(draws)
            at_starts = _lower_quartile(jnp.sum(bends(around, given, near), axis=0))
            at_others = _lower_quartile(jnp.sum(elsewhere, axis=0).reshape(-1))
            is_less = (at_others > 0) & ((at_others < at_starts) | (at_starts == 0))
            found = [(near, jnp.where(is_less, at_others, at_starts))]
        lengths, stiffnesses = (jnp.stack(column) for column in zip(*found, strict=True))
        stiffest = jnp.argmax(stiffnesses)
        one = jnp.ones((), stiffnesses.dtype)
        return Scale(
            length=lengths[stiffest], stiffness=jnp.where(stiffnesses[stiffest] > 0, stiffnesses[stiffest], one)
        )

    # A program calls it tens of times; as a compiled function it is traced once.
    compiled = jax.jit(scale)

    def stiffness_at(position: jax.Array, cell: Cell, params: Params) -> jax.Array:
        position, given = jax.lax.stop_gradient((position, params))
        params, space = without_time(given), spaces.of_cell(cell, position.shape[1])
        usual = spacing(params)
        found = [stiffness for _, stiffness in bonds(params, usual, _spacing_of(position, space, usual))]
        if acts.fields:
            inside = space.wrap(position + _normal(position.shape, BESIDE * usual))
            found += [*_geometric_mean(bends(inside, given, usual))]
        stiffest = jnp.max(jnp.stack(found))
        return jnp.where(stiffest > 0, stiffest, compiled(given).stiffness)

    have_lengths = all(term.is_contact for term in pairs) and all(other.is_contact for other in acts.others)
    return compiled, None if have_lengths and not acts.fields else stiffness_at


def _touch(term: PairTerm, params: Params) -> tuple[jax.Array, jax.Array]:
    """Return length and stiffness of the stiffest contact: the cut-off, and the curvature at a share of it.

    Every step computes the scale anew, so all pairs of species are evaluated at once.
    """
    assert term.cutoff is not None  # contacts have one
    # Pairs of species that it acts between; a scalar holds for all of them.
    chosen = np.flatnonzero(term.between)

    def of_pairs(value: jax.Array) -> jax.Array:
        return value.ravel()[chosen] if value.ndim else value

    ends = of_pairs(term.cutoff(params))
    values = {name: of_pairs(value) for name, value in term.parameters(params).items() if name != BETWEEN}
    distance = (BEGINNING if term.is_hard else USUAL) * ends
    bends = jnp.abs(jax.jvp(lambda r: term.bare.force(r, **values), (distance,), (jnp.ones_like(distance),))[1])
    if not ends.ndim:
        return ends, jnp.max(bends)
    stiffest = jnp.argmax(bends)
    return ends[stiffest], bends[stiffest]


def _end(term: PairTerm, params: Params, first: int, second: int) -> jax.Array:
    """Return the distance at which the energy of one pair of species ends."""
    assert term.cutoff is not None  # it ends
    cutoff = term.cutoff(params)
    return cutoff[first, second] if cutoff.ndim else cutoff


def _summed(name: str, terms: list[PairTerm], params: Params, first: int, second: int, r: jax.Array) -> jax.Array:
    """Return the energy or force of one pair of species at distances r, summed over terms with their cut-offs."""
    total = jnp.zeros_like(r)
    for term in terms:
        values = {
            key: value[first, second] if jnp.ndim(value) else value for key, value in term.parameters(params).items()
        }
        value = getattr(term.potential, name)(r, **values)
        if term.cutoff is not None:
            value = jnp.where(r < _end(term, params, first, second), value, 0)
        total = total + value
    return total


def _spacing_of(position: jax.Array, space: spaces.Space, usual: jax.Array) -> jax.Array:
    """Return the median distance to the nearest neighbor, of some particles; ``usual`` where there is none."""
    count = len(position)
    if count == 1:
        return usual
    chosen = np.unique(np.linspace(0, count - 1, min(count, NEIGHBORED)).astype(int))
    apart = jnp.sum(spaces.displacement(space, position[chosen][:, None], position[None]) ** 2, axis=-1)
    apart = jnp.where(chosen[:, None] == np.arange(count), jnp.inf, apart)
    nearest = jnp.sqrt(jnp.median(jnp.min(apart, axis=1)))
    return jnp.where(jnp.isfinite(nearest) & (nearest > 0), nearest, usual)


def _lower_quartile(numbers: jax.Array) -> jax.Array:
    """Return the lower quartile of the positive numbers along the last axis, 0 where there are none."""
    count = jnp.sum(numbers > 0, axis=-1, keepdims=True)
    order = jnp.sort(jnp.where(numbers > 0, numbers, jnp.inf), axis=-1)
    return jnp.where(count > 0, jnp.take_along_axis(order, count // 4, axis=-1), 0)[..., 0]


def _geometric_mean(numbers: jax.Array) -> jax.Array:
    """Return the geometric mean of the positive numbers along the last axis, 0 where there are none."""
    chosen = numbers > 0
    count = jnp.sum(chosen, axis=-1)
    mean = jnp.sum(jnp.log(jnp.where(chosen, numbers, 1)), axis=-1) / jnp.maximum(count, 1)
    return jnp.where(count > 0, jnp.exp(mean), 0)


def _normal(shape: tuple[int, ...], width: jax.Array) -> jax.Array:
    """Return normal random numbers, always the same."""
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), width.dtype) * width


def _bends(field: Field, params: Params, places: jax.Array, movable: np.ndarray) -> jax.Array:
    """Return the curvature of a field at the place of each particle, (N,), 0 for those that do not feel it."""

    def columns(position: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(position[:, axis] for axis in range(position.shape[1]))

    def total(position: jax.Array) -> jax.Array:
        return jnp.sum(jnp.where(jnp.asarray(field.on), field.each(columns(position), params), 0))

    # Each energy depends on one position only: the Hessian times a vector of ones has all curvatures.
    bends = jax.jvp(jax.grad(total), (places,), (jnp.ones_like(places),))[1]
    bends = jnp.mean(jnp.abs(bends), axis=1)
    felt = jnp.asarray(field.on & movable) & jnp.isfinite(bends)
    if field.distance is not None:
        felt &= field.distance(columns(places), params) > 0
    return jnp.where(felt, bends, 0)


def _of_two(interaction: Interaction, cell: Cell, params: Params, near: jax.Array, dimension: int) -> jax.Array:
    """Return the largest curvature of the energy of two particles at typical distances."""
    along = jnp.zeros((2, dimension), near.dtype).at[1, 0].set(1)

    def energy(r: jax.Array) -> jax.Array:
        return interaction.energy(r * along, cell, params, ())

    shares = jnp.asarray(np.geomspace(USUAL, FURTHEST, DISTANCES), near.dtype)
    bends = jax.vmap(jax.grad(jax.grad(energy)))(near * shares)
    return jnp.max(jnp.where(jnp.isfinite(bends), jnp.abs(bends), 0))
