"""Vectors of three components, each an array of one shape with axes for bodies, contacts or members.

Separate arrays of components let compiled loops run over whole rows of bodies or of members; the equations never name
those axes.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.formulation import root
from simkit.rigid.algebra.stages import staged


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Vector:
    """Vectors by components, arrays of one shape; they add and scale like arrays.

    Attributes:
        x: first components.
        y: second components, of the same shape.
        z: third components, of the same shape.

    Example:
        >>> a = rigid.Vector(x=jnp.array(1.0), y=jnp.array(2.0), z=jnp.array(2.0))
        >>> float((2 * a + a).x), float(rigid.norm(a))
        (3.0, 3.0)
    """

    x: jax.Array
    y: jax.Array
    z: jax.Array

    # Makes NumPy defer `array * vector` to `__rmul__`.
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
        """Return the vectors that an array index selects."""
        return each(lambda component: component[index], self)


def each[T](function: Callable[..., jax.Array], *trees: T) -> T:
    """Return a tree of ``function`` applied to the corresponding arrays of ``trees``."""
    return jax.tree.map(function, *trees)


def vector(values: jax.Array) -> Vector:
    """Return the vectors along the last axis of an array.

    Args:
        values: (..., 3).

    Example:
        >>> rows = rigid.vector(jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
        >>> rows.z.tolist()
        [3.0, 6.0]
    """
    return Vector(values[..., 0], values[..., 1], values[..., 2])


def stacked(a: Vector) -> jax.Array:
    """Return vectors as one array with the components along a last axis, (..., 3)."""
    return jnp.stack([a.x, a.y, a.z], axis=-1)


def zeros(like: jax.Array) -> Vector:
    """Return vectors of zeros in the shape and precision of an array.

    Example:
        >>> rigid.zeros(jnp.ones(2)).x.tolist()
        [0.0, 0.0]
    """
    zero = jnp.zeros_like(like)
    return Vector(zero, zero, zero)


def dot(a: Vector, b: Vector) -> jax.Array:
    """Return the scalar product ``a . b``."""
    return a.x * b.x + a.y * b.y + a.z * b.z


def cross(a: Vector, b: Vector) -> Vector:
    """Return the vector product ``a x b``."""
    return Vector(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


def times(a: Vector, b: Vector) -> Vector:
    """Return the products of components, ``diag(a) b``."""
    return Vector(a.x * b.x, a.y * b.y, a.z * b.z)


def total(a: Vector) -> Vector:
    """Return the sum over the first axis, that of the bodies."""
    return each(lambda component: jnp.sum(component, axis=0), a)


def select(condition: jax.Array, a: Vector, b: Vector) -> Vector:
    """Return ``a`` where a condition holds and ``b`` elsewhere."""
    return each(lambda one, other: jnp.where(condition, one, other), a, b)


def norm(a: Vector) -> jax.Array:
    """Return the length ``|a|``; its derivative at zero is zero, the mean over all directions.

    Example:
        >>> float(rigid.norm(rigid.vector(jnp.array([2.0, 3.0, 6.0]))))
        7.0
    """
    return root(dot(a, a))


def normalize(a: Vector, fallback: Vector) -> Vector:
    """Return ``a / |a|``, or another unit vector where ``a`` vanishes.

    Args:
        a: any vectors.
        fallback: unit vectors returned where ``a`` is zero; the derivative there is zero.
    """
    squared = dot(a, a)
    is_zero = squared == 0
    return select(is_zero, fallback, a / jnp.sqrt(jnp.where(is_zero, 1, squared)))


def shortened(a: Vector, length: jax.Array) -> Vector:
    """Return vectors scaled back to a length where they are longer; derivatives are finite at zero, too.

    Args:
        a: vectors.
        length: greatest length, 0 or more.
    """
    squared = dot(a, a)
    longer = squared > length * length
    return staged(jnp.where(longer, length / jnp.sqrt(jnp.where(longer, squared, 1)), 1)) * a


def perpendicular(n: Vector) -> tuple[Vector, Vector]:
    """Return two unit vectors that form a right-handed frame with a unit vector.

    Method of Duff et al., Journal of Computer Graphics Techniques 6, 1 (2017), without roots; the only case is a sign.

    Args:
        n: unit vectors.
    """
    sign = jnp.where(n.z >= 0, 1.0, -1.0).astype(n.z.dtype)
    a = -1 / (sign + n.z)
    b = n.x * n.y * a
    return Vector(1 + sign * n.x**2 * a, sign * b, -sign * n.x), Vector(b, sign + n.y**2 * a, -n.y)
