"""Settings of a system of particles described as data."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, UNBOUNDED, out_of_bounds
from simkit.core.parts import Choice, PartTable
from simkit.core.settings import (
    Rule,
    Setting,
    Settings,
    either,
    excludes,
    flag,
    formula,
    formula_text,
    named,
    needs,
    number,
    several,
    table,
    text,
    whole,
    word,
)
from simkit.errors import UserError
from simkit.molecular.barriers.band import KEYS
from simkit.molecular.bonded.topology import EXCLUSIONS
from simkit.molecular.description.units import SYSTEMS
from simkit.molecular.parts import (
    ANGLES,
    BAROSTATS,
    BONDS,
    DIHEDRALS,
    FIELDS,
    MINIMIZERS,
    POTENTIALS,
    STARTS,
    THERMOSTATS,
)
from simkit.molecular.potentials.pair import ENDINGS, MIXING
from simkit.molecular.spaces import MAX_PARTICLES

FIELD = Choice(FIELDS, "field", "an external energy by name")
MINIMIZER = Choice(MINIMIZERS, "minimizer", "the method", "lbfgs")
MINIMIZER_OF_BAND = Choice(MINIMIZERS, "minimizer", "the method, which is not monotone", "fire")
THERMOSTAT = Choice(THERMOSTATS, "method", "the method", "velocity_verlet")
BAROSTAT = Choice(
    BAROSTATS,
    "barostat",
    "method that holds the pressure, if a pressure is given; left out, the cell is constant",
    "stochastic_cell_rescaling",
    is_optional=True,
)
START = Choice(STARTS, "kind", "kind of start by name; left out, that of the keys, and else random", "random")
TASKS = ("relax", "dynamics", "barrier")
OBSERVED = (
    "contacts",
    "load",
    "hexatic_order",
    "energy_of_particle",
    "packing_fraction",
    "displacement",
    "origin",
    "lattice_constant",
    "elastic_constants",
    "stress",
    "molecules",
)


@dataclasses.dataclass(frozen=True)
class NumberOfEach:
    """One number for each particle of a species: given, or drawn from a distribution.

    Attributes:
        where: path of its key.
        values: ``count -> `` the numbers.
        bounds: lowest and highest value.
    """

    where: str
    values: Callable[[int], Sequence[float] | np.ndarray]
    bounds: tuple[float, float]

    def numbers(self, count: int) -> np.ndarray:
        """Return the numbers, (count,).

        Raises:
            UserError: if another number of them is given, or one is out of its bounds.
        """
        values = np.array(self.values(count))
        low, high = self.bounds
        outside = ~(np.isfinite(values) & (values >= low) & (values <= high))
        if len(values) != count or outside.any():
            first = int(np.argmax(outside))
            problem = f"{self.where} has {len(values)} numbers for {count} particles; give one for each"
            if len(values) == count:
                wrong = f"= {values[first]:g} {out_of_bounds(self.bounds, values[first])}"
                problem = f"{self.where}: number {first} (the first is 0) {wrong}"
            raise UserError(problem, key=self.where, allowed=self.bounds)
        return values


def _drawn(table: Settings, count: int) -> np.ndarray:
    """Return numbers of the distribution that a table gives, (count,)."""
    kind = next(kind for kind in DISTRIBUTIONS if table[kind] is not None)
    random, (first, second) = np.random.default_rng(table["seed"]), table[kind]
    if kind != "lognormal":
        return getattr(random, kind)(first, second, count)
    # Of a float of NumPy, whose overflow is infinite and is refused with the numbers drawn.
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.log1p(np.square(np.float64(second) / first))
    return random.lognormal(np.log(first) - spread / 2, np.sqrt(spread), count)


DISTRIBUTIONS = ("uniform", "normal", "lognormal")


def _is_one_distribution(table: Settings) -> UserError | None:
    """Return what is wrong with a distribution of numbers; ``None`` if nothing is."""
    kinds = [kind for kind in DISTRIBUTIONS if table[kind] is not None]
    if len(kinds) == 1:
        first, second = table[kinds[0]]
        if second >= (first if kinds == ["uniform"] else 0) and (first > 0 or kinds != ["lognormal"]):
            return None
    ways = "write uniform = [lowest, highest], normal or lognormal = [mean, deviation], and a seed"
    limits = "a deviation is not below 0, and the mean of a lognormal one above it"
    return UserError(f"{table.where} is not one distribution; {ways}; {limits}")


def number_of_each(doc: str, default: float | None = None, **options: Any) -> Setting:
    """Return a setting that is one number or expression for all, or a number for each particle of a species.

    Args:
        doc: its meaning.
        default: as written in a file; ``None`` for a required one.
        **options: ``unit`` and ``bounds`` of `formula`.
    """
    bounds = options.get("bounds", UNBOUNDED)
    one = formula(doc, **options)
    pair = several(number("a number"), "lowest and highest", (2,), None)
    moments = several(number("a number"), "mean and standard deviation", (2,), None)
    drawn = table(
        "a distribution",
        {"uniform": pair, "normal": moments, "lognormal": moments, "seed": whole("seed", 0)},
        rules=(Rule(DISTRIBUTIONS, _is_one_distribution),),
    )

    def for_all_or_of_a_file(value: Any, where: str) -> Any:
        words = value.replace(",", " ").split() if isinstance(value, str) else ()
        try:
            listed = tuple(map(float, words))
        except ValueError:
            listed = ()
        return NumberOfEach(where, lambda count: listed, bounds) if len(listed) > 1 else one.check(value, where)

    def of_list(value: Any, where: str) -> NumberOfEach:
        listed = several(number("a number"), doc).check(value, where)
        return NumberOfEach(where, lambda count: listed, bounds)

    def of_distribution(value: Any, where: str) -> NumberOfEach:
        return NumberOfEach(where, functools.partial(_drawn, drawn.check(value, where)), bounds)

    kinds = (
        dataclasses.replace(one, check=for_all_or_of_a_file),
        Setting("a list, one for each particle", doc, of_list, form="list", describe=lambda: {"type": "array"}),
        Setting(
            'a table, such as { file = "sizes.txt" } or { uniform = [0.8, 1.2], seed = 1 }',
            doc,
            of_distribution,
            form="table",
            describe=lambda: {"type": "object"},
        ),
    )
    setting = either(doc, *kinds) if default is None else either(doc, *kinds, default=default)
    return dataclasses.replace(setting, unit=one.unit, bounds=one.bounds)


SPECIES = {
    "count": whole(
        "number of particles; may be left out if a lattice, structure or positions fix it",
        None,
        low=1,
        high=MAX_PARTICLES,
    ),
    "mass": number_of_each("mass of each", 1.0, unit="mass", bounds=POSITIVE),
    "diameter": number_of_each(
        "diameter in pictures, and in the least distance of random positions", 1.0, unit="length", bounds=POSITIVE
    ),
    "charge": number_of_each("charge of each, which Coulomb energies by name take", 0.0, unit="charge"),
    "frozen": flag("whether they do not move; they still act on the others"),
    "values": named(
        "further numbers of the species, such as a valence: `valence` in the energy of a field, `valence_i` and "
        "`valence_j` in that of a pair",
        number_of_each("a number"),
    ),
}
PARTICLES = named("species of particles by name", table("one species", SPECIES))
PLACES = PartTable(
    (START,),
    {
        "disorder": formula(
            "largest random displacement of a particle that is not frozen, along each axis", 0.0, unit="length"
        )
    },
)
STARTING = PLACES.setting(
    "starting positions: sites of a lattice, of a structure file, given coordinates, or else random", {}
)
CELL = table(
    "the cell that repeats; left out, that of the lattice or structure, and free space where there is neither",
    {
        "lengths": several(formula("a length"), "sides of an orthorhombic cell", (2, 3), None),
        "vectors": several(
            several(formula("a component"), "a lattice vector", (2, 3)),
            "lattice vectors of a triclinic cell",
            (2, 3),
            None,
        ),
        "density": formula("particles per volume, which sets the size; the shape is that of `shape`", None),
        "shape": several(
            number("a ratio", bounds=(1e-3, 1e3)),
            "sides in terms of each other, for a density; left out, those of the lattice, or all alike",
            (2, 3),
            None,
        ),
        "periodic": either(
            "whether the cell repeats, along each axis where a list; left out, a structure says so itself",
            flag("along all axes", True),
            several(flag("along the axis"), "along each axis", (2, 3)),
            default=True,
        ),
        "images": several(
            whole("number of cells", low=1),
            "number of periodic images along each axis that interact; left out, as many as the cut-off needs",
            (2, 3),
            None,
        ),
    },
    rules=(
        *excludes("lengths", ("vectors", "density")),
        *excludes("vectors", ("density",)),
        *needs(("shape",), "density"),
    ),
)
VALUES = named(
    "numbers that the energy takes, by name: one for all pairs, or a table such as { A_A = 1.0, A_B = 1.5, B_B = 0.5 }",
    either(
        "one for all pairs, or one for each pair of species",
        formula("for all pairs"),
        Setting(
            "a table, by pair of species, of: a number or an expression",
            "for each",
            lambda v, w: _of_pairs(v, w),
            form="table",
        ),
    ),
)
POTENTIAL = Choice(POTENTIALS, "potential", "a potential by name", values=("values", VALUES))
POTENTIAL_OF_WALL = dataclasses.replace(
    POTENTIAL, values=("values", named("numbers that the energy takes, by name", formula("a number")))
)
INTERACTION = PartTable(
    (POTENTIAL,),
    {
        "between": several(
            text("two species"), 'pairs of species that it acts between, such as ["A_A", "A_B"]', (), None
        ),
        "cutoff": formula(
            "distance beyond which a pair does not interact; of values and tables, too", None, unit="length"
        ),
        "mixing": word(
            "how values of a pair follow from the `values` of both species, such as epsilon and sigma: lengths are "
            "their mean (lorentz_berthelot) or, as energies always, the root of their product (geometric)",
            tuple(MIXING),
            None,
        ),
        "ending": word("how the energy ends at the cut-off", tuple(ENDINGS), "switch"),
        "switch_on": number("where a switch begins, in units of the cut-off", 0.8, (0.01, 0.99)),
        "tail": flag("whether all pairs beyond the cut-off count as a uniform medium; in three dimensions"),
        "method": word("how pairs are found", ("auto", "all_pairs", "neighbor_list"), "auto"),
        "skin": number("how far beyond the cut-off pairs are listed, in units of the cut-off", 0.1, (1e-3, 10.0)),
        "one_four": number(
            "factor on pairs of atoms of a molecule that are three bonds apart; left out, these interact as others do, "
            "unless the molecule excludes them",
            None,
        ),
    },
)
VALUES_OF_TERMS = "values", named("numbers that the energy takes, by name", formula("a number"))
BOND = Choice(BONDS, "potential", "a potential by name", values=VALUES_OF_TERMS)
ANGLE = Choice(ANGLES, "potential", "a potential by name", values=VALUES_OF_TERMS)
DIHEDRAL = Choice(DIHEDRALS, "potential", "a potential by name", values=VALUES_OF_TERMS)


def _members(what: str, count: int, every: str, default: str | None = None) -> Setting:
    """Return the setting of the atoms of each term: lists of indices, or a word for those that follow of the bonds."""
    atoms = several(several(whole("an atom, from 0"), what, (count,)), f"the atoms of each {what}")
    meant = word(every, ("chain",) if what == "bond" else ("all",))
    doc = f"the {count} atoms of each {what}, from 0, or {every}"
    return either(doc, meant, atoms, default=default) if default else either(doc, meant, atoms)


def _terms(choice: Choice, what: str, members: Setting) -> Setting:
    return several(PartTable((choice,), {"members": members}).setting(f"{what}s of one energy"), f"its {what}s", (), [])


MOLECULE = table(
    "one kind of molecule",
    {
        "atoms": either(
            'species of its atoms, in order, such as ["O", "H", "H"] or { bead = 50 }',
            several(text("a species"), "species of each atom"),
            named(
                "numbers of atoms by species, one species after the other",
                whole("number of atoms", low=1, high=MAX_PARTICLES),
            ),
        ),
        "count": whole("number of such molecules", 1, low=1, high=MAX_PARTICLES),
        "bonds": _terms(BOND, "bond", _members("bond", 2, '"chain" for every two atoms that follow each other')),
        "pairs": _terms(
            BOND,
            "pair",
            several(
                several(whole("an atom, from 0"), "a pair", (2,)), "the 2 atoms of each, from 0, which are not bonded"
            ),
        ),
        "angles": _terms(ANGLE, "angle", _members("angle", 3, '"all" for every two bonds that share an atom', "all")),
        "dihedrals": _terms(
            DIHEDRAL, "dihedral", _members("dihedral", 4, '"all" for every three bonds in a row', "all")
        ),
        "impropers": _terms(
            DIHEDRAL,
            "improper",
            several(several(whole("an atom, from 0"), "an improper", (4,)), "the 4 atoms of each, from 0"),
        ),
        "torsion_maps": several(
            table(
                "maps of two dihedrals, as CMAP of proteins",
                {
                    "members": several(
                        several(whole("an atom, from 0"), "five atoms in a row, or four of each dihedral", (5, 8)),
                        "atoms of each pair of dihedrals",
                    ),
                    "energies": several(
                        several(formula("an energy", unit="energy"), "those of one angle of the first dihedral"),
                        "energies at n angles of both, 2 pi k / n from k = 0, which a periodic bicubic spline joins",
                    ),
                },
            ),
            "its maps of two dihedrals",
            (),
            [],
        ),
        "sites": several(
            table(
                "virtual sites, which are where others are on average",
                {
                    "members": several(
                        several(whole("an atom, from 0"), "a site, and the atoms it is between"),
                        "the site and two or more atoms of each; for exclusions it is bonded to the first of these",
                    ),
                    "weights": several(number("a weight"), "of these atoms, 1 in all"),
                },
            ),
            "its virtual sites, such as the charge of a water of four sites; their mass has no effect",
            (),
            [],
        ),
        "rigid": several(
            table(
                "rigid bonds of one length",
                {
                    "members": _members("bond", 2, '"chain" for every two atoms that follow each other'),
                    "length": formula("length that they keep", unit="length", bounds=POSITIVE),
                },
            ),
            "bonds that keep their length, in dynamics, such as those of rigid water; they count as bonds",
            (),
            [],
        ),
        "exclude": word(
            "up to how many bonds apart its atoms do not interact as pairs: one, two, or three",
            tuple(EXCLUSIONS),
            "angles",
        ),
        "coordinates": several(
            several(number("a coordinate"), "a place", (2, 3)),
            "places of its atoms, for random starts, in which it is turned and moved as a whole",
            (),
            None,
        ),
        "structure": text('the same as extended XYZ text, as of `{ file = "water.xyz" }`', None),
        "measured": named(
            "coordinates of the first of these molecules, quantities by name: the distance of two atoms, and the angle "
            "of three or the dihedral of four in radians, from 0 to pi and from -pi to pi",
            several(whole("an atom, from 0"), "its atoms", (2, 3, 4)),
        ),
        "bond_length": formula(
            "length of its bonds at random starts without coordinates; left out, that of the bonds' potential",
            None,
            unit="length",
            bounds=POSITIVE,
        ),
    },
    rules=excludes("coordinates", ("structure", "bond_length")) + excludes("structure", ("bond_length",)),
)
MOLECULES = named("kinds of molecules by name, which come before single particles in the order of the file", MOLECULE)
INTERACTIONS = several(INTERACTION.setting("one interaction"), "interactions of the particles", (), [])
ON = several(text("a species"), "species that it acts on; left out, all", (), None)
FIELDS_SETTING = several(PartTable((FIELD,), {"on": ON}).setting("one field"), "external energies of position", (), [])
WALLS = several(
    PartTable(
        (POTENTIAL_OF_WALL,),
        {
            "distance": formula('distance from the wall, of x, y (and z), such as "z" or "height - z"'),
            "on": ON,
        },
    ).setting("one wall"),
    "walls, each an energy of one distance",
    (),
    [],
)
SCALE = table(
    "units of the problem, for the first step and the tolerance; left out, the stiffest bond",
    {"length": formula("length of a bond"), "stiffness": formula("its stiffness, energy / length^2")},
)
RELAX = PartTable(
    (MINIMIZER,),
    {
        "force_tolerance": number(
            "largest force left, in units of a bond's stiffness times its length; 1e-10 suits float64, 1e-5 float32",
            1e-10,
            (1e-16, 0.1),
        ),
        "scale": SCALE,
        "cell": flag("whether the cell relaxes too"),
        "isotropic": flag("whether a cell that relaxes keeps its shape"),
        "pressure": formula("external pressure on a cell that relaxes", 0.0, unit="energy / length^d"),
    },
).setting("settings of a relaxation", {})
DYNAMICS = PartTable(
    (THERMOSTAT, BAROSTAT),
    {
        "time_step": formula("time step", unit="time", bounds=POSITIVE),
        "temperature": formula(
            "temperature of the bath, also of time; at time 0 that of the initial velocities",
            0.0,
            unit="energy",
            bounds=NOT_NEGATIVE,
            takes=("time",),
        ),
        "steps": whole(
            "time steps before the relaxation, where one follows; fewer than `run.steps`, which counts both",
            None,
            low=1,
        ),
    },
)
BARRIER = PartTable(
    (MINIMIZER_OF_BAND,),
    {
        "last": PLACES.setting("start of the last minimum, of the same particles; `start` is that of the first"),
        "middle": PLACES.setting("guess of the saddle; left out, the mean of both starts", None),
        **KEYS,
        "force_tolerance": number(
            "largest force left at both minima and the saddle, in units of a bond's stiffness times its length; 1e-8 "
            "suits float64, 1e-4 float32",
            1e-8,
            (1e-16, 0.1),
        ),
        "scale": SCALE,
        "temperature": formula(
            "temperature of the rate of harmonic transition-state theory; left out, there is no rate",
            None,
            unit="energy",
            bounds=POSITIVE,
        ),
    },
)
# Numbers of one curve, of which every frame stores all.
MOST_BINS = 100_000
AVERAGES = table(
    "running means of dynamics; each step of the run is then several time steps and one sample",
    {
        "every": whole("time steps between samples", 10, low=1),
        "skip": whole("samples left out at the start, while the system settles", 0),
        "of": several(
            text("a diagnostic"),
            "diagnostics that are averaged, as `mean_temperature` and so on",
            (),
            ["temperature", "potential_energy_per_particle"],
        ),
        "radial_distribution": table(
            "the mean of the radial distribution function, with the position and the height of its highest peak",
            {
                "reach": number("largest distance, at most half the narrowest width of the cell", bounds=(1e-6, 1e6)),
                "bins": whole("number of distances", 140, low=3, high=MOST_BINS),
                "species": text("species whose particles are counted; left out, all", None),
            },
        ),
        "structure_factor": table(
            "the mean of the static structure factor",
            {
                "largest": number("largest wave number, 1 / length", bounds=(1e-6, 1e6)),
                "bins": whole("number of shells of wave numbers", 100, low=1, high=MOST_BINS),
            },
        ),
        "correlation": table(
            "the velocity autocorrelation and the mean square displacement over a lag, with the diffusion coefficient",
            {
                "lags": whole("longest lag, in samples; as many samples are kept", 100, low=3, high=100_000),
                "of": word(
                    "what moves: particles, or the centers of mass of molecules",
                    ("particles", "molecules"),
                    "particles",
                ),
            },
        ),
    },
)
PHONONS = table(
    "phonons of the crystal, of which the cell is the unit cell, in its present arrangement",
    {
        "corners": named(
            "corners of the path by name, in units of the reciprocal lattice vectors",
            several(number("a component"), "a wave vector", (2, 3)),
        ),
        "path": several(text("a corner"), "names of the corners that it joins by straight lines, in order"),
        "points": whole("wave vectors from one corner to the next", 30, low=1, high=1000),
        "repeats": several(
            whole("number of cells", low=1),
            "cells along each lattice vector of the supercell of the force constants; left out, as many as the "
            "cut-offs need",
            (2, 3),
            None,
        ),
        "density_of_states": table(
            "the density of states per cell, each phonon as a Gaussian around its frequency",
            {
                "mesh": several(whole("a number", low=1), "wave vectors along each reciprocal lattice vector", (2, 3)),
                "largest": number("largest angular frequency, 1 / time", bounds=POSITIVE),
                "bins": whole("number of frequencies", 200, low=2, high=MOST_BINS),
                "width": number("standard deviation of the Gaussian, 1 / time", bounds=POSITIVE),
            },
        ),
    },
)
DERIVED = named("values derived of parameters and of those before them", formula("a value"))
UNITS = either(
    "units: a system by name, whose constants formulas may take, such as `300*kelvin` or `2*femtosecond`, and whose "
    "`coulomb_constant` is the default; or names in words",
    word("a system", tuple(SYSTEMS)),
    table(
        "units, in words",
        {
            "length": text("unit of length", "length"),
            "energy": text("unit of energy", "energy"),
            "time": text("unit of time", "time"),
            "mass": text("unit of mass", "mass"),
        },
        {},
    ),
    default={},
)
SETTINGS = {
    "particles": PARTICLES,
    "molecules": MOLECULES,
    "interactions": INTERACTIONS,
    "fields": FIELDS_SETTING,
    "walls": WALLS,
    "start": STARTING,
    "cell": CELL,
    "dimension": whole("2 or 3; left out if positions or cell fix it", None, low=2, high=3),
    "task": either(
        'task: "relax", "dynamics", ["dynamics", "relax"], one after the other, or "barrier"',
        word("what is done", TASKS),
        several(word("what is done", TASKS), "one after the other", (1, 2)),
        default="relax",
    ),
    "relax": RELAX,
    "dynamics": DYNAMICS.setting("settings of molecular dynamics"),
    "barrier": BARRIER.setting("settings of the path between two minima", None),
    "observed": several(
        word("a quantity", OBSERVED),
        "further quantities of frames and diagnostics: contacts, with the contact number and the fraction of "
        "rattlers; shares of the load; hexatic order; energies of each; the packing fraction; displacements from the "
        "start, with the largest and the mean square; the x coordinate at the start; the lattice constant, with the "
        "distance of nearest neighbors; elastic constants at rest, with bulk and shear modulus; of molecules, the "
        "length of bonds, the distance of both ends and the radius of gyration",
        (),
        [],
    ),
    "averages": AVERAGES,
    "phonons": PHONONS,
    "derived": DERIVED,
    "units": UNITS,
}


def _of_pairs(value: object, where: str) -> dict:
    """Return formulas by pair of species, as they were written."""
    assert isinstance(value, dict)
    return {str(pair): formula_text(entry, f"{where}.{pair}") for pair, entry in value.items()}
