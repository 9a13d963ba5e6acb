"""A scene: bodies, their initial motion, planes, loads, and the method of time stepping."""

import dataclasses
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from simkit.core.arguments import check_shape, check_type
from simkit.core.pytrees import pytree
from simkit.core.simulation import Params
from simkit.errors import UserError, known
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import Bodies, gather, repeat
from simkit.rigid.bodies.motion import Motion, Wrench
from simkit.rigid.joints.joint import Joint

type Memory = Any


@pytree
class Planes:
    """Fixed planes that bound the bodies, ``n . x >= d``; the first axis of every array counts the planes.

    Attributes:
        normal: n, unit vectors.
        offset: d in m.
        friction: coefficient of Coulomb friction; a contact uses the larger of the plane's and the body's.
        restitution: coefficient of restitution; likewise.
    """

    normal: Vector
    offset: jax.Array
    friction: jax.Array
    restitution: jax.Array


@dataclasses.dataclass(frozen=True)
class Load:
    """Forces and torques on the bodies of one scene; `simkit.rigid.loads.wrench_of` maps it over members.

    Attributes:
        wrench: ``(motion, bodies, time, params) -> Wrench``, forces and torques.
        energy: ``(motion, bodies, params) -> J``, the potential energy; None for a load without one.

    Example:
        >>> def pull(motion, bodies, time, params):
        ...     return rigid.Wrench(force=-params["k"] * motion.position, torque=rigid.zeros(bodies.mass))
        >>> def energy(motion, bodies, params):
        ...     return params["k"] / 2 * jnp.sum(rigid.norm(motion.position) ** 2)
        >>> load, ball = rigid.Load(pull, energy), rigid.repeat(rigid.sphere(1.0, 0.1), 1)
        >>> load.energy(rigid.motion_of(ball, (3.0, 0.0, 4.0)), ball, {"k": 2.0}).item()
        25.0
    """

    wrench: Callable[[Motion, Bodies, jax.Array, Params], Wrench]
    energy: Callable[[Motion, Bodies, Params], jax.Array] | None = None


def parameter_of_load(name: str, params: Params, reader: str = "a load") -> jax.Array:
    """Return the parameter that a load reads by its name, one number.

    Args:
        name: name of the parameter.
        params: of one scene.
        reader: who reads it, for errors.

    Raises:
        UserError: if the scene has no such parameter, or it is an array.
    """
    value = params[known(name, params, f"the parameter that {reader} reads")]
    wanted = "one number, such as 9.81 for gravity along -z, and write other forces as a load with `applied`"
    check_shape(f"the parameter '{name}' that {reader} reads", value, wanted, ())
    return value


@dataclasses.dataclass(frozen=True)
class Setting:
    """A scene evaluated at given parameters: the input of a method of time stepping.

    Attributes:
        bodies: constants of the bodies.
        planes: the fixed planes.
        load: ``(motion, time) -> Wrench``, the sum of all loads.
        params: of the scene, for further parameters that a method reads.
        joints: the joints.
    """

    bodies: Bodies
    planes: Planes
    load: Callable[[Motion, jax.Array], Wrench]
    params: Params
    joints: tuple[Joint, ...] = ()


class Dynamics(Protocol):
    """A method of time stepping for the bodies of a scene.

    The first axis of arrays counts the bodies; its functions broadcast over any axes that follow (members of an
    ensemble). The *memory* of a method is the state that it carries from step to step beside the motion.
    """

    @property
    def supports(self) -> Collection[str]:
        """Return the `simkit.rigid.parts.PARTS` that it supports; `simkit.rigid.simulate` refuses the others."""
        ...

    def start(self, motion: Motion, setting: Setting) -> Memory:
        """Return the memory at the start, a pytree of arrays (possibly empty)."""
        ...

    def step(
        self, motion: Motion, memory: Memory, setting: Setting, time: jax.Array, time_step: jax.Array
    ) -> tuple[Motion, Memory]:
        """Return the motion and the memory one step later."""
        ...

    def diagnose(self, motion: Motion, memory: Memory, setting: Setting) -> dict[str, jax.Array]:
        """Return diagnostics of the method; one with contacts has ``contacts`` and ``penetration`` in m."""
        ...

    def status(self, memory: Memory) -> jax.Array:
        """Return the code of `simkit.core.status.Status`, int32, of the method alone.

        A failure refers to the last step: the scene keeps the state before that step from then on.
        """
        ...

    def check(self, motion: Motion, setting: Setting) -> None:
        """Refuse a start from which the method cannot step; on the host."""
        ...


@dataclasses.dataclass(frozen=True)
class Scene:
    """Pure functions of the parameters and a method of time stepping, from which `simulate` makes a simulation.

    A part that the method does not support (joints, planes, a shape, friction, restitution) is refused by name.

    Attributes:
        params: default parameters, numbers, arrays or `simkit.core.parameter.Parameter`; ``time_step`` is one of them.
        bodies: ``params -> Bodies``; one body, or a list of single bodies, is taken as a collection, and constant
            bodies, planes and joints may be given themselves.
        start: ``(params, bodies, key) -> Motion``.
        dynamics: the method of time stepping, or its name, ``"Impulses"``, for its default options.
        planes: ``params -> Planes``; none by default.
        joints: ``params -> (Joint, ...)``, or ``(params, bodies) -> (Joint, ...)``; none by default.
        loads: forces and torques on the bodies, gravity for instance.
        path: ``(motion, bodies, time, params) -> Motion``, of which the positions, orientations, velocities and angular
            momenta of held bodies at a time are taken; by default they keep their velocities. Within a step they move
            at constant velocity.
        measures: ``(motion, bodies, time, params) -> {name: scalar}``, further diagnostics.
        measures_of_contact: ``contacts -> {name: scalar}``, further diagnostics of the contacts of the last step, with
            `simkit.rigid.grip_of`.
        measures_of_joints: ``forces -> {name: scalar}``, further diagnostics of the forces in N on the first bodies of
            the joints, one vector each.
        observe: ``(motion, bodies, time, params) -> {name: array}``, further observed arrays.
        dimensions: names of the axes of the arrays of ``observe``.

    Example:
        >>> throw = rigid.Scene(
        ...     params={"gravity": 10.0, "speed": 5.0, "time_step": 0.01},
        ...     bodies=rigid.box(2.0, (0.3, 0.2, 0.1)),
        ...     start=lambda params, bodies, key: rigid.motion_of(
        ...         bodies, (0.0, 0.0, 1.0), velocity=params["speed"] * jnp.array([0.6, 0.0, 0.8])
        ...     ),
        ...     dynamics="Free",
        ...     loads=(rigid.gravity(),),
        ...     measures=lambda motion, bodies, time, params: {"height": motion.position.z[0]},
        ... )
        >>> height, slope = simkit.value_and_grad(rigid.simulate(throw), "speed", objective="height", steps=40)
        >>> print(f"{height:.2f} m after 0.4 s, slope {slope['speed']:.2f} s = 0.8 * 0.4 s")
        1.80 m after 0.4 s, slope 0.32 s = 0.8 * 0.4 s
    """

    params: Mapping[str, Any]
    bodies: Callable[[Params], Bodies | Sequence[Bodies]] | Bodies | Sequence[Bodies]
    start: Callable[[Params, Bodies, jax.Array], Motion]
    dynamics: Dynamics | str
    planes: Callable[[Params], Planes] | Planes | None = None
    joints: Callable[..., Sequence[Joint] | Joint] | Sequence[Joint] | Joint | None = None
    loads: Sequence[Load] | Load = ()
    path: Callable[[Motion, Bodies, jax.Array, Params], Motion] | None = None
    measures: Callable[[Motion, Bodies, jax.Array, Params], dict[str, jax.Array]] | None = None
    measures_of_contact: Callable[[Any], dict[str, jax.Array]] | None = None
    measures_of_joints: Callable[[tuple[Vector, ...]], dict[str, jax.Array]] | None = None
    observe: Callable[[Motion, Bodies, jax.Array, Params], dict[str, jax.Array]] | None = None
    dimensions: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Parts:
    """The parts of a scene in one form, of the many that a user may write.

    Attributes:
        bodies: ``params -> Bodies``, a collection.
        planes: ``params -> Planes``.
        joints: ``(params, bodies) -> (Joint, ...)``.
        loads: forces and torques.
        dynamics: the method of time stepping.
    """

    bodies: Callable[[Params], Bodies]
    planes: Callable[[Params], Planes]
    joints: Callable[[Params, Bodies], tuple[Joint, ...]]
    loads: tuple[Load, ...]
    dynamics: Dynamics


def parts_of(scene: Scene, methods: Sequence[Dynamics]) -> Parts:
    """Return the parts of a scene in one form.

    Args:
        scene: as the user wrote it.
        methods: with default options, by whose names ``scene.dynamics`` may choose.

    Raises:
        UserError: if a part is of another type.
    """
    check_type("scene", scene, "a Scene: simulate(Scene(params=..., ...))", Scene)

    def evaluated(name: str, part: Any, kind: type, *arguments: Any) -> Any:
        value = part(*arguments) if callable(part) else part
        wanted = f"{kind.__name__}, or a function of the parameters that returns it"
        for each in value if isinstance(value, list | tuple) else (value,):
            check_type(name, each, wanted, kind)
        return value

    def bodies(params: Params) -> Bodies:
        value = evaluated("bodies", scene.bodies, Bodies, params)
        if isinstance(value, list | tuple):
            if not value:
                raise UserError("bodies of the scene are an empty list; give at least one body")
            return gather(value)
        return value if jnp.ndim(value.mass) else repeat(value, 1)

    def planes(params: Params) -> Planes:
        value = no_planes() if scene.planes is None else evaluated("planes", scene.planes, Planes, params)
        if isinstance(value, list | tuple):
            return jax.tree.map(lambda *values: jnp.concatenate(values), *value) if value else no_planes()
        return value

    takes_bodies = callable(scene.joints) and len(inspect.signature(scene.joints).parameters) > 1

    def joints(params: Params, bodies: Bodies) -> tuple[Joint, ...]:
        part, arguments = () if scene.joints is None else scene.joints, (params, bodies) if takes_bodies else (params,)
        value = evaluated("joints", part, Joint, *arguments)
        return (value,) if isinstance(value, Joint) else tuple(value)

    loads = (scene.loads,) if isinstance(scene.loads, Load) else scene.loads
    check_type("loads", loads, "a list", list, tuple)
    for load in loads:
        check_type("loads", load, "loads such as gravity(), and functions of your own as applied(function)", Load)
    for name, part, form in (
        ("start", scene.start, "lambda params, bodies, key: motion_of(bodies, positions)"),
        ("path", scene.path or dict, "lambda motion, bodies, time, params: motion_of(bodies, (0, 0, 0.1 * time))"),
        ("measures", scene.measures or dict, "lambda motion, bodies, time, params: {'height': motion.position.z[0]}"),
        (
            "measures_of_contact",
            scene.measures_of_contact or dict,
            "lambda contacts: {'weight': grip_of(contacts, 0).force.z}",
        ),
        ("measures_of_joints", scene.measures_of_joints or dict, "lambda forces: {'tension': norm(forces[0])}"),
        ("observe", scene.observe or dict, "lambda motion, bodies, time, params: {'height': motion.position.z}"),
    ):
        check_type(name, part, f"a function such as {form}", Callable)
    return Parts(bodies, planes, joints, tuple(loads), _method_of(scene.dynamics, methods))


def _method_of(dynamics: Any, methods: Sequence[Dynamics]) -> Dynamics:
    """Return a method of time stepping from itself, its class or its name."""
    by_name = {type(method).__name__: method for method in methods}
    name = dynamics.__name__ if isinstance(dynamics, type) else dynamics
    if not isinstance(dynamics, type) and hasattr(dynamics, "supports"):
        return dynamics
    return by_name[known(name, by_name, "dynamics")]


def no_planes() -> Planes:
    """Return an empty collection of planes."""
    zero = jnp.zeros(0)
    return Planes(normal=Vector(zero, zero, zero), offset=zero, friction=zero, restitution=zero)
