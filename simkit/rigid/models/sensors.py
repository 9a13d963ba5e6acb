"""Sensors of a MuJoCo model, as functions of the motion and forces of its bodies in joint coordinates.

Accelerations are those of the forces at a state and, of what touches, the impulses of the step before over its time.
An accelerometer at rest reads the acceleration against gravity. Conventions of signs and frames are those of MuJoCo,
https://mujoco.readthedocs.io/en/stable/XMLreference.html#sensor, with which all agree to rounding without contact.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.pytrees import pytree
from simkit.core.simulation import Arrays, Quantity
from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.algebra.quaternion import Quaternion, axes_of, conjugate, multiply, rotate, unrotate
from simkit.rigid.algebra.tensor import rotated
from simkit.rigid.algebra.vector import Vector, cross, dot, each
from simkit.rigid.articulated.constraints import nearest_of_segments
from simkit.rigid.articulated.dynamics import Inertia, Kinematics, Twist, carried, wrenches
from simkit.rigid.articulated.tree import Tree, vectors_like
from simkit.rigid.models.description import Description, names, subtree_matrix
from simkit.rigid.models.source import library


@pytree
class Contacts:
    """Contacts in a state: places in m (C, 3), normals from the first body to the second (C, 3), forces in N (C, 3)."""

    place: jax.Array
    normal: jax.Array
    force: jax.Array


@pytree
class Reading:
    """What sensors read. Of the bodies the first one is the world, so that indices are those of MuJoCo.

    Attributes:
        position: coordinates, (nq,).
        velocity: velocities, (nv,).
        place: of the body frames in m.
        orientation: of the body frames.
        speed: of the origins of the body frames in m/s.
        spin: angular velocities in rad/s.
        acceleration: of those origins, less gravity, in m/s^2.
        turning: angular accelerations in rad/s^2.
        force: that the parent puts on each body in N.
        torque: likewise about the origin of its frame in N m.
        mass: in kg; that of the world is 0.
        center: of mass in m.
        central: angular momentum about the center of mass in kg m^2/s.
        actuators: lengths, velocities and forces, (3, nu).
        pushed: sums of the forces of actuators on each velocity, (nv,).
        contacts: that touch.
        time: in s.
    """

    position: jax.Array
    velocity: jax.Array
    place: Vector
    orientation: Quaternion
    speed: Vector
    spin: Vector
    acceleration: Vector
    turning: Vector
    force: Vector
    torque: Vector
    mass: jax.Array
    center: Vector
    central: Vector
    actuators: jax.Array
    pushed: jax.Array
    contacts: Contacts
    time: jax.Array


def reading(
    tree: Tree,
    inertia: Inertia,
    kinematics: Kinematics,
    state: tuple[jax.Array, jax.Array, jax.Array],
    gravity: jax.Array,
    actuators: jax.Array,
    pushed: jax.Array,
    contacts: Contacts,
    external: Twist,
    time: jax.Array,
) -> Reading:
    """Return what sensors read at a state.

    Args:
        tree: the kinematic tree.
        inertia: of its bodies.
        kinematics: places of its links.
        state: coordinates (nq,), velocities and accelerations (nv,).
        gravity: acceleration of free fall in m/s^2, (3,).
        actuators: lengths, velocities and forces, (3, nu).
        pushed: sums of the forces of actuators on each velocity, (nv,).
        contacts: that touch.
        external: wrench of contacts and equalities on each body about the origin of the world, B of them.
        time: in s.
    """
    position, velocity, change = state
    moving, accelerated, wrench = wrenches(tree, inertia, kinematics, velocity, change, gravity)
    about = kinematics.reference[tree.links_of_bodies]
    pushes = Twist(turn=external.turn - cross(about, external.shift), shift=external.shift)
    borne = carried(tree, each(jnp.subtract, wrench, pushes))
    arm = kinematics.position - about
    speed = moving.shift + cross(moving.turn, arm)
    acceleration = accelerated.shift + cross(accelerated.turn, arm) + cross(moving.turn, speed)
    frame = multiply(kinematics.orientation, inertia.orientation)
    one = jnp.zeros_like(arm.x[:1])
    still, world = vector.zeros(one), quaternion.identity(one)
    falling = Vector(*(one - gravity[n] for n in range(3)))

    def led(first: Any, others: Any) -> Any:
        return each(lambda a, b: jnp.concatenate([a, b]), first, others)

    return Reading(
        position=position,
        velocity=velocity,
        place=led(still, kinematics.position),
        orientation=led(world, kinematics.orientation),
        speed=led(still, speed),
        spin=led(still, moving.turn),
        acceleration=led(falling, acceleration),
        turning=led(still, accelerated.turn),
        force=led(still, borne.shift),
        torque=led(still, borne.turn - cross(arm, borne.shift)),
        mass=led(one, inertia.mass),
        center=led(still, kinematics.position + rotate(kinematics.orientation, inertia.center)),
        central=led(still, rotated(inertia.moments, frame) @ moving.turn),
        actuators=actuators,
        pushed=pushed,
        contacts=contacts,
        time=time,
    )


type Read = Callable[[Reading], Any]


@dataclasses.dataclass(frozen=True)
class _Frame:
    """A frame that moves with a body: index of the body, place (3,) and orientation (4,) in it."""

    body: int
    at: np.ndarray
    turn: np.ndarray

    def arm(self, now: Reading) -> Vector:
        """Return the way from the origin of the body to that of the frame, in the world."""
        return rotate(now.orientation[self.body], vectors_like(self.at[None], now.velocity)[0])

    def place(self, now: Reading) -> Vector:
        return now.place[self.body] + self.arm(now)

    def orientation(self, now: Reading) -> Quaternion:
        mounted = quaternion.quaternion(jnp.asarray(self.turn, now.velocity.dtype))
        return multiply(now.orientation[self.body], mounted)

    def velocity(self, now: Reading) -> Vector:
        return now.speed[self.body] + cross(now.spin[self.body], self.arm(now))

    def acceleration(self, now: Reading) -> Vector:
        arm, spin = self.arm(now), now.spin[self.body]
        return now.acceleration[self.body] + cross(now.turning[self.body], arm) + cross(spin, cross(spin, arm))

    def force(self, now: Reading) -> Vector:
        return now.force[self.body]

    def torque(self, now: Reading) -> Vector:
        return now.torque[self.body] - cross(self.arm(now), now.force[self.body])

    def inside(self, now: Reading, a: Vector) -> Vector:
        """Return a vector of the world in the axes of the frame."""
        return unrotate(self.orientation(now), a)


@dataclasses.dataclass(frozen=True)
class Sensor:
    """A sensor.

    Attributes:
        name: as a quantity, ``sensors.NAME``.
        quantity: its unit and meaning.
        axes: names of the axes of its values, () of a number.
        read: its values, () or (3,) or (4,).
        feels: whether it depends on accelerations or forces.
    """

    name: str
    quantity: Quantity
    axes: tuple[str, ...]
    read: Read
    feels: bool


# Kinds by the end of their name in `mujoco.mjtSensor`: unit, meaning, names of axes.
OF_JOINT = {
    "JOINTPOS": ("1", "coordinate of the joint in m or rad", ()),
    "JOINTVEL": ("1", "velocity of the joint in m/s or rad/s", ()),
    "JOINTACTFRC": ("1", "force of actuators on the joint in N or N m", ()),
    "BALLQUAT": ("1", "orientation of the ball joint", ("quaternion",)),
    "BALLANGVEL": ("rad/s", "angular velocity of the ball joint, in the frame of its body", ("space",)),
}
OF_ACTUATOR = {
    "ACTUATORPOS": ("1", "length of the actuator", ()),
    "ACTUATORVEL": ("1", "velocity of the actuator", ()),
    "ACTUATORFRC": ("1", "force of the actuator in N or N m", ()),
}
OF_TENDON = {
    "TENDONPOS": ("1", "length of the tendon", ()),
    "TENDONVEL": ("1", "velocity of the tendon", ()),
}
# Of a frame in another, or in the world.
OF_FRAME = {
    "FRAMEPOS": ("m", "position", ("space",)),
    "FRAMEQUAT": ("1", "orientation", ("quaternion",)),
    "FRAMEXAXIS": ("1", "axis x", ("space",)),
    "FRAMEYAXIS": ("1", "axis y", ("space",)),
    "FRAMEZAXIS": ("1", "axis z", ("space",)),
    "FRAMELINVEL": ("m/s", "velocity", ("space",)),
    "FRAMEANGVEL": ("rad/s", "angular velocity", ("space",)),
    "FRAMELINACC": ("m/s^2", "acceleration against gravity", ("space",)),
    "FRAMEANGACC": ("rad/s^2", "angular acceleration", ("space",)),
}
OF_SITE = {
    "VELOCIMETER": ("m/s", "velocity, in its own axes", ("space",)),
    "GYRO": ("rad/s", "angular velocity, in its own axes", ("space",)),
    "ACCELEROMETER": ("m/s^2", "acceleration against gravity, in its own axes", ("space",)),
    "FORCE": ("N", "force that the parent puts on the body, in the axes of the site", ("space",)),
    "TORQUE": ("N m", "torque of it about the site, in its axes", ("space",)),
    "MAGNETOMETER": ("1", "magnetic field, in the axes of the site", ("space",)),
    "TOUCH": ("N", "sum of the normal forces of contacts at the site", ()),
}
OF_SUBTREE = {
    "SUBTREECOM": ("m", "center of mass of the body and all that hang on it", ("space",)),
    "SUBTREELINVEL": ("m/s", "velocity of that center", ("space",)),
    "SUBTREEANGMOM": ("kg m^2/s", "angular momentum about that center", ("space",)),
}
CLOCK = {"CLOCK": ("s", "time", ())}
KINDS = OF_JOINT | OF_ACTUATOR | OF_TENDON | OF_FRAME | OF_SITE | OF_SUBTREE | CLOCK
FEELING = {"FRAMELINACC", "FRAMEANGACC", "ACCELEROMETER", "FORCE", "TORQUE", "TOUCH"}
CAMERA = "CAMERA"


def kind_of(model: Any, sensor: int) -> str:
    """Return the kind of a sensor, a key of ``KINDS`` if it is known.

    Args:
        model: a `mujoco.MjModel`.
        sensor: its index.
    """
    mujoco = library("mujoco")
    kind = mujoco.mjtSensor(int(model.sensor_type[sensor])).name.removeprefix("mjSENS_")
    camera = int(mujoco.mjtObj.mjOBJ_CAMERA)
    return CAMERA if camera in (model.sensor_objtype[sensor], model.sensor_reftype[sensor]) else kind


def sensors_of(description: Description, pairs: np.ndarray) -> tuple[Sensor, ...]:
    """Return the sensors of a model.

    Args:
        description: of a model all of whose sensors are of kinds in ``KINDS``.
        pairs: bodies of each contact, (C, 2), of which 0 is the world.
    """
    model = description.mujoco
    called = names(model, "sensor")
    sensors = []
    for index in range(model.nsensor):
        kind = kind_of(model, index)
        unit, doc, axes = KINDS[kind]
        read = _limited(model, index, _read(model, index, kind, pairs))
        sensors.append(Sensor(f"sensors.{called[index]}", Quantity(unit, doc), axes, read, kind in FEELING))
    return tuple(sensors)


def values_of(sensors: tuple[Sensor, ...], now: Reading) -> tuple[Arrays, Arrays]:
    """Return the numbers of sensors, and the vectors and quaternions of the others, by name.

    Args:
        sensors: of a model.
        now: what they read.
    """
    values = {sensor.name: jnp.asarray(sensor.read(now), now.velocity.dtype) for sensor in sensors}
    numbers = {sensor.name: values[sensor.name] for sensor in sensors if not sensor.axes}
    return numbers, {name: value for name, value in values.items() if name not in numbers}


def _limited(model: Any, sensor: int, read: Read) -> Read:
    """Return a sensor with its values within its cut-off, if it has one."""
    cutoff, kinds = float(model.sensor_cutoff[sensor]), library("mujoco").mjtDataType
    limits = {int(kinds.mjDATATYPE_REAL): (-cutoff, cutoff), int(kinds.mjDATATYPE_POSITIVE): (0.0, cutoff)}
    limit = limits.get(int(model.sensor_datatype[sensor]))

    def stacked(now: Reading) -> jax.Array:
        value = read(now)
        one = {Vector: vector.stacked, Quaternion: quaternion.stacked}.get(type(value), lambda value: value)(value)
        return jnp.clip(one, *limit) if cutoff > 0 and limit else one

    return stacked


def _read(model: Any, sensor: int, kind: str, pairs: np.ndarray) -> Read:
    target = int(model.sensor_objid[sensor])
    if kind in OF_JOINT:
        return _of_joint(model, target, kind)
    if kind in OF_ACTUATOR:
        row = list(OF_ACTUATOR).index(kind)
        return lambda now: now.actuators[row, target]
    if kind in OF_TENDON:
        return _of_tendon(model, target, kind)
    if kind in OF_SUBTREE:
        return functools.partial(_of_subtree, subtree_matrix(model)[target], kind)
    if kind == "CLOCK":
        return lambda now: now.time
    frame = _frame(model, int(model.sensor_objtype[sensor]), target)
    if kind == "TOUCH":
        return _of_touch(model, target, frame, pairs)
    if kind in OF_SITE:
        return functools.partial(_of_site, frame, kind, model.opt.magnetic.copy())
    other = int(model.sensor_refid[sensor])
    base = None if other < 0 else _frame(model, int(model.sensor_reftype[sensor]), other)
    return functools.partial(_of_frame, frame, base, kind)


def _of_joint(model: Any, joint: int, kind: str) -> Read:
    first, moves = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
    if kind == "BALLQUAT":
        return lambda now: quaternion.unit(quaternion.quaternion(now.position[first : first + 4]))
    if kind == "BALLANGVEL":
        return lambda now: now.velocity[moves : moves + 3]
    if kind == "JOINTPOS":
        return lambda now: now.position[first]
    return lambda now: (now.pushed if kind == "JOINTACTFRC" else now.velocity)[moves]


def _of_tendon(model: Any, tendon: int, kind: str) -> Read:
    first = int(model.tendon_adr[tendon])
    wraps = slice(first, first + int(model.tendon_num[tendon]))
    joints, shares = model.wrap_objid[wraps], model.wrap_prm[wraps]
    where = (model.jnt_qposadr if kind == "TENDONPOS" else model.jnt_dofadr)[joints]

    def read(now: Reading) -> jax.Array:
        values = now.position if kind == "TENDONPOS" else now.velocity
        return jnp.sum(jnp.asarray(shares, values.dtype) * values[where])

    return read


def _of_subtree(members: np.ndarray, kind: str, now: Reading) -> Vector:
    mass = jnp.asarray(members, now.mass.dtype) * now.mass
    whole = jnp.sum(mass)
    center, velocity = (vector.total(mass / whole * a) for a in (now.center, _of_centers(now)))
    if kind != "SUBTREEANGMOM":
        return center if kind == "SUBTREECOM" else velocity
    orbital = cross(now.center - center, mass * (_of_centers(now) - velocity))
    return vector.total(orbital + jnp.asarray(members, now.mass.dtype) * now.central)


def _of_centers(now: Reading) -> Vector:
    """Return the velocities of the centers of mass."""
    return now.speed + cross(now.spin, now.center - now.place)


def _frame(model: Any, kind: int, index: int) -> _Frame:
    objects = library("mujoco").mjtObj
    if kind == int(objects.mjOBJ_XBODY):
        return _Frame(index, np.zeros(3), np.array([1.0, 0, 0, 0]))
    if kind == int(objects.mjOBJ_BODY):
        return _Frame(index, model.body_ipos[index].copy(), model.body_iquat[index].copy())
    of = "geom" if kind == int(objects.mjOBJ_GEOM) else "site"
    return _Frame(*(getattr(model, f"{of}_{name}")[index].copy() for name in ("bodyid", "pos", "quat")))


def _of_site(frame: _Frame, kind: str, field: np.ndarray, now: Reading) -> Vector:
    values = {
        "VELOCIMETER": frame.velocity,
        "GYRO": lambda now: now.spin[frame.body],
        "ACCELEROMETER": frame.acceleration,
        "FORCE": frame.force,
        "TORQUE": frame.torque,
        "MAGNETOMETER": lambda now: vectors_like(field[None], now.velocity)[0],
    }
    return frame.inside(now, values[kind](now))


def _of_frame(frame: _Frame, base: _Frame | None, kind: str, now: Reading) -> Vector | Quaternion:
    if kind in ("FRAMELINACC", "FRAMEANGACC"):
        return frame.acceleration(now) if kind == "FRAMELINACC" else now.turning[frame.body]
    orientation, inside = frame.orientation(now), lambda a: a
    apart, speed, spin = frame.place(now), frame.velocity(now), now.spin[frame.body]
    if base is not None:
        inside = functools.partial(base.inside, now)
        turn = now.spin[base.body]
        apart = apart - base.place(now)
        speed, spin = speed - base.velocity(now) - cross(turn, apart), spin - turn
    if kind == "FRAMEQUAT":
        return orientation if base is None else multiply(conjugate(base.orientation(now)), orientation)
    if kind.endswith("AXIS"):
        return inside(axes_of(orientation)["XYZ".index(kind[5])])
    return inside({"FRAMEPOS": apart, "FRAMELINVEL": speed, "FRAMEANGVEL": spin}[kind])


def _of_touch(model: Any, site: int, frame: _Frame, pairs: np.ndarray) -> Read:
    """Return the sensor of contacts of a body whose normal, from where they are, meets the volume of a site."""
    kind, size = library("mujoco").mjtGeom(int(model.site_type[site])).name, model.site_size[site]
    sign = (pairs[:, 0] == frame.body) * 1.0 - (pairs[:, 1] == frame.body) * 1.0

    def read(now: Reading) -> jax.Array:
        contacts, signs = now.contacts, jnp.asarray(sign, now.velocity.dtype)
        one = jnp.ones_like(contacts.force[:, 0])
        normal = vector.vector(contacts.normal)
        turn = each(lambda a: a * one, frame.orientation(now))
        start = unrotate(turn, vector.vector(contacts.place) - each(lambda a: a * one, frame.place(now)))
        push = dot(vector.vector(contacts.force), normal)
        meets = _meets(kind, size, start, unrotate(turn, signs * normal))
        return jnp.sum(jnp.where((signs != 0) & meets, push, 0))

    return read


def _meets(kind: str, size: np.ndarray, start: Vector, way: Vector) -> jax.Array:
    """Return whether rays meet a shape about the origin: whether the times at which they are inside end after 0."""
    low, high = jnp.full_like(start.x, -jnp.inf), jnp.full_like(start.x, jnp.inf)
    if kind in ("mjGEOM_BOX", "mjGEOM_CYLINDER"):
        for axis, half in zip("xyz", size, strict=True) if kind == "mjGEOM_BOX" else (("z", size[1]),):
            at, speed = getattr(start, axis), getattr(way, axis)
            far = jnp.where(jnp.abs(at) <= half, jnp.inf, -jnp.inf)
            moves = speed != 0
            one = jnp.where(moves, speed, 1)
            ends = [jnp.where(moves, (side * half - at) / one, side * far) for side in (-1, 1)]
            low, high = jnp.maximum(low, jnp.minimum(*ends)), jnp.minimum(high, jnp.maximum(*ends))
        if kind == "mjGEOM_BOX":
            return (low <= high) & (high >= 0)
    if kind == "mjGEOM_CAPSULE":
        # A ray, as a long segment, that comes within the radius of the axis.
        end = start + float(1e3 * size.sum()) * way
        axis = Vector(0 * start.x, 0 * start.y, 0 * start.z + size[1])
        a, b = nearest_of_segments(start, end, -axis, axis)
        return dot(a - b, a - b) <= size[0] ** 2
    scale = [size[0]] * 3 if kind == "mjGEOM_SPHERE" else [size[0], size[0], np.inf] if "CYL" in kind else size
    at, along = (Vector(a.x / scale[0], a.y / scale[1], a.z / scale[2]) for a in (start, way))
    squared, half, rest = dot(along, along), dot(at, along), dot(at, at) - 1
    inside = half * half - squared * rest
    moves = squared > 0
    root, one = jnp.sqrt(jnp.maximum(inside, 0)), jnp.where(moves, squared, 1)
    far = jnp.where(rest <= 0, jnp.inf, -jnp.inf)
    low = jnp.maximum(low, jnp.where(moves, (-half - root) / one, -far))
    high = jnp.minimum(high, jnp.where(moves, (-half + root) / one, far))
    return (inside >= 0) & (low <= high) & (high >= 0)
