"""Immersed boundary: plane bodies act on the flow by forces at their outlines, spread by a smooth kernel."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_integer
from simkit.core.formulation import computed_once, precise_product
from simkit.core.implicit import preconditioned
from simkit.core.pytrees import pytree
from simkit.core.simulation import Params
from simkit.core.tracing import kernel
from simkit.errors import UserError
from simkit.flow.grid import Velocity, like
from simkit.flow.obstacles.bodies import Bodies
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.checks import at_time
from simkit.flow.obstacles.distance import distance_in_cells, positions
from simkit.flow.obstacles.kernel import (
    SUPPORT,
    across_and_along,
    along_axes,
    fluid_fraction,
    kernels_at,
    read,
    smearing_at,
    spacing_in_cells,
    spread,
)
from simkit.flow.obstacles.outline import Outline, check_outline, farthest_corner, moved_outline, outline
from simkit.flow.obstacles.stage import Inertia, Project, Stage
from simkit.flow.stepping.time_step import fixed_time_step
from simkit.flow.viscosity import Uniform, uniform

if TYPE_CHECKING:
    from simkit.flow.equations import Equations

# Distance of points on the outline, in spacings of the grid. At larger distances forces oscillate along the outline;
# the grid cannot tell them apart.
POINT_DISTANCE = 1.2
# Largest such distance: drag of a cylinder 8 cells across changes by less than 0.2 % up to 1.6, and by 2 % at 1.8.
LARGEST_DISTANCE = 1.5
# Added to the diagonal of the matrix of forces, relative to its mean; without it the matrix is singular: a uniform
# force across a closed outline is balanced by the pressure inside, and moves no fluid.
RIDGE = 1e-4
# Makes the slip of a flow without friction a number; its inverse is one in float32 too.
LEAST_VISCOSITY = 1e-20
# Drag on the fluid inside bodies: the cell Reynolds number from which it acts, and its coefficient. Where boundary
# layers are resolved the fluid inside the kernel stays below 5, so that nothing acts on it. A coefficient of 64, or the
# square of 1 - phi in place of its fourth power, makes an unresolved cylinder rough: its drag is 10 to 20 % larger.
INNER_REYNOLDS = 10.0
INNER_DRAG = 16.0


@pytree
class InvertedForces:
    """The linear equations for the forces on the outlines, inverted once at the start of a run.

    Attributes:
        inverse: ``(stages, 2 n, 2 n)`` from the slip across and along the outlines, at n points, to the impulses that
            remove it; of the bodies as they were at the start.
        ridge: added to the diagonal of these equations.
        made_for: the parameters at the start, in one vector.
    """

    inverse: jax.Array
    ridge: jax.Array
    made_for: jax.Array


class Placed(NamedTuple):
    """All bodies at one time.

    Attributes:
        around: points on their outlines, n of them.
        kernels: their weights on the faces.
        slip: slip along the outline per force and length of time, (n,).
    """

    around: Outline
    kernels: list[list[jax.Array]]
    slip: jax.Array


class Inside(NamedTuple):
    """The bodies on the faces of a component of the velocity.

    Attributes:
        fluid: the fluid fraction phi.
        velocity: of the nearest body.
        owner: index of the nearest body, in their order.
    """

    fluid: jax.Array
    velocity: jax.Array
    owner: jax.Array


class StepData(NamedTuple):
    """Bodies in one step.

    Attributes:
        outlines: of the shape of each body.
        placed: their positions; None if any body moves.
        insides: their insides for each component, at the start of the step.
        forces: the inverse computed at the start.
        is_current: whether the bodies have their positions of the start, bool.
    """

    outlines: list[Outline]
    placed: Placed | None
    insides: list[Inside]
    forces: InvertedForces
    is_current: jax.Array


@dataclasses.dataclass(frozen=True, eq=False)
class ImmersedBoundary(Bodies):
    """Rigid plane bodies in a flow, at rest, turning about a pivot, or on prescribed motions.

    At points X on their outlines forces F act on the flow. The kernel B spreads them over the grid, and reads the
    velocity there::

        du/dt + div(u u) - div((1 - phi) v v) = -grad(p) + nu laplacian(u) + sum over points of F B(x - X),   v = u - U
        div(u) = 0,    (v, B)_X . n = 0,    (v, B)_X . t = -kappa h F . t/(nu ds)

    U is the velocity of the body, h the spacing, ds the distance of the points; for bodies at rest the momentum carried
    is ``div(u phi u)``. Forces and pressure are found together, so that both conditions and ``div(u) = 0`` hold at the
    end of every stage. Fluid fills the bodies and exerts no net force on them at rest; the force that accelerates it
    with a moving body is subtracted from the load, see `simkit.flow.obstacles.bodies.gained_inside`. The conditions
    and phi compensate the width of the kernel. Where v is linear across the boundary layer, the computed velocity is
    ``s g(y)``, with the exact ``s y`` outside the kernel, and

    - the kernel reads ``kappa h s`` of it at the wall (see `smearing`), which is therefore asked for in place of 0;
    - with phi = dg/dy, the fluid fraction in the kernel, the flux of momentum ``int v phi v dy`` is ``int s^2 g^2 dg``,
      that of the exact layer.

    The remaining error is of third order in the spacing over the thickness of the layer.

    Where layers are thinner than cells, friction is too weak to balance the forces that the kernel spreads into a body,
    and without more the fluid inside would run away. There it is slowed, implicitly and once a step, by::

        dv/dt = -16 (1 - phi)^4 max(|v| - 10 nu/h, 0)^2 sign(v)/h,    for each component

    which is zero up to a cell Reynolds number of 10, and whose force is part of the load.

    The force on the body is exactly minus the sum of F and of that drag: every other term is a flux between cells.
    Forces are smooth in the parameters of shapes and motions, and in time: they depend little on the position relative
    to the grid.

    Attributes:
        domain: the domain, of two axes.
        bodies: by name, in the order of their loads; the pivot of each is inside it, and each has its ``points``.
        viscosity: viscosity of the equations: a number, the name of a parameter or ``params -> number``.

    Example:
        >>> axes = (flow.bounded_axis(32, 4.0), flow.bounded_axis(32, 4.0))
        >>> tunnel = flow.domain(axes, (("inflow", "outflow"), ("free_slip", "free_slip")))
        >>> points = flow.obstacles.points_around(perimeter=np.pi, spacing=4.0 / 32)
        >>> shape = lambda params: flow.obstacles.ball((2.0, 2.0), 0.5)
        >>> body = flow.obstacles.Body(shape, pivot=lambda params: (2.0, 2.0), points=points)
        >>> obstacle = flow.obstacles.ImmersedBoundary(tunnel, {"cylinder": body}, viscosity="nu")
        >>> bool(obstacle.are_resolved({"nu": 0.01}, jnp.array(0.0)))
        True

    References: Taira and Colonius, J. Comput. Phys. 225, 2118 (2007), doi:10.1016/j.jcp.2007.03.005, for forces and
    pressure found together; Breugem, J. Comput. Phys. 231, 4469 (2012), doi:10.1016/j.jcp.2012.02.026, for the effect
    of the width of the kernel on the place of the wall.
    """

    viscosity: Uniform

    def __post_init__(self) -> None:
        """Refuse bodies without points."""
        for name, body in self.bodies.items():
            check_integer(f"body '{name}': points (see points_around)", body.points, 8)

    @property
    def points(self) -> int:
        """Number of points on all outlines."""
        return sum(body.points or 0 for body in self.bodies.values())

    @property
    def reach(self) -> float:
        """Distance from the outline, in spacings, within which the pressure is disturbed: the radius of the kernel."""
        return SUPPORT

    def check(self, params: Params, times: Sequence[float] = (0.0,)) -> None:
        """Refuse bodies that do not fit, whose outlines are not star-shaped, or whose points are too far apart."""
        super().check(params, times)
        distances = [self._compiled_spacing(params, jnp.asarray(time, float)) for time in times]
        for body, (reach, cells) in zip(self.bodies.values(), distances[0], strict=True):
            # The length of an outline is a number where every point on its rays is.
            check_outline(body.shape(params), body.pivot(params), reach, bool(jnp.isfinite(cells)))
        for time, then in zip(times, distances, strict=True):
            with at_time(time):
                self._check_spacing([float(cells) for _, cells in then])

    @functools.cached_property
    def _compiled_spacing(self) -> Callable[[Params, jax.Array], list[tuple[jax.Array, jax.Array]]]:
        def spacing(params: Params, time: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
            reaches = [self._reach(body, params) for body in self.bodies.values()]
            return list(zip(reaches, self._spacing(params, time), strict=True))

        return jax.jit(spacing)

    def _check_spacing(self, distances: Iterable[float]) -> None:
        """Refuse points on an outline that are too far apart, in cells."""
        for (name, body), cells in zip(self.bodies.items(), distances, strict=True):
            if cells > LARGEST_DISTANCE:
                count = body.points or 0
                raise UserError(
                    f"the {count} points on the outline of obstacle '{name}' are {cells:.3g} cells apart, and "
                    f"{LARGEST_DISTANCE:g} at most resolve it; set points = {math.ceil(count * cells / POINT_DISTANCE)}"
                )

    def are_resolved(self, params: Params, time: jax.Array) -> jax.Array:
        """Return whether the points on all outlines are close enough for the cells at a time, bool."""
        return jnp.max(jnp.stack(self._spacing(params, time))) <= LARGEST_DISTANCE

    def check_equations(self, equations: "Equations") -> None:
        """Refuse equations that this method does not support.

        Raises:
            UserError: names the unsupported part.
        """
        super().check_equations(equations)
        for name in unsupported(equations, self.bodies.values()):
            raise UserError(f"an immersed boundary does not support {name}; choose method direct_forcing")

    def prepare(self, params: Params, parts: jax.Array, project: Project) -> InvertedForces:
        """Return the inverted equations for the forces, for the lengths of time ``(stages,)`` of the stages of a step.

        Each column of the matrix is the velocity at the points of the outlines due to one force and the pressure that
        it causes.
        """
        grid = self.domain.grid
        around, kernels, slip = self._placed(self._outlines(params, parts.dtype), params, jnp.zeros((), parts.dtype))

        @jax.checkpoint
        def column(force: jax.Array) -> jax.Array:
            return read(project(spread(force, around, kernels, grid), parts[0])[0], around, kernels, grid)

        matrix = jax.lax.map(column, jnp.eye(2 * self.points, dtype=parts.dtype))
        matrix = (matrix + matrix.T) / 2
        ridge = RIDGE * jnp.trace(matrix) / (2 * self.points)

        def inverse(part: jax.Array) -> jax.Array:
            total = matrix + jnp.diag(ridge + jnp.concatenate([jnp.zeros_like(slip), slip / part]))
            # Tangential entries may be a thousand times as large as normal ones.
            scale = jax.lax.rsqrt(jnp.diagonal(total))
            factor = jax.scipy.linalg.cho_factor(scale[:, None] * total * scale)
            return scale[:, None] * jax.scipy.linalg.cho_solve(factor, jnp.diag(scale))

        # No derivative is needed: `_forces` differentiates the equations, not their inverse.
        inverses = jax.vmap(inverse)(jax.lax.stop_gradient(parts))
        return InvertedForces(
            inverse=jax.lax.stop_gradient(inverses), ridge=ridge, made_for=_vector(params, parts.dtype)
        )

    def at(self, params: Params, data: InvertedForces, time: jax.Array) -> StepData:
        """Return the bodies for the parameters of a step, which may differ from those at the start."""
        dtype = data.inverse.dtype
        outlines = self._outlines(params, dtype)
        insides = [self._inside(i, params, time) for i in range(2)]
        if self.moves:
            return StepData(outlines, None, insides, data, jnp.asarray(False))
        is_current = (data.made_for == _vector(params, dtype)).all()
        return StepData(outlines, self._placed(outlines, params, jnp.zeros((), dtype)), insides, data, is_current)

    def _reach(self, body: Body, params: Params) -> jax.Array:
        """Return an upper bound of the distance between the pivot and the outline of a body."""
        if body.motion is None:
            return farthest_corner(body.pivot(params), self.domain)
        diagonal = math.hypot(*(axis.length for axis in self.domain.grid.axes))
        size = body.now(params, 0.0).size
        return jnp.asarray(diagonal if size is None else diagonal / size)

    @functools.cached_property
    def _outlines(self) -> Callable[[Params, Any], list[Outline]]:
        """Outlines of all shapes, before their motions are applied, ``(params, dtype) -> outlines``.

        Start, steps, diagnostics and checks need them, and a trace takes longer than that of a stage.
        """

        def outlines(params: Params, dtype: Any) -> list[Outline]:
            each = [
                outline(body.shape(params), body.pivot(params), body.points or 0, self._reach(body, params))
                for body in self.bodies.values()
            ]
            return jax.tree.map(lambda f: jnp.asarray(f, dtype), each)

        return kernel(outlines, static="dtype")

    def _spacing(self, params: Params, time: jax.Array) -> list[jax.Array]:
        """Return the largest distance of the points on each outline, in cells."""
        moved = self._moved(self._outlines(params, time.dtype), params, time)
        return [jnp.max(spacing_in_cells(one, self.domain.grid)) for one in moved]

    def _moved(self, outlines: list[Outline], params: Params, time: jax.Array) -> list[Outline]:
        """Return the outlines at the positions of their bodies at a time."""
        return [
            moved if body.motion is None else moved_outline(moved, body.pivot(params), body.now(params, time))
            for body, moved in zip(self.bodies.values(), outlines, strict=True)
        ]

    def _placed(self, outlines: list[Outline], params: Params, time: jax.Array) -> Placed:
        """Return the bodies at their positions at a time."""
        moved = self._moved(outlines, params, time)
        around = jax.tree.map(lambda *parts: jnp.concatenate(parts, axis=-1), *moved)
        # Without friction nothing holds the flow along the outline.
        viscosity = jnp.maximum(uniform(self.viscosity, params, "an immersed boundary"), LEAST_VISCOSITY)
        slip = smearing_at(around, self.domain.grid) / (viscosity * around.spacing)
        return Placed(around, kernels_at(around, self.domain.grid), slip)

    def inertia(self, params: Params, data: StepData, time: jax.Array) -> Inertia:
        """Return the fluid fraction phi on the faces of each component, and the velocity of the bodies."""
        insides = [self._inside(i, params, time) for i in range(2)] if self.moves else data.insides
        return Inertia(tuple(i.fluid for i in insides), tuple(i.velocity for i in insides) if self.moves else None)

    def _inside(self, i: int, params: Params, time: jax.Array) -> Inside:
        """Return the bodies on the faces of a component; on sides there is none."""
        grid, dtype = self.domain.grid, jnp.asarray(time).dtype
        x = [jnp.asarray(p, dtype) for p in positions(i, grid)]
        nearest, moved, owner = None, jnp.zeros((), dtype), jnp.zeros((), jnp.int32)
        for k, body in enumerate(self.bodies.values()):
            now = body.now(params, time)
            s = distance_in_cells(body.shape_at(params, now, self.domain), i, grid, dtype)
            velocity = jnp.broadcast_to(jnp.asarray(now.component(i, body.arm(x, now, self.domain)), dtype), s.shape)
            closer = True if nearest is None else s < nearest
            moved, owner = jnp.where(closer, velocity, moved), jnp.where(closer, k, owner)
            nearest = s if nearest is None else jnp.minimum(s, nearest)
        assert nearest is not None, "there is a body"
        ends = [(1, 1) if k == i and not axis.periodic else (0, 0) for k, axis in enumerate(grid.axes)]
        return Inside(
            fluid=jnp.pad(fluid_fraction(nearest), ends, constant_values=1),
            velocity=jnp.pad(moved, ends),
            owner=jnp.pad(jnp.broadcast_to(owner, nearest.shape), ends),
        )

    def begin(
        self, velocity: Velocity, params: Params, data: StepData, time: jax.Array, length: jax.Array
    ) -> tuple[Velocity, jax.Array]:
        """Return the velocity after the drag on the fluid inside, and the momentum and angular momentum removed.

        Args:
            velocity: at the start of the step.
            params: parameters.
            data: the result of `at`.
            time: at the start of the step.
            length: of the step.
        """
        viscosity = uniform(self.viscosity, params, "an immersed boundary")
        turning = self.moves or any(body.spin is not None for body in self.bodies.values())
        slowed, sums = [], []
        with jax.named_scope("obstacle"):
            for i, (f, inner) in enumerate(zip(velocity, data.insides, strict=True)):
                axis = self.domain.grid.axes[i]
                apart = axis.distances if axis.periodic else np.pad(axis.distances, 1, mode="edge")
                width = like(f, self.domain.grid.along(apart, i))
                relative = f - inner.velocity if turning else f
                speed = jnp.abs(relative)
                excess = jnp.maximum(speed - INNER_REYNOLDS * viscosity / width, 0)
                drag = length * INNER_DRAG * (1 - inner.fluid) ** 4 * excess**2
                # The speed is not zero where its excess is not.
                change = computed_once(-relative * drag / (width * jnp.where(excess > 0, speed, 1) + drag))
                slowed.append(f + change)
                sums.append(self._sums(change, i, inner.owner, params, time))
        (x, _, x_by_y), (y, y_by_x, _) = sums
        return tuple(slowed), -jnp.stack([x, y, y_by_x - x_by_y], axis=1).ravel()

    def _sums(
        self, change: jax.Array, i: int, owner: jax.Array, params: Params, time: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return the integrals of a change of a component, and of both arms times it, over the inside of each body."""
        grid, sums = self.domain.grid, []
        local = grid.axes[i]
        # Nothing changes on the sides.
        lengths = local.distances if local.periodic else np.pad(local.distances, 1)
        volumes = [like(change, lengths if k == i else a.widths) for k, a in enumerate(grid.axes)]
        points = [like(change, local.points if k == i else a.centers) for k, a in enumerate(grid.axes)]
        for k, body in enumerate(self.bodies.values()):
            arm = body.arm(points, body.now(params, time), self.domain)
            part = change if len(self.bodies) == 1 else jnp.where(owner == k, change, 0)
            x, y = (jnp.stack([volume, volume * a]) for volume, a in zip(volumes, arm, strict=True))
            sums.append(precise_product(x, part, y.T))
        products = jnp.stack(sums)
        return products[:, 0, 0], products[:, 1, 0], products[:, 0, 1]

    def impose(
        self, velocity: Velocity, before: Velocity, pressure: jax.Array, params: Params, data: StepData, stage: Stage
    ) -> tuple[Velocity, jax.Array, jax.Array]:
        """Return the solenoidal velocity with the bodies' conditions imposed, the pressure, and the momentum removed.

        Args:
            velocity: at the end of the stage, before projection.
            before: unused.
            pressure: unused.
            params: parameters.
            data: the result of `at`.
            stage: of the time step.
        """
        grid = self.domain.grid
        with jax.named_scope("obstacle"):
            placed = data.placed or self._placed(data.outlines, params, stage.time)
            around, kernels = placed.around, placed.kernels
            arm, body = self._motion(around, params, stage.time)
            velocity, first = stage.project(velocity, stage.part, stage.source)
            slip = read(velocity, around, kernels, grid)
            if body is not None:
                slip = slip - across_and_along(body[0], body[1], around)
            force = self._forces(-slip, placed, data, stage)
            pushed = jax.tree.map(jnp.add, velocity, spread(force, around, kernels, grid))
            velocity, second = stage.project(pushed, stage.part, stage.source)
            x, y = along_axes(force, around)
        return velocity, first + second, -self._each([x, y, arm[0] * y - arm[1] * x])

    def _motion(
        self, around: Outline, params: Params, time: jax.Array
    ) -> tuple[list[jax.Array], list[jax.Array] | None]:
        """Return the vectors from the pivots to all points, and the velocities of the bodies there; None at rest."""
        arms, velocities, first = [], [], 0
        for body in self.bodies.values():
            now, last = body.now(params, time), first + (body.points or 0)
            arm = body.arm(list(around.points[:, first:last]), now, self.domain)
            arms.append(jnp.stack(arm))
            velocities.append(jnp.stack([jnp.broadcast_to(now.component(i, arm), arm[i].shape) for i in range(2)]))
            first = last
        arm = list(jnp.concatenate(arms, axis=1))
        if all(body.spin is None and body.motion is None for body in self.bodies.values()):
            return arm, None
        return arm, list(jnp.concatenate(velocities, axis=1))

    def _each(self, at_points: list[jax.Array]) -> jax.Array:
        """Return the sums over the points of each body, one body after the other."""
        ends = np.cumsum([body.points or 0 for body in self.bodies.values()])[:-1].tolist()
        split = [jnp.split(f, ends) for f in at_points]
        return jnp.stack([part.sum() for parts in zip(*split, strict=True) for part in parts])

    def _forces(self, change: jax.Array, placed: Placed, data: StepData, stage: Stage) -> jax.Array:
        """Return the impulses at the outlines that cause a given change of velocity there, (2 n,).

        For bodies at rest, at the parameters of the start, they are a product with the stored inverse. Otherwise the
        inverse preconditions conjugate gradients, which need a few more projections. Derivatives are those of the
        solution of the equations in both cases.
        """
        grid, nothing = self.domain.grid, jnp.zeros_like(placed.slip)
        diagonal = data.forces.ridge + jnp.concatenate([nothing, placed.slip / stage.part])
        inverse = data.forces.inverse[stage.number]

        def moved(force: jax.Array) -> jax.Array:
            pushed, _ = stage.project(spread(force, placed.around, placed.kernels, grid), stage.part)
            return read(pushed, placed.around, placed.kernels, grid) + diagonal * force

        def solve(matvec: Callable[[jax.Array], jax.Array], b: jax.Array) -> jax.Array:
            if self.moves:
                return preconditioned(matvec, b, lambda r: precise_product(inverse, r), jnp.asarray(True))
            changed = preconditioned(matvec, b, lambda r: precise_product(inverse, r), ~data.is_current)
            return jnp.where(data.is_current, precise_product(inverse, b), changed)

        return jax.lax.custom_linear_solve(moved, change, solve, symmetric=True)


def unsupported(equations: "Equations", bodies: Iterable[Body]) -> list[str]:
    """Return what an immersed boundary does not support of equations and bodies, in words; empty where it serves."""
    parts = {
        "three axes": equations.domain.grid.dimension == 3,
        "a held flow rate": equations.flow_rate is not None,
        "implicit friction": bool(equations.implicit),
        "an implicit drag": equations.drag is not None,
        "a viscosity that varies": equations.varies,
        "a time step that changes": equations.time_step is not fixed_time_step,
        "bodies that are attached to sides": any(body.attached for body in bodies),
    }
    return [name for name, is_there in parts.items() if is_there]


def points_around(perimeter: float, spacing: float) -> int:
    """Return the number of points for an outline of the given length on cells of the given width.

    Example:
        >>> flow.obstacles.points_around(perimeter=np.pi * 1.0, spacing=0.05)
        53
    """
    return math.ceil(perimeter / (POINT_DISTANCE * spacing))


def _vector(params: Params, dtype) -> jax.Array:
    return jax.lax.stop_gradient(
        jnp.concatenate([jnp.ravel(jnp.asarray(leaf, dtype)) for leaf in jax.tree.leaves(params)])
    )
