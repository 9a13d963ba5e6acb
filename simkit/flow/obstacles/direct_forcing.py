"""Bodies that hold the flow at their surfaces by forcing the velocity in thin shells around them."""

import dataclasses
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.flow.arrays import Velocity, like
from simkit.flow.diagnosis.measures import control_volumes
from simkit.flow.grid import Grid
from simkit.flow.obstacles.bodies import Bodies
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.distance import distance_and_normal, positions
from simkit.flow.obstacles.neighbors import Neighbors
from simkit.flow.obstacles.parabola import shell_weight, with_value
from simkit.flow.obstacles.stage import Stage
from simkit.flow.operators.differences import gradient, inside

if TYPE_CHECKING:
    from simkit.flow.stepping.stepper import Project

# Part of the old pressure with which the velocity is held. Where a cell has hardly a face that is free, the pressure
# would slowly grow if all of it were kept.
KEPT_PRESSURE = 0.99


@dataclasses.dataclass(frozen=True, eq=False)
class DirectForcing(Bodies):
    """Rigid bodies in a flow, at rest, turning about a pivot, or on prescribed motions.

    In every stage the velocity near the surface is replaced, by the weight ``w``, by the parabola along the normal
    through the surface and through the flow one and two spacings further out::

        u <- (1 - w) u + w (U + 2 s/(1 + s) (u_1 - U_1) - s/(2 + s) (u_2 - U_2)),   s = distance/spacing

    U is the velocity of the body; ``w`` is 1 for |s - 1/4| < 1/2 and falls smoothly to 0 at |s - 1/4| = 1. The spacing
    is that at which the normal meets the plane through the next neighbors, between which ``u_1`` is interpolated;
    ``u_2`` is the same one spacing further. Inside the shell fluid moves on, in a container of its own: it exerts no
    net force on a body at rest, and no cell has all its faces forced, so that the pressure finds a solenoidal velocity
    everywhere. What a moving body needs to carry it along is taken off the load, see
    `simkit.flow.obstacles.interior.gained_inside`.

    The force is the momentum that forcing takes from the flow, exactly. All is smooth in the parameters of the shapes
    and motions. While a body moves across the grid, it wobbles.

    Attributes:
        domain: the domain.
        bodies: by name, in the order of their loads.

    References: Fadlun, Verzicco, Orlandi and Mohd-Yusof, J. Comput. Phys. 161, 35 (2000), doi:10.1006/jcph.2000.6484,
    for forcing by interpolation; Weymouth and Yue, J. Comput. Phys. 230, 6233 (2011), doi:10.1016/j.jcp.2011.04.022,
    for smooth weights.
    """

    @property
    def reach(self) -> float:
        """Spacings from the surface within which pressure is disturbed: cells nearer than that are cut."""
        return 1.5

    def prepare(self, params: Params, parts: jax.Array, project: "Project") -> tuple:
        """Return nothing: this method keeps nothing between steps."""
        return ()

    def at(self, params: Params, hold: tuple) -> tuple:
        """Return nothing, likewise."""
        return hold

    def inertia(self, params: Params, time: jax.Array) -> None:
        """Return None: the velocity carries itself, inside the bodies too."""
        return None

    def hold(
        self, velocity: Velocity, before: Velocity, pressure: jax.Array, params: Params, held: tuple, stage: Stage
    ) -> tuple[Velocity, jax.Array, jax.Array]:
        """Return the solenoidal velocity with the bodies in it, the pressure, and the momentum that this took.

        Args:
            velocity: at the end of the stage, before projection.
            before: at its start.
            pressure: at its start; zero where the velocity already has it.
            params: parameters.
            held: not used.
            stage: of the time step.
        """
        # What is forced is the velocity that the old pressure leads to: what the new one adds is of second order.
        grid, part = self.domain.grid, stage.part
        pushed = jax.tree.map(lambda slope: KEPT_PRESSURE * part * slope, gradient(pressure, grid))
        velocity, momentum = self.force(jax.tree.map(jnp.subtract, velocity, pushed), before, params, stage)
        velocity = jax.tree.map(jnp.add, velocity, pushed)
        return *stage.project(velocity, part, stage.source), momentum

    def force(self, velocity: Velocity, before: Velocity, params: Params, stage: Stage) -> tuple[Velocity, jax.Array]:
        """Return the velocity with the bodies in it, and the momentum and angular momentum that this took.

        Args:
            velocity: components on their faces.
            before: those at the start of the stage, from which the parabola is made.
            params: parameters.
            stage: of the time step.
        """
        held, loads = velocity, []
        for body in self.bodies.values():
            changes, load = self._forced(body, velocity, before, params, stage)
            held = tuple(
                _add_inside(f, change, i, self.domain.grid)
                for i, (f, change) in enumerate(zip(held, changes, strict=True))
            )
            loads.append(load)
        return held, jnp.concatenate(loads)

    def _forced(
        self, body: Body, velocity: Velocity, before: Velocity, params: Params, stage: Stage
    ) -> tuple[list[jax.Array], jax.Array]:
        """Return what one body changes of the velocity on the inner faces, and the momentum that this took."""
        grid = self.domain.grid
        now = body.now(params, stage.time)
        # The flow from which the parabola is made is that at the start of the stage, relative to the body as it was.
        then = now if body.motion is None else body.now(params, stage.time - stage.part)
        shape = body.shape_at(params, now, self.domain)
        changes, taken, arms = [], [], []
        for i, f in enumerate(velocity):
            x = [like(f, p) for p in positions(i, grid)]
            with jax.named_scope("obstacle"):
                distance, normal = distance_and_normal(shape, x)
                neighbors = Neighbors(i, grid, normal)
                s = distance / neighbors.spacing
                first = neighbors.outward(inside(before[i], i, grid))
                second = neighbors.outward(first)
                arm = body.arm(x, now, self.domain)
                moved = [
                    (then if k else now).component(
                        i, [a + k * neighbors.spacing * n for a, n in zip(arm, normal, strict=True)]
                    )
                    for k in range(3)
                ]
                target = with_value(s, moved[0], first - moved[1], second - moved[2])
                change = shell_weight(s) * (target - inside(f, i, grid))
            changes.append(change)
            taken.append(-change * like(f, control_volumes(i, grid)))
            arms.append(arm)
        momentum = [jnp.sum(m) for m in taken]
        planes = ((0, 1),) if grid.dimension == 2 else ((1, 2), (2, 0), (0, 1))
        turn = [jnp.sum(arms[b][a] * taken[b]) - jnp.sum(arms[a][b] * taken[a]) for a, b in planes]
        return changes, jnp.stack(momentum + turn)


def _add_inside(f: jax.Array, change: jax.Array, axis: int, grid: Grid) -> jax.Array:
    if grid.axes[axis].periodic:
        return f + change
    return f + jnp.pad(change, [(1, 1) if i == axis else (0, 0) for i in range(f.ndim)])
