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
at zero and then the tangential one at the friction: ``p = P(p - k y)``. Steps of Newton's method on it, smooth but
for the edges between open, stuck and sliding contacts, converge to rounding: from the impulses of the last step
mostly within one or two, else from impulses that a few iterations of the alternating direction method of multipliers
find, as in J. Carpentier, Q. Le Lidec and L. Montaut, arXiv:2405.17020. The derivative is that of the solution by the
implicit function theorem.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import by_device, computed_once_on_cpu
from simkit.core.pytrees import pytree
from simkit.rigid.articulated.linear import (
    UNROLLED,
    applied,
    applied_transposed,
    gram,
    inverse,
    largest,
    refined,
    solve,
    solve_by,
    total,
)
from simkit.rigid.articulated.tree import like

# Over-relaxation of the iterations; between 1.5 and 1.8 is customary.
RELAXATION = 1.6
# Impulse per speed of a constraint in units of its effective mass.
STIFFNESS = {"float64": 1e8, "float32": 3e3}
# Lengths of a Newton step that are tried; the one with the least error is taken, even if that grows.
LENGTHS = (1.0, 0.6, 0.3, 0.1, 0.03)
# Iterations of the method of multipliers, and most steps of Newton's method before and after them.
ITERATIONS, FIRST_STEPS, STEPS = 10, 4, 8
# Error at which Newton's method ends, in spacings of numbers of the size of the largest speed or impulse, or momentum.
ROUNDING = 16
# Impulses per effective mass, in units of the free speed, above which a solution may be that of a contact that wedges,
# held by its compliance alone; it is then sought from the method of multipliers, which finds others first.
LARGE = 30


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
    """Constraints at the velocities of a mechanism: C contacts and S scalar rows, the first N of one joint each.

    Attributes:
        normal: unit vectors from the first body of each contact to the second, (C, 3).
        contact: Jacobians of the velocity of the second body relative to the first, (C, 3, nv).
        closing: speed at which each contact may close in m/s, gap over time step, (C,).
        friction: coefficient of each contact, (C,).
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
    joints: tuple[tuple[int, float], ...] = dataclasses.field(metadata={"static": True})
    scalar: jax.Array
    offset: jax.Array
    lower: jax.Array
    upper: jax.Array

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
    """Return J v, (C, 3) and (S,)."""
    joints, others = rows.of_joints(velocity), applied(rows.scalar, velocity)
    return Impulses(contact=_contact_rates(rows.contact, velocity), scalar=jnp.concatenate([joints, others]))


def _contact_rates(contact: jax.Array, velocity: jax.Array) -> jax.Array:
    """Return the product of Jacobians (C, 3, nv, ...) with velocities, (C, 3, ...)."""
    return applied(_flat(contact), velocity).reshape(-1, 3, *velocity.shape[1:])


def _flat(rows: jax.Array) -> jax.Array:
    """Return vectors (n, 3, ...) as rows (3 n, ...)."""
    return rows.reshape(-1, *rows.shape[2:])


def pulled(rows: Rows, impulses: Impulses) -> jax.Array:
    """Return J^T p, (nv,)."""
    size = rows.contact.shape[2]
    jacobian = jnp.concatenate([_flat(rows.contact), rows.scalar])
    others = jnp.concatenate([_flat(impulses.contact), impulses.scalar[len(rows.joints) :]])
    return applied_transposed(jacobian, others) + rows.on_joints(impulses.scalar, size)


def _gram(rows: Rows, contact: jax.Array, weight: jax.Array) -> jax.Array:
    """Return the sum of products of the Jacobians of the rows, on the left, with others.

    Args:
        rows: of the constraints.
        contact: on the right in place of the Jacobians of the contacts, (C, 3, nv, ...).
        weight: of each scalar row, (S, ...).
    """
    first = len(rows.joints)
    left = jnp.concatenate([_flat(rows.contact), rows.scalar])
    right = jnp.concatenate([_flat(contact), weight[first:][:, None] * rows.scalar])
    diagonal = rows.on_joints(weight, right.shape[1], power=2)
    return gram(left, right) + like(np.eye(len(diagonal)), diagonal[None]) * diagonal


def _dot(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return dot products along the second axis, of three, written out for vectors of members."""
    return a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1] + a[:, 2] * b[:, 2]


def _length(vectors: jax.Array) -> jax.Array:
    """Return lengths of vectors along the second axis, with derivative zero at zero."""
    squares = _dot(vectors, vectors)
    return jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0)


def _parts(normal: jax.Array, vectors: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return normal components (C, ...) and tangential parts (C, 3, ...)."""
    along = _dot(normal, vectors)
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
    moved = rates(rows, velocity)
    return Impulses(
        contact=moved.contact + rows.closing[:, None] * rows.normal,
        scalar=moved.scalar + rows.offset,
    )


def row_stiffness(rows: Rows, mobility: jax.Array) -> Impulses:
    """Return the inverse of the mean mobility of each row in kg or kg m^2, (C, 1) and (S,).

    Args:
        rows: of the constraints.
        mobility: inverse of the mass matrix, (nv, nv).
    """
    rows, mobility = jax.lax.stop_gradient((rows, mobility))

    def mobilities(jacobian: jax.Array) -> jax.Array:
        if mobility.ndim == 2 or len(jacobian) > UNROLLED:
            # With the rows last, as members are.
            columns = jnp.moveaxis(jacobian, 0, -1)
            return jnp.moveaxis(applied_transposed(columns, applied(mobility[..., None], columns)), -1, 0)
        each = [applied(row[None], computed_once_on_cpu(applied(mobility, row))) for row in jacobian]
        return jnp.concatenate([jnp.zeros_like(jacobian[:0, 0]), *each])

    contact = jnp.mean(mobilities(_flat(rows.contact)).reshape(-1, 3, *mobility.shape[2:]), axis=1)
    own = jnp.stack([mobility[n, n] for n in range(len(mobility))])
    scalar = jnp.concatenate([jnp.abs(rows.of_joints(own)), mobilities(rows.scalar)])
    # A contact that nothing can move, as of two bodies of one slide, has no mobility.
    tiny = jnp.finfo(mobility.dtype).tiny ** 0.5
    return Impulses(contact=1 / jnp.maximum(contact, tiny)[:, None], scalar=1 / jnp.maximum(scalar, tiny))


_plus = functools.partial(jax.tree.map, jnp.add)
_minus = functools.partial(jax.tree.map, jnp.subtract)
_times_each = functools.partial(jax.tree.map, jnp.multiply)


@pytree
class _Search:
    """Newton's method at some velocities and impulses, and the best ones so far.

    Attributes:
        velocity: (nv,).
        impulses: of the constraints.
        slips: J v + b.
        forces: M (v - u) - J^T p, (nv,).
        best: velocities, impulses and largest error of the laws in m/s or rad/s.
        goes_on: whether the best error is above rounding, ().
    """

    velocity: jax.Array
    impulses: Impulses
    slips: Impulses
    forces: jax.Array
    best: tuple[jax.Array, Impulses, jax.Array]
    goes_on: jax.Array


@pytree
class _Problem:
    """Constraints of a step.

    Attributes:
        matrix: M, (nv, nv).
        mobility: its inverse.
        free: velocities u without constraints, (nv,).
        rows: of the constraints.
        stiffness: of each row.
        speed: largest of the free ones in m/s or rad/s.
        root: roots of the diagonal of M, (nv,).
        motion: largest product of a root and a free speed, the root of twice a kinetic energy.
    """

    matrix: jax.Array
    mobility: jax.Array
    free: jax.Array
    rows: Rows
    stiffness: Impulses
    speed: jax.Array
    root: jax.Array
    motion: jax.Array


def solve_contacts(
    matrix: jax.Array, mobility: jax.Array, free: jax.Array, rows: Rows, stiffness: Impulses, start: Impulses
) -> tuple[jax.Array, Impulses, jax.Array]:
    """Return velocities (nv,), impulses, and the largest error of the laws without compliance, in m/s or rad/s.

    On a CPU Newton's method starts from the impulses of the last step, and ends when all members are solved; those that
    are not within `FIRST_STEPS` start again, from iterations of the method of multipliers, as all do elsewhere.

    Args:
        matrix: M, (nv, nv), symmetric and positive definite.
        mobility: its inverse, whose derivative is not taken.
        free: velocities u without constraints, (nv,).
        rows: of the constraints.
        stiffness: of the rows, as of `row_stiffness`.
        start: impulses to start from, such as those of the last step.
    """
    given = jax.lax.stop_gradient((matrix, mobility, free, rows))
    speed = largest(jnp.abs(given[2]))
    root = computed_once_on_cpu(jnp.sqrt(jnp.stack([given[0][n, n] for n in range(len(matrix))])))
    problem = _Problem(
        matrix=given[0],
        mobility=given[1],
        free=given[2],
        rows=given[3],
        stiffness=stiffness,
        speed=speed,
        root=root,
        motion=largest(root * jnp.abs(given[2])),
    )
    start = jax.lax.stop_gradient(start)
    velocity, impulses = by_device(problem, start, cpu=_solved_on_cpu, accelerator=_solved_elsewhere)
    misfit = _largest(problem, _errors(given[3], stiffness, _slips(given[3], velocity), impulses, 1))
    velocity, impulses = _as_solution(matrix, free, rows, jax.lax.stop_gradient((velocity, impulses, stiffness)))
    return velocity, impulses, misfit


def _solved_on_cpu(problem: _Problem, start: Impulses) -> tuple[jax.Array, Impulses]:
    def restarted(now: _Search) -> _Search:
        again = _begun(problem, _iterated(problem, start))
        return jax.tree.map(lambda a, b: jnp.where(now.goes_on, a, b), again, now)

    def attempt(now: tuple[jax.Array, _Search]) -> tuple[jax.Array, _Search]:
        count, search = now
        search = jax.lax.cond(count > 0, restarted, lambda search: search, search)
        search = jax.lax.while_loop(
            lambda now: (now[0] < jnp.where(count > 0, STEPS, FIRST_STEPS)) & jnp.any(now[1].goes_on),
            lambda now: (now[0] + 1, _newton_step(problem, now[1])),
            (jnp.int32(0), search),
        )[1]
        return count + 1, search

    begun = _begun(problem, start)
    search = jax.lax.while_loop(lambda now: (now[0] < 2) & jnp.any(now[1].goes_on), attempt, (jnp.int32(0), begun))[1]
    return search.best[:2]


def _solved_elsewhere(problem: _Problem, start: Impulses) -> tuple[jax.Array, Impulses]:
    search = _begun(problem, _iterated(problem, start))
    return jax.lax.fori_loop(0, STEPS, lambda _, now: _newton_step(problem, now), search).best[:2]


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


def _iterated(problem: _Problem, start: Impulses) -> Impulses:
    """Return impulses after iterations of the method of multipliers, without compliance."""
    matrix, free, rows, stiffness = problem.matrix, problem.free, problem.rows, problem.stiffness
    hardness = _gram(rows, rows.contact * stiffness.contact[:, :, None], stiffness.scalar)
    hardened = computed_once_on_cpu(inverse(matrix + hardness))
    momentum = applied(matrix, free)
    offsets = _slips(rows, jnp.zeros_like(free))

    def split(p: Impulses, slips: Impulses) -> tuple[Impulses, Impulses]:
        """Return impulses and slips that obey the laws."""
        wanted = _minus(p, _times_each(stiffness, slips))
        allowed = _allowed(rows, wanted)
        return allowed, jax.tree.map(lambda k, a: a / k, stiffness, _minus(allowed, wanted))

    def iterate(_: int, now: tuple[Impulses, Impulses]) -> tuple[Impulses, Impulses]:
        p, z = now
        pull = pulled(rows, _plus(p, _times_each(stiffness, _minus(z, offsets))))
        slips = computed_once_on_cpu(_slips(rows, applied(hardened, computed_once_on_cpu(momentum + pull))))
        return split(p, jax.tree.map(lambda a, b: RELAXATION * a + (1 - RELAXATION) * b, slips, z))

    first = _slips(rows, free + applied(problem.mobility, pulled(rows, start)))
    return jax.lax.fori_loop(0, ITERATIONS, iterate, split(start, first))[0]


def _wanted(rows: Rows, stiffness: Impulses, slips: Impulses, p: Impulses, share: float | None = None) -> Impulses:
    """Return ``p - k y``, whose projection are the impulses of the laws, with slips J v + b."""
    share = 1 - 1 / STIFFNESS[str(rows.normal.dtype)] if share is None else share
    return jax.tree.map(lambda a, k, y: share * a - k * y, p, stiffness, slips)


def _errors(rows: Rows, stiffness: Impulses, slips: Impulses, p: Impulses, share: float | None = None) -> Impulses:
    """Return ``p - P(p - k y)``; with a share of 1 without compliance."""
    return _minus(p, _allowed(rows, _wanted(rows, stiffness, slips, p, share)))


def _largest(problem: _Problem, errors: Impulses) -> jax.Array:
    """Return the largest of errors of impulses, or of impulses, as a speed."""
    speeds = jax.tree.map(lambda k, a: jnp.abs(a / k), problem.stiffness, errors)
    return largest(computed_once_on_cpu(jnp.concatenate([_flat(speeds.contact), speeds.scalar])))


def _searched(
    problem: _Problem, velocity: jax.Array, impulses: Impulses, slips: Impulses, forces: jax.Array
) -> _Search:
    """Return the search at velocities and impulses; it goes on above rounding, and where impulses are too large."""
    rows, stiffness = problem.rows, problem.stiffness
    errors = computed_once_on_cpu(_errors(rows, stiffness, slips, impulses))
    error, size = _largest(problem, errors), _largest(problem, impulses)
    # Roots of kinetic energies: the only common measure of translations and rotations, of heavy and light bodies.
    left = largest(jnp.abs(forces) / problem.root)
    roots = jax.tree.map(lambda k, a: jnp.abs(a) / jnp.sqrt(k), stiffness, impulses)
    most = largest(computed_once_on_cpu(jnp.concatenate([_flat(roots.contact), roots.scalar])))
    most = jnp.maximum(most, problem.motion)
    scale = jnp.maximum(problem.speed, size)
    error = jnp.maximum(error, scale * jnp.where(most > 0, left / jnp.where(most > 0, most, 1), 0))
    goes_on = (error > ROUNDING * jnp.finfo(error.dtype).eps * scale) | (size > LARGE * problem.speed)
    best = (velocity, impulses, error)
    return _Search(velocity=velocity, impulses=impulses, slips=slips, forces=forces, best=best, goes_on=goes_on)


def _begun(problem: _Problem, start: Impulses) -> _Search:
    """Return the search at impulses and the velocities that they give."""
    rows = problem.rows
    pushed = refined(problem.mobility, problem.matrix, computed_once_on_cpu(pulled(rows, start)))
    velocity = computed_once_on_cpu(problem.free + pushed)
    slips = computed_once_on_cpu(_slips(rows, velocity))
    # The velocities are those of the impulses, to rounding.
    return _searched(problem, velocity, start, slips, jnp.zeros_like(velocity))


def _newton_step(problem: _Problem, now: _Search) -> _Search:
    """Return the search after a step of those that go on."""
    rows, stiffness, matrix = problem.rows, problem.stiffness, problem.matrix
    velocity, p, slips = now.velocity, now.impulses, now.slips
    linear = _linearized(rows, stiffness, slips, p)
    errors, hardness = _errors(rows, stiffness, slips, p), linear.hardness(rows, stiffness)
    linear, errors, hard = computed_once_on_cpu((linear, errors, matrix + hardness))
    push = computed_once_on_cpu(-(now.forces + pulled(rows, computed_once_on_cpu(linear.reduced(errors)))))
    change = computed_once_on_cpu(solve(hard, push, is_symmetric=False))
    moved = computed_once_on_cpu(rates(rows, change))
    shift = computed_once_on_cpu(linear.answer(errors, _times_each(stiffness, moved)))

    def action(length: jax.Array) -> jax.Array:
        at = jax.tree.map(lambda a, b: a + length * b, (slips, p), (moved, shift))
        squares = jax.tree.map(lambda k, a: a * a / k, stiffness, _errors(rows, stiffness, *at))
        return total(computed_once_on_cpu(jnp.concatenate([_flat(squares.contact), squares.scalar])))

    lengths = jnp.asarray(LENGTHS, velocity.dtype)
    tried = jnp.stack([action(length) for length in lengths])
    length = computed_once_on_cpu(lengths[jnp.argmin(tried, axis=0)])
    velocity, p, slips = computed_once_on_cpu(
        jax.tree.map(lambda a, b: a + length * b, (velocity, p, slips), (change, shift, moved))
    )
    forces = computed_once_on_cpu(applied(matrix, velocity - problem.free) - computed_once_on_cpu(pulled(rows, p)))
    after = _searched(problem, velocity, p, slips, forces)
    better = after.best[2] < now.best[2]
    best = jax.tree.map(lambda a, b: jnp.where(better, a, b), after.best, now.best)
    after = dataclasses.replace(after, best=best)
    return jax.tree.map(lambda a, b: jnp.where(now.goes_on, a, b), after, now)


@pytree
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
    hard: float = dataclasses.field(metadata={"static": True})

    def _contact(self, along: Any, onward: Any, across: Any, values: jax.Array, stuck: Any, opened: Any) -> jax.Array:
        """Return contact vectors (C, 3, ...) multiplied by a matrix of each state."""
        n, t = self.normal, self.way
        a, b = _dot(n, values), _dot(t, values)
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
        along, onward = _dot(normal, jacobian)[:, None], _dot(way, jacobian)[:, None]
        rest = jacobian - along * normal - onward * way
        edge = self.hard * (normal + self.friction[:, None, None] * way)
        still = jnp.where(self.sticks[:, None, None], self.hard * jacobian, 0)
        contact = jnp.where(slides, edge * along + turning[:, None, None] * rest, still)
        weight = jnp.where(self.inner, self.hard * stiffness.scalar, 0)
        return _gram(rows, stiffness.contact[:, :, None] * contact, weight)


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
    forces = applied(matrix, velocity - free) - pulled(rows, p)

    def solved(forces: jax.Array, errors: Impulses) -> tuple[jax.Array, Impulses]:
        change = -applied(back, forces + pulled(fixed, linear.reduced(errors)))
        return change, linear.answer(errors, _times_each(stiffness, rates(fixed, change)))

    change, shift = solved(forces, errors)
    left = forces + applied(about, change) - pulled(fixed, shift)
    moved = rates(fixed, change)
    inside = jax.tree.map(lambda a, k, y: (1 - 1 / linear.hard) * a - k * y, shift, stiffness, moved)
    missed = _plus(errors, _minus(shift, linear.bent(inside)))
    return _plus((change, shift), solved(left, missed))


def displacement(matrix: jax.Array, rows: Rows, stiffness: Impulses, wanted: Impulses) -> jax.Array:
    """Return the smallest displacement, in kinetic energy, that moves rows as wanted: velocities stay, (nv,).

    Args:
        matrix: M, (nv, nv).
        rows: of the constraints.
        stiffness: of the rows, as of `row_stiffness`.
        wanted: along the normals in m, (C,), and of the scalar rows, (S,); what is zero is not held.
    """
    held = jax.lax.stop_gradient(jax.tree.map(lambda a: jnp.asarray(a != 0, a.dtype), wanted))
    hard = STIFFNESS[str(matrix.dtype)]
    is_held = Impulses(contact=held.contact[:, None], scalar=held.scalar)
    weight = jax.tree.map(lambda k, is_held: hard * k * is_held, stiffness, is_held)
    normal = rows.normal[:, :, None]
    along = _dot(normal, rows.contact)[:, None] * normal
    pull = (weight.contact[:, 0] * wanted.contact)[:, None] * rows.normal
    push = pulled(rows, Impulses(contact=pull, scalar=weight.scalar * wanted.scalar))
    held_matrix = computed_once_on_cpu(matrix + _gram(rows, weight.contact[:, :, None] * along, weight.scalar))
    return solve_by(inverse(held_matrix), held_matrix, push)
