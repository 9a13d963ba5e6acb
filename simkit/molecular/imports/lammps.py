"""Systems of LAMMPS: a data file and the commands that give its coefficients, as keywords of ``molecular.system``."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simkit.errors import nearest
from simkit.molecular.bonded.topology import molecule
from simkit.molecular.imports.imported import (
    ImportedSystem,
    Terms,
    molecules_from,
    species_settings,
    text_of_positions,
)
from simkit.molecular.imports.lammps_data import (
    STYLES,
    LammpsData,
    Line,
    lines_of,
    mass_of,
    read_atoms,
    read_data,
    read_masses,
    read_velocities,
    types_of,
)
from simkit.molecular.imports.lammps_pairs import PAIR_STYLES, PairCommands, pair_interactions

# Energy of two unit charges at unit distance, by the name of a system of units, with the digits of LAMMPS.
COULOMB = {"lj": 1.0, "real": 332.06371, "metal": 14.399645}
type Tables = Sequence[Mapping[str, Any]]


class Style(NamedTuple):
    """Energy of bonds, angles, dihedrals or impropers by the name of LAMMPS.

    Attributes:
        arguments: names of the coefficients; those of a style with any number of them are left out.
        tables: ``coefficients -> `` tables of settings whose values are numbers, which become parameters.
    """

    arguments: str
    tables: Callable[..., Tables]


def _named(potential: str, /, **values: float) -> dict[str, Any]:
    return {"potential": potential, "values": values}


def _written(energy: str, /, **values: float) -> dict[str, Any]:
    return {"energy": energy, "values": values}


def _degrees(angle: float) -> float:
    return math.radians(angle)


def _periodic(strength: float, periodicity: float, phase: float) -> dict[str, Any]:
    if periodicity not in range(1, 13):
        raise ValueError(f"n = {periodicity:g} is no whole number from 1 to 12")
    return _named("periodic", strength=strength, phase=phase) | {"periodicity": int(periodicity)}


def _signed(strength: float, sign: float, periodicity: float) -> Tables:
    """Return ``K (1 + d cos(n phi))``."""
    if sign not in (1, -1):
        raise ValueError(f"d = {sign:g} is neither 1 nor -1")
    return [_periodic(strength, periodicity, 0.0 if sign == 1 else math.pi)]


def _charmm(strength: float, periodicity: float, phase: float, weight: float) -> Tables:
    if weight:
        raise ValueError(f"the weight {weight:g} of 1-4 pairs is not served; set it to 0")
    return [_periodic(strength, periodicity, _degrees(phase))]


def _fourier(*numbers: float) -> Tables:
    if not numbers or len(numbers) != 1 + 3 * int(numbers[0]):
        raise ValueError("the coefficients are a number m of terms, and K, n and d of each")
    rows = [numbers[at : at + 3] for at in range(1, len(numbers), 3)]
    return [_periodic(strength, periodicity, _degrees(phase)) for strength, periodicity, phase in rows]


FENE = (
    "-stiffness*extent**2/2*log(1 - (r/extent)**2)"
    " + where(r < 2**(1/6)*sigma, 4*epsilon*((sigma/r)**12 - (sigma/r)**6) + epsilon, 0)"
)
OPLS = "(k1*(1 + cos(phi)) + k2*(1 - cos(2*phi)) + k3*(1 + cos(3*phi)) + k4*(1 - cos(4*phi)))/2"
TERMS_OF: dict[str, dict[str, Style]] = {
    "bond": {
        "harmonic": Style("K r0", lambda k, r: [_named("harmonic", stiffness=2 * k, length=r)]),
        "fene": Style(
            "K R0 epsilon sigma",
            lambda k, r, e, s: [_written(FENE, stiffness=k, extent=r, epsilon=e, sigma=s)],
        ),
        "morse": Style(
            "D alpha r0",
            lambda d, a, r: [_written("depth*(1 - exp(-alpha*(r - length)))**2", depth=d, alpha=a, length=r)],
        ),
    },
    "angle": {
        "harmonic": Style("K theta0", lambda k, t: [_named("harmonic", stiffness=2 * k, angle=_degrees(t))]),
        "cosine": Style("K", lambda k: [_written("strength*(1 + cos(theta))", strength=k)]),
        "cosine/squared": Style(
            "K theta0",
            lambda k, t: [_written("strength*(cos(theta) - cosine)**2", strength=k, cosine=math.cos(_degrees(t)))],
        ),
    },
    "dihedral": {
        "harmonic": Style("K d n", _signed),
        "charmm": Style("K n d weight", _charmm),
        "fourier": Style("", _fourier),
        "opls": Style("K1 K2 K3 K4", lambda a, b, c, d: [_written(OPLS, k1=a, k2=b, k3=c, k4=d)]),
        "multi/harmonic": Style(
            "A1 A2 A3 A4 A5",
            # psi = phi - pi, so that odd powers change their sign.
            lambda a, b, c, d, e: [_named("ryckaert_bellemans", c0=a, c1=-b, c2=c, c3=-d, c4=e, c5=0.0)],
        ),
    },
    "improper": {
        "cvff": Style("K d n", _signed),
        "harmonic": Style(
            "K chi0",
            lambda k, t: [_written("stiffness/2*(abs(phi) - angle)**2", stiffness=2 * k, angle=_degrees(t))],
        ),
    },
}
# Commands of a run, which tell nothing about the system.
SKIPPED = {
    *("atom_modify", "comm_modify", "comm_style", "communicate", "dump", "dump_modify", "echo", "info", "log"),
    *("min_modify", "min_style", "minimize", "neighbor", "newton", "package", "print", "processors", "restart", "run"),
    *("reset_timestep", "run_style", "shell", "suffix", "thermo", "thermo_modify", "thermo_style", "timer", "timestep"),
    *("undump", "unfix", "velocity", "write_data", "write_dump", "write_restart"),
}
# Those of `fix` that only move particles or report.
FIXES = {
    *("ave/atom", "ave/chunk", "ave/correlate", "ave/histo", "ave/time", "balance", "langevin", "momentum", "nph"),
    *("npt", "nve", "nve/limit", "nvt", "press/berendsen", "print", "store/state", "temp/berendsen", "temp/csld"),
    *("temp/csvr", "temp/rescale"),
}
# Weights of pairs one, two and three bonds apart, by name; those of LAMMPS where nothing is said come first.
WEIGHTS = {
    "": ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    "amber": ((0.0, 0.0, 0.5), (0.0, 0.0, 5.0 / 6.0)),
    "charmm": ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    "dreiding": ((0.0, 0.0, 1.0), (0.0, 0.0, 1.0)),
    "fene": ((0.0, 1.0, 1.0), (0.0, 1.0, 1.0)),
}


@dataclasses.dataclass
class Commands:
    """What commands say about a system.

    Attributes:
        units: system of units.
        dimension: 2 or 3.
        periodic: along which axes the box repeats.
        atom_style: of the section Atoms; ``None`` where no command gives it.
        dielectric: relative permittivity.
        weights: of pairs one, two and three bonds apart: of pair energies, and of charges.
        weights_line: the command that gives them; ``None`` for the default.
        masses: of types.
        pairs: commands of pair energies.
        styles: of bonds and so on: the line, and the name.
        coefficients: lines ``TYPE numbers`` of bonds and so on, in the order of the commands, by kind.
    """

    units: str = "lj"
    dimension: int = 3
    periodic: tuple[bool, ...] = (True, True, True)
    atom_style: str | None = None
    dielectric: float = 1.0
    weights: tuple[tuple[float, ...], tuple[float, ...]] = WEIGHTS[""]
    weights_line: Line | None = None
    masses: dict[int, float] = dataclasses.field(default_factory=dict)
    pairs: PairCommands = dataclasses.field(default_factory=PairCommands)
    styles: dict[str, tuple[Line, str]] = dataclasses.field(default_factory=dict)
    coefficients: dict[str, list[Line]] = dataclasses.field(default_factory=dict)

    def read(self, line: Line, data: LammpsData) -> None:
        """Take one command.

        Raises:
            UserError: if it is unknown, or says what is not served.
        """
        name, *rest = line.words
        kind, _, what = name.partition("_")
        if kind in TERMS_OF and what in ("style", "coeff"):
            if what == "coeff":
                self.coefficients.setdefault(kind, []).append(line._replace(words=tuple(rest)))
                return
            _refuse_unknown(line, rest, TERMS_OF[kind], f"style of {kind}s")
            self.styles[kind] = line, rest[0]
        elif name in ("pair_style", "pair_coeff", "pair_modify", "kspace_style", "kspace_modify"):
            self.pairs.lines.append(line)
        elif name == "units":
            _refuse_unknown(line, rest, COULOMB, "system of units")
            self.units = rest[0]
        elif name == "atom_style":
            _refuse_unknown(line, rest, STYLES, "style of atoms")
            self.atom_style = rest[0]
        elif name == "dimension":
            self.dimension = line.whole(rest[0] if rest else "", "the dimension", 2, 3)
        elif name == "boundary":
            if len(rest) != 3 or not all(word == "p" or set(word) <= set("fsm") for word in rest):
                line.refuse("the boundary is not three of p, f, s and m; write p where the box repeats")
            self.periodic = tuple(word == "p" for word in rest)
        elif name == "dielectric":
            self.dielectric = line.real(rest[0] if rest else "", "the permittivity")
            if self.dielectric <= 0:
                line.refuse("the permittivity is not above 0; write 1 for that of free space")
        elif name == "mass":
            if len(rest) != 2:
                line.refuse("is not mass, a type, and a number; repair it")
            for number in types_of(line, rest[0], "atom", data):
                self.masses[number] = mass_of(line, rest[1])
        elif name == "special_bonds":
            self._read_weights(line, rest)
        elif name == "read_data":
            if odd := [word for word in rest[1:] if word[0].isalpha() and not word.startswith("extra/")]:
                line.refuse(f"read_data with {odd[0]} is not served; write one data file, and leave the option out")
        elif name == "neigh_modify" and "exclude" in rest:
            line.refuse("pairs that are excluded by hand are not served; leave exclude out")
        elif name == "fix":
            _refuse_unknown(line, rest[2:], FIXES, "fix that may be left out of account")
        elif name not in SKIPPED and name != "neigh_modify":
            known = sorted({*SKIPPED, "units", "special_bonds", "boundary", "pair_style", "pair_coeff", "bond_coeff"})
            line.refuse(f"the command {name[:40]!r} is not read", nearest(name, known))

    def _read_weights(self, line: Line, words: list[str]) -> None:
        self.weights_line = line
        while words:
            word = words.pop(0)
            if word in WEIGHTS:
                self.weights = WEIGHTS[word]
                continue
            if word in ("angle", "dihedral") and words[:1] == ["no"]:
                words.pop(0)
                continue
            if word not in ("lj", "coul", "lj/coul"):
                # Weights alone are those of both, as old scripts have them.
                words.insert(0, word)
                word = "lj/coul"
            if len(words) < 3:
                line.refuse("weights are three numbers after lj, coul or lj/coul, or one of amber, charmm and fene")
            three = tuple(line.real(each, "a weight of bonded pairs") for each in words[:3])
            words = words[3:]
            self.weights = (
                three if word != "coul" else self.weights[0],
                three if word != "lj" else self.weights[1],
            )

    def exclusion(self, *, has_charges: bool) -> tuple[str, float, float]:
        """Return up to how many bonds apart pairs do not interact, and the weights of 1-4 pairs of both energies."""
        rows = self.weights if has_charges else self.weights[:1]
        near = {row[:2] for row in rows}
        fourth = [row[2] for row in rows]
        usual: dict[tuple[float, ...], str] = {(1.0, 1.0): "none", (0.0, 1.0): "bonds", (0.0, 0.0): "angles"}
        pattern = near.pop()
        if near or pattern not in usual or (pattern[1] and any(weight != 1 for weight in fourth)):
            line = self.weights_line or Line("coefficients", 1, ())
            line.refuse(
                "weights of pairs one and two bonds apart that are neither 0 nor 1, or differ for charges, are not "
                "served; write such as special_bonds lj/coul 0 0 0.5"
            )
        if pattern == (0.0, 0.0) and not any(fourth):
            return "dihedrals", 1.0, 1.0
        return usual[pattern], fourth[0], fourth[-1]


def from_lammps(
    data: str | Path, coefficients: str | Path | Mapping[str, str | Sequence[str]] | None = None
) -> ImportedSystem:
    """Return the system of a data file of LAMMPS, with the coefficients of the file and of commands.

    Atom styles: atomic, charge, bond, angle, molecular, full. Pair styles: lj/cut, alone or with coul/cut, coul/debye
    or coul/long; these of charges alone; morse; buck; eam/alloy, eam/fs and tersoff. Bonds: harmonic, fene, morse.
    Angles: harmonic, cosine, cosine/squared. Dihedrals: harmonic, charmm, fourier, opls, multi/harmonic. Impropers:
    cvff, harmonic. Image flags unwrap positions; tilt factors make the cell triclinic. All else is refused,
    never left out.

    Coefficients become parameters, in the meaning of simkit: ``stiffness`` is the second derivative, twice LAMMPS's K,
    and angles are in radians. Units are those of the file: of ``units`` real energies are kcal/mol, lengths angstrom,
    masses g/mol, and the unit of time that makes them one system is 48.89 fs; of metal eV and 10.18 fs.

    Args:
        data: path of the data file, or its text.
        coefficients: commands as in an input script: path, text, or a mapping such as ``{"pair_style": "lj/cut 2.5",
            "pair_coeff": ["1 1 1.0 1.0"]}``. Commands of a run, such as ``thermo`` and ``fix nve``, are skipped.
            ``None``: the data file has all of them, and titles such as ``Bond Coeffs # harmonic``.

    Raises:
        UserError: in one line with the file and its line, if something is wrong, or not served.

    Example:
        >>> dimer = '''a bond across the face of the box
        ...
        ... 2 atoms
        ... 1 bonds
        ... 1 atom types
        ... 1 bond types
        ... -5 5 xlo xhi
        ... -5 5 ylo yhi
        ... -5 5 zlo zhi
        ... 1 0 0 xy xz yz
        ...
        ... Masses
        ...
        ... 1 1.0
        ...
        ... Atoms # bond
        ...
        ... 1 1 1 4.9 0 0
        ... 2 1 1 -4.0 0 0
        ...
        ... Bonds
        ...
        ... 1 1 1 2
        ... '''
        >>> system = molecular.from_lammps(dimer, {"bond_style": "harmonic", "bond_coeff": "1 50.0 1.0"})
        >>> simulation = system.system(relax={"force_tolerance": 1e-5})
        >>> state = simulation.init(simulation.params, jax.random.key(0))
        >>> print(f"{simulation.diagnose(state, simulation.params)['energy']:.4f} = 50 (1.1 - 1)^2")
        0.5000 = 50 (1.1 - 1)^2

    Reference: https://docs.lammps.org/read_data.html.
    """
    contents = read_data(data)
    commands = Commands()
    for line in _command_lines(coefficients):
        commands.read(line, contents)
    style = commands.atom_style or (contents.style or "").split(" ")[0]
    if style not in STYLES:
        problem = f"has atoms of style {style!r}" if style else "does not say the style of its atoms"
        contents.atoms[0].refuse(
            f"the file {problem}; write atom_style among the coefficients", nearest(style, sorted(STYLES))
        )
    if commands.atom_style and contents.style and contents.style.split()[0] != commands.atom_style:
        contents.atoms[0].refuse(f"the file has atoms of style {contents.style}, and atom_style is {style}")
    atoms = read_atoms(contents, style, commands.periodic)
    masses, dimension = read_masses(contents, commands.masses), commands.dimension
    used = np.unique(atoms.kind)
    for number in used.tolist():
        if number not in masses:
            contents.end.refuse(f"type {number} has no mass; add it to the section Masses, or a command mass")
    tags = [_tag(contents.labels.get("atom", {}).get(number, ""), number) for number in used.tolist()]
    names = [tag if tag[0].isalpha() else f"type_{tag}" for tag in tags]
    species = np.searchsorted(used, atoms.kind)
    parameters: dict[str, float] = {}
    terms = [term for kind in TERMS_OF for term in _terms_of(kind, contents, commands, parameters)]
    style_line = commands.pairs.style_line()
    has_charges = style_line is not None and PAIR_STYLES[style_line.words[1]].has_charges
    exclude, *weights = commands.exclusion(has_charges=has_charges)
    bonds = [np.zeros((0, 2), int), *(term.members for term in terms if term.key == "bonds")]
    if not _has_one_four(len(species), np.concatenate(bonds)):
        weights = [1.0, 1.0]
    interactions = pair_interactions(
        commands.pairs, contents, dict(zip(used.tolist(), tags, strict=True)), dict(zip(tags, names, strict=True)),
        parameters, COULOMB[commands.units] / commands.dielectric, weights,
    )  # fmt: skip
    found = molecules_from(species, names, terms, {"exclude": exclude})
    values = {"mass": np.array([masses[number] for number in used.tolist()])[species]}
    if has_charges:
        values["charge"] = atoms.charge
    position, velocity = atoms.position[found.order], read_velocities(contents)
    if dimension == 2 and np.ptp(position[:, 2]) > 0:
        contents.atoms[0].refuse("dimension is 2, and atoms differ in z; make it 3, or move them into one plane")
    settings: dict[str, Any] = {
        "particles": species_settings(found, species, names, values),
        "interactions": interactions,
        "start": {"positions": text_of_positions(position[:, :dimension])},
        "units": commands.units,
        "parameters": parameters,
    }
    if found.molecules:
        settings["molecules"] = found.molecules
    if any(commands.periodic[:dimension]):
        settings["cell"] = _cell(contents, commands)
    return ImportedSystem(settings, found.order, None if velocity is None else velocity[found.order, :dimension])


def _command_lines(coefficients: str | Path | Mapping[str, str | Sequence[str]] | None) -> Iterator[Line]:
    """Yield the commands, each on one line."""
    if coefficients is None:
        return
    if isinstance(coefficients, Mapping):
        for name, written in coefficients.items():
            for each in (written,) if isinstance(written, str) else written:
                yield Line(f"coefficients[{name!r}]", 1, (name, *each.partition("#")[0].split()))
        return
    before: tuple[str, ...] = ()
    for line in lines_of(coefficients, "coefficients"):
        words = (*before, *line.words)
        if words and words[-1] == "&":
            before = words[:-1]
            continue
        before = ()
        if any("$" in word for word in words):
            line.refuse("variables are not read; write the values out")
        if words:
            yield line._replace(words=words)


def _refuse_unknown(line: Line, words: Sequence[str], known: Any, what: str) -> None:
    if not words or words[0] not in known:
        word = words[0][:40] if words else ""
        line.refuse(f"{word!r} is no {what} that is read", nearest(word, sorted(known)))


def _tag(label: str, number: int) -> str:
    """Return the name of a type in names of parameters: its label, or its number."""
    return label if label.isidentifier() and label[0].isalpha() and len(label) < 20 else str(number)


def _terms_of(kind: str, data: LammpsData, commands: Commands, parameters: dict[str, float]) -> Iterator[Terms]:
    """Yield the terms of a kind, each type with parameters of its own."""
    kinds, members, rows = data.terms[f"{kind}s"]
    if not len(kinds):
        return
    title, section = data.coefficients.get(kind, ("", []))
    line, name = commands.styles.get(kind, (section[0] if section else rows[0], title))
    if name not in TERMS_OF[kind]:
        line.refuse(
            f"there are {kind}s of style {name[:40]!r}" if name else f"there are {kind}s, and no {kind}_style",
            nearest(name, sorted(TERMS_OF[kind])),
        )
    style, of_types = TERMS_OF[kind][name], {}
    for each in (*section, *commands.coefficients.get(kind, [])):
        for number in types_of(each, each.words[0] if each.words else "", kind, data):
            of_types[number] = each
    for number in np.unique(kinds).tolist():
        if number not in of_types:
            rows[int(np.argmax(kinds == number))].refuse(
                f"{kind} type {number} has no coefficients; write {kind}_coeff {number} {style.arguments or '...'}"
            )
        at = of_types[number]
        for place, table in enumerate(_tables_of(kind, name, at)):
            yield Terms(
                f"{kind}s",
                {**table, "values": _as_parameters(table["values"], f"{kind}_{number}", place, parameters)},
                members[kinds == number],
            )


def _tables_of(kind: str, name: str, line: Line) -> Tables:
    """Return the tables of settings of the coefficients of a line.

    Raises:
        UserError: if the style does not take them.
    """
    style, numbers = TERMS_OF[kind][name], line.reals(1, f"a coefficient of {kind}s")
    try:
        if style.arguments and len(numbers) != len(style.arguments.split()):
            raise ValueError(f"there are {len(numbers)} coefficients")
        return style.tables(*numbers)
    except ValueError as error:
        line.refuse(f"{error}; style {name} of {kind}s takes {style.arguments or 'm, and K, n and d of each term'}")


def _as_parameters(values: Mapping[str, float], prefix: str, place: int, parameters: dict[str, float]) -> dict:
    """Return the names of the parameters that values become."""
    names = {name: f"{prefix}_{name}" + (f"_{place + 1}" if place else "") for name in values}
    parameters.update((names[name], float(value)) for name, value in values.items())
    return names


def _has_one_four(count: int, bonds: np.ndarray) -> bool:
    """Return whether some atoms are three bonds apart."""
    return bool(len(molecule(count, bonds, angles=(), dihedrals=()).pairs_at(3)))


def _cell(data: LammpsData, commands: Commands) -> dict[str, Any]:
    """Return the settings of the cell."""
    size = commands.dimension
    vectors, periodic = data.vectors[:size, :size], commands.periodic[:size]
    is_tilted = bool((vectors != np.diag(np.diag(vectors))).any())
    cell: dict[str, Any] = {"vectors": vectors.tolist()} if is_tilted else {"lengths": np.diag(vectors).tolist()}
    return cell if all(periodic) else cell | {"periodic": list(periodic)}
