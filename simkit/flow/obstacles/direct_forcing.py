"""A body that holds the flow at its surface by forcing the velocity in a thin shell around it."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.simulation import Params
from simkit.flow.arrays import Velocity, like
from simkit.flow.boundary.domain import Domain
from simkit.flow.diagnosis.measures import control_volumes
from simkit.flow.grid import Axis, Grid
from simkit.flow.obstacles.checks import check_obstacle, check_scalar
from simkit.flow.obstacles.distance import distance_and_normal, positions, smooth_step
from simkit.flow.obstacles.shapes import Point, Shape
from simkit.flow.operators.differences import gradient, inside

if TYPE_CHECKING:
    from simkit.flow.equations import Equations
    from simkit.flow.stepping.stepper import Project

# The shell, in spacings along the normal: the velocity is set up to this distance from its middle, and from there to
# one spacing in part. The middle lies outside: points deeper inside would be extrapolated so steeply that a flow with
# the shell around the surface itself, at 0, blew up; at 1/2 errors were no smaller.
FULL = 0.5
MIDDLE = 0.25
# Part of the old pressure with which the velocity is held. Where a cell has hardly a face that is free, the pressure
# would slowly grow if all of it were kept.
KEPT_PRESSURE = 0.99
# How smoothly the neighbors that a normal points to change where it is along an axis.
ROUNDING = 0.1


@dataclasses.dataclass(frozen=True, eq=False)
class DirectForcing:
    """A rigid body in a flow, at rest or turning about a pivot.

    In every stage the velocity near the surface is replaced, by the weight ``w``, by the parabola along the normal
    through the surface and through the flow one and two spacings further out::

        u <- (1 - w) u + w (U + 2 s/(1 + s) (u_1 - U_1) - s/(2 + s) (u_2 - U_2)),   s = distance/spacing

    U is the velocity of the body; ``w`` is 1 for |s - 1/4| < 1/2 and falls smoothly to 0 at |s - 1/4| = 1. The spacing
    is that at which the normal meets the plane through the next neighbors, between which ``u_1`` is interpolated;
    ``u_2`` is the same one spacing further. Inside the shell fluid moves on, in a container of its own: it exerts no
    net force on a body at rest, and no cell has all its faces forced, so that the pressure finds a solenoidal velocity
    everywhere.

    The force is the momentum that forcing takes from the flow, exactly. All is smooth in the parameters of the shape.

    Attributes:
        domain: the domain.
        shape: ``params -> shape``, see `simkit.flow.obstacles.shapes`.
        pivot: ``params -> point``, about which the torque is taken, and the body turns.
        spin: ``params -> number``, angular velocity, counterclockwise in the x-y plane; or None for a body at rest.

    References: Fadlun, Verzicco, Orlandi and Mohd-Yusof, J. Comput. Phys. 161, 35 (2000), doi:10.1006/jcph.2000.6484,
    for forcing by interpolation; Weymouth and Yue, J. Comput. Phys. 230, 6233 (2011), doi:10.1016/j.jcp.2011.04.022,
    for smooth weights.
    """

    domain: Domain
    shape: Callable[[Params], Shape]
    pivot: Callable[[Params], Point]
    spin: Callable[[Params], jax.Array] | None = None

    @property
    def reach(self) -> float:
        """Spacings from the surface within which pressure is disturbed: cells nearer than that are cut."""
        return 1.5

    @property
    def loads(self) -> int:
        """Number of components of force and torque: 3 in the plane, 6 in space."""
        return 3 if self.domain.grid.dimension == 2 else 6

    def check(self, params: Params) -> None:
        """Refuse a body that does not fit into its domain."""
        check_obstacle(self.shape(params), self.domain)

    def check_equations(self, equations: "Equations") -> None:
        """Refuse a scalar, which would pass through the body."""
        check_scalar(equations)

    def prepare(self, params: Params, parts: jax.Array, project: "Project") -> tuple:
        """Return nothing: this method keeps nothing between steps."""
        return ()

    def at(self, params: Params, hold: tuple) -> tuple:
        """Return nothing, likewise."""
        return hold

    def fluid(self, params: Params, dtype: Any) -> None:
        """Return None: the velocity carries itself, inside the body too."""
        return None

    def hold(
        self,
        velocity: Velocity,
        before: Velocity,
        pressure: jax.Array,
        params: Params,
        held: tuple,
        stage: jax.Array,
        part: jax.Array,
        project: "Project",
    ) -> tuple[Velocity, jax.Array, jax.Array]:
        """Return the solenoidal velocity with the body in it, the pressure, and the (angular) momentum that this took.

        Args:
            velocity: at the end of the stage, before projection.
            before: at its start.
            pressure: at its start; zero where the velocity already has it.
            params: parameters.
            held: not used.
            stage: not used.
            part: length of time that the stage covers.
            project: from a velocity to the solenoidal one and the pressure.
        """
        # What is forced is the velocity that the old pressure leads to: what the new one adds is of second order.
        pushed = jax.tree.map(lambda slope: KEPT_PRESSURE * part * slope, gradient(pressure, self.domain.grid))
        velocity, momentum = self.force(jax.tree.map(jnp.subtract, velocity, pushed), before, params)
        return *project(jax.tree.map(jnp.add, velocity, pushed), part), momentum

    def force(self, velocity: Velocity, before: Velocity, params: Params) -> tuple[Velocity, jax.Array]:
        """Return the velocity with the body in it, and the momentum and angular momentum that this took.

        Args:
            velocity: components on their faces.
            before: those at the start of the stage, from which the parabola is made.
            params: parameters.
        """
        grid, shape = self.domain.grid, self.shape(params)
        pivot = self.pivot(params)
        held, taken, arms = [], [], []
        for i, f in enumerate(velocity):
            x = [like(f, p) for p in positions(i, grid)]
            with jax.named_scope("obstacle"):
                distance, normal = distance_and_normal(shape, x)
                neighbors = _Neighbors(i, grid, normal)
                s = distance / neighbors.spacing
                first = neighbors.outward(inside(before[i], i, grid))
                second = neighbors.outward(first)
                body = [self._motion(i, x, pivot, params, normal, k * neighbors.spacing) for k in range(3)]
                # Further inside, where the weight vanishes, the parabola would turn too steep.
                near = jnp.maximum(s, MIDDLE - FULL)
                target = body[0] + 2 * near / (1 + near) * (first - body[1]) - near / (2 + near) * (second - body[2])
                weight = smooth_step((jnp.abs(s - MIDDLE) - FULL) / (1 - FULL))
                inner = inside(f, i, grid)
                change = weight * (target - inner)
            held.append(_add_inside(f, change, i, grid))
            taken.append(-change * like(f, control_volumes(i, grid)))
            arms.append([a - c for a, c in zip(x, pivot, strict=True)])
        momentum = [jnp.sum(m) for m in taken]
        planes = ((0, 1),) if grid.dimension == 2 else ((1, 2), (2, 0), (0, 1))
        turn = [jnp.sum(arms[b][a] * taken[b]) - jnp.sum(arms[a][b] * taken[a]) for a, b in planes]
        return tuple(held), jnp.stack(momentum + turn)

    def _motion(
        self, i: int, x: list, pivot: Point, params: Params, normal: list, further: jax.Array | float
    ) -> jax.Array | float:
        """Return component i of the velocity of the body, extended along the normal."""
        if self.spin is None or i > 1:
            return 0.0
        other = 1 - i
        arm = x[other] + further * normal[other] - pivot[other]
        return self.spin(params) * (arm if i == 1 else -arm)


class _Neighbors:
    """The neighbors that normals point to.

    Along axis i the upper neighbor, at distance h, has the weight ``spacing (n_i + |n_i|)/(2 h)``, the lower one that
    of the opposite direction. Their sum is 1, and they are the plane through the neighbors at ``spacing n`` from here.
    In place of ``|n|`` stands ``sqrt(n^2 + ROUNDING^2)``, which changes neither.
    """

    def __init__(self, component: int, grid: Grid, normal: Sequence[jax.Array]):
        self.periodic = [axis.periodic for axis in grid.axes]
        self.weights = []
        for i, (axis, n) in enumerate(zip(grid.axes, normal, strict=True)):
            size = jnp.sqrt(n**2 + ROUNDING**2)
            below, above = (like(n, grid.along(h, i)) for h in _steps(axis, i == component))
            self.weights.append(((size - n) / (2 * below), (size + n) / (2 * above)))
        self.spacing = 1 / sum(a + b for a, b in self.weights)

    def outward(self, f: jax.Array) -> jax.Array:
        """Return what is one spacing further along the normal; the ends of bounded axes continue."""
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


def _add_inside(f: jax.Array, change: jax.Array, axis: int, grid: Grid) -> jax.Array:
    if grid.axes[axis].periodic:
        return f + change
    return f + jnp.pad(change, [(1, 1) if i == axis else (0, 0) for i in range(f.ndim)])
