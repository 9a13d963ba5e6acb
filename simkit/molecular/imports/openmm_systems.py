"""Systems of OpenMM as keywords of ``molecular.system``: force by force, with its formulas as expressions."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simkit.core.arguments import check_shape, check_type
from simkit.errors import UserError, package
from simkit.molecular.bonded.topology import EXCLUSIONS, molecule
from simkit.molecular.description.units import SYSTEMS
from simkit.molecular.imports.formulas import expression_of, renamed
from simkit.molecular.imports.imported import (
    ImportedSystem,
    Terms,
    molecules_from,
    species_settings,
    text_of_positions,
)

EXCEPTION = "coulomb_constant*product/r + 4*epsilon*((sigma/r)**12 - (sigma/r)**6)"
# Virtual sites that are read.
AVERAGES = ("TwoParticleAverageSite", "ThreeParticleAverageSite")
# Forces that act on a run, and not on the energy.
SKIPPED = {"CMMotionRemover", "AndersenThermostat", "MonteCarloBarostat"}
NO_CUTOFF, CUTOFF, PERIODIC, EWALD, PARTICLE_MESH = range(5)


@dataclasses.dataclass
class _Reading:
    """What has been read.

    Attributes:
        count: number of particles.
        parameters: values of formulas.
        terms: bonded terms.
        interactions: of pairs.
        values: of particles by name, (N,) each.
        charge: of each particle; ``None`` if none interact.
        excluded: sets of pairs that forces leave out, by the name of the force.
        custom: terms of CustomBondForce.
        number: of the last set of parameters.
    """

    count: int
    parameters: dict[str, float] = dataclasses.field(default_factory=dict)
    terms: list[Terms] = dataclasses.field(default_factory=list)
    interactions: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    values: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    charge: np.ndarray | None = None
    excluded: dict[str, set[tuple[int, int]]] = dataclasses.field(default_factory=dict)
    custom: list[Terms] = dataclasses.field(default_factory=list)
    number: int = 0

    def add(
        self, key: str, size: int, rows: Iterable[tuple], table: Callable[..., Mapping[str, Any]], prefix: str
    ) -> None:
        """Add the terms of a force: those of equal numbers have one set of parameters.

        Args:
            key: of the settings of a molecule.
            size: atoms of a term.
            rows: atoms and numbers of each term.
            table: ``numbers -> `` settings, whose values become parameters.
            prefix: of the names of these.
        """
        of_numbers: dict[tuple, list[tuple]] = {}
        for row in rows:
            of_numbers.setdefault(row[size:], []).append(row[:size])
        for numbers, members in of_numbers.items():
            self.number += 1
            settings = dict(table(*numbers))
            if "values" in settings:
                names = {name: f"{prefix}_{self.number}_{name}" for name in settings["values"]}
                self.parameters.update((names[name], value) for name, value in settings["values"].items())
                settings["values"] = names
            self.terms.append(Terms(key, settings, np.array(members, int)))


def from_openmm(system: Any, positions: Any) -> ImportedSystem:
    """Return a system of OpenMM as the keywords of `simkit.molecular.system`.

    Forces: HarmonicBondForce, HarmonicAngleForce, PeriodicTorsionForce, RBTorsionForce, CMAPTorsionForce,
    NonbondedForce (exceptions, switch, reaction field, Ewald, particle mesh Ewald), CustomBondForce, CustomAngleForce,
    CustomTorsionForce and CustomNonbondedForce, whose formulas become expressions; constraints become rigid bonds,
    which act in dynamics, and particles without mass are frozen, but for virtual sites that are averages of two or
    three particles. All other forces and sites are refused by name. Units are nm,
    kJ/mol, g/mol and ps.

    With ``useDispersionCorrection`` the tail is that of all pairs of particles, itself included, as elsewhere in
    simkit; OpenMM counts pairs otherwise, by one part in the number of particles for mixtures.

    Args:
        system: an ``openmm.System`` with its forces.
        positions: of all particles, (N, 3), a quantity or numbers in nm.

    Raises:
        UserError: if a force, or an option of it, is not served; names it. If OpenMM is not installed.

    Example:
        >>> import importlib.util
        >>> if importlib.util.find_spec("openmm") is not None:
        ...     import openmm
        ...     dimer, bond = openmm.System(), openmm.HarmonicBondForce()
        ...     indices = [dimer.addParticle(mass) for mass in (12.0, 16.0)]
        ...     indices += [bond.addBond(*indices, 0.113, 1e5), dimer.addForce(bond)]
        ...     found = molecular.from_openmm(dimer, [[0, 0, 0], [0.12, 0, 0]])
        ...     assert found.settings["parameters"] == {"bond_1_stiffness": 1e5, "bond_1_length": 0.113}

    Reference: Eastman et al., PLoS Comput. Biol. 13, e1005659 (2017), doi:10.1371/journal.pcbi.1005659.
    """
    library = package("openmm", "from_openmm", "simkit-physics[openmm]")
    check_type("system", system, "an openmm.System, as of createSystem", library.System)
    count = system.getNumParticles()
    reading = _Reading(count)
    _read_sites(system, reading)
    for force in system.getForces():
        name = type(force).__name__
        if name in SKIPPED:
            continue
        if name not in READERS:
            raise UserError(f"from_openmm: {name} is not served; remove it, or write it as one of {', '.join(READERS)}")
        if name in reading.excluded:
            raise UserError(f"from_openmm: there are two forces {name}; make them one")
        READERS[name](force, reading)
    rows = [system.getConstraintParameters(index) for index in range(system.getNumConstraints())]
    of_lengths: dict[float, list[tuple[int, int]]] = {}
    for first, second, length in rows:
        of_lengths.setdefault(_plain(length), []).append((first, second))
    reading.terms += [Terms("rigid", {"length": r}, np.array(pairs, int)) for r, pairs in of_lengths.items()]
    exclude = _exclusion(reading)
    mass = np.array([_plain(system.getParticleMass(index)) for index in range(count)])
    position = np.array(_plain(positions), float).reshape(-1, 3)
    check_shape("positions", position, f"three coordinates of each of {count} particles", (count, 3))
    values = {"mass": np.where(mass > 0, mass, 1.0), **({} if reading.charge is None else {"charge": reading.charge})}
    is_site = np.array([system.isVirtualSite(index) for index in range(count)])
    columns = np.stack([mass, is_site, *(values | reading.values).values()], axis=1)
    _, species = np.unique(columns, axis=0, return_inverse=True)
    # In the order of the particles.
    kinds, first = np.unique(species, return_index=True)
    rank = np.empty(len(kinds), int)
    rank[np.argsort(first)] = np.arange(len(kinds))
    species, firsts = rank[species], np.sort(first)
    names = [f"type_{number}" for number in range(1, len(kinds) + 1)]
    found = molecules_from(species, names, reading.terms, {"exclude": exclude})
    particles = species_settings(found, species, names, values)
    for kind, name in enumerate(names):
        if mass[firsts[kind]] == 0 and not system.isVirtualSite(int(firsts[kind])):
            particles[name]["frozen"] = True
        if reading.values:
            of_species = {value: f"{value}_{name}" for value in reading.values}
            reading.parameters.update(
                (of_species[value], float(numbers[firsts[kind]])) for value, numbers in reading.values.items()
            )
            particles[name]["values"] = of_species
    settings: dict[str, Any] = {
        "particles": particles,
        "interactions": reading.interactions,
        "start": {"positions": text_of_positions(position[found.order])},
        "units": "md",
        "parameters": reading.parameters,
    }
    if found.molecules:
        settings["molecules"] = found.molecules
    if system.usesPeriodicBoundaryConditions():
        vectors = np.array([_plain(row) for row in system.getDefaultPeriodicBoxVectors()], float)
        is_tilted = bool((vectors != np.diag(np.diag(vectors))).any())
        settings["cell"] = {"vectors": vectors.tolist()} if is_tilted else {"lengths": np.diag(vectors).tolist()}
    return ImportedSystem(settings, found.order)


def _read_sites(system: Any, reading: _Reading) -> None:
    """Read virtual sites that are averages of other particles."""
    of_weights: dict[tuple, list[tuple]] = {}
    for index in range(system.getNumParticles()):
        if not system.isVirtualSite(index):
            continue
        site = system.getVirtualSite(index)
        if (name := type(site).__name__) not in AVERAGES:
            problem = f"virtual sites {name} are not served, but {' and '.join(AVERAGES)}"
            raise UserError(f"from_openmm: {problem}; leave them out, or write them as one of these")
        places = range(site.getNumParticles())
        weights = tuple(site.getWeight(place) for place in places)
        of_weights.setdefault(weights, []).append((index, *(site.getParticle(place) for place in places)))
    for weights, rows in of_weights.items():
        reading.terms.append(Terms("sites", {"weights": list(weights)}, np.array(rows, int)))


def _plain(value: Any) -> Any:
    """Return numbers in nm, ps, g/mol, kJ/mol and radians."""
    unit = package("openmm.unit", "from_openmm", "simkit-physics[openmm]")
    return value.value_in_unit_system(unit.md_unit_system) if unit.is_quantity(value) else value


def _rows(force: Any, what: str) -> Iterator[tuple]:
    """Yield the entries of a force, numbers without units and lists of numbers unpacked."""
    every = f"{what}s" if what != "Exclusion" else "Exclusions"
    getter = getattr(force, f"get{what}Parameters" if what != "Exclusion" else "getExclusionParticles")
    for index in range(getattr(force, f"getNum{every}")()):
        row: list[Any] = []
        for entry in getter(index):
            row += entry if isinstance(entry, tuple | list) else [_plain(entry)]
        yield tuple(row)


def _named(potential: str, /, **values: float) -> dict[str, Any]:
    return {"potential": potential, "values": values}


def _read_bonds(force: Any, reading: _Reading) -> None:
    reading.add("bonds", 2, _rows(force, "Bond"), lambda r, k: _named("harmonic", stiffness=k, length=r), "bond")


def _read_angles(force: Any, reading: _Reading) -> None:
    reading.add("angles", 3, _rows(force, "Angle"), lambda t, k: _named("harmonic", stiffness=k, angle=t), "angle")


def _read_torsions(force: Any, reading: _Reading) -> None:
    reading.add(
        "dihedrals",
        4,
        (row for row in _rows(force, "Torsion") if row[-1]),
        lambda n, phase, k: _named("periodic", strength=k, phase=phase) | {"periodicity": int(n)},
        "torsion",
    )


def _read_ryckaert_bellemans(force: Any, reading: _Reading) -> None:
    reading.add(
        "dihedrals",
        4,
        _rows(force, "Torsion"),
        lambda *c: _named("ryckaert_bellemans", **{f"c{power}": value for power, value in enumerate(c)}),
        "torsion",
    )


def _read_maps(force: Any, reading: _Reading) -> None:
    rows = np.array(list(_rows(force, "Torsion")), int).reshape(-1, 9)
    for index in range(force.getNumMaps()):
        size, energies = force.getMapParameters(index)
        members = rows[rows[:, 0] == index, 1:]
        if len(members):
            # OpenMM lists the first angle first.
            table = np.reshape([_plain(energy) for energy in energies], (size, size)).T.tolist()
            reading.terms.append(Terms("torsion_maps", {"energies": table}, members))


def _read_nonbonded(force: Any, reading: _Reading) -> None:
    method = force.getNonbondedMethod()
    problems = {
        "parameter offsets": force.getNumParticleParameterOffsets() + force.getNumExceptionParameterOffsets(),
        "the method LJPME": method > PARTICLE_MESH,
        "a direct space alone": not force.getIncludeDirectSpace(),
    }
    if problem := next((name for name, there in problems.items() if there), ""):
        raise UserError(f"from_openmm: NonbondedForce with {problem} is not served; leave it out")
    charge, sigma, epsilon = np.array(list(_rows(force, "Particle")), float).T
    cutoff = None if method == NO_CUTOFF else _plain(force.getCutoffDistance())
    ends = _ending(force, method)
    if epsilon.any():
        # Only products with epsilon matter, and equal lengths make fewer species.
        reading.values |= {"epsilon": epsilon, "sigma": np.where(epsilon > 0, sigma, 1.0)}
        tail = {"tail": True} if method >= PERIODIC and force.getUseDispersionCorrection() else {}
        reading.interactions.append({"potential": "lennard_jones", "mixing": "lorentz_berthelot", **ends, **tail})
    rows = list(_rows(force, "Exception"))
    reading.excluded["NonbondedForce"] = {_sorted(row[:2]) for row in rows}
    acting = [row for row in rows if row[2] or row[4]]
    if charge.any() or any(row[2] for row in acting):
        reading.parameters["coulomb_constant"] = SYSTEMS["md"].constants["coulomb_constant"]
    if charge.any():
        reading.charge = charge
        reading.interactions.append(_of_charges(force, method, cutoff))
    of_numbers: dict[tuple, list[tuple[int, int]]] = {}
    for first, second, product, length, depth in acting:
        of_numbers.setdefault((product, length, depth), []).append((first, second))
    for (product, length, depth), pairs in of_numbers.items():
        values = {"product": product, "sigma": length, "epsilon": depth}
        reading.terms.append(Terms("pairs", {"energy": EXCEPTION, "values": values}, np.array(pairs, int)))


def _of_charges(force: Any, method: int, cutoff: float | None) -> dict[str, Any]:
    if method == NO_CUTOFF:
        return {"potential": "coulomb"}
    if method in (CUTOFF, PERIODIC):
        values = {"permittivity": force.getReactionFieldDielectric(), "radius": cutoff}
        return {"potential": "reaction_field", "values": values}
    name = "ewald" if method == EWALD else "particle_mesh_ewald"
    return {"potential": name, "cutoff": cutoff, "tolerance": force.getEwaldErrorTolerance()}


def _ending(force: Any, method: int) -> dict[str, Any]:
    """Return how pair energies end."""
    if method == NO_CUTOFF:
        return {}
    cutoff = _plain(force.getCutoffDistance())
    if not force.getUseSwitchingFunction():
        return {"cutoff": cutoff, "ending": "truncate"}
    return {"cutoff": cutoff, "ending": "switch", "switch_on": _plain(force.getSwitchingDistance()) / cutoff}


def _sorted(pair: Sequence[int]) -> tuple[int, int]:
    first, second = sorted(pair)
    return int(first), int(second)


def _formula(force: Any, reading: _Reading) -> str:
    """Return the energy of a custom force as an expression, and keep its global parameters."""
    name = type(force).__name__
    for index in range(force.getNumGlobalParameters()):
        reading.parameters[force.getGlobalParameterName(index)] = force.getGlobalParameterDefaultValue(index)
    if force.getNumEnergyParameterDerivatives():
        raise UserError(f"from_openmm: {name} with derivatives by parameters is not served; simkit has them all")
    return expression_of(force.getEnergyFunction(), f"from_openmm: {name}")


def _custom(key: str, size: int, what: str) -> Callable[[Any, _Reading], None]:
    def read(force: Any, reading: _Reading) -> None:
        # OpenMM calls a dihedral theta, too.
        energy = renamed(_formula(force, reading), {"theta": "phi"} if size == 4 else {})
        names = [
            getattr(force, f"getPer{what}ParameterName")(index)
            for index in range(getattr(force, f"getNumPer{what}Parameters")())
        ]

        def table(*numbers: float) -> Mapping[str, Any]:
            return {"energy": energy, "values": dict(zip(names, numbers, strict=True))}

        before = len(reading.terms)
        reading.add(key, size, _rows(force, what), table, what.lower())
        if key == "bonds":
            reading.custom += reading.terms[before:]

    return read


def _read_custom_nonbonded(force: Any, reading: _Reading) -> None:
    if force.getNumInteractionGroups() or force.getNumTabulatedFunctions() or force.getNumComputedValues():
        problem = "interaction groups, tabulated functions or computed values"
        raise UserError(f"from_openmm: CustomNonbondedForce with {problem} is not served; leave it out")
    method = force.getNonbondedMethod()
    energy, names = _formula(force, reading), []
    for index in range(force.getNumPerParticleParameters()):
        names.append(force.getPerParticleParameterName(index))
    changes = {f"{name}{end}": f"custom_{name}{suffix}" for name in names for end, suffix in (("1", "_i"), ("2", "_j"))}
    rows = np.array(list(_rows(force, "Particle")), float).reshape(reading.count, len(names))
    reading.values |= {f"custom_{name}": column for name, column in zip(names, rows.T, strict=True)}
    tail = {"tail": True} if method == PERIODIC and force.getUseLongRangeCorrection() else {}
    reading.interactions.append({"energy": renamed(energy, changes), **_ending(force, method), **tail})
    reading.excluded["CustomNonbondedForce"] = {_sorted(row) for row in _rows(force, "Exclusion")}


READERS: dict[str, Callable[[Any, _Reading], None]] = {
    "HarmonicBondForce": _read_bonds,
    "HarmonicAngleForce": _read_angles,
    "PeriodicTorsionForce": _read_torsions,
    "RBTorsionForce": _read_ryckaert_bellemans,
    "CMAPTorsionForce": _read_maps,
    "NonbondedForce": _read_nonbonded,
    "CustomBondForce": _custom("bonds", 2, "Bond"),
    "CustomAngleForce": _custom("angles", 3, "Angle"),
    "CustomTorsionForce": _custom("dihedrals", 4, "Torsion"),
    "CustomNonbondedForce": _read_custom_nonbonded,
}


def _exclusion(reading: _Reading) -> str:
    """Return up to how many bonds apart pairs do not interact, which is what all forces leave out.

    Raises:
        UserError: if that is no number of bonds.
    """
    if not reading.excluded:
        return "angles"
    custom = {id(each) for each in reading.custom}
    keys = ("bonds", "rigid", "sites")
    plain = [each.members[:, :2] for each in reading.terms if each.key in keys and id(each) not in custom]
    # Bonds with a formula may be bonds, or energies of pairs further apart.
    for key, bonds in (("bonds", [*plain, *(each.members for each in reading.custom)]), ("pairs", plain)):
        rows = np.sort(np.concatenate([np.zeros((0, 2), int), *bonds]), axis=1)
        if len(np.unique(rows, axis=0)) < len(rows):
            continue
        topology = molecule(reading.count, rows, angles=(), dihedrals=())
        for name in EXCLUSIONS:
            pairs = set(map(tuple, topology.pairs_within(name).tolist()))  # type: ignore[arg-type]
            if all(pairs == each for each in reading.excluded.values()):
                reading.terms[:] = [each._replace(key=key) if id(each) in custom else each for each in reading.terms]
                return name
    force = next(iter(reading.excluded))
    raise UserError(
        f"from_openmm: the exceptions of {force} are not all pairs up to one, two or three bonds apart, alike for all "
        "forces; add or remove exceptions"
    )
