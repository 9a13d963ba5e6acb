"""Diagnostics of a system and their averages over a run."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.averages import averaged
from simkit.core.settings import Settings
from simkit.core.simulation import Arrays, Params, Quantity, Simulation, State, over, raised, times
from simkit.errors import UserError, nearest
from simkit.molecular import spaces
from simkit.molecular.analysis.order import highest_peak, radial_distribution, shell_centers
from simkit.molecular.declarations import particle_quantities
from simkit.molecular.description.observables import stiffness_names
from simkit.molecular.description.particles import Particles, SystemCell
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
    usual["unbound"] = Quantity(
        "1",
        "particles without a neighbor within two bonds and the range of the interaction",
        "particles left the cluster, and little or nothing pulls them back; start denser, lower "
        "relax.force_tolerance, or take a longer cutoff",
    )
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


RADIAL = "radial_distribution"


def averaged_over_run(simulation: Simulation, settings: Settings, room: SystemCell) -> Simulation:
    """Return the simulation with running means; each of its steps is several time steps and then a sample.

    Args:
        simulation: simulation of the dynamics.
        settings: settings of the averages.
        room: cell of the system.

    Raises:
        UserError: if a name is no diagnostic, or the radial distribution needs another cell.
    """
    key = jax.eval_shape(jax.random.key, 0)
    state = jax.eval_shape(simulation.init, simulation.params, key)
    diagnostics = sorted(jax.eval_shape(simulation.diagnose, state, simulation.params))
    names = settings["of"]
    for index, name in enumerate(names):
        if name not in diagnostics:
            hint = nearest(name, diagnostics)
            raise settings.refuse("of", f"[{index}] = '{name[:64]}' is no diagnostic", hint=hint)
    shells = settings[RADIAL]
    if shells is not None and not room.is_closed:
        raise settings.refuse(RADIAL, "needs a cell that repeats along all axes; leave it out")

    def sample(state: State, params: Params) -> Arrays:
        numbers = simulation.diagnose(state, params)
        selected = {name: numbers[name] for name in names}
        if shells is None:
            return selected
        seen = simulation.observe(state, params)
        return selected | {
            RADIAL: radial_distribution(seen["position"], seen["cell"], reach=shells["reach"], bins=shells["bins"])
        }

    def diagnose(mean: Arrays, params: Params) -> Arrays:
        del params
        numbers = {f"mean_{name}": mean[name] for name in names}
        if shells is None:
            return numbers
        position, height = highest_peak(mean[RADIAL], shells["reach"])
        return numbers | {"radial_peak_position": position, "radial_peak_height": height}

    return averaged(
        simulation,
        sample,
        every=settings["every"],
        skip=settings["skip"],
        observe=lambda mean, params: {} if shells is None else {RADIAL: mean[RADIAL]},
        diagnose=diagnose,
        dimensions={} if shells is None else {RADIAL: ("distance",)},
        coordinates={} if shells is None else {"distance": shell_centers(shells["reach"], shells["bins"])},
    )


def with_shells_inside(
    check: Callable[[Params, jax.Array], None], settings: Settings | None, room: SystemCell
) -> Callable[[Params, jax.Array], None]:
    """Return a check that also refuses a radial distribution beyond half the cell.

    Args:
        check: ``(params, key) -> None``.
        settings: settings of the averages; ``None`` without.
        room: cell of the system.
    """
    if settings is None or settings[RADIAL] is None:
        return check
    reach = settings[RADIAL]["reach"]

    def both(params: Params, key: jax.Array) -> None:
        check(params, key)
        width = float(np.min(spaces.of_cell(room.cell(params), room.dimension).widths))
        # A cell of exactly that width may be smaller by round-off.
        if 2 * reach > width * (1 + 1e-6):
            raise UserError(
                f"{settings.path(RADIAL)}.reach = {reach:g} is beyond half the cell, whose narrowest width is "
                f"{width:g}; shorten it, or enlarge the cell"
            )

    return both


def mean_quantities(quantities: dict[str, Quantity], settings: Settings | None, length: str) -> dict[str, Quantity]:
    """Return units and meanings of averages.

    Args:
        quantities: of the system.
        settings: settings of the averages; ``None`` without.
        length: unit of length.
    """
    if settings is None:
        return {}
    plain = Quantity("1", "a diagnostic")
    selected = {name: quantities.get(name, plain) for name in settings["of"]}
    means = {f"mean_{name}": Quantity(one.unit, f"mean {one.doc} so far") for name, one in selected.items()}
    return means | {
        "distance": Quantity(length, "distance of a pair"),
        RADIAL: Quantity("1", "radial distribution function, mean so far"),
        "radial_peak_position": Quantity(length, "distance of the first peak of the radial distribution"),
        "radial_peak_height": Quantity("1", "height of the first peak of the radial distribution"),
    }
