"""Starting positions: sites of a lattice, atoms of a structure, given or random positions."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.scope import Formula, precision_of
from simkit.core.parameter import POSITIVE
from simkit.core.parts import part
from simkit.core.settings import Settings, formula, number, several, text, whole, word
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular.composed.cells import Frame
from simkit.molecular.composed.names import Names
from simkit.molecular.structures import lattices
from simkit.molecular.structures.extended_xyz import parse_extended_xyz
from simkit.molecular.structures.structures import Structure

LATTICES = {
    "square": (lattices.square, 2),
    "triangular": (lattices.triangular, 2),
    "honeycomb": (lattices.honeycomb, 2),
    "face_centered_cubic": (lattices.face_centered_cubic, 3),
    "hexagonal_close_packed": (lattices.hexagonal_close_packed, 3),
    "diamond": (lattices.diamond, 3),
}


@dataclasses.dataclass(frozen=True)
class Places:
    """Starting positions before disorder is added.

    Attributes:
        count: number of positions; ``None`` for random ones, one for each particle.
        dimension: dimension of space; ``None`` if positions do not fix it.
        structure: the structure whose atoms they are; otherwise ``None``.
        lattice: name of the lattice and unit cells along each axis; otherwise ``None``.
        arrangement: seed of a random order of the species; ``None`` for one species after the other.
        own: edges of the cell of a lattice or structure; ``None`` if there is none.
        is_oblique: whether ``own`` gives lattice vectors instead of sides.
        periodic: along which axes ``own`` repeats, d booleans; ``None`` for all.
        at: ``params -> (N, d)``, positions given by coordinates; ``None`` if they are fractions of a cell.
        fractions: positions in units of the edges of a cell, (N, d); otherwise ``None``.
        where: path of positions that may coincide; ``None`` for those of a lattice and random ones.
        nearest: mean distance of nearest neighbors, of a structure in free space; otherwise ``None``.
    """

    count: int | None
    dimension: int | None
    structure: Structure | None = None
    lattice: tuple[str, tuple[int, ...]] | None = None
    arrangement: int | None = None
    own: Frame | None = None
    is_oblique: bool = False
    periodic: tuple[bool, ...] | None = None
    at: Callable[[Params], jax.Array] | None = None
    fractions: np.ndarray | None = None
    where: str | None = None
    nearest: float | None = None


@part(
    keys={
        "lattice": word("the lattice whose sites they start on", tuple(LATTICES)),
        "repeats": several(whole("number of unit cells", low=1), "unit cells of the lattice along each axis", (2, 3)),
        "spacing": formula("distance of nearest neighbors; left out if the cell fixes it", None, unit="length"),
        "arrangement": whole(
            "which random arrangement of several species on the sites; left out, one species follows the other", None
        ),
    }
)
def lattice(settings: Settings, names: Names) -> Places:
    """Return the sites of a lattice.

    Raises:
        UserError: if the lattice has another number of axes.
    """
    build, dimension = LATTICES[settings["lattice"]]
    if len(settings["repeats"]) != dimension:
        raise settings.refuse("repeats", f"has {len(settings['repeats'])} entries; write {dimension}")
    # Concrete numbers, even if the system is made inside a traced function.
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        sites = build(settings["repeats"])
        edges = np.diag(np.asarray(sites.cell))
        fractions = np.asarray(sites.position) / edges
    spacing = None if settings["spacing"] is None else names.number(settings["spacing"])
    frame = _scaled(edges, spacing)
    return Places(
        len(fractions),
        dimension,
        own=frame,
        at=None if spacing is None else lambda params: jnp.asarray(fractions, frame(params).dtype) * frame(params),
        fractions=fractions,
        lattice=(settings["lattice"], settings["repeats"]),
        arrangement=settings["arrangement"],
    )


@part(
    keys={
        "structure": text('extended XYZ text, as of `{ file = "silicon.xyz" }`'),
        "frame": whole("which frame of the structure, from 0; -1 is the last", -1, low=-1),
    }
)
def structure(settings: Settings, names: Names) -> Places:
    """Return the atoms of a structure.

    Raises:
        UserError: if the text is no structure, or has no such frame.
    """
    del names
    frames = parse_extended_xyz(settings["structure"], settings.path("structure"))
    if settings["frame"] >= len(frames):
        raise settings.refuse("frame", f"= {settings['frame']}, and the structure has {len(frames)}; choose another")
    return _of_structure(frames[settings["frame"]], settings.path("structure"))


@part(
    keys={
        "positions": several(
            several(formula("a coordinate", unit="length"), "a place", (2, 3)), "places, in the order of the species"
        )
    }
)
def positions(settings: Settings, names: Names) -> Places:
    """Return positions given by coordinates.

    Raises:
        UserError: if they have different numbers of coordinates, or there are none.
    """
    rows = settings["positions"]
    if not rows or len({len(row) for row in rows}) > 1:
        raise settings.refuse("positions", "do not all have the same number of coordinates; write [x, y] or [x, y, z]")
    formulas = tuple(tuple(names.number(each) for each in row) for row in rows)

    def at(params: Params) -> jax.Array:
        return jnp.stack([jnp.stack([each.number(params) for each in row]) for row in formulas])

    return Places(len(rows), len(rows[0]), at=at, where=settings.path("positions"))


@part(
    keys={
        "radius": formula(
            "radius of the disk or ball of random positions, in free space", None, unit="length", bounds=POSITIVE
        ),
        "separation": number(
            "least distance of random positions from each other and from walls, in mean diameters; 0 allows overlap",
            0.8,
            (0.0, 2.0),
        ),
    }
)
def random(settings: Settings, names: Names) -> Places:
    """Return that positions are random, in the cell or a ball."""
    del settings, names
    return Places(None, None)


def _of_structure(structure: Structure, where: str) -> Places:
    position, dimension = structure.position, structure.position.shape[1]
    if not structure.periodic:
        return Places(
            len(structure),
            dimension,
            structure=structure,
            at=lambda params: jnp.asarray(position, precision_of(params)),
            where=where,
            nearest=_mean_nearest_distance(position),
        )
    vectors = structure.cell
    assert vectors is not None  # a periodic structure has one
    sides = np.diag(vectors)
    is_oblique = bool((vectors != np.diag(sides)).any() or (sides < 0).any())
    edges = vectors if is_oblique else sides
    axes = None if structure.periodic is True else tuple(np.broadcast_to(structure.periodic, dimension).tolist())
    return Places(
        len(structure),
        dimension,
        structure=structure,
        own=lambda params: jnp.asarray(edges, precision_of(params)),
        is_oblique=is_oblique,
        periodic=axes,
        fractions=position @ np.linalg.inv(vectors),
        where=where,
    )


def _mean_nearest_distance(position: np.ndarray) -> float:
    """Return the mean distance of nearest neighbors, 1 if it is zero or there is one particle."""
    from scipy.spatial import KDTree

    apart = np.asarray(KDTree(position).query(position, k=2)[0])[:, 1].mean()
    return float(apart) if np.isfinite(apart) and apart > 0 else 1.0


def _scaled(edges: np.ndarray, spacing: Formula | None) -> Frame:
    def frame(params: Params) -> jax.Array:
        one = jnp.ones((), precision_of(params)) if spacing is None else spacing.number(params)
        return jnp.asarray(edges, one.dtype) * one

    return frame


def carried(fractions: jax.Array, frame: jax.Array) -> jax.Array:
    """Return positions in a cell from their fractions of its edges, (N, d).

    Args:
        fractions: (N, d).
        frame: sides (d,), or lattice vectors as rows (d, d).
    """
    return fractions * frame if frame.ndim == 1 else fractions @ frame


def refuse_too_full(filled: float, separation: float, where: str) -> None:
    """Refuse random positions for which there is no room, before the time is spent on looking for them.

    Args:
        filled: result of `simkit.molecular.composed.random_places.RandomPlaces.filled`.
        separation: required least distance, relative to the mean diameter.
        where: path of the key.

    Raises:
        UserError: if there is no room.
    """
    if filled > 1:
        raise UserError(
            f"{where} = {separation:g} leaves no room for that many particles: balls of {separation:g} times their "
            f"diameters would fill {filled:.3g} times the volume; lower it, the number of particles or their "
            "diameters, or enlarge the cell"
        )


def refuse_too_dense(closest: float, separation: float, where: str) -> None:
    """Refuse random positions that overlap because the density is too high.

    Args:
        closest: least distance of a pair, or of a particle and a wall, relative to the required one.
        separation: required least distance, relative to the mean diameter.
        where: path of the key.

    Raises:
        UserError: if positions overlap.
    """
    if closest < 1:
        raise UserError(
            f"{where} = {separation:g} leaves no room for that many particles: two, or one and a wall, are "
            f"{closest * separation:.3g} diameters apart; lower it, the number of particles or their diameters, or "
            "enlarge the cell"
        )
