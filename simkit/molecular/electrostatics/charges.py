"""Charges in a periodic cell: the parts of their Coulomb energy that all Ewald methods share, and their tolerance."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypedDict

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_shape
from simkit.core.formulation import precise_product
from simkit.core.settings import number
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.bonded.terms import BondedTerms, bonded_terms
from simkit.molecular.interactions.interaction import Atoms, Interaction, ManyBody, combined
from simkit.molecular.interactions.pair_interaction import Method, pair_interaction
from simkit.molecular.neighbors.pair_sums import PairParameter, PerParticle
from simkit.molecular.potentials.coulomb import CONSTANT, coulomb
from simkit.molecular.spaces import Cell, Space

# Of the list of pairs, in units of the cut-off.
SKIN = 0.1
# Of a sum over too many wave vectors.
SHORTER = "lengthen the cutoff or raise the tolerance"


class Charges(NamedTuple):
    """Charges of the particles, and how their Coulomb energy is split.

    Attributes:
        charge: of each particle, (N,).
        cutoff: length, at most half the smallest width of the cell.
        damping: alpha, 1 / length; the screening Gaussian is ``exp(-alpha^2 r^2)``.
        constant: k, energy of two unit charges at unit distance.

    Example:
        >>> molecular.electrostatics.Charges(jnp.array([1.0, -1.0]), cutoff=9.0, damping=0.35).constant
        1.0
    """

    charge: jax.Array
    cutoff: jax.Array | float
    damping: jax.Array | float
    constant: jax.Array | float = 1.0


def of_params(params: Params) -> Charges:
    """Return the charges of params ``charge``, ``cutoff``, ``damping`` and ``coulomb_constant``, by default 1."""
    return Charges(params["charge"], params["cutoff"], params["damping"], params.get("coulomb_constant", 1.0))


class Split(NamedTuple):
    """How Coulomb energies are split between pairs and wave vectors, for a tolerance.

    Attributes:
        damping: alpha times the cut-off.
        largest: longest wave vector times the cut-off.

    Example:
        >>> print(f"{molecular.electrostatics.split(1e-5).damping:.4f}")
        3.3931
    """

    damping: float
    largest: float


def split(tolerance: float) -> Split:
    """Return damping and longest wave vector, in units of the cut-off, that both sums need for a tolerance.

    With ``exp(-s^2) = tolerance`` the damping is s, and the longest wave vector 2 s^2: what both sums lack of a force
    is about this fraction of that between two charges at the cut-off.

    Args:
        tolerance: relative error, in (0, 1).

    Example:
        >>> print(f"{molecular.electrostatics.split(1e-5).largest:.2f}")
        23.03

    Reference: Kolafa, Perram, Mol. Simul. 9, 351 (1992), doi:10.1080/08927029208049126.
    """
    damping = math.sqrt(-math.log(tolerance))
    return Split(damping, 2 * damping * damping)


class Reciprocal(Protocol):
    """Energy of the Gaussians of all charges and images, with their own energies, for k = 1."""

    def __call__(self, fraction: jax.Array, cell: jax.Array, charge: jax.Array, damping: jax.Array) -> jax.Array:
        """Return the energy of coordinates in units of the lattice vectors, (N, 3), in a cell (3, 3)."""
        ...


class PairOptions(TypedDict):
    """How the pairs are found; see `simkit.molecular.interactions.pair_interaction`."""

    method: Method
    skin: float
    capacity: int | None


def charge_interaction(
    reciprocal: Reciprocal, charges: Callable[[Params], Charges], excluded: np.ndarray | None, options: PairOptions
) -> Interaction:
    """Return the Coulomb interaction whose smooth part is given; see `ewald`.

    Args:
        reciprocal: energy of the Gaussians.
        charges: ``params -> Charges``.
        excluded: as for `ewald`.
        options: of the sum over pairs.
    """

    def of_pairs(params: Params) -> dict[str, PairParameter]:
        now = charges(params)
        # One number of each pair, their product, instead of two.
        product = PerParticle(now.charge, jnp.multiply)
        constant = jnp.asarray(now.constant, now.charge.dtype)
        damping = jnp.asarray(now.damping, now.charge.dtype)
        return {
            "charge_i": product,
            "charge_j": jnp.ones((), now.charge.dtype),
            "coulomb_constant": constant,
            "damping": damping,
        }

    couples = np.zeros((0, 2), np.int32) if excluded is None else np.asarray(excluded, np.int32).reshape(-1, 2)
    pairs = pair_interaction(
        coulomb(),
        cutoff=lambda params: jnp.asarray(charges(params).cutoff),
        parameters=of_pairs,
        excluded=couples,
        **options,
    )

    def smooth(fraction: jax.Array, cell: jax.Array, params: Params) -> jax.Array:
        now = charges(params)
        kind = fraction.dtype
        charge, damping = jnp.asarray(now.charge, kind), jnp.asarray(now.damping, kind)
        check_shape("charges", charge, f"one for each of {len(fraction)} particles", (len(fraction),))
        energy = reciprocal(fraction, cell, charge, damping) - damping / math.sqrt(math.pi) * jnp.sum(charge**2)
        background = math.pi * jnp.sum(charge) ** 2 / (2 * jnp.abs(spaces.determinant(cell)) * damping**2)
        return jnp.asarray(now.constant, kind) * (energy - background)

    parts = [_excluded_terms(charges, couples).interaction()] if len(couples) else []
    return combined(pairs, fractional_interaction(smooth), *parts)


def fractional_interaction(energy: Callable[[jax.Array, jax.Array, Params], jax.Array]) -> Interaction:
    """Return the interaction of an energy of coordinates in units of the lattice vectors, in a cell of volume.

    Args:
        energy: ``(fraction, cell, params) -> E`` of (N, 3) and (3, 3), unchanged if a coordinate changes by one.
    """

    def placed(position: jax.Array, cell: Cell) -> tuple[jax.Array, jax.Array]:
        if cell is None or position.shape[1] != 3:
            raise UserError("charges by Ewald summation need a cell that repeats along three axes; give one")
        vectors = spaces.lattice_vectors(jnp.asarray(cell, position.dtype))
        # Along an infinite side nothing repeats, and there is no volume: NaN instead of a wrong value.
        vectors = jnp.where(jnp.isfinite(vectors).all(), vectors, jnp.nan)
        fraction = precise_product(position, spaces.inverse_of(vectors))
        # Far outside the cell phases would lose digits.
        return fraction - jax.lax.stop_gradient(jnp.floor(fraction)), vectors

    def total(position: jax.Array, cell: Cell, params: Params, _: Any) -> jax.Array:
        return energy(*placed(position, cell), params)

    def stress(position: jax.Array, cell: Cell, params: Params, _: Any) -> jax.Array:
        # Fractional coordinates do not change with strain.
        fraction, vectors = placed(position, cell)
        unit = jnp.eye(3, dtype=position.dtype)

        def strained(strain: jax.Array) -> jax.Array:
            return energy(fraction, precise_product(vectors, unit + (strain + strain.T) / 2), params)

        return jax.grad(strained)(jnp.zeros_like(unit)) / jnp.abs(spaces.determinant(vectors))

    return Interaction(
        prepare=lambda position, cell, params: (),
        refresh=lambda neighbors, position, cell, params: neighbors,
        energy=total,
        force=lambda *at: -jax.grad(total)(*at),
        stress=stress,
        is_translation_invariant=True,
    )


def _excluded_terms(charges: Callable[[Params], Charges], couples: np.ndarray) -> BondedTerms:
    """Return minus the energy of excluded pairs that the sum over wave vectors contains, at nearest images."""

    def energy(distance: jax.Array, *, strength: jax.Array, damping: jax.Array) -> jax.Array:
        return strength * damping * erf_over((damping * distance) ** 2)

    def values(params: Params) -> dict[str, jax.Array]:
        now = charges(params)
        first, second = (jnp.asarray(now.charge)[jnp.asarray(atoms)] for atoms in couples.T)
        return {"strength": -now.constant * first * second, "damping": jnp.asarray(now.damping)}

    return dataclasses.replace(bonded_terms(energy, couples, 2, values, None), is_short=False)


def erf_over(squared: jax.Array) -> jax.Array:
    """Return ``erf(x) / x`` of the square of x, smooth at zero.

    Args:
        squared: x^2, any shape.
    """
    near = squared < 0.25
    inside, beyond = jnp.where(near, squared, 0), jnp.sqrt(jnp.where(near, 1, squared))
    series = jnp.zeros_like(inside)
    for order in reversed(range(12)):
        series = series * inside + (-1) ** order / (math.factorial(order) * (2 * order + 1))
    return jnp.where(near, 2 / math.sqrt(math.pi) * series, jax.lax.erf(beyond) / beyond)


_IMAGES = "which sums over all pairs and their images"
# Wave vectors suffice for cells this many times longer than at the default parameters.
ROOM = 1.1
PART = {
    "keys": {
        "tolerance": number(
            "what the sums over pairs and waves may lack of a force, relative to that of two charges at the cut-off",
            1e-5,
            (1e-15, 0.1),
        )
    },
    "values": CONSTANT,
    "excludes": dict.fromkeys(("between", "mixing", "ending", "switch_on", "tail", "method", "skin"), _IMAGES),
}


def of_tolerance(
    chosen: Split,
    summed: Callable[[np.ndarray, float], tuple[Reciprocal, np.ndarray]],
    usual_cutoff: Callable[[Space, int], jax.Array],
) -> ManyBody:
    """Return the Coulomb interaction of a tolerance, as scenario files name it.

    Args:
        chosen: damping and longest wave vector.
        summed: ``(cell, cutoff) -> `` energy of the Gaussians, and the largest n of a wave vector along each axis.
        usual_cutoff: see `simkit.molecular.interactions.ManyBody`.
    """

    def charges(params: Params) -> Charges:
        cutoff = params["cutoff"]
        return Charges(params["charge"], cutoff, chosen.damping / cutoff, params["coulomb_constant"])

    def interaction(atoms: Atoms) -> Interaction:
        assert atoms.cell is not None and atoms.cutoff is not None  # those of an interaction with a usual cut-off
        reciprocal, most = summed(atoms.cell, atoms.cutoff)

        def covered(fraction: jax.Array, cell: jax.Array, charge: jax.Array, damping: jax.Array) -> jax.Array:
            largest = chosen.largest / chosen.damping * damping
            needed = largest * jnp.sqrt(jnp.sum(cell**2, axis=1)) / (2 * math.pi)
            energy = reciprocal(fraction, cell, charge, damping)
            # NaN instead of a wrong value.
            return jnp.where(jnp.all(needed < jnp.asarray(most + 1, needed.dtype)), energy, jnp.nan)

        reach = (1 + SKIN) * atoms.cutoff
        density = len(atoms.species) / abs(np.linalg.det(atoms.cell))
        # A liquid or crystal has its mean density within the cut-off.
        capacity = min(len(atoms.species), math.ceil(1.3 * 4 / 3 * math.pi * reach**3 * density) + 16)
        options: PairOptions = {"method": "auto", "skin": SKIN, "capacity": capacity}
        return charge_interaction(covered, charges, atoms.excluded, options)

    def reach(*, cutoff: jax.Array, **others: jax.Array) -> jax.Array:
        del others
        return cutoff

    return ManyBody(
        interaction,
        reach,
        bond=None,
        dimensions=(3,),
        of_one_species=False,
        of_particles=("charge",),
        knows_excluded=True,
        usual_cutoff=usual_cutoff,
        of_two=_of_two,
    )


def _of_two(
    distance: jax.Array, *, charge_i: jax.Array, charge_j: jax.Array, coulomb_constant: jax.Array, cutoff: jax.Array
) -> jax.Array:
    del cutoff
    return coulomb_constant * charge_i * charge_j / distance
