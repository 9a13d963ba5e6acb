"""Stillinger-Weber potential of silicon and similar materials: pair energies and three-body energies of bond angles.

The sum over pairs of bonds of one particle factorizes. With bond directions u_k, weights g_k and the moments
``s = sum_k g_k``, ``v = sum_k g_k u_k``, ``Q = sum_k g_k u_k u_k^T``,

    sum_{k<l} g_k g_l (u_k . u_l + 1/3)^2 = 1/2 (|Q|^2 + 2/3 |v|^2 + s^2 / 9 - 16/9 sum_k g_k^2),

so the cost is proportional to the number of bonds, not of angles, and no array exceeds the size of the neighbor list.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.arguments import check_shape
from simkit.core.formulation import by_device, is_for_accelerators
from simkit.core.parameter import POSITIVE
from simkit.core.parts import part
from simkit.core.settings import arguments, formula, number, whole
from simkit.core.simulation import Params
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction, ManyBody, Quantities
from simkit.molecular.neighbors import neighbor_list
from simkit.molecular.neighbors.neighbor_list import NeighborList, Within
from simkit.molecular.spaces import Cell, Components, Space

# Energy in eV, length in angstrom.
SILICON = {"epsilon": 2.1683, "sigma": 2.0951, "tetrahedral_strength": 21.0}
# Length of a bond at rest in units of sigma, and its curvature in units of epsilon / sigma^2.
BOND, STIFFNESS = 2 ** (1 / 6), 20.879

# In units of sigma. Within the edge of the reach the potential is below 1e-43 of its scale; zero there keeps every
# derivative finite. Below the core, where it exceeds 1e5 epsilon, the pair energy is continued linearly.
EDGE = 0.01
CORE = 0.05


class Shape(NamedTuple):
    """Dimensionless constants of the potential.

    Attributes:
        pair_strength: A.
        repulsion: B, weight of the repulsive part of the pair energy.
        reach: a, the cut-off in units of sigma.
        angular_decay: gamma, decay of the weight of a bond toward the reach.
    """

    pair_strength: float = 7.049556277
    repulsion: float = 0.6022245584
    reach: float = 1.80
    angular_decay: float = 1.20


STANDARD = Shape()


class Bonds(NamedTuple):
    """One bond of every particle, its energy and weight with their derivatives, (N,); zero for unused entries."""

    direction: Components
    distance: jax.Array
    energy: jax.Array
    energy_slope: jax.Array
    weight: jax.Array
    weight_slope: jax.Array


class Moments(NamedTuple):
    """Sums over the bonds of every particle; the tensor as xx, yy, zz, yz, xz, xy."""

    weight: jax.Array
    vector: Components
    tensor: Components
    energy: jax.Array
    squared_weight: jax.Array


_PAIRS = "which has a range of its own and acts between all particles"


@part(
    values={
        "epsilon": formula("energy of a bond", unit="energy"),
        "sigma": formula("length scale", unit="length"),
        "tetrahedral_strength": formula("strength of the three-body energy, 21 for silicon"),
    },
    excludes=dict.fromkeys(
        ("between", "mixing", "cutoff", "ending", "switch_on", "tail", "method", "skin", "one_four"), _PAIRS
    ),
)
def many_body() -> ManyBody:
    """Return the standard Stillinger-Weber interaction as scenario files name it."""

    def reach(*, sigma: jax.Array, **others: jax.Array) -> jax.Array:
        del others
        return STANDARD.reach * sigma

    def bond(*, epsilon: jax.Array, sigma: jax.Array, **others: jax.Array) -> tuple[jax.Array, jax.Array]:
        del others
        return BOND * sigma, STIFFNESS * epsilon / sigma**2

    return ManyBody(stillinger_weber(), reach, bond, dimensions=(3,))


@arguments(
    capacity=whole("neighbors per particle that the list can hold", low=1),
    skin=number("skin of the list, in units of the cut-off", bounds=POSITIVE),
)
def stillinger_weber(*, capacity: int = 24, skin: float = 0.1, shape: Shape = STANDARD) -> Interaction:
    """Return the Stillinger-Weber interaction in three dimensions.

    ``E = sum_{i<j} phi(r_ij) + lambda epsilon sum_i sum_{j<k} g(r_ij) g(r_ik) (cos theta_jik + 1/3)^2`` with
    ``phi = A epsilon (B (sigma / r)^4 - 1) exp(sigma / (r - a sigma))`` and
    ``g = exp(gamma sigma / (r - a sigma))`` for ``r < a sigma``, zero beyond.

    Parameters read: ``epsilon``, energy; ``sigma``, length; ``tetrahedral_strength``, lambda. `SILICON` has the values
    of silicon; 23.15 instead of 21 is coarse-grained water, 1.5 to 2 times 21 is used for amorphous silicon.

    Only nearest images interact: half the smallest width of the cell must exceed ``a sigma``, which two unit cells of
    diamond along each axis suffice for. In a smaller cell energy, force and stress are NaN.

    Args:
        capacity: neighbors per particle within cut-off and skin that the list can hold. Runs enlarge it when needed.
        skin: of the list beyond the cut-off, in units of the cut-off.
        shape: the constants A, B, a and gamma.

    Example:
        >>> crystal = molecular.structures.diamond((2, 2, 2), spacing=2 ** (1 / 6))
        >>> silicon = molecular.interactions.stillinger_weber()
        >>> x, cell = crystal.position, crystal.cell
        >>> params = {"epsilon": 1.0, "sigma": 1.0, "tetrahedral_strength": 21.0}
        >>> energy = silicon.energy(x, cell, params, silicon.prepare(x, cell, params)) / len(x)
        >>> print(f"{energy:.4f}: two bonds of depth 1 for every atom")
        -2.0000: two bonds of depth 1 for every atom

    Reference: Stillinger, Weber, Phys. Rev. B 31, 5262 (1985), doi:10.1103/PhysRevB.31.5262.
    """
    within = Within(lambda params: shape.reach * params["sigma"], skin, capacity)

    def prepare(position: jax.Array, cell: Cell, params: Params) -> NeighborList:
        check_shape("position", position, "three coordinates of each particle", (None, 3))
        return within.prepare(position, cell, params)

    def together(
        names: Quantities, position: jax.Array, cell: Cell, params: Params, neighbors: NeighborList
    ) -> tuple[jax.Array, ...]:
        volume = spaces.volume_of(cell, 3) if "stress" in names else 1.0
        energies, force, strain_derivative = sums(position, cell, params, neighbors, shape)
        results = {"energy": energies.sum(), "force": force, "stress": strain_derivative / volume}
        return tuple(within.valid_or_nan(results[name], cell, params, neighbors) for name in names)

    return Interaction(
        prepare=prepare,
        refresh=within.refresh,
        energy=lambda *moment: together(("energy",), *moment)[0],
        force=lambda *moment: together(("force",), *moment)[0],
        stress=lambda *moment: together(("stress",), *moment)[0],
        sized_like=lambda neighbors: stillinger_weber(capacity=neighbors.capacity, skin=skin, shape=shape),
        is_translation_invariant=True,
        fits=within.fits,
        together=together,
    )


def sums(
    position: jax.Array,
    cell: Cell,
    params: Params,
    neighbors: NeighborList,
    shape: Shape = STANDARD,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return energies and forces of the particles, and the derivative of the energy with respect to strain.

    The energy of a particle is half of its pair energies plus that of the angles at it.

    Differentiating the moments gives, for the bond to neighbor k with ``d = x_i - x_k = r u``, summed over both its
    ends (``Q = Q_i + Q_k``, ``v = v_i - v_k``, ``s = s_i + s_k``),

        f = (phi' + lambda epsilon g' (u . Q u + 2/3 v . u + s / 9 - 32/9 g)) u
            + lambda epsilon (g / r) (1 - u u^T) (2 Q u + 2/3 v),

    hence ``F_i = -sum_k f_ik`` and ``dE/dstrain = 1/2 sum_ik d f^T``: two passes over the list and no scattered sums.

    Args:
        position: length, (N, 3).
        cell: as for `simkit.molecular.spaces.of_cell`.
        params: see `stillinger_weber`.
        neighbors: all neighbors within ``a sigma``.
        shape: dimensionless constants.

    Returns:
        Energy, (N,), of which the sum is the total; force, energy / length, (N, 3); strain derivative, energy, (3, 3).
    """
    return by_device(position, cell, params, neighbors, shape, cpu=_sums, accelerator=_sums)


def _sums(
    position: jax.Array, cell: Cell, params: Params, neighbors: NeighborList, shape: Shape
) -> tuple[jax.Array, jax.Array, jax.Array]:
    space = spaces.of_cell(cell, position.shape[1])
    columns, index = _columns(position, neighbors), neighbors.index
    own = _moments(columns, space, params, index, shape)
    strength = params["tetrahedral_strength"] * params["epsilon"]
    q, v, s = own.tensor, own.vector, own.weight
    angular = _dot(q[:3], q[:3]) + 2 * _dot(q[3:], q[3:]) + 2 / 3 * _dot(v, v) + s * s / 9 - 16 / 9 * own.squared_weight
    energies = neighbor_list.to_particles(neighbors, (own.energy + strength * angular) / 2)

    def of_bonds(others: jax.Array) -> tuple:
        bond = _bonds(columns, others, space, params, shape)
        u, g = bond.direction, bond.weight
        near, far = (own.weight, own.vector, own.tensor), _gather((own.weight, own.vector, own.tensor), others)
        s = near[0] + far[0]
        v = tuple(a - b for a, b in zip(near[1], far[1], strict=True))
        q_u = _apply(tuple(a + b for a, b in zip(near[2], far[2], strict=True)), u)
        along = _dot(u, q_u) + 2 / 3 * _dot(v, u) + s / 9 - 32 / 9 * g
        turning = tuple(2 * a + 2 / 3 * b for a, b in zip(q_u, v, strict=True))
        twist = strength * g / bond.distance
        radial = bond.energy_slope + strength * bond.weight_slope * along - twist * _dot(turning, u)
        pull = tuple(radial * a + twist * b for a, b in zip(u, turning, strict=True))
        virial = tuple(tuple(bond.distance * a * b for b in pull) for a in u)
        return tuple(-a for a in pull), virial

    force, virial = _total(of_bonds, index)
    virial = jnp.stack([jnp.stack([w.sum() for w in row]) for row in virial]) / 2
    return energies, neighbor_list.to_particles(neighbors, jnp.stack(force, axis=-1)), virial


def _columns(position: jax.Array, neighbors: NeighborList) -> Components:
    slots = neighbor_list.to_slots(neighbors, position)
    return tuple(slots[:, axis] for axis in range(3))


def _gather(tree, others: jax.Array):
    return jax.tree.map(lambda x: x.at[others].get(mode="promise_in_bounds"), tree)


def _dot(a: Components, b: Components) -> jax.Array:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _apply(tensor: Components, u: Components) -> Components:
    xx, yy, zz, yz, xz, xy = tensor
    return _dot((xx, xy, xz), u), _dot((xy, yy, yz), u), _dot((xz, yz, zz), u)


def _bonds(columns: Components, others: jax.Array, space: Space, params: Params, shape: Shape) -> Bonds:
    sigma, epsilon = params["sigma"], params["epsilon"]
    separation = space.separation(tuple(x - y for x, y in zip(columns, _gather(columns, others), strict=True)))
    squared = _dot(separation, separation)
    is_bond = (others != jnp.arange(len(others))) & (squared < ((shape.reach - EDGE) * sigma) ** 2)
    # Any finite distance for unused entries; coincident particles have no direction.
    squared = jnp.maximum(jnp.where(is_bond, squared, sigma**2), 1e-12 * sigma**2)
    distance = jnp.sqrt(squared)
    direction = tuple(x / distance for x in separation)

    weight = jnp.where(is_bond, jnp.exp(shape.angular_decay * sigma / (distance - shape.reach * sigma)), 0)
    weight_slope = -shape.angular_decay * sigma / (distance - shape.reach * sigma) ** 2 * weight

    nearest = jnp.maximum(distance, CORE * sigma)
    left = nearest - shape.reach * sigma
    repulsion = shape.repulsion * (sigma / nearest) ** 4
    scale = jnp.where(is_bond, shape.pair_strength * epsilon * jnp.exp(sigma / left), 0)
    slope = -scale * (4 * repulsion / nearest + (repulsion - 1) * sigma / left**2)
    energy = scale * (repulsion - 1) + slope * (distance - nearest)
    return Bonds(direction, distance, energy, slope, weight, weight_slope)


def _moments(columns: Components, space: Space, params: Params, index: jax.Array, shape: Shape) -> Moments:
    def of_bonds(others: jax.Array) -> Moments:
        bond = _bonds(columns, others, space, params, shape)
        u, g = bond.direction, bond.weight
        return Moments(
            weight=g,
            vector=tuple(g * a for a in u),
            tensor=tuple(g * u[a] * u[b] for a, b in ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))),
            energy=bond.energy,
            squared_weight=g * g,
        )

    return _total(of_bonds, index)


def _total[T](of_bonds: Callable[[jax.Array], T], index: jax.Array) -> T:
    """Return the sums over all neighbors: one after the other on a CPU, of all at once on an accelerator."""
    if is_for_accelerators():
        return jax.tree.map(lambda each: jnp.sum(each, axis=0), jax.vmap(of_bonds)(index))

    # Without rematerialization reverse mode stores every intermediate of every column.
    @jax.checkpoint
    def add(total: T, others: jax.Array) -> tuple[T, None]:
        return jax.tree.map(jnp.add, total, of_bonds(others)), None

    shapes = jax.eval_shape(of_bonds, index[0])
    start = jax.tree.map(lambda each: jnp.zeros(each.shape, each.dtype), shapes)
    return jax.lax.scan(add, start, index)[0]
