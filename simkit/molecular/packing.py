"""Packings of soft disks in a periodic square, relaxed from random positions to mechanical equilibrium."""

import dataclasses
import math

import jax
import jax.numpy as jnp

from simkit.core.pytree import pytree
from simkit.core.simulation import Arrays, Equilibrium, Params, Simulation
from simkit.errors import UserError
from simkit.molecular import contacts, minimizers, pairs, spaces
from simkit.molecular.minimizers.fire import FireState
from simkit.molecular.potentials import mean_diameter, soft_sphere

DIMENSION = 2


@pytree
class PackingState:
    """A packing on its way to equilibrium.

    Attributes:
        relaxation: FIRE's state; its positions are in units of the box side, so that a change of packing fraction
            moves the particles along with the box.
        relaxed_for: packing fraction and diameter ratio that the force kept in ``relaxation`` belongs to, (2,).
    """

    relaxation: FireState
    relaxed_for: jax.Array


def soft_sphere_packing(*, particles: int = 256, exponent: float = 2.0, force_tolerance: float = 1e-10) -> Simulation:
    """Return the relaxation of a 50:50 mixture of small and large elastic disks to mechanical equilibrium.

    The energy sums ``(k / alpha) (1 - r / sigma_ij)^alpha`` over overlapping pairs, ``sigma_ij`` the mean of the two
    diameters. The box is a periodic square of side ``L = sqrt(sum_i pi d_i^2 / (4 phi))``. Disks start at uniformly
    random positions and follow FIRE until no force exceeds the tolerance. Above the jamming packing fraction (0.842
    for ratio 1.4) they end up jammed, below it without overlap.

    Parameters: ``packing_fraction`` phi; ``diameter_ratio`` of large to small disks (1 for equal disks);
    ``stiffness`` k, energy; ``small_diameter``, length.

    Args:
        particles: number of disks, even, at least 16.
        exponent: alpha, 2 (harmonic) or 2.5 (Hertzian).
        force_tolerance: largest remaining force, in units of stiffness / small diameter. Good values: 1e-10 in
            float64, 1e-5 in float32, where round-off ends the descent near 1e-6.

    Raises:
        UserError: if an argument is out of its range.

    Reference: O'Hern, Silbert, Liu, Nagel, Phys. Rev. E 68, 011306 (2003), doi:10.1103/PhysRevE.68.011306.
    """
    if particles < 16 or particles % 2:
        raise UserError(f"particles = {particles}; a half-and-half mixture needs an even number, at least 16")
    if not 0 < force_tolerance < 1:
        raise UserError(f"force_tolerance = {force_tolerance} is not between 0 and 1; choose 1e-10 (float64)")
    potential, fire = soft_sphere(exponent), minimizers.fire()

    # The work is done in units of stiffness and small diameter: the path to equilibrium does not depend on either.
    def diameter(params: Params) -> jax.Array:
        return jnp.where(jnp.arange(particles) >= particles // 2, params["diameter_ratio"], 1)

    def side(params: Params) -> jax.Array:
        return jnp.sqrt(math.pi / 4 * jnp.sum(diameter(params) ** 2) / params["packing_fraction"])

    def space(params: Params) -> spaces.Space:
        return spaces.periodic(jnp.full(DIMENSION, side(params)))

    def separations(position: jax.Array, params: Params) -> pairs.Pairs:
        return pairs.all_pairs(side(params) * position, space(params))

    def contact(params: Params) -> Arrays:
        return {"epsilon": jnp.ones_like(side(params)), "sigma": mean_diameter(diameter(params))}

    def force(position: jax.Array, params: Params) -> jax.Array:
        return side(params) * pairs.forces(separations(position, params), potential, **contact(params))

    def evaluate(params: Params) -> minimizers.Evaluate:
        # FIRE looks at forces alone.
        return lambda position: (jnp.zeros_like(side(params)), force(position, params))

    def scale(params: Params) -> minimizers.Scale:
        return minimizers.Scale(length=1 / side(params), stiffness=side(params) ** 2)

    def relaxed_for(params: Params) -> jax.Array:
        return jnp.stack([params["packing_fraction"], params["diameter_ratio"]])

    def start(params: Params, key: jax.Array) -> PackingState:
        position = jax.random.uniform(key, (particles, DIMENSION), dtype=side(params).dtype)
        relaxation = minimizers.start(fire, position, evaluate(params), scale(params))
        return PackingState(relaxation=relaxation, relaxed_for=relaxed_for(params))

    def step(state: PackingState, params: Params) -> PackingState:
        relaxation = minimizers.step(fire, state.relaxation, evaluate(params), scale(params))
        return PackingState(relaxation=relaxation, relaxed_for=relaxed_for(params))

    def done(state: PackingState, params: Params) -> jax.Array:
        # A packing relaxed under other parameters is not done under these, whatever its kept force says.
        is_current = (state.relaxed_for == relaxed_for(params)).all()
        return is_current & (minimizers.largest_norm(state.relaxation.force) < force_tolerance * side(params))

    def observe(state: PackingState, params: Params) -> Arrays:
        position = state.relaxation.position
        apart, touch = separations(position, params), contact(params)
        network = contacts.contact_network(apart, touch["sigma"])
        length = params["small_diameter"]
        return {
            "position": length * space(params).wrap(side(params) * position),
            "diameter": length * diameter(params),
            "box": length * jnp.full(DIMENSION, side(params)),
            "contacts": network.sum(axis=1).astype(position.dtype),
            "overlap_energy": params["stiffness"] * pairs.energy_per_particle(apart, potential, **touch),
        }

    def diagnose(state: PackingState, params: Params) -> Arrays:
        position = state.relaxation.position
        apart, touch = separations(position, params), contact(params)
        network = contacts.contact_network(apart, touch["sigma"])
        bearing = contacts.load_bearing(network, DIMENSION)
        stiffness, length = params["stiffness"], params["small_diameter"]
        energy = stiffness * pairs.energy_per_particle(apart, potential, **touch).sum()
        pressure = pairs.virial(apart, potential, **touch) / (DIMENSION * space(params).volume)
        return {
            "iteration": state.relaxation.iteration,
            "energy": energy,
            "energy_per_particle": energy / particles,
            "pressure": stiffness / length**DIMENSION * pressure,
            "max_force": stiffness / length * minimizers.largest_norm(pairs.forces(apart, potential, **touch)),
            "contact_number": contacts.contact_number(network, bearing).astype(position.dtype),
            "rattler_fraction": 1 - bearing.astype(position.dtype).mean(),
            "packing_fraction": params["packing_fraction"],
        }

    defaults = {"packing_fraction": 0.9, "diameter_ratio": 1.4, "stiffness": 1.0, "small_diameter": 1.0}
    return Simulation(
        init=start,
        step=step,
        observe=observe,
        diagnose=diagnose,
        params={name: jnp.asarray(value, dtype=float) for name, value in defaults.items()},
        done=done,
        equilibrium=Equilibrium(
            unknowns=lambda state: state.relaxation.position,
            residual=lambda position, params: -force(position, params),
            replace=lambda state, position: dataclasses.replace(
                state, relaxation=dataclasses.replace(state.relaxation, position=position)
            ),
            # A rigid translation costs no energy; nothing else is free by symmetry.
            project=lambda position: position - position.mean(axis=0),
        ),
        dimensions={
            "position": ("particle", "axis"),
            "diameter": ("particle",),
            "box": ("axis",),
            "contacts": ("particle",),
            "overlap_energy": ("particle",),
        },
    )
