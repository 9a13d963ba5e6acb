"""Lennard-Jones fluid: molecular dynamics from a crystal, with averages of the liquid."""

import math
from collections.abc import Sequence
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.averages import averaged
from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Parameter
from simkit.core.quantities import described
from simkit.core.simulation import Arrays, Params, Simulation
from simkit.errors import UserError, nearest
from simkit.molecular import spaces
from simkit.molecular.analysis.radial_distribution import highest_peak, radial_distribution, shell_centers
from simkit.molecular.dynamics import DynamicsState, langevin, maxwell_boltzmann, velocity_verlet
from simkit.molecular.dynamics.measures import thermodynamics
from simkit.molecular.interactions.full_lennard_jones import full_lennard_jones
from simkit.molecular.models.quantities import particle_quantities
from simkit.molecular.spaces import Cell
from simkit.molecular.structures import lattices

PARAMETERS = {
    "density": Parameter(0.86, POSITIVE, "1 / sigma^3", "number of atoms / volume"),
    "temperature": Parameter(
        0.9, NOT_NEGATIVE, "epsilon / k_B", "temperature of the bath, and of the velocities at the start"
    ),
    "friction": Parameter(1.0, NOT_NEGATIVE, "sqrt(epsilon / mass) / sigma", "rate at which the bath damps velocities"),
    "time_step": Parameter(
        0.005, POSITIVE, "sigma sqrt(mass / epsilon)", "time step; sample_every of them are one step of the run"
    ),
}
SKIN = 0.1
# Neighbors that the most crowded atom has, in terms of the mean.
ROOM = 1.3
AVERAGES = ("temperature", "pressure", "potential_energy_per_particle")
METHODS = ("langevin", "velocity_verlet")


@described(
    particle_quantities("sigma", "epsilon", "3"),
    time=("sigma sqrt(mass/epsilon)", "time"),
    velocity=("sqrt(epsilon/mass)", "velocity"),
    speed=("sqrt(epsilon/mass)", "speed"),
    origin=("sigma", "where along x each particle began"),
    distance=("sigma", "distance of a pair"),
    radial_distribution=("1", "radial distribution function, mean so far"),
    energy=("epsilon", "total energy"),
    kinetic_energy=("epsilon", "kinetic energy"),
    potential_energy=("epsilon", "potential energy"),
    potential_energy_per_particle=("epsilon", "potential energy per particle"),
    temperature=("epsilon/k_B", "temperature of the kinetic energy"),
    momentum=("sqrt(mass epsilon)", "length of the momentum"),
    mean_square_displacement=("sigma^2", "mean square displacement from the sites"),
    mean_temperature=("epsilon/k_B", "mean temperature so far"),
    mean_pressure=("epsilon/sigma^3", "mean pressure so far"),
    mean_potential_energy_per_particle=("epsilon", "mean potential energy per particle so far"),
    radial_peak_position=("sigma", "distance of the first peak of the radial distribution"),
    radial_peak_height=("1", "height of the first peak of the radial distribution"),
)
def fluid(
    *,
    repeats: Sequence[int] = (5, 5, 5),
    method: str = "langevin",
    cutoff: float = 3.5,
    switch_on: float = 3.0,
    sample_every: int = 10,
    equilibration: int = 300,
    radial_reach: float = 3.5,
    radial_bins: int = 140,
) -> Simulation:
    """Return molecular dynamics of Lennard-Jones atoms at a given density and temperature, with their averages.

    Units are those of Lennard and Jones: epsilon, sigma, the mass of an atom and k_B are 1, the unit of time is
    ``sigma sqrt(mass / epsilon)``. The atoms start on a face-centered cubic lattice with random velocities and no
    motion of their center of mass. The potential fades out between ``switch_on`` and ``cutoff``; energy and pressure
    include the rest as if the fluid were uniform there.

    One step is ``sample_every`` time steps and one sample of temperature, pressure, potential energy and g(r). The
    means, in diagnostics that begin with ``mean_`` and in the observed ``radial_distribution``, are those of all
    samples after the first ``equilibration``; until then they are NaN.

    Args:
        repeats: unit cells of 4 atoms along each axis at the start.
        method: ``"langevin"``, constant temperature; ``"velocity_verlet"``, constant energy, no bath: half of the
            kinetic energy of the start goes into shaking the lattice.
        cutoff: where the potential ends; at most half the narrowest width of the box.
        switch_on: where it begins to fade.
        sample_every: time steps between samples.
        equilibration: samples left out of the means, at the start.
        radial_reach: largest distance of g(r); at most half the narrowest width of the box.
        radial_bins: number of distances.

    Raises:
        UserError: if an argument is out of its range.

    Reference: Verlet, Phys. Rev. 159, 98 (1967), doi:10.1103/PhysRev.159.98.
    """
    if method not in METHODS:
        raise UserError(f"unknown method '{method}'{nearest(method, list(METHODS))}")
    if not 0 < switch_on < cutoff:
        raise UserError(f"switch_on = {switch_on} is not between 0 and cutoff = {cutoff}; choose 3 and 3.5")
    if radial_bins < 3 or not radial_reach > 0:
        raise UserError(
            f"radial_bins = {radial_bins} and radial_reach = {radial_reach}; choose at least 3 and a positive length"
        )
    lattice = lattices.face_centered_cubic(cast("tuple[int, int, int]", tuple(repeats)))
    # In units of the box, so that the density may be traced.
    edges = np.diag(np.asarray(lattice.cell, np.float64))
    sites, count = np.asarray(lattice.position, np.float64) / edges, len(lattice.position)
    density = cast(float, PARAMETERS["density"].default)
    shape = edges / edges.prod() ** (1 / 3)
    width = float(shape.min() * (count / density) ** (1 / 3))
    if width < 2 * max(cutoff, radial_reach):
        raise UserError(
            f"repeats = {list(repeats)} make a box {width:.3g} wide at density {density}; "
            f"cutoff and radial_reach need {2 * max(cutoff, radial_reach):g}"
        )
    room = math.ceil(ROOM * density * 4 / 3 * math.pi * ((1 + SKIN) * cutoff) ** 3)

    def one(params: Params) -> jax.Array:
        return jnp.ones_like(params["density"])

    interaction = full_lennard_jones(
        switch_on, cutoff, capacity=min(room, count), skin=SKIN, units=lambda params: (one(params), one(params))
    )

    def box(params: Params) -> jax.Array:
        return jnp.asarray(shape, params["density"].dtype) * (count / params["density"]) ** (1 / 3)

    def home(params: Params) -> jax.Array:
        return jnp.asarray(sites, params["density"].dtype) * box(params)

    def velocity(params: Params, key: jax.Array) -> jax.Array:
        return maxwell_boltzmann(key, params["temperature"], one(params), sites.shape, drift=False)

    def displacement(state: DynamicsState, params: Params) -> jax.Array:
        """Return how far every atom has come from its site, the drift of all taken away, (N,)."""
        away = spaces.displacement_without_drift(spaces.free(3), state.position, home(params))
        return jnp.sqrt(jnp.sum(away**2, axis=1))

    def observe(state: DynamicsState, cell: Cell, params: Params) -> Arrays:
        del cell
        return {
            "diameter": jnp.ones(count, state.position.dtype),
            "displacement": displacement(state, params),
            # Where along x the atom began, as a fraction of the box.
            "origin": jnp.asarray(sites[:, 0], state.position.dtype),
        }

    def sample(state: DynamicsState, params: Params) -> Arrays:
        conserved = jnp.eye(3, dtype=state.position.dtype) * (method == "velocity_verlet")
        numbers = thermodynamics(interaction, state, box(params), params, one(params), conserved=conserved)
        found = {name: numbers[name] for name in AVERAGES}
        shells = radial_distribution(state.position, box(params), reach=radial_reach, bins=radial_bins)
        return found | {"radial_distribution": shells}

    def diagnose(mean: Arrays, params: Params) -> Arrays:
        del params
        position, height = highest_peak(mean["radial_distribution"], radial_reach)
        numbers = {f"mean_{name}": mean[name] for name in AVERAGES}
        return numbers | {"radial_peak_position": position, "radial_peak_height": height}

    def measure(state: DynamicsState, cell: Cell, params: Params) -> Arrays:
        del cell
        return {"mean_square_displacement": jnp.mean(displacement(state, params) ** 2)}

    dynamics = langevin if method == "langevin" else velocity_verlet
    moving = dynamics(
        interaction,
        lambda params, key: home(params),
        params={name: told for name, told in PARAMETERS.items() if method == "langevin" or name != "friction"},
        cell=box,
        mass=one,
        velocity=velocity,
        observe=observe,
        measure=measure,
        dimensions={name: ("particle",) for name in ("diameter", "displacement", "origin")},
    )
    return averaged(
        moving,
        sample,
        every=sample_every,
        skip=equilibration,
        observe=lambda mean, params: {"radial_distribution": mean["radial_distribution"]},
        diagnose=diagnose,
        dimensions={"radial_distribution": ("distance",)},
        coordinates={"distance": shell_centers(radial_reach, radial_bins)},
    )
