"""Vectors in space as three arrays of one shape, one number for each body, contact or member.

Components in arrays of their own keep compiled loops on whole rows of bodies, or of members of an ensemble, whatever
axes follow; the equations never name those axes.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.stages import staged


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Vector:
    """A vector at each place of an array; adds and scales like one.

    Attributes:
        x: first components.
        y: second components, of the same shape.
        z: third components, of the same shape.
    """

    x: jax.Array
    y: jax.Array
    z: jax.Array

    # NumPy then leaves `array * vector` to the vector.
    __array_ufunc__ = None

    def __add__(self, other: "Vector") -> "Vector":
        return Vector(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: "Vector") -> "Vector":
        return Vector(self.x - other.x, self.y - other.y, self.z - other.z)

    def __neg__(self) -> "Vector":
        return Vector(-self.x, -self.y, -self.z)

    def __mul__(self, factor: jax.Array | float) -> "Vector":
        return Vector(self.x * factor, self.y * factor, self.z * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: jax.Array | float) -> "Vector":
        return Vector(self.x / divisor, self.y / divisor, self.z / divisor)

    def __getitem__(self, index: object) -> "Vector":
        """Return the vectors at the places that an array index selects."""
        return each(lambda component: component[index], self)


def each[T](function: Callable[..., jax.Array], *trees: T) -> T:
    """Return a tree whose every array is ``function`` of the arrays in the same place of ``trees``."""
    return jax.tree.map(function, *trees)


def vector(values: jax.Array) -> Vector:
    """Return the vectors along the last axis of an array.

    Args:
        values: (..., 3).
    """
    return Vector(values[..., 0], values[..., 1], values[..., 2])


def stacked(a: Vector) -> jax.Array:
    """Return vectors as one array with the components along a last axis, (..., 3)."""
    return jnp.stack([a.x, a.y, a.z], axis=-1)


def zeros(like: jax.Array) -> Vector:
    """Return a vector of zeros at each place of an array."""
    nothing = jnp.zeros_like(like)
    return Vector(nothing, nothing, nothing)


def dot(a: Vector, b: Vector) -> jax.Array:
    """Return the scalar product ``a . b``."""
    return a.x * b.x + a.y * b.y + a.z * b.z


def cross(a: Vector, b: Vector) -> Vector:
    """Return the vector product ``a x b``."""
    return Vector(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


def times(a: Vector, b: Vector) -> Vector:
    """Return the products of components, what a diagonal matrix does."""
    return Vector(a.x * b.x, a.y * b.y, a.z * b.z)


def total(a: Vector) -> Vector:
    """Return the sum over the first axis, that of the bodies."""
    return each(lambda component: jnp.sum(component, axis=0), a)


def select(condition: jax.Array, a: Vector, b: Vector) -> Vector:
    """Return ``a`` where a condition holds and ``b`` elsewhere."""
    return each(lambda one, other: jnp.where(condition, one, other), a, b)


def norm(a: Vector) -> jax.Array:
    """Return the length ``|a|``; its derivative at zero is zero, the mean of those from all sides."""
    squared = dot(a, a)
    positive = squared > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squared, 1)), 0)


def normalize(a: Vector, otherwise: Vector) -> Vector:
    """Return ``a / |a|``, or another unit vector where ``a`` vanishes.

    Args:
        a: any vectors.
        otherwise: unit vectors that stand in where ``a`` is zero; those have no derivative.
    """
    squared = dot(a, a)
    positive = squared > 0
    return select(positive, a / jnp.sqrt(jnp.where(positive, squared, 1)), otherwise)


def shortened(a: Vector, length: jax.Array) -> Vector:
    """Return vectors cut to a length where they are longer; derivatives are finite at zero, too.

    Args:
        a: any.
        length: 0 or more.
    """
    squared = dot(a, a)
    longer = squared > length * length
    return staged(jnp.where(longer, length / jnp.sqrt(jnp.where(longer, squared, 1)), 1)) * a


def perpendicular(n: Vector) -> tuple[Vector, Vector]:
    """Return two unit vectors that form a right-handed frame with a unit vector.

    Follows Duff et al., Journal of Computer Graphics Techniques 6, 1 (2017): no root and no special case but a sign.

    Args:
        n: unit vectors.
    """
    sign = jnp.where(n.z >= 0, 1.0, -1.0).astype(n.z.dtype)
    a = -1 / (sign + n.z)
    b = n.x * n.y * a
    return Vector(1 + sign * n.x**2 * a, sign * b, -sign * n.x), Vector(b, sign + n.y**2 * a, -n.y)
