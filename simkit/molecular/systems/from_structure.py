"""Structures from a file, relaxed with a potential of choice."""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parameter import NOT_NEGATIVE, UNBOUNDED, Parameter
from simkit.core.quantities import described
from simkit.core.ranges import check_bounds
from simkit.core.simulation import Arrays, Params, Simulation, State
from simkit.errors import UserError, listed
from simkit.molecular import spaces
from simkit.molecular.models.force_fields import PAIR_PARAMETERS, ForceField, force_field
from simkit.molecular.models.quantities import particle_quantities
from simkit.molecular.relaxation import relaxation
from simkit.molecular.spaces import Cell
from simkit.molecular.structures.extended_xyz import parse_extended_xyz
from simkit.molecular.structures.structures import Structure, check_symbol, widths

DIMENSION = 3
# The symbol of an atom of no species, as in reduced units.
ANY = "X"
# What every pair potential takes for each pair of species.
# Atoms nearer than this, in units of the structure's size, are in one place: no force can tell them apart.
SAME_PLACE = 1e-9


@described(
    particle_quantities(dimension="3"),
    atomic_number=("1", "atomic number"),
    formation_energy=("energy", "energy above that of the reference"),
)
def relaxed_structure(
    *,
    structure: str,
    frame: int = -1,
    potential: str = "lennard_jones",
    species: Sequence[str] = (),
    cutoff: float = 0.0,
    switch_on: float = 0.8,
    exponent: float = 2.0,
    relax_cell: bool = False,
    minimizer: str = "lbfgs",
    force_tolerance: float = 1e-10,
) -> Simulation:
    """Return the relaxation of the atoms of a structure, and of its cell if wanted, to mechanical equilibrium.

    Lengths are in the unit of the structure. Atoms move in free space, or in the cell if it is periodic.

    The parameters ``epsilon`` and ``sigma`` of S > 1 species are symmetric tables (S, S); they have a default for
    silicon and for atoms ``"X"`` only, and must be given for other elements. ``reference_energy``, one number per
    species, is what ``formation_energy`` is counted from.

    Args:
        structure: extended XYZ text.
        frame: which of its frames; -1 is the last.
        potential: ``"lennard_jones"``, ``"morse"``, ``"soft_sphere"``, or ``"silicon"`` (Stillinger-Weber; eV and
            angstrom).
        species: chemical symbols of the atoms that the parameters are for, in the order of the tables; may be left
            out where all atoms are ``"X"``, of no species, and with silicon.
        cutoff: where Lennard-Jones and Morse end, length, at most half the narrowest width of the cell; 0: nowhere, in
            free space only. Good values: 2.5 to 4 sigma.
        switch_on: where they begin to fade, in units of the cut-off. Good values: 0.7 to 0.9.
        exponent: of soft spheres, 2 (harmonic) or 2.5 (Hertzian).
        relax_cell: whether the cell relaxes too, all six strains of it.
        minimizer: as for `simkit.molecular.minimizers.by_name`.
        force_tolerance: largest force left, in units of epsilon / sigma. Good values: 1e-10 in float64, 1e-3 in
            float32.

    Raises:
        UserError: if the text is no structure, holds species that the potential does not know or two atoms in one
            place, or if an argument is out of its range. The simulation's ``check`` refuses species without parameters,
            and parameters with which the interaction reaches beyond half the cell.
    """
    atoms = _chosen(parse_extended_xyz(structure, "structure"), frame)
    _refuse_same_place(atoms)
    allowed = ("Si",) if potential == "silicon" else listed(species, "species")
    kind, names = _species(atoms, allowed, potential)
    box = atoms.cell if atoms.periodic else None
    density = None if box is None else len(atoms) / abs(float(np.linalg.det(box)))
    field = force_field(
        potential, kind, len(names), density=density, cutoff=cutoff, switch_on=switch_on, exponent=exponent
    )
    counts, number = np.bincount(kind, minlength=len(names)), _atomic_numbers(atoms)

    def start(params: Params, key: jax.Array) -> jax.Array:
        home = jnp.asarray(atoms.position, params["disorder"].dtype)
        return home + params["disorder"] * jax.random.uniform(key, home.shape, home.dtype, minval=-1, maxval=1)

    def cell(params: Params) -> jax.Array:
        return jnp.asarray(box, params["disorder"].dtype)

    def displacement(position: jax.Array, deformed: Cell) -> jax.Array:
        """Return how far every atom is from its place in the structure, the drift of all taken away, (N,)."""
        home = jnp.asarray(atoms.position, position.dtype)
        if deformed is not None:
            home = home @ spaces.inverse_of(jnp.asarray(box, position.dtype)) @ deformed
        away = spaces.displacement_without_drift(spaces.of_cell(deformed, DIMENSION), position, home)
        return jnp.sqrt(jnp.sum(away**2, axis=1))

    def observe(position: jax.Array, deformed: Cell, params: Params) -> Arrays:
        return {
            "diameter": field.diameter(params).astype(position.dtype),
            "atomic_number": jnp.asarray(number),
            "displacement": displacement(position, deformed),
        }

    zero = 0.0 if len(names) == 1 else (0.0,) * len(names)
    params = field.params | {
        "reference_energy": Parameter(
            zero, unit="energy", doc="energy of an atom of each species, from which the formation energy is counted"
        ),
        "disorder": Parameter(
            0.0, NOT_NEGATIVE, "length", "furthest an atom starts from its place in the file along each axis"
        ),
    }
    if potential != "silicon" and set(names) != {ANY}:
        # No element has a parameter of one by nature: NaN until it is given, which `check` refuses.
        params |= {name: _unknown(params[name]) for name in PAIR_PARAMETERS}
    if relax_cell:
        params |= {"pressure": Parameter(0.0, unit="energy / length^3", doc="external pressure")}
    simulation = relaxation(
        field.interaction,
        start,
        params=params,
        scale=field.scale,
        cell=None if box is None else cell,
        minimizer=minimizer,
        force_tolerance=force_tolerance,
        force_unit=field.force_unit,
        relax_cell=relax_cell,
        observe=observe,
        measure=lambda position, deformed, params: {"largest_displacement": displacement(position, deformed).max()},
        dimensions={"atomic_number": ("particle",), "displacement": ("particle",)},
    )

    def check(params: Params, key: jax.Array) -> None:
        del key
        _refuse_missing(names, potential, params)
        check_bounds({name: field.params[name] for name in PAIR_PARAMETERS}, params)
        _refuse_short_cell(box, field, params)

    simulation = dataclasses.replace(simulation, check=check)
    return _with_formation_energy(simulation, counts)


def _unknown(parameter: Parameter) -> Parameter:
    """Return a parameter without a value; that it is missing is told before what it may be."""
    return dataclasses.replace(
        parameter, default=np.full(np.shape(parameter.default), np.nan).tolist(), bounds=UNBOUNDED
    )


def _with_formation_energy(simulation: Simulation, counts: np.ndarray) -> Simulation:
    """Return the simulation with the energy in excess of the same number of reference atoms among its diagnostics."""

    def diagnose(state: State, params: Params) -> Arrays:
        numbers = simulation.diagnose(state, params)
        reference = jnp.sum(jnp.asarray(counts, numbers["energy"].dtype) * params["reference_energy"])
        return numbers | {"formation_energy": numbers["energy"] - reference}

    return dataclasses.replace(simulation, diagnose=diagnose)


def _chosen(frames: list[Structure], frame: int) -> Structure:
    if not -len(frames) <= frame < len(frames):
        raise UserError(f"frame = {frame}; the structure has {len(frames)}, choose 0 to {len(frames) - 1}, or -1")
    return frames[frame]


def _species(structure: Structure, allowed: tuple[str, ...], potential: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the species of each atom, (N,), and the names of the species in order."""
    for symbol in allowed:
        check_symbol(symbol, "species")
    if len(set(allowed)) < len(allowed):
        raise UserError(f"species = {list(allowed)} names one twice; remove it")
    names = allowed or (ANY,)
    found = sorted(set(structure.symbols))
    for index, symbol in enumerate(structure.symbols):
        if symbol not in names:
            known = f"is for {', '.join(names)} only" if allowed else "has parameters for no species yet"
            remedy = "change the atom or choose another potential"
            if potential != "silicon":
                listed = ", ".join(f'"{name}"' for name in [*allowed, *(name for name in found if name not in allowed)])
                remedy = f"change the atom, or set species = [{listed}] and give params epsilon and sigma in that order"
            raise UserError(
                f"structure: atom {index} (the first is 0) is {symbol}, but potential = '{potential}' here {known}; "
                f"{remedy}"
            )
    return np.array([names.index(symbol) for symbol in structure.symbols], np.int32), names


def _refuse_same_place(structure: Structure) -> None:
    """Raise if two atoms, or one and an image of another, are in one place."""
    from scipy.spatial import KDTree

    if structure.periodic:
        assert structure.cell is not None  # a periodic structure has one
        place = structure.position @ np.linalg.inv(structure.cell)
        place = place - np.floor(place)
        place = np.where(place < 1, place, 0)
    else:
        size = np.ptp(structure.position, axis=0).max() or 1.0
        place = (structure.position - structure.position.min(axis=0)) / size
    distance, partner = map(np.asarray, KDTree(place, boxsize=1.0 if structure.periodic else None).query(place, k=2))
    if (distance[:, 1] < SAME_PLACE).any():
        first = int(np.flatnonzero(distance[:, 1] < SAME_PLACE)[0])
        second = next(int(index) for index in partner[first] if index != first)
        raise UserError(
            f"structure: atoms {first} and {second} (the first is 0) are in one place, so no direction leads them "
            "apart; move or remove one of them"
        )


def _refuse_missing(names: tuple[str, ...], potential: str, params: Params) -> None:
    """Raise if a pair of species has no parameters."""
    for parameter in PAIR_PARAMETERS:
        table = np.asarray(params[parameter]).reshape(len(names), -1) if potential != "silicon" else np.zeros(0)
        missing = np.argwhere(np.isnan(table))
        if len(missing):
            pair, given = "-".join(names[index] for index in missing[0][: table.ndim]), np.diagonal(~np.isnan(table))
            known = ", ".join(name for name, has in zip(names, given, strict=True) if has) or "no species"
            form = "one number" if len(names) == 1 else f"a symmetric {len(names)} x {len(names)} table"
            raise UserError(
                f"{parameter} of {pair} is not given, so potential = '{potential}' has no interaction for it (it has "
                f"one for {known}); give [params.{parameter}] as {form} in the order {', '.join(names)}"
            )


def _refuse_short_cell(box: np.ndarray | None, field: ForceField, params: Params) -> None:
    """Raise if the interaction reaches beyond half the cell."""
    if box is None:
        return
    reach, width = field.reach({name: np.asarray(params[name]) for name in field.params}), widths(box).min()
    if 2 * reach > width * (1 + SAME_PLACE):
        raise UserError(
            f"the interaction reaches {reach:.6g}, beyond half the cell, whose narrowest width is {width:.6g}; "
            "repeat the cell, or shorten the interaction"
        )


def _atomic_numbers(structure: Structure) -> np.ndarray:
    from ase.data import atomic_numbers

    return np.array([atomic_numbers[symbol] for symbol in structure.symbols], np.int32)
