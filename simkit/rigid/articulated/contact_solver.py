"""Impulses of contacts, limits, friction and closed loops on a mechanism in joint coordinates.

The velocities v after a step, from the velocities u that the mechanism would have without constraints, obey

``M (v - u) = J^T p,   y = J v + b + p / (s k),   y_n >= 0,   p_n >= 0,   y_n p_n = 0,   |p_t| <= mu p_n``

with a row of J for each constraint, and ``p_t`` against ``y_t`` and of length ``mu p_n`` where ``y_t`` is not zero
(Signorini's and Coulomb's laws); torsional and rolling friction are torques with bounds of their own. A scalar row has
an interval of impulses in place of the cone: ``p >= 0`` of a limit, ``|p| <= f dt`` of friction in a joint, all numbers
of an equality.

``p / (s k)`` is a compliance: k is the effective mass of a row, and s the number ``STIFFNESS``. It makes the impulses
of more contacts than a body needs, such as the four corners of a box, unique, and with them the friction and the
derivative of a box that spins; what rests creeps by ``g dt / s``, 2e-10 m/s at time steps of 2 ms in float64.

In every contact, and every scalar row, the laws are one equation with the projection P of `contact_laws`,
``p = P(p - k y)``. Steps of Newton's method on it, smooth but
for the edges between open, stuck and sliding contacts, converge to rounding: from the impulses of the last step
mostly within one or two, else from impulses that a few iterations of the alternating direction method of multipliers
find, as in J. Carpentier, Q. Le Lidec and L. Montaut, arXiv:2405.17020. The derivative is that of the solution by the
implicit function theorem.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.formulation import by_device, computed_once_on_cpu
from simkit.core.pytrees import pytree
from simkit.rigid.articulated.contact_laws import (
    STIFFNESS,
    Impulses,
    Rows,
    allowed,
    dots,
    errors_of,
    flat,
    gram_of,
    joined,
    linearized,
    minus,
    plus,
    pulled,
    rates,
    slips_of,
    times_each,
)
from simkit.rigid.articulated.linear import (
    UNROLLED,
    applied,
    applied_transposed,
    inverse,
    largest,
    refined,
    solve,
    solve_by,
    total,
)

# Over-relaxation of the iterations; between 1.5 and 1.8 is customary.
RELAXATION = 1.6
# Lengths of a Newton step that are tried; the one with the least error is taken, even if that grows.
LENGTHS = (1.0, 0.6, 0.3, 0.1, 0.03)
# Iterations of the method of multipliers, and most steps of Newton's method before and after them.
ITERATIONS, FIRST_STEPS, STEPS = 10, 4, 8
# Error at which Newton's method ends, in spacings of numbers of the size of the largest speed or impulse, or momentum.
ROUNDING = 16
# Impulses per effective mass, in units of the free speed, above which a solution may be that of a contact that wedges,
# held by its compliance alone; it is then sought from the method of multipliers, which finds others first.
LARGE = 30


def row_stiffness(rows: Rows, mobility: jax.Array) -> Impulses:
    """Return the inverse of the mean mobility of each row in kg or kg m^2, (C, 1), (T, 1) and (S,).

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

    contact, twist = (
        jnp.mean(mobilities(flat(jacobian)).reshape(-1, 3, *mobility.shape[2:]), axis=1)
        for jacobian in (rows.contact, rows.twist)
    )
    own = jnp.stack([mobility[n, n] for n in range(len(mobility))])
    scalar = jnp.concatenate([jnp.abs(rows.of_joints(own)), mobilities(rows.scalar)])
    # A contact that nothing can move, as of two bodies of one slide, has no mobility.
    tiny = jnp.finfo(mobility.dtype).tiny ** 0.5
    return Impulses(
        contact=1 / jnp.maximum(contact, tiny)[:, None],
        twist=1 / jnp.maximum(twist, tiny)[:, None],
        scalar=1 / jnp.maximum(scalar, tiny),
    )


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
    misfit = _largest(problem, errors_of(given[3], stiffness, slips_of(given[3], velocity), impulses, 1))
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
    contact, twist = rows.contact * stiffness.contact[:, :, None], rows.twist * stiffness.twist[:, :, None]
    hardness = gram_of(rows, Impulses(contact=contact, twist=twist, scalar=stiffness.scalar))
    hardened = computed_once_on_cpu(inverse(matrix + hardness))
    momentum = applied(matrix, free)
    offsets = slips_of(rows, jnp.zeros_like(free))

    def split(p: Impulses, slips: Impulses) -> tuple[Impulses, Impulses]:
        """Return impulses and slips that obey the laws."""
        wanted = minus(p, times_each(stiffness, slips))
        projected = allowed(rows, wanted)
        return projected, jax.tree.map(lambda k, a: a / k, stiffness, minus(projected, wanted))

    def iterate(_: int, now: tuple[Impulses, Impulses]) -> tuple[Impulses, Impulses]:
        p, z = now
        pull = pulled(rows, plus(p, times_each(stiffness, minus(z, offsets))))
        slips = computed_once_on_cpu(slips_of(rows, applied(hardened, computed_once_on_cpu(momentum + pull))))
        return split(p, jax.tree.map(lambda a, b: RELAXATION * a + (1 - RELAXATION) * b, slips, z))

    first = slips_of(rows, free + applied(problem.mobility, pulled(rows, start)))
    return jax.lax.fori_loop(0, ITERATIONS, iterate, split(start, first))[0]


def _largest(problem: _Problem, errors: Impulses) -> jax.Array:
    """Return the largest of errors of impulses, or of impulses, as a speed."""
    speeds = jax.tree.map(lambda k, a: jnp.abs(a / k), problem.stiffness, errors)
    return largest(computed_once_on_cpu(joined(speeds)))


def _searched(
    problem: _Problem, velocity: jax.Array, impulses: Impulses, slips: Impulses, forces: jax.Array
) -> _Search:
    """Return the search at velocities and impulses; it goes on above rounding, and where impulses are too large."""
    rows, stiffness = problem.rows, problem.stiffness
    errors = computed_once_on_cpu(errors_of(rows, stiffness, slips, impulses))
    error, size = _largest(problem, errors), _largest(problem, impulses)
    # Roots of kinetic energies: the only common measure of translations and rotations, of heavy and light bodies.
    left = largest(jnp.abs(forces) / problem.root)
    roots = jax.tree.map(lambda k, a: jnp.abs(a) / jnp.sqrt(k), stiffness, impulses)
    most = largest(computed_once_on_cpu(joined(roots)))
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
    slips = computed_once_on_cpu(slips_of(rows, velocity))
    # The velocities are those of the impulses, to rounding.
    return _searched(problem, velocity, start, slips, jnp.zeros_like(velocity))


def _newton_step(problem: _Problem, now: _Search) -> _Search:
    """Return the search after a step of those that go on."""
    rows, stiffness, matrix = problem.rows, problem.stiffness, problem.matrix
    velocity, p, slips = now.velocity, now.impulses, now.slips
    linear = linearized(rows, stiffness, slips, p)
    errors, hardness = errors_of(rows, stiffness, slips, p), linear.hardness(rows, stiffness)
    linear, errors, hard = computed_once_on_cpu((linear, errors, matrix + hardness))
    push = computed_once_on_cpu(-(now.forces + pulled(rows, computed_once_on_cpu(linear.reduced(errors)))))
    change = computed_once_on_cpu(solve(hard, push, is_symmetric=False))
    moved = computed_once_on_cpu(rates(rows, change))
    shift = computed_once_on_cpu(linear.answer(errors, times_each(stiffness, moved)))

    def action(length: jax.Array) -> jax.Array:
        at = jax.tree.map(lambda a, b: a + length * b, (slips, p), (moved, shift))
        squares = jax.tree.map(lambda k, a: a * a / k, stiffness, errors_of(rows, stiffness, *at))
        return total(computed_once_on_cpu(joined(squares)))

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


def _correction(
    matrix: jax.Array, free: jax.Array, rows: Rows, velocity: jax.Array, p: Impulses, stiffness: Impulses
) -> tuple[jax.Array, Impulses]:
    """Return the changes of velocities and impulses by a Newton step, linear in the errors of the given problem.

    The second round removes the error by rounding of the first, the stiffness times the spacing of numbers.
    """
    fixed, about = jax.lax.stop_gradient((rows, matrix))
    linear = linearized(fixed, stiffness, slips_of(fixed, velocity), p)
    back = computed_once_on_cpu(inverse(about + linear.hardness(fixed, stiffness)))
    errors = errors_of(rows, stiffness, slips_of(rows, velocity), p)
    forces = applied(matrix, velocity - free) - pulled(rows, p)

    def solved(forces: jax.Array, errors: Impulses) -> tuple[jax.Array, Impulses]:
        change = -applied(back, forces + pulled(fixed, linear.reduced(errors)))
        return change, linear.answer(errors, times_each(stiffness, rates(fixed, change)))

    change, shift = solved(forces, errors)
    left = forces + applied(about, change) - pulled(fixed, shift)
    moved = rates(fixed, change)
    inside = jax.tree.map(lambda a, k, y: (1 - 1 / linear.hard) * a - k * y, shift, stiffness, moved)
    missed = plus(errors, minus(shift, linear.bent(inside)))
    return plus((change, shift), solved(left, missed))


def displacement(matrix: jax.Array, rows: Rows, stiffness: Impulses, wanted: Impulses) -> jax.Array:
    """Return the smallest displacement, in kinetic energy, that moves rows as wanted: velocities stay, (nv,).

    Args:
        matrix: M, (nv, nv).
        rows: of the constraints.
        stiffness: of the rows, as of `row_stiffness`.
        wanted: along the normals in m, (C,), and of the scalar rows, (S,); what is zero is not held, nor are twists.
    """
    held = jax.lax.stop_gradient(jax.tree.map(lambda a: jnp.asarray(a != 0, a.dtype), wanted))
    hard = STIFFNESS[str(matrix.dtype)]
    is_held = dataclasses.replace(held, contact=held.contact[:, None])
    weight = jax.tree.map(lambda k, is_held: hard * k * is_held, stiffness, is_held)
    normal = rows.normal[:, :, None]
    along = dots(normal, rows.contact)[:, None] * normal
    pull = (weight.contact[:, 0] * wanted.contact)[:, None] * rows.normal
    push = pulled(rows, Impulses(contact=pull, twist=0 * wanted.twist, scalar=weight.scalar * wanted.scalar))
    weighted = Impulses(contact=weight.contact[:, :, None] * along, twist=0 * rows.twist, scalar=weight.scalar)
    held_matrix = computed_once_on_cpu(matrix + gram_of(rows, weighted))
    return solve_by(inverse(held_matrix), held_matrix, push)
