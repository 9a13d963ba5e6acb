"""Kinds of settings: numbers, words, formulas, lists and tables, each with its check, description and schema."""

import dataclasses
import math
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from simkit.core.expressions.syntax import OWN_TABLE, parse
from simkit.core.parameter import POSITIVE, UNBOUNDED, Numbers, out_of_bounds
from simkit.core.paths import below
from simkit.core.settings.setting import Form, FormulaText, Rule, Setting, Settings, check_table, read, schema_of, shown
from simkit.core.settings.tables import Table, table_of
from simkit.errors import Mistakes, Remedy, UserError, known, one_line

_REQUIRED: Any = object()
MAX_DEPTH = 8
# Larger integers are not exact in double precision.
MOST_EXACT = 2**53
# Numbers of entries of a list with one for each axis.
AXES = (2, 3)


def number(doc: str, default: Any = _REQUIRED, bounds: tuple[float, float] = UNBOUNDED) -> Setting:
    """Return a setting that is one number, or arithmetic of numbers; optional with ``default = None``.

    Example:
        >>> exponent = core.number("steepness of the wall", 12.0, bounds=(2.0, 64.0))
        >>> exponent.check("3*4", "walls.exponent"), exponent.default
        (12.0, 12.0)
    """

    def check(value: Any, where: str) -> float:
        if isinstance(value, str):
            from simkit.core.expressions.evaluation import constant

            value = constant(value, where)
        if not _is_finite(value):
            raise UserError(f"{where} = {shown(value)} is not a finite number; write one")
        if not bounds[0] <= value <= bounds[1]:
            raise UserError(f"{where} = {value:g} {out_of_bounds(bounds, value)}", key=where, allowed=bounds)
        return float(value)

    low, high = bounds
    lowest = {"exclusiveMinimum": 0} if low == POSITIVE[0] else {"minimum": low} if math.isfinite(low) else {}
    schema = {"type": ["number", "string"], **lowest, **({"maximum": high} if math.isfinite(high) else {})}
    return _setting("a number", doc, check, default, schema)


def whole(doc: str, default: Any = _REQUIRED, low: int = 0, high: int = 2**31 - 1, *, is_even: bool = False) -> Setting:
    """Return a setting that is an integer from ``low`` to ``high``, possibly an even one.

    Example:
        >>> chain = core.whole("number of thermostats", 3, low=1)
        >>> chain.check(5, "dynamics.chain")
        5
    """
    kind = "an even integer" if is_even else "an integer"

    def check(value: Any, where: str) -> int:
        is_whole = isinstance(value, int) and not isinstance(value, bool) and not (is_even and value % 2)
        if not is_whole or not low <= value <= high:
            is_above = isinstance(value, int) and value > high
            limit = f"of at least {low}" if high == 2**31 - 1 and not is_above else f"from {low} to {high}"
            limit = "of 32 bits" if (low, high) == (-(2**31), 2**31 - 1) else limit
            is_rounded = isinstance(value, float) and value.is_integer() and low <= value <= high
            remedy = Remedy("replace", int(value)) if is_rounded and not is_even else None
            problem = f"is not {kind} {limit}; write {int(value) if remedy else 'one'}"
            text = repr(value) if isinstance(value, float) else shown(value)
            raise UserError(f"{where} = {text} {problem}", allowed=(low, high), remedy=remedy)
        return value

    schema = {"type": "integer", "minimum": low, "maximum": high}
    return _setting(kind, doc, check, default, schema | ({"multipleOf": 2} if is_even else {}))


def flag(doc: str, default: bool = False) -> Setting:
    """Return a setting that is true or false.

    Example:
        >>> core.flag("whether the cell relaxes too").check(True, "relax.cell")
        True
    """

    def check(value: Any, where: str) -> bool:
        if not isinstance(value, bool):
            raise UserError(f"{where} = {shown(value)} is neither true nor false; write one of them")
        return value

    return _setting("true or false", doc, check, default, {"type": "boolean"})


def word(doc: str, allowed: tuple[str, ...], default: Any = _REQUIRED) -> Setting:
    """Return a setting that is one of a few words.

    Example:
        >>> scheme = core.word("of advection", ("central", "upwind"), "central")
        >>> try:
        ...     scheme.check("upwnd", "config.scheme")
        ... except simkit.UserError as error:
        ...     print(error)
        config.scheme = 'upwnd' is unknown; did you mean 'upwind'?
    """

    def check(value: Any, where: str) -> str:
        return known(value, allowed, where)

    return _setting(" or ".join(f'"{each}"' for each in allowed), doc, check, default, {"enum": list(allowed)})


def _check_text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise UserError(f"{where} = {shown(value)} is no text; write it in quotes")
    return value


def text(doc: str, default: Any = _REQUIRED) -> Setting:
    """Return a setting that is text, such as the content of a file."""
    # A scenario file may also name a file, whose content is taken.
    content = {"properties": {"file": {"type": "string"}}, "required": ["file"], "additionalProperties": False}
    return _setting("text", doc, _check_text, default, {"type": ["string", "object"], **content})


def line(
    doc: str,
    default: Any = _REQUIRED,
    longest: int = 1000,
    *,
    pattern: str = "",
    form: str = "",
) -> Setting:
    """Return a setting that is text on one line, such as a title or a name.

    Args:
        doc: its meaning.
        default: default as written in a file.
        longest: largest number of characters.
        pattern: regular expression of the whole text; empty for any text that can be printed.
        form: the pattern in words.
    """

    def check(value: Any, where: str) -> str:
        _check_text(value, where)
        odd = next((character for character in value if not character.isprintable()), "")
        problem = "is empty; write at least one word" if not value.strip() and value != default else ""
        problem = problem or (f"contains the character {odd!r}; write it on one line without it" if odd else "")
        if not problem and len(value) > longest:
            problem = f"has {len(value)} characters; write at most {longest}"
        if not problem and pattern and not re.fullmatch(pattern, value):
            problem = f"is not {form}"
        if problem:
            raise UserError(f"{where} = {shown(value)} {problem}")
        return value

    return _setting("text on one line", doc, check, default, {"type": "string", "maxLength": longest})


def numbers(doc: str, default: Any = _REQUIRED) -> Setting:
    """Return a setting that is a finite number, or nested lists of them with rows of equal length, kept as tuples."""

    def check(value: Any, where: str, depth: int = 0) -> Numbers:
        if not isinstance(value, list | tuple):
            return exact(value, where)
        if not value or depth == MAX_DEPTH:
            raise UserError(f"{where} = {shown(value)} is empty or nested over {MAX_DEPTH} deep; write numbers")
        entries = tuple(check(entry, f"{where}[{index}]", depth + 1) for index, entry in enumerate(value))
        if len(set(map(shape_of, entries))) > 1:
            raise UserError(f"{where} = {shown(value)} has rows of different lengths; write rows of one length")
        return entries

    schema = {"anyOf": [{"type": "number"}, {"type": "array"}]}
    return _setting("a number, or lists of numbers", doc, check, default, schema)


def exact(value: Any, where: str) -> float:
    """Return a value as a float if it is a finite number; arithmetic in quotes is refused."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{where} = {shown(value)} is no number; write one")
    if isinstance(value, int) and abs(value) > MOST_EXACT:
        problem = "is an integer beyond 2^53, which float64 does not hold exactly"
        raise UserError(f"{where} = {shown(value)} {problem}; write it with a decimal point to round it")
    if not abs(value) <= sys.float_info.max:
        raise UserError(f"{where} = {shown(value)} is not a finite number of float64; write one")
    return float(value)


def shape_of(value: Numbers) -> tuple[int, ...]:
    """Return the lengths of the nested tuples of `numbers`, outermost first; ``()`` for a number."""
    return (len(value), *shape_of(value[0])) if isinstance(value, tuple) else ()


def interval(doc: str, default: Any = _REQUIRED, *, is_open: bool = False) -> Setting:
    """Return a setting that is ``[low, high]``, low below high; if open, either may be infinite."""

    def check(value: Any, where: str) -> tuple[float, float]:
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise UserError(f"{where} = {shown(value)} is not a pair; write [low, high]")
        for index, end in enumerate(value):
            if not (is_open and isinstance(end, float) and math.isinf(end)):
                exact(end, f"{where}[{index}]")
        if not value[0] < value[1]:
            raise UserError(f"{where} = {shown(value)} has its lower end not below its upper end; swap or widen")
        return float(value[0]), float(value[1])

    pair = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    return _setting("a pair [low, high]", doc, check, default, pair)


def formula(
    doc: str,
    default: Any = _REQUIRED,
    *,
    unit: str = "",
    bounds: tuple[float, float] = UNBOUNDED,
    takes: tuple[str, ...] = (),
) -> Setting:
    """Return a setting that is a number or an expression, kept as `FormulaText`; whoever evaluates it checks bounds.

    Args:
        doc: its meaning.
        default: default as written in a file.
        unit: unit in words.
        bounds: lowest and highest value.
        takes: names that it may take besides parameters; a table may then stand for the formula.

    Example:
        >>> stiffness = core.formula("stiffness of the bond", "50*epsilon", unit="energy / length^2")
        >>> stiffness.check("2*k", "bonds.stiffness").text
        '2*k'
    """

    def check(value: Any, where: str) -> FormulaText:
        written = _table_text(value, where) if takes and isinstance(value, Mapping) else formula_text(value, where)
        return dataclasses.replace(written, bounds=bounds, takes=takes)

    def schema() -> dict[str, Any]:
        return schema_of(TABLE | READ_AT) | {"type": ["number", "string", "object"]}

    kind = "a number or an expression" + ", or a table" * bool(takes)
    setting = _setting(kind, doc, check, default, schema if takes else {"type": ["number", "string"]})
    return dataclasses.replace(setting, unit=unit, bounds=bounds)


def branch(doc: str, *, unit: str = "") -> Setting:
    """Return a setting that names a parameter of any shape, or a branch of parameters, such as weights of a network.

    Where a table leaves it out, it is the parameter or the branch of its own name.

    Args:
        doc: its meaning.
        unit: unit in words.

    Example:
        >>> core.branch("weights of the network").form
        'branch'
    """
    setting = formula(doc, unit=unit)
    return dataclasses.replace(setting, kind="a parameter, or a branch of parameters", form="branch")


def condition(doc: str, default: Any = _REQUIRED, *, takes: tuple[str, ...] = ()) -> Setting:
    """Return a setting that is a condition, an expression with the value true or false, kept as `FormulaText`.

    Args:
        doc: its meaning.
        default: default as written in a file.
        takes: names that it may take besides parameters.
    """

    def check(value: Any, where: str) -> FormulaText:
        if not isinstance(value, str):
            raise UserError(
                f'{where} = {shown(value)} is no condition; write a comparison in quotes, such as "y < 0.5"'
            )
        parse(value, where, is_condition=True, of_frames=False)
        return FormulaText(value, where, takes=takes)

    return _setting("a condition", doc, check, default, {"type": "string"})


def several(
    of: Setting, doc: str, counts: tuple[int, ...] = (), default: Any = _REQUIRED, *, least: int = 0
) -> Setting:
    """Return a setting that is a list of entries of one kind, kept as a tuple.

    Args:
        of: setting of each entry.
        doc: its meaning.
        counts: allowed numbers of entries; empty for any number.
        default: default as written in a file.
        least: number of entries where any number of at least that many is allowed.
    """

    def check(value: Any, where: str) -> tuple:
        if not isinstance(value, list | tuple):
            raise UserError(f"{where} = {shown(value)} is no list; write several in brackets")
        if len(value) < least or (counts and len(value) not in counts):
            exactly = "2 in the plane, 3 in space" if counts == AXES else " or ".join(map(str, counts))
            allowed = exactly or f"at least {least}"
            raise UserError(f"{where} has {len(value)} entr{'y' if len(value) == 1 else 'ies'}; write {allowed}")
        mistakes = Mistakes()
        pairs = [(f"{where}[{index}]", entry) for index, entry in enumerate(value)]
        entries = tuple(mistakes.result(path, partial(of.check, entry, path), of.instead) for path, entry in pairs)
        mistakes.raise_if_any(entries)
        return entries

    many = f" of {' or '.join(map(str, counts))}" if counts else ""
    sizes = {"minItems": min(counts), "maxItems": max(counts)} if counts else {"minItems": least} if least else {}

    def schema() -> dict[str, Any]:
        return {"type": "array", "items": of.schema, **sizes}

    return _setting(f"a list{many}, each {of.kind}", doc, check, default, schema, of.inner, "list")


def row(doc: str, *entries: Setting) -> Setting:
    """Return a setting that is a list with one entry of each of several kinds, kept as a tuple.

    Args:
        doc: its meaning.
        *entries: setting of each entry.
    """

    def check(value: Any, where: str) -> tuple:
        if not isinstance(value, list | tuple) or len(value) != len(entries):
            raise UserError(f"{where} = {shown(value)} is not a list of {len(entries)} entries; write one in brackets")
        return tuple(of.check(value[i], f"{where}[{i}]") for i, of in enumerate(entries))

    def schema() -> dict[str, Any]:
        return {"type": "array", "prefixItems": [of.schema for of in entries], "minItems": len(entries), "items": False}

    return _setting(f"a list of {', '.join(of.kind for of in entries)}", doc, check, _REQUIRED, schema, dict, "list")


def table(doc: str, keys: Mapping[str, Setting], default: Any = None, rules: tuple[Rule, ...] = ()) -> Setting:
    """Return a setting that is a table of settings with rules; ``None`` where it is absent and has no default."""

    def check(value: Any, where: str) -> Settings:
        return read(value, keys, where, rules)

    return _setting("a table", doc, check, default, lambda: schema_of(keys, rules), lambda: keys, "table")


def named(doc: str, of: Setting, pattern: str = r"[^\W\d]\w{0,63}") -> Setting:
    """Return a setting that is a table whose keys are names chosen by the user, kept as a dictionary.

    Args:
        doc: its meaning.
        of: setting of each value.
        pattern: regular expression of the names.
    """

    def check(value: Any, where: str) -> dict[str, Any]:
        check_table(value, where)
        mistakes, checked = Mistakes(), {}
        for name, entry in value.items():
            path = below(where, name)
            if not re.fullmatch(pattern, str(name)):
                problem = "is not a name; use up to 64 letters, digits and _, starting with a letter"
                mistakes.found.append(UserError(f"{where}: {one_line(name, 40)!r} {problem}", key=path))
                continue
            checked[str(name)] = mistakes.result(path, partial(of.check, entry, path), of.instead)
        mistakes.raise_if_any(checked)
        return checked

    def schema() -> dict[str, Any]:
        return {"type": "object", "additionalProperties": of.schema}

    return _setting(f"a table, by name, of: {of.kind}", doc, check, {}, schema, of.inner, "names")


def either(doc: str, *kinds: Setting, default: Any = _REQUIRED) -> Setting:
    """Return a setting that may be written in several ways, told apart by the type of the value.

    Args:
        doc: its meaning.
        *kinds: at most one setting each for tables, for lists, and for other values.
        default: default as written in a file.
    """
    by_form = {"table" if kind.form == "names" else kind.form: kind for kind in kinds}

    def check(value: Any, where: str) -> Any:
        form = "table" if isinstance(value, Mapping) else "list" if isinstance(value, list | tuple) else "value"
        if form not in by_form:
            allowed = ", or ".join(kind.kind for kind in kinds)
            raise UserError(f"{where} = {shown(value)} is of another kind; write {allowed}")
        return by_form[form].check(value, where)

    def inner() -> dict[str, Setting]:
        return {key: setting for kind in kinds for key, setting in kind.keys.items()}

    def schema() -> dict[str, Any]:
        return {"anyOf": [kind.schema for kind in kinds]}

    return _setting(", or ".join(kind.kind for kind in kinds), doc, check, default, schema, inner, kinds[0].form)


def formula_text(value: Any, where: str) -> FormulaText:
    """Return the text of a formula with the path of its key.

    Args:
        value: a number or an expression.
        where: path of its key.

    Raises:
        UserError: if it is neither.
    """
    if _is_finite(value):
        return FormulaText(repr(float(value)), where)
    if not isinstance(value, str):
        raise UserError(f"{where} = {shown(value)} is neither a finite number nor an expression in quotes; write one")
    parse(value, where, of_frames=False)
    return FormulaText(value, where)


def _is_finite(value: Any) -> bool:
    """Return whether a value is a number in the range of float64."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _setting(
    kind: str,
    doc: str,
    check: Callable[[Any, str], Any],
    default: Any,
    schema: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
    keys: Callable[[], Mapping[str, Setting]] = dict,
    form: Form = "value",
) -> Setting:
    required = default is _REQUIRED
    describe = schema if callable(schema) else lambda: schema
    return Setting(kind, doc, check, None if required else default, keys, required, describe, form)


TABLE = {
    "file": text("file with columns, in place of lists", None),
    "text": text("its content; by default it is read", None),
    "x": either("points", line("name of a column"), several(number("a point"), "")),
    "y": either("values there", line("name of a column"), several(number("a value"), "")),
    "interpolation": word("between the points", ("linear", "cubic"), "linear"),
    "outside": word("beyond the points: no value, or that of the nearest one", ("none", "hold"), "none"),
}
READ_AT = {"at": line("where it is read, an expression; by default the name of the column x", None)}


def tabulated(doc: str) -> Setting:
    """Return a setting that is a table of numbers, kept as `Table`."""

    def check(value: Any, where: str) -> Table:
        return table_of(read(value, TABLE, where), where)

    return _setting("a table", doc, check, _REQUIRED, lambda: schema_of(TABLE), lambda: TABLE, "table")


def _table_text(value: Mapping[str, Any], where: str) -> FormulaText:
    """Return the formula that reads a table of its own."""
    settings = read(value, TABLE | READ_AT, where)
    at = settings["x"] if settings["at"] is None else settings["at"]
    if not isinstance(at, str) or (settings["at"] is None and not at.isidentifier()):
        raise UserError(f'{where}.at is missing; write where the table is read, such as at = "y"')
    formula_text(at, f"{where}.at")
    name = OWN_TABLE + re.sub(r"\W", "_", where)
    return FormulaText(f"interp({at}, {name})", where, tables=((name, table_of(settings, where)),))
