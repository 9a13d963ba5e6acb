"""Onset of jamming: relaxation of a packing and its box to a small pressure."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.pytree import pytree
from simkit.core.quantities import described
from simkit.core.simulation import Arrays, Equilibrium, Params, Simulation, as_arrays
from simkit.core.status import Status, status_of
from simkit.errors import UserError
from simkit.molecular import minimizers
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.models.mixture import Mixture, mixture
from simkit.molecular.models.parameters import MIXTURE_PARAMETERS
from simkit.molecular.models.quantities import particle_quantities
from simkit.molecular.relaxation import RelaxationState, relaxation
from simkit.molecular.spaces import Cell

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


PARAMETERS = {
    "pressure": Parameter(
        1e-5,
        POSITIVE,
        "stiffness / small_diameter^2",
        "final pressure; the smaller, the nearer to the onset",
    ),
    **MIXTURE_PARAMETERS,
    "packing_fraction": Parameter(
        0.85,
        POSITIVE,
        doc="area of all disks / area of the box at the start; below 0.842 the box shrinks until the disks jam, above "
        "it swells",
    ),
}


@described(particle_quantities())
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

    Reference: O'Hern, Silbert, Liu, Nagel, Phys. Rev. E 68, 011306 (2003), doi:10.1103/PhysRevE.68.011306.
    """
    if not 0 < force_tolerance <= INTERMEDIATE_TOLERANCE:
        raise UserError(
            f"force_tolerance = {force_tolerance} is not between 0 and {INTERMEDIATE_TOLERANCE}; choose 1e-6"
        )
    spheres = mixture(particles, dimension, exponent, "packing_fraction")
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

    def stress(position: jax.Array, cell: Cell, params: Params, neighbors: object) -> jax.Array:
        own = interaction.stress(position, cell, params, neighbors)
        return jnp.where(params["held"] > 0, -params["pressure"] * jnp.eye(len(own), dtype=own.dtype), own)

    sized_like = interaction.sized_like
    return interaction._replace(
        stress=stress, sized_like=sized_like and (lambda lists: _with_constant_box(sized_like(lists)))
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
        dimensions=spheres.dimensions,
    )
