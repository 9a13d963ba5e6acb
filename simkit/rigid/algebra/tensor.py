"""Symmetric tensors of second rank, such as moments of inertia in the world frame."""

import dataclasses

import jax

from simkit.rigid.algebra.quaternion import Quaternion, axes_of
from simkit.rigid.algebra.vector import Vector, each


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
