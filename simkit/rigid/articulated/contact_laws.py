"""Laws of contact, friction, limits and equalities as one projection of impulses, and the derivative of it.

In every contact, and every scalar row, the laws are the equation ``p = P(p - k y)`` of impulses p and slips y, with the
effective masses k of the rows. P clips the normal impulse of a contact at zero, then the tangential one at the friction
mu p_n, and where a contact has them the torque about the normal at the torsional friction mu_t p_n and that across it
at the rolling friction mu_r p_n, with mu_t and mu_r in m, each for itself. A scalar row is clipped at its bounds.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.pytrees import pytree
from simkit.rigid.articulated.linear import applied, applied_transposed, gram
from simkit.rigid.articulated.tree import like

# Impulse per speed of a constraint in units of its effective mass.
STIFFNESS = {"float64": 1e8, "float32": 3e3}


@pytree
class Impulses:
    """Impulses of the constraints.

    Attributes:
        contact: on the second body of each contact in world axes in N s, (C, 3).
        twist: torques on the second body of those with torsional or rolling friction in N m s, (T, 3).
        scalar: of the other rows in N s or N m s, (S,).
    """

    contact: jax.Array
    twist: jax.Array
    scalar: jax.Array


@pytree
class Rows:
    """Constraints at the velocities of a mechanism: C contacts and S scalar rows, the first N of one joint each.

    Attributes:
        normal: unit vectors from the first body of each contact to the second, (C, 3).
        contact: Jacobians of the velocity of the second body relative to the first, (C, 3, nv).
        closing: speed at which each contact may close in m/s, gap over time step, (C,).
        friction: coefficient of each contact, (C,).
        twisting: which contacts have torsional or rolling friction, T indices.
        twist: Jacobians of the angular velocity of the second body relative to the first, (T, 3, nv).
        torsion: coefficient of torsional friction in m, (T,).
        rolling: coefficient of rolling friction in m, (T,).
        joints: velocity that each of the first rows holds, and its sign, N pairs.
        scalar: Jacobians of the other scalar rows, (S - N, nv).
        offset: b of the scalar rows, (S,).
        lower: bound of their impulses, (S,).
        upper: bound of their impulses, (S,).
    """

    normal: jax.Array
    contact: jax.Array
    closing: jax.Array
    friction: jax.Array
    twisting: tuple[int, ...] = dataclasses.field(metadata={"static": True})
    twist: jax.Array
    torsion: jax.Array
    rolling: jax.Array
    joints: tuple[tuple[int, float], ...] = dataclasses.field(metadata={"static": True})
    scalar: jax.Array
    offset: jax.Array
    lower: jax.Array
    upper: jax.Array

    def at_twists(self, values: jax.Array) -> jax.Array:
        """Return the values (C, ...) of contacts at those with torsional or rolling friction, (T, ...)."""
        return values[np.array(self.twisting, int)]

    def of_joints(self, values: jax.Array) -> jax.Array:
        """Return the rates of the rows of one joint at velocities (nv, ...), (N, ...)."""
        return _constant_product(self._table(len(values)), values)

    def on_joints(self, values: jax.Array, size: int, power: int = 1) -> jax.Array:
        """Return the sums (nv, ...) of the first N of values of scalar rows, times a power of the sign of each."""
        return _constant_product((self._table(size) ** power).T, values[: len(self.joints)])

    def _table(self, size: int) -> np.ndarray:
        table = np.zeros((len(self.joints), size))
        for row, (joint, sign) in enumerate(self.joints):
            table[row, joint] = sign
        return table


def _constant_product(matrix: np.ndarray, values: jax.Array) -> jax.Array:
    return jnp.tensordot(jnp.asarray(matrix, values.dtype), values, 1, precision="highest")


def rates(rows: Rows, velocity: jax.Array) -> Impulses:
    """Return J v, (C, 3), (T, 3) and (S,).

    Args:
        rows: of the constraints.
        velocity: (nv,).
    """
    joints, others = rows.of_joints(velocity), applied(rows.scalar, velocity)
    return Impulses(
        contact=_rates(rows.contact, velocity),
        twist=_rates(rows.twist, velocity),
        scalar=jnp.concatenate([joints, others]),
    )


def _rates(jacobian: jax.Array, velocity: jax.Array) -> jax.Array:
    """Return the product of Jacobians (n, 3, nv, ...) with velocities, (n, 3, ...)."""
    return applied(flat(jacobian), velocity).reshape(-1, 3, *velocity.shape[1:])


def flat(rows: jax.Array) -> jax.Array:
    """Return vectors as rows.

    Args:
        rows: (n, 3, ...), for (3 n, ...).
    """
    return rows.reshape(-1, *rows.shape[2:])


def joined(values: Impulses) -> jax.Array:
    """Return the numbers of all rows, (3 C + 3 T + S, ...).

    Args:
        values: of the rows.
    """
    return jnp.concatenate([flat(values.contact), flat(values.twist), values.scalar])


def pulled(rows: Rows, impulses: Impulses) -> jax.Array:
    """Return J^T p, (nv,).

    Args:
        rows: of the constraints.
        impulses: p.
    """
    size = rows.contact.shape[2]
    jacobian = jnp.concatenate([flat(rows.contact), flat(rows.twist), rows.scalar])
    others = jnp.concatenate([flat(impulses.contact), flat(impulses.twist), impulses.scalar[len(rows.joints) :]])
    return applied_transposed(jacobian, others) + rows.on_joints(impulses.scalar, size)


def gram_of(rows: Rows, weighted: Impulses) -> jax.Array:
    """Return the sum of products of the Jacobians of the rows, on the left, with others.

    Args:
        rows: of the constraints.
        weighted: on the right in place of the Jacobians of contacts (C, 3, nv, ...) and twists (T, 3, nv, ...), and the
            weight of each scalar row, (S, ...).
    """
    first = len(rows.joints)
    left = jnp.concatenate([flat(rows.contact), flat(rows.twist), rows.scalar])
    pulls = weighted.scalar[first:][:, None] * rows.scalar
    right = jnp.concatenate([flat(weighted.contact), flat(weighted.twist), pulls])
    diagonal = rows.on_joints(weighted.scalar, right.shape[1], power=2)
    return gram(left, right) + like(np.eye(len(diagonal)), diagonal[None]) * diagonal


def dots(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return dot products along the second axis, of three, written out for vectors of members.

    Args:
        a: (n, 3, ...).
        b: (n, 3, ...).
    """
    return a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1] + a[:, 2] * b[:, 2]


def _length(vectors: jax.Array) -> jax.Array:
    """Return lengths of vectors along the second axis, with derivative zero at zero."""
    squares = dots(vectors, vectors)
    return jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0)


def _parts(normal: jax.Array, vectors: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return normal components (C, ...) and tangential parts (C, 3, ...)."""
    along = dots(normal, vectors)
    return along, vectors - along[:, None] * normal


def allowed(rows: Rows, wanted: Impulses) -> Impulses:
    """Return the projection P of impulses.

    Args:
        rows: of the constraints.
        wanted: impulses.
    """
    along, tangent = _parts(rows.normal, wanted.contact)
    pressed = jnp.maximum(along, 0)
    contact = pressed[:, None] * rows.normal + _within(rows.friction * pressed, tangent)
    normal, press = rows.at_twists(rows.normal), rows.at_twists(pressed)
    about, across = _parts(normal, wanted.twist)
    bound = rows.torsion * press
    twist = jnp.clip(about, -bound, bound)[:, None] * normal + _within(rows.rolling * press, across)
    return Impulses(contact=contact, twist=twist, scalar=jnp.clip(wanted.scalar, rows.lower, rows.upper))


def _within(bound: jax.Array, vectors: jax.Array) -> jax.Array:
    """Return vectors (n, 3, ...) shortened to lengths (n, ...)."""
    length = _length(vectors)
    share = jnp.where(length > bound, bound / jnp.where(length > 0, length, 1), 1)
    return share[:, None] * vectors


def slips_of(rows: Rows, velocity: jax.Array) -> Impulses:
    """Return J v + b.

    Args:
        rows: of the constraints.
        velocity: (nv,).
    """
    moved = rates(rows, velocity)
    return Impulses(
        contact=moved.contact + rows.closing[:, None] * rows.normal,
        twist=moved.twist,
        scalar=moved.scalar + rows.offset,
    )


plus = functools.partial(jax.tree.map, jnp.add)
minus = functools.partial(jax.tree.map, jnp.subtract)
times_each = functools.partial(jax.tree.map, jnp.multiply)


def _wanted(rows: Rows, stiffness: Impulses, slips: Impulses, p: Impulses, share: float | None = None) -> Impulses:
    """Return ``p - k y``, whose projection are the impulses of the laws, with slips J v + b."""
    share = 1 - 1 / STIFFNESS[str(rows.normal.dtype)] if share is None else share
    return jax.tree.map(lambda a, k, y: share * a - k * y, p, stiffness, slips)


def errors_of(rows: Rows, stiffness: Impulses, slips: Impulses, p: Impulses, share: float | None = None) -> Impulses:
    """Return ``p - P(p - k y)``.

    Args:
        rows: of the constraints.
        stiffness: k of each row.
        slips: y.
        p: impulses.
        share: of p; with 1 it is without compliance.
    """
    return minus(p, allowed(rows, _wanted(rows, stiffness, slips, p, share)))


@pytree
class _Cone:
    """State of the tangential impulses t of contacts whose length is bounded by mu p_n.

    Attributes:
        sticks: below the bound.
        slides: at it.
        way: direction of t, (n, 3).
        friction: mu.
        turning: by how much a change of t across the way changes the direction, where it slides.
    """

    sticks: jax.Array
    slides: jax.Array
    way: jax.Array
    friction: jax.Array
    turning: jax.Array


def _cone(pressed: jax.Array, press: jax.Array, tangent: jax.Array, mu: jax.Array) -> _Cone:
    length = _length(tangent)
    slides = pressed & ((length > mu * press) | (mu <= 0))
    one = jnp.where(length > 0, length, 1)
    return _Cone(
        sticks=pressed & ~slides,
        slides=slides,
        way=tangent / one[:, None],
        friction=mu,
        turning=jnp.where(slides, mu * press / one, 0),
    )


@pytree
class Linear:
    """Derivative D of the projection P at given impulses, and ``(1 - (1 - 1 / s) D)^-1``.

    A contact that sticks, and a scalar row between its bounds, has D = 1; one that is open, or at a bound, D = 0. One
    that slides along ``way`` has ``D = (n + mu way) n^T + turning (1 - n n^T - way way^T)``. Of a twist about the
    normal, and across it, it is likewise, with the normal impulse of the contact.
    """

    normal: jax.Array
    slip: _Cone
    spin: _Cone
    roll: _Cone
    inner: jax.Array
    twisting: tuple[int, ...] = dataclasses.field(metadata={"static": True})
    hard: float = dataclasses.field(metadata={"static": True})

    def _contact(self, along: Any, onward: Any, across: Any, values: jax.Array, stuck: Any, opened: Any) -> jax.Array:
        """Return contact vectors (C, 3, ...) multiplied by a matrix of each state."""
        n, t = self.normal, self.slip.way
        a, b = dots(n, values), dots(t, values)
        rest = values - a[:, None] * n - b[:, None] * t
        sliding = (along * a)[:, None] * n + (onward[0] * a + onward[1] * b)[:, None] * t + across[:, None] * rest
        still = jnp.where(self.slip.sticks[:, None], stuck * values, opened * values)
        return jnp.where(self.slip.slides[:, None], sliding, still)

    def _twist(
        self, given: Impulses, onward: tuple[float, float], across: list[jax.Array], stuck: float, opened: float
    ) -> jax.Array:
        """Return twists (T, 3, ...) multiplied by a matrix of each state, with the normal parts of their contacts.

        Args:
            given: impulses.
            onward: factors along the way, of friction times the normal part, and of the twist itself.
            across: factor across the way of those that turn about the normal, and across it.
            stuck: factor where twists stick.
            opened: factor of open contacts.
        """
        which = np.array(self.twisting, int)
        press = dots(self.normal[which], given.contact[which])
        moved = 0 * given.twist
        for cone, part, aside in zip((self.spin, self.roll), self._turns(given.twist), across, strict=True):
            along = dots(cone.way, part)
            sliding = (onward[0] * cone.friction * press + onward[1] * along)[:, None] * cone.way
            sliding = sliding + aside[:, None] * (part - along[:, None] * cone.way)
            still = jnp.where(cone.sticks[:, None], stuck * part, opened * part)
            moved = moved + jnp.where(cone.slides[:, None], sliding, still)
        return moved

    def _turns(self, twist: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the parts of twists about the normal and across it."""
        normal = self.normal[np.array(self.twisting, int)]
        normal = normal.reshape(*normal.shape[:2], *(1,) * (twist.ndim - normal.ndim), *normal.shape[2:])
        about = dots(normal, twist)[:, None] * normal
        return about, twist - about

    def bent(self, given: Impulses) -> Impulses:
        """Return D times impulses.

        Args:
            given: impulses.
        """
        contact = self._contact(1, (self.slip.friction, 0), self.slip.turning, given.contact, 1, 0)
        twist = self._twist(given, (1, 0), [self.spin.turning, self.roll.turning], 1, 0)
        return Impulses(contact=contact, twist=twist, scalar=jnp.where(self.inner, given.scalar, 0))

    def reduced(self, given: Impulses) -> Impulses:
        """Return ``(1 - (1 - 1 / s) D)^-1`` times impulses.

        Args:
            given: impulses.
        """
        hard, share = self.hard, 1 - 1 / self.hard
        across, *aside = (1 / (1 - share * cone.turning) for cone in (self.slip, self.spin, self.roll))
        contact = self._contact(hard, (share * hard * self.slip.friction, 1), across, given.contact, hard, 1)
        twist = self._twist(given, (share * hard, 1), aside, hard, 1)
        return Impulses(contact=contact, twist=twist, scalar=jnp.where(self.inner, hard, 1) * given.scalar)

    def answer(self, errors: Impulses, moved: Impulses) -> Impulses:
        """Return the change of impulses with that of slips: ``-(1 - (1 - 1 / s) D)^-1 (errors + D k dy)``.

        Args:
            errors: of the laws.
            moved: k dy.
        """
        hard = self.hard
        turning, *aside = (self._turned(cone) for cone in (self.slip, self.spin, self.roll))
        contact = self._contact(hard, (hard * self.slip.friction, 0), turning, moved.contact, hard, 0)
        twist = self._twist(moved, (hard, 0), aside, hard, 0)
        pushed = Impulses(contact=contact, twist=twist, scalar=jnp.where(self.inner, hard, 0) * moved.scalar)
        return jax.tree.map(lambda a, b: -a - b, self.reduced(errors), pushed)

    def _turned(self, cone: _Cone) -> jax.Array:
        return cone.turning / (1 - (1 - 1 / self.hard) * cone.turning)

    def hardness(self, rows: Rows, stiffness: Impulses) -> jax.Array:
        """Return ``J^T (1 - (1 - 1 / s) D)^-1 D k J``, (nv, nv, ...).

        Args:
            rows: of the constraints.
            stiffness: k.
        """
        normal, way = self.normal[:, :, None], self.slip.way[:, :, None]
        jacobian, slides = rows.contact, self.slip.slides[:, None, None]
        along, onward = dots(normal, jacobian)[:, None], dots(way, jacobian)[:, None]
        rest = jacobian - along * normal - onward * way
        edge = self.hard * (normal + self.slip.friction[:, None, None] * way)
        still = jnp.where(self.slip.sticks[:, None, None], self.hard * jacobian, 0)
        contact = jnp.where(slides, edge * along + self._turned(self.slip)[:, None, None] * rest, still)
        pressing = stiffness.contact[:, :, None] * along
        weighted = Impulses(
            contact=stiffness.contact[:, :, None] * contact,
            twist=self._twist_hardness(rows, stiffness, rows.at_twists(pressing)),
            scalar=jnp.where(self.inner, self.hard * stiffness.scalar, 0),
        )
        return gram_of(rows, weighted)

    def _twist_hardness(self, rows: Rows, stiffness: Impulses, pressing: jax.Array) -> jax.Array:
        """Return the rows of twists (T, 3, nv, ...), with k J of the normals of their contacts, (T, 1, nv, ...)."""
        twist = stiffness.twist[:, :, None]
        total = 0 * rows.twist
        for cone, part in zip((self.spin, self.roll), self._turns(rows.twist), strict=True):
            way = cone.way[:, :, None]
            rest = part - dots(way, part)[:, None] * way
            moved = self.hard * cone.friction[:, None, None] * way * pressing
            moved = moved + twist * self._turned(cone)[:, None, None] * rest
            still = jnp.where(cone.sticks[:, None, None], self.hard * twist * part, 0)
            total = total + jnp.where(cone.slides[:, None, None], moved, still)
        return total


def linearized(rows: Rows, stiffness: Impulses, slips: Impulses, p: Impulses) -> Linear:
    """Return the derivative of the projection.

    Args:
        rows: of the constraints.
        stiffness: k of each row.
        slips: J v + b.
        p: impulses.
    """
    wanted = _wanted(rows, stiffness, slips, p)
    along, tangent = _parts(rows.normal, wanted.contact)
    pressed, press = along > 0, rows.at_twists(along)
    normal = rows.at_twists(rows.normal)
    about, across = _parts(normal, wanted.twist)
    return Linear(
        normal=rows.normal,
        slip=_cone(pressed, along, tangent, rows.friction),
        spin=_cone(press > 0, press, about[:, None] * normal, rows.torsion),
        roll=_cone(press > 0, press, across, rows.rolling),
        inner=(wanted.scalar > rows.lower) & (wanted.scalar < rows.upper),
        twisting=rows.twisting,
        hard=STIFFNESS[str(rows.friction.dtype)],
    )
