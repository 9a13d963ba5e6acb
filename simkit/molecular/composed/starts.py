"""Starting positions: sites of a lattice, atoms of a structure, given or random positions."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.scope import Formula, precision_of
from simkit.core.settings import Settings
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular.composed.cells import Frame
from simkit.molecular.composed.names import Names
from simkit.molecular.composed.settings import LATTICES
from simkit.molecular.structures.extended_xyz import parse_extended_xyz
from simkit.molecular.structures.structures import Structure


@dataclasses.dataclass(frozen=True)
class Places:
    """Starting positions before disorder is added.

    Attributes:
        count: number of positions; ``None`` for random ones, one for each particle.
        dimension: dimension of space; ``None`` if positions do not fix it.
        symbols: chemical symbol of each atom of a structure; otherwise ``None``.
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
    symbols: tuple[str, ...] | None = None
    own: Frame | None = None
    is_oblique: bool = False
    periodic: tuple[bool, ...] | None = None
    at: Callable[[Params], jax.Array] | None = None
    fractions: np.ndarray | None = None
    where: str | None = None
    nearest: float | None = None


def check_start(settings: Settings) -> None:
    """Refuse settings of a start that contradict each other.

    Raises:
        UserError: if a key has no effect; names it.
    """
    ways = [key for key in ("lattice", "structure", "positions") if settings[key] is not None]
    if len(ways) > 1:
        raise settings.refuse(ways[1], f"and {ways[0]} both give starting positions; keep one of them")
    way = ways[0] if ways else "random"
    needs = {
        "repeats": ("lattice",),
        "spacing": ("lattice",),
        "arrangement": ("lattice",),
        "frame": ("structure",),
        "radius": ("random",),
        "separation": ("random",),
    }
    for key, allowed in needs.items():
        if key in settings.given and way not in allowed:
            raise settings.refuse(key, f"has no effect on a start by {way}; leave it out")
    if way == "lattice" and settings["repeats"] is None:
        raise settings.refuse("repeats", "is missing; give the number of unit cells along each axis")


def lattice_or_structure(settings: Settings) -> tuple[np.ndarray, np.ndarray, int] | Structure | None:
    """Return sites, edges and dimension of a lattice at spacing 1, or a structure, or ``None``.

    Raises:
        UserError: if there is no such lattice of so many axes, or the text is no structure.
    """
    if settings["lattice"] is not None:
        build, dimension = LATTICES[settings["lattice"]]
        if len(settings["repeats"]) != dimension:
            raise settings.refuse("repeats", f"has {len(settings['repeats'])} entries; write {dimension}")
        # Concrete numbers, even if the system is made inside a traced function.
        with jax.enable_x64(True), jax.ensure_compile_time_eval():
            lattice = build(settings["repeats"])
            edges = np.diag(np.asarray(lattice.cell))
            return np.asarray(lattice.position) / edges, edges, dimension
    if settings["structure"] is None:
        return None
    frames = parse_extended_xyz(settings["structure"], settings.path("structure"))
    if settings["frame"] >= len(frames):
        raise settings.refuse("frame", f"= {settings['frame']}, and the structure has {len(frames)}; choose another")
    return frames[settings["frame"]]


def places_of(settings: Settings, found: Any, names: Names) -> Places:
    """Return the starting positions that settings describe.

    Args:
        settings: settings of the start.
        found: result of `lattice_or_structure`.
        names: names that formulas may use.
    """
    if isinstance(found, Structure):
        return _of_structure(found, settings.path("structure"))
    if found is not None:
        fractions, edges, dimension = found
        said = settings["spacing"]
        spacing = None if said is None else names.number(said)
        own = _scaled(edges, spacing)
        at = None if spacing is None else lambda params: jnp.asarray(fractions, own(params).dtype) * own(params)
        return Places(len(fractions), dimension, own=own, at=at, fractions=fractions)
    if settings["positions"] is not None:
        return _given(settings, names)
    return Places(None, None)


def _of_structure(structure: Structure, where: str) -> Places:
    position, dimension = structure.position, structure.position.shape[1]
    if not structure.periodic:
        return Places(
            len(structure),
            dimension,
            symbols=structure.symbols,
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
        symbols=structure.symbols,
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


def _given(settings: Settings, names: Names) -> Places:
    rows = settings["positions"]
    if not rows or len({len(row) for row in rows}) > 1:
        raise settings.refuse("positions", "do not all have the same number of coordinates; write [x, y] or [x, y, z]")
    formulas = tuple(tuple(names.number(each) for each in row) for row in rows)

    def at(params: Params) -> jax.Array:
        return jnp.stack([jnp.stack([each.number(params) for each in row]) for row in formulas])

    return Places(len(rows), len(rows[0]), at=at, where=settings.path("positions"))


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
