"""The `Simulation` record of a scene of rigid bodies."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.averages import compensated_sum
from simkit.core.formulation import by_device, computed_once, in_blocks, members_first, members_last
from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.pytrees import pytree
from simkit.core.simulation import Arrays, Params, Simulation, as_arrays
from simkit.core.status import Status, at_frames, cautioned, failed, is_finite
from simkit.errors import UserError
from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.bodies.bodies import Bodies, check_bodies, unless_held, where_held
from simkit.rigid.bodies.motion import (
    Motion,
    Wrench,
    angular_momentum,
    angular_velocity,
    kinetic_energy,
    momentum,
)
from simkit.rigid.collision.near_pairs import rounds_at_start
from simkit.rigid.collision.pairs import Shapes, owners, shapes_of
from simkit.rigid.contact.compliant import Compliant
from simkit.rigid.contact.events import Events
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.free import Free
from simkit.rigid.joints.joint import Joint
from simkit.rigid.joints.rattle import Jointed
from simkit.rigid.loads import wrench_of
from simkit.rigid.parts import (
    FORCES,
    JOINT_FORCES,
    check_disks,
    check_motion,
    check_numbers,
    check_planes,
    check_structure,
    disks_leave,
    is_concrete,
)
from simkit.rigid.scene import Dynamics, Memory, Planes, Scene, Setting, parameter_of_load, parts_of

# Every method; an error about an unsupported part names those that support it.
METHODS: tuple[Dynamics, ...] = (Free(), Events(), Impulses(), Compliant(), Jointed())

DIMENSIONS = {
    "position": ("body", "space"),
    "orientation": ("body", "quaternion"),
    "velocity": ("body", "space"),
    "angular_velocity": ("body", "space"),
    "half_lengths": ("body", "space"),
    "radius": ("body",),
}
OF_BODIES = ("velocity", "angular_velocity")
DRAWN = {"disk": ("body",), "corners": ("body", "corner", "space")}


@pytree
class World:
    """State of a scene.

    Attributes:
        motion: state of the bodies.
        memory: state that the method of time stepping carries.
        time: in s.
        excess: accumulated rounding error of ``time``, in s; the exact time is ``time - excess``.
        failure: int32, the `simkit.core.status.Status` of a step that failed and was not taken, after which the state
            does not change; OK while no step has failed.
    """

    motion: Motion
    memory: Memory
    time: jax.Array
    excess: jax.Array
    failure: jax.Array


def simulate(scene: Scene) -> Simulation:
    """Return the simulation of a scene.

    It diagnoses ``time``, ``energy`` (kinetic, and potential of the loads that have one), ``momentum`` and
    ``angular_momentum`` (lengths; the latter about the origin), the diagnostics of the method (with contacts:
    ``contacts``, their number, and ``penetration``, the largest in m), and the measures of the scene.

    A step in which the method fails (more impacts than its budget, joints that do not close) is not taken: the state
    before that step is kept through all further steps, and its status gives the reason.

    Args:
        scene: bodies, loads and method.

    Raises:
        UserError: for a part of the scene that its method does not support, or a missing ``time_step``; ``check``
            repeats the checks for the parameters of a run.

    Example:
        >>> drop = rigid.Scene(
        ...     params={"gravity": 10.0, "time_step": 0.01},
        ...     bodies=rigid.sphere(1.0, 0.1, restitution=0.5),
        ...     start=lambda params, bodies, key: rigid.motion_of(bodies, (0.0, 0.0, 0.6)),
        ...     dynamics=rigid.Events(),
        ...     planes=rigid.floor(),
        ...     loads=(rigid.gravity(),),
        ... )
        >>> run = simkit.run(rigid.simulate(drop), steps=50, every=1)
        >>> print(f"rises to {float(run['position'][32:, 0, 2].max()) - 0.1:.3f} m = e^2 0.5 m")
        rises to 0.125 m = e^2 0.5 m
    """
    made = parts_of(scene, METHODS)
    dynamics, bodies_of = made.dynamics, made.bodies

    def parts_at(params: Params) -> tuple[Bodies, Planes, tuple[Joint, ...]]:
        bodies = made.bodies(params)
        return bodies, made.planes(params), made.joints(params, bodies)

    def setting_of(parts: tuple[Bodies, Planes, tuple[Joint, ...]], params: Params) -> Setting:
        bodies, planes, joints = parts

        def load(motion: Motion, time: jax.Array) -> Wrench:
            return unless_held(bodies, wrench_of(made.loads, motion, bodies, time, params))

        return Setting(bodies=bodies, planes=planes, load=load, params=params, joints=joints)

    def setting_at(params: Params) -> Setting:
        return setting_of(parts_at(params), params)

    def led(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Motion:
        """Return the motion with that of held bodies at a time."""
        if scene.path is None or not any(bodies.held):
            return motion
        path = scene.path if jnp.ndim(time) == 0 else jax.vmap(scene.path, in_axes=-1, out_axes=-1)
        return where_held(bodies, path(motion, bodies, time, params), motion)

    def underway(motion: Motion, bodies: Bodies, time: jax.Array, later: jax.Array, params: Params) -> Motion:
        """Return the motion at the start of a step with the mean velocity of held bodies in the step."""
        if scene.path is None or not any(bodies.held):
            return motion
        middle, end = led(motion, bodies, (time + later) / 2, params), led(motion, bodies, later, params)
        return dataclasses.replace(
            motion,
            velocity=where_held(bodies, (end.position - motion.position) / params["time_step"], motion.velocity),
            angular_momentum=middle.angular_momentum,
        )

    def init(params: Params, key: jax.Array) -> World:
        setting = setting_at(params)
        motion = scene.start(params, setting.bodies, key)
        motion = dataclasses.replace(motion, orientation=quaternion.on_sphere(motion.orientation))
        time = jnp.zeros_like(params["time_step"])
        motion = led(motion, setting.bodies, time, params)
        memory = dynamics.start(motion, setting)
        failure = jnp.full_like(time, Status.OK, dtype=jnp.int32)
        return World(motion=motion, memory=memory, time=time, excess=time, failure=failure)

    def step(state: World, params: Params) -> World:
        return advance(state, params, setting_at(params))

    def advance(state: World, params: Params, setting: Setting) -> World:
        time_step = params["time_step"]
        time, excess = compensated_sum(state.time, state.excess, time_step)
        start = underway(state.motion, setting.bodies, state.time, time, params)
        motion, memory = dynamics.step(start, state.memory, setting, state.time, time_step)
        motion = led(motion, setting.bodies, time, params)
        code = dynamics.status(memory)
        new_failure = jnp.where(failed(code), code, jnp.int32(Status.OK))
        leaves = disks_leave(dynamics, setting.bodies, motion, time_step)
        new_failure = jnp.where((new_failure == Status.OK) & leaves, jnp.int32(Status.DISK_OUT_OF_PLANE), new_failure)
        failure = jnp.where(state.failure == Status.OK, new_failure, state.failure)
        after = World(motion=motion, memory=memory, time=time, excess=excess, failure=failure)
        before, held = dataclasses.replace(state, failure=failure), failure != Status.OK
        return jax.tree.map(lambda old, new: jnp.where(held, old, new), before, after)

    def step_members(states: World, params: Params) -> World:
        def step_block(states: World, params: Params) -> World:
            parts = jax.vmap(parts_at)(params)
            states, params, parts = members_last((states, params, parts))
            return members_first(advance(states, params, setting_of(parts, params)))

        return in_blocks(step_block, states, params)

    def one_by_one(states: World, params: Params) -> World:
        # Scenes of many bodies fill a core's cache one at a time, and find their near pairs when they need them.
        return by_device(
            *(states, params),
            cpu=lambda states, params: jax.lax.map(lambda member: step(*member), (states, params)),
            accelerator=jax.vmap(step),
        )

    def observe(state: World, params: Params) -> Arrays:
        bodies = bodies_of(params)
        # Without the barriers, programs that fuse this with other code would round it differently.
        motion, inertia = computed_once((state.motion, bodies.inertia))
        omega = computed_once(angular_velocity(motion, dataclasses.replace(bodies, inertia=inertia)))
        shapes = shapes_of(bodies, motion)
        arrays = {
            "position": vector.stacked(shapes.placed.position),
            "orientation": quaternion.stacked(shapes.placed.orientation),
            "velocity": vector.stacked(motion.velocity),
            "angular_velocity": vector.stacked(omega),
            "half_lengths": vector.stacked(shapes.placed.half_lengths),
            "radius": shapes.placed.radius,
        }
        if shapes.body is not None:
            arrays["center"] = vector.stacked(motion.position)
        arrays |= _drawn(shapes)
        return arrays if scene.observe is None else arrays | scene.observe(state.motion, bodies, state.time, params)

    def diagnose(state: World, params: Params) -> Arrays:
        setting, motion = setting_at(params), state.motion
        # Energy and momenta are those of the bodies that are free.
        bodies, moving = setting.bodies, motion
        if any(bodies.held):
            bodies = dataclasses.replace(bodies, mass=unless_held(bodies, bodies.mass))
            moving = dataclasses.replace(motion, angular_momentum=unless_held(bodies, motion.angular_momentum))
        potential = [load.energy(motion, bodies, params) for load in made.loads if load.energy is not None]
        numbers = {
            "time": state.time,
            "energy": sum(potential, kinetic_energy(moving, bodies)),
            "momentum": vector.norm(momentum(moving, bodies)),
            "angular_momentum": vector.norm(angular_momentum(moving, bodies)),
            **dynamics.diagnose(motion, state.memory, setting),
        }
        if scene.measures is not None:
            numbers |= scene.measures(motion, setting.bodies, state.time, params)
        if scene.measures_of_contact is not None:
            numbers |= scene.measures_of_contact(dynamics.forces(motion, state.memory, setting))  # type: ignore[attr-defined]
        if scene.measures_of_joints is not None:
            forces = dynamics.joint_forces(motion, state.memory, setting, state.time)  # type: ignore[attr-defined]
            numbers |= scene.measures_of_joints(forces)
        return numbers

    def status(state: World, params: Params) -> jax.Array:
        del params
        code = jnp.where(state.failure == Status.OK, dynamics.status(state.memory), state.failure)
        return jnp.where(is_finite(state), code, jnp.int32(Status.NON_FINITE))

    @jax.jit
    def start(params: Params, key: jax.Array) -> Motion:
        bodies = bodies_of(params)
        return led(scene.start(params, bodies, key), bodies, jnp.zeros_like(params["time_step"]), params)

    def check(params: Params, key: jax.Array) -> None:
        setting = setting_at(params)
        check_bodies(setting.bodies)
        check_planes(setting.planes)
        check_numbers(dynamics, METHODS, setting.bodies, setting.planes)
        motion = start(params, key)
        check_motion(motion)
        check_disks(dynamics, METHODS, setting.bodies, setting.planes, motion)
        dynamics.check(motion, setting)

    kinds, composition, drawn = _check_parts(scene, dynamics, parts_at)
    many = isinstance(dynamics, Impulses) and rounds_at_start(kinds, dynamics.rounds) > 0

    def sized_like(state: World) -> Simulation:
        assert isinstance(dynamics, Impulses)  # no other method has buffers
        larger = dataclasses.replace(dynamics, rounds=state.memory.near.capacity)
        return simulate(dataclasses.replace(scene, dynamics=larger))

    time_step = scene.params["time_step"]
    if not isinstance(time_step, Parameter):
        time_step = Parameter(time_step, POSITIVE, "s", "time step")
    low, high = time_step.bounds
    time_step = dataclasses.replace(time_step, bounds=(max(low, POSITIVE[0]), high))
    return Simulation(
        init=init,
        step=cautioned(step, getattr(dynamics, "second_derivatives", "")),
        observe=observe,
        diagnose=diagnose,
        params={**scene.params, "time_step": time_step},
        # The step itself keeps the state of a scene that failed.
        status=at_frames(status),
        check=check,
        step_members=one_by_one if many else step_members,
        sized_like=sized_like if many else None,
        dimensions={**_dimensions(composition, drawn), **scene.dimensions},
        coordinates=_coordinates(composition),
    )


def _dimensions(composition: Sequence[Sequence[Any]], drawn: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the axes of observed arrays; of bodies with several shapes, those that pictures draw are of shapes."""
    axes = {**DIMENSIONS, **{name: DRAWN[name] for name in drawn}}
    if not any(composition):
        return axes
    of_shapes = {name: ("shape", *rest) for name, (_, *rest) in axes.items() if name not in OF_BODIES}
    return {**axes, **of_shapes, "center": ("body", "space")}


def _coordinates(composition: Sequence[Sequence[Any]]) -> dict[str, np.ndarray]:
    return {"body_of_shape": owners(composition)} if any(composition) else {}


def _drawn(shapes: Shapes) -> Arrays:
    """Return how pictures draw shapes of forms other than cubes, and corners of those drawn by them, in m."""
    codes = np.array([form.drawn for form in shapes.forms])
    if not codes.any():
        return {}
    arrays = {"disk": jnp.asarray(codes, shapes.placed.radius.dtype) + 0 * shapes.placed.radius}
    if (codes == 3).any():
        most = max(len(form.corners) for form in shapes.forms)
        corners = [[*form.corners, *[form.corners[0]] * (most - len(form.corners))] for form in shapes.forms]
        sizes = vector.stacked(shapes.placed.half_lengths)[:, None]
        arrays["corners"] = jnp.asarray(np.array(corners), sizes.dtype) * sizes
    return arrays


def _check_parts(
    scene: Scene, dynamics: Dynamics, parts_at: Callable[[Params], tuple[Bodies, Planes, tuple[Joint, ...]]]
) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...], tuple[str, ...]]:
    """Refuse parts of a scene that its method does not support, at the default parameters.

    Returns:
        The kinds of bodies, the shapes of each, and the names of what is observed of their forms.
    """
    if "time_step" not in scene.params:
        raise UserError("the scene has no parameter 'time_step'; add it to its params, in s")
    params = as_arrays(scene.params)
    for name in ("time_step", *getattr(dynamics, "reads", ())):
        parameter_of_load(name, params, type(dynamics).__name__)
    bodies, planes, joints = jax.eval_shape(parts_at, params)
    wanted = ((FORCES, scene.measures_of_contact), (JOINT_FORCES, scene.measures_of_joints))
    asked = [part for part, measures in wanted if measures is not None]
    check_structure(dynamics, METHODS, bodies, planes, joints, asked)
    codes = {form.drawn for form in bodies.forms} | {form.drawn for shapes in bodies.composition for _, form in shapes}
    drawn = [name for name, present in (("disk", codes != {0}), ("corners", 3 in codes)) if present]
    # Concrete numbers, also where the scene is made inside a traced function.
    with jax.ensure_compile_time_eval():
        bodies, planes, _ = parts_at(params)
    if is_concrete((bodies, planes)):
        check_numbers(dynamics, METHODS, bodies, planes)
    return bodies.kinds, bodies.composition, tuple(drawn)
