"""Parts of systems of particles that scenario files name, each in one line; installed packages add their own.

A package adds a part by an entry point such as ``[project.entry-points."simkit.potentials"]`` with
``"yukawa" = "my_package.yukawa:yukawa"``. See `simkit.core.parts` for what a part declares. By kind, it is a function
of its options that returns

- a potential: a `simkit.molecular.potentials.PairPotential`, or a `simkit.molecular.interactions.ManyBody`;
- a bond: a `simkit.molecular.potentials.PairPotential`; an angle or a dihedral: a
  `simkit.molecular.bonded.AngularPotential`;
- a field: the energy of each particle, ``(columns, **values) -> (N,)``, with one array of coordinates per axis;
- a thermostat: dynamics; besides its options it takes the arguments of `simkit.molecular.dynamics.langevin`;
- a barostat: a `simkit.molecular.dynamics.Barostat`;
- a minimizer: a `simkit.molecular.minimizers.Minimizer`;
- a start: `simkit.molecular.description.starts.Places`; its arguments are its settings and the names of formulas.
"""

from simkit.plugins import Registry

# What a part has that is marked with `simkit.core.parts.part`.
DECLARED = ("declaration",)
POTENTIALS = Registry(
    "potential",
    {
        "buckingham": "simkit.molecular.potentials.buckingham:buckingham",
        "coulomb": "simkit.molecular.potentials.coulomb:coulomb",
        "embedded_atom": "simkit.molecular.description.embedded_atoms:embedded_atom",
        "embedded_atom_tables": "simkit.molecular.interactions.atom_tables:embedded_atom_tables",
        "energy": "simkit.molecular.description.pair_energies:energy_by_expression",
        "ewald": "simkit.molecular.electrostatics.ewald:many_body",
        "jax_md": "simkit.molecular.description.pair_energies:jax_md",
        "lennard_jones": "simkit.molecular.potentials.lennard_jones:lennard_jones",
        "morse": "simkit.molecular.potentials.morse:morse",
        "particle_mesh_ewald": "simkit.molecular.electrostatics.particle_mesh:many_body",
        "reaction_field": "simkit.molecular.potentials.coulomb:reaction_field",
        "soft_sphere": "simkit.molecular.potentials.soft_sphere:soft_sphere",
        "splines": "simkit.molecular.interactions.splines:splines",
        "stillinger_weber": "simkit.molecular.interactions.stillinger_weber:many_body",
        "tersoff": "simkit.molecular.interactions.tersoff:many_body",
        "tersoff_file": "simkit.molecular.interactions.tersoff_files:tersoff_file",
        "weeks_chandler_andersen": "simkit.molecular.potentials.weeks_chandler_andersen:weeks_chandler_andersen",
    },
    DECLARED,
)
BONDS = Registry(
    "bond",
    {
        "energy": "simkit.molecular.description.bonded_energies:bond_by_expression",
        "fene": "simkit.molecular.bonded.potentials:fene",
        "harmonic": "simkit.molecular.bonded.potentials:harmonic_bond",
        "morse": "simkit.molecular.potentials.morse:morse",
    },
    DECLARED,
)
ANGLES = Registry(
    "angle",
    {
        "energy": "simkit.molecular.description.bonded_energies:angle_by_expression",
        "harmonic": "simkit.molecular.bonded.potentials:harmonic_angle",
    },
    DECLARED,
)
DIHEDRALS = Registry(
    "dihedral",
    {
        "energy": "simkit.molecular.description.bonded_energies:dihedral_by_expression",
        "harmonic": "simkit.molecular.bonded.potentials:harmonic_dihedral",
        "periodic": "simkit.molecular.bonded.potentials:periodic_dihedral",
        "ryckaert_bellemans": "simkit.molecular.bonded.potentials:ryckaert_bellemans",
    },
    DECLARED,
)
FIELDS = Registry("field", {"energy": "simkit.molecular.description.fields:energy_by_expression"}, DECLARED)
THERMOSTATS = Registry(
    "thermostat",
    {
        "brownian": "simkit.molecular.dynamics.brownian:brownian",
        "bussi": "simkit.molecular.dynamics.bussi:bussi",
        "langevin": "simkit.molecular.dynamics.langevin:langevin",
        "nose_hoover": "simkit.molecular.dynamics.nose_hoover:nose_hoover",
        "velocity_verlet": "simkit.molecular.dynamics.velocity_verlet:velocity_verlet",
    },
    DECLARED,
)
BAROSTATS = Registry(
    "barostat",
    {"stochastic_cell_rescaling": "simkit.molecular.dynamics.stochastic_cell_rescaling:stochastic_cell_rescaling"},
    DECLARED,
)
MINIMIZERS = Registry(
    "minimizer",
    {
        "conjugate_gradient": "simkit.molecular.minimizers.conjugate_gradient:conjugate_gradient",
        "fire": "simkit.molecular.minimizers.fire:fire",
        "fire2": "simkit.molecular.minimizers.fire2:fire2",
        "gradient_descent": "simkit.molecular.minimizers.gradient_descent:gradient_descent",
        "lbfgs": "simkit.molecular.minimizers.lbfgs:lbfgs",
    },
    DECLARED,
)
STARTS = Registry(
    "start",
    {
        "lattice": "simkit.molecular.description.starts:lattice",
        "positions": "simkit.molecular.description.starts:positions",
        "random": "simkit.molecular.description.starts:random",
        "structure": "simkit.molecular.description.starts:structure",
    },
    DECLARED,
)
