"""Relaxation of a structure from a file with a chosen potential."""

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
# Symbol of an atom without a chemical species, as in reduced units.
ANY = "X"
# Distance, in units of the size of the structure, below which atoms coincide: the force between them has no direction.
SAME_PLACE = 1e-9


@described(
    particle_quantities(dimension="3"),
    atomic_number=("1", "atomic number"),
    formation_energy=("energy", "energy minus the reference energies of the atoms"),
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
    """Return the relaxation of the atoms of a structure, and optionally of its cell, to mechanical equilibrium.

    Lengths are in the unit of the structure. Atoms move in free space, or in the cell if it is periodic.

    The parameters ``epsilon`` and ``sigma`` of S > 1 species are symmetric tables (S, S); they have a default for
    silicon and for atoms ``"X"`` only, and must be given for other elements. ``formation_energy`` is the energy minus
    ``reference_energy``, one number per species, summed over the atoms.

    Args:
        structure: extended XYZ text.
        frame: index of the frame; -1 is the last.
        potential: ``"lennard_jones"``, ``"morse"``, ``"soft_sphere"``, or ``"silicon"`` (Stillinger-Weber; eV and
            angstrom).
        species: chemical symbols of the species, in the order of the tables; may be left out if all atoms are ``"X"``,
            and with silicon.
        cutoff: cut-off of Lennard-Jones and Morse, length, at most half the narrowest width of the cell; 0 for none, in
            free space only. Good values: 2.5 to 4 sigma.
        switch_on: distance at which the switch begins, in units of the cut-off. Good values: 0.7 to 0.9.
        exponent: of soft spheres, 2 (harmonic) or 2.5 (Hertzian).
        relax_cell: whether all six strains of the cell relax too.
        minimizer: as for `simkit.molecular.minimizers.by_name`.
        force_tolerance: largest residual force, in units of epsilon / sigma. Good values: 1e-10 in float64, 1e-3 in
            float32.

    Raises:
        UserError: if the text is no structure, has species without parameters in the potential or two atoms in one
            place, or if an argument is out of its range. The ``check`` of the simulation refuses species without
            parameters, and parameters with a cut-off beyond half the cell.
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
        """Return the distance of every atom from its position in the file, without the mean displacement, (N,)."""
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
            zero, unit="energy", doc="reference energy of an atom of each species for the formation energy"
        ),
        "disorder": Parameter(
            0.0,
            NOT_NEGATIVE,
            "length",
            "largest random displacement of an atom from its position in the file along each axis",
        ),
    }
    if potential != "silicon" and set(names) != {ANY}:
        # Chemical elements have no defaults: NaN until given, which `check` refuses.
        params |= {name: _without_default(params[name]) for name in PAIR_PARAMETERS}
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


def _without_default(parameter: Parameter) -> Parameter:
    """Return a parameter with default NaN, without bounds: a missing value is reported before its bounds are tested."""
    return dataclasses.replace(
        parameter, default=np.full(np.shape(parameter.default), np.nan).tolist(), bounds=UNBOUNDED
    )


def _with_formation_energy(simulation: Simulation, counts: np.ndarray) -> Simulation:
    """Return the simulation with the further diagnostic ``formation_energy``."""

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
    """Raise if two atoms, or an atom and an image of another, coincide."""
    from scipy.spatial import KDTree

    if structure.periodic:
        assert structure.cell is not None  # a periodic structure has one
        points = structure.position @ np.linalg.inv(structure.cell)
        points = points - np.floor(points)
        points = np.where(points < 1, points, 0)
    else:
        size = np.ptp(structure.position, axis=0).max() or 1.0
        points = (structure.position - structure.position.min(axis=0)) / size
    distance, partner = map(np.asarray, KDTree(points, boxsize=1.0 if structure.periodic else None).query(points, k=2))
    if (distance[:, 1] < SAME_PLACE).any():
        first = int(np.flatnonzero(distance[:, 1] < SAME_PLACE)[0])
        second = next(int(index) for index in partner[first] if index != first)
        raise UserError(
            f"structure: atoms {first} and {second} (the first is 0) are in one place, so the force between them has "
            "no direction; move or remove one of them"
        )


def _refuse_missing(names: tuple[str, ...], potential: str, params: Params) -> None:
    """Raise if a pair of species has no parameters."""
    for parameter in PAIR_PARAMETERS:
        table = np.asarray(params[parameter]).reshape(len(names), -1) if potential != "silicon" else np.zeros(0)
        missing = np.argwhere(np.isnan(table))
        if len(missing):
            pair, is_given = "-".join(names[index] for index in missing[0][: table.ndim]), np.diagonal(~np.isnan(table))
            known = ", ".join(name for name, given in zip(names, is_given, strict=True) if given) or "no species"
            form = "one number" if len(names) == 1 else f"a symmetric {len(names)} x {len(names)} table"
            raise UserError(
                f"{parameter} of {pair} is not given, so potential = '{potential}' has no interaction for it (it has "
                f"one for {known}); give [params.{parameter}] as {form} in the order {', '.join(names)}"
            )


def _refuse_short_cell(box: np.ndarray | None, field: ForceField, params: Params) -> None:
    """Raise if the cut-off exceeds half the narrowest width of the cell."""
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
