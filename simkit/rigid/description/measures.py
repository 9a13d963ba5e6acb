"""Diagnostics of named bodies, joints and points of a scene, and what its pictures show besides the bodies."""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_distinct
from simkit.core.expressions.scope import Formula
from simkit.core.formulation import computed_once
from simkit.core.settings import Settings
from simkit.core.simulation import Arrays, Params, Quantity
from simkit.errors import UserError, known, untaken
from simkit.rigid.algebra.quaternion import axes_of, rotate
from simkit.rigid.algebra.vector import Vector, cross, dot, each, norm, stacked, total
from simkit.rigid.bodies.bodies import Bodies, unless_held
from simkit.rigid.bodies.motion import Motion, angular_velocity, to_given
from simkit.rigid.contact.forces import ContactForces, Impact, grip_of
from simkit.rigid.description.bodies import Group
from simkit.rigid.description.formulas import TIME, Names
from simkit.rigid.description.joints import Connections, mask_of
from simkit.rigid.joints.joint import anchors, hinge_angle, hinge_rate, slider_displacement
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Load

type Measure = Callable[[Motion, Bodies, jax.Array, Params], Arrays]

OF_BODY = {
    **{axis: ("m", f"coordinate {axis} of the center") for axis in "xyz"},
    **{f"v{axis}": ("m/s", f"velocity of the center along {axis}") for axis in "xyz"},
    **{f"w{axis}": ("rad/s", f"angular velocity about {axis}") for axis in "xyz"},
    "speed": ("m/s", "speed of the center"),
    "tilt": ("rad", "angle of the axis z of the body from the vertical"),
}
OF_JOINT = {
    "hinge": {"angle": ("rad", "angle, within half a turn"), "rate": ("rad/s", "angular velocity about the axis")},
    "slider": {"displacement": ("m", "displacement along the axis")},
    "distance": {"length": ("m", "distance of the anchors")},
    "attachment": {"length": ("m", "distance of the anchors")},
}
# Measures of all free bodies together, unless a body or joint has that name.
OF_ALL = {
    "center_of_mass": {
        **{axis: ("m", f"coordinate {axis} of the center of mass of all free bodies") for axis in "xyz"},
        **{f"v{axis}": ("m/s", f"velocity of that center along {axis}") for axis in "xyz"},
    },
    "energy": {
        "translation": ("J", "kinetic energy of the centers of free bodies"),
        "rotation": ("J", "kinetic energy of rotation of free bodies"),
        "potential": ("J", "potential energy of all loads that have one"),
    },
}
# Kinds of joints whose anchors are drawn with a line between them.
DRAWN = ("distance", "attachment")
OF_FORCE = {f"f{axis}": ("N", f"force on the first body along {axis}") for axis in "xyz"}
OF_JOINT_FORCE = OF_FORCE | {"force": ("N", "size of the force")}
OF_CONTACT = OF_FORCE | {
    "normal": ("N", "sum of the normal forces"),
    "friction": ("N", "size of the sum of the forces of friction"),
    **{axis: ("m", f"coordinate {axis} of the center of pressure; NaN without contact") for axis in "xyz"},
}
OF_IMPACT = {
    "impacts": ("1", "impacts so far"),
    "time": ("s", "time of the impact; NaN before"),
}
OF_POINT = {
    **{axis: ("m", f"coordinate {axis}") for axis in "xyz"},
    **{f"v{axis}": ("m/s", f"velocity along {axis}, with the body") for axis in "xyz"},
}


@dataclasses.dataclass(frozen=True)
class Measures:
    """Further diagnostics and observed arrays of a scene.

    Attributes:
        numbers: functions ``(motion, bodies, time, params) -> {name: number}``.
        paths: points whose paths pictures draw.
        target: the point that pictures mark; None for none.
        quantities: unit and meaning of the diagnostics.
        forces: names of contacts whose forces are wanted, each with the first body, the second, and the plane.
        in_joints: names of joints whose forces are wanted, each with its index among those that constrain.
        impacts: impacts whose times are wanted.
        group: the bodies.
        joints: the joints.
    """

    numbers: tuple[Measure, ...]
    paths: tuple["Point", ...]
    target: "Point | None"
    quantities: dict[str, Quantity]
    forces: "dict[str, tuple[int, int | None, int | None]]"
    in_joints: dict[str, int]
    impacts: tuple[Impact, ...]
    group: Group
    joints: Connections

    @property
    def dimensions(self) -> dict[str, tuple[str, ...]]:
        """Names of the axes of the observed arrays."""
        present = {
            "planes": self.group.has_planes,
            "pivots": any(map(self._has_pivot, self.joints.kinds, self.joints.bases)),
            "links": not set(DRAWN).isdisjoint(self.joints.kinds),
            "trace": bool(self.paths),
            "target": self.target is not None,
        }
        return {name: axes for name, axes in DIMENSIONS.items() if present[name]}

    @staticmethod
    def _has_pivot(kind: str, base: int | None) -> bool:
        """Return whether pictures show the fixed point of a joint: not that of a rod or spring, which is a line."""
        return base is None and kind not in DRAWN

    def diagnose(self, motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Arrays:
        """Return the diagnostics."""
        # Without the barriers, programs that fuse this with other code would round it differently.
        motion, bodies, time, params = computed_once((motion, bodies, time, params))
        numbers = [of(motion, bodies, time, params) for of in self.numbers]
        return computed_once({name: value for of_one in numbers for name, value in of_one.items()})

    def diagnose_contacts(self, contacts: tuple[ContactForces, ...]) -> Arrays:
        """Return the diagnostics of contacts whose forces are wanted."""
        numbers: Arrays = {}
        for name, of in self.forces.items():
            grip = grip_of(contacts, *of)
            numbers |= {f"{name}.normal": grip.normal, f"{name}.friction": grip.friction}
            numbers |= {f"{name}.f{axis}": getattr(grip.force, axis) for axis in "xyz"}
            numbers |= {f"{name}.{axis}": getattr(grip.center, axis) for axis in "xyz"}
        return computed_once(numbers)

    def diagnose_joints(self, forces: tuple[Vector, ...]) -> Arrays:
        """Return the diagnostics of joints whose forces are wanted."""
        numbers: Arrays = {}
        for name, index in self.in_joints.items():
            numbers |= {f"{name}.f{axis}": getattr(forces[index], axis) for axis in "xyz"}
            numbers[f"{name}.force"] = norm(forces[index])
        return computed_once(numbers)

    def observe(self, motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Arrays:
        """Return the arrays that pictures draw besides the bodies: planes, joints, rods, paths and the target."""
        motion, bodies, time, params = computed_once((motion, bodies, time, params))
        arrays: Arrays = {}
        if self.group.has_planes:
            planes = self.group.planes(params)
            arrays["planes"] = jnp.concatenate([stacked(planes.normal), planes.offset[:, None]], axis=1)
        pivots, links = [], []
        for of, kind, base in zip(self.joints.joints, self.joints.kinds, self.joints.bases, strict=True):
            first, second = anchors(motion, of(params, bodies))
            if self._has_pivot(kind, base):
                pivots.append(stacked(second))
            if kind in DRAWN:
                links.append(jnp.stack([stacked(first), stacked(second)]))
        for name, parts in (("pivots", pivots), ("links", links)):
            arrays |= {name: jnp.stack(parts)} if parts else {}
        if self.paths:
            places = [stacked(point.place(motion, bodies, time, params)) for point in self.paths]
            arrays["trace"] = jnp.stack(places)
        if self.target is not None:
            arrays["target"] = stacked(self.target.place(motion, bodies, time, params))
        return computed_once(arrays)


DIMENSIONS = {
    "planes": ("plane", "normal_and_offset"),
    "pivots": ("pivot", "space"),
    "links": ("link", "end", "space"),
    "trace": ("traced_point", "space"),
    "target": ("space",),
}


def measures_of(
    settings: Settings, group: Group, joints: Connections, names: Names, loads: Sequence[Load] = ()
) -> Measures:
    """Return the diagnostics that settings ask for.

    Args:
        settings: of the scene.
        group: the bodies.
        joints: the joints.
        names: names that formulas may use.
        loads: of the scene.

    Raises:
        UserError: for an unknown name, or two that are alike; names the key.
    """
    numbers: list[Measure] = []
    quantities: dict[str, Quantity] = {}
    names_of_all = [*(entry.name for entry in group.entries if entry.name), *joints.first]
    check_distinct("measured", settings["measured"])
    for index, name in enumerate(settings["measured"]):
        where = f"measured[{index}]"
        stem = name.partition("[")[0]
        if stem in joints.first:
            of, declared = _of_joint(name, where, joints)
        elif name in OF_ALL:
            of, declared = _of_all(name, loads), OF_ALL[name]
        else:
            known(stem, [*names_of_all, *OF_ALL], where)
            of, declared = _of_body(name, group.index(name, where)), OF_BODY
        numbers.append(of)
        quantities |= {f"{_plain(name)}.{key}": Quantity(*meaning) for key, meaning in declared.items()}
    points = {name: _point_of(point, group, names) for name, point in settings["points"].items()}
    for name, point in points.items():
        untaken(f"{name}.x", quantities, f"points.{name}")
        numbers.append(functools.partial(point.measure, name))
        quantities |= {f"{name}.{key}": Quantity(*meaning) for key, meaning in OF_POINT.items()}
    forces: dict[str, tuple[int, int | None, int | None]] = {}
    in_joints: dict[str, int] = {}
    for name, force in settings["forces"].items():
        if force["joint"] is not None:
            in_joints[name], declared = joints.constraint(force["joint"], force.path("joint")), OF_JOINT_FORCE
        elif force["first"] is None:
            raise force.refuse("first", "is missing; name a body, or a joint")
        else:
            forces[name], declared = _touching(force, group), OF_CONTACT
        quantities |= _named(f"forces.{name}", name, declared, quantities)
    impacts: list[Impact] = []
    for name, impact in settings["impacts"].items():
        untaken(name, {*names_of_all, *group.plane_names, *names.scope.parameters}, f"impacts.{name}")
        impacts.append(Impact(name, *_touching(impact, group), number=impact["number"]))
        quantities |= _named(f"impacts.{name}", name, OF_IMPACT, quantities)
    for name, one in settings["statistics"].items():
        untaken(name, {*quantities, *KEPT}, f"statistics.{name}")
        numbers.append(_statistic(name, one, group, names))
        quantities[name] = Quantity(one["unit"], f"{one['take']} of {one['of'].text}")
    drawn = {name: point["drawn"] for name, point in settings["points"].items()}
    targets = [name for name in points if drawn[name] == "target"]
    if len(targets) > 1:
        raise UserError(f"points.{targets[1]}.drawn: there is a target already, '{targets[0]}'; keep one of them")
    return Measures(
        numbers=tuple(numbers),
        paths=tuple(points[name] for name in points if drawn[name] == "path"),
        target=points[targets[0]] if targets else None,
        quantities=quantities,
        forces=forces,
        in_joints=in_joints,
        impacts=tuple(impacts),
        group=group,
        joints=joints,
    )


def _named(
    where: str, name: str, declared: dict[str, tuple[str, str]], others: dict[str, Quantity]
) -> dict[str, Quantity]:
    """Return quantities of a name that no others have."""
    return {untaken(f"{name}.{key}", others, where): Quantity(*meaning) for key, meaning in declared.items()}


def _touching(settings: Settings, group: Group) -> tuple[int, int | None, int | None]:
    """Return the indices of a body, of the other body, and of the plane that it touches."""
    if settings["first"] in group.plane_names:
        raise settings.refuse("first", "is a plane; write it as second, and the body as first")
    first, other = group.index(settings["first"], settings.path("first")), settings["second"]
    if other in group.plane_names:
        return first, None, group.plane_names.index(other)
    second = None if other is None else group.index(other, settings.path("second"))
    if second == first:
        raise settings.refuse("second", "is the first body; name another, or a plane")
    return first, second, None


def _plain(name: str) -> str:
    """Return the name of a copy as quantities have it, ``brick_2`` for ``brick[2]``."""
    return name.replace(" ", "").replace("[", "_").replace("]", "")


def _of_body(name: str, index: int) -> Measure:
    def measure(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Arrays:
        del time, params
        vectors = {
            "": motion.position[index],
            "v": motion.velocity[index],
            "w": angular_velocity(motion, bodies)[index],
        }
        arrays = {f"{prefix}{axis}": getattr(vector, axis) for prefix, vector in vectors.items() for axis in "xyz"}
        _, given = to_given(bodies, motion.position, motion.orientation)
        upward = axes_of(given[index])[2]
        aside = norm(dataclasses.replace(upward, z=jnp.zeros_like(upward.z)))
        arrays |= {"speed": norm(motion.velocity[index]), "tilt": jnp.arctan2(aside, upward.z)}
        return {f"{_plain(name)}.{key}": value for key, value in arrays.items()}

    return measure


def _of_all(name: str, loads: Sequence[Load]) -> Measure:
    def measure(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Arrays:
        del time
        mass, whole = unless_held(bodies, (bodies.mass, motion.angular_momentum))
        if name == "energy":
            squared = dot(motion.velocity, motion.velocity)
            spin = dot(whole, angular_velocity(motion, bodies))
            potential = [load.energy(motion, bodies, params) for load in loads if load.energy is not None]
            numbers = {
                "translation": jnp.sum(mass * squared) / 2,
                "rotation": jnp.sum(spin) / 2,
                "potential": sum(potential, jnp.zeros_like(mass[0])),
            }
        else:
            shares = mass / jnp.sum(mass)
            vectors = {"": total(shares * motion.position), "v": total(shares * motion.velocity)}
            numbers = {f"{prefix}{axis}": getattr(each, axis) for prefix, each in vectors.items() for axis in "xyz"}
        return {f"{name}.{key}": value for key, value in numbers.items()}

    return measure


def _of_joint(name: str, where: str, joints: Connections) -> tuple[Measure, dict[str, tuple[str, str]]]:
    index = joints.index(name, where)
    joint, kind = joints.joints[index], joints.kinds[index]
    if kind not in OF_JOINT:
        measured = ", ".join(OF_JOINT)
        raise UserError(
            f"{where} = '{name}' is a joint of the kind '{kind}', which has no measure; name one of {measured}"
        )

    def measure(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Arrays:
        del time
        now = joint(params, bodies)
        if kind == "hinge":
            arrays = {"angle": hinge_angle(motion, now), "rate": hinge_rate(motion, bodies, now)}
        elif kind == "slider":
            arrays = {"displacement": slider_displacement(motion, now)}
        else:
            first, second = anchors(motion, now)
            arrays = {"length": norm(first - second)}
        return {f"{_plain(name)}.{key}": value for key, value in arrays.items()}

    return measure, OF_JOINT[kind]


@dataclasses.dataclass(frozen=True)
class Point:
    """A point of a body, or of the world.

    Attributes:
        at: coordinates in the frame of the body, or the world, functions of the parameters and the time.
        body: index of the body; None for the world.
        group: all bodies.
    """

    at: tuple[Formula, ...]
    body: int | None
    group: Group

    def place(self, motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Vector:
        """Return its position in the world."""
        own = self._within(bodies, time, params)
        return own if self.body is None else motion.position[self.body] + rotate(motion.orientation[self.body], own)

    def _within(self, bodies: Bodies, time: jax.Array, params: Params) -> Vector:
        """Return its position in the frame in which the body's motion is computed, or in the world."""
        own = Vector(*(formula.number(params, time=time) for formula in self.at))
        return own if self.body is None else self.group.within(self.body, own, params, bodies)

    def measure(self, name: str, motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Arrays:
        """Return its position and velocity by the names of the diagnostics."""
        place = self.place(motion, bodies, time, params)
        velocity = each(jnp.zeros_like, place)
        if self.body is not None:
            spin = angular_velocity(motion, bodies)[self.body]
            velocity = motion.velocity[self.body] + cross(spin, place - motion.position[self.body])
        if any(formula.takes(TIME) for formula in self.at):
            _, rate = jax.jvp(lambda time: self._within(bodies, time, params), (time,), (jnp.ones_like(time),))
            velocity = velocity + (rate if self.body is None else rotate(motion.orientation[self.body], rate))
        pairs = (("", place), ("v", velocity))
        return {f"{name}.{prefix}{axis}": getattr(vector, axis) for prefix, vector in pairs for axis in "xyz"}


# Names that scenes as data use themselves, and those of axes.
KEPT = (RIGID.keys() - {"position_x", "height", "speed"}) | {"body", "frame"}
REDUCTIONS = {"mean": jnp.mean, "sum": jnp.sum, "largest": jnp.max, "smallest": jnp.min}


def _statistic(name: str, settings: Settings, group: Group, names: Names) -> Measure:
    of, reduced = names.of_bodies(settings["of"]), REDUCTIONS[settings["take"]]
    chosen = np.arange(len(group.names)) if settings["on"] is None else np.flatnonzero(mask_of(settings, group))

    def measure(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Arrays:
        del time
        values = jnp.broadcast_to(of(motion, bodies, None, params), bodies.mass.shape)
        return {name: reduced(values[chosen])}

    return measure


def _point_of(settings: Settings, group: Group, names: Names) -> Point:
    index = None if settings["body"] is None else group.index(settings["body"], settings.path("body"))
    return Point(tuple(names.number(text) for text in settings["at"]), index, group)
