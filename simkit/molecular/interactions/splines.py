"""Pair energies of cubic B-splines, whose weights are an array of the parameters: to be learned."""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_shape
from simkit.core.formulation import precise_product
from simkit.core.parameter import POSITIVE
from simkit.core.parts import part
from simkit.core.settings import branch, formula, number
from simkit.molecular.interactions.interaction import Interaction, ManyBody, viewed
from simkit.molecular.interactions.learned import learned_energy
from simkit.molecular.neighbors.pairs import Pairs
from simkit.molecular.spaces import Cell

# Distance of the first knot, in units of the reach: samples of a liquid have few closer pairs.
NEAREST = 0.34
# Distance of the repulsion at smaller distances, about (CORE / r)^12, in units of the reach.
CORE = 0.42
# Points at which the minimum of the energy is looked for, for the scale of bonds.
POINTS = 128

type Values = Mapping[str, jax.Array]


def basis(distance: jax.Array, knots: int, reach: float) -> jax.Array:
    """Return cubic B-splines with even knots, (..., K); all vanish with their curvature at the reach.

    Args:
        distance: length, any shape.
        knots: number of splines, K.
        reach: length.

    Example:
        >>> from simkit.molecular.interactions.splines import basis
        >>> basis(jnp.array([1.25, 2.5]), 4, reach=2.5).shape
        (2, 4)
    """
    first = NEAREST * reach
    width = (reach - first) / (knots + 1)
    away = jnp.abs(distance[..., None] - first - width * np.arange(knots)) / width
    near = 2 / 3 - away**2 + away**3 / 2
    far = jnp.clip(2 - away, 0, None) ** 3 / 6
    return jnp.where(away < 1, near, far)


def spline_energy(reach: float) -> Callable[[jax.Array, Values], jax.Array]:
    """Return ``(distance, values) -> U(r) = core(r) + sum_k w_k B_k(r)`` with the values ``weights`` and ``repulsion``.

    Args:
        reach: distance at which it ends with its curvature: a jump of the force there would spoil derivatives.
    """

    def energy(distance: jax.Array, values: Values) -> jax.Array:
        weights = jnp.asarray(values["weights"])
        check_shape("splines: weights", weights, "one number for each spline", (None,))
        core = values["repulsion"] * (CORE * reach / distance) ** 12 * (1 - (distance / reach) ** 2) ** 3
        return core + precise_product(basis(distance, len(weights), reach), weights)

    return energy


def sum_over_pairs(
    energy: Callable[[jax.Array, Values], jax.Array], reach: float, weights: str, capacity: int = 64
) -> Interaction:
    """Return the interaction of an energy of pairs with values in a branch of the params.

    Args:
        energy: ``(distance, values) -> U``, elementwise.
        reach: distance at which it ends.
        weights: name of the branch.
        capacity: as for `simkit.molecular.interactions.learned_energy`.
    """

    def total(values: Values, position: jax.Array, species: jax.Array | None, cell: Cell, near: Pairs) -> jax.Array:
        del position, species, cell
        apart = jnp.where(near.is_pair, near.distance, reach)
        return jnp.where(near.is_pair, energy(apart, values), 0).sum(axis=1) / 2

    return learned_energy(total, cutoff=reach, weights=weights, capacity=capacity)


_SPLINES = "which end by themselves, on a list of their own"


@part(
    keys={"reach": number("distance at which the energy ends", bounds=POSITIVE)},
    values={
        "weights": branch("of the splines, one number for each, from near to far", unit="energy"),
        "repulsion": formula("scale of the repulsion at distances below 0.4 reach", 1.0, unit="energy"),
    },
    excludes=dict.fromkeys(
        ("between", "cutoff", "mixing", "ending", "switch_on", "tail", "method", "skin", "one_four"), _SPLINES
    ),
)
def splines(reach: float) -> ManyBody:
    """Return a pair energy of cubic B-splines, whose weights may be learned, swept and differentiated.

    ``U(r) = core(r) + sum_k w_k B_k(r)`` with ``core(r) = repulsion (0.42 R / r)^12 (1 - (r / R)^2)^3`` and K splines
    with even knots from 0.34 R to the reach R, where energy, force and curvature vanish.

    Args:
        reach: R.

    Reference: Lyubartsev and Laaksonen, Phys. Rev. E 52, 3730 (1995), doi:10.1103/PhysRevE.52.3730 (tabulated energies
    learned from structure).
    """
    energy = spline_energy(reach)

    def bond(**values: jax.Array) -> tuple[jax.Array, jax.Array]:
        r = jnp.asarray(np.linspace(NEAREST * reach, reach, POINTS), jnp.result_type(values["weights"]))
        lowest = jnp.argmin(energy(r, values))
        length = r[lowest]
        curvature = jax.grad(jax.grad(lambda r: energy(r, values)))(length)
        return length, jnp.abs(curvature)

    pairs = sum_over_pairs(energy, reach, "pair")
    return ManyBody(
        viewed(pairs, lambda position, cell, params: (position, cell, {"pair": params})),
        reach=lambda **values: jnp.full((), reach, jnp.result_type(values["repulsion"])),
        bond=bond,
        of_one_species=False,
    )
