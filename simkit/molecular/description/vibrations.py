"""Phonons of a system that relaxes: dispersion along a path of wave vectors, density of states, and speeds of sound."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.settings import Settings
from simkit.core.simulation import Arrays, Params, Quantity, over
from simkit.errors import UserError, known
from simkit.molecular import spaces
from simkit.molecular.description.composition import System
from simkit.molecular.description.units import words_of
from simkit.molecular.phonons import density_of_states, mesh, path, phonons
from simkit.molecular.spaces import Cell

FREQUENCY, DENSITY, PATH, BRANCH, BINS = "phonon_frequency", "density_of_states", "wave_path", "branch", "frequency"
# Wave vectors of sound, as a share of the first line of the path; their even error is extrapolated away.
SOUND = 0.01


def phonon_dimensions(system: System) -> dict[str, tuple[str, ...]]:
    """Return the names of the axes of phonons, empty without them.

    Args:
        system: the system.

    Raises:
        UserError: if particles are frozen, a corner is unknown or of another dimension, or wave vectors are too many.
    """
    settings = system.settings["phonons"]
    if settings is None:
        return {}
    dimension = system.room.dimension
    if system.frozen is not None:
        raise UserError(f"{settings.where} are those of particles that all move; leave them out")
    if len(settings["path"]) < 2:
        raise settings.refuse("path", "joins fewer than two corners; name two or more")
    if settings["path"][0] == settings["path"][1]:
        raise settings.refuse("path", "begins with a line of no length; name two different corners")
    for name in settings["path"]:
        known(name, settings["corners"], settings.path("path"))
    lengths = {f"corners.{name}": corner for name, corner in settings["corners"].items()}
    lengths["repeats"] = settings["repeats"] or (1,) * dimension
    if settings[DENSITY] is not None:
        lengths[f"{DENSITY}.mesh"] = settings[DENSITY]["mesh"]
    for key, values in lengths.items():
        if len(values) != dimension:
            raise UserError(f"{settings.path(key)} has {len(values)} numbers in {dimension} dimensions; give as many")
    if settings[DENSITY] is not None:
        points = settings[DENSITY]["mesh"]
        given = f"{settings.path(DENSITY)}.mesh = {list(points)}"
        spaces.check_wave_vectors(math.prod(points), given, "choose fewer")
    return {FREQUENCY: (PATH, BRANCH)} | ({} if settings[DENSITY] is None else {DENSITY: (BINS,)})


def phonon_coordinates(system: System) -> dict[str, np.ndarray]:
    """Return the coordinates of phonons: the path has a whole number at each corner, branches count from 1.

    Args:
        system: the system.
    """
    settings = system.settings["phonons"]
    if settings is None:
        return {}
    lines = len(settings["path"]) - 1
    found = {
        PATH: np.linspace(0.0, lines, settings["points"] * lines + 1),
        f"{PATH}_names": np.array(settings["path"]),
        BRANCH: np.arange(1.0, system.particles.count * system.room.dimension + 1),
    }
    return found | ({} if settings[DENSITY] is None else {BINS: _bins(settings[DENSITY])})


def phonon_quantities(system: System) -> dict[str, Quantity]:
    """Return units and meanings of phonons.

    Args:
        system: the system.
    """
    if system.settings["phonons"] is None:
        return {}
    units = words_of(system.settings["units"])
    frequency, speed = over("1", units["time"]), over(units["length"], units["time"])
    sounds = {
        name: Quantity(speed, "speed of sound along the first line of the path, slowest first")
        for name in _sounds(system.room.dimension)
    }
    return sounds | {
        FREQUENCY: Quantity(frequency, "angular frequency of phonons; below zero the growth rate of an unstable one"),
        DENSITY: Quantity(units["time"], "density of states per cell, of angular frequencies"),
        PATH: Quantity("1", "place on the path of wave vectors, a whole number at each corner"),
        BRANCH: Quantity("1", "number of the branch, by ascending frequency"),
        BINS: Quantity(frequency, "angular frequency"),
    }


def _sounds(dimension: int) -> list[str]:
    return [f"sound_{number}" for number in range(1, dimension + 1)]


def _bins(settings: Settings) -> np.ndarray:
    return np.linspace(0.0, settings["largest"], settings["bins"])


def phonons_at(system: System, position: jax.Array, cell: Cell, params: Params) -> tuple[Arrays, Arrays]:
    """Return the arrays of phonons for frames, and the speeds of sound; both empty without them.

    Those of a crystal at rest are its vibrations; on the way there they are those of the forces that act.

    Args:
        system: the system.
        position: of the particles, (N, d).
        cell: edges of the cell, which is the unit cell.
        params: parameters of the system.
    """
    settings, dimension = system.settings["phonons"], system.room.dimension
    if settings is None:
        return {}, {}
    assert cell is not None  # refused in free space
    vectors = spaces.lattice_vectors(cell)
    # Wave vectors are in units of the vectors of the file, of which those of the cell may be integer combinations.
    turned = np.eye(dimension) if system.room.reduction is None else np.asarray(system.room.reduction, float)
    corners = np.array([settings["corners"][name] for name in settings["path"]]) @ turned.T
    along, _ = path(vectors, corners, settings["points"])
    center = jnp.zeros((dimension,), position.dtype)
    sound = path(vectors, [0 * corners[0], SOUND * (corners[1] - corners[0])], 1)[0][1]
    waves = [along, jnp.stack([center + sound, center + 2 * sound])]
    density = settings[DENSITY]
    if density is not None:
        waves.append(mesh(vectors, density["mesh"]))
    assert system.supercell is not None  # there is one of phonons
    repeats, interaction = system.supercell
    found = phonons(
        interaction,
        position,
        vectors,
        params,
        jnp.concatenate(waves),
        repeats=repeats,
        mass=system.particles.of_each("mass", params),
    ).frequency
    first, second = len(along), len(along) + 2
    # Zero where round-off hides so slow a wave, as in float32.
    slow = jnp.where(found[first:second, :dimension] == 0, jnp.nan, found[first:second, :dimension])
    once, twice = slow / jnp.sqrt(jnp.sum(sound**2)) / jnp.asarray([[1.0], [2.0]], position.dtype)
    speeds = (4 * once - twice) / 3
    arrays = {FREQUENCY: found[:first]}
    if density is not None:
        at = jnp.asarray(_bins(density), position.dtype)
        arrays[DENSITY] = density_of_states(found[second:], at, density["width"])
    return arrays, dict(zip(_sounds(dimension), speeds, strict=True))
