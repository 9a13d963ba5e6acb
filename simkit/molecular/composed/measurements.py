"""Arrays that frames of a system store, and units and meanings of its quantities."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.quantities import over, raised, times
from simkit.core.settings import Settings
from simkit.core.simulation import Arrays, Params, Quantity, Simulation, State
from simkit.molecular.composed.cells import SystemCell
from simkit.molecular.composed.elasticity import stiffness_names
from simkit.molecular.composed.particles import Particles
from simkit.molecular.models.quantities import particle_quantities
from simkit.molecular.spaces import Cell

# Quantities that are undefined in a cell that repeats along some axes only, and so has no volume.
OF_VOLUME = ("pressure", "volume")
OF_CELL = ("cell", "box")
DIMENSIONS = {"species": ("particle",), "diameter": ("particle",)}


def observer(particles: Particles) -> Callable[[jax.Array, Cell, Params], Arrays]:
    """Return ``(position, cell, params) -> arrays``, species and diameters of the particles."""

    def observe(position: jax.Array, cell: Cell, params: Params) -> Arrays:
        del cell
        return {
            "species": jnp.asarray(particles.species, position.dtype),
            "diameter": particles.of_each("diameter", params).astype(position.dtype),
        }

    return observe


def quantities(units: Settings, dimension: int, *, moves: bool) -> dict[str, Quantity]:
    """Return units and meanings of observed arrays and diagnostics of a system.

    Args:
        units: settings of units.
        dimension: dimension of space.
        moves: whether the energy includes kinetic energy.
    """
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
        "temperature": (f"{energy}/k_B", "temperature of the kinetic energy"),
        "origin": ("1", "x coordinate at the start, as a fraction of the cell"),
        "mean_square_displacement": (raised(length, 2), "mean square displacement from the sites"),
        "momentum": (times(mass, speed), "length of the momentum"),
    }
    stiffness = f"{energy}/{length}^{dimension}"
    for name in stiffness_names(dimension):
        further[name] = (
            stiffness,
            "elastic constant, derivative of a stress with respect to a strain, with relaxed particles",
        )
    further["bulk_modulus"] = stiffness, "bulk modulus"
    further["shear_modulus"] = stiffness, "shear modulus, the mean over all directions"
    if moves:
        further["energy"] = energy, "kinetic and potential energy"
    usual = particle_quantities(length, energy, str(dimension))
    return usual | {name: Quantity(unit, doc) for name, (unit, doc) in further.items()}


def with_potential_energy(simulation: Simulation) -> Simulation:
    """Return a relaxation that names its energy as dynamics does too, so that one objective serves every task."""

    def diagnose(state: State, params: Params) -> Arrays:
        numbers = simulation.diagnose(state, params)
        potential = {"energy": "potential_energy", "energy_per_particle": "potential_energy_per_particle"}
        return numbers | {other: numbers[name] for name, other in potential.items()}

    return dataclasses.replace(simulation, diagnose=diagnose)


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
