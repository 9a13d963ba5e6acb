"""Direct forcing: the velocity in thin shells around bodies is replaced so that it matches theirs at the surface."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.flow.diagnosis.measures import control_volumes
from simkit.flow.grid import Grid, Velocity, like
from simkit.flow.obstacles.bodies import Bodies
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.distance import distance_and_normal, positions
from simkit.flow.obstacles.stage import Stage
from simkit.flow.obstacles.surface_conditions import Neighbors, shell_weight, with_value
from simkit.flow.operators.differences import gradient, inside

# Fraction of the old pressure used in forcing; the rest of its gradient is left as slip. With all of it the pressure
# would slowly grow in cells almost all of whose faces are forced. Fluid and kept pressure swing against each other, for
# ten steps or more, and bodies that cross the grid excite that swing all the time: noise of the torque on a turning
# plate 14 cells long is 46 % of its mean. With half of the pressure it is 25 %, but the force on a cylinder in small
# oscillations is then 14 % off that of Stokes, in place of 2.5 %.
KEPT_PRESSURE = 0.99


@dataclasses.dataclass(frozen=True, eq=False)
class DirectForcing(Bodies):
    """Rigid bodies in a flow, at rest, turning about a pivot, or on prescribed motions.

    In every stage the velocity near the surface is replaced, by the weight ``w``, by the parabola along the normal
    through the surface and through the flow one and two spacings further out::

        u <- (1 - w) u + w (U + 2 s/(1 + s) (u_1 - U_1) - s/(2 + s) (u_2 - U_2)),   s = distance/spacing

    U is the velocity of the body; ``w`` is 1 for |s - 1/4| < 1/2 and falls smoothly to 0 at |s - 1/4| = 1. The spacing
    is that at which the normal meets the plane through the next neighbors, between which ``u_1`` is interpolated;
    ``u_2`` is the same one spacing further. Inside the shell there is fluid in a closed container: it exerts no net
    force on a body at rest, and no cell has all its faces forced, so that a solenoidal velocity exists everywhere. The
    force that accelerates this fluid with a moving body is subtracted from the load, see
    `simkit.flow.obstacles.bodies.gained_inside`.

    The force is exactly the momentum that forcing removes from the flow. It is smooth in the parameters of shapes and
    motions, and fluctuates while a body moves across the grid; that of an immersed boundary does not.

    Attributes:
        domain: the domain.
        bodies: by name, in the order of their loads.

    Example:
        >>> axes = (flow.bounded_axis(16, 4.0), flow.bounded_axis(16, 4.0))
        >>> tunnel = flow.domain(axes, (("inflow", "outflow"), ("free_slip", "free_slip")))
        >>> shape = lambda params: flow.obstacles.ball((2.0, 2.0), 0.5)
        >>> body = flow.obstacles.Body(shape, pivot=lambda params: (2.0, 2.0))
        >>> wind = lambda params, time: (((1.0, 0.0), (0.0, 0.0)), ((0.0, 0.0), (0.0, 0.0)))
        >>> obstacle = flow.obstacles.DirectForcing(tunnel, {"cylinder": body})
        >>> equations = flow.Equations(tunnel, "nu", flow.fixed_time_step, boundary=wind, obstacle=obstacle)
        >>> list(equations.obstacle.bodies)
        ['cylinder']

    References: Fadlun, Verzicco, Orlandi and Mohd-Yusof, J. Comput. Phys. 161, 35 (2000), doi:10.1006/jcph.2000.6484,
    for forcing by interpolation; Weymouth and Yue, J. Comput. Phys. 230, 6233 (2011), doi:10.1016/j.jcp.2011.04.022,
    for smooth weights.
    """

    @property
    def averages_pressure(self) -> bool:
        """Return True: stages differ in length, and so in the slip that each leaves for the next one to push away.

        The pressure of one stage answers that push too, which grows as one over the time step; over a step it cancels.
        """
        return True

    @property
    def reach(self) -> float:
        """Distance from the surface, in spacings, within which the pressure is disturbed by forcing."""
        return 1.5

    def impose(
        self, velocity: Velocity, before: Velocity, pressure: jax.Array, params: Params, data: tuple, stage: Stage
    ) -> tuple[Velocity, jax.Array, jax.Array]:
        """Return the solenoidal velocity with the bodies' conditions imposed, the pressure, and the momentum removed.

        Args:
            velocity: at the end of the stage, before projection.
            before: at its start.
            pressure: at its start; zero if its gradient is already in the velocity.
            params: parameters.
            data: unused.
            stage: of the time step.
        """
        # Forcing acts on the velocity with the old pressure gradient; the change of pressure is of second order.
        grid, part = self.domain.grid, stage.part
        pushed = jax.tree.map(lambda slope: KEPT_PRESSURE * part * slope, gradient(pressure, grid))
        velocity, momentum = self.force(jax.tree.map(jnp.subtract, velocity, pushed), before, params, stage)
        velocity = jax.tree.map(jnp.add, velocity, pushed)
        return *stage.project(velocity, part, stage.source), momentum

    def force(self, velocity: Velocity, before: Velocity, params: Params, stage: Stage) -> tuple[Velocity, jax.Array]:
        """Return the velocity with the bodies' conditions imposed, and the momentum and angular momentum removed.

        Args:
            velocity: components on their faces.
            before: those at the start of the stage, from which the parabola is made.
            params: parameters.
            stage: of the time step.
        """
        forced, loads = velocity, []
        for body in self.bodies.values():
            changes, load = self._forced(body, velocity, before, params, stage)
            forced = tuple(
                _add_inside(f, change, i, self.domain.grid)
                for i, (f, change) in enumerate(zip(forced, changes, strict=True))
            )
            loads.append(load)
        return forced, jnp.concatenate(loads)

    def _forced(
        self, body: Body, velocity: Velocity, before: Velocity, params: Params, stage: Stage
    ) -> tuple[list[jax.Array], jax.Array]:
        """Return the change of the velocity on inner faces due to one body, and the momentum removed."""
        grid = self.domain.grid
        now = body.now(params, stage.time)
        # The parabola is fitted to the flow at the start of the stage, relative to the body at that time.
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
