"""Declared settings of a system of particles described as data."""

from simkit.core.settings import Setting, either, flag, formula, named, number, several, table, text, whole, word
from simkit.molecular.structures import lattices

LATTICES = {
    "square": (lattices.square, 2),
    "triangular": (lattices.triangular, 2),
    "honeycomb": (lattices.honeycomb, 2),
    "face_centered_cubic": (lattices.face_centered_cubic, 3),
    "hexagonal_close_packed": (lattices.hexagonal_close_packed, 3),
    "diamond": (lattices.diamond, 3),
}
POTENTIALS = ("lennard_jones", "morse", "soft_sphere", "weeks_chandler_andersen", "stillinger_weber")
OF_JAX_MD = ("lennard_jones", "morse", "soft_sphere")
ENDINGS = ("switch", "shift_energy", "shift_force", "truncate")
MINIMIZERS = ("lbfgs", "fire", "fire2", "conjugate_gradient", "gradient_descent")
METHODS = ("velocity_verlet", "langevin", "nose_hoover", "bussi")
TASKS = ("relax", "dynamics")
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
)

SPECIES = {
    "count": whole("number of particles; may be left out if a lattice, structure or positions fix it", None, low=1),
    "mass": formula("mass of each", 1.0),
    "diameter": formula("diameter in pictures, and in the least distance of random positions", 1.0),
    "frozen": flag("whether they do not move; they still act on the others"),
    "values": named(
        "further numbers of the species, such as a charge: `charge` in the energy of a field, `charge_i` and "
        "`charge_j` in that of a pair",
        formula("a number"),
    ),
}
PARTICLES = named("species of particles by name", table("one species", SPECIES))
START = table(
    "starting positions: sites of a lattice, of a structure file, given coordinates, or else random",
    {
        "lattice": word("the lattice whose sites they start on", tuple(LATTICES), None),
        "repeats": several(
            whole("number of unit cells", low=1), "unit cells of the lattice along each axis", (2, 3), None
        ),
        "spacing": formula("distance of nearest neighbors on the lattice; left out if the cell fixes it", None),
        "arrangement": whole(
            "which random arrangement of several species on the sites; left out, one species follows the other", None
        ),
        "structure": text('extended XYZ text, as of `{ file = "silicon.xyz" }`', None),
        "frame": whole("which frame of the structure, from 0; -1 is the last", -1, low=-1),
        "positions": several(
            several(formula("a coordinate"), "a place", (2, 3)), "places, in the order of the species", (), None
        ),
        "radius": formula("radius of the disk or ball of random positions, in free space", None),
        "separation": number(
            "least distance of random positions from each other and from walls, in mean diameters; 0 allows overlap",
            0.8,
            (0.0, 2.0),
        ),
        "disorder": formula("largest random displacement of a particle that is not frozen, along each axis", 0.0),
    },
    {},
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
INTERACTION = {
    "energy": formula("energy of a pair at the distance r, of its values, tables and parameters", None),
    "potential": word("a potential by name", POTENTIALS, None),
    "jax_md": word("a pair energy of jax-md by name", OF_JAX_MD, None),
    "values": VALUES,
    "exponent": number("of soft spheres: 2 (harmonic) or 2.5 (Hertzian)", 2.0, (2.0, 64.0)),
    "between": several(text("two species"), 'pairs of species that it acts between, such as ["A_A", "A_B"]', (), None),
    "cutoff": formula("distance beyond which a pair does not interact; of values and tables, too", None),
    "ending": word("how the energy ends at the cut-off", ENDINGS, "switch"),
    "switch_on": number("where a switch begins, in units of the cut-off", 0.8, (0.01, 0.99)),
    "tail": flag("whether all pairs beyond the cut-off count as a uniform medium; in three dimensions"),
    "method": word("how pairs are found", ("auto", "all_pairs", "neighbor_list"), "auto"),
    "skin": number("how far beyond the cut-off pairs are listed, in units of the cut-off", 0.1, (1e-3, 10.0)),
}
INTERACTIONS = several(table("one interaction", INTERACTION), "interactions of the particles", (), [])
FIELDS = several(
    table(
        "one field",
        {
            "energy": formula("energy of a particle at x, y (and z), and at the time"),
            "on": several(text("a species"), "species that it acts on; left out, all", (), None),
        },
    ),
    "external energies of position",
    (),
    [],
)
WALLS = several(
    table(
        "one wall",
        {
            "distance": formula('distance from the wall, of x, y (and z), such as "z" or "height - z"'),
            "energy": formula("energy of a particle at the distance r from the wall", None),
            "potential": word("a potential by name, of the distance", POTENTIALS[:-1], None),
            "values": named("numbers that the energy takes, by name", formula("a number")),
            "exponent": number("of soft spheres: 2 (harmonic) or 2.5 (Hertzian)", 2.0, (2.0, 64.0)),
            "on": several(text("a species"), "species that it acts on; left out, all", (), None),
        },
    ),
    "walls, each an energy of one distance",
    (),
    [],
)
RELAX = table(
    "settings of a relaxation",
    {
        "minimizer": word("the method", MINIMIZERS, "lbfgs"),
        "force_tolerance": number(
            "largest force left, in units of a bond's stiffness times its length; 1e-10 suits float64, 1e-5 float32",
            1e-10,
            (1e-16, 0.1),
        ),
        "scale": table(
            "units of the problem, for the first step and the tolerance; left out, the stiffest bond",
            {"length": formula("length of a bond"), "stiffness": formula("its stiffness, energy / length^2")},
        ),
        "cell": flag("whether the cell relaxes too"),
        "isotropic": flag("whether a cell that relaxes keeps its shape"),
        "pressure": formula("external pressure on a cell that relaxes", 0.0),
    },
    {},
)
DYNAMICS = table(
    "settings of molecular dynamics",
    {
        "method": word("the method", METHODS, "velocity_verlet"),
        "time_step": formula("time step", None),
        "temperature": formula("temperature of the bath, also of time; at time 0 that of the initial velocities", 0.0),
        "friction": formula("friction of Langevin dynamics, 1 / time", None),
        "thermostat_time": formula("time constant of the Nose-Hoover chain or of Bussi's thermostat", None),
        "chain": whole("thermostats of the Nose-Hoover chain", 3, low=1, high=16),
        "pressure": formula("pressure of a barostat, may depend on time; left out, the cell is constant", None),
        "barostat_time": formula("time constant of the barostat", None),
        "compressibility": formula("estimate of the compressibility, which scales the barostat's time", None),
        "steps": whole(
            "time steps before the relaxation, where one follows; fewer than `run.steps`, which counts both",
            None,
            low=1,
        ),
    },
    {},
)
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
                "bins": whole("number of distances", 140, low=3),
            },
        ),
    },
)
DERIVED = named("values derived of parameters and of those before them", formula("a value"))
UNITS = table(
    "units, in words",
    {
        "length": text("unit of length", "length"),
        "energy": text("unit of energy", "energy"),
        "time": text("unit of time", "time"),
        "mass": text("unit of mass", "mass"),
    },
    {},
)
SETTINGS = {
    "particles": PARTICLES,
    "interactions": INTERACTIONS,
    "fields": FIELDS,
    "walls": WALLS,
    "start": START,
    "cell": CELL,
    "dimension": whole("2 or 3; left out if positions or cell fix it", None, low=2, high=3),
    "task": either(
        'task: "relax", "dynamics", or ["dynamics", "relax"], one after the other',
        word("what is done", TASKS),
        several(word("what is done", TASKS), "one after the other", (1, 2)),
        default="relax",
    ),
    "relax": RELAX,
    "dynamics": DYNAMICS,
    "observed": several(
        word("a quantity", OBSERVED),
        "further quantities of frames and diagnostics: contacts, with the contact number and the fraction of "
        "rattlers; shares of the load; hexatic order; energies of each; the packing fraction; displacements from the "
        "start, with the largest and the mean square; the x coordinate at the start; the lattice constant, with the "
        "distance of nearest neighbors; elastic constants at rest, with bulk and shear modulus",
        (),
        [],
    ),
    "averages": AVERAGES,
    "derived": DERIVED,
    "units": UNITS,
}


def _of_pairs(value: object, where: str) -> dict:
    """Return formulas by pair of species, as they were written."""
    from simkit.core.settings import formula_text

    assert isinstance(value, dict)
    return {str(pair): formula_text(entry, f"{where}.{pair}") for pair, entry in value.items()}
