"""Embedded-atom energies written as expressions: of the density, of pairs, and of the distance."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.syntax import parse
from simkit.core.parts import part
from simkit.core.settings import FormulaText, Settings, formula
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular.description.formulas import Names, refuse_mixing
from simkit.molecular.description.pair_energies import PairTerm, WholeTerm, function_of, of_images, pair_term
from simkit.molecular.description.particles import Particles, refuse_excluded
from simkit.molecular.interactions.embedded_atom import embedded_atom as interaction_of
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.potentials import PairPotential

RHO, R = "rho", "r"
# Neighbors of an atom whose shared energy is searched for a minimum, and distances in units of the cut-off.
NEIGHBORS = {2: 6, 3: 12}
DISTANCES = np.geomspace(0.05, 1.0, 128)
NO_PAIR = PairPotential(energy=lambda r: jnp.zeros_like(r), force=lambda r: jnp.zeros_like(r))


@dataclasses.dataclass(frozen=True)
class EmbeddedAtomFormulas:
    """The functions of an embedded-atom energy as written.

    Attributes:
        density: of the distance r.
        embedding: of the density rho.
        pair: of the distance r; ``None`` without energies of pairs.
    """

    density: FormulaText
    embedding: FormulaText
    pair: FormulaText | None


@part(
    keys={
        "density": formula(
            "density at a particle by a neighbor at the distance r; of unlike particles, `_i` are the values of the "
            "particle and `_j` those of the neighbor",
            takes=(R,),
        ),
        "embedding": formula("energy of a particle in the density rho", unit="energy", takes=(RHO,)),
        "pair": formula("energy of a pair at the distance r; left out, there is none", None, unit="energy", takes=(R,)),
    },
    excludes=dict.fromkeys(("tail", "one_four"), "whose energy is no sum of pairs"),
)
def embedded_atom(density: FormulaText, embedding: FormulaText, pair: FormulaText | None) -> EmbeddedAtomFormulas:
    """Return the embedded-atom energy ``sum_i F(rho_i) + sum_{i<j} phi(r_ij)`` with ``rho_i = sum_j f(r_ij)``."""
    return EmbeddedAtomFormulas(density, embedding, pair)


def embedded_atom_term(
    settings: Settings, written: EmbeddedAtomFormulas, names: Names, particles: Particles, dimension: int
) -> WholeTerm:
    """Return an embedded-atom energy from its settings.

    Args:
        settings: of the interaction.
        written: its functions.
        names: what formulas may take.
        particles: whose values they may take.
        dimension: of space.

    Raises:
        UserError: if there is no cut-off, or a formula names what there is not.
    """
    refuse_excluded(settings, particles)
    if settings["cutoff"] is None:
        raise settings.refuse("cutoff", "is missing; give the distance at which density and pair energy end")
    texts = [text for text in (written.density, written.pair) if text is not None]
    taken = tuple(name for text in (*texts, written.embedding) for name in parse(text.text, text.where).names)
    terms = tuple(pair_term(settings, text, names, particles, taken) for text in texts)
    formula = names.scope.formula(written.embedding, (RHO, *settings["values"], *names.values))
    refuse_mixing(formula)
    embedding = function_of(formula.needing(RHO), RHO)
    numbers = {
        name: _number(settings, names, name) for name in formula.taken if name != RHO and name not in names.values
    }

    def values(params: Params, cells: int = 1) -> dict[str, jax.Array]:
        of_each = {name: particles.of_each(name, params) for name in names.values if formula.takes(name)}
        return {name: number(params) for name, number in numbers.items()} | {
            name: jnp.tile(value, cells) for name, value in of_each.items()
        }

    def in_block(cells: int) -> Interaction:
        density, *pairs = terms
        return interaction_of(
            density.potential,
            embedding,
            pairs[0].potential if pairs else NO_PAIR,
            cutoff=density.reach,
            parameters=of_images(pairs[0], cells) if pairs else (),
            density_parameters=of_images(density, cells),
            embedding_parameters=lambda params: values(params, cells),
            species=np.tile(particles.species, cells).tolist(),
            method=settings["method"],
            skin=settings["skin"],
        )

    def bond(params: Params) -> tuple[jax.Array, jax.Array]:
        first = terms[0].representatives()[0]
        of_each = {name: value[first] if value.ndim else value for name, value in values(params).items()}
        return _bond(terms, lambda rho: embedding(rho, **of_each), params, NEIGHBORS[dimension])

    return WholeTerm(settings, in_block(1), lambda params: {}, terms[0].reach, bond, pairs=terms, in_block=in_block)


def _number(settings: Settings, names: Names, name: str) -> Callable[[Params], jax.Array]:
    """Return a value that the embedding energy takes: one number for all particles."""
    written = settings["values"].get(name) or names.usual_value(settings, name)
    if not isinstance(written, FormulaText):
        where = f"{settings.path('values')}.{name}"
        raise UserError(
            f"{where} is by pair of species, and embedding takes it; give one number, or a value of species"
        )
    return names.number(written).number


def _bond(
    terms: tuple[PairTerm, ...], embedding: Callable[[jax.Array], jax.Array], params: Params, neighbors: int
) -> tuple[jax.Array, jax.Array]:
    """Return lengths and stiffnesses, (K,) each, of bonds that share the energy of an atom with like neighbors.

    ``U(r) = phi(r) + 2 F(n f(r)) / n``, searched for its lowest minimum; of a repulsion, half the cut-off.

    Args:
        terms: density, and the pair energy if there is one.
        embedding: F, of densities (..., K).
        params: parameters of the system.
        neighbors: n.
    """
    density, *pairs = terms
    among = density.representatives()
    values = [term.of_pairs(params, *among) for term in terms]

    def shared(r: jax.Array) -> jax.Array:
        inside = 2 * embedding(neighbors * density.bare.energy(r, **values[0])) / neighbors
        return inside + (pairs[0].bare.energy(r, **values[1]) if pairs else 0)

    def slope(r: jax.Array) -> jax.Array:
        return jax.jvp(shared, (r,), (jnp.ones_like(r),))[1]

    reach = density.reach(params)
    r = jnp.broadcast_to(reach * jnp.asarray(DISTANCES, reach.dtype)[:, None], (len(DISTANCES), len(among[0])))
    energy, curvature = shared(r), jax.jvp(slope, (r,), (jnp.ones_like(r),))[1]
    is_lowest = (energy[1:-1] < energy[:-2]) & (energy[1:-1] < energy[2:]) & (curvature[1:-1] > 0)
    lowest = jnp.argmin(jnp.where(is_lowest, energy[1:-1], jnp.inf), axis=0) + 1
    middle = np.searchsorted(DISTANCES, 0.5)
    place = jnp.where(is_lowest.any(axis=0), lowest, middle)[None]
    length, stiffness = (jnp.take_along_axis(each, place, axis=0)[0] for each in (r, jnp.abs(curvature)))
    return length, stiffness
