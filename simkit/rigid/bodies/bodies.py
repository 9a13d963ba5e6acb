"""Constants of rigid bodies: shape, mass, moments of inertia and surface."""

import dataclasses
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.pytrees import pytree
from simkit.errors import UserError
from simkit.rigid.algebra.vector import Vector, each, norm

type Number = jax.Array | float

KINDS = ("sphere", "disk", "capsule", "box")
# Contacts are detected among all pairs, 8 million for this number.
MAX_BODIES = 4096
# Relative rounding by which moments of a flat body, whose triangle inequality is an equality, may miss it.
ROUNDING = 1e-6


@pytree
class Bodies:
    """Constants of rigid bodies, (bodies,) arrays; those of a single body have no axis.

    Every shape is a box of half lengths ``h``, possibly shrunk to a line or a point, rounded by a radius ``r``: a
    sphere has h = 0, a capsule only a half length along its axis z, a box r = 0. A disk has the shape of a sphere and
    the inertia of a flat disk, and moves in the x-z plane.

    Attributes:
        mass: in kg.
        inertia: principal moments about the center of mass in kg m^2; the body axes are the principal ones.
        half_lengths: h in m.
        radius: r in m.
        friction: coefficient of Coulomb friction; a contact uses the larger of the two.
        restitution: coefficient of restitution, 0 to 1; a contact uses the larger of the two.
        kinds: of each body, one of `KINDS`; static, so changing one compiles a new program.
    """

    mass: jax.Array
    inertia: Vector
    half_lengths: Vector
    radius: jax.Array
    friction: jax.Array
    restitution: jax.Array
    kinds: tuple[str, ...] = dataclasses.field(metadata={"static": True})


def sphere(mass: Number, radius: Number, friction: Number = 0.0, restitution: Number = 0.0) -> Bodies:
    """Return a solid sphere, ``I = 2/5 m r^2``.

    Args:
        mass: m in kg.
        radius: r in m.
        friction: coefficient of Coulomb friction.
        restitution: coefficient of restitution.

    Example:
        >>> ball = rigid.sphere(mass=5.0, radius=0.1, restitution=0.8)
        >>> print(f"{ball.inertia.x:.3f} kg m^2 = 2/5 m r^2")
        0.020 kg m^2 = 2/5 m r^2
    """
    moment = 2 / 5 * jnp.asarray(mass) * jnp.asarray(radius) ** 2
    return _body("sphere", mass, (moment,) * 3, (0, 0, 0), radius, friction, restitution)


def disk(mass: Number, radius: Number, friction: Number = 0.0, restitution: Number = 0.0) -> Bodies:
    """Return a flat disk that moves in the x-z plane, ``I = 1/2 m r^2`` about its axis y.

    Args:
        mass: m in kg.
        radius: r in m.
        friction: coefficient of Coulomb friction.
        restitution: coefficient of restitution.

    Example:
        >>> puck = rigid.disk(mass=0.2, radius=0.1)
        >>> print(f"{puck.inertia.y:.4f} kg m^2 = 1/2 m r^2")
        0.0010 kg m^2 = 1/2 m r^2
    """
    quarter = jnp.asarray(mass) * jnp.asarray(radius) ** 2 / 4
    return _body("disk", mass, (quarter, 2 * quarter, quarter), (0, 0, 0), radius, friction, restitution)


def box(mass: Number, lengths: Sequence[Number] | Number, friction: Number = 0.0, restitution: Number = 0.0) -> Bodies:
    """Return a solid box, ``I_x = m (b^2 + c^2) / 12`` and so on.

    Args:
        mass: m in kg.
        lengths: a, b, c along its axes in m; one number for a cube.
        friction: coefficient of Coulomb friction.
        restitution: coefficient of restitution.

    Raises:
        UserError: if there are neither one nor three lengths.

    Example:
        >>> brick = rigid.box(12.0, (0.3, 0.2, 0.1), friction=0.5)
        >>> print([f"{float(each):.2f}" for each in (brick.inertia.x, brick.inertia.y, brick.inertia.z)])
        ['0.05', '0.10', '0.13']
    """
    if isinstance(lengths, jax.Array | np.ndarray | np.generic | float | int):
        lengths = [lengths[i] for i in range(len(lengths))] if np.ndim(lengths) else [lengths] * 3  # pyright: ignore
    if len(lengths) != 3:
        raise UserError(f"a box has {len(lengths)} lengths; give three, along its axes, or one for a cube")
    a, b, c = (jnp.asarray(length) ** 2 for length in lengths)
    per_length = jnp.asarray(mass) / 12
    moments = (per_length * (b + c), per_length * (c + a), per_length * (a + b))
    return _body("box", mass, moments, [length / 2 for length in lengths], 0, friction, restitution)


def capsule(mass: Number, radius: Number, length: Number, friction: Number = 0.0, restitution: Number = 0.0) -> Bodies:
    """Return a solid cylinder about z with a half ball on either end.

    Args:
        mass: m in kg.
        radius: of cylinder and balls in m.
        length: between the centers of the two balls in m.
        friction: coefficient of Coulomb friction.
        restitution: coefficient of restitution.

    Example:
        >>> pill = rigid.capsule(mass=1.0, radius=0.1, length=0.4)
        >>> bool(pill.inertia.z < pill.inertia.x), bool(pill.inertia.x == pill.inertia.y)
        (True, True)
    """
    mass, radius, length = jnp.asarray(mass), jnp.asarray(radius), jnp.asarray(length)
    # Shares of the volume: that of the ball equals a cylinder of length 4/3 r.
    ball = 4 / 3 * radius / (length + 4 / 3 * radius)
    cylinder = 1 - ball
    along = mass * radius**2 * (cylinder / 2 + 2 / 5 * ball)
    # The center of mass of a half ball is 3/8 r beyond the end; its moment about that center is 83/320 m r^2.
    ends = 83 / 320 * radius**2 + (length / 2 + 3 / 8 * radius) ** 2
    across = mass * (cylinder * (radius**2 / 4 + length**2 / 12) + ball * ends)
    return _body("capsule", mass, (across, across, along), (0, 0, length / 2), radius, friction, restitution)


def with_inertia(body: Bodies, moments: Sequence[Number]) -> Bodies:
    """Return a body with other principal moments of inertia, for example of uneven density.

    Args:
        body: one or several bodies.
        moments: about its axes x, y, z in kg m^2.

    Example:
        >>> shell = rigid.with_inertia(rigid.sphere(1.0, 0.3), moments=[2 / 3 * 0.09] * 3)
        >>> print(f"{shell.inertia.z:.3f} kg m^2, a hollow ball")
        0.060 kg m^2, a hollow ball
    """
    x, y, z = (jnp.broadcast_to(jnp.asarray(moment, dtype=float), body.mass.shape) for moment in moments)
    return dataclasses.replace(body, inertia=Vector(x, y, z))


def gather(bodies: Sequence[Bodies]) -> Bodies:
    """Return single bodies as one collection, in their order.

    Args:
        bodies: each without an axis.

    Example:
        >>> bodies = rigid.gather([rigid.sphere(1.0, 0.1), rigid.box(2.0, 0.2)])
        >>> bodies.mass.tolist()
        [1.0, 2.0]
    """
    kinds = tuple(kind for body in bodies for kind in body.kinds)
    # Only trees of the same static fields combine.
    without_kinds = [dataclasses.replace(body, kinds=()) for body in bodies]
    return dataclasses.replace(each(lambda *values: jnp.stack(values), *without_kinds), kinds=kinds)


def repeat(body: Bodies, count: int) -> Bodies:
    """Return ``count`` copies of a body as one collection.

    Args:
        body: without an axis.
        count: how many.

    Example:
        >>> rack = rigid.repeat(rigid.sphere(0.17, 0.0286), 15)
        >>> rack.mass.shape
        (15,)
    """
    copies = each(lambda value: jnp.broadcast_to(value, (count,)), body)
    return dataclasses.replace(copies, kinds=body.kinds * count)


def enclosing_radius(bodies: Bodies) -> jax.Array:
    """Return the radius of the sphere about its center that encloses each body, in m.

    Args:
        bodies: of the scene.
    """
    return bodies.radius + norm(bodies.half_lengths)


def check_bodies(bodies: Bodies) -> None:
    """Refuse bodies that cannot exist; on the host.

    Args:
        bodies: with the axis of the bodies.

    Raises:
        UserError: for a mass, size or coefficient out of its range, or moments of inertia that no distribution of mass
            has.
    """
    # Numbers of the host: to read one of an array on a device takes as long as to check a body.
    bodies = jax.tree.map(np.asarray, bodies)
    all_moments = np.stack([bodies.inertia.x, bodies.inertia.y, bodies.inertia.z], axis=1)
    for index, kind in enumerate(bodies.kinds):
        name = f"body {index} ({kind})"
        mass = float(bodies.mass[index])
        if not (mass > 0 and math.isfinite(mass)):
            raise UserError(f"{name}: mass = {mass:g} kg is not positive and finite; choose one above 0")
        lengths = [
            float(length[index]) for length in (bodies.half_lengths.x, bodies.half_lengths.y, bodies.half_lengths.z)
        ]
        radius = float(bodies.radius[index])
        sizes = {"sphere": [radius], "disk": [radius], "capsule": [radius, lengths[2]], "box": lengths}[kind]
        moments = np.sort(all_moments[index])
        for what, values, unit in (("size", sizes, "m"), ("moment of inertia", moments, "kg m^2")):
            for value in values:
                if not (value > 0 and math.isfinite(value)):
                    raise UserError(f"{name}: {what} {value:g} {unit} is not positive and finite; choose one above 0")
        if moments[2] > (moments[0] + moments[1]) * (1 + ROUNDING):
            least, middle, most = (f"{moment:g}" for moment in moments)
            raise UserError(
                f"{name}: moments of inertia {least}, {middle}, {most} kg m^2 break the triangle inequality; "
                f"the largest must be at most {moments[0] + moments[1]:g}, the sum of the others"
            )
        friction = float(bodies.friction[index])
        if not (friction >= 0 and math.isfinite(friction)):
            raise UserError(f"{name}: friction = {friction:g} is negative or not finite; choose 0 or more")
        restitution = float(bodies.restitution[index])
        if not 0 <= restitution <= 1:
            raise UserError(f"{name}: restitution = {restitution:g} is outside [0, 1]; choose one within")


def _body(
    kind: str,
    mass: Number,
    moments: Sequence[Number],
    half_lengths: Sequence[Number],
    radius: Number,
    friction: Number,
    restitution: Number,
) -> Bodies:
    numbers = {"mass": mass, "radius": radius, "friction": friction, "restitution": restitution}
    for name, value in numbers.items():
        if jnp.ndim(value):
            raise UserError(
                f"{kind}: {name} has shape {jnp.shape(value)}, but is one number of one body; make bodies that differ "
                "one by one and join them with `gather`; a contact has the larger value of its two bodies"
            )
    x, y, z = (jnp.asarray(moment, dtype=float) for moment in moments)
    a, b, c = (jnp.asarray(length, dtype=float) for length in half_lengths)
    return Bodies(
        mass=jnp.asarray(mass, dtype=float),
        inertia=Vector(x, y, z),
        half_lengths=Vector(a, b, c),
        radius=jnp.asarray(radius, dtype=float),
        friction=jnp.asarray(friction, dtype=float),
        restitution=jnp.asarray(restitution, dtype=float),
        kinds=(kind,),
    )
