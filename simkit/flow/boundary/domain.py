"""A grid with what happens on each of its sides."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from simkit.errors import UserError, nearest
from simkit.flow.grid import Axis, Grid

type Velocity = tuple[jax.Array, ...]
type Sides = tuple[str, str]
type SideVelocity = tuple[jax.Array | float, ...]
type BoundaryVelocity = tuple[tuple[SideVelocity, SideVelocity] | None, ...]

KINDS = ("wall", "free_slip", "inflow", "outflow")
WALL_SLOPES = ("parabola", "symmetric")


@dataclasses.dataclass(frozen=True, eq=False)
class Domain:
    """A staggered grid and the kind of its sides.

    ==========  =============================================  ==================================
    kind        velocity through the side                      velocity along the side
    ==========  =============================================  ==================================
    wall        0                                              that of the wall
    free_slip   0                                              no shear
    inflow      the given profile                              the given profile
    outflow     carried out by the mean outflow (Orlanski);    no change across the side
                all inflow leaves through it, to round-off
    ==========  =============================================  ==================================

    Velocities on the sides are traced: ``boundary[axis] = (lower, upper)``, each a tuple of one number or array for
    every component; arrays have one entry along the axis. A periodic axis has ``None``.

    The friction on sides that prescribe the velocity, and the diffusion through those that give a scalar a value, come
    from the slope between the value f_0 on the side and the nearest points, at the distances a and b::

        parabola    that of the parabola through f_0, f_a and f_b, on the side
        symmetric   (f_a - f_0)/a

    Both are exact for Couette flow on any grid, and solutions are of second order with both. The parabola is exact for
    Poiseuille flow on equal cells, where the symmetric slope leaves an error of h^2/4, and is the better one for steady
    flow, oscillating layers and heat. With the symmetric slope friction is self-adjoint: it takes from the energy the
    sum of the squares of all slopes, whatever the flow. That is the better one for small waves that live from the
    balance of energy, such as those of Tollmien and Schlichting. See docs/flow_validation.md.

    Attributes:
        grid: the grid.
        sides: for each axis the kinds of its lower and upper side, or ``None`` where it is periodic.
        wall_slope: "parabola" or "symmetric".

    Reference, for the outflow: Orlanski, J. Comput. Phys. 21, 251 (1976), doi:10.1016/0021-9991(76)90023-1.
    """

    grid: Grid
    sides: tuple[Sides | None, ...]
    wall_slope: str = "parabola"

    def bounded(self) -> list[int]:
        """Return the axes that are not periodic."""
        return [i for i, sides in enumerate(self.sides) if sides is not None]

    def kind(self, axis: int, side: int) -> str | None:
        """Return the kind of the lower (0) or upper (1) side of an axis; None if it is periodic."""
        pair = self.sides[axis]
        return None if pair is None else pair[side]

    def of_kind(self, kind: str) -> list[tuple[int, int]]:
        """Return (axis, 0 or 1) of the lower and upper sides of that kind."""
        return [(i, s) for i in self.bounded() for s in (0, 1) if self.kind(i, s) == kind]

    def side_kinds(self) -> np.ndarray:
        """Return the kinds of the left, right, lower and upper side (4,), for pictures of the plane of x and y."""
        return np.array([kind for pair in self.sides[:2] for kind in (pair or ("periodic", "periodic"))])

    def prescribes(self, axis: int, side: int) -> bool:
        """Return whether the velocity is prescribed on a side: the flow sticks to a wall, and enters as told."""
        return self.kind(axis, side) in ("wall", "inflow")


def domain(axes: tuple[Axis, ...], sides: tuple[Sides | None, ...], wall_slope: str = "parabola") -> Domain:
    """Return the domain with the given axes and sides.

    Args:
        axes: two or three axes.
        sides: the kinds of the lower and upper side of each bounded axis; ``None`` for a periodic one.
        wall_slope: "parabola" or "symmetric", see `Domain`.

    Raises:
        UserError: if a kind or slope is unknown, if a periodic axis has sides or a bounded one has none, or if what
            flows in cannot flow out.
    """
    if len(axes) not in (2, 3) or len(sides) != len(axes):
        raise UserError(f"{len(axes)} axes and {len(sides)} pairs of sides; give two or three axes, and sides for each")
    for i, (axis, pair) in enumerate(zip(axes, sides, strict=True)):
        name = "xyz"[i]
        if axis.periodic != (pair is None):
            raise UserError(f"axis {name} is {'periodic' if axis.periodic else 'bounded'} but sides[{i}] = {pair!r}")
        for kind in pair or ():
            if kind not in KINDS:
                raise UserError(f"side '{kind}' of axis {name} is unknown{nearest(kind, list(KINDS))}")
    if wall_slope not in WALL_SLOPES:
        raise UserError(
            f"wall_slope = {wall_slope!r} is unknown{nearest(str(wall_slope), list(WALL_SLOPES))}; "
            f"choose one of {', '.join(WALL_SLOPES)}"
        )
    built = Domain(Grid(tuple(axes)), tuple(sides), wall_slope)
    ways = bool(built.of_kind("inflow")), bool(built.of_kind("outflow"))
    if ways == (True, False):
        raise UserError("inflow without outflow: what flows in cannot leave; make one side an outflow")
    if ways == (False, True):
        raise UserError("outflow without inflow: nothing can leave; make one side an inflow")
    return built


def same(one: Domain, other: Domain) -> bool:
    """Return whether two domains have the same axes, sides and slopes at walls."""
    if one is other:
        return True
    if (one.sides, one.wall_slope, one.grid.cells) != (other.sides, other.wall_slope, other.grid.cells):
        return False
    axes = zip(one.grid.axes, other.grid.axes, strict=True)
    return all(a.periodic == b.periodic and np.array_equal(a.faces, b.faces) for a, b in axes)


def no_motion(domain: Domain) -> BoundaryVelocity:
    """Return the boundary velocity of sides that rest."""
    rest = (0.0,) * domain.grid.dimension
    return tuple(None if sides is None else (rest, rest) for sides in domain.sides)


def prescribe(velocity: Velocity, boundary: BoundaryVelocity, domain: Domain) -> Velocity:
    """Return the velocity with what the sides prescribe through them, and as much flowing out as in.

    Args:
        velocity: any velocity; its values on outflow sides are shifted by one constant.
        boundary: velocity on the sides.
        domain: the domain.
    """
    components = list(velocity)
    for axis, side in domain.of_kind("inflow"):
        entering = on_side(boundary, axis, side)[axis]
        face = jnp.broadcast_to(like(velocity[axis], entering), _face_shape(domain, axis))
        components[axis] = _set_end(components[axis], face, axis, side)
    outflows = domain.of_kind("outflow")
    if outflows:
        surplus = sum(_flux(components, axis, side, domain) for axis in domain.bounded() for side in (0, 1))
        area = sum(_area(domain, axis) for axis, _ in outflows)
        for axis, side in outflows:
            outward = 1 if side else -1
            face = end(components[axis], axis, side) - outward * surplus / area
            components[axis] = _set_end(components[axis], face, axis, side)
    return tuple(components)


def on_side(boundary: BoundaryVelocity, axis: int, side: int) -> SideVelocity:
    """Return the velocity on one side of a bounded axis."""
    pair = boundary[axis]
    assert pair is not None, "a periodic axis has no sides"
    return pair[side]


def mean_outflow(velocity: Velocity, axis: int, side: int, domain: Domain) -> jax.Array:
    """Return the mean velocity outward through one side."""
    return _flux(velocity, axis, side, domain) / _area(domain, axis)


def end(f: jax.Array, axis: int, side: int) -> jax.Array:
    """Return the first (side 0) or last (side 1) layer of an array along an axis."""
    size = f.shape[axis]
    return jax.lax.slice_in_dim(f, size - 1 if side else 0, size if side else 1, axis=axis)


def like(f: jax.Array, values) -> jax.Array:
    """Return constants in the working precision of ``f``."""
    return jnp.asarray(values, dtype=f.dtype)


def _set_end(f: jax.Array, face: jax.Array, axis: int, side: int) -> jax.Array:
    return jax.lax.dynamic_update_slice_in_dim(f, face, f.shape[axis] - 1 if side else 0, axis=axis)


def _flux(velocity, axis: int, side: int, domain: Domain) -> jax.Array:
    """Return the volume per time that leaves through one side."""
    face = end(velocity[axis], axis, side)
    for other, a in enumerate(domain.grid.axes):
        if other != axis:
            face = face * like(face, domain.grid.along(a.widths, other))
    return jnp.sum(face) * (1 if side else -1)


def _area(domain: Domain, axis: int) -> float:
    return math.prod(a.length for i, a in enumerate(domain.grid.axes) if i != axis)


def _face_shape(domain: Domain, axis: int) -> tuple[int, ...]:
    return tuple(1 if i == axis else n for i, n in enumerate(domain.grid.cells))
