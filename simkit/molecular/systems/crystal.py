"""Relaxation of a crystal and its cell, from displaced atoms in a strained cell."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parameter import NOT_NEGATIVE, Parameter
from simkit.core.quantities import described
from simkit.core.simulation import Arrays, Params, Simulation
from simkit.errors import UserError, nearest
from simkit.molecular import spaces
from simkit.molecular.interactions.full_lennard_jones import full_lennard_jones
from simkit.molecular.interactions.stillinger_weber import stillinger_weber
from simkit.molecular.minimizers import Scale
from simkit.molecular.models.parameters import LENNARD_JONES_PARAMETERS, SILICON_PARAMETERS
from simkit.molecular.models.quantities import particle_quantities
from simkit.molecular.relaxation import relaxation
from simkit.molecular.spaces import Cell
from simkit.molecular.structures import lattices

# Density relative to that at rest for which the capacity of the neighbor list is estimated.
ROOM = 1.5
SKIN = 0.1


class LatticeKind(NamedTuple):
    """A lattice with distance 1 between nearest neighbors.

    Attributes:
        build: ``(repeats, spacing=...) -> Lattice``.
        constant: length of the cubic unit cell; of the hexagonal one, in the layer.
        volume: per atom.
    """

    build: Callable[..., lattices.Lattice]
    constant: float
    volume: float


class Material(NamedTuple):
    """A material: bond length, stiffness and parameters of its potential.

    Attributes:
        bond: distance of nearest neighbors at rest, in units of sigma.
        stiffness: curvature of the energy of a bond, in units of epsilon / sigma^2.
        reach: cut-off of the potential, in units of sigma; ``None`` if it is an argument.
        parameters: of its potential.
    """

    bond: float
    stiffness: float
    reach: float | None
    parameters: Mapping[str, Parameter]


LATTICES = {
    "face_centered_cubic": LatticeKind(lattices.face_centered_cubic, math.sqrt(2), 1 / math.sqrt(2)),
    "hexagonal_close_packed": LatticeKind(lattices.hexagonal_close_packed, 1.0, 1 / math.sqrt(2)),
    "diamond": LatticeKind(lattices.diamond, 4 / math.sqrt(3), 8 / (3 * math.sqrt(3))),
}
MATERIALS = {
    "lennard_jones": Material(1.0901730, 57.146, None, LENNARD_JONES_PARAMETERS),
    "silicon": Material(2 ** (1 / 6), 20.879, 1.8, SILICON_PARAMETERS),
}

PARAMETERS = {
    "pressure": Parameter(0.0, unit="energy / length^3", doc="external pressure; a crystal under tension may tear"),
    "initial_strain": Parameter(0.05, doc="isotropic strain of the crystal at the start"),
    "disorder": Parameter(
        0.1,
        NOT_NEGATIVE,
        doc="largest random displacement of an atom from its site along each axis, in nearest-neighbor distances",
    ),
}


@described(particle_quantities(dimension="3"))
def crystal(
    *,
    material: str = "lennard_jones",
    lattice: str = "face_centered_cubic",
    repeats: Sequence[int] = (6, 6, 6),
    cutoff: float | None = None,
    switch_on: float | None = None,
    minimizer: str = "lbfgs",
    force_tolerance: float = 1e-10,
) -> Simulation:
    """Return the relaxation of a disordered crystal and of its periodic cell to mechanical equilibrium under pressure.

    It minimizes the enthalpy ``E + p V`` over all atoms and the six strains of the cell. E is the Stillinger-Weber
    energy of silicon, or the sum over pairs of ``4 epsilon ((sigma/r)^12 - (sigma/r)^6) S(r)``, where S falls from 1
    at ``switch_on`` to 0 at ``cutoff``; the part removed by S is added as a uniform tail correction. At the default
    cut-off that leaves an error of 3e-5 of the energy.

    With a ``disorder`` far above 0.2 the atoms may not return to the crystal.

    Args:
        material: ``"lennard_jones"`` or ``"silicon"`` (eV and angstrom).
        lattice: ``"face_centered_cubic"``, ``"hexagonal_close_packed"`` or ``"diamond"``.
        repeats: unit cells along each axis; of 4, 4 and 8 atoms. Half the narrowest width must exceed the cut-off.
        cutoff: in units of sigma; 4 by default. For Lennard-Jones: silicon has its own.
        switch_on: in units of sigma; 2.5 by default. For Lennard-Jones.
        minimizer: as for `simkit.molecular.minimizers.by_name`.
        force_tolerance: largest residual force, in units of epsilon / sigma. Good values: 1e-10 in float64, 1e-3 in
            float32.

    Raises:
        UserError: if an argument is out of its range.

    Reference: Schwerdtfeger, Gaston, Krawczyk, Tonner, Moyano, Phys. Rev. B 73, 064112 (2006),
    doi:10.1103/PhysRevB.73.064112; Stillinger, Weber, Phys. Rev. B 31, 5262 (1985), doi:10.1103/PhysRevB.31.5262.
    """
    if material not in MATERIALS:
        raise UserError(f"unknown material '{material}'{nearest(material, list(MATERIALS))}")
    if lattice not in LATTICES:
        raise UserError(f"unknown lattice '{lattice}'{nearest(lattice, list(LATTICES))}")
    kind, atoms = LATTICES[lattice], MATERIALS[material]
    for name, value in (("cutoff", cutoff), ("switch_on", switch_on)):
        if value is not None and atoms.reach is not None:
            raise UserError(f"{name} = {value:g} has no effect on {material}, which has its own cut-off; leave it out")
    cutoff, switch_on = 4.0 if cutoff is None else cutoff, 2.5 if switch_on is None else switch_on
    if not 0 < switch_on < cutoff:
        raise UserError(f"switch_on = {switch_on} is not between 0 and cutoff = {cutoff}; choose 2.5 and 4")
    repeats = tuple(repeats)
    perfect = kind.build(repeats)
    reach = atoms.reach or cutoff
    width = atoms.bond * float(np.diag(np.asarray(perfect.cell)).min())
    if width < 2 * reach:
        raise UserError(
            f"repeats = {list(repeats)} make a cell {width:.3g} sigma wide; "
            f"the cut-off of {reach:g} needs {2 * reach:g}"
        )
    count, sites = len(perfect.position), np.asarray(perfect.position)
    # Neighbors within the reach of the list, from the density.
    expected = math.ceil(ROOM * 4 / 3 * math.pi * ((1 + SKIN) * reach / atoms.bond) ** 3 / kind.volume)
    capacity = min(expected, count)
    interaction = (
        stillinger_weber(capacity=capacity, skin=SKIN)
        if material == "silicon"
        else full_lennard_jones(switch_on, cutoff, capacity=capacity, skin=SKIN, method="neighbor_list")
    )

    def spacing(params: Params) -> jax.Array:
        return (1 + params["initial_strain"]) * atoms.bond * params["sigma"]

    def cell(params: Params) -> jax.Array:
        return jnp.asarray(perfect.cell, params["sigma"].dtype) * spacing(params)

    def start(params: Params, key: jax.Array) -> jax.Array:
        dtype = params["sigma"].dtype
        shift = jax.random.uniform(key, sites.shape, dtype, minval=-1, maxval=1)
        return (jnp.asarray(sites, dtype) + params["disorder"] * shift) * spacing(params)

    def scale(params: Params) -> Scale:
        unit = params["epsilon"] / params["sigma"] ** 2
        return Scale(length=atoms.bond * params["sigma"], stiffness=atoms.stiffness * unit)

    def displacement(position: jax.Array, deformed: Cell) -> jax.Array:
        """Return the distance of every atom from its site, without the mean displacement, (N,)."""
        deformation = spaces.inverse_of(perfect_cell(position.dtype)) @ jnp.asarray(deformed)
        home = jnp.asarray(sites, position.dtype) @ deformation
        away = spaces.displacement_without_drift(spaces.of_cell(deformed, 3), position, home)
        return jnp.sqrt(jnp.sum(away**2, axis=1))

    def perfect_cell(dtype: jnp.dtype) -> jax.Array:
        return jnp.asarray(perfect.cell, dtype)

    def measure(position: jax.Array, deformed: Cell, params: Params) -> Arrays:
        del params
        volume = spaces.of_cell(deformed, 3).volume
        bond = (volume / (count * kind.volume)) ** (1 / 3)
        return {
            "nearest_distance": bond,
            "lattice_constant": kind.constant * bond,
            "largest_displacement": displacement(position, deformed).max(),
        }

    return relaxation(
        interaction,
        start,
        params={**atoms.parameters, **PARAMETERS},
        scale=scale,
        cell=cell,
        minimizer=minimizer,
        force_tolerance=force_tolerance,
        force_unit=lambda params: params["epsilon"] / params["sigma"],
        relax_cell=True,
        observe=lambda position, deformed, params: {"displacement": displacement(position, deformed)},
        measure=measure,
        dimensions={"displacement": ("particle",)},
    )
