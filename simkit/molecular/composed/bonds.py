"""Units of a minimization: length and stiffness of the stiffest bond, as the interactions declare them."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.settings import Settings
from simkit.core.simulation import Params
from simkit.molecular import spaces
from simkit.molecular.composed.converted_params import without_time
from simkit.molecular.composed.fields import curvature, slope
from simkit.molecular.composed.interactions import Interactions
from simkit.molecular.composed.names import TIME, Names
from simkit.molecular.composed.pair_terms import PairTerm
from simkit.molecular.composed.particles import Particles
from simkit.molecular.composed.placing import Placing
from simkit.molecular.minimizers import Scale
from simkit.molecular.spaces import Cell

# Distances searched for the minimum of an energy by expression, in units of the spacing of the particles, and
# iterations of its refinement.
NEAREST, FURTHEST, DISTANCES, ITERATIONS = 0.1, 30.0, 108, 5
# Distance of close pairs in units of the spacing, where the first stiffness of a repulsion by expression is taken.
CLOSE = 0.7
# Largest number of particles whose nearest neighbors are measured.
MEASURED = 16

type StiffnessAt = Callable[[jax.Array, Cell, Params], jax.Array]


def given_scale(settings: Settings, names: Names) -> Callable[[Params], Scale]:
    """Return ``params -> Scale`` as written in the settings of a relaxation.

    Args:
        settings: table with ``length`` and ``stiffness``.
        names: names that formulas may use.
    """
    length, stiffness = names.number(settings["length"]), names.number(settings["stiffness"])

    def scale(params: Params) -> Scale:
        params = jax.lax.stop_gradient(without_time(params))
        return Scale(length.number(params), stiffness.number(params))

    return scale


def scale_of(
    interactions: Interactions, particles: Particles, placing: Placing, dimension: int
) -> tuple[Callable[[Params], Scale], StiffnessAt | None]:
    """Return ``params -> Scale`` and the stiffness ``(position, cell, params) -> stiffness`` of an arrangement.

    The scale is the stiffest bond of all interactions. Potentials by name declare theirs; of an energy by expression it
    is the minimum near the spacing of the particles or, of a repulsion, that spacing. Without interactions the
    stiffness is the curvature of the fields at the starting positions.

    Where particles start far too close, or deep in a wall, repulsions by expression and fields have enormous
    curvatures. So forces are judged by the stiffness of the present arrangement; ``None`` where all bonds are declared
    and there are no fields.

    Args:
        interactions: interactions and fields.
        particles: particles of the system.
        placing: starting positions.
        dimension: dimension of space.
    """
    typed = [term for term in interactions.pairs if term.bare.bond is None]

    def spacing(params: Params) -> jax.Array:
        return placing.spacing(params, particles.count, dimension)

    def bonds(params: Params, near: jax.Array, close: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
        return [*interactions.bonds(params), *(_bonds_of_expression(term, params, near, close) for term in typed)]

    def of_fields(position: jax.Array, params: Params) -> jax.Array:
        curvatures = curvature(interactions.fields, params, position, ~particles.frozen)
        return _lower_quartile(curvatures)

    def scale(params: Params) -> Scale:
        params = jax.lax.stop_gradient(params)
        timeless = without_time(params)
        near = spacing(timeless)
        candidates = bonds(timeless, near, CLOSE * near)
        if not candidates:
            timed = {TIME: jnp.zeros_like(near), **params}
            places = jnp.asarray(placing.sample(timeless), near.dtype)
            stiffness = of_fields(places, timed)
            flat = slope(interactions.fields, timed, places, ~particles.frozen) / near
            candidates = [(near, jnp.where(stiffness > 0, stiffness, flat))]
        lengths, stiffnesses = (
            jnp.concatenate([jnp.ravel(x) for x in column]) for column in zip(*candidates, strict=True)
        )
        stiffest = jnp.argmax(stiffnesses)
        stiffness = stiffnesses[stiffest]
        return Scale(lengths[stiffest], jnp.where(stiffness > 0, stiffness, jnp.ones_like(stiffness)))

    # A program calls it tens of times; as a compiled function it is traced once.
    compiled = jax.jit(scale)

    def stiffness_at(position: jax.Array, cell: Cell, params: Params) -> jax.Array:
        position, params = jax.lax.stop_gradient((position, params))
        timeless = without_time(params)
        near = spacing(timeless)
        close = _nearest_distance(position, spaces.of_cell(cell, dimension), near)
        candidates = [jnp.max(stiffness) for _, stiffness in bonds(timeless, near, close)]
        if interactions.fields:
            candidates.append(of_fields(spaces.of_cell(cell, dimension).wrap(position), params))
        stiffness = jnp.max(jnp.stack(candidates))
        return jnp.where(stiffness > 0, stiffness, compiled(params).stiffness)

    return compiled, stiffness_at if typed or interactions.fields else None


def _bonds_of_expression(
    term: PairTerm, params: Params, near: jax.Array, close: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return lengths and stiffnesses of an energy by expression, (K,) each, one for each pair of species.

    Args:
        term: the energy.
        params: parameters.
        near: distance about which its minimum is searched, and the length of a repulsion.
        close: distance at which the stiffness of a repulsion is taken.
    """
    values = term.bare_parameters(params)
    axes = {name: 0 if jnp.ndim(value) else None for name, value in values.items()}
    if not any(axis == 0 for axis in axes.values()):
        return _bond(term, values, near, close)
    return jax.vmap(lambda values: _bond(term, values, near, close), in_axes=(axes,))(values)


def _bond(
    term: PairTerm, values: dict[str, jax.Array], near: jax.Array, close: jax.Array
) -> tuple[jax.Array, jax.Array]:
    def force(r: jax.Array) -> jax.Array:
        return term.bare.force(r, **values)

    def force_and_curvature(r: jax.Array) -> tuple[jax.Array, jax.Array]:
        push, change = jax.jvp(force, (r,), (jnp.ones_like(r),))
        return push, -change

    distances = near * jnp.asarray(np.geomspace(NEAREST, FURTHEST, DISTANCES), near.dtype)
    energies = term.bare.energy(distances, **values)
    lowest = jnp.argmin(jnp.where(jnp.isfinite(energies), energies, jnp.inf)[1:-1]) + 1
    low, high = distances[lowest - 1], distances[lowest + 1]
    is_interior = (energies[lowest] < energies[lowest - 1]) & (energies[lowest] < energies[lowest + 1])

    def refined(_: int, r: jax.Array) -> jax.Array:
        push, bend = force_and_curvature(r)
        return jnp.where(bend > 0, jnp.clip(r + push / bend, low, high), r)

    length = jax.lax.fori_loop(0, ITERATIONS, refined, distances[lowest])
    at_minimum, at_close = force_and_curvature(length)[1], jnp.abs(force_and_curvature(close)[1])
    everywhere = jnp.abs(force_and_curvature(distances)[1])
    usable = jnp.isfinite(at_close) & (at_close > 0)
    repulsive = jnp.where(usable, at_close, _lower_quartile(jnp.where(jnp.isfinite(everywhere), everywhere, 0)))
    is_bond = is_interior & (at_minimum > 0)
    return jnp.where(is_bond, length, near), jnp.where(is_bond, at_minimum, repulsive)


def _nearest_distance(position: jax.Array, space: spaces.Space, usual: jax.Array) -> jax.Array:
    """Return the median distance to the nearest neighbor, of some particles; ``usual`` where there is none."""
    count = len(position)
    if count == 1:
        return usual
    chosen = np.unique(np.linspace(0, count - 1, min(count, MEASURED)).astype(int))
    squared = jnp.sum(spaces.displacement(space, position[chosen][:, None], position[None]) ** 2, axis=-1)
    squared = jnp.where(chosen[:, None] == np.arange(count), jnp.inf, squared)
    nearest = jnp.sqrt(jnp.median(jnp.min(squared, axis=1)))
    return jnp.where(jnp.isfinite(nearest) & (nearest > 0), nearest, usual)


def _lower_quartile(numbers: jax.Array) -> jax.Array:
    """Return the lower quartile of the positive numbers, 0 where there are none."""
    count = jnp.sum(numbers > 0)
    return jnp.where(count > 0, jnp.sort(jnp.where(numbers > 0, numbers, jnp.inf))[count // 4], 0)
