"""Energies, momenta and contacts of an articulated model."""

import jax.numpy as jnp

from simkit.core.formulation import precise_product
from simkit.core.simulation import Arrays, Params
from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.algebra.tensor import rotated
from simkit.rigid.models.description import Description
from simkit.rigid.models.engine import Engine, Memory


def measures(engine: Engine, description: Description, params: Params, memory: Memory) -> Arrays:
    """Return the diagnostics of a model, with the masses of its engine.

    ``energy``: kinetic, of rotors, in the field of gravity, and of springs at joints with one coordinate; ``momentum``
    and ``angular_momentum`` (lengths; the latter about the origin); ``position_x`` and ``height`` of the frame of the
    first body; ``contacts``, their number, and ``penetration``, the largest in m.

    Args:
        engine: engine of the model.
        description: of the model.
        params: of the simulation.
        memory: state of the engine.
    """
    links = engine.links(params, memory)
    mass, moments = engine.masses(params)
    position, velocity = engine.coordinates(memory)
    dtype = mass.dtype

    body_frame = quaternion.quaternion(links.orientation)
    inertia_frame = quaternion.quaternion(jnp.asarray(description.inertia_frame, dtype))
    omega = vector.vector(links.angular_velocity)
    spin = rotated(vector.vector(moments), quaternion.multiply(body_frame, inertia_frame)) @ omega
    center, linear = vector.vector(links.center), vector.vector(links.velocity)

    kinetic = jnp.sum(mass * vector.dot(linear, linear) + vector.dot(spin, omega)) / 2
    if engine.has_armature:
        kinetic = kinetic + jnp.sum(jnp.asarray(description.armature, dtype) * velocity**2) / 2
    stiffness, where, rest = description.springs
    stretch = position[where.astype(int)] - jnp.asarray(rest, dtype)
    stored = jnp.sum(jnp.asarray(stiffness, dtype) * stretch**2) / 2
    potential = stored - jnp.sum(mass * precise_product(links.center, description.gravity_vector(params)))

    contacts, penetration = engine.contacts(params, memory)
    return {
        "energy": kinetic + potential,
        "momentum": vector.norm(vector.total(mass * linear)),
        "angular_momentum": vector.norm(vector.total(vector.cross(center, mass * linear) + spin)),
        "position_x": links.position[0, 0],
        "height": links.position[0, 2],
        "contacts": contacts,
        "penetration": penetration,
    }
