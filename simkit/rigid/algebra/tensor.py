"""Symmetric tensors of second rank, such as moments of inertia in the world frame."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.quaternion import Quaternion, axes_of, identity, multiply
from simkit.rigid.algebra.vector import Vector, dot, each


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SymmetricTensor:
    """Symmetric 3 x 3 matrices by components, arrays of one shape.

    Attributes:
        diagonal: xx, yy, zz.
        rest: yz, zx, xy.
    """

    diagonal: Vector
    rest: Vector

    def __matmul__(self, a: Vector) -> Vector:
        """Return the product with a vector."""
        d, r = self.diagonal, self.rest
        return Vector(
            d.x * a.x + r.z * a.y + r.y * a.z,
            r.z * a.x + d.y * a.y + r.x * a.z,
            r.y * a.x + r.x * a.y + d.z * a.z,
        )

    def __getitem__(self, index: object) -> "SymmetricTensor":
        """Return the tensors that an array index selects."""
        return each(lambda component: component[index], self)


def rotated(principal: Vector, orientation: Quaternion) -> SymmetricTensor:
    """Return the world-frame components of a tensor that is diagonal in the body frame, ``R diag(p) R^T``.

    Args:
        principal: p, the principal values.
        orientation: R, of the body, whose axes are the principal ones.
    """
    a, b, c = axes_of(orientation)
    pa, pb, pc = principal.x * a, principal.y * b, principal.z * c
    return SymmetricTensor(
        Vector(
            pa.x * a.x + pb.x * b.x + pc.x * c.x,
            pa.y * a.y + pb.y * b.y + pc.y * c.y,
            pa.z * a.z + pb.z * b.z + pc.z * c.z,
        ),
        Vector(
            pa.y * a.z + pb.y * b.z + pc.y * c.z,
            pa.z * a.x + pb.z * b.x + pc.z * c.x,
            pa.x * a.y + pb.x * b.y + pc.x * c.y,
        ),
    )


# Sweeps of rotations that make a tensor diagonal to round-off, and sweeps that give its derivatives up to the second.
SEARCHING, REFINING = 6, 2
# Relative size of entries that count as round-off, and relative difference of principal values up to which their axes
# have no derivative.
ROUNDINGS, EQUAL = 10, 1e-6


def principal(tensor: SymmetricTensor) -> tuple[Vector, Quaternion]:
    """Return the principal values of tensors and the rotation from their principal axes, by Jacobi's rotations.

    A tensor that is diagonal keeps its axes. Axes of equal principal values have no derivative; a parameter that
    would turn them has none of their values either.

    Args:
        tensor: of any shape.
    """
    fixed = jax.lax.stop_gradient(tensor)
    eps = float(jnp.finfo(fixed.diagonal.x.dtype).eps)

    def sweep(_: int, found: tuple[SymmetricTensor, Quaternion]) -> tuple[SymmetricTensor, Quaternion]:
        return _swept(*found, ROUNDINGS * eps)

    _, axes = jax.lax.fori_loop(0, SEARCHING, sweep, (fixed, identity(fixed.diagonal.x)))
    columns = axes_of(axes)
    images = [tensor @ column for column in columns]
    turned = SymmetricTensor(
        Vector(*(dot(columns[k], images[k]) for k in range(3))),
        Vector(*(dot(columns[(k + 1) % 3], images[(k + 2) % 3]) for k in range(3))),
    )
    for _ in range(REFINING):
        turned, axes = _swept(turned, axes, EQUAL)
    return turned.diagonal, axes


def _swept(tensor: SymmetricTensor, axes: Quaternion, least: float) -> tuple[SymmetricTensor, Quaternion]:
    """Return a tensor after a rotation about each of its axes that makes an entry zero, and the axes so far."""
    d = [tensor.diagonal.x, tensor.diagonal.y, tensor.diagonal.z]
    r = [tensor.rest.x, tensor.rest.y, tensor.rest.z]
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        difference = d[i] - d[j]
        size = jnp.abs(d[0]) + jnp.abs(d[1]) + jnp.abs(d[2])
        turns = jnp.maximum(jnp.abs(r[k]), jnp.abs(difference)) > least * size
        way = jnp.where(difference < 0, -1, 1)
        angle = jnp.where(turns, jnp.arctan2(2 * way * r[k], jnp.where(turns, jnp.abs(difference), 1)) / 2, 0)
        c, s = jnp.cos(angle), jnp.sin(angle)
        d[i], d[j], r[k] = (
            c * c * d[i] + 2 * c * s * r[k] + s * s * d[j],
            s * s * d[i] - 2 * c * s * r[k] + c * c * d[j],
            c * s * (d[j] - d[i]) + (c * c - s * s) * r[k],
        )
        # The entries of the axis that stays with the two that turn.
        r[j], r[i] = c * r[j] + s * r[i], c * r[i] - s * r[j]
        zero = jnp.zeros_like(angle)
        about = [zero, zero, zero]
        about[k] = jnp.sin(angle / 2)
        axes = multiply(axes, Quaternion(jnp.cos(angle / 2), Vector(*about)))
    return SymmetricTensor(Vector(*d), Vector(*r)), axes
