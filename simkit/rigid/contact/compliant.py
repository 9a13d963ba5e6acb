"""Compliant contact: a repulsive Hunt-Crossley force that grows with the overlap of the surfaces."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_integer, check_number
from simkit.core.formulation import by_device
from simkit.core.parameter import NOT_NEGATIVE, POSITIVE
from simkit.core.parts import part
from simkit.core.pytrees import pytree
from simkit.core.settings import formula, number, whole, word
from simkit.core.simulation import Params
from simkit.core.status import Status
from simkit.rigid.algebra.vector import Vector, cross, dot, each, total
from simkit.rigid.bodies.bodies import Bodies, unless_held
from simkit.rigid.bodies.motion import Motion, Wrench, angular_velocity
from simkit.rigid.collision.pairs import check_apart, contacts, plane_contacts
from simkit.rigid.collision.points import FAR, Points
from simkit.rigid.collision.tournament import rounds, sums_of_bodies
from simkit.rigid.contact.forces import ContactForces, indices, split
from simkit.rigid.contact.sides import have_sides, kinds_of, pushes
from simkit.rigid.integrators import INTEGRATORS, integrator_named
from simkit.rigid.parts import FLAT_SIDED, FORCES, FRICTION, HELD, PLANES, SHAPES, TILTED_DISKS, UNEVEN_SPHERES
from simkit.rigid.scene import Setting

# Substeps that a contact must last for its derivative to be right within a few percent (docs/rigid_contact.md).
FEWEST_STEPS = 20
# Overlap at the start, relative to the size of the smaller body, beyond any of soft contact.
DEEPEST = 0.3


@pytree
class Durations:
    """Durations of contacts in substeps, and whether boxes have touched boxes.

    Attributes:
        now: duration of each present contact, int32, 0 without contact: points with planes, then pairs of bodies.
        shortest: shortest duration of the contacts that have ended, int32; the largest int32 while none has.
        boxes_met: whether boxes have touched each other, where the force jumps from point to point, bool.
    """

    now: tuple[jax.Array, ...]
    shortest: jax.Array
    boxes_met: jax.Array


@part(
    keys={
        "substeps": whole("substeps per time step; the shortest contact should last 30", 8, low=1),
        "creep_speed": number("speed in m/s below which friction is viscous", 1e-3, POSITIVE),
        "integrator": word("integrator", tuple(INTEGRATORS), "velocity_verlet"),
    },
    values={
        "stiffness": formula("force of a contact over the power 3/2 of its overlap", unit="N/m^(3/2)", bounds=POSITIVE),
        "dissipation": formula(
            "relative loss of speed of a slow ball in an impact, per m/s", 0.0, unit="s/m", bounds=NOT_NEGATIVE
        ),
    },
)
@dataclasses.dataclass(frozen=True)
class Compliant:
    """Contact by the Hunt-Crossley force, integrated in substeps.

        N = k d^(3/2) (1 + 3/2 a d'),  not negative;   F = -mu N s / sqrt(|s|^2 + c^2)

    with the overlap d, its rate d', and the slip s. The force does not jump at touch, so the motion is smooth enough to
    be differentiated through: with enough substeps in every contact, derivatives converge to those of the equations of
    motion. The sides of capsules push capsules and boxes by the same law along their whole length, see
    `simkit.rigid.contact.sides`. Without dissipation and friction the force is the gradient of an energy, which the
    motion conserves, except where boxes touch boxes: there the force jumps from corner to corner, and the status is
    `BOXES_MET`. So it is where compounds with other shapes than balls touch capsules, boxes and each other. A ball that
    hits at speed v leaves with e v, where ``(1 + e) x = ln((1 + x) / (1 - e x))`` and ``x = 3/2 a v``: ``e = 1 - a v``
    for small speeds. Restitution is not a parameter here.

    After a contact that lasted fewer than 20 substeps the status is `BRIEF_CONTACT`.

    Attributes:
        substeps: number per time step. Good values: enough for 30 or more in the shortest contact.
        stiffness: name of the parameter k, in N/m^(3/2), or a function of the parameters.
        dissipation: name of the parameter a, in s/m, or a function of the parameters.
        creep_speed: c in m/s, below which friction is viscous; a block on a slope creeps at about this speed.
        integrator: as for `simkit.rigid.free.Free`.

    Raises:
        UserError: if substeps is not an integer of at least 1, the creep speed is not positive, or no integrator has
            that name.

    Example:
        >>> drop = rigid.Scene(
        ...     params={"gravity": 9.81, "stiffness": 1e6, "dissipation": 0.0, "time_step": 0.005},
        ...     bodies=rigid.sphere(1.0, 0.1),
        ...     start=lambda params, bodies, key: rigid.motion_of(bodies, (0.0, 0.0, 0.5)),
        ...     dynamics=rigid.Compliant(substeps=50),
        ...     planes=rigid.floor(),
        ...     loads=(rigid.gravity(),),
        ... )
        >>> run = simkit.run(rigid.simulate(drop), steps=100)
        >>> print(f"energy {float(run['energy'][-1]):.2f} J after the bounce, {float(run['energy'][0]):.2f} J before")
        energy 4.91 J after the bounce, 4.91 J before

    Reference: Hunt and Crossley, J. Appl. Mech. 42, 440 (1975), doi:10.1115/1.3423596.
    """

    substeps: int = 8
    stiffness: str | Callable[[Params], jax.Array] = "stiffness"
    dissipation: str | Callable[[Params], jax.Array] = "dissipation"
    creep_speed: float = 1e-3
    integrator: str = "velocity_verlet"

    def __post_init__(self) -> None:
        """Refuse settings out of range before compilation."""
        integrator_named(self.integrator)
        check_integer("substeps", self.substeps, 1)
        check_number("creep_speed", self.creep_speed)

    @property
    def supports(self) -> frozenset[str]:
        """Return shapes whose force does not jump, planes and friction; restitution follows from the dissipation."""
        return SHAPES - FLAT_SIDED | {PLANES, FRICTION, HELD, FORCES, UNEVEN_SPHERES, TILTED_DISKS}

    @property
    def reads(self) -> tuple[str, ...]:
        """Return the parameters of the scene that it reads, one number each."""
        return tuple(name for name in (self.stiffness, self.dissipation) if isinstance(name, str))

    def start(self, motion: Motion, setting: Setting) -> Durations:
        """Return durations of zero: no contact has lasted yet."""
        like = motion.position.x[0]
        return Durations(
            now=tuple(jnp.zeros_like(touching, jnp.int32) for touching in _touching(_points(motion, setting))),
            shortest=jnp.full(like.shape, np.iinfo(np.int32).max, jnp.int32),
            boxes_met=jnp.zeros(like.shape, bool),
        )

    def step(
        self, motion: Motion, memory: Durations, setting: Setting, time: jax.Array, time_step: jax.Array
    ) -> tuple[Motion, Durations]:
        """Return the motion one step later, after all substeps."""
        advance, substep = integrator_named(self.integrator), time_step / self.substeps

        def load(motion: Motion, time: jax.Array) -> Wrench:
            return setting.load(motion, time) + self.force(motion, setting)

        def body(carry: tuple[Motion, Durations], index: jax.Array) -> tuple[tuple[Motion, Durations], None]:
            motion, durations = carry
            motion = advance(motion, setting.bodies, load, time + index * substep, substep)
            return (motion, self.after_substep(durations, motion, setting)), None

        indices = jnp.arange(self.substeps, dtype=time_step.dtype)
        return jax.lax.scan(body, (motion, memory), indices)[0]

    def after_substep(self, durations: Durations, motion: Motion, setting: Setting) -> Durations:
        """Return the durations of contacts one substep later, at the motion after it."""
        return _after_substep(durations, setting.bodies, _points(motion, setting))

    def force(self, motion: Motion, setting: Setting) -> Wrench:
        """Return the forces and torques of all contacts, none on bodies that are held.

        Args:
            motion: state of the bodies.
            setting: bodies, planes and the parameters of the contact.
        """
        return unless_held(setting.bodies, self._force(motion, setting))

    def _force(self, motion: Motion, setting: Setting) -> Wrench:
        on_planes, *between = self._pushes(motion, setting)
        count, kinds = setting.planes.offset.shape[0], len(setting.bodies.kinds)
        received = _received(on_planes.points, on_planes.push, on_planes.sides[0])
        wrench = each(lambda values: jnp.sum(values.reshape(count, kinds, *values.shape[1:]), axis=0), received)
        for group in between:
            # With an odd number of bodies one body per round has no partner (index n), which is left out.
            for side, index, force in zip(group.sides, group.bodies, (group.push, -group.push), strict=True):
                received = _received(group.points, force, side)
                wrench = each(functools.partial(_added, index=index, count=kinds), wrench, received)
        return wrench

    def forces(self, motion: Motion, memory: Durations, setting: Setting) -> tuple[ContactForces, ...]:
        """Return the forces of all contacts at this motion."""
        del memory
        groups = []
        for place, group in enumerate(self._pushes(motion, setting)):
            along, friction = split(group.points, group.push)
            sides = indices(*group.bodies)
            groups.append(
                ContactForces(
                    first=sides[0],
                    second=sides[1],
                    points=group.points,
                    along=along,
                    friction=friction,
                    on_planes=place == 0,
                )
            )
        return tuple(groups)

    def _pushes(self, motion: Motion, setting: Setting) -> list["_Pushing"]:
        """Return the forces of bodies with planes, then those of pairs."""
        bodies, planes = setting.bodies, setting.planes
        on_planes, between = _points(motion, setting)
        count, kinds = planes.offset.shape[0], len(bodies.kinds)
        all_bodies = _Side(
            position=motion.position,
            velocity=motion.velocity,
            angular_velocity=angular_velocity(motion, bodies),
            friction=bodies.friction,
        )
        body = (
            each(lambda values: jnp.concatenate([values] * count), all_bodies)
            if count
            else _rows(all_bodies, np.arange(0))
        )
        rough = jnp.maximum(body.friction, jnp.repeat(planes.friction, kinds, axis=0))
        push = self._push(on_planes, body.at(on_planes), rough, setting.params)
        index = np.tile(np.arange(kinds), count), np.repeat(np.arange(count), kinds)
        groups = [_Pushing(index, (body,), on_planes, push)]
        if kinds < 2:
            return groups

        first, second = (side.ravel() for side in rounds(kinds))
        pushing: list[tuple[np.ndarray, np.ndarray, Points, jax.Array | None]] = [(first, second, between, None)]
        if have_sides(bodies.kinds, first, second).any():
            of_points = dataclasses.replace(between, gap=_without_sides(bodies, between.gap))
            pushing = [(first, second, of_points, None)]
            for one, other, side in pushes(bodies, motion):
                free = _pairs(~_joined(setting, one, other), side.strength)
                pushing.append((one, other, side.points, jnp.where(free, side.strength, 0)))
        for first, second, points, strength in pushing:
            a, b = _rows(all_bodies, first), _rows(all_bodies, second)
            rough, velocity = jnp.maximum(a.friction, b.friction), a.at(points) - b.at(points)
            push = self._push(points, velocity, rough, setting.params, strength)
            groups.append(_Pushing((first, second), (a, b), points, push))
        return groups

    def check(self, motion: Motion, setting: Setting) -> None:
        """Refuse bodies that overlap by more than `DEEPEST` of their size: they would be shot apart.

        Raises:
            UserError: naming the two that overlap most.
        """
        joined = {frozenset((joint.first, joint.second)) for joint in setting.joints}
        check_apart(setting.bodies, motion, setting.planes, DEEPEST, joined)

    def _push(
        self,
        points: Points,
        velocity: Vector,
        friction: jax.Array,
        params: Params,
        strength: jax.Array | None = None,
    ) -> Vector:
        rate = -dot(velocity, points.normal)
        if strength is None:
            overlap = jnp.maximum(-points.gap, 0)
            # The root has no derivative at zero overlap, where the force is zero anyway.
            spring = _parameter(self.stiffness, params) * overlap * jnp.sqrt(jnp.where(overlap > 0, overlap, 1))
        else:
            spring = _parameter(self.stiffness, params) * strength
        along = spring * jnp.maximum(1 + 1.5 * _parameter(self.dissipation, params) * rate, 0)
        slip = velocity + rate * points.normal
        return along * points.normal - (friction * along / jnp.sqrt(dot(slip, slip) + self.creep_speed**2)) * slip

    def diagnose(self, motion: Motion, memory: Durations, setting: Setting) -> dict[str, jax.Array]:
        """Return the number of contacts, the largest overlap, and the substeps of the shortest contact so far."""
        gaps = jnp.concatenate([points.gap.reshape(-1, *points.gap.shape[2:]) for points in _points(motion, setting)])
        return {
            "contacts": jnp.sum(gaps < 0, axis=0, dtype=jnp.int32),
            "penetration": jnp.maximum(-jnp.min(gaps, axis=0, initial=0.0), 0),
            # NaN while no contact has ended.
            "shortest_contact": jnp.where(
                memory.shortest < np.iinfo(np.int32).max, memory.shortest.astype(gaps.dtype), jnp.nan
            ),
        }

    def status(self, memory: Durations) -> jax.Array:
        """Return `BOXES_MET` if boxes touched, else `BRIEF_CONTACT` if a contact was too short, else `OK`."""
        code = jnp.where(memory.shortest < FEWEST_STEPS, jnp.int32(Status.BRIEF_CONTACT), jnp.int32(Status.OK))
        return jnp.where(memory.boxes_met, jnp.int32(Status.BOXES_MET), code)


def _parameter(quantity: str | Callable[[Params], jax.Array], params: Params) -> jax.Array:
    """Return a parameter by name, or a function of the parameters of one scene, mapped over members."""
    if isinstance(quantity, str):
        return params[quantity]
    return quantity(params) if jnp.ndim(params["time_step"]) == 0 else jax.vmap(quantity, -1, -1)(params)


@pytree
class _Side:
    """Bodies on one side of contacts, arrays (contacts, ...)."""

    position: Vector
    velocity: Vector
    angular_velocity: Vector
    friction: jax.Array

    def at(self, points: Points) -> Vector:
        """Return the velocities of the bodies at the contact points."""
        return self.velocity + cross(self.angular_velocity, points.position - self.position)


class _Pushing(NamedTuple):
    """Contacts of one kind: indices of bodies, or of a body and a plane; their sides, the points, and the forces."""

    bodies: tuple[np.ndarray, np.ndarray]
    sides: "tuple[_Side, ...]"
    points: Points
    push: Vector


def _received(points: Points, force: Vector, side: _Side) -> Wrench:
    return Wrench(force=total(force), torque=total(cross(points.position - side.position, force)))


def _added(onto: jax.Array, values: jax.Array, index: np.ndarray, count: int) -> jax.Array:
    """Return values added at an index that repeats; on a CPU reading them in a sum takes two to three times as long."""
    return by_device(
        *(onto, values),
        cpu=lambda onto, values: onto.at[index].add(values, mode="drop"),
        accelerator=lambda onto, values: onto + sums_of_bodies(values, index, count),
    )


def _rows[T](tree: T, index: np.ndarray) -> T:
    return each(lambda values: jnp.take(values, index, axis=0, mode="clip"), tree)


def _points(motion: Motion, setting: Setting) -> tuple[Points, Points]:
    bodies = setting.bodies
    between = _without_duplicates(contacts(bodies, motion))
    joined = _joined(setting, *(side.ravel() for side in rounds(len(bodies.kinds))))
    if joined.any():
        between = dataclasses.replace(between, gap=jnp.where(_pairs(joined, between.gap), FAR, between.gap))
    return plane_contacts(bodies, motion, setting.planes), between


def _joined(setting: Setting, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return which pairs a joint connects, bool; these bodies do not touch each other."""
    ends = {frozenset((joint.first, joint.second)) for joint in setting.joints}
    return np.array([frozenset(pair) in ends for pair in zip(first.tolist(), second.tolist(), strict=True)], bool)


def _pairs(mask: np.ndarray, like: jax.Array) -> np.ndarray:
    """Return a mask of pairs that broadcasts against arrays (slots, pairs, ...)."""
    return mask.reshape(-1, *(1,) * (like.ndim - 2))


def _without_sides(bodies: Bodies, gap: jax.Array) -> jax.Array:
    """Return gaps, `FAR` for the pairs whose force is computed along the side of a capsule."""
    sides = have_sides(bodies.kinds, *(side.ravel() for side in rounds(len(bodies.kinds))))
    return jnp.where(sides.reshape(-1, *(1,) * (gap.ndim - 2)), FAR, gap)


def _without_duplicates(points: Points) -> Points:
    """Return points with the gap `FAR` where an earlier slot has the same position, so that each pushes once."""
    slots = [points.position[slot] for slot in range(points.gap.shape[0])]
    gaps = []
    for slot, point in enumerate(slots):
        gap = points.gap[slot]
        for other in slots[:slot]:
            gap = jnp.where((point.x == other.x) & (point.y == other.y) & (point.z == other.z), FAR, gap)
        gaps.append(gap)
    return dataclasses.replace(points, gap=jnp.stack(gaps))


def _touching(points: tuple[Points, Points]) -> tuple[jax.Array, jax.Array]:
    """Return the points that touch planes, and the pairs that touch at any of their points, bool."""
    on_planes, between = points
    return on_planes.gap < 0, jnp.any(between.gap < 0, axis=0, keepdims=True)


def _after_substep(durations: Durations, bodies: Bodies, points: tuple[Points, Points]) -> Durations:
    """Return durations one substep later."""
    now, shortest, boxes_met = [], durations.shortest, durations.boxes_met
    for before, touching in zip(durations.now, _touching(points), strict=True):
        ended = jnp.where(~touching & (before > 0), before, np.iinfo(np.int32).max)
        shortest = jnp.minimum(shortest, jnp.min(ended, axis=(0, 1), initial=np.iinfo(np.int32).max))
        now.append(jnp.where(touching, before + 1, 0))
    first, second = (kinds_of(_extended(bodies), side.ravel()) for side in rounds(len(bodies.kinds)))
    boxes = np.flatnonzero(
        ((first == "box") & (second == "box"))
        | ((first == "compound") & np.isin(second, ("compound", "box", "capsule")))
        | ((second == "compound") & np.isin(first, ("compound", "box", "capsule")))
    )
    if boxes.size:
        boxes_met = boxes_met | jnp.any(points[1].gap[:, boxes] < 0, axis=(0, 1))
    return Durations(now=tuple(now), shortest=shortest, boxes_met=boxes_met)


def _extended(bodies: Bodies) -> tuple[str, ...]:
    """Return the kinds of bodies; those of compounds of balls are that of a ball, whose force is smooth."""
    return tuple(
        "sphere" if shapes and {name for name, _ in shapes} == {"sphere"} else kind
        for kind, shapes in zip(bodies.kinds, bodies.composition, strict=True)
    )
