"""Joints, motors and loads of a scene described as data."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from simkit.core.settings import FormulaText, Settings
from simkit.core.simulation import Params
from simkit.errors import UserError, untaken
from simkit.rigid.algebra.quaternion import conjugate, multiply, rotate, unrotate
from simkit.rigid.algebra.vector import Vector, norm
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.description.bodies import Group, index_of
from simkit.rigid.description.formulas import Names, at, values_of
from simkit.rigid.description.settings import JOINT, LOAD, MOTOR
from simkit.rigid.joints.joint import HOLDS, Joint
from simkit.rigid.joints.loads import IN_HINGES
from simkit.rigid.loads import gravity
from simkit.rigid.scene import Load

type JointOf = Callable[..., Joint]
ORIGIN = (0.0, 0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class Connections:
    """All joints of a scene.

    Attributes:
        joints: each joint, a function of the parameters.
        kinds: of each, a name of `HOLDS`.
        first: index of the first joint, and number of joints, of each entry by its name.
        bases: index of the body of each second anchor; None for the world.
    """

    joints: tuple[JointOf, ...]
    kinds: tuple[str, ...]
    first: Mapping[str, tuple[int, int]]
    bases: tuple[int | None, ...]

    def index(self, name: str, where: str) -> int:
        """Return the index of a joint by its name.

        Raises:
            UserError: if there is no such joint.
        """
        return index_of(name, where, None, self.first, "joint")

    def constraint(self, name: str, where: str) -> int:
        """Return the index of a joint among those that constrain a motion.

        Raises:
            UserError: if there is no such joint, or it constrains nothing.
        """
        index = self.index(name, where)
        if not HOLDS[self.kinds[index]]:
            raise UserError(f"{where} = '{name}' holds nothing, and has no force; name another joint", key=where)
        return sum(bool(HOLDS[kind]) for kind in self.kinds[:index])

    def constraining(self, params: Params, bodies: Bodies) -> tuple[Joint, ...]:
        """Return the joints that constrain a motion, which methods solve for."""
        return tuple(joint(params, bodies) for joint, kind in zip(self.joints, self.kinds, strict=True) if HOLDS[kind])


def connections_of(entries: Sequence[Settings], group: Group, names: Names) -> Connections:
    """Return the joints that settings describe.

    Args:
        entries: settings of each kind of joint.
        group: the bodies.
        names: names that formulas may use.

    Raises:
        UserError: if settings contradict each other; names the key.
    """
    joints: list[JointOf] = []
    kinds: list[str] = []
    bases: list[int | None] = []
    first: dict[str, tuple[int, int]] = {}
    for settings in entries:
        name = settings["name"]
        if name:
            untaken(name, {*first, *(entry.name for entry in group.entries)}, settings.path("name"))
            first[name] = (len(joints), settings["count"])
        for copy in range(settings["count"]):
            made, base = _joint_of(settings, copy, group, names)
            joints.append(made)
            bases.append(base)
            kinds.append(settings["joint"])
    return Connections(tuple(joints), tuple(kinds), first, tuple(bases))


def _joint_of(settings: Settings, copy: int, group: Group, names: Names) -> tuple[JointOf, int | None]:
    """Return one joint as a function of the parameters, and the index of its second body."""
    part = JOINT.part(settings)
    first = group.index(settings["first"], settings.path("first"), copy)
    second = None
    if settings["second"] is not None:
        second = group.index(settings["second"], settings.path("second"), copy)
    if first == second:
        raise settings.refuse("second", "is the first body; name another, or leave it out for the world")
    place = {"index": np.array([copy])}

    def made(text: FormulaText) -> Callable[[Params], Any]:
        numbers = names.of_copies(text, place)
        return lambda params: jnp.reshape(numbers(params), ())

    values = values_of(settings, part, made)
    if settings["at"] is not None:
        values["at"] = tuple(map(made, settings["at"]))
        _refuse_beside_at(settings, group, first, second)
    for key in ("anchor", "base"):
        if settings[key] is not None:
            values[key] = tuple(map(made, settings[key]))
    takes = inspect.signature(part).parameters

    def joint(params: Params, bodies: Bodies | None = None) -> Joint:
        given = {key: at(value, params) for key, value in values.items()}
        if "at" in given:
            given |= _from_start(given.pop("at"), group, first, second, given.get("axis"), params)
        else:
            given = {"anchor": ORIGIN, "base": ORIGIN} | given
            for key, body in (("anchor", first), ("base", second)):
                if body is not None and group.has_parts(body):
                    place = Vector(*map(jnp.asarray, given[key]))
                    given[key] = _components(group.within(body, place, params, bodies))
        if "length" in takes and "length" not in given:
            given["length"] = _distance(group, first, given["anchor"], second, given["base"], params)
        return part(first, second, **{key: value for key, value in given.items() if key in takes})

    return joint, second


def _refuse_beside_at(settings: Settings, group: Group, first: int, second: int | None) -> None:
    for body in (first, second):
        if body is not None and group.entry_of(body)[0].is_random:
            raise settings.refuse("at", "is not known of a body at a random place; give anchor and base")


def _from_start(
    place: Sequence[Any], group: Group, first: int, second: int | None, axis: Sequence[Any] | None, params: Params
) -> dict[str, Any]:
    """Return anchors, axis and orientation at rest of a joint from its place and axis in the world at the start."""
    one, q = group.pose(first, params)
    point = Vector(*(jnp.asarray(each) for each in place))
    anchor = _components(unrotate(q, point - one))
    if second is None:
        return {"anchor": anchor, "base": tuple(place), "rest": q}
    other, p = group.pose(second, params)
    found = {"anchor": anchor, "base": _components(unrotate(p, point - other)), "rest": multiply(conjugate(p), q)}
    return found if axis is None else found | {"axis": _components(unrotate(p, Vector(*map(jnp.asarray, axis))))}


def _distance(
    group: Group, first: int, anchor: Sequence[Any], second: int | None, base: Sequence[Any], params: Params
) -> Any:
    """Return the distance of two anchors at the start."""

    def place(body: int | None, anchor: Sequence[Any]) -> Vector:
        point = Vector(*map(jnp.asarray, anchor))
        if body is None:
            return point
        position, orientation = group.pose(body, params)
        return position + rotate(orientation, point)

    return norm(place(first, anchor) - place(second, base))


def _components(vector: Vector) -> tuple[Any, Any, Any]:
    return vector.x, vector.y, vector.z


def loads_of(settings: Settings, group: Group, joints: Connections, names: Names) -> tuple[Load, ...]:
    """Return gravity, loads and motors of a scene, in this order.

    Args:
        settings: of the scene.
        group: the bodies.
        joints: the joints.
        names: names that formulas may use.

    Raises:
        UserError: if a load names no joint or body; names the key.
    """
    made = []
    pull = settings["gravity"]
    if "gravity" in settings.given:
        along = tuple(names.number(text).number for text in (pull if isinstance(pull, tuple) else (pull,)))
        made.append(gravity(lambda params: at(along, params) if len(along) == 3 else along[0](params)))
    for choice, tables in ((LOAD, settings["loads"]), (MOTOR, settings["motors"])):
        for each in tables:
            part = choice.part(each)
            values = values_of(each, part, names.value)
            if "joint" in inspect.signature(part).parameters:
                values = {"joint": _joint_named(each, joints, needs_hinge=part in IN_HINGES), **values}
            elif each["on"] is not None:
                values["on"] = mask_of(each, group)
            made.append(choice.call(each, (Load,), **values))
    return tuple(made)


def _joint_named(settings: Settings, joints: Connections, *, needs_hinge: bool) -> JointOf:
    if settings["joint"] is None:
        raise settings.refuse(
            "joint", "is missing; name the joint that it acts in, such as one of the kind 'attachment'"
        )
    index = joints.index(settings["joint"], settings.path("joint"))
    if needs_hinge and joints.kinds[index] != "hinge":
        raise settings.refuse(
            "joint", f"= '{settings['joint']}' is a joint of the kind '{joints.kinds[index]}'; name a hinge"
        )
    return joints.joints[index]


def mask_of(settings: Settings, group: Group) -> np.ndarray:
    """Return the bodies that the key ``on`` of a table names, (bodies,) booleans.

    Args:
        settings: the table; the name of an entry stands for all of its bodies.
        group: the bodies.

    Raises:
        UserError: if there is no such body; names the key.
    """
    mask = np.zeros(len(group.names), bool)
    entries = {entry.name: entry for entry in group.entries if entry.name}
    for index, name in enumerate(settings["on"]):
        if name in entries:
            mask[entries[name].first : entries[name].first + entries[name].count] = True
        else:
            mask[group.index(name, f"{settings.path('on')}[{index}]")] = True
    return mask
