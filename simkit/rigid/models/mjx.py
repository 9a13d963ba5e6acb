"""MJX as an engine: MuJoCo's equations of motion and soft contact on JAX."""

import copy
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.formulation import precise_product
from simkit.core.pytrees import pytree
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.rigid.models.description import Description, subtree_matrix
from simkit.rigid.models.engine import Engine, Links, like, silent, supporting, watched
from simkit.rigid.models.source import library, quiet


@pytree
class MjxMemory:
    """State that MJX carries from step to step.

    Attributes:
        position: coordinates, (nq,).
        velocity: velocities, (nv,).
        activation: states of actuators, (na,).
        warm_start: acceleration, initial guess of the solver, (nv,).
    """

    position: jax.Array
    velocity: jax.Array
    activation: jax.Array
    warm_start: jax.Array


def mjx_engine(description: Description) -> Engine:
    """Return MJX as an engine for a model.

    Links are computed from the coordinates; those stored in the data of MJX are one step old.

    Args:
        description: of the model.

    Raises:
        UserError: if MJX does not support a feature of the model.
    """
    mjx: Any = library("mujoco.mjx")
    option = description.mujoco.opt
    unread = {"noslip_iterations": option.noslip_iterations > 0, "actuatorgroupdisable": option.disableactuator != 0}
    with quiet(), supporting("mjx", unread):
        system = mjx.put_model(copy.deepcopy(description.mujoco))
        empty = mjx.make_data(system)
    iterations = int(description.mujoco.opt.iterations)
    is_constrained = empty._impl.efc_J.shape[0] > 0
    touches = empty._impl.contact.dist.shape[0] > 0

    def refuse_reverse() -> None:
        raise UserError(
            f"engine = 'mjx' has no derivative in reverse mode through a solver of {iterations} iterations; set "
            'solver_iterations = 1 (coarser contacts), or use mode="forward"'
        )

    on_reverse = refuse_reverse if is_constrained and iterations > 1 else silent

    def model(params: Params) -> Any:
        return with_params(system, description, params)

    def data(model: Any, memory: MjxMemory) -> Any:
        return mjx.make_data(model).replace(
            qpos=memory.position, qvel=memory.velocity, act=memory.activation, qacc_warmstart=memory.warm_start
        )

    def start(params: Params, position: jax.Array, velocity: jax.Array) -> MjxMemory:
        zeros = jnp.zeros_like(velocity)
        activation = jnp.zeros((description.mujoco.na,), position.dtype)
        return MjxMemory(position=position, velocity=velocity, activation=activation, warm_start=zeros)

    def advance(params: Params, memory: MjxMemory, controls: jax.Array) -> MjxMemory:
        system_now = model(params)

        def step(memory: MjxMemory, control: jax.Array) -> tuple[MjxMemory, None]:
            after = mjx.step(system_now, data(system_now, memory).replace(ctrl=control))
            reached = MjxMemory(
                position=after.qpos, velocity=after.qvel, activation=after.act, warm_start=after.qacc_warmstart
            )
            return like(reached, memory), None

        return watched(jax.lax.scan(step, memory, controls)[0], on_reverse=on_reverse)

    def links(params: Params, memory: MjxMemory) -> Links:
        system_now = model(params)
        placed = mjx.com_vel(system_now, mjx.com_pos(system_now, mjx.kinematics(system_now, data(system_now, memory))))
        root = placed.subtree_com[system_now.body_rootid[1:]]
        spin, linear = placed.cvel[1:, :3], placed.cvel[1:, 3:]
        return Links(
            position=placed.xpos[1:],
            orientation=placed.xquat[1:],
            center=placed.xipos[1:],
            velocity=linear + jnp.cross(spin, placed.xipos[1:] - root),
            angular_velocity=spin,
        )

    def contacts(params: Params, memory: MjxMemory) -> tuple[jax.Array, jax.Array]:
        if not touches:
            return jnp.int32(0), jnp.zeros_like(params["time_step"])
        system_now = model(params)
        distance = mjx.collision(system_now, mjx.kinematics(system_now, data(system_now, memory)))._impl.contact.dist
        return jnp.sum(distance < 0, dtype=jnp.int32), jnp.maximum(-jnp.min(distance), 0)

    return Engine(
        start=start,
        advance=advance,
        coordinates=lambda memory: (memory.position, memory.velocity),
        links=links,
        contacts=contacts,
        masses=description.masses,
        rotors=description.rotors,
        stiffness=description.stiffness,
        check=lambda params: None,
        touches=touches,
    )


def with_params(system: Any, description: Description, params: Params) -> Any:
    """Return an MJX model with the masses, friction, gravity and time step of the parameters.

    The softness of constraints remains that for the original masses of the model.

    Args:
        system: a `mujoco.mjx.Model`.
        description: of the model.
        params: of the simulation.
    """
    mass, inertia = description.masses(params)
    changes = {
        "body_mass": jnp.concatenate([jnp.zeros_like(mass[:1]), mass]),
        "body_inertia": jnp.concatenate([jnp.zeros_like(inertia[:1]), inertia]),
        "geom_friction": system.geom_friction * params["friction_scale"],
        "pair_friction": system.pair_friction * params["friction_scale"],
        "opt.gravity": description.gravity_vector(params),
        "opt.timestep": params["time_step"],
    }
    changes["body_subtreemass"] = precise_product(
        jnp.asarray(subtree_matrix(description.mujoco), mass.dtype), changes["body_mass"]
    )
    return system.tree_replace(changes)
