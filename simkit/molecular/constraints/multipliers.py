"""Lagrange multipliers of rigid bonds: Newton's method, SETTLE for rigid water, derivatives by the implicit theorem.

A cluster has m rigid bonds; C clusters alike are solved together. Bond vectors are one array (m, C) for each component.
With the old bond vectors s, those r' of an unconstrained move, and the coupling ``G_kl = sum_a B_ka B_la / m_a`` (B_ka
is 1 for the second atom of bond k and -1 for the first), the new bond vectors are

    r_k = r'_k + sum_l G_kl s_l lambda_l,    |r_k|^2 = d_k^2
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.tracing import kernel
from simkit.molecular.spaces import Components

type Find = Callable[[Components, Components, jax.Array, jax.Array], jax.Array]
# Bonds of a cluster up to which the elimination is written out; more are a loop, which compiles faster.
WRITTEN_OUT = 8


@kernel
def shifted(bonds: Components, along: Components, coupling: jax.Array, multipliers: jax.Array) -> Components:
    """Return ``r_k + sum_l G_kl s_l lambda_l``, one array (m, C) for each component.

    Args:
        bonds: r, a component (m, C).
        along: s, likewise.
        coupling: G, (m, m, C).
        multipliers: lambda, (m, C).
    """
    return tuple(r + jnp.sum(coupling * (s * multipliers)[None], axis=1) for r, s in zip(bonds, along, strict=True))


def product(first: Components, second: Components) -> jax.Array:
    """Return the scalar products of vectors given by their components."""
    return sum((a * b for a, b in zip(first[1:], second[1:], strict=True)), first[0] * second[0])


def newton(
    moved: Components, old: Components, coupling: jax.Array, squared: jax.Array, *, iterations: int
) -> jax.Array:
    """Return the multipliers, (m, C), by a fixed number of iterations of Newton's method from zero.

    Args:
        moved: r', a component (m, C).
        old: s, likewise.
        coupling: G, (m, m, C).
        squared: d^2, (m, C).
        iterations: each squares the relative error of the lengths, about.
    """

    def improved(_: int, multipliers: jax.Array) -> jax.Array:
        bonds = shifted(moved, old, coupling, multipliers)
        excess = product(bonds, bonds) - squared
        return multipliers - eliminated(_jacobian(bonds, old, coupling), excess)

    first = jnp.zeros_like(moved[0])
    if len(squared) > WRITTEN_OUT:
        return jax.lax.fori_loop(0, iterations, improved, first)
    return functools.reduce(lambda found, n: improved(n, found), range(iterations), first)


def settle(moved: Components, old: Components, coupling: jax.Array, squared: jax.Array) -> jax.Array:
    """Return the multipliers, (3, C), of rigid isosceles triangles of atoms, in closed form.

    The bonds are those from the apex to both others, and that between these; d, moved and coupling are as for `newton`.
    The new triangle is the ideal one in the plane of the old triangle, turned about three axes in turn: the components
    of the unconstrained atoms along the normal of that plane fix two angles, since no force acts along it, and the
    angular momentum about the normal fixes the third. NaN if the legs or the masses of both ends differ, and if a
    triangle turns so far that there is no solution.

    Args:
        moved: r', three components (3, C).
        old: s, likewise.
        coupling: G, (3, 3, C).
        squared: d^2, (3, C): the leg twice, and the base.

    Reference: Miyamoto, Kollman, J. Comput. Chem. 13, 952 (1992), doi:10.1002/jcc.540130805.
    """
    apex = coupling[0, 1]
    first, second = coupling[0, 0] - apex, coupling[1, 1] - apex
    rounding = 8 * jnp.finfo(apex.dtype).eps
    is_isosceles = (squared[0] == squared[1]) & (jnp.abs(first - second) <= rounding * coupling[0, 0])
    share = apex / (2 * apex + first)  # of one end in the total mass
    half = jnp.sqrt(squared[2]) / 2
    height = jnp.sqrt(squared[0] - half**2)
    above, below = 2 * share * height, (1 - 2 * share) * height

    old_first, old_second = ([s[k] for s in old] for k in (0, 1))
    to_first, to_second = ([r[k] for r in moved] for k in (0, 1))
    # Positions relative to the center of mass, and axes: the normal of the old plane, and the apex within that plane.
    at_apex = [-share * (b + c) for b, c in zip(to_first, to_second, strict=True)]
    normal = _unit(_cross(old_first, old_second))
    across = _unit(_cross(at_apex, normal))
    upward = _cross(normal, across)

    def plane(vector: list[jax.Array]) -> tuple[jax.Array, jax.Array]:
        return product(tuple(vector), tuple(across)), product(tuple(vector), tuple(upward))

    def out(vector: list[jax.Array]) -> jax.Array:
        return product(tuple(vector), tuple(normal))

    at_first = [a + b for a, b in zip(at_apex, to_first, strict=True)]
    at_second = [a + c for a, c in zip(at_apex, to_second, strict=True)]
    # Angles phi about the axis across and psi about the axis upward.
    sin_phi = out(at_apex) / above
    cos_phi = jnp.sqrt(1 - sin_phi**2)
    sin_psi = (out(at_first) - out(at_second)) / (2 * half * cos_phi)
    x = -half * jnp.sqrt(1 - sin_psi**2)
    y_apex = above * cos_phi
    y_first = -below * cos_phi - half * sin_psi * sin_phi
    y_second = -below * cos_phi + half * sin_psi * sin_phi

    # Angle theta about the normal: alpha sin(theta) + beta cos(theta) = gamma.
    (bx, by), (cx, cy) = plane(old_first), plane(old_second)
    (ux, uy), (wx, wy) = plane(at_first), plane(at_second)
    alpha = x * (bx - cx) + by * y_first + cy * y_second
    beta = x * (cy - by) + bx * y_first + cx * y_second
    gamma = bx * uy - by * ux + cx * wy - cy * wx
    size = alpha**2 + beta**2
    root = jnp.sqrt(size - gamma**2)
    sine, cosine = (alpha * gamma - beta * root) / size, (beta * gamma + alpha * root) / size

    def change(place: tuple[jax.Array, jax.Array], before: tuple[jax.Array, jax.Array]) -> list[jax.Array]:
        """Return how far the constraint moves a bond vector; both within the old plane."""
        along_x = place[0] * cosine - (place[1] - y_apex) * sine - before[0]
        along_y = place[0] * sine + (place[1] - y_apex) * cosine - before[1]
        return [along_x * a + along_y * u for a, u in zip(across, upward, strict=True)]

    changes = change((x, y_first), plane(to_first)), change((-x, y_second), plane(to_second))
    third = [c - b for b, c in zip(*changes, strict=True)]
    moves = tuple(jnp.stack(each) for each in zip(*changes, third, strict=True))
    # Multipliers of these changes, each a sum of old bond vectors.
    found = eliminated(gram(old, coupling), product(old, moves))
    return jnp.where(is_isosceles, found, jnp.nan)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def multipliers(find: Find, moved: Components, old: Components, coupling: jax.Array, squared: jax.Array) -> jax.Array:
    """Return the multipliers, (m, C), with derivatives of any order by the implicit function theorem.

    Args:
        find: `settle`, or `newton` with its iterations.
        moved: r', a component (m, C).
        old: s, likewise.
        coupling: G, (m, m, C).
        squared: d^2, (m, C).
    """
    return find(moved, old, coupling, squared)


@multipliers.defjvp
def _(find: Find, primals: tuple, tangents: tuple) -> tuple[jax.Array, jax.Array]:
    moved, old, coupling, _ = primals
    found = multipliers(find, *primals)

    def excess(moved: Components, old: Components, coupling: jax.Array, squared: jax.Array) -> jax.Array:
        bonds = shifted(moved, old, coupling, found)
        return product(bonds, bonds) - squared

    change = jax.jvp(excess, primals, tangents)[1]
    matrix = _jacobian(shifted(moved, old, coupling, found), old, coupling)
    return found, -solved(matrix, change)


def gram(bonds: Components, coupling: jax.Array) -> jax.Array:
    """Return ``G_kl r_k . r_l``, (m, m, C).

    Args:
        bonds: r, a component (m, C).
        coupling: G, (m, m, C).
    """
    return coupling * product(tuple(r[:, None] for r in bonds), tuple(r[None] for r in bonds))


def _jacobian(bonds: Components, old: Components, coupling: jax.Array) -> jax.Array:
    """Return the derivative of ``|r_k|^2`` by the multiplier l, (m, m, C)."""
    return 2 * coupling * product(tuple(r[:, None] for r in bonds), tuple(s[None] for s in old))


def solved(matrix: jax.Array, right: jax.Array) -> jax.Array:
    """Solve ``A x = b`` for each cluster, differentiable by one further solution.

    Args:
        matrix: A, (m, m, C).
        right: b, (m, C).
    """
    return jax.lax.custom_linear_solve(
        lambda x: jnp.sum(matrix * x[None], axis=1),
        right,
        lambda _, b: eliminated(matrix, b),
        lambda _, b: eliminated(jnp.swapaxes(matrix, 0, 1), b),
    )


def eliminated(matrix: jax.Array, right: jax.Array) -> jax.Array:
    """Return x of ``A x = b`` for each cluster by Gauss-Jordan elimination, without pivots: A is nearly definite.

    Args:
        matrix: A, (m, m, C).
        right: b, (m, C).
    """
    rows = jnp.arange(len(right))[:, None, None]

    def cleared(k: int | jax.Array, system: jax.Array) -> jax.Array:
        row = system[k] / system[k, k]
        return jnp.where(rows == k, row[None], system - system[:, k][:, None] * row[None])

    system = jnp.concatenate([matrix, right[:, None]], axis=1)
    if len(right) > WRITTEN_OUT:
        return jax.lax.fori_loop(0, len(right), cleared, system)[:, -1]
    return functools.reduce(lambda found, k: cleared(k, found), range(len(right)), system)[:, -1]


def _cross(a: list[jax.Array], b: list[jax.Array]) -> list[jax.Array]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _unit(vector: list[jax.Array]) -> list[jax.Array]:
    inverse = 1 / jnp.sqrt(product(tuple(vector), tuple(vector)))
    return [inverse * x for x in vector]
