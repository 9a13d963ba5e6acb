"""The `Simulation` record of a scene of rigid bodies."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.barrier import computed_once
from simkit.core.compensated import compensated_sum
from simkit.core.members import in_blocks, members_first, members_last
from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.pytree import pytree
from simkit.core.simulation import Arrays, Params, Simulation, as_arrays
from simkit.core.status import Status, failed, is_finite
from simkit.errors import UserError
from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.bodies.bodies import Bodies, check_bodies
from simkit.rigid.bodies.motion import (
    Motion,
    Wrench,
    angular_momentum,
    angular_velocity,
    kinetic_energy,
    momentum,
)
from simkit.rigid.contact.compliant import Compliant
from simkit.rigid.contact.events import Events
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.free import Free
from simkit.rigid.joints.joint import Joint
from simkit.rigid.joints.rattle import Jointed
from simkit.rigid.loads import wrench_of
from simkit.rigid.parts import (
    check_disks,
    check_motion,
    check_numbers,
    check_planes,
    check_structure,
    disks_leave,
    is_concrete,
)
from simkit.rigid.planes import no_planes
from simkit.rigid.scene import Dynamics, Memory, Planes, Scene, Setting

# Every method, of which refusals name those that serve what another does not.
METHODS: tuple[Dynamics, ...] = (Free(), Events(), Impulses(), Compliant(), Jointed())

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
        excess: by how much rounding has made ``time`` too large, in s.
        failure: int32, the `simkit.core.status.Status` of the failure that the next step runs into, at which
            the state is held for good; OK where there is none.
    """

    motion: Motion
    memory: Memory
    time: jax.Array
    excess: jax.Array
    failure: jax.Array


def simulate(scene: Scene) -> Simulation:
    """Return the simulation of a scene.

    It diagnoses ``time``, ``energy`` (kinetic, and potential of the loads that have one), ``momentum`` and
    ``angular_momentum`` (lengths; the latter about the origin), what the method tells (``contacts``, their number, and
    ``penetration``, the largest in m, if it looks for contacts), and the measures of the scene.

    A step in which the method fails (more impacts than its budget, joints that do not close) is not taken: the state
    stays as it was before that step, whatever steps follow, and its status tells why.

    Args:
        scene: bodies, loads and method.

    Raises:
        UserError: for a part of the scene that its method does not support, or a parameter that is missing; ``check``
            looks at the numbers again.
    """

    def parts_of(params: Params) -> tuple[Bodies, Planes, tuple[Joint, ...]]:
        planes = no_planes() if scene.planes is None else scene.planes(params)
        return scene.bodies(params), planes, () if scene.joints is None else tuple(scene.joints(params))

    def setting_of(parts: tuple[Bodies, Planes, tuple[Joint, ...]], params: Params) -> Setting:
        bodies, planes, joints = parts

        def load(motion: Motion, time: jax.Array) -> Wrench:
            return wrench_of(scene.loads, motion, bodies, time, params)

        return Setting(bodies=bodies, planes=planes, load=load, params=params, joints=joints)

    def setting(params: Params) -> Setting:
        return setting_of(parts_of(params), params)

    def init(params: Params, key: jax.Array) -> World:
        here = setting(params)
        motion = scene.start(params, here.bodies, key)
        time = jnp.zeros_like(params["time_step"])
        memory = scene.dynamics.start(motion, here)
        failure = jnp.full_like(time, Status.OK, dtype=jnp.int32)
        return World(motion=motion, memory=memory, time=time, excess=time, failure=failure)

    def step(state: World, params: Params) -> World:
        return advance(state, params, setting(params))

    def advance(state: World, params: Params, here: Setting) -> World:
        time_step = params["time_step"]
        motion, memory = scene.dynamics.step(state.motion, state.memory, here, state.time, time_step)
        code = scene.dynamics.status(memory)
        found = jnp.where(failed(code), code, jnp.int32(Status.OK))
        leaves = disks_leave(scene.dynamics, here.bodies, motion, time_step)
        found = jnp.where((found == Status.OK) & leaves, jnp.int32(Status.DISK_OUT_OF_PLANE), found)
        failure = jnp.where(state.failure == Status.OK, found, state.failure)
        time, excess = compensated_sum(state.time, state.excess, time_step)
        after = World(motion=motion, memory=memory, time=time, excess=excess, failure=failure)
        before, held = dataclasses.replace(state, failure=failure), failure != Status.OK
        return jax.tree.map(lambda old, new: jnp.where(held, old, new), before, after)

    def step_members(states: World, params: Params) -> World:
        def some(some_states: World, some_params: Params) -> World:
            parts = jax.vmap(parts_of)(some_params)
            some_states, some_params, parts = members_last((some_states, some_params, parts))
            return members_first(advance(some_states, some_params, setting_of(parts, some_params)))

        return in_blocks(some, states, params)

    def observe(state: World, params: Params) -> Arrays:
        bodies, motion = scene.bodies(params), state.motion
        # On its own, so that every program that observes rounds it alike.
        omega = computed_once(angular_velocity(computed_once(motion), bodies))
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
        code = jnp.where(state.failure == Status.OK, scene.dynamics.status(state.memory), state.failure)
        return jnp.where(is_finite(state), code, jnp.int32(Status.NON_FINITE))

    draw = jax.jit(lambda params, key: scene.start(params, scene.bodies(params), key))

    def check(params: Params, key: jax.Array) -> None:
        here = setting(params)
        check_bodies(here.bodies)
        check_planes(here.planes)
        check_numbers(scene.dynamics, METHODS, here.bodies, here.planes)
        motion = draw(params, key)
        check_motion(motion)
        check_disks(scene.dynamics, METHODS, here.bodies, here.planes, motion)
        scene.dynamics.check(motion, here)

    _check_parts(scene, parts_of)
    time_step = scene.params["time_step"]
    if not isinstance(time_step, Parameter):
        time_step = Parameter(time_step, POSITIVE, "s", "time step")
    return Simulation(
        init=init,
        step=step,
        observe=observe,
        diagnose=diagnose,
        params={**scene.params, "time_step": time_step},
        status=status,
        # A step holds what failed by itself.
        watched=False,
        check=check,
        step_members=step_members,
        second_derivatives=getattr(scene.dynamics, "second_derivatives", ""),
        dimensions={**DIMENSIONS, **scene.dimensions},
    )


def _check_parts(scene: Scene, parts_of: Callable[[Params], tuple[Bodies, Planes, tuple[Joint, ...]]]) -> None:
    """Refuse what the method of a scene would drop; of numbers, those of the default parameters."""
    if "time_step" not in scene.params:
        raise UserError("the scene has no parameter 'time_step'; add it to its params, in s")
    params = as_arrays(scene.params)
    bodies, planes, joints = jax.eval_shape(parts_of, params)
    check_structure(scene.dynamics, METHODS, bodies, planes, joints)
    # Also while something else is being traced, these are numbers.
    with jax.ensure_compile_time_eval():
        bodies, planes, _ = parts_of(params)
    if is_concrete((bodies, planes)):
        check_numbers(scene.dynamics, METHODS, bodies, planes)
