"""A plane body in a flow, held at its outline by forces that a smooth kernel spreads over the grid."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.pytree import pytree
from simkit.core.simulation import Params
from simkit.core.symmetric_solve import preconditioned
from simkit.errors import UserError
from simkit.flow.arrays import Velocity, like
from simkit.flow.boundary.domain import Domain
from simkit.flow.diagnosis.measures import control_volumes
from simkit.flow.obstacles.checks import check_obstacle, check_scalar
from simkit.flow.obstacles.distance import distance_and_normal, positions
from simkit.flow.obstacles.kernel import SUPPORT, fluid_fraction, in_spacings, smearing, weights
from simkit.flow.obstacles.outline import Outline, check_outline, outline
from simkit.flow.obstacles.shapes import Point, Shape
from simkit.flow.operators.differences import inside, with_zero_ends
from simkit.flow.stepping.time_step import fixed_time_step
from simkit.flow.viscosity import Uniform, uniform

if TYPE_CHECKING:
    from simkit.flow.equations import Equations
    from simkit.flow.stepping.stepper import Project

# Distance of points on the outline, in spacings of the grid. Farther apart, forces ripple along the outline; closer,
# the grid cannot tell them apart.
POINT_DISTANCE = 1.2
# Added to the diagonal of the matrix of forces, relative to its mean: the pressure inside a body is arbitrary.
RIDGE = 1e-4


@pytree
class Hold:
    """The equations for the forces that hold a body on a grid, solved once at the start of a run.

    Attributes:
        inverse: ``(stages, 2 n, 2 n)`` from the slip across and along the outline, at n points, to the impulses that
            remove it; of the body as it was at the start.
        ridge: added to the diagonal of these equations.
        made_for: the parameters of the start, in one vector.
    """

    inverse: jax.Array
    ridge: jax.Array
    made_for: jax.Array


class Held(NamedTuple):
    """A body as it is in one step.

    Attributes:
        around: points on its outline, n of them.
        kernels: their weights on the faces.
        slip: slip along the outline per force and length of time, (n,).
        hold: what was solved at the start.
        is_current: whether the parameters are those of the start, bool.
    """

    around: Outline
    kernels: list[list[jax.Array]]
    slip: jax.Array
    hold: Hold
    is_current: jax.Array


@dataclasses.dataclass(frozen=True, eq=False)
class ImmersedBoundary:
    """A rigid plane body in a flow, at rest or turning about a pivot.

    At points X on its outline forces F act on the flow. The kernel B spreads them over the grid, and reads the velocity
    there::

        du/dt + div(u phi u) = -grad(p) + nu laplacian(u) + sum over points of F B(x - X),    div(u) = 0
        (u, B)_X . n = U . n,    (u, B)_X . t = U . t - kappa h F . t/(nu ds)

    U is the velocity of the body, h the spacing, ds the distance of the points. Forces and pressure are found together,
    so that both conditions and ``div(u) = 0`` hold at the end of every stage. Fluid fills the body and exerts no net
    force on it at rest. The conditions and phi make up for the width of the kernel. Where u is linear across the
    boundary layer, the computed velocity is ``s g(y)``, with the exact ``s y`` outside the kernel, and

    - the kernel reads ``kappa h s`` of it at the wall (see `smearing`), which is therefore asked for in place of 0;
    - with phi = dg/dy, the fluid fraction in the kernel, the flux of momentum ``int u phi u dy`` is ``int s^2 g^2 dg``,
      that of the exact layer.

    What is left is of third order in the spacing over the thickness of the layer.

    The force on the body is minus the sum of F, exactly: every other term is a flux between cells. All is smooth in the
    parameters of the shape.

    Attributes:
        domain: the domain, of two axes.
        shape: ``params -> shape``, see `simkit.flow.obstacles.shapes`.
        pivot: ``params -> point`` inside the body, about which the torque is taken, and the body turns.
        viscosity: that of the equations, a number, the name of a parameter or ``params -> number``.
        points: number of points on the outline, see `points_around`.
        spin: ``params -> number``, angular velocity, counterclockwise; or None for a body at rest.

    References: Taira and Colonius, J. Comput. Phys. 225, 2118 (2007), doi:10.1016/j.jcp.2007.03.005, for forces and
    pressure found together; Breugem, J. Comput. Phys. 231, 4469 (2012), doi:10.1016/j.jcp.2012.02.026, for the effect
    of the width of the kernel on the place of the wall.
    """

    domain: Domain
    shape: Callable[[Params], Shape]
    pivot: Callable[[Params], Point]
    viscosity: Uniform
    points: int
    spin: Callable[[Params], jax.Array] | None = None

    @property
    def reach(self) -> float:
        """Spacings from the outline within which pressure is disturbed: those of the kernel."""
        return SUPPORT

    @property
    def loads(self) -> int:
        """Number of components of force and torque."""
        return 3

    def check(self, params: Params) -> None:
        """Refuse a body that does not fit into its domain, or whose outline cannot be followed from its pivot."""
        shape = self.shape(params)
        check_obstacle(shape, self.domain)
        check_outline(shape, self.pivot(params), self.domain)

    def check_equations(self, equations: "Equations") -> None:
        """Refuse equations that this method does not serve.

        Raises:
            UserError: names what it does not serve.
        """
        check_scalar(equations)
        refused = {
            "three axes": equations.domain.grid.dimension == 3,
            "a held flow rate": equations.flow_rate is not None,
            "implicit friction": bool(equations.implicit),
            "a viscosity that varies": equations.varies,
            "a time step that changes": equations.time_step is not fixed_time_step,
        }
        for name, given in refused.items():
            if given:
                raise UserError(f"an immersed boundary does not serve {name}; choose method direct_forcing")

    def prepare(self, params: Params, parts: jax.Array, project: "Project") -> Hold:
        """Return what `hold` needs, for the lengths of time ``(stages,)`` that the stages of a step cover.

        The matrix has one column for each force: the velocity that it, and the pressure that it causes, give the points
        of the outline.
        """
        around, kernels, slip = self._geometry(params, parts.dtype)

        @jax.checkpoint
        def column(force: jax.Array) -> jax.Array:
            return self._read(project(self._spread(force, around, kernels), parts[0])[0], around, kernels)

        matrix = jax.lax.map(column, jnp.eye(2 * self.points, dtype=parts.dtype))
        matrix = (matrix + matrix.T) / 2
        ridge = RIDGE * jnp.trace(matrix) / (2 * self.points)

        def inverse(part: jax.Array) -> jax.Array:
            total = matrix + jnp.diag(ridge + jnp.concatenate([jnp.zeros_like(slip), slip / part]))
            # Friction along the outline may be a thousand times as stiff as pressure across it.
            scale = jax.lax.rsqrt(jnp.diagonal(total))
            factor = jax.scipy.linalg.cho_factor(scale[:, None] * total * scale)
            return scale[:, None] * jax.scipy.linalg.cho_solve(factor, jnp.diag(scale))

        # Its derivative is never asked for: that of a solution follows from the equations.
        inverses = jax.vmap(inverse)(jax.lax.stop_gradient(parts))
        return Hold(inverse=jax.lax.stop_gradient(inverses), ridge=ridge, made_for=_vector(params, parts.dtype))

    def at(self, params: Params, hold: Hold) -> Held:
        """Return the body under the parameters of a step, which may differ from those of the start."""
        around, kernels, slip = self._geometry(params, hold.inverse.dtype)
        is_current = (hold.made_for == _vector(params, hold.inverse.dtype)).all()
        return Held(around, kernels, slip, hold, is_current)

    def _geometry(self, params: Params, dtype) -> tuple[Outline, list[list[jax.Array]], jax.Array]:
        around = outline(self.shape(params), self.pivot(params), self.points, self.domain)
        around = jax.tree.map(lambda f: jnp.asarray(f, dtype), around)
        slip = self._smearing(around) / (uniform(self.viscosity, params, "an immersed boundary") * around.spacing)
        return around, self._kernels(around), slip

    def fluid(self, params: Params, dtype) -> tuple[jax.Array, ...]:
        """Return the fluid fraction phi on the faces of each component, which multiplies what advection carries."""
        grid = self.domain.grid
        fractions = []
        for i in range(2):
            x = [jnp.asarray(p, dtype) for p in positions(i, grid)]
            distance, normal = distance_and_normal(self.shape(params), x)
            lengths = [a.distances if k == i else a.widths for k, a in enumerate(grid.axes)]
            widths = [like(n, grid.along(h, k)) for k, (n, h) in enumerate(zip(normal, lengths, strict=True))]
            across = sum((n * h) ** 2 for n, h in zip(normal, widths, strict=True))
            # In the middle of a body there is no normal, and no fluid.
            across = jnp.where(across > 0, across, min(float(h.min()) for h in lengths) ** 2)
            fraction = fluid_fraction(distance * jax.lax.rsqrt(across))
            if not grid.axes[i].periodic:
                fraction = jnp.pad(fraction, [(1, 1) if k == i else (0, 0) for k in range(2)], constant_values=1)
            fractions.append(fraction)
        return tuple(fractions)

    def hold(
        self,
        velocity: Velocity,
        before: Velocity,
        pressure: jax.Array,
        params: Params,
        held: Held,
        stage: jax.Array,
        part: jax.Array,
        project: "Project",
    ) -> tuple[Velocity, jax.Array, jax.Array]:
        """Return the solenoidal velocity with the body in it, the pressure, and the (angular) momentum that this took.

        Args:
            velocity: at the end of the stage, before projection.
            before: not used.
            pressure: not used.
            params: parameters.
            held: of `at`.
            stage: index of the stage.
            part: length of time that it covers.
            project: from a velocity to the solenoidal one and the pressure.
        """
        around, kernels, pivot = held.around, held.kernels, self.pivot(params)
        arm = [x - c for x, c in zip(around.points, pivot, strict=True)]
        with jax.named_scope("obstacle"):
            velocity, first = project(velocity, part)
            slip = self._read(velocity, around, kernels)
            if self.spin is not None:
                rate = self.spin(params)
                slip = slip - _across_and_along(-rate * arm[1], rate * arm[0], around)
            force = self._forces(-slip, held, stage, part, project)
            pushed = jax.tree.map(jnp.add, velocity, self._spread(force, around, kernels))
            velocity, second = project(pushed, part)
            x, y = _along_axes(force, around)
        return velocity, first + second, -jnp.stack([x.sum(), y.sum(), jnp.sum(arm[0] * y - arm[1] * x)])

    def _forces(
        self, change: jax.Array, held: Held, stage: jax.Array, part: jax.Array, project: "Project"
    ) -> jax.Array:
        """Return the impulses at the outline that change the velocity there, (2 n,).

        At the parameters of the start the inverse that is kept gives them. At others it preconditions conjugate
        gradients, which take some projections more. Derivatives are those of the solution of the equations either way.
        """
        nothing = jnp.zeros_like(held.slip)
        diagonal = held.hold.ridge + jnp.concatenate([nothing, held.slip / part])
        inverse = held.hold.inverse[stage]

        def moved(force: jax.Array) -> jax.Array:
            pushed, _ = project(self._spread(force, held.around, held.kernels), part)
            return self._read(pushed, held.around, held.kernels) + diagonal * force

        def solve(matvec: Callable[[jax.Array], jax.Array], b: jax.Array) -> jax.Array:
            changed = preconditioned(matvec, b, lambda r: inverse @ r, ~held.is_current)
            return jnp.where(held.is_current, inverse @ b, changed)

        return jax.lax.custom_linear_solve(moved, change, solve, symmetric=True)

    def _kernels(self, around: Outline) -> list[list[jax.Array]]:
        """Return, for each component and axis, ``(n, faces)`` weights of its inner faces at each point."""
        return [
            [
                weights(in_spacings(x, p.ravel(), axis), p.size, axis)
                for x, p, axis in zip(around.points, positions(i, self.domain.grid), self.domain.grid.axes, strict=True)
            ]
            for i in range(2)
        ]

    def _read(self, velocity: Velocity, around: Outline, kernels: Sequence) -> jax.Array:
        """Return the velocity across the outline at its points, followed by that along it."""
        x, y = (
            jnp.sum((first @ inside(f, i, self.domain.grid)) * second, axis=1)
            for i, (f, (first, second)) in enumerate(zip(velocity, kernels, strict=True))
        )
        return _across_and_along(x, y, around)

    def _spread(self, force: jax.Array, around: Outline, kernels: Sequence) -> Velocity:
        """Return the velocity that impulses across and along the outline give to the faces."""
        grid = self.domain.grid
        components = _along_axes(force, around)
        return tuple(
            with_zero_ends((first * f[:, None]).T @ second / like(f, control_volumes(i, grid)), i, grid)
            for i, (f, (first, second)) in enumerate(zip(components, kernels, strict=True))
        )

    def _smearing(self, around: Outline) -> jax.Array:
        """Return the length kappa h at each point, which for inclined outlines is between those of both axes."""
        length = jnp.zeros_like(around.points[0])
        for k, (x, n, axis) in enumerate(zip(around.points, around.normals, self.domain.grid.axes, strict=True)):
            # What flows along the outline lives at the centers of the axis across it.
            width = jnp.interp(x, like(x, axis.centers), like(x, axis.widths))
            length = length + n**2 * width * smearing(
                in_spacings(x, positions(1 - k, self.domain.grid)[k].ravel(), axis)
            )
        return length


def points_around(perimeter: float, spacing: float) -> int:
    """Return the number of points for an outline of the given length on cells of the given width."""
    return math.ceil(perimeter / (POINT_DISTANCE * spacing))


def _vector(params: Params, dtype) -> jax.Array:
    return jax.lax.stop_gradient(
        jnp.concatenate([jnp.ravel(jnp.asarray(leaf, dtype)) for leaf in jax.tree.leaves(params)])
    )


def _across_and_along(x: jax.Array, y: jax.Array, around: Outline) -> jax.Array:
    a, b = around.normals
    return jnp.concatenate([a * x + b * y, a * y - b * x])


def _along_axes(force: jax.Array, around: Outline) -> tuple[jax.Array, jax.Array]:
    a, b = around.normals
    across, along = jnp.split(force, 2)
    return a * across - b * along, b * across + a * along
