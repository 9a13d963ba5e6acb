"""Settings of a system as data: tables whose keys are declared once, read and checked all together."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from simkit.core.parameter import UNBOUNDED, out_of_bounds
from simkit.errors import UserError, nearest, one_line

_REQUIRED: Any = object()


@dataclasses.dataclass(frozen=True)
class Said:
    """A formula as it was written: text or a number, and where.

    Attributes:
        text: of the expression.
        where: the path of its key, for messages.
    """

    text: str
    where: str


@dataclasses.dataclass(frozen=True)
class Setting:
    """One key of a table.

    Attributes:
        kind: what may be written, in a few words.
        doc: what it means.
        check: ``(value, where) -> value`` as it is kept; raises `UserError`.
        default: what an absent key means, as it would be written; ``None`` for nothing.
        keys: of the table, or of each of several tables, that it is; empty for anything else.
        is_required: whether it must be there.
    """

    kind: str
    doc: str
    check: Callable[[Any, str], Any]
    default: Any = None
    keys: "Mapping[str, Setting]" = dataclasses.field(default_factory=dict)
    is_required: bool = False


class Settings(Mapping[str, Any]):
    """A checked table: the value of every declared key, that of its default where it is absent.

    Attributes:
        where: path of the table, for messages.
        said: keys that are there.
    """

    def __init__(self, values: dict[str, Any], where: str, said: frozenset[str]) -> None:
        """Keep what was checked; `read` makes these."""
        self._values, self.where, self.said = values, where, said

    def __getitem__(self, key: str) -> Any:
        """Return the value of a key."""
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the declared keys."""
        return iter(self._values)

    def __len__(self) -> int:
        """Return how many keys there are."""
        return len(self._values)

    def path(self, key: str) -> str:
        """Return the path of a key, for messages."""
        return _below(self.where, key)

    def refuse(self, key: str, problem: str) -> UserError:
        """Return the error that a key has a problem.

        Args:
            key: which.
            problem: what is wrong and what to do.
        """
        return UserError(f"{self.path(key)} {problem}")


def read(entries: Any, keys: Mapping[str, Setting], where: str = "") -> Settings:
    """Return a table with every key checked.

    Args:
        entries: the table as it was written.
        keys: the declared ones.
        where: path of the table; empty at the top.

    Raises:
        UserError: that names the first problem; `UserError.others` has all that follow.
    """
    if not isinstance(entries, Mapping):
        raise UserError(f"{where} = {_shown(entries)} is no table; write keys and values")
    problems: list[str] = []

    def attempt(key: str, check: Callable[[Any, str], Any], value: Any) -> Any:
        try:
            return check(value, _below(where, key))
        except UserError as error:
            problems.extend((str(error), *error.others))
            return None

    for key in entries:
        if key not in keys:
            hint = nearest(str(key)[:64], tuple(keys))
            problems.append(f"{_below(where, one_line(key, 64))} is not a known key{hint}")
    values: dict[str, Any] = {}
    for key, setting in keys.items():
        if key in entries:
            values[key] = attempt(key, setting.check, entries[key])
        elif setting.is_required:
            problems.append(f"{_below(where, key)} is missing; give {setting.kind}: {setting.doc}")
        else:
            values[key] = None if setting.default is None else attempt(key, setting.check, setting.default)
    if problems:
        raise UserError(problems[0], others=problems[1:])
    return Settings(values, where, frozenset(map(str, entries)))


def declares[Factory: Callable[..., Any]](keys: Mapping[str, Setting]) -> Callable[[Factory], Factory]:
    """Return a decorator of a factory, which tells the schema and the documentation what its arguments may hold.

    Args:
        keys: settings by name of argument.
    """

    def mark(factory: Factory) -> Factory:
        factory.settings = keys  # type: ignore[attr-defined]
        return factory

    return mark


def number(doc: str, default: Any = _REQUIRED, bounds: tuple[float, float] = UNBOUNDED) -> Setting:
    """Return a setting that is one number; of ``default = None``, one that may be left out."""

    def check(value: Any, where: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise UserError(f"{where} = {_shown(value)} is not a finite number; write one")
        if not bounds[0] <= value <= bounds[1]:
            raise UserError(f"{where} = {value:g} {out_of_bounds(bounds)}")
        return float(value)

    return _setting("a number", doc, check, default)


def whole(doc: str, default: Any = _REQUIRED, low: int = 0, high: int = 2**31 - 1) -> Setting:
    """Return a setting that is an integer from ``low`` to ``high``."""

    def check(value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            limit = f"at least {low}" if high == 2**31 - 1 else f"{low} to {high}"
            raise UserError(f"{where} = {_shown(value)} is not an integer of {limit}; write one")
        return value

    return _setting("an integer", doc, check, default)


def flag(doc: str, default: bool = False) -> Setting:
    """Return a setting that is true or false."""

    def check(value: Any, where: str) -> bool:
        if not isinstance(value, bool):
            raise UserError(f"{where} = {_shown(value)} is neither true nor false; write one of them")
        return value

    return _setting("true or false", doc, check, default)


def word(doc: str, allowed: tuple[str, ...], default: Any = _REQUIRED) -> Setting:
    """Return a setting that is one of a few words."""

    def check(value: Any, where: str) -> str:
        if not isinstance(value, str) or value not in allowed:
            hint = nearest(value[:64], allowed) if isinstance(value, str) else ""
            rest = hint if "did you mean" in hint else f"; choose one of {', '.join(allowed)}"
            raise UserError(f"{where} = {_shown(value)} is unknown{rest}")
        return value

    return _setting(" or ".join(f'"{each}"' for each in allowed), doc, check, default)


def text(doc: str, default: Any = _REQUIRED) -> Setting:
    """Return a setting that is text, such as that of a file."""

    def check(value: Any, where: str) -> str:
        if not isinstance(value, str):
            raise UserError(f"{where} = {_shown(value)} is no text; write it in quotes")
        return value

    return _setting("text", doc, check, default)


def formula(doc: str, default: Any = _REQUIRED) -> Setting:
    """Return a setting that is a number or an expression, kept as `Said`."""
    return _setting("a number or an expression", doc, said, default)


def several(of: Setting, doc: str, counts: tuple[int, ...] = (), default: Any = _REQUIRED) -> Setting:
    """Return a setting that is a list of what another one is, kept as a tuple.

    Args:
        of: what each entry is.
        doc: what it means.
        counts: how many there may be; empty for any number.
        default: as it would be written.
    """

    def check(value: Any, where: str) -> tuple:
        if not isinstance(value, list | tuple):
            raise UserError(f"{where} = {_shown(value)} is no list; write several in brackets")
        if counts and len(value) not in counts:
            wanted = " or ".join(map(str, counts))
            raise UserError(f"{where} has {len(value)} entries; write {wanted}")
        return tuple(of.check(entry, f"{where}[{place}]") for place, entry in enumerate(value))

    many = f"{' or '.join(map(str, counts))} " if counts else ""
    return _setting(f"a list of {many}of: {of.kind}", doc, check, default, of.keys)


def table(doc: str, keys: Mapping[str, Setting], default: Any = None) -> Setting:
    """Return a setting that is a table of other ones; ``None`` where it is absent and has no default."""
    return _setting("a table", doc, lambda value, where: read(value, keys, where), default, keys)


def named(doc: str, one: Setting) -> Setting:
    """Return a setting that is a table whose keys are names of the user's own, kept as a dictionary."""

    def check(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise UserError(f"{where} = {_shown(value)} is no table; write names and what they stand for")
        problems, found = [], {}
        for name, entry in value.items():
            try:
                if not str(name).isidentifier() or len(str(name)) > 64:
                    raise UserError(
                        f"{where}: {one_line(name, 40)!r} is not a name; use up to 64 letters, digits and _"
                    )
                found[str(name)] = one.check(entry, _below(where, name))
            except UserError as error:
                problems.extend((str(error), *error.others))
        if problems:
            raise UserError(problems[0], others=problems[1:])
        return found

    return _setting(f"a table, by name, of: {one.kind}", doc, check, {}, one.keys)


def either(doc: str, *kinds: Setting, default: Any = _REQUIRED) -> Setting:
    """Return a setting that may be written in several ways; that of a value's own type counts.

    Args:
        doc: what it means.
        *kinds: at most one for tables, lists and all else each.
        default: as it would be written.
    """

    def form(value: Any) -> str:
        return "table" if isinstance(value, Mapping) else "list" if isinstance(value, list | tuple) else "other"

    def form_of(kind: Setting) -> str:
        return "table" if kind.kind.startswith("a table") else "list" if kind.kind.startswith("a list") else "other"

    forms = {form_of(kind): kind for kind in kinds}

    def check(value: Any, where: str) -> Any:
        if form(value) not in forms:
            ways = ", or ".join(kind.kind for kind in kinds)
            raise UserError(f"{where} = {_shown(value)} is of another kind; write {ways}")
        return forms[form(value)].check(value, where)

    inner = {key: setting for kind in kinds for key, setting in kind.keys.items()}
    return _setting(", or ".join(kind.kind for kind in kinds), doc, check, default, inner)


def said(value: Any, where: str) -> Said:
    """Return a formula as it was written.

    Args:
        value: a number or text.
        where: path of its key.

    Raises:
        UserError: if it is neither, or no expression.
    """
    from simkit.core.expressions.syntax import parse

    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return Said(repr(float(value)), where)
    if not isinstance(value, str):
        raise UserError(f"{where} = {_shown(value)} is neither a number nor an expression; write one in quotes")
    parse(value, where)
    return Said(value, where)


def _setting(
    kind: str, doc: str, check: Callable[[Any, str], Any], default: Any, keys: Mapping[str, Setting] | None = None
) -> Setting:
    required = default is _REQUIRED
    return Setting(kind, doc, check, None if required else default, keys or {}, required)


def _below(where: str, key: object) -> str:
    return f"{where}.{key}" if where else str(key)


def _shown(value: Any) -> str:
    return one_line(repr(value) if isinstance(value, str) else value, 60)
