"""Conditions at the surface of a body: values along its normals, parabolas, and the scalar that it gives."""

import dataclasses
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parts import part
from simkit.core.settings import formula
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.boundary.domain import Domain
from simkit.flow.grid import Axis, Grid, like
from simkit.flow.obstacles.distance import distance_and_normal, positions, smooth_step
from simkit.flow.obstacles.shapes import Shape

# Width of the smoothed transition between the two neighbors along an axis, where the normal is perpendicular to it.
ROUNDING = 0.1


class Neighbors:
    """Weights of the neighbors in the direction of the normals.

    Along axis i the upper neighbor, at distance h, has the weight ``spacing (n_i + |n_i|)/(2 h)``, the lower one that
    of the opposite direction. Their sum is 1, and they are the plane through the neighbors at ``spacing n`` from here.
    In place of ``|n|`` stands ``sqrt(n^2 + ROUNDING^2)``, which changes neither.
    """

    def __init__(self, component: int | None, grid: Grid, normal: Sequence[jax.Array]):
        self.periodic = [axis.periodic for axis in grid.axes]
        self.weights = []
        for i, (axis, n) in enumerate(zip(grid.axes, normal, strict=True)):
            size = jnp.sqrt(n**2 + ROUNDING**2)
            below, above = (like(n, grid.along(h, i)) for h in _steps(axis, i == component))
            self.weights.append(((size - n) / (2 * below), (size + n) / (2 * above)))
        self.spacing = 1 / sum(a + b for a, b in self.weights)

    def outward(self, f: jax.Array) -> jax.Array:
        """Return values one spacing further along the normal; constant beyond the ends of bounded axes."""
        total = jnp.zeros_like(f)
        for i, (below, above) in enumerate(self.weights):
            lower, upper = self._both(f, i)
            total = total + below * lower + above * upper
        return self.spacing * total

    def _both(self, f: jax.Array, axis: int) -> tuple[jax.Array, jax.Array]:
        if self.periodic[axis]:
            return jnp.roll(f, 1, axis), jnp.roll(f, -1, axis)
        n = f.shape[axis]
        padded = jnp.pad(f, [(1, 1) if k == axis else (0, 0) for k in range(f.ndim)], mode="edge")
        return jax.lax.slice_in_dim(padded, 0, n, axis=axis), jax.lax.slice_in_dim(padded, 2, n + 2, axis=axis)


def _steps(axis: Axis, own: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances to the points below and above each inner point of a component along one axis."""
    if axis.periodic:
        return axis.widths, axis.widths
    if own:
        return axis.widths[:-1], axis.widths[1:]
    padded = np.concatenate([axis.distances[:1], axis.distances, axis.distances[-1:]])
    return padded[:-1], padded[1:]


# The shell, in spacings along the normal: the weight of forcing is 1 up to this distance from its middle, and falls to
# spacing in part. The middle lies outside: points deeper inside would be extrapolated so steeply that a flow with the
# shell around the surface itself, at 0, blew up; at 1/2 errors were no smaller.
FULL = 0.5
MIDDLE = 0.25
# A parabola of given slope can be continued inward. Forcing up to this distance inside keeps the kink toward the inner
# kink between it and the fluid inside out of all stencils of the fluid, which would change the slope by up to 0.4 %
# however fine the grid is.
INWARD = -1.0


def slope_weight(s: jax.Array) -> jax.Array:
    """Return the weight of forcing to a slope: that of `shell_weight`, and 1 further inside."""
    full = (MIDDLE + FULL - INWARD) / 2
    return smooth_step((jnp.abs(s - (INWARD + full)) - full) / (1 - FULL))


def shell_weight(s: jax.Array) -> jax.Array:
    """Return the weight of forcing at a distance of s spacings: 1 in the shell, falling smoothly to 0 around it."""
    return smooth_step((jnp.abs(s - MIDDLE) - FULL) / (1 - FULL))


def with_value(s: jax.Array, value: jax.Array | float, first: jax.Array, second: jax.Array) -> jax.Array:
    """Return the parabola that is ``value`` on the surface.

        value + 2 s/(1 + s) first - s/(2 + s) second

    Args:
        s: distance from the surface in spacings.
        value: on the surface.
        first: the field one spacing further out, less the value for which the slope is zero.
        second: two spacings further out, likewise.
    """
    # Clipped further inside, where the weight vanishes and the parabola becomes steep.
    near = jnp.maximum(s, MIDDLE - FULL)
    return value + 2 * near / (1 + near) * first - near / (2 + near) * second


def with_slope(s: jax.Array, slope: jax.Array | float, first: jax.Array, second: jax.Array) -> jax.Array:
    """Return the parabola that has a slope on the surface.

        first - slope - (1 + 2 s)/(3 + 2 s) (second - first - slope)

    Args:
        s: distance from the surface in spacings.
        slope: on the surface, per spacing.
        first: the field one spacing further out.
        second: two spacings further out.
    """
    near = jnp.maximum(s, MIDDLE - FULL)
    return first - slope - (1 + 2 * near) / (3 + 2 * near) * (second - first - slope)


@dataclasses.dataclass(frozen=True, eq=False)
class ScalarSurface:
    """Boundary condition of a scalar at the surface of a body: its value, or its flux into the fluid.

    As in direct forcing of the velocity, the scalar in a thin shell around the surface is replaced, with either method,
    by the parabola along the normal with the value or the slope ``-flux/diffusivity`` on the surface. The amount added,
    less the increase in the fluid inside the body, is reported with the loads as the amount given by the body.

    A value converges at order 1.6, a flux at first order: the field one spacing further out is read off the plane
    through its neighbors, which misses the curvature of a surface of radius R by up to h/4R of the slope (along
    diagonals; none along axes, where it is exact).

    Attributes:
        value: ``(params, time) -> number`` on the surface; or None.
        flux: ``(params, time) -> number``, per area and time, into the fluid; 0 for an insulated body; or None.

    Raises:
        UserError: if both are given, or none.

    Example:
        >>> hot = flow.obstacles.ScalarSurface(value=lambda params, time: params["temperature"])
        >>> shape = lambda params: flow.obstacles.ball((2.0, 2.0), 0.5)
        >>> body = flow.obstacles.Body(shape, pivot=lambda params: (2.0, 2.0), scalar=hot)
        >>> body.scalar.value({"temperature": 80.0}, 0.0)
        80.0
    """

    value: Callable[[Params, jax.Array], jax.Array | float] | None = None
    flux: Callable[[Params, jax.Array], jax.Array | float] | None = None

    def __post_init__(self) -> None:
        """Refuse two conditions, or none."""
        if (self.value is None) == (self.flux is None):
            raise UserError("a body gives a scalar its value or a flux; give one of value and flux")

    def force(
        self,
        scalar: jax.Array,
        before: jax.Array,
        shape: Shape,
        domain: Domain,
        diffusivity: jax.Array | float,
        params: Params,
        time: jax.Array,
    ) -> jax.Array:
        """Return the change of a scalar that imposes the body's condition.

        Args:
            scalar: at the cell centers.
            before: scalar at the start of the stage, to which the parabola is fitted.
            shape: shape of the body at its position.
            domain: the domain.
            diffusivity: of the scalar.
            params: parameters.
            time: time.
        """
        grid = domain.grid
        distance, normal = distance_and_normal(shape, [like(scalar, p) for p in positions(None, grid)])
        neighbors = Neighbors(None, grid, normal)
        s = distance / neighbors.spacing
        first = neighbors.outward(before)
        second = neighbors.outward(first)
        if self.value is not None:
            value = self.value(params, time)
            target = with_value(s, value, first - value, second - value)
            return shell_weight(s) * (target - scalar)
        assert self.flux is not None, "one of both is given"
        target = with_slope(s, -self.flux(params, time) / diffusivity * neighbors.spacing, first, second)
        return slope_weight(s) * (target - scalar)


type OfTime = Callable[[Params, jax.Array], jax.Array | float]


@part(values={"value": formula("of the scalar there", takes=("time",))})
def value_on_surface(value: OfTime) -> ScalarSurface:
    """Return the surface of a body that has a given value."""
    return ScalarSurface(value=value)


@part(values={"flux": formula("flux from the obstacle into the fluid, per area and time", takes=("time",))})
def flux_from_surface(flux: OfTime) -> ScalarSurface:
    """Return the surface of a body that gives an amount per area and time to the fluid."""
    return ScalarSurface(flux=flux)


@part()
def insulated() -> ScalarSurface:
    """Return the surface of a body that gives nothing."""
    return ScalarSurface(flux=lambda params, time: 0.0)
