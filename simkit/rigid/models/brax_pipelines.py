"""The three pipelines of brax as engines: spring, positional and generalized."""

import copy
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.simulation import Params
from simkit.rigid.models.brax_limits import (
    refuse_time_step,
    refuse_what_brax_lacks,
    refusing_what_is_not_implemented,
)
from simkit.rigid.models.description import Description
from simkit.rigid.models.engine import Engine, Links, like
from simkit.rigid.models.source import library, quiet

# Angular velocity in rad/s given to a free body at zero, where the generalized pipeline has no derivative.
LEAST_TURNING = 1e-12


def brax_engine(name: str, description: Description) -> Engine:
    """Return a pipeline of brax for a model.

    The spring and positional pipelines integrate every body separately and pull them together at the joints; with the
    custom numbers ``spring_mass_scale`` and ``spring_inertia_scale`` s of the model, they use masses ``m^(1 - s)`` (all
    1 in the models of brax). The generalized pipeline integrates joint coordinates, with the masses of the model.

    Args:
        name: ``"brax-spring"``, ``"brax-positional"`` or ``"brax-generalized"``.
        description: of the model.

    Raises:
        UserError: if brax does not support a feature of the model.
    """
    refuse_what_brax_lacks(name, description.mujoco)
    contact, pipeline = library("brax.contact"), library(f"brax.{name.removeprefix('brax-')}.pipeline")
    with quiet(), refusing_what_is_not_implemented(name):
        system = library("brax.io.mjcf").load_model(copy.deepcopy(description.mujoco))
    is_generalized = name == "brax-generalized"
    rotations = _free_rotations(description) if is_generalized else np.zeros(0, int)
    with refusing_what_is_not_implemented(name):
        placed = jax.eval_shape(lambda: contact.get(system, pipeline_start(pipeline, system).x))

    def system_with(params: Params) -> Any:
        return _with_params(system, description, params)

    def start(params: Params, position: jax.Array, velocity: jax.Array) -> Any:
        state = pipeline.init(system_with(params), position, _moving(velocity, rotations))
        return like(state, state)

    def advance(params: Params, state: Any, controls: jax.Array) -> Any:
        model = system_with(params)

        def step(state: Any, control: jax.Array) -> tuple[Any, None]:
            state = state.replace(qd=_moving(state.qd, rotations))
            return like(pipeline.step(model, state, control), state), None

        return jax.lax.scan(step, state, controls)[0]

    def links(params: Params, state: Any) -> Links:
        if not is_generalized:
            center, velocity, spin = state.x_i.pos, state.xd_i.vel, state.xd_i.ang
        else:
            inertia = system_with(params).link.inertia
            center = state.x.vmap().do(inertia.transform).pos
            spin = state.cd.ang
            velocity = state.cd.vel + jnp.cross(spin, center - state.root_com)
        return Links(
            position=state.x.pos, orientation=state.x.rot, center=center, velocity=velocity, angular_velocity=spin
        )

    def contacts(params: Params, state: Any) -> tuple[jax.Array, jax.Array]:
        if placed is None:
            return jnp.int32(0), jnp.zeros_like(params["time_step"])
        distance = contact.get(system_with(params), state.x).dist
        return jnp.sum(distance < 0, dtype=jnp.int32), jnp.maximum(-jnp.min(distance), 0)

    def masses(params: Params) -> tuple[jax.Array, jax.Array]:
        mass, inertia = description.masses(params)
        if is_generalized:
            return mass, inertia
        return mass ** (1 - system.spring_mass_scale), inertia ** (1 - system.spring_inertia_scale)

    def check(params: Params) -> None:
        if name == "brax-spring":
            mass, inertia = (np.asarray(array, float) for array in masses(params))
            refuse_time_step(system, description, mass, inertia, float(params["time_step"]))

    return Engine(
        start=start,
        advance=advance,
        coordinates=lambda state: (state.q, state.qd),
        links=links,
        contacts=contacts,
        masses=masses,
        has_armature=is_generalized,
        check=check,
        touches=placed is not None,
    )


def pipeline_start(pipeline: Any, system: Any) -> Any:
    """Return the state of a pipeline at rest at the initial position of its system."""
    return pipeline.init(system, jnp.asarray(system.init_q), jnp.zeros(system.nv))


def _with_params(system: Any, description: Description, params: Params) -> Any:
    mass, _ = description.masses(params)
    inertia = system.link.inertia
    ratio = mass / jnp.asarray(description.mass, mass.dtype)
    inertia = inertia.replace(mass=mass, i=inertia.i * ratio[:, None, None])
    return system.replace(
        link=system.link.replace(inertia=inertia),
        gravity=description.gravity_vector(params),
        geom_friction=system.geom_friction * params["friction_scale"],
        pair_friction=system.pair_friction * params["friction_scale"],
        opt=system.opt.replace(timestep=params["time_step"]),
    )


def _free_rotations(description: Description) -> np.ndarray:
    """Return the indices of the angular velocities of the F free bodies among the velocities, (F, 3)."""
    model = description.mujoco
    first = model.jnt_dofadr[model.jnt_type == 0]
    return first[:, None] + np.arange(3, 6)


def _moving(velocity: jax.Array, rotations: np.ndarray) -> jax.Array:
    """Return velocities with `LEAST_TURNING` added to free bodies of zero angular velocity."""
    if not rotations.size:
        return velocity
    spin = velocity[rotations]
    still = jnp.all(spin == 0, axis=1)
    return velocity.at[rotations[:, 0]].add(jnp.where(still, LEAST_TURNING, 0).astype(velocity.dtype))
