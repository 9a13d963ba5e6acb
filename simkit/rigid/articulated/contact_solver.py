"""Impulses of contacts, limits, friction and closed loops on a mechanism in joint coordinates.

The velocities v after a step, from the velocities u that the mechanism would have without constraints, obey

``M (v - u) = J^T p,   y = J v + b + p / (s k),   y_n >= 0,   p_n >= 0,   y_n p_n = 0,   |p_t| <= mu p_n``

with a row of J for each constraint, and ``p_t`` against ``y_t`` and of length ``mu p_n`` where ``y_t`` is not zero
(Signorini's and Coulomb's laws). A scalar row has an interval of impulses in place of the cone: ``p >= 0`` of a limit,
``|p| <= f dt`` of friction in a joint, all numbers of an equality.

``p / (s k)`` is a compliance: k is the effective mass of a row, and s the number ``STIFFNESS``. It makes the impulses
of more contacts than a body needs, such as the four corners of a box, unique, and with them the friction and the
derivative of a box that spins; what rests creeps by ``g dt / s``, 2e-10 m/s at time steps of 2 ms in float64.

In every contact, and every scalar row, the laws are one equation with the projection P that clips the normal impulse
at zero and then the tangential one at the friction: ``p = P(p - k y)``. A few iterations of the alternating direction
method of multipliers, as in J. Carpentier, Q. Le Lidec and L. Montaut, arXiv:2405.17020, start from the impulses of the
last step; steps of Newton's method on this equation, which is smooth but for the edges between open, stuck and sliding
contacts, then converge to rounding, nearly always within six. Both are fixed in number. The derivative is that of the
solution by the implicit function theorem.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once_on_cpu, precise_product
from simkit.core.pytrees import pytree
from simkit.rigid.articulated.dynamics import solve

# Over-relaxation of the iterations; between 1.5 and 1.8 is customary.
RELAXATION = 1.6
# Impulse per speed of a constraint in units of its effective mass.
STIFFNESS = {"float64": 1e8, "float32": 3e3}
# Lengths of a Newton step that are tried; the one with the least error is taken, even if that grows.
LENGTHS = (1.0, 0.6, 0.3, 0.1, 0.03)


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
    """Return the inverse of a matrix (n, n, ...), by Gauss-Jordan elimination without pivots.

    Without a library: from 32 rows on LAPACK takes several threads, and with other programs on the machine up to 17 ms.

    Args:
        matrix: positive definite, with members along trailing axes.
    """

    def eliminate(n: jax.Array, now: jax.Array) -> jax.Array:
        pivot = 1 / now[n, n]
        row, column = (now[n] * pivot).at[n].set(pivot), now[:, n].at[n].set(0)
        cleared = now.at[:, n].set(0)
        return (cleared - column[:, None] * row[None]).at[n].set(row)

    return jax.lax.fori_loop(0, len(matrix), eliminate, matrix)


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


def _allowed(rows: Rows, wanted: Impulses) -> Impulses:
    """Return the projection P of impulses: the normal one clipped at zero, then the tangential one at the friction."""
    along, tangent = _parts(rows.normal, wanted.contact)
    pressed, length = jnp.maximum(along, 0), _length(tangent)
    bound = rows.friction * pressed
    share = jnp.where(length > bound, bound / jnp.where(length > 0, length, 1), 1)
    contact = pressed[:, None] * rows.normal + share[:, None] * tangent
    return Impulses(contact=contact, scalar=jnp.clip(wanted.scalar, rows.lower, rows.upper))


def _slips(rows: Rows, velocity: jax.Array) -> Impulses:
    """Return J v + b."""
    moved = _times(rows, velocity)
    return Impulses(
        contact=moved.contact + rows.closing[:, None] * rows.normal,
        scalar=moved.scalar + rows.offset,
    )


def _stiffness(rows: Rows, mobility: jax.Array) -> Impulses:
    """Return the inverse of the mean mobility of each row: kg, or kg m^2, with a length to broadcast."""
    moved = jnp.sum(rows.contact[:, :, :, None] * mobility[None, None], axis=2)
    contact = jnp.sum(moved * rows.contact, axis=(1, 2)) / 3
    scalar = jnp.sum(jnp.sum(rows.scalar[:, :, None] * mobility[None], axis=1) * rows.scalar, axis=1)
    # A contact that nothing can move, as of two bodies of one slide, has no mobility.
    tiny = jnp.finfo(mobility.dtype).tiny ** 0.5
    return Impulses(contact=1 / jnp.maximum(contact, tiny)[:, None], scalar=1 / jnp.maximum(scalar, tiny))


_plus = functools.partial(jax.tree.map, jnp.add)
_minus = functools.partial(jax.tree.map, jnp.subtract)
_times_each = functools.partial(jax.tree.map, jnp.multiply)


def solve_contacts(
    matrix: jax.Array, free: jax.Array, rows: Rows, start: Impulses, *, iterations: int = 10, steps: int = 8
) -> tuple[jax.Array, Impulses, jax.Array]:
    """Return velocities (nv,), impulses, and the largest error of the laws without compliance, in m/s or rad/s.

    Args:
        matrix: M, (nv, nv), symmetric and positive definite.
        free: velocities u without constraints, (nv,).
        rows: of the constraints.
        start: impulses to start from, such as those of the last step.
        iterations: a fixed number, of the method of multipliers.
        steps: of Newton's method.
    """
    given = jax.lax.stop_gradient((matrix, free, rows, start))
    mobility = computed_once_on_cpu(inverse(given[0]))
    stiffness = computed_once_on_cpu(_stiffness(given[2], mobility))
    impulses = _iterated(*given, mobility, stiffness, iterations)
    velocity, impulses, misfit = _newton(*given[:3], impulses, mobility, stiffness, steps)
    velocity, impulses = _as_solution(matrix, free, rows, jax.lax.stop_gradient((velocity, impulses, stiffness)))
    return velocity, impulses, misfit


@jax.custom_jvp
def _as_solution(
    matrix: jax.Array, free: jax.Array, rows: Rows, found: tuple[jax.Array, Impulses, Impulses]
) -> tuple[jax.Array, Impulses]:
    """Return velocities and impulses found, with their derivative as the solution of the laws."""
    return found[:2]


@_as_solution.defjvp
def _of_solution(primals: Any, tangents: Any) -> Any:
    found = primals[3]

    def corrected(matrix: jax.Array, free: jax.Array, rows: Rows) -> tuple[jax.Array, Impulses]:
        return _correction(matrix, free, rows, *found)

    return found[:2], jax.jvp(corrected, primals[:3], tangents[:3])[1]


def _iterated(
    matrix: jax.Array,
    free: jax.Array,
    rows: Rows,
    start: Impulses,
    mobility: jax.Array,
    stiffness: Impulses,
    iterations: int,
) -> Impulses:
    """Return impulses after iterations of the method of multipliers, without compliance."""
    hardened = inverse(
        matrix + _gram(rows, rows.contact * stiffness.contact[:, :, None], rows.scalar * stiffness.scalar[:, None])
    )
    hardened = computed_once_on_cpu(hardened)
    momentum = _applied(matrix, free)
    offsets = _slips(rows, jnp.zeros_like(free))

    def split(p: Impulses, slips: Impulses) -> tuple[Impulses, Impulses]:
        """Return impulses and slips that obey the laws."""
        wanted = _minus(p, _times_each(stiffness, slips))
        allowed = _allowed(rows, wanted)
        return allowed, jax.tree.map(lambda k, a: a / k, stiffness, _minus(allowed, wanted))

    def iterate(_: int, now: tuple[Impulses, Impulses]) -> tuple[Impulses, Impulses]:
        p, z = now
        pull = _transposed(rows, _plus(p, _times_each(stiffness, _minus(z, offsets))))
        slips = _slips(rows, _applied(hardened, momentum + pull))
        return split(p, jax.tree.map(lambda a, b: RELAXATION * a + (1 - RELAXATION) * b, slips, z))

    first = _slips(rows, free + _applied(mobility, _transposed(rows, start)))
    return jax.lax.fori_loop(0, iterations, iterate, split(start, first))[0]


def _wanted(rows: Rows, stiffness: Impulses, slips: Impulses, p: Impulses, share: float | None = None) -> Impulses:
    """Return ``p - k y``, whose projection are the impulses of the laws, with slips J v + b."""
    share = 1 - 1 / STIFFNESS[str(rows.normal.dtype)] if share is None else share
    return jax.tree.map(lambda a, k, y: share * a - k * y, p, stiffness, slips)


def _errors(rows: Rows, stiffness: Impulses, slips: Impulses, p: Impulses, share: float | None = None) -> Impulses:
    """Return ``p - P(p - k y)``; with a share of 1 without compliance."""
    return _minus(p, _allowed(rows, _wanted(rows, stiffness, slips, p, share)))


def _newton(
    matrix: jax.Array,
    free: jax.Array,
    rows: Rows,
    start: Impulses,
    mobility: jax.Array,
    stiffness: Impulses,
    steps: int,
) -> tuple[jax.Array, Impulses, jax.Array]:
    """Return the best velocities and impulses along steps of Newton's method, and their error without compliance."""
    members = free.shape[1:]

    def misfit(slips: Impulses, p: Impulses, share: float | None = None) -> jax.Array:
        errors = jax.tree.map(lambda k, a: jnp.abs(a / k), stiffness, _errors(rows, stiffness, slips, p, share))
        largest = [jnp.max(a.reshape(-1, *members), axis=0, initial=0) for a in (errors.contact, errors.scalar)]
        return jnp.maximum(*largest)

    def action(slips: Impulses, p: Impulses) -> jax.Array:
        squares = jax.tree.map(lambda k, a: a * a / k, stiffness, _errors(rows, stiffness, slips, p))
        return jnp.sum(squares.contact, axis=(0, 1)) + jnp.sum(squares.scalar, axis=0)

    def step(_: int, now: Any) -> Any:
        velocity, p, best = now
        slips = _slips(rows, velocity)
        linear = _linearized(rows, stiffness, slips, p)
        errors = _errors(rows, stiffness, slips, p)
        forces = _applied(matrix, velocity - free) - _transposed(rows, p)
        hard = matrix + linear.hardness(rows, stiffness)
        change = _solved(hard, -(forces + _transposed(rows, linear.reduced(errors))))
        moved = _times(rows, change)
        shift = linear.answer(errors, _times_each(stiffness, moved))

        def at(length: Any) -> tuple[Impulses, Impulses]:
            return jax.tree.map(lambda a, b: a + length * b, (slips, p), (moved, shift))

        tried = jnp.stack([action(*at(length)) for length in LENGTHS])
        length = jnp.asarray(LENGTHS, tried.dtype)[jnp.argmin(tried, axis=0)]
        velocity, p = jax.tree.map(lambda a, b: a + length * b, (velocity, p), (change, shift))
        error = misfit(_slips(rows, velocity), p)
        better = error < best[2]
        return velocity, p, jax.tree.map(lambda a, b: jnp.where(better, a, b), (velocity, p, error), best)

    velocity = free + _applied(mobility, _transposed(rows, start))
    error = misfit(_slips(rows, velocity), start)
    velocity, p, _ = jax.lax.fori_loop(0, steps, step, (velocity, start, (velocity, start, error)))[2]
    return velocity, p, misfit(_slips(rows, velocity), p, 1)


def _solved(matrix: jax.Array, values: jax.Array) -> jax.Array:
    """Return ``matrix^-1 values`` of a matrix that need not be symmetric."""
    return jnp.linalg.solve(matrix, values) if values.ndim == 1 else solve(matrix, values)


@dataclasses.dataclass(frozen=True)
class _Linear:
    """Derivative D of the projection P at given impulses, and ``(1 - (1 - 1 / s) D)^-1``.

    A contact that sticks, and a scalar row between its bounds, has D = 1; one that is open, or at a bound, D = 0. One
    that slides along ``way`` has ``D = (n + mu way) n^T + turning (1 - n n^T - way way^T)``.
    """

    normal: jax.Array
    way: jax.Array
    friction: jax.Array
    turning: jax.Array
    sticks: jax.Array
    slides: jax.Array
    inner: jax.Array
    hard: float

    def _contact(self, along: Any, onward: Any, across: Any, values: jax.Array, stuck: Any, opened: Any) -> jax.Array:
        """Return contact vectors (C, 3, ...) multiplied by a matrix of each state."""
        n, t = self.normal, self.way
        a, b = jnp.sum(n * values, axis=1), jnp.sum(t * values, axis=1)
        rest = values - a[:, None] * n - b[:, None] * t
        sliding = (along * a)[:, None] * n + (onward[0] * a + onward[1] * b)[:, None] * t + across[:, None] * rest
        still = jnp.where(self.sticks[:, None], stuck * values, opened * values)
        return jnp.where(self.slides[:, None], sliding, still)

    def bent(self, given: Impulses) -> Impulses:
        """Return D times impulses."""
        contact = self._contact(1, (self.friction, 0), self.turning, given.contact, 1, 0)
        return Impulses(contact=contact, scalar=jnp.where(self.inner, given.scalar, 0))

    def reduced(self, given: Impulses) -> Impulses:
        """Return ``(1 - (1 - 1 / s) D)^-1`` times impulses."""
        hard, share = self.hard, 1 - 1 / self.hard
        across = 1 / (1 - share * self.turning)
        contact = self._contact(hard, (share * hard * self.friction, 1), across, given.contact, hard, 1)
        return Impulses(contact=contact, scalar=jnp.where(self.inner, hard, 1) * given.scalar)

    def answer(self, errors: Impulses, moved: Impulses) -> Impulses:
        """Return the change of impulses with that of slips: ``-(1 - (1 - 1 / s) D)^-1 (errors + D k dy)``."""
        hard, turning = self.hard, self.turning / (1 - (1 - 1 / self.hard) * self.turning)
        contact = self._contact(hard, (hard * self.friction, 0), turning, moved.contact, hard, 0)
        pushed = Impulses(contact=contact, scalar=jnp.where(self.inner, hard, 0) * moved.scalar)
        return jax.tree.map(lambda a, b: -a - b, self.reduced(errors), pushed)

    def hardness(self, rows: Rows, stiffness: Impulses) -> jax.Array:
        """Return ``J^T (1 - (1 - 1 / s) D)^-1 D k J``, (nv, nv, ...)."""
        turning = self.turning / (1 - (1 - 1 / self.hard) * self.turning)
        normal, way = self.normal[:, :, None], self.way[:, :, None]
        jacobian, slides = rows.contact, self.slides[:, None, None]
        along, onward = jnp.sum(normal * jacobian, axis=1)[:, None], jnp.sum(way * jacobian, axis=1)[:, None]
        rest = jacobian - along * normal - onward * way
        edge = self.hard * (normal + self.friction[:, None, None] * way)
        still = jnp.where(self.sticks[:, None, None], self.hard * jacobian, 0)
        contact = jnp.where(slides, edge * along + turning[:, None, None] * rest, still)
        scalar = jnp.where(self.inner, self.hard * stiffness.scalar, 0)[:, None] * rows.scalar
        left = dataclasses.replace(rows, contact=stiffness.contact[:, :, None] * contact, scalar=scalar)
        return _gram(left, rows.contact, rows.scalar)


def _linearized(rows: Rows, stiffness: Impulses, slips: Impulses, p: Impulses) -> _Linear:
    """Return the derivative of the projection at slips J v + b and impulses."""
    wanted, mu = _wanted(rows, stiffness, slips, p), rows.friction
    along, tangent = _parts(rows.normal, wanted.contact)
    length = _length(tangent)
    slides = (along > 0) & ((length > mu * along) | (mu <= 0))
    one = jnp.where(length > 0, length, 1)
    return _Linear(
        normal=rows.normal,
        way=tangent / one[:, None],
        friction=mu,
        turning=jnp.where(slides, mu * along / one, 0),
        sticks=(along > 0) & ~slides,
        slides=slides,
        inner=(wanted.scalar > rows.lower) & (wanted.scalar < rows.upper),
        hard=STIFFNESS[str(mu.dtype)],
    )


def _correction(
    matrix: jax.Array, free: jax.Array, rows: Rows, velocity: jax.Array, p: Impulses, stiffness: Impulses
) -> tuple[jax.Array, Impulses]:
    """Return the changes of velocities and impulses by a Newton step, linear in the errors of the given problem.

    The second round removes the error by rounding of the first, the stiffness times the spacing of numbers.
    """
    fixed, about = jax.lax.stop_gradient((rows, matrix))
    linear = _linearized(fixed, stiffness, _slips(fixed, velocity), p)
    back = computed_once_on_cpu(inverse(about + linear.hardness(fixed, stiffness)))
    errors = _errors(rows, stiffness, _slips(rows, velocity), p)
    forces = _applied(matrix, velocity - free) - _transposed(rows, p)

    def solved(forces: jax.Array, errors: Impulses) -> tuple[jax.Array, Impulses]:
        change = -_applied(back, forces + _transposed(fixed, linear.reduced(errors)))
        return change, linear.answer(errors, _times_each(stiffness, _times(fixed, change)))

    change, shift = solved(forces, errors)
    left = forces + _applied(about, change) - _transposed(fixed, shift)
    moved = _times(fixed, change)
    inside = jax.tree.map(lambda a, k, y: (1 - 1 / linear.hard) * a - k * y, shift, stiffness, moved)
    missed = _plus(errors, _minus(shift, linear.bent(inside)))
    return _plus((change, shift), solved(left, missed))


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
