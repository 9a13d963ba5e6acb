"""Pair energies of jax-md by name."""

import dataclasses
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.scope import precision_of
from simkit.core.parts import part
from simkit.core.settings import Settings, formula, word
from simkit.core.simulation import Params
from simkit.molecular.composed.cells import SystemCell
from simkit.molecular.composed.converted_params import with_converted_params
from simkit.molecular.composed.names import Names
from simkit.molecular.composed.particles import Particles
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.interactions.jax_md import from_jax_md
from simkit.molecular.potentials.soft_sphere import OVERLAP

_LENGTHS = {"epsilon": formula("energy scale", unit="energy"), "sigma": formula("length scale", unit="length")}
_RANGED = _LENGTHS | {"alpha": formula("inverse range of a Morse potential, 1 / length; exponent of soft spheres")}
# Values of the functions NAME_pair of jax_md.energy, and whether they end at a cut-off.
ENERGIES = {"lennard_jones": (_LENGTHS, True), "morse": (_RANGED, True), "soft_sphere": (_RANGED, False)}
# Length and stiffness of their bonds.
BONDS: dict[str, Callable[..., tuple[jax.Array, jax.Array]]] = {
    "lennard_jones": lambda epsilon, sigma: (2 ** (1 / 6) * sigma, 72 / 2 ** (1 / 3) * epsilon / sigma**2),
    "morse": lambda epsilon, sigma, alpha: (sigma, 2 * epsilon * alpha**2),
    "soft_sphere": lambda epsilon, sigma, alpha: (sigma, epsilon * (alpha - 1) * OVERLAP ** (alpha - 2) / sigma**2),
}


@dataclasses.dataclass(frozen=True)
class JaxMdEnergy:
    """A pair energy of jax-md that a scenario file names.

    Attributes:
        name: as in ``jax_md.energy.NAME_pair``.
    """

    name: str


_SUM = "which is a sum of jax-md over all pairs"


@part(
    keys={"jax_md": word("a pair energy of jax-md by name", tuple(ENERGIES))},
    values=_RANGED,
    excludes=dict.fromkeys(("between", "tail", "skin", "method", "ending"), _SUM),
)
def jax_md(jax_md: str) -> JaxMdEnergy:
    """Return a pair energy of jax-md."""
    return JaxMdEnergy(jax_md)


@dataclasses.dataclass(frozen=True)
class JaxMdTerm:
    """A pair energy of jax-md.

    Attributes:
        interaction: sum over all pairs, each at its nearest image.
        each: half the pair energies of each particle, (N,), in place of their sum.
        reach: ``params -> `` distance beyond which no pair interacts.
        is_contact: whether the energy ends by itself, as that of soft spheres.
        bond: ``params -> `` length and stiffness of a bond.
    """

    interaction: Interaction
    each: Interaction
    reach: Callable[[Params], jax.Array]
    is_contact: bool
    bond: Callable[[Params], tuple[jax.Array, jax.Array]]


def jax_md_term(
    settings: Settings, energy: JaxMdEnergy, names: Names, particles: Particles, cell: SystemCell, params: Params
) -> JaxMdTerm:
    """Return an energy of jax-md, over all pairs.

    Args:
        settings: of the interaction.
        energy: which energy.
        names: what formulas may take.
        particles: of one species.
        cell: free space, or one that repeats along all axes.
        params: default parameters, of which the cut-off is taken.

    Raises:
        UserError: if the energy does not fit the species or the cell, or a value is missing.
    """
    if len(particles.names) > 1:
        raise settings.refuse("jax_md", "is of one species here; write energies of several as expressions")
    if not cell.is_free and not cell.is_closed:
        raise settings.refuse("jax_md", "needs free space or a cell that repeats along all axes")
    declared, has_end = ENERGIES[energy.name]
    formulas = names.of_one_species(settings, declared)
    if has_end != (settings["cutoff"] is not None):
        raise settings.refuse("cutoff", "is missing; give a number" if has_end else "has no effect; leave it out")
    # The import takes seconds and issues warnings about other packages.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jax_md
    box = None if cell.is_free else np.ones(cell.dimension)
    displacement, _ = jax_md.space.free() if box is None else jax_md.space.periodic(jnp.asarray(box, float))
    # jax-md converts values that are not JAX arrays to float32, and later values to the same type.
    one = jnp.asarray(1.0, dtype=float)
    ends = {}
    if has_end:
        cutoff = names.number(settings["cutoff"])
        if cutoff.taken:
            raise settings.refuse("cutoff", "of an energy of jax-md is a plain number; write one")
        ends = {
            "r_cutoff": float(cutoff.number(params)),
            "r_onset": settings["switch_on"] * float(cutoff.number(params)),
        }
    make = getattr(jax_md.energy, f"{energy.name}_pair")

    def values(params: Params) -> dict[str, jax.Array]:
        return {name: each.number(params) for name, each in formulas.items()}

    def summed(**options: bool) -> Interaction:
        function = make(displacement, **dict.fromkeys(declared, one), **ends, **options)
        return with_converted_params(from_jax_md(function, box=box, parameters=list(declared)), values)

    end, sigma, bond = ends.get("r_cutoff"), formulas["sigma"], BONDS[energy.name]
    return JaxMdTerm(
        summed(),
        summed(per_particle=True),
        lambda params: sigma.number(params) if end is None else jnp.asarray(end, precision_of(params)),
        is_contact=not has_end,
        bond=lambda params: bond(**values(params)),
    )
