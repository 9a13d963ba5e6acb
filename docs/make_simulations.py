"""Write docs/reference/simulations.md from what the simulations declare: ``make api``."""

import inspect
import re
from collections.abc import Iterable
from pathlib import Path

from simkit.core.expressions.syntax import FUNCTIONS
from simkit.core.parameter import shown_bounds
from simkit.core.settings import listing
from simkit.scenario.catalog import scenarios_of
from simkit.scenario.contents import Content, bare_scenario, contents_of
from simkit.scenario.registry import FACTORIES, PARAMETERS, SIMULATIONS

HEAD = """\
# The simulations

Every simulation that scenario files may name: the arguments of its factory (`[config]`), its parameters (`[params]`,
swept and differentiated), and the quantities that it computes; at the end the [functions of
expressions](#functions-of-expressions). `simkit show flow.domain` shows the same for the installed version, those of
other packages included, and `simkit show flow.domain --schema` as a JSON Schema.

This page is made from the declarations by `make api`.
"""
# Their factories need an argument, which these scenarios give.
NEEDS_ARGUMENTS = {
    "flow.domain": "rayleigh_benard_onset",
    "rigid.mjcf": "ant",
    "rigid.scene": "dominoes",
    "molecular.system": "trapped_charges",
}


def page() -> str:
    """Return the text of docs/reference/simulations.md."""
    names = sorted(FACTORIES)
    contents = "\n".join(f"- [`{name}`](#{name.replace('.', '')}): {_summary(name)}" for name in names)
    return "\n".join([HEAD, contents, "", *map(section, names), functions()])


def functions() -> str:
    """Return what the page says about the functions of expressions."""
    rows = [
        (f"`{one.usage}`", one.doc.replace("``", "`"), "frames of a run" if one.over_frames else "")
        for one in FUNCTIONS.values()
    ]
    head = "## Functions of expressions\n\nWhat [expressions](../scenario_files.md#expressions) may call.\n"
    return f"{head}\n{_table(('function', 'meaning', 'reduces'), rows)}"


def section(name: str) -> str:
    """Return what the page says about one simulation."""
    scenarios = scenarios_of(name)
    needed = [scenario for scenario in scenarios if scenario.name == NEEDS_ARGUMENTS.get(name)]
    scenario = needed[0] if needed else bare_scenario(name)
    contents = contents_of(scenario)
    factory = inspect.signature(SIMULATIONS.resolve(name)).parameters.values()
    meanings = _meanings(name)
    arguments = [
        (f"`{a.name}`", "needed" if a.default is a.empty else f"`{_shown(a.default)}`", meanings.get(a.name, ""))
        for a in factory
        if a.kind in (a.KEYWORD_ONLY, a.POSITIONAL_OR_KEYWORD) and a.name != PARAMETERS
    ]
    declared = listing(getattr(SIMULATIONS.resolve(name), "settings", {}))
    settings = [
        (
            f"`{path}`",
            one.kind,
            "needed" if one.is_required else "" if one.default is None else f"`{_shown(one.default)}`",
            one.doc,
        )
        for path, one in declared
    ]
    parameters = [
        (f"`{key}`", f"`{_shown(p.default)}`", shown_bounds(p.bounds), p.unit, p.doc)
        for key, p in scenario.declared.items()
    ]
    quantities = {kind: [q for q in contents.quantities if q.kind == kind] for kind in ("diagnosed", "observed")}
    users = ", ".join(f"`{each.name}`" for each in scenarios)
    example = f"\nParameters and quantities of the scenario `{needed[0].name}`:\n" if needed else ""
    parts = [
        f"## {name}\n\n{_summary(name)} Scenarios: {users}.\n",
        _table(("argument", "default", "meaning"), arguments),
        _table(("setting", "allowed values", "default", "meaning"), settings),
        example,
        _table(("parameter", "default", "bounds", "unit", "meaning"), parameters),
        _table(("diagnosed", "unit", "meaning"), [(f"`{q.name}`", q.unit, q.doc) for q in quantities["diagnosed"]]),
        _table(("observed", "axes", "unit", "meaning"), [_observed(q) for q in quantities["observed"]]),
    ]
    return "\n".join(part for part in parts if part)


def _observed(quantity: Content) -> tuple[str, ...]:
    return f"`{quantity.name}`", ", ".join(quantity.dimensions) or "none", quantity.unit, quantity.doc


def _summary(name: str) -> str:
    text = " ".join((inspect.getdoc(SIMULATIONS.resolve(name)) or "").split("\n\n")[0].split())
    text = re.sub(r"``([^`]*)``", r"`\1`", text.removeprefix("Return "))
    return text[:1].upper() + text[1:]


def _meanings(name: str) -> dict[str, str]:
    """Return what a factory's docstring says about each argument."""
    lines = (inspect.getdoc(SIMULATIONS.resolve(name)) or "").splitlines()
    if "Args:" not in lines:
        return {}
    meanings: dict[str, str] = {}
    current = ""
    for line in lines[lines.index("Args:") + 1 :]:
        if line and not line.startswith(" "):
            break
        if found := re.fullmatch(r" {4}(\w+): (.*)", line):
            current, meanings[found[1]] = found[1], found[2]
        elif line.strip() and current:
            meanings[current] += f" {line.strip()}"
    return {key: re.sub(r"``([^`]*)``", r"`\1`", text) for key, text in meanings.items()}


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {_shown(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "none"}[value]
    return f"{value:.7g}" if isinstance(value, float) else f"{value!r}".replace("'", '"')


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(cell.replace('|', '\\|') for cell in row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines, ""]) if lines else ""


if __name__ == "__main__":
    (Path(__file__).with_name("reference") / "simulations.md").write_text(page())
