"""Cells of a system: free space, boxes that repeat along some axes or all, and cells of any shape."""

import dataclasses
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.scope import Formula
from simkit.core.settings import Settings
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.composed.names import Names
from simkit.molecular.spaces import Cell

ORTHORHOMBIC = "which needs an orthorhombic cell; give cell.lengths"

type Frame = Callable[[Params], jax.Array]

# Volume of a cell, relative to that of a block with edges of the same lengths, below which its vectors lie in a plane.
FLAT = 1e-6


@dataclasses.dataclass(frozen=True)
class SystemCell:
    """A cell and the axes along which it repeats.

    Attributes:
        frame: ``params -> `` sides (d,) or lattice vectors as rows (d, d), all finite; ``None`` without a cell.
        periodic: along which axes it repeats, d booleans.
    """

    frame: Frame | None
    periodic: tuple[bool, ...]

    @property
    def dimension(self) -> int:
        """Dimension of space, d."""
        return len(self.periodic)

    @property
    def is_free(self) -> bool:
        """Whether nothing repeats."""
        return not any(self.periodic)

    @property
    def is_closed(self) -> bool:
        """Whether it repeats along all axes, and so has a volume."""
        return all(self.periodic)

    def cell(self, params: Params) -> Cell:
        """Return the cell for `simkit.molecular.spaces.of_cell`: sides along which it does not repeat are infinite."""
        if self.frame is None or self.is_free:
            return None
        frame = self.frame(params)
        return frame if self.is_closed else jnp.where(jnp.asarray(self.periodic), frame, jnp.inf)

    def vectors(self, params: Params) -> jax.Array:
        """Return the edges as rows, all finite, (d, d)."""
        assert self.frame is not None  # asked for only where there is one
        return spaces.lattice_vectors(self.frame(params))


def cell_of(
    settings: Settings | None,
    names: Names,
    own_frame: Frame | None,
    dimension: int,
    count: int,
    *,
    is_oblique: bool,
    repeats: tuple[bool, ...] | None,
) -> SystemCell:
    """Return the cell of a system.

    Args:
        settings: settings of the cell; ``None`` if none are given.
        names: names that formulas may use.
        own_frame: edges of the cell of a lattice or structure; ``None`` if there is none.
        dimension: dimension of space.
        count: number of particles.
        is_oblique: whether ``own_frame`` gives lattice vectors instead of sides.
        repeats: along which axes the cell of a structure repeats, d booleans; ``None`` for all.

    Raises:
        UserError: if settings contradict each other or the dimension.
    """
    if settings is None:
        axes = repeats or (own_frame is not None,) * dimension
        if is_oblique and not all(axes):
            raise UserError(f"start.structure: its cell is periodic along some axes only, {ORTHORHOMBIC}")
        return SystemCell(own_frame, axes)
    ways = [key for key in ("lengths", "vectors", "density") if settings[key] is not None]
    if len(ways) > 1:
        raise settings.refuse(ways[1], f"and {ways[0]} both give the size; keep one of them")
    periodic = settings["periodic"] if repeats is None or "periodic" in settings.given else repeats
    axes = (periodic,) * dimension if isinstance(periodic, bool) else periodic
    for key in ("lengths", "vectors", "shape", "periodic", "images"):
        value = settings[key]
        if isinstance(value, tuple) and len(value) != dimension:
            raise settings.refuse(key, f"has {len(value)} entries, and space has {dimension} dimensions; write as many")
    if settings["shape"] is not None and not settings["density"]:
        raise settings.refuse("shape", "has an effect with a density only; give cell.density, or leave it out")
    frame = own_frame
    if settings["lengths"] is not None:
        sides = tuple(names.number(each) for each in settings["lengths"])
        frame = lambda params: jnp.stack([side.number(params) for side in sides])  # noqa: E731
    elif settings["vectors"] is not None:
        frame = _rows(settings, names, dimension)
    elif settings["density"] is not None:
        frame = _by_density(settings, names.number(settings["density"]), own_frame, dimension, count)
    if frame is None and any(axes):
        raise UserError("cell has no size; give cell.lengths, cell.vectors or cell.density, or leave the cell out")
    is_own = settings["lengths"] is None and settings["shape"] is None
    if any(axes) and not all(axes) and (settings["vectors"] is not None or (is_own and is_oblique)):
        raise settings.refuse("periodic", f"is true along some axes only, {ORTHORHOMBIC}")
    return SystemCell(frame, axes)


def refuse_no_volume(cell: SystemCell, params: Params) -> None:
    """Refuse a cell without volume.

    Args:
        cell: the cell.
        params: concrete parameters.

    Raises:
        UserError: naming its edges.
    """
    if cell.frame is None:
        return
    frame = np.asarray(cell.frame(params))
    rows = np.diag(frame) if frame.ndim == 1 else frame
    sizes = np.linalg.norm(rows, axis=1)
    # Vectors may be left-handed; sides are above zero.
    spans = np.isfinite(rows).all() and abs(np.linalg.det(rows)) > FLAT * np.prod(sizes)
    if not spans or (frame.ndim == 1 and not (frame > 0).all()):
        edges = "; ".join(", ".join(f"{number:g}" for number in row) for row in np.atleast_2d(frame))
        raise UserError(
            f"the cell has no volume, with the {'sides' if frame.ndim == 1 else 'vectors'} {edges}; give lengths, a "
            "density or a spacing above zero, or vectors that span the space"
        )


def _rows(settings: Settings, names: Names, dimension: int) -> Frame:
    rows = settings["vectors"]
    if any(len(row) != dimension for row in rows):
        raise settings.refuse("vectors", f"are not {dimension} rows of {dimension} components; write as many")
    formulas = tuple(tuple(names.number(each) for each in row) for row in rows)
    return lambda params: jnp.stack([jnp.stack([each.number(params) for each in row]) for row in formulas])


def _by_density(settings: Settings, density: Formula, own_frame: Frame | None, dimension: int, count: int) -> Frame:
    """Return edges of the given shape, with the volume that the density requires."""
    shape = settings["shape"]

    def frame(params: Params) -> jax.Array:
        value = density.number(params)
        if shape is None and own_frame is not None:
            edges = own_frame(params)
            volume = spaces.of_cell(edges, dimension).volume
            return edges * _root(count / (value * volume), dimension)
        sides = np.ones(dimension) if shape is None else np.asarray(shape)
        sides = jnp.asarray(sides / math.prod(sides) ** (1 / dimension), value.dtype)
        return sides * _root(count / value, dimension)

    return frame


def _root(value: jax.Array, dimension: int) -> jax.Array:
    return jnp.sqrt(value) if dimension == 2 else value ** (1 / 3)
