"""Impulses of contacts, limits, friction and closed loops on a mechanism in joint coordinates.

The velocities v after a step, from the velocities u that the mechanism would have without constraints, obey

``M (v - u) = J^T p,   y = J v + b,   p in K,   y + mu |y_t| n in K*,   p.(y + mu |y_t| n) = 0``

with a row of J for each constraint: K is Coulomb's cone ``|p_t| <= mu p_n`` of a contact (Signorini's and Coulomb's
laws, in the form of G. de Saxce and Z. Feng, doi:10.1016/S0895-7177(98)00119-8), an interval of impulses of a scalar
row: ``p >= 0`` of a limit, ``|p| <= f dt`` of friction in a joint, all numbers of an equality.

Solved by a fixed number of iterations of the alternating direction method of multipliers, as in J. Carpentier,
Q. Le Lidec and L. Montaut, arXiv:2405.17020, from the impulses of the last step, and one Newton step on the laws with
the contacts open, stuck or sliding as found. Where these are right the error is that of rounding, else the iterate is
kept. The derivative is that of this Newton step: the implicit function theorem, exact where the iterations found the
right set.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once_on_cpu, precise_product
from simkit.core.pytrees import pytree
from simkit.rigid.articulated.dynamics import solve
from simkit.rigid.articulated.tree import like

# Over-relaxation of the iterations; between 1.5 and 1.8 is customary.
RELAXATION = 1.6
# Stiffness of the constraints in the Newton step, in units of each one's effective mass per step; the relative error
# of its derivative is the inverse, and that of its rounding the product with the spacing of numbers.
STIFFNESS = {"float64": 1e8, "float32": 3e3}


@pytree
class Impulses:
    """Impulses of the constraints.

    Attributes:
        contact: on the second body of each contact in world axes in N s, (C, 3).
        scalar: of the other rows in N s or N m s, (S,).
    """

    contact: jax.Array
    scalar: jax.Array


@pytree
class Rows:
    """Constraints at the velocities of a mechanism: C contacts and S scalar rows.

    Attributes:
        normal: unit vectors from the first body of each contact to the second, (C, 3).
        contact: Jacobians of the velocity of the second body relative to the first, (C, 3, nv).
        closing: speed at which each contact may close in m/s, gap over time step, (C,).
        friction: coefficient of each contact, (C,).
        scalar: Jacobians of the scalar rows, (S, nv).
        offset: b of the scalar rows, (S,).
        lower: bound of their impulses, (S,).
        upper: bound of their impulses, (S,).
    """

    normal: jax.Array
    contact: jax.Array
    closing: jax.Array
    friction: jax.Array
    scalar: jax.Array
    offset: jax.Array
    lower: jax.Array
    upper: jax.Array


def _times(rows: Rows, velocity: jax.Array) -> Impulses:
    """Return J v."""
    return Impulses(
        contact=jnp.sum(rows.contact * velocity[None, None], axis=2),
        scalar=jnp.sum(rows.scalar * velocity[None], axis=1),
    )


def _transposed(rows: Rows, impulses: Impulses) -> jax.Array:
    """Return J^T p, (nv,)."""
    contact = jnp.sum(rows.contact * impulses.contact[:, :, None], axis=(0, 1))
    return contact + jnp.sum(rows.scalar * impulses.scalar[:, None], axis=0)


def _applied(matrix: jax.Array, vector: jax.Array) -> jax.Array:
    return jnp.sum(matrix * vector[None], axis=1)


def inverse(matrix: jax.Array) -> jax.Array:
    """Return the inverse of a matrix (n, n, ...), positive definite but not necessarily symmetric.

    Args:
        matrix: with members along trailing axes.
    """
    if matrix.ndim == 2:
        return jnp.linalg.inv(matrix)
    columns = jnp.broadcast_to(like(np.eye(len(matrix)), matrix), matrix.shape)
    return jax.vmap(lambda column: solve(matrix, column), 1, 1)(columns)


def _gram(rows: Rows, left_contact: jax.Array, left_scalar: jax.Array) -> jax.Array:
    """Return the sum of products of two Jacobians, (nv, nv, ...)."""
    left = jnp.concatenate([left_contact.reshape(-1, *left_contact.shape[2:]), left_scalar])
    right = jnp.concatenate([rows.contact.reshape(-1, *rows.contact.shape[2:]), rows.scalar])
    return _product(left, right)


def _product(left: jax.Array, right: jax.Array) -> jax.Array:
    """Return ``left^T right`` of (rows, nv, ...) each, (nv, nv, ...)."""
    if left.ndim == 2:
        return precise_product(left.T, right)
    return jnp.einsum("ri...,rj...->ij...", left, right, precision="highest")


def _length(vectors: jax.Array) -> jax.Array:
    """Return lengths of vectors along the second axis, with derivative zero at zero."""
    squares = jnp.sum(vectors * vectors, axis=1)
    return jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0)


def _parts(normal: jax.Array, vectors: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return normal components (C, ...) and tangential parts (C, 3, ...)."""
    along = jnp.sum(normal * vectors, axis=1)
    return along, vectors - along[:, None] * normal


def _projected(rows: Rows, given: Impulses) -> Impulses:
    """Return the nearest impulses that the laws allow."""
    mu = rows.friction
    along, tangent = _parts(rows.normal, given.contact)
    length = _length(tangent)
    slides = length > mu * along
    pressed = (along + mu * length) / (1 + mu * mu)
    share = mu * pressed / jnp.where(length > 0, length, 1)
    on_cone = pressed[:, None] * rows.normal + share[:, None] * tangent
    contact = jnp.where(slides[:, None], jnp.where((pressed > 0)[:, None], on_cone, 0), given.contact)
    return Impulses(contact=contact, scalar=jnp.clip(given.scalar, rows.lower, rows.upper))


def _slips(rows: Rows, velocity: Impulses) -> Impulses:
    """Return y = J v + b and, on the normals, mu |y_t|."""
    _, tangent = _parts(rows.normal, velocity.contact)
    push = rows.closing + rows.friction * _length(tangent)
    return Impulses(
        contact=velocity.contact + push[:, None] * rows.normal,
        scalar=velocity.scalar + rows.offset,
    )


def _friction_term(rows: Rows, slips: Impulses) -> jax.Array:
    """Return the term of de Saxce, mu |y_t| n, (C, 3, ...)."""
    _, tangent = _parts(rows.normal, slips.contact)
    return (rows.friction * _length(tangent))[:, None] * rows.normal


def _stiffness(rows: Rows, mobility: jax.Array) -> Impulses:
    """Return the inverse of the mean mobility of each row: kg, or kg m^2, with a length to broadcast."""
    moved = jnp.sum(rows.contact[:, :, :, None] * mobility[None, None], axis=2)
    contact = jnp.sum(moved * rows.contact, axis=(1, 2)) / 3
    scalar = jnp.sum(jnp.sum(rows.scalar[:, :, None] * mobility[None], axis=1) * rows.scalar, axis=1)
    # A contact that nothing can move, as of two bodies of one slide, has no mobility.
    tiny = jnp.finfo(mobility.dtype).tiny ** 0.5
    return Impulses(contact=1 / jnp.maximum(contact, tiny)[:, None], scalar=1 / jnp.maximum(scalar, tiny))


def _scaled(stiffness: Impulses, values: Impulses, factor: float = 1.0) -> Impulses:
    return jax.tree.map(lambda k, a: factor * (k * a), stiffness, values)


_plus = functools.partial(jax.tree.map, jnp.add)
_minus = functools.partial(jax.tree.map, jnp.subtract)


def _misfit(rows: Rows, mobility: jax.Array, stiffness: Impulses, free: jax.Array, p: Impulses) -> jax.Array:
    """Return the largest error of the laws as a speed, for velocities that obey the equations of motion."""
    velocity = free + _applied(mobility, _transposed(rows, p))
    slips = _slips(rows, _times(rows, velocity))
    left = _minus(p, _projected(rows, _minus(p, _scaled(stiffness, slips))))
    errors = jax.tree.map(lambda k, a: jnp.abs(a / k), stiffness, left)
    largest = [jnp.max(a.reshape(-1, *free.shape[1:]), axis=0, initial=0) for a in (errors.contact, errors.scalar)]
    return jnp.maximum(*largest)


def solve_contacts(
    matrix: jax.Array, free: jax.Array, rows: Rows, start: Impulses, *, iterations: int = 40
) -> tuple[jax.Array, Impulses, jax.Array]:
    """Return velocities (nv,), impulses, and the largest error of the laws as a speed in m/s (or rad/s).

    Args:
        matrix: M, (nv, nv), symmetric and positive definite.
        free: velocities u without constraints, (nv,).
        rows: of the constraints.
        start: impulses to start from, such as those of the last step.
        iterations: a fixed number.
    """
    given = jax.lax.stop_gradient((matrix, free, rows, start))
    mobility = computed_once_on_cpu(inverse(given[0]))
    found, slips, stiffness, misfit = _iterated(*given, mobility, iterations)
    velocity, polished = _newton(matrix, free, rows, found, slips, stiffness, mobility)
    _, free, rows, _ = given
    allowed = _projected(rows, jax.lax.stop_gradient(polished))
    error = _misfit(rows, mobility, stiffness, free, allowed)
    is_better = error <= misfit
    best = jax.tree.map(lambda a, b: jnp.where(is_better, a, b), allowed, found)
    # The value is that of the impulses that the laws allow, the derivative that of the Newton step.
    value = free + _applied(mobility, _transposed(rows, best))
    return value + (velocity - jax.lax.stop_gradient(velocity)), best, jnp.minimum(error, misfit)


def _iterated(
    matrix: jax.Array, free: jax.Array, rows: Rows, start: Impulses, mobility: jax.Array, iterations: int
) -> tuple[Impulses, Impulses, Impulses, jax.Array]:
    stiffness = computed_once_on_cpu(_stiffness(rows, mobility))
    hardened = inverse(
        matrix + _gram(rows, rows.contact * stiffness.contact[:, :, None], rows.scalar * stiffness.scalar[:, None])
    )
    hardened = computed_once_on_cpu(hardened)
    momentum = _applied(matrix, free)
    offsets = Impulses(contact=rows.closing[:, None] * rows.normal, scalar=rows.offset)

    def split(p: Impulses, moved: Impulses, slip: Impulses) -> tuple[Impulses, Impulses]:
        """Return allowed impulses and velocities, whose product is zero."""
        push = _friction_term(rows, slip)
        slips = _plus(moved, offsets)
        slips = Impulses(contact=slips.contact + push, scalar=slips.scalar)
        wanted = _minus(p, _scaled(stiffness, slips))
        allowed = _projected(rows, wanted)
        rest = jax.tree.map(lambda k, a: a / k, stiffness, _minus(allowed, wanted))
        # Without the term of de Saxce, z = J v + b.
        return allowed, Impulses(contact=rest.contact - push, scalar=rest.scalar)

    def iterate(_: int, now: tuple[Impulses, Impulses]) -> tuple[Impulses, Impulses]:
        p, z = now
        pull = _transposed(rows, _plus(p, _scaled(stiffness, _minus(z, offsets))))
        moved = _times(rows, _applied(hardened, momentum + pull))
        relaxed = jax.tree.map(lambda a, b, c: RELAXATION * a + (1 - RELAXATION) * (b - c), moved, z, offsets)
        return split(p, relaxed, z)

    first = _times(rows, free + _applied(mobility, _transposed(rows, start)))
    p, z = jax.lax.fori_loop(0, iterations, iterate, split(start, first, _plus(first, offsets)))
    z = Impulses(contact=z.contact + _friction_term(rows, z), scalar=z.scalar)
    # Exactly complementary for the slip found.
    wanted = _minus(p, _scaled(stiffness, z))
    p = _projected(rows, wanted)
    z = jax.tree.map(lambda k, a: a / k, stiffness, _minus(p, wanted))
    return p, z, stiffness, _misfit(rows, mobility, stiffness, free, p)


def _newton(
    matrix: jax.Array,
    free: jax.Array,
    rows: Rows,
    found: Impulses,
    slips: Impulses,
    stiffness: Impulses,
    mobility: jax.Array,
) -> tuple[jax.Array, Impulses]:
    """Return velocities and impulses after one Newton step from complementary impulses and slips."""
    hard = STIFFNESS[str(free.dtype)]
    fixed = jax.lax.stop_gradient(rows)
    wanted = _minus(found, _scaled(stiffness, slips, hard))
    along, tangent = _parts(fixed.normal, wanted.contact)
    length, mu = _length(tangent), fixed.friction
    pressed = (along + mu * length) / (1 + mu * mu)
    sticks, slides = length <= mu * along, (length > mu * along) & (pressed > 0)
    way = tangent / jnp.where(length > 0, length, 1)[:, None]
    edge = fixed.normal + mu[:, None] * way
    turning = mu * pressed / jnp.where(length > 0, length, 1)
    inner = (wanted.scalar > fixed.lower) & (wanted.scalar < fixed.upper)

    def bent(contact: jax.Array) -> jax.Array:
        """Return the derivative of the projection on the cones along changes of impulses (C, 3, ...)."""
        normal = jnp.sum(fixed.normal * contact, axis=1)
        onward = jnp.sum(way * contact, axis=1)
        across = contact - normal[:, None] * fixed.normal - onward[:, None] * way
        sliding = (normal + mu * onward)[:, None] / (1 + mu * mu)[:, None] * edge + turning[:, None] * across
        return jnp.where(sticks[:, None], contact, jnp.where(slides[:, None], sliding, 0))

    def slipping(moved: jax.Array, friction: jax.Array, normal: jax.Array) -> jax.Array:
        """Return y with the term of de Saxce where a contact slides."""
        _, along = _parts(normal, moved)
        # Impulses of friction point against the slip.
        speed = jnp.where(slides, -jnp.sum(way * along, axis=1), 0)
        return moved + (friction * speed)[:, None] * normal

    columns = jax.vmap(lambda c: bent(stiffness.contact * slipping(c, mu, fixed.normal)), 2, 2)(fixed.contact)
    scalar = jnp.where(inner, stiffness.scalar, 0)[:, None] * fixed.scalar
    left = Rows(**{**vars(fixed), "contact": columns, "scalar": scalar})
    total = matrix + hard * _gram(left, fixed.contact, fixed.scalar)
    back = inverse(jax.lax.stop_gradient(total))
    at = jax.lax.stop_gradient(free) + _applied(mobility, _transposed(fixed, found))
    moved = _times(rows, at)
    y = slipping(moved.contact, rows.friction, rows.normal) + rows.closing[:, None] * rows.normal
    change = Impulses(
        contact=bent(hard * stiffness.contact * (slips.contact - y)),
        scalar=jnp.where(inner, hard * stiffness.scalar * (slips.scalar - moved.scalar - rows.offset), 0),
    )
    pushed = _plus(_projected(rows, wanted), change)
    step = _applied(back, _applied(matrix, free - at) + _transposed(rows, pushed))
    after = _times(fixed, jax.lax.stop_gradient(step))
    bend = slipping(after.contact, mu, fixed.normal)
    last = Impulses(
        contact=pushed.contact - bent(hard * stiffness.contact * bend),
        scalar=pushed.scalar - jnp.where(inner, hard * stiffness.scalar * after.scalar, 0),
    )
    return at + step, last


def displacement(matrix: jax.Array, rows: Rows, wanted: Impulses) -> jax.Array:
    """Return the smallest displacement, in kinetic energy, that moves rows as wanted: velocities stay, (nv,).

    Args:
        matrix: M, (nv, nv).
        rows: of the constraints.
        wanted: along the normals in m, (C,), and of the scalar rows, (S,); what is zero is not held.
    """
    held = jax.lax.stop_gradient(jax.tree.map(lambda a: jnp.asarray(a != 0, a.dtype), wanted))
    stiffness = jax.lax.stop_gradient(_stiffness(rows, inverse(matrix)))
    hard = STIFFNESS[str(matrix.dtype)]
    normal = jnp.sum(rows.normal[:, :, None] * rows.contact, axis=1)
    jacobian = jnp.concatenate([normal, rows.scalar])
    weight = hard * jnp.concatenate([stiffness.contact[:, 0] * held.contact, stiffness.scalar * held.scalar])
    push = jnp.sum(jacobian * (weight * jnp.concatenate([wanted.contact, wanted.scalar]))[:, None], axis=0)
    return solve(matrix + _product(jacobian, weight[:, None] * jacobian), push)
