"""Systems of particles described as data: the factory of ``molecular.system``, its quantities and running means."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from simkit.core.settings import declares, read
from simkit.core.simulation import Arrays, Params, Quantity, Simulation, State, over, raised, times
from simkit.errors import untaken
from simkit.molecular.barriers.band import band_quantities
from simkit.molecular.declarations import particle_quantities
from simkit.molecular.description.checks import checker
from simkit.molecular.description.composition import System, composition
from simkit.molecular.description.observables import stiffness_names, stress_names
from simkit.molecular.description.padding import PARTICLES
from simkit.molecular.description.particles import SystemCell
from simkit.molecular.description.running_means import averaged_over_run, mean_quantities
from simkit.molecular.description.settings import SETTINGS
from simkit.molecular.description.tasks import simulation_of
from simkit.molecular.description.units import words_of
from simkit.molecular.description.vibrations import phonon_coordinates, phonon_quantities


@declares(SETTINGS)
def system(
    *,
    particles: Mapping[str, Any],
    molecules: Mapping[str, Any] | None = None,
    interactions: Sequence[Mapping[str, Any]] = (),
    fields: Sequence[Mapping[str, Any]] = (),
    walls: Sequence[Mapping[str, Any]] = (),
    start: Mapping[str, Any] | None = None,
    cell: Mapping[str, Any] | None = None,
    dimension: int | None = None,
    task: str | Sequence[str] = "relax",
    relax: Mapping[str, Any] | None = None,
    dynamics: Mapping[str, Any] | None = None,
    barrier: Mapping[str, Any] | None = None,
    observed: Sequence[str] = (),
    averages: Mapping[str, Any] | None = None,
    phonons: Mapping[str, Any] | None = None,
    derived: Mapping[str, Any] | None = None,
    units: str | Mapping[str, str] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Simulation:
    """Return a system of particles described as data: species, starting positions, interactions and tasks.

        E = sum over pairs of U(r) + sum over particles of V(x, y, z)

    Numbers may be written as expressions of the parameters everywhere, so that each of these may be swept and
    differentiated. Length and stiffness of a bond, which minimizers take, are those that potentials declare.

    Args:
        particles: species by name: ``count``, ``mass``, ``diameter``, ``frozen``, and ``values`` of their own.
        molecules: kinds of molecules by name: ``atoms`` (species), ``count``, ``bonds``, ``angles``, ``dihedrals`` and
            ``impropers``, each with a ``potential`` or ``energy`` and ``members``; and up to how many bonds apart atoms
            ``exclude`` each other as pairs.
        interactions: interactions of particles, each an ``energy`` of the distance ``r`` or a ``potential`` by name.
        fields: external energies of ``x``, ``y``, ``z`` and, in dynamics, ``time``.
        walls: energies of the distance from a wall.
        start: starting positions: a ``lattice``, a ``structure``, ``positions``, or else random ones.
        cell: ``lengths``, ``vectors`` or ``density``, and along which axes it is ``periodic``; left out, that of the
            lattice or structure, and free space where there is neither.
        dimension: 2 or 3; left out if positions or cell fix it.
        task: ``"relax"``, ``"dynamics"`` or both, ``["dynamics", "relax"]``; or ``"barrier"``.
        relax: ``minimizer``, ``force_tolerance``, and whether the ``cell`` relaxes too.
        dynamics: ``method``, ``time_step``, ``temperature`` and further parameters of the method.
        barrier: of the path from ``start`` to another minimum: its start ``last``, ``images``, and the ``temperature``
            of a rate; see `simkit.molecular.barriers.nudged_elastic_band`.
        observed: further quantities of frames and diagnostics, by name.
        averages: running means: ``every`` is the number of time steps between samples, which make one step of the run,
            ``skip`` the number of samples left out, ``of`` the names of diagnostics, and ``radial_distribution``,
            ``structure_factor`` and ``correlation``.
        phonons: of a crystal that relaxes, whose unit cell the cell is: ``corners`` and ``path`` of wave vectors, and
            ``density_of_states``; see `simkit.molecular.phonons`.
        derived: values derived of parameters, by name.
        units: ``"lj"``, ``"md"`` (nm, kJ/mol, ps), ``"metal"`` (angstrom, eV) or ``"real"`` (angstrom, kcal/mol), with
            masses in g/mol, whose constants formulas may take, such as ``"300*kelvin"``; or names of the units of
            length, energy, time and mass.
        parameters: parameters of the formulas: numbers, or `simkit.core.parameter.Parameter`. In a scenario file those
            of ``[params]``.

    Raises:
        UserError: names each key with a mistake. The simulation's ``check`` refuses particles in one place,
            overlapping starts, energies that are not finite at the start, and cut-offs beyond half the cell.

    Example:
        >>> dimer = molecular.system(
        ...     particles={"atom": {}},
        ...     start={"positions": [[0, 0, 0], [1.3, 0, 0]]},
        ...     interactions=[{"potential": "lennard_jones"}],
        ...     relax={"force_tolerance": 1e-5},
        ...     parameters={"epsilon": 2.0, "sigma": 1.0},
        ... )
        >>> energy, slope = simkit.value_and_grad(dimer, "epsilon", objective="energy", steps=100)
        >>> print(f"E = -epsilon = {energy:.4f}, dE/depsilon = {slope['epsilon']:.4f}")
        E = -epsilon = -2.0000, dE/depsilon = -1.0000
    """
    # The arguments are the keys of the file.
    keys = {key: value for key, value in locals().items() if key in SETTINGS and value is not None}
    settings, parameters = read(keys, SETTINGS), dict(parameters or {})
    made, means = composition(settings, parameters), settings["averages"]
    simulation = shown(simulation_of(made), made.room)
    if means is not None:
        simulation = averaged_over_run(simulation, means, made)
    declared, pairs = quantities(made), made.particles.molecules.bonds
    bonds = {"bonds": pairs} if len(pairs) else {}
    return dataclasses.replace(
        simulation,
        params=parameters,
        coordinates={
            **simulation.coordinates,
            "species_names": np.array(made.particles.names),
            **bonds,
            **phonon_coordinates(made),
        },
        check=checker(made),
        quantities=declared
        | mean_quantities(declared, means, words_of(settings["units"]), made.room.dimension)
        | phonon_quantities(made),
    )


# Quantities that are undefined in a cell that repeats along some axes only, and so has no volume.
OF_VOLUME = ("pressure", "volume")
OF_CELL = ("cell", "box")


def quantities(system: System) -> dict[str, Quantity]:
    """Return units and meanings of observed arrays and diagnostics of a system."""
    units, dimension = words_of(system.settings["units"]), system.room.dimension
    length, energy, time, mass = (units[key] for key in ("length", "energy", "time", "mass"))
    speed = over(length, time)
    further = {
        "species": ("1", "number of the species, in the order of the file"),
        "velocity": (speed, "velocity"),
        "speed": (speed, "speed"),
        "time": (time, "time"),
        "kinetic_energy": (energy, "kinetic energy"),
        "potential_energy": (energy, "potential energy"),
        "potential_energy_per_particle": (energy, "potential energy per particle"),
        "conserved_energy": (energy, "energy of the particles and what their bath received"),
        "temperature": (f"{energy}/k_B", "temperature, of velocities half a kick before and after"),
        "origin": ("1", "x coordinate at the start, as a fraction of the cell"),
        "mean_square_displacement": (raised(length, 2), "mean square displacement from the sites"),
        "momentum": (times(mass, speed), "length of the momentum"),
        "bond_error": ("1", "largest relative error of the length of a rigid bond"),
        "molecule": ("1", "number of the molecule, and the number of all for single particles"),
        "bond_length": (length, "root mean square length of bonds"),
        "mean_square_end_to_end": (raised(length, 2), "mean square distance of the first and last atom of a molecule"),
        "mean_square_gyration": (raised(length, 2), "mean square radius of gyration of molecules, of equal masses"),
    }
    stiffness = f"{energy}/{length}^{dimension}"
    for name in stiffness_names(dimension):
        further[name] = (
            stiffness,
            "elastic constant, derivative of stress by strain, with relaxed particles",
        )
    for name in stress_names(dimension):
        further[name] = stiffness, "component of the stress, of motion and forces, positive under tension"
    further["bulk_modulus"] = stiffness, "bulk modulus"
    further["shear_modulus"] = stiffness, "shear modulus, the mean over all directions"
    if system.sequence == ("dynamics",):
        further["energy"] = energy, "kinetic and potential energy"
    usual = particle_quantities(length, energy, str(dimension))
    if system.sequence == ("barrier",):
        return usual | {"species": Quantity(*further["species"])} | band_quantities(length, energy, time)
    if system.room.is_free:
        usual["unbound"] = Quantity(
            "1",
            "particles without a neighbor within two bonds and the range of the interaction",
            "particles left the cluster, and little or nothing pulls them back; start denser, lower "
            "relax.force_tolerance, or take a longer cutoff",
        )
    usual |= {name: Quantity(unit, doc) for name, (unit, doc) in further.items()}
    if system.placing.places.padding is not None:
        usual["particles"] = PARTICLES
    for kind in system.particles.molecules.kinds:
        for name, atoms in kind.measured().items():
            untaken(name, usual, kind.settings.path("measured"))
            what = {2: "distance", 3: "angle", 4: "dihedral"}[len(atoms)]
            usual[name] = Quantity(length if len(atoms) == 2 else "rad", f"{what} of a molecule")
    return usual


def shown(simulation: Simulation, room: SystemCell) -> Simulation:
    """Return a simulation without the quantities that are undefined in its cell.

    Args:
        simulation: simulation of the tasks.
        room: the cell; if it repeats along some axes only, it has edges but no volume.
    """
    if room.is_closed or room.is_free:
        return simulation

    def observe(state: State, params: Params) -> Arrays:
        arrays = {name: array for name, array in simulation.observe(state, params).items() if name not in OF_CELL}
        return arrays | {"cell": room.vectors(params)}

    def diagnose(state: State, params: Params) -> Arrays:
        return {name: array for name, array in simulation.diagnose(state, params).items() if name not in OF_VOLUME}

    dimensions = {name: axes for name, axes in simulation.dimensions.items() if name not in OF_CELL}
    dimensions["cell"] = ("lattice_vector", "axis")
    coordinates = {**simulation.coordinates, "periodic": np.array(room.periodic, np.int32)}
    return dataclasses.replace(
        simulation, observe=observe, diagnose=diagnose, dimensions=dimensions, coordinates=coordinates
    )
