"""Pair energies of LAMMPS as interactions of ``molecular.system``, with the coefficients of each pair of types."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from simkit.errors import nearest
from simkit.molecular.imports.lammps_data import LammpsData, Line, types_of

CHARGES = "coulomb_constant*charge_i*charge_j/r"
SCREENED = f"{CHARGES}*exp(-kappa*r)"


class PairStyle(NamedTuple):
    """A pair style.

    Attributes:
        arguments: of `pair_style`; ``cut`` is the cut-off of pairs, ``cut_coul`` that of charges; empty for
            an energy of a file.
        coefficients: of `pair_coeff` before the cut-offs.
        potential: of pairs, by name; empty for none.
        charges: of charges: ``cut``, ``debye`` or ``long``; empty for none.
        mixes: whether coefficients of unlike types may follow from those of like ones.
    """

    arguments: str
    coefficients: str
    potential: str
    charges: str = ""
    mixes: bool = False

    @property
    def has_charges(self) -> bool:
        """Whether charges interact."""
        return bool(self.charges)


LENNARD_JONES = "epsilon sigma"
PAIR_STYLES = {
    "lj/cut": PairStyle("cut", LENNARD_JONES, "lennard_jones", "", mixes=True),
    "lj/cut/coul/cut": PairStyle("cut cut_coul", LENNARD_JONES, "lennard_jones", "cut", mixes=True),
    "lj/cut/coul/debye": PairStyle("kappa cut cut_coul", LENNARD_JONES, "lennard_jones", "debye", mixes=True),
    "lj/cut/coul/long": PairStyle("cut cut_coul", LENNARD_JONES, "lennard_jones", "long", mixes=True),
    "coul/cut": PairStyle("cut_coul", "", "", "cut"),
    "coul/debye": PairStyle("kappa cut_coul", "", "", "debye"),
    "coul/long": PairStyle("cut_coul", "", "", "long"),
    "morse": PairStyle("cut", "depth alpha length", "morse"),
    "buck": PairStyle("cut", "repulsion rho dispersion", "buckingham"),
    "eam/alloy": PairStyle("", "", "embedded_atom_tables"),
    "eam/fs": PairStyle("", "", "embedded_atom_tables"),
    "tersoff": PairStyle("", "", "tersoff_file"),
}
# Values of a potential from the coefficients of a pair, as formulas of their parameters.
VALUES = {
    "lennard_jones": {"epsilon": "{epsilon}", "sigma": "{sigma}"},
    "morse": {"epsilon": "{depth}", "sigma": "{length}", "rho": "{alpha}*{length}"},
    "buckingham": {"repulsion": "{repulsion}", "rho": "{rho}", "dispersion": "{dispersion}"},
}
# Of unlike types, of coefficients ``a`` and ``b`` of like ones: lengths, and energies of the lengths ``c`` and ``d``.
LENGTHS = {"geometric": "sqrt({a}*{b})", "arithmetic": "({a} + {b})/2", "sixthpower": "(({a}**6 + {b}**6)/2)**(1/6)"}
ENERGIES = dict.fromkeys(("geometric", "arithmetic"), "sqrt({a}*{b})") | {
    "sixthpower": "2*sqrt({a}*{b})*{c}**3*{d}**3/({c}**6 + {d}**6)"
}
KSPACE = {"ewald": "ewald", "pppm": "particle_mesh_ewald"}


@dataclasses.dataclass
class PairCommands:
    """Commands of pair energies and of long-range charges, in their order."""

    lines: list[Line] = dataclasses.field(default_factory=list)

    def style_line(self) -> Line | None:
        """Return the command `pair_style`; ``None`` if there is none.

        Raises:
            UserError: if the style is not served.
        """
        lines = [line for line in self.lines if line.words[0] == "pair_style"]
        if len(lines) > 1:
            lines[1].refuse("pair_style is given twice; keep one")
        line = lines[0] if lines else None
        if line is not None and (len(line.words) < 2 or line.words[1] not in PAIR_STYLES):
            word = " ".join(line.words[1:2])
            line.refuse(f"{word[:40]!r} is no style of pairs that is read", nearest(word, sorted(PAIR_STYLES)))
        return line


@dataclasses.dataclass
class _Pairs:
    """Coefficients by pair of types, the lower first, as formulas; and cut-offs as numbers."""

    coefficients: dict[tuple[int, int], dict[str, str]] = dataclasses.field(default_factory=dict)
    cutoffs: dict[tuple[int, int], float] = dataclasses.field(default_factory=dict)
    of_charges: dict[tuple[int, int], float] = dataclasses.field(default_factory=dict)


def pair_interactions(
    commands: PairCommands,
    data: LammpsData,
    tags: Mapping[int, str],
    names: Mapping[str, str],
    parameters: dict[str, float],
    coulomb_constant: float,
    weights: Sequence[float],
) -> list[dict[str, Any]]:
    """Return the interactions of pairs.

    Args:
        commands: the commands.
        data: contents of the data file.
        tags: of the types that atoms have, by number, in names of parameters.
        names: of the species, by tag.
        parameters: to which the coefficients are added.
        coulomb_constant: energy of two unit charges at unit distance.
        weights: of pairs three bonds apart: of pair energies, and of charges.

    Raises:
        UserError: that names file and line.
    """
    line = commands.style_line()
    if line is None:
        for kind in ("pair", "pairij"):
            if kind in data.coefficients:
                title, rows = data.coefficients[kind]
                (rows or [data.end])[0].refuse(
                    f"there are coefficients of pairs {f'of style {title} ' if title else ''}and no pair_style; write "
                    "pair_style and its cut-off among the coefficients"
                )
        return []
    style = PAIR_STYLES[line.words[1]]
    if not style.arguments:
        return [_of_file(style.potential, commands, tags, names, line)]
    words = style.arguments.split()
    numbers = line.reals(2, "an argument of pair_style")
    least = len(words) - (words[-1] == "cut_coul" and len(words) > 1 and words[-2] == "cut")
    if not least <= len(numbers) <= len(words):
        line.refuse(f"pair_style {line.words[1]} takes {style.arguments}, and there are {len(numbers)} numbers")
    given = dict(zip(words, numbers, strict=False))
    given.setdefault("cut_coul", given.get("cut", 0.0))
    options = _options(commands)
    pairs = _coefficients(commands, data, style, given, tags, parameters)
    kinds = sorted(tags)
    interactions: list[dict[str, Any]] = []
    couples = [(a, b) for place, a in enumerate(kinds) for b in kinds[place:]]
    if style.potential:
        _mix(pairs, couples, tags, style, options, line)
    labels = {couple: f"{names[tags[couple[0]]]}_{names[tags[couple[1]]]}" for couple in couples}
    if style.potential:
        values: dict[str, Any] = {
            name: {labels[couple]: form.format(**pairs.coefficients[couple]) for couple in couples}
            for name, form in VALUES[style.potential].items()
        }
        interaction: dict[str, Any] = {"potential": style.potential, "values": values}
        _cut(interaction, {labels[couple]: pairs.cutoffs[couple] for couple in couples})
        interaction["ending"] = "shift_energy" if options["shift"] == "yes" else "truncate"
        if options["tail"] == "yes":
            interaction["tail"] = True
        interactions.append(_weighted(interaction, weights[0]))
    if style.charges:
        parameters["coulomb_constant"] = coulomb_constant
        interactions.append(_weighted(_of_charges(style, given, pairs, labels, commands, parameters), weights[1]))
    return interactions


def _weighted(interaction: dict[str, Any], weight: float) -> dict[str, Any]:
    return interaction if weight == 1 else interaction | {"one_four": weight}


def _cut(interaction: dict[str, Any], cutoffs: Mapping[str, float]) -> None:
    """Add a cut-off: one number, or one of each pair."""
    if len(set(cutoffs.values())) == 1:
        interaction["cutoff"] = next(iter(cutoffs.values()))
    else:
        interaction["values"]["ends"] = dict(cutoffs)
        interaction["cutoff"] = "ends"


def _of_charges(
    style: PairStyle,
    given: Mapping[str, float],
    pairs: _Pairs,
    labels: Mapping[tuple[int, int], str],
    commands: PairCommands,
    parameters: dict[str, float],
) -> dict[str, Any]:
    """Return the interaction of charges."""
    if style.charges != "long":
        energy = CHARGES if style.charges == "cut" else SCREENED
        if style.charges == "debye":
            parameters["kappa"] = given["kappa"]
        interaction: dict[str, Any] = {"energy": energy, "values": {}}
        _cut(interaction, {label: pairs.of_charges.get(couple, given["cut_coul"]) for couple, label in labels.items()})
        return interaction | {"ending": "truncate"}
    lines = [line for line in commands.lines if line.words[0] == "kspace_style"]
    style_line = commands.style_line()
    assert style_line is not None  # charges have a style
    if not lines:
        style_line.refuse("charges of long range need a kspace_style; write such as kspace_style pppm 1e-5")
    line = lines[-1]
    word = " ".join(line.words[1:2])
    if word not in KSPACE or len(line.words) != 3:
        line.refuse(f"{word[:40]!r} is no kspace_style that is read", nearest(word, sorted(KSPACE)))
    return {
        "potential": KSPACE[word],
        "cutoff": given["cut_coul"],
        "tolerance": line.real(line.words[2], "the accuracy"),
    }


def _options(commands: PairCommands) -> dict[str, str]:
    """Return what `pair_modify` says of shift, tail and mix."""
    options = {"shift": "no", "tail": "no", "mix": "geometric"}
    allowed = {"shift": ("yes", "no"), "tail": ("yes", "no"), "mix": tuple(LENGTHS)}
    # Of tables, by which LAMMPS approximates its own energies.
    approximations = ("table", "table/disp", "tabinner", "tabinner/disp")
    for line in commands.lines:
        if line.words[0] == "kspace_modify":
            line.refuse("kspace_modify is not read; leave it out, accuracy is that of kspace_style")
        if line.words[0] != "pair_modify":
            continue
        words = list(line.words[1:])
        while words:
            key, *rest = words
            if key == "nofdotr":
                words = rest
                continue
            known = allowed.get(key)
            if (known is None and key not in approximations) or not rest or (known and rest[0] not in known):
                written = " ".join(words[:2])
                line.refuse(f"pair_modify {written[:40]!r} is not read", nearest(key, sorted(allowed)))
            if known:
                options[key] = rest[0]
            words = rest[1:]
    return options


def _coefficients(
    commands: PairCommands,
    data: LammpsData,
    style: PairStyle,
    given: Mapping[str, float],
    tags: Mapping[int, str],
    parameters: dict[str, float],
) -> _Pairs:
    """Return the coefficients that are given, as names of parameters."""
    pairs, arguments = _Pairs(), style.coefficients.split()
    rows: list[tuple[Line, str, str, tuple[str, ...]]] = []
    for kind in ("pair", "pairij"):
        for line in data.coefficients.get(kind, ("", []))[1]:
            least = 1 + (kind == "pairij")
            if len(line.words) <= least:
                line.refuse("is not a type, or two, and coefficients of pairs; complete it")
            rows.append((line, line.words[0], line.words[least - 1], line.words[least:]))
    for line in commands.lines:
        if line.words[0] == "pair_coeff":
            if len(line.words) < 3:
                line.refuse("pair_coeff names two types, and their coefficients; complete it")
            rows.append((line, line.words[1], line.words[2], line.words[3:]))
    cuts = [word for word in style.arguments.split() if word.startswith("cut")]
    if style.charges == "long":
        cuts = [word for word in cuts if word == "cut"]
    for line, first, second, words in rows:
        numbers = [line.real(word, "a coefficient of pairs") for word in words]
        if not len(arguments) <= len(numbers) <= len(arguments) + len(cuts):
            meant = " ".join([*arguments, *(f"[{cut}]" for cut in cuts)])
            line.refuse(f"there are {len(numbers)} coefficients, and the style takes {meant}; correct them")
        ends = dict(zip(cuts, numbers[len(arguments) :], strict=False))
        for one in types_of(line, first, "atom", data):
            for other in types_of(line, second, "atom", data):
                if one > other or one not in tags or other not in tags:
                    continue
                suffix = f"{tags[one]}_{tags[other]}"
                names = {name: f"{name}_{suffix}" for name in arguments}
                parameters.update(zip(names.values(), numbers, strict=False))
                pairs.coefficients[one, other] = names
                usual = given.get("cut", given["cut_coul"])
                pairs.cutoffs[one, other] = ends.get("cut", usual)
                # A cut-off of pairs that is given alone is that of charges, too.
                of_charges = ends.get("cut_coul", ends.get("cut", given["cut_coul"]))
                pairs.of_charges[one, other] = of_charges
    return pairs


def _mix(
    pairs: _Pairs,
    couples: Sequence[tuple[int, int]],
    tags: Mapping[int, str],
    style: PairStyle,
    options: Mapping[str, str],
    line: Line,
) -> None:
    """Add the coefficients of unlike types that are not given."""
    rule = options["mix"]
    for one, other in couples:
        if (one, other) in pairs.coefficients:
            continue
        like = [pairs.coefficients.get((kind, kind)) for kind in (one, other)]
        if one == other or not style.mixes or None in like:
            lacking = next((kind for kind, its in zip((one, other), like, strict=True) if its is None), one)
            a, b = (lacking, lacking) if style.mixes else (one, other)
            of = f"types {tags[a]} and {tags[b]}"
            line.refuse(f"pairs of {of} have no coefficients; write pair_coeff {a} {b} {style.coefficients}")
        first, second = (pairs.coefficients[kind, kind] for kind in (one, other))
        lengths, depths = (first["sigma"], second["sigma"]), (first["epsilon"], second["epsilon"])
        pairs.coefficients[one, other] = {
            "epsilon": ENERGIES[rule].format(a=depths[0], b=depths[1], c=lengths[0], d=lengths[1]),
            "sigma": LENGTHS[rule].format(a=lengths[0], b=lengths[1]),
        }
        ends = pairs.cutoffs[one, one], pairs.cutoffs[other, other]
        pairs.cutoffs[one, other] = _mixed_length(rule, *ends) if ends[0] != ends[1] else ends[0]
        of_charges = pairs.of_charges[one, one], pairs.of_charges[other, other]
        pairs.of_charges[one, other] = _mixed_length(rule, *of_charges) if len(set(of_charges)) > 1 else of_charges[0]


def _mixed_length(rule: str, a: float, b: float) -> float:
    return {"geometric": (a * b) ** 0.5, "arithmetic": (a + b) / 2, "sixthpower": ((a**6 + b**6) / 2) ** (1 / 6)}[rule]


def _of_file(
    potential: str, commands: PairCommands, tags: Mapping[int, str], names: Mapping[str, str], style: Line
) -> dict[str, Any]:
    """Return the interaction of a file, such as of embedded-atom tables."""
    if len(style.words) != 2:
        style.refuse(
            f"pair_style {style.words[1]} takes no further word that is read; leave {style.words[2][:40]!r} out"
        )
    lines = [line for line in commands.lines if line.words[0] == "pair_coeff"]
    if len(lines) != 1 or lines[0].words[1:3] != ("*", "*") or len(lines[0].words) < 4 + max(tags):
        (lines[-1] if lines else style).refuse(
            f"pair_style {style.words[1]} needs one command pair_coeff * * FILE and the element of each type; write it"
        )
    file, *elements = lines[0].words[3:]
    chosen = {names[tag]: elements[number - 1] for number, tag in tags.items()}
    return {
        "potential": potential,
        "file": file,
        "elements": {name: element for name, element in chosen.items() if name != element},
    }
