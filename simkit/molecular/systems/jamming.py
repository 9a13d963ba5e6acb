"""Onset of jamming: a binary mixture of elastic spheres, relaxed with its box to a small pressure."""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.pytrees import pytree
from simkit.core.settings import arguments, number, whole
from simkit.core.simulation import Arrays, Equilibrium, Params, Simulation, as_arrays, described
from simkit.core.status import Status, status_of
from simkit.errors import UserError
from simkit.molecular import minimizers, spaces
from simkit.molecular.analysis import order
from simkit.molecular.declarations import particle_quantities
from simkit.molecular.interactions.interaction import Interaction, Quantities
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.minimizers import Scale, largest_norm
from simkit.molecular.neighbors import pairs
from simkit.molecular.neighbors.pair_sums import PerParticle
from simkit.molecular.potentials import soft_sphere
from simkit.molecular.potentials.soft_sphere import EXPONENT
from simkit.molecular.relaxation import RelaxationState, relaxation
from simkit.molecular.relaxation.landscape import deformation_by, deformed
from simkit.molecular.spaces import MAX_PARTICLES, Cell

# Initial capacity of the neighbor list by dimension, for a random start at the usual densities.
USUAL_NEIGHBORS = {2: 20, 3: 48}
# Fewest particles by dimension: the box is then two large diameters wide at a ratio of 2 and a packing fraction of 1.5.
FEWEST = {2: 16, 3: 64}
DIMENSIONS = {
    "position": ("particle", "axis"),
    "diameter": ("particle",),
    "box": ("axis",),
    "contacts": ("particle",),
    "overlap_energy": ("particle",),
    "load": ("particle",),
}
PLANAR_DIMENSIONS = DIMENSIONS | {"hexatic_order": ("particle",)}


class Mixture(NamedTuple):
    """Spheres of two sizes in a box of side 1 with an energy scale of 1.

    In these units nothing depends on the parameters ``stiffness`` and ``small_diameter``; results are converted to
    them. The side of the box follows from the packing fraction, ``L^d = sum_i v_i / phi``.

    Attributes:
        particles: number of spheres, even.
        dimension: d, 2 or 3.
        exponent: of the energy of an overlap.
    """

    particles: int
    dimension: int
    exponent: float

    def side(self, params: Params) -> jax.Array:
        """Return the side of the box in small diameters, scalar."""
        volume = math.pi / (2 * self.dimension) * jnp.sum(self._sizes(params) ** self.dimension)
        volume = volume / params["packing_fraction"]
        return jnp.sqrt(volume) if self.dimension == 2 else jnp.cbrt(volume)

    def cell(self, params: Params) -> jax.Array:
        """Return the sides of the box, all 1, (d,)."""
        return jnp.ones(self.dimension, params["packing_fraction"].dtype)

    def scale(self, params: Params) -> Scale:
        """Return a small diameter and the stiffness of a contact."""
        side = self.side(params)
        return Scale(length=1 / side, stiffness=side**2)

    def arrangement(self, coordinates: jax.Array, params: Params) -> tuple[jax.Array, jax.Array]:
        """Return positions, (N, d), and sides of the box, (d,), of a relaxing box.

        Args:
            coordinates: (N + d, d), see `simkit.molecular.relaxation.landscape.Landscape`.
            params: the parameters.
        """
        deformation = deformation_by(coordinates, self.scale(params).length, isotropic=True)
        return deformed(coordinates, self.cell(params), deformation)

    def check(self, params: Params, key: jax.Array) -> None:
        """Refuse a box in which a sphere could touch two images of another.

        Args:
            params: the parameters.
            key: unused.

        Raises:
            UserError: if the box is less than two large diameters wide.
        """
        del key
        fraction, ratio = float(params["packing_fraction"]), float(params["diameter_ratio"])
        side, widest = float(self.side(params)), 2 * max(1.0, ratio)
        if not side >= widest:
            raise UserError(
                f"packing_fraction = {fraction:g} leaves {self.particles} particles a box {side:.3g} small diameters "
                f"wide; it must be {widest:g} at diameter_ratio = {ratio:g}: raise particles or lower packing_fraction"
            )

    def start(self, params: Params, key: jax.Array) -> jax.Array:
        """Return uniformly random positions, (N, d)."""
        return jax.random.uniform(key, (self.particles, self.dimension), params["packing_fraction"].dtype)

    def interaction(self) -> Interaction:
        """Return the interaction of the spheres.

        Raises:
            UserError: if the exponent is below 2.
        """
        return pair_interaction(
            soft_sphere(self.exponent),
            cutoff=lambda params: jnp.maximum(1, params["diameter_ratio"]) / self.side(params),
            parameters=lambda params: {
                "epsilon": jnp.ones_like(self.side(params)),
                "sigma": PerParticle(self._sizes(params) / self.side(params), _mean),
            },
            capacity=USUAL_NEIGHBORS[self.dimension],
        )

    def rattlers(self, position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array:
        """Return the mask of rattlers, (N,) booleans; arguments as for `observe`."""
        assert cell is not None  # a mixture is always in a box
        return ~order.load_bearing(self._contacts(position, cell, params, neighbors)[2], self.dimension)

    def observe(self, position: jax.Array, cell: jax.Array, params: Params, neighbors: Any) -> Arrays:
        """Return the arrays of a frame, in the units of ``stiffness`` and ``small_diameter``.

        Args:
            position: (N, d).
            cell: sides of the box, (d,).
            params: the parameters.
            neighbors: of the interaction, current.
        """
        apart, sigma, network = self._contacts(position, cell, params, neighbors)
        potential, length = soft_sphere(self.exponent), params["small_diameter"] * self.side(params)
        touch = {"epsilon": jnp.ones((), position.dtype), "sigma": sigma}
        push = jnp.where(apart.is_pair, potential.force(apart.distance, **touch), 0)
        arrays = {
            "position": length * spaces.periodic(cell).wrap(position),
            "diameter": params["small_diameter"] * self._sizes(params),
            "box": length * cell,
            "contacts": network.touching.sum(axis=1).astype(position.dtype),
            "overlap_energy": params["stiffness"] * pairs.energy_per_particle(apart, potential, **touch),
            "load": order.load((push * apart.distance).sum(axis=1)),
        }
        return arrays | (
            {"hexatic_order": order.polygon_order(apart, network.touching, 6)} if self.dimension == 2 else {}
        )

    def diagnose(self, position: jax.Array, cell: jax.Array, params: Params, neighbors: Any) -> Arrays:
        """Return the diagnostics of a state, in the units of `observe`, whose arguments it takes."""
        interaction, at = self.interaction(), (position, cell, params, neighbors)
        apart, _, network = self._contacts(*at)
        stiffness, length = params["stiffness"], params["small_diameter"] * self.side(params)
        energy, force, stress = interaction.several(("energy", "force", "stress"), *at)
        energy, stress = stiffness * energy, jnp.trace(stress) / self.dimension
        numbers = {
            "energy": energy,
            "energy_per_particle": energy / self.particles,
            "pressure": -stiffness / length**self.dimension * stress,
            "max_force": stiffness / length * largest_norm(force),
            **order.contact_statistics(network, self.dimension, position.dtype),
            "packing_fraction": params["packing_fraction"] / spaces.periodic(cell).volume,
        }
        if self.dimension == 2:
            numbers["hexatic_order"] = order.polygon_order(apart, network.touching, 6).mean()
        return numbers

    def _sizes(self, params: Params) -> jax.Array:
        """Return the diameters in units of the small one, (N,)."""
        return jnp.where(jnp.arange(self.particles) >= self.particles // 2, params["diameter_ratio"], 1)

    def _contacts(
        self, position: jax.Array, cell: jax.Array, params: Params, neighbors: Any
    ) -> tuple[pairs.Pairs, jax.Array, order.Contacts]:
        """Return the candidate pairs, their contact distances, (N, K), and the pairs that touch."""
        apart = order.candidate_pairs(position, spaces.periodic(cell), neighbors)
        diameter = self._sizes(params) / self.side(params)
        sigma = _mean(diameter[:, None], diameter[apart.partner])
        return apart, sigma, order.contact_network(apart, sigma)


def _mean(a: jax.Array, b: jax.Array) -> jax.Array:
    return (a + b) / 2


# Pressure of the first stage with a relaxing box, in units of k / d^D: of a packing a few per cent above the onset.
FIRST_PRESSURE = 1e-3
# Number of stages with a relaxing box, at pressures in a geometric sequence from the first to the last.
STAGES = 4
# Force tolerance of all stages but the last, in the units of ``force_tolerance``.
INTERMEDIATE_TOLERANCE = 1e-2
# The softest modes of a marginally rigid packing take thousands of iterations.
PATIENCE = 5000


@pytree
class JammingState:
    """State of the search for the onset of jamming.

    Attributes:
        relaxation: of the particles and their box.
        stage: int32; 0 for a constant box, then the index of the pressure, from 1 to `STAGES`.
    """

    relaxation: RelaxationState
    stage: jax.Array


# Of a 50:50 mixture of small and large elastic spheres.
PARAMETERS = {
    "pressure": Parameter(
        1e-5,
        POSITIVE,
        "stiffness / small_diameter^2",
        "final pressure; the smaller, the nearer to the onset",
    ),
    "packing_fraction": Parameter(
        0.85,
        POSITIVE,
        doc="area of all disks / area of the box at the start; below 0.842 the box shrinks until the disks jam, above "
        "it swells",
    ),
    "diameter_ratio": Parameter(
        1.4, POSITIVE, "1", "large / small diameter; 1 makes all spheres equal, and disks crystallize"
    ),
    "stiffness": Parameter(
        1.0, POSITIVE, "energy", "energy scale k of a contact, (k / exponent) (1 - distance / sum of radii)^exponent"
    ),
    "small_diameter": Parameter(1.0, POSITIVE, "length", "diameter of the small spheres"),
}


@described(particle_quantities(force="the force of the pressure"))
@arguments(
    dimension=whole("2 for disks, 3 for spheres", low=2, high=3),
    exponent=EXPONENT,
    force_tolerance=number("largest residual force", bounds=(POSITIVE[0], INTERMEDIATE_TOLERANCE)),
)
def jamming(
    *,
    particles: int = 512,
    dimension: int = 2,
    exponent: float = 2.0,
    minimizer: str = "lbfgs",
    force_tolerance: float = 1e-6,
) -> Simulation:
    """Return the search for the onset of jamming of a 50:50 mixture of small and large elastic spheres.

    The energy E sums ``(k / alpha) (1 - r / sigma_ij)^alpha`` over overlapping pairs, ``sigma_ij`` the mean of the two
    diameters. First the spheres relax from random positions in a constant box. Then the box relaxes isotropically with
    them: ``E + p V`` is minimized at pressures that fall by equal factors to the final p. For small p the packing is at
    the onset: its packing fraction is that of jamming, phi_J, with the least number of contacts for rigidity. The
    result is an equilibrium at the final pressure, so the derivative of phi_J is implicit.

    p is the parameter ``pressure``, in units of stiffness / small diameter^d; k is ``stiffness``.

    Args:
        particles: number of spheres, even, at least 16 (64 in three dimensions).
        dimension: 2 for disks, 3 for spheres.
        exponent: alpha, 2 (harmonic) or 2.5 (Hertzian).
        minimizer: as for `simkit.molecular.minimizers.by_name`.
        force_tolerance: largest residual force, in units of pressure times small diameter^(d-1), the force of a
            contact. Good values: 1e-3 to 1e-6.

    Raises:
        UserError: if an argument is out of its range.

    Example:
        >>> disks = molecular.jamming(particles=16, force_tolerance=1e-3)
        >>> run = simkit.run(disks, steps=20_000, every=20_000, pressure=1e-3)
        >>> print(f"{float(run['packing_fraction'][-1]):.1f}")
        0.8

    Reference: O'Hern, Silbert, Liu, Nagel, Phys. Rev. E 68, 011306 (2003), doi:10.1103/PhysRevE.68.011306.
    """
    whole("number of spheres", low=FEWEST[dimension], high=MAX_PARTICLES, is_even=True).check(particles, "particles")
    spheres = Mixture(particles, dimension, exponent)
    single = relaxation(
        _with_constant_box(spheres.interaction()),
        spheres.start,
        params=_at_stage(spheres, as_arrays(PARAMETERS), jnp.int32(0), force_tolerance),
        scale=spheres.scale,
        cell=spheres.cell,
        minimizer=minimizers.by_name(minimizer)._replace(patience=PATIENCE),
        force_tolerance=force_tolerance,
        force_unit=lambda p: p["slack"] * p["pressure"] / spheres.side(p) ** (dimension - 1),
        relax_cell=True,
        isotropic=True,
        rattlers=spheres.rattlers,
    )
    return _staged(spheres, single, force_tolerance)


def _with_constant_box(interaction: Interaction) -> Interaction:
    """Return the interaction with a stress that balances the pressure while the parameter ``held`` is positive."""

    def held(own: jax.Array, params: Params) -> jax.Array:
        return jnp.where(params["held"] > 0, -params["pressure"] * jnp.eye(len(own), dtype=own.dtype), own)

    def together(
        names: Quantities, position: jax.Array, cell: Cell, params: Params, neighbors: object
    ) -> tuple[jax.Array, ...]:
        values = interaction.several(names, position, cell, params, neighbors)
        return tuple(held(each, params) if name == "stress" else each for name, each in zip(names, values, strict=True))

    sized_like = interaction.sized_like
    return dataclasses.replace(
        interaction,
        stress=lambda position, cell, params, neighbors: together(("stress",), position, cell, params, neighbors)[0],
        together=together,
        sized_like=sized_like and (lambda lists: _with_constant_box(sized_like(lists))),
    )


def _at_stage(spheres: Mixture, params: Params, stage: jax.Array, force_tolerance: float) -> Params:
    """Return the parameters of a stage: pressure in units of the box, constant box or not, factor on the tolerance."""
    progress = jnp.clip((stage - 1) / (STAGES - 1), 0, 1).astype(params["pressure"].dtype)
    pressure = FIRST_PRESSURE ** (1 - progress) * params["pressure"] ** progress
    # At the last stage the power is exact, but the derivative must not pass through the other factor.
    pressure = jnp.where(stage == STAGES, params["pressure"], pressure)
    return params | {
        "pressure": pressure * spheres.side(params) ** spheres.dimension,
        "held": (stage == 0).astype(pressure.dtype),
        "slack": jnp.where(stage == STAGES, 1.0, INTERMEDIATE_TOLERANCE / force_tolerance).astype(pressure.dtype),
    }


def _staged(spheres: Mixture, single: Simulation, force_tolerance: float) -> Simulation:
    """Return the simulation that relaxes at one pressure after the other, from the relaxation at a single pressure."""
    solved, single_status = single.equilibrium, status_of(single)
    assert solved is not None  # every relaxation has one
    refresh = spheres.interaction().refresh

    def at_stage(params: Params, stage: jax.Array) -> Params:
        return _at_stage(spheres, params, stage, force_tolerance)

    def at_last(params: Params) -> Params:
        return at_stage(params, jnp.int32(STAGES))

    def init(params: Params, key: jax.Array) -> JammingState:
        stage = jnp.int32(0)
        return JammingState(relaxation=single.init(at_stage(params, stage), key), stage=stage)

    def step(state: JammingState, params: Params) -> JammingState:
        now = at_stage(params, state.stage)
        relaxation = single.step(state.relaxation, now)
        is_next = (single_status(relaxation, now) == Status.CONVERGED) & (state.stage < STAGES)
        return JammingState(relaxation=relaxation, stage=state.stage + is_next.astype(jnp.int32))

    def status(state: JammingState, params: Params) -> jax.Array:
        code = single_status(state.relaxation, at_stage(params, state.stage))
        return jnp.where((code == Status.CONVERGED) & (state.stage < STAGES), jnp.int32(Status.OK), code)

    def current(state: JammingState, params: Params) -> tuple:
        now = at_stage(params, state.stage)
        position, cell = spheres.arrangement(state.relaxation.descent.position, now)
        return position, cell, now, refresh(state.relaxation.neighbors, position, cell, now)

    def diagnose(state: JammingState, params: Params) -> Arrays:
        return {"iteration": state.relaxation.descent.iteration} | spheres.diagnose(*current(state, params))

    def sized_like(state: JammingState) -> Simulation:
        return _staged(spheres, single.with_buffers_of(state.relaxation), force_tolerance)

    def replace(state: JammingState, coordinates: jax.Array) -> JammingState:
        return dataclasses.replace(state, relaxation=solved.replace(state.relaxation, coordinates))

    return Simulation(
        init=init,
        step=step,
        observe=lambda state, params: spheres.observe(*current(state, params)),
        diagnose=diagnose,
        params=PARAMETERS,
        converges=True,
        equilibrium=Equilibrium(
            unknowns=lambda state: solved.unknowns(state.relaxation),
            residual=lambda coordinates, params: solved.residual(coordinates, at_last(params)),
            replace=replace,
        ),
        status=status,
        sized_like=sized_like,
        check=spheres.check,
        dimensions=PLANAR_DIMENSIONS if spheres.dimension == 2 else DIMENSIONS,
    )
