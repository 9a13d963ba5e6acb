"""Tersoff potentials of several species, read from files of LAMMPS: one entry for each three elements."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from simkit.core.files import read_text
from simkit.core.parts import part
from simkit.core.settings import line, named, text
from simkit.errors import UserError, nearest, one_line
from simkit.molecular.interactions.interaction import Atoms, Interaction, ManyBody, viewed
from simkit.molecular.interactions.tersoff import OF_PAIR, SHARED, diamond_bond, tersoff

# Numbers of an entry in their order; the center R and half the width D of the fading end become its ends.
COLUMNS = ("m", "gamma", "excess_decay", "c", "d", "h", "n", "beta", "attraction_decay", "attraction")
COLUMNS += ("center", "half_width", "repulsion_decay", "repulsion")
_FILE = "whose file says how far it reaches, and which acts between all particles"


class TersoffEntries(NamedTuple):
    """Entries of a file for some elements.

    Attributes:
        params: of `simkit.molecular.interactions.tersoff` with species: (S, S) of pairs, (S, S, S) of three atoms.
        bond: lengths and stiffnesses of the bonds of each element in a diamond crystal, (S,) each.

    Example:
        >>> silicon = "Si Si Si 3 1 0 100390 16.217 -.59825 .78734 1.1e-6 1.73222 471.18 2.85 .15 2.4799 1830.8"
        >>> entries = molecular.interactions.parse_tersoff(silicon, ["Si"])
        >>> isinstance(entries, molecular.interactions.TersoffEntries), entries.params["inner"].shape
        (True, (1, 1, 1))
    """

    params: dict[str, np.ndarray]
    bond: tuple[np.ndarray, np.ndarray]


def parse_tersoff(content: str, elements: Sequence[str], where: str = "tersoff") -> TersoffEntries:
    """Return the entries of a file of LAMMPS, ``pair_style tersoff``, for elements.

    An entry of the elements i, j and k has the numbers of a bond of j with i where k is j, and those by which the bond
    of k with i weakens that of j: ``gamma (1 + c^2 / d^2 - c^2 / (d^2 + (cos theta - h)^2)) exp((lambda3 (r_ij -
    r_ik))^m)``. Energies and lengths stay in the units of the file, mostly eV and angstrom.

    Args:
        content: text of the file.
        elements: of the species, in their order.
        where: name of the file, for messages.

    Raises:
        UserError: if a row is no entry, or an entry that is needed is missing; names it.

    Example:
        >>> row = "Si Si Si 3 1 0 100390 16.217 -.59825 .78734 1.1e-6 1.7322 471.18 2.85 .15 2.4799 1830.8"
        >>> entries = molecular.interactions.parse_tersoff(row, ["Si"])
        >>> print(f"{entries.params['outer'][0, 0, 0]:.1f} A, bond of {entries.bond[0][0]:.3f} A")
        3.0 A, bond of 2.352 A
    """
    entries = _entries(content, where)
    needed = [(i, j, k) for i in elements for j in elements for k in elements]
    known = tuple({name for names in entries for name in names})
    for names in needed:
        if names not in entries:
            hint = next((nearest(name, known) for name in names if name not in known), "")
            raise UserError(f"{where}: there is no entry {' '.join(names)}", hint or "; add it to the file")
        if entries[names][0] not in (1, 3):
            raise UserError(
                f"{where}: entry {' '.join(names)}: m = {entries[names][0]:g} is neither 1 nor 3; repair it"
            )
    count = len(elements)
    table = np.array([entries[names] for names in needed]).reshape(count, count, count, len(COLUMNS))
    params = dict(zip(COLUMNS, np.moveaxis(table, -1, 0), strict=True))
    center, half_width = params.pop("center"), params.pop("half_width")
    params |= {"inner": center - half_width, "outer": center + half_width}
    like, every = np.arange(count), np.arange(count)
    alone = {name: value[like, like, like] for name, value in params.items()}
    bond = tuple(np.asarray(each) for each in diamond_bond({name: jnp.asarray(value) for name, value in alone.items()}))
    # Of pairs: the entries whose third element is the second.
    pairs = {name: value[:, every, every] for name, value in params.items() if name not in SHARED}
    pairs |= {f"{name}{OF_PAIR}": params[name][:, every, every] for name in ("inner", "outer")}
    return TersoffEntries({name: params[name] for name in SHARED} | pairs, (bond[0], bond[1]))


def _entries(content: str, where: str) -> dict[tuple[str, ...], list[float]]:
    """Return the numbers of all entries by their three elements."""
    words = [word for row in content.splitlines() for word in row.partition("#")[0].split()]
    size, entries = 3 + len(COLUMNS), dict[tuple[str, ...], list[float]]()
    if not words or len(words) % size:
        raise UserError(f"{where}: {len(words)} words are no entries of {size}; repair the file")
    for first in range(0, len(words), size):
        names, numbers = tuple(words[first : first + 3]), words[first + 3 : first + size]
        try:
            entries[names] = [float(number) for number in numbers]
        except ValueError as error:
            raise UserError(f"{where}: entry {' '.join(names)}: {one_line(str(error), 60)}; repair it") from None
    return entries


@part(
    keys={
        "file": text("file in the format tersoff of LAMMPS"),
        "text": text("its content; by default it is read", None),
        "elements": named("element of a species, where it has another name", line("an element of the file")),
    },
    excludes=dict.fromkeys(("between", "cutoff", "ending", "switch_on", "tail", "method", "skin", "one_four"), _FILE),
)
def tersoff_file(file: str, text: str | None, elements: Mapping[str, str]) -> ManyBody:
    """Return the Tersoff interaction of a file as scenario files name it, of all species."""
    content = read_text(file, "interactions.file") if text is None else text

    def entries(names: Sequence[str]) -> TersoffEntries:
        return parse_tersoff(content, [elements.get(name, name) for name in names], file)

    def made(atoms: Atoms) -> Interaction:
        if unknown := [name for name in elements if name not in atoms.names]:
            raise UserError(f"elements names the species {unknown[0][:64]!r}, and there is none")
        found = entries(atoms.names).params
        return viewed(
            tersoff(species=atoms.species.tolist()),
            lambda x, cell, _: (x, cell, {name: jnp.asarray(value, x.dtype) for name, value in found.items()}),
        )

    # Of all elements of the file, before the species are known.
    rows = _entries(content, file)
    reach = max(row[COLUMNS.index("center")] + row[COLUMNS.index("half_width")] for row in rows.values())
    alone = [parse_tersoff(content, [names[0]], file) for names in rows if len(set(names)) == 1]
    if not alone:
        raise UserError(f"{one_line(file, 60)}: there is no entry of one element, such as Si Si Si; add it")
    lengths, stiffnesses = (np.concatenate([each.bond[index] for each in alone]) for index in range(2))
    return ManyBody(
        made,
        lambda: jnp.asarray(reach, float),
        lambda: (jnp.asarray(lengths, float), jnp.asarray(stiffnesses, float)),
        dimensions=(3,),
        of_one_species=False,
    )
