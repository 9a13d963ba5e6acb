"""Running means of dynamics: diagnostics, and correlations in space and time."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.averages import averaged
from simkit.core.settings import Settings
from simkit.core.simulation import Arrays, Params, Quantity, Simulation, State, over, raised, times
from simkit.errors import known, within
from simkit.molecular import spaces
from simkit.molecular.analysis import correlations
from simkit.molecular.analysis.order import highest_peak, radial_distribution, shell_centers
from simkit.molecular.description.composition import System
from simkit.molecular.description.observables import stress_names
from simkit.molecular.description.particles import refuse_open

RADIAL, STRUCTURE, CORRELATION = "radial_distribution", "structure_factor", "correlation"
VELOCITIES, DISPLACEMENTS, ENDS = "velocity_autocorrelation", "squared_displacement", "end_to_end_autocorrelation"
STRESSES = "stress_autocorrelation"
# Means that enter the viscosity.
TEMPERATURE, VOLUME = "temperature", "volume of the cell"


class Mean(NamedTuple):
    """Arrays of which a running mean is taken.

    Attributes:
        names: of the arrays, with the names of their axes.
        sample: ``(observed arrays, past) -> {name: array}``.
        diagnose: ``(mean arrays, time between samples) -> scalars``.
        coordinates: along the axes.
    """

    names: Mapping[str, tuple[str, ...]]
    sample: Callable[[Arrays, Any], Arrays]
    diagnose: Callable[[Arrays, jax.Array], Arrays]
    coordinates: Mapping[str, np.ndarray]


def averaged_over_run(simulation: Simulation, settings: Settings, system: System) -> Simulation:
    """Return the simulation with running means; each of its steps is several time steps and then a sample.

    Args:
        simulation: simulation of the dynamics.
        settings: settings of the averages.
        system: the system.

    Raises:
        UserError: if a name is no diagnostic, or correlations need another cell.
    """
    diagnostics = sorted(simulation.shapes.diagnosed)
    names, every = settings["of"], settings["every"]
    for index, name in enumerate(names):
        known(name, diagnostics, f"{settings.path('of')}[{index}]")
    for key in (RADIAL, STRUCTURE):
        if settings[key] is not None:
            refuse_open(settings, system.room, key)
    means = [MEANS[key](settings[key], system) for key in MEANS if settings[key] is not None]
    lags = 1 if settings[CORRELATION] is None else settings[CORRELATION]["lags"] + 1
    assert system.dynamics is not None  # averages are those of dynamics
    time_step = system.names.number(system.dynamics["time_step"])

    shears = _shears(system) if settings[CORRELATION] is not None else ()

    def sample(state: State, params: Params, past: Any = None) -> Arrays:
        numbers = simulation.diagnose(state, params)
        selected = {name: numbers[name] for name in (*names, *((TEMPERATURE,) if shears else ()))}
        seen = simulation.observe(state, params) if means else {}
        for mean in means:
            selected |= mean.sample(seen, past)
        return selected

    def diagnose(mean: Arrays, params: Params) -> Arrays:
        numbers = {f"mean_{name}": mean[name] for name in names}
        for each in means:
            numbers |= each.diagnose(mean, every * time_step.number(params))
        return numbers

    of_molecules = settings[CORRELATION] is not None and settings[CORRELATION]["of"] == "molecules"
    if of_molecules and not system.particles.molecules.kinds:
        raise settings[CORRELATION].refuse("of", "= 'molecules' needs molecules; leave it out")

    def record(state: State, params: Params) -> Arrays:
        # Of the state: the positions of frames may be wrapped, those of the state never are.
        moving = {"position": state.position, "velocity": state.velocity}
        moving = _of_molecules(system, moving, params) if of_molecules else moving
        numbers = simulation.diagnose(state, params) if shears else {}
        return moving | ({"shear": jnp.stack([numbers[name] for name in shears])} if shears else {})

    axes = {name: axes for mean in means for name, axes in mean.names.items()}
    return averaged(
        simulation,
        sample,
        every=every,
        skip=settings["skip"],
        record=None if settings[CORRELATION] is None else record,
        lags=lags,
        observe=lambda mean, params: {name: mean[name] for name in axes},
        diagnose=diagnose,
        dimensions=axes,
        coordinates={name: values for mean in means for name, values in mean.coordinates.items()},
    )


def _radial_distribution(settings: Settings, system: System) -> Mean:
    reach, bins, particles = settings["reach"], settings["bins"], system.particles
    members = np.arange(particles.count)
    if (name := settings["species"]) is not None:
        known(name, particles.names, settings.path("species"), "species")
        members = np.flatnonzero(particles.species == particles.names.index(name))

    def sample(seen: Arrays, past: Any) -> Arrays:
        del past
        position = seen["position"] if len(members) == particles.count else seen["position"][members]
        return {RADIAL: radial_distribution(position, seen["cell"], reach=reach, bins=bins)}

    def diagnose(mean: Arrays, step: jax.Array) -> Arrays:
        del step
        position, height = highest_peak(mean[RADIAL], reach)
        return {"radial_peak_position": position, "radial_peak_height": height}

    return Mean(
        {RADIAL: ("distance",)},
        sample,
        diagnose,
        {"distance": shell_centers(reach, bins)},
    )


def _structure_factor(settings: Settings, system: System) -> Mean:
    cell = np.asarray(system.room.vectors(system.params))
    with within(f"{settings.where}.", settings.path("largest")):
        vectors = correlations.wave_vectors(cell, settings["largest"], settings["bins"])
    if not len(vectors.numbers):
        shortest = float(2 * np.pi / spaces.of_cell(system.room.cell(system.params), len(cell)).widths.max())
        raise settings.refuse("largest", f"= {settings['largest']:g} is below the shortest of the cell, {shortest:.4g}")
    return Mean(
        {STRUCTURE: ("wave_number",)},
        lambda seen, past: {STRUCTURE: correlations.structure_factor(seen["position"], seen["cell"], vectors)},
        lambda mean, step: {},
        {"wave_number": vectors.length},
    )


def _correlation(settings: Settings, system: System) -> Mean:
    lags, dimension = settings["lags"], system.room.dimension
    names = (VELOCITIES, DISPLACEMENTS) + (ENDS,) * (settings["of"] == "molecules")
    names += (STRESSES,) * bool(_shears(system))

    def sample(seen: Arrays, past: Any) -> Arrays:
        found = {
            VELOCITIES: correlations.velocity_autocorrelation(past["velocity"]),
            DISPLACEMENTS: correlations.squared_displacement(past["position"]),
        }
        if ENDS in names:
            found[ENDS] = correlations.velocity_autocorrelation(past["ends"])
        if STRESSES in names:
            # Green and Kubo's formula takes the mean over the components.
            found[STRESSES] = jnp.mean(past["shear"][0] * past["shear"], axis=1)
            found[VOLUME] = spaces.of_cell(seen["cell"], dimension).volume
        return found

    def diagnose(mean: Arrays, step: jax.Array) -> Arrays:
        numbers = {
            "diffusion_coefficient": correlations.diffusion_coefficient(mean[DISPLACEMENTS], step, dimension),
            "velocity_integral": correlations.integral(mean[VELOCITIES], step) / dimension,
        }
        if ENDS in names:
            numbers["end_to_end_time"] = correlations.integral(mean[ENDS], step) / mean[ENDS][0]
        if STRESSES in names:
            stresses = correlations.integral(mean[STRESSES], step)
            numbers["viscosity"] = mean[VOLUME] / mean[TEMPERATURE] * stresses
        return numbers

    return Mean(
        dict.fromkeys(names, ("lag",)),
        sample,
        diagnose,
        {"lag": system.settings["averages"]["every"] * np.arange(lags + 1, dtype=float)},
    )


def _shears(system: System) -> tuple[str, ...]:
    """Return the names of the components of the shear stress; empty unless the stress is observed."""
    names = stress_names(system.room.dimension)
    return names[system.room.dimension :] if "stress" in system.settings["observed"] else ()


def _of_molecules(system: System, moving: Arrays, params: Params) -> Arrays:
    """Return position and velocity of the centers of mass of molecules, and from their first to their last atoms."""
    mass, means = system.particles.of_each("mass", params), {name: [] for name in (*moving, "ends")}
    if (sites := system.particles.molecules.sites) is not None:
        mass = jnp.where(jnp.asarray(sites.mask(len(mass))), 0, mass)
    for kind in system.particles.molecules.kinds:
        weight = mass[kind.particles]
        weight = (weight / weight.sum(axis=1, keepdims=True))[..., None]
        for name, array in moving.items():
            means[name].append(jnp.sum(weight * array[kind.particles], axis=1))
        first, last = (moving["position"][kind.particles[:, end]] for end in (0, -1))
        means["ends"].append(last - first)
    return {name: jnp.concatenate(arrays) for name, arrays in means.items()}


MEANS: dict[str, Callable[[Settings, System], Mean]] = {
    RADIAL: _radial_distribution,
    STRUCTURE: _structure_factor,
    CORRELATION: _correlation,
}


def mean_quantities(
    quantities: dict[str, Quantity], settings: Settings | None, units: Mapping[str, str], dimension: int
) -> dict[str, Quantity]:
    """Return units and meanings of averages.

    Args:
        quantities: of the system.
        settings: settings of the averages; ``None`` without.
        units: names of the units.
        dimension: of space.
    """
    if settings is None:
        return {}
    plain, length, time = Quantity("1", "a diagnostic"), units["length"], units["time"]
    selected = {name: quantities.get(name, plain) for name in settings["of"]}
    means = {f"mean_{name}": Quantity(one.unit, f"mean {one.doc} so far") for name, one in selected.items()}
    coefficient, stress = over(raised(length, 2), time), over(units["energy"], raised(length, dimension))
    return means | {
        "distance": Quantity(length, "distance of a pair"),
        RADIAL: Quantity("1", "radial distribution function, mean so far"),
        "radial_peak_position": Quantity(length, "distance of the first peak of the radial distribution"),
        "radial_peak_height": Quantity("1", "height of the first peak of the radial distribution"),
        "wave_number": Quantity(over("1", length), "mean wave number of a shell"),
        STRUCTURE: Quantity("1", "static structure factor, mean so far"),
        "lag": Quantity("1", "time steps between two samples"),
        VELOCITIES: Quantity(raised(over(length, time), 2), "velocity autocorrelation, mean so far"),
        DISPLACEMENTS: Quantity(raised(length, 2), "mean square displacement over a lag, mean so far"),
        "diffusion_coefficient": Quantity(coefficient, "slope of the mean square displacement at the longer lags / 2d"),
        ENDS: Quantity(raised(length, 2), "end-to-end vector of a molecule times that a lag later, mean so far"),
        STRESSES: Quantity(raised(stress, 2), "shear stress times that a lag later, mean so far"),
        "viscosity": Quantity(times(stress, time), "integral of the stress autocorrelation over all lags, times V / T"),
        "end_to_end_time": Quantity(
            time, "integral of the autocorrelation of end-to-end vectors over all lags, relative"
        ),
        "velocity_integral": Quantity(coefficient, "integral of the velocity autocorrelation over all lags / d"),
    }
