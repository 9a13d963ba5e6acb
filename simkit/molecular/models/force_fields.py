"""Force fields for the atoms of a structure, by name, with their parameters."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parameter import Parameter
from simkit.core.simulation import Params
from simkit.errors import UserError, nearest
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.interactions.stillinger_weber import BOND, STANDARD, STIFFNESS, stillinger_weber
from simkit.molecular.minimizers import Scale
from simkit.molecular.models.cluster_model import LENNARD_JONES_STIFFNESS
from simkit.molecular.models.parameters import LENNARD_JONES_PARAMETERS, MORSE_PARAMETERS, SILICON_PARAMETERS
from simkit.molecular.potentials import PairPotential, lennard_jones, morse, soft_sphere, switched

PAIR_PARAMETERS = ("epsilon", "sigma")
POTENTIALS = ("lennard_jones", "morse", "silicon", "soft_sphere")
# Most atoms of a structure in free space without cut-off: more would need gigabytes for the sum over all pairs.
MOST_WITHOUT_CUTOFF = 4000
# Density relative to that of the structure for which the capacity of the neighbor list is estimated.
ROOM = 1.5
SKIN = 0.1


class ForceField(NamedTuple):
    """A potential for the atoms of a structure.

    Attributes:
        interaction: the energy and its derivatives.
        params: of the potential, by name; for S > 1 species the defaults of pair parameters are (S, S) tables.
        reach: ``values -> length`` on the host, the cut-off; infinite if there is none.
        scale: ``params -> Scale`` of a bond.
        force_unit: ``params -> force``, epsilon / sigma.
        diameter: ``params -> (N,)``, drawn diameters of the atoms.
    """

    interaction: Interaction
    params: dict[str, Parameter]
    reach: Callable[[Mapping[str, np.ndarray]], float]
    scale: Callable[[Params], Scale]
    force_unit: Callable[[Params], jax.Array]
    diameter: Callable[[Params], jax.Array]


def force_field(
    potential: str,
    species: np.ndarray,
    kinds: int,
    *,
    density: float | None,
    cutoff: float,
    switch_on: float,
    exponent: float,
) -> ForceField:
    """Return a potential for atoms of given species.

    Args:
        potential: one of `POTENTIALS`.
        species: of each atom, integers in [0, kinds), (N,).
        kinds: number of species S; parameters of pairs are tables (S, S) for more than one.
        density: atoms per volume; ``None`` in free space.
        cutoff: cut-off of Lennard-Jones and Morse, length; 0 for none, in free space only.
        switch_on: distance at which the switch begins, in units of the cut-off.
        exponent: of soft spheres.

    Raises:
        UserError: if an argument is out of its range.
    """
    if potential not in POTENTIALS:
        raise UserError(f"unknown potential '{potential}'{nearest(potential, POTENTIALS)}")
    if potential == "silicon":
        return _silicon(len(species))
    if potential == "soft_sphere":
        return _pairs(soft_sphere(exponent), species, kinds, bond=1.0, stiffness=lambda params: 1.0)
    if not (cutoff >= 0 and math.isfinite(cutoff)):
        raise UserError(f"cutoff = {cutoff} is not a length; choose 2.5 to 4 sigma, or 0 in free space")
    if not 0 < switch_on < 1:
        raise UserError(f"switch_on = {switch_on} is not between 0 and 1, in units of the cut-off; choose 0.8")
    if not cutoff and density is not None:
        raise UserError(f"potential = '{potential}' needs a cutoff in a periodic cell; choose 2.5 to 4 sigma")
    if not cutoff and len(species) > MOST_WITHOUT_CUTOFF:
        raise UserError(f"{len(species)} atoms without a cutoff are too many pairs; choose a cutoff of 2.5 to 4 sigma")
    ending = {"cutoff": cutoff, "switch_on": switch_on * cutoff, "density": density}
    if potential == "morse":
        return _pairs(
            morse(), species, kinds, bond=1.0, stiffness=lambda params: 2 * params["rho"] ** 2, rho=6.0, **ending
        )
    return _pairs(
        lennard_jones(),
        species,
        kinds,
        bond=2 ** (1 / 6),
        stiffness=lambda params: LENNARD_JONES_STIFFNESS,
        **ending,
    )


def _silicon(count: int) -> ForceField:
    return ForceField(
        interaction=stillinger_weber(skin=SKIN),
        params=dict(SILICON_PARAMETERS),
        reach=lambda values: STANDARD.reach * float(values["sigma"]),
        scale=lambda params: Scale(
            length=BOND * params["sigma"],
            stiffness=STIFFNESS * params["epsilon"] / params["sigma"] ** 2,
        ),
        force_unit=lambda params: params["epsilon"] / params["sigma"],
        diameter=lambda params: jnp.full(count, BOND, params["sigma"].dtype) * params["sigma"],
    )


def _pairs(
    potential: PairPotential,
    species: np.ndarray,
    kinds: int,
    *,
    bond: float,
    stiffness: Callable[[Params], jax.Array | float],
    cutoff: float | None = None,
    switch_on: float = 0.0,
    density: float | None = None,
    **others: float,
) -> ForceField:
    """Return a pair potential of range sigma (``cutoff`` ``None``), with a cut-off, or without (``cutoff`` zero)."""
    known = MORSE_PARAMETERS if "rho" in others else LENNARD_JONES_PARAMETERS
    table = 1.0 if kinds == 1 else ((1.0,) * kinds,) * kinds

    def of_pairs(params: Params) -> dict[str, jax.Array]:
        # Symmetrized, so that action equals reaction for any table.
        values = {name: params[name] for name in ("epsilon", "sigma")}
        values = {name: (value + value.T) / 2 if value.ndim == 2 else value for name, value in values.items()}
        values |= {name: params[name] for name in others}
        if cutoff:
            dtype = params["sigma"].dtype
            values |= {"cutoff": jnp.asarray(cutoff, dtype), "switch_on": jnp.asarray(switch_on, dtype)}
        return values

    def contact(params: Params) -> jax.Array:
        return jnp.max(of_pairs(params)["sigma"])

    def like(params: Params, name: str) -> jax.Array:
        """Return a parameter between atoms of the same species, (S,)."""
        return jnp.diagonal(params[name]) if kinds > 1 else params[name][None]

    def unit(params: Params, name: str) -> jax.Array:
        return like(params, name).mean()

    capacity = None
    if cutoff and density is not None:
        capacity = min(len(species), math.ceil(ROOM * density * 4 / 3 * math.pi * ((1 + SKIN) * cutoff) ** 3))
    return ForceField(
        interaction=pair_interaction(
            switched(potential) if cutoff else potential,
            cutoff=contact if cutoff is None else cutoff or None,
            parameters=of_pairs,
            species=species.tolist() if kinds > 1 else None,
            skin=SKIN,
            capacity=capacity,
        ),
        params={
            name: dataclasses.replace(known[name], default=table) if name in PAIR_PARAMETERS else known[name]
            for name in (*PAIR_PARAMETERS, *others)
        },
        reach=lambda values: float(np.max(values["sigma"])) if cutoff is None else cutoff or math.inf,
        scale=lambda params: Scale(
            length=bond * unit(params, "sigma"),
            stiffness=stiffness(params) * unit(params, "epsilon") / unit(params, "sigma") ** 2,
        ),
        force_unit=lambda params: unit(params, "epsilon") / unit(params, "sigma"),
        diameter=lambda params: bond * like(params, "sigma")[jnp.asarray(species)],
    )
