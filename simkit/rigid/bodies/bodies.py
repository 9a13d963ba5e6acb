"""Constants of rigid bodies: shape, mass, moments of inertia and surface."""

import dataclasses
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_shape
from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, SHARE
from simkit.core.pytrees import pytree
from simkit.core.settings import number
from simkit.errors import UserError
from simkit.rigid.algebra.vector import Vector, each, norm
from simkit.rigid.shapes.form import CUBE, Form

type Number = jax.Array | float

KINDS = ("sphere", "disk", "capsule", "box", "cylinder", "ellipsoid", "mesh")
# Contacts are detected among all pairs, 8 million for this number.
MAX_BODIES = 4096
# Relative rounding by which moments of a flat body, whose triangle inequality is an equality, may miss it.
ROUNDING = 1e-6


@pytree
class Bodies:
    """Constants of rigid bodies, (bodies,) arrays; those of a single body have no axis.

    Every shape is a convex form, scaled by half lengths ``h`` and rounded by a radius ``r``. That of a sphere, a
    capsule and a box is a cube, possibly shrunk to a line or a point: a sphere has h = 0, a capsule only a half length
    along its axis z, a box r = 0. A disk has the shape of a sphere and the inertia of a flat disk, and moves in the x-z
    plane.

    Attributes:
        mass: in kg.
        inertia: principal moments about the center of mass in kg m^2; the body axes are the principal ones.
        half_lengths: h in m.
        radius: r in m.
        friction: coefficient of Coulomb friction; a contact uses the larger of the two.
        restitution: coefficient of restitution, 0 to 1; a contact uses the larger of the two.
        kinds: of each body, one of `KINDS`; static, so changing one compiles a new program.
        held: of each body, whether no force and no contact changes its velocity; static.
        forms: of each body, the `simkit.rigid.shapes.form.Form`; static.
    """

    mass: jax.Array
    inertia: Vector
    half_lengths: Vector
    radius: jax.Array
    friction: jax.Array
    restitution: jax.Array
    kinds: tuple[str, ...] = dataclasses.field(metadata={"static": True})
    held: tuple[bool, ...] = dataclasses.field(metadata={"static": True})
    forms: tuple[Form, ...] = dataclasses.field(metadata={"static": True})


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
    return _joined(bodies, lambda *values: jnp.stack(values))


def concatenated(bodies: Sequence[Bodies]) -> Bodies:
    """Return several collections of bodies as one.

    Args:
        bodies: each with the axis of the bodies.
    """
    return _joined(bodies, lambda *values: jnp.concatenate(values))


def _joined(bodies: Sequence[Bodies], join: Callable[..., jax.Array]) -> Bodies:
    kinds = tuple(kind for body in bodies for kind in body.kinds)
    held = tuple(is_held for body in bodies for is_held in body.held)
    forms = tuple(form for body in bodies for form in body.forms)
    return dataclasses.replace(each(join, *map(numbers_of, bodies)), kinds=kinds, held=held, forms=forms)


def numbers_of(bodies: Bodies) -> Bodies:
    """Return bodies without their static fields, so that trees of different bodies combine."""
    return dataclasses.replace(bodies, kinds=(), held=(), forms=())


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
    return dataclasses.replace(copies, kinds=body.kinds * count, held=body.held * count, forms=body.forms * count)


def held(body: Bodies) -> Bodies:
    """Return a body that keeps its velocity, whatever loads, contacts and joints do: a fixed or a moving obstacle.

    A scene may lead it along a path in time, see `simkit.rigid.scene.Scene`. Its mass and moments have no effect;
    energies and momenta of a scene are those of the other bodies.

    Args:
        body: one or several bodies.

    Example:
        >>> table = rigid.held(rigid.box(1.0, (1.0, 1.0, 0.1)))
        >>> table.held
        (True,)
    """
    return dataclasses.replace(body, held=(True,) * len(body.held))


def unless_held[T](bodies: Bodies, values: T) -> T:
    """Return values of bodies, zero for those that are held.

    Args:
        bodies: the n bodies.
        values: a tree of arrays (n, ...).
    """
    if not any(bodies.held):
        return values
    mask = np.array(bodies.held)
    return each(lambda value: jnp.where(mask.reshape(-1, *(1,) * (value.ndim - 1)), 0, value), values)


def where_held[T](bodies: Bodies, values: T, others: T) -> T:
    """Return values for bodies that are held, and others for the rest, trees of arrays (n, ...)."""
    if not any(bodies.held):
        return others
    mask = np.array(bodies.held)
    return each(lambda a, b: jnp.where(mask.reshape(-1, *(1,) * (a.ndim - 1)), a, b), values, others)


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
    positive, not_negative, share = (number("", bounds=each).check for each in (POSITIVE, NOT_NEGATIVE, SHARE))
    all_moments = np.stack([bodies.inertia.x, bodies.inertia.y, bodies.inertia.z], axis=1)
    for index, kind in enumerate(bodies.kinds):
        name = f"body {index} ({kind})"
        positive(float(bodies.mass[index]), f"{name}: mass")
        lengths = [
            float(length[index]) for length in (bodies.half_lengths.x, bodies.half_lengths.y, bodies.half_lengths.z)
        ]
        radius = float(bodies.radius[index])
        sizes = {"sphere": [radius], "disk": [radius], "capsule": [radius, lengths[2]]}.get(kind, lengths)
        moments = np.sort(all_moments[index])
        for what, values in (("size", sizes), ("moment of inertia", moments)):
            for value in values:
                positive(float(value), f"{name}: {what}")
        if moments[2] > (moments[0] + moments[1]) * (1 + ROUNDING):
            least, middle, most = (f"{moment:g}" for moment in moments)
            raise UserError(
                f"{name}: moments of inertia {least}, {middle}, {most} kg m^2 break the triangle inequality; "
                f"the largest must be at most {moments[0] + moments[1]:g}, the sum of the others"
            )
        not_negative(float(bodies.friction[index]), f"{name}: friction")
        share(float(bodies.restitution[index]), f"{name}: restitution")


def body(
    kind: str,
    mass: Number,
    moments: Sequence[Number],
    half_lengths: Sequence[Number],
    radius: Number,
    friction: Number,
    restitution: Number,
    form: Form = CUBE,
) -> Bodies:
    """Return one body of a kind, for the functions of the shapes.

    Args:
        kind: one of `KINDS`.
        mass: in kg.
        moments: principal moments of inertia in kg m^2.
        half_lengths: of the form, in m.
        radius: by which it is rounded, in m.
        friction: coefficient of Coulomb friction.
        restitution: coefficient of restitution.
        form: convex form in units of the half lengths.

    Raises:
        UserError: for a number with an axis.
    """
    numbers = {"mass": mass, "radius": radius, "friction": friction, "restitution": restitution}
    for name, value in numbers.items():
        check_shape(f"{kind}: {name}", value, "one number; make bodies that differ one by one, and `gather` them", ())
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
        held=(False,),
        forms=(form,),
    )
