"""From a scene to a simulation: the record of pure functions that everything else acts on."""

import jax
import jax.numpy as jnp

from simkit.core.pytree import pytree
from simkit.core.simulation import Arrays, Params, Simulation
from simkit.core.status import Status, is_finite
from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.algebra.vector import zeros
from simkit.rigid.bodies.bodies import Bodies, check_bodies
from simkit.rigid.bodies.motion import (
    Motion,
    Wrench,
    angular_momentum,
    angular_velocity,
    kinetic_energy,
    momentum,
)
from simkit.rigid.joints.joint import Joint
from simkit.rigid.members import in_blocks, members_first, members_last
from simkit.rigid.planes import no_planes
from simkit.rigid.scene import Memory, Planes, Scene, Setting

DIMENSIONS = {
    "position": ("body", "space"),
    "orientation": ("body", "quaternion"),
    "velocity": ("body", "space"),
    "angular_velocity": ("body", "space"),
    "half_lengths": ("body", "space"),
    "radius": ("body",),
}


@pytree
class World:
    """State of a scene.

    Attributes:
        motion: of its bodies.
        memory: what the method of time stepping carries.
        time: in s.
    """

    motion: Motion
    memory: Memory
    time: jax.Array


def simulate(scene: Scene) -> Simulation:
    """Return the simulation of a scene.

    It diagnoses ``time``, ``energy`` (kinetic, and potential of the loads that have one), ``momentum`` and
    ``angular_momentum`` (lengths; the latter about the origin), ``contacts`` (their number), ``penetration`` (the
    largest, in m), what else the method tells, and the measures of the scene.

    Args:
        scene: bodies, loads and method.
    """

    def parts_of(params: Params) -> tuple[Bodies, Planes, tuple[Joint, ...]]:
        planes = no_planes() if scene.planes is None else scene.planes(params)
        return scene.bodies(params), planes, () if scene.joints is None else tuple(scene.joints(params))

    def setting_of(parts: tuple[Bodies, Planes, tuple[Joint, ...]], params: Params) -> Setting:
        bodies, planes, joints = parts

        def load(motion: Motion, time: jax.Array) -> Wrench:
            nothing = Wrench(force=zeros(bodies.mass), torque=zeros(bodies.mass))
            return sum((load.wrench(motion, bodies, time, params) for load in scene.loads), nothing)

        return Setting(bodies=bodies, planes=planes, load=load, params=params, joints=joints)

    def setting(params: Params) -> Setting:
        return setting_of(parts_of(params), params)

    def init(params: Params, key: jax.Array) -> World:
        here = setting(params)
        motion = scene.start(params, here.bodies, key)
        return World(motion=motion, memory=scene.dynamics.start(motion, here), time=jnp.zeros_like(params["time_step"]))

    def step(state: World, params: Params) -> World:
        return advance(state, params, setting(params))

    def advance(state: World, params: Params, here: Setting) -> World:
        time_step = params["time_step"]
        motion, memory = scene.dynamics.step(state.motion, state.memory, here, state.time, time_step)
        return World(motion=motion, memory=memory, time=state.time + time_step)

    def step_members(states: World, params: Params) -> World:
        def some(some_states: World, some_params: Params) -> World:
            parts = jax.vmap(parts_of)(some_params)
            some_states, some_params, parts = members_last((some_states, some_params, parts))
            return members_first(advance(some_states, some_params, setting_of(parts, some_params)))

        return in_blocks(some, states, params)

    def observe(state: World, params: Params) -> Arrays:
        bodies, motion = scene.bodies(params), state.motion
        # On its own, so that every program that observes rounds it alike.
        omega = jax.lax.optimization_barrier(angular_velocity(jax.lax.optimization_barrier(motion), bodies))
        arrays = {
            "position": vector.stacked(motion.position),
            "orientation": quaternion.stacked(motion.orientation),
            "velocity": vector.stacked(motion.velocity),
            "angular_velocity": vector.stacked(omega),
            "half_lengths": vector.stacked(bodies.half_lengths),
            "radius": bodies.radius,
        }
        return arrays if scene.observe is None else arrays | scene.observe(motion, bodies, state.time, params)

    def diagnose(state: World, params: Params) -> Arrays:
        here, motion = setting(params), state.motion
        bodies = here.bodies
        potential = [load.energy(motion, bodies, params) for load in scene.loads if load.energy is not None]
        numbers = {
            "time": state.time,
            "energy": sum(potential, kinetic_energy(motion, bodies)),
            "momentum": vector.norm(momentum(motion, bodies)),
            "angular_momentum": vector.norm(angular_momentum(motion, bodies)),
            **scene.dynamics.diagnose(motion, state.memory, here),
        }
        return numbers if scene.measures is None else numbers | scene.measures(motion, bodies, state.time, params)

    def status(state: World, params: Params) -> jax.Array:
        del params
        code = scene.dynamics.status(state.memory)
        return jnp.where(is_finite(state), code, jnp.int32(Status.NON_FINITE))

    def check(params: Params) -> None:
        here = setting(params)
        check_bodies(here.bodies)
        scene.dynamics.check(scene.start(params, here.bodies, jax.random.key(0)), here)

    return Simulation(
        init=init,
        step=step,
        observe=observe,
        diagnose=diagnose,
        params=scene.params,
        status=status,
        check=check,
        step_members=step_members,
        dimensions={**DIMENSIONS, **scene.dimensions},
    )
