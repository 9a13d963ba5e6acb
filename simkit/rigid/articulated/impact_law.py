"""Impacts and standing points of a mechanism: which contacts act, and their impulses, through the mass matrix.

With the mobility ``A = J M^-1 J^T`` of all constraints and their speeds w without impulses, an impact obeys

``y = A p + w,   y_n >= 0,   p_n >= 0,   y_n p_n = 0,``

where w includes the restitution, ``u_n + e u_n`` of a point that arrives at the speed u_n (Newton's law), and a point
with a normal impulse does not slip, ``y_t = 0``. The same equations with accelerations and forces say which of the
points that touch remain standing.
"""

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once_on_cpu, precise_product
from simkit.core.pytrees import pytree
from simkit.rigid.articulated.linear import inverse

# Times a contact joins or leaves those that act; each time is one solution, and most impacts need one or two.
PIVOTS = 12
# Regularization of redundant constraints, relative, as a power of the precision; refinements remove it.
REGULAR, REFINEMENTS = 0.75, 3


@pytree
class Rows:
    """Constraints at given coordinates: n contacts and limits, each a normal and two tangents, and m equalities.

    Attributes:
        jacobian: of the normals (n), the first tangents (n), the second ones (n), and the equalities, (3n + m, nv).
        response: M^-1 J^T, transposed, (3n + m, nv).
        mobility: J M^-1 J^T, (3n + m, 3n + m).
        rough: whether each contact has friction, bool (n,).
    """

    jacobian: jax.Array
    response: jax.Array
    mobility: jax.Array
    rough: jax.Array

    def acting(self, active: jax.Array) -> jax.Array:
        """Return which rows act if those contacts do, bool (3n + m,)."""
        along = active & self.rough
        always = jnp.ones(len(self.jacobian) - 3 * len(active), bool)
        return jnp.concatenate([active, along, along, always])

    def times(self, velocity: jax.Array) -> jax.Array:
        """Return J v, (3n + m,)."""
        return jnp.sum(self.jacobian * velocity[None], axis=1)

    def pushed(self, impulses: jax.Array) -> jax.Array:
        """Return M^-1 J^T p, (nv,)."""
        return jnp.sum(self.response * impulses[:, None], axis=0)


def inverted(matrix: jax.Array) -> jax.Array:
    """Return the inverse of a positive definite matrix (n, n), with its derivatives up to the third order.

    Two steps of Newton's method from the inverse without derivatives, cheaper than those of an elimination.
    """
    near = inverse(jax.lax.stop_gradient(matrix))
    for _ in range(2):
        near = 2 * near - precise_product(near, precise_product(matrix, near))
    return near


def rows_of(mobility: jax.Array, jacobian: jax.Array, rough: jax.Array) -> Rows:
    """Return the rows of constraints with their mobility.

    Args:
        mobility: M^-1, (nv, nv).
        jacobian: (3n + m, nv).
        rough: whether each contact has friction, bool (n,).
    """
    response = precise_product(jacobian, mobility)
    return Rows(jacobian=jacobian, response=response, mobility=precise_product(response, jacobian.T), rough=rough)


def held(mobility: jax.Array, acting: jax.Array, speeds: jax.Array) -> jax.Array:
    """Return the impulses p of the acting rows with ``A p + w = 0`` there, and zero elsewhere.

    Of redundant rows the impulses are the least ones, weighted by the mobility of each. Derivatives are right up to the
    second order.

    Args:
        mobility: A, (r, r).
        acting: bool (r,).
        speeds: w, (r, k), k of them.
    """
    if not len(speeds):
        return speeds
    own = jax.lax.stop_gradient(jnp.diagonal(mobility))
    epsilon = jnp.finfo(own.dtype).eps
    # A row that moves nothing, such as across the plane of a planar mechanism, has no impulse.
    acts = acting & (own > epsilon * jnp.max(own))
    both = jnp.where(acts[:, None] & acts[None], mobility, 0)
    regular = jax.lax.stop_gradient(both) + jnp.diag(jnp.where(acts, epsilon**REGULAR * own, 1))
    back = computed_once_on_cpu(inverse(regular))
    impulses = jnp.zeros_like(speeds)
    for _ in range(REFINEMENTS):
        left = jnp.where(acts[:, None], -speeds - precise_product(both, impulses), 0)
        impulses = impulses + precise_product(back, left)
    return impulses


def complementary(rows: Rows, speeds: jax.Array, closed: jax.Array, first: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return which of the closed contacts act, bool (n,), and whether the law holds, bool.

    Starting from those named first, the contact of lowest index that violates the law joins or leaves: one that acts
    and pulls leaves; one that does not act and enters, or slips along without leaving, joins.

    Args:
        rows: of the constraints.
        speeds: w, (3n + m,).
        closed: contacts that may act, bool (n,).
        first: those that act at first, bool (n,).
    """
    rows, speeds = jax.lax.stop_gradient((rows, speeds))
    n = len(closed)
    if not n:
        return closed, jnp.bool_(True)
    tolerance = jnp.finfo(speeds.dtype).eps ** 0.75 * jnp.max(jnp.abs(speeds))
    own = jnp.diagonal(rows.mobility)[:n]

    def violates(active: jax.Array) -> jax.Array:
        impulses = held(rows.mobility, rows.acting(active), speeds[:, None])[:, 0]
        result = jnp.sum(rows.mobility * impulses[None], axis=1) + speeds
        normal, along = result[:n], jnp.where(rows.rough, jnp.hypot(result[n : 2 * n], result[2 * n : 3 * n]), 0)
        joins = closed & ~active & ((normal < -tolerance) | ((normal <= tolerance) & (along > tolerance)))
        return joins | (active & (impulses[:n] * own < -tolerance))

    def pivot(_: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        active, _ = now
        wrong = violates(active)
        return active ^ (wrong & (jnp.arange(n) == jnp.argmax(wrong))), ~jnp.any(wrong)

    return jax.lax.fori_loop(0, PIVOTS, pivot, (closed & first, jnp.bool_(False)))
