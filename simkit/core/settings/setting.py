"""Declarations of settings (kind, default, meaning), and the check of tables against them."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from simkit.core.parameter import UNBOUNDED
from simkit.core.paths import below
from simkit.errors import Mistakes, Remedy, UserError, closest, nearest, one_line

type Form = Literal["value", "list", "table", "names"]


@dataclasses.dataclass(frozen=True)
class FormulaText:
    """A formula as written in a file.

    Attributes:
        text: the expression.
        where: path of its key, for messages.
        bounds: lowest and highest value that it may have.
        takes: names that it may take besides parameters, such as ``time``.
    """

    text: str
    where: str
    bounds: tuple[float, float] = UNBOUNDED
    takes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Setting:
    """Declaration of one key of a table.

    Attributes:
        kind: allowed values in a few words.
        doc: its meaning.
        check: ``(value, where) -> checked value``; raises `UserError`.
        default: value of an absent key, as written in a file; ``None`` for no default.
        inner: ``() -> keys`` of its table or tables, none for other values; asked for late, since parts that a table
            chooses are those of the packages that are then installed.
        is_required: whether the key must be given.
        describe: ``() -> `` JSON Schema of its values.
        form: whether it is a list, a table of declared keys, a table of names chosen by the user, or a single value; of
            a setting that may be written in several ways, the form of the first one.
        unit: unit of a formula, in words such as ``"energy"``; empty for pure numbers and other values.
        bounds: lowest and highest value of a number or formula.
    """

    kind: str
    doc: str
    check: Callable[[Any, str], Any]
    default: Any = None
    inner: "Callable[[], Mapping[str, Setting]]" = dict
    is_required: bool = False
    describe: Callable[[], Mapping[str, Any]] = dict
    form: Form = "value"
    unit: str = ""
    bounds: tuple[float, float] = UNBOUNDED

    @property
    def keys(self) -> "Mapping[str, Setting]":
        """Declared keys of its table or tables; none for other values."""
        return self.inner()

    @property
    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of its values."""
        return self.describe()


class Settings(Mapping[str, Any]):
    """A checked table: the value of every declared key, its default where the key is absent.

    Attributes:
        where: path of the table, for messages.
        given: keys given in the table.
    """

    def __init__(self, values: dict[str, Any], where: str, given: frozenset[str]) -> None:
        """Store checked values; called by `read`."""
        self._values, self.where, self.given = values, where, given

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
        return below(self.where, key)

    def refuse(self, key: str, problem: str, remedy: Remedy | None = None) -> UserError:
        """Return an error about a key.

        Args:
            key: name of the key.
            problem: the problem and its remedy.
            remedy: the remedy as data, where there is one only.
        """
        return UserError(f"{self.path(key)} {problem}", key=self.path(key), remedy=remedy)


def read(entries: Any, keys: Mapping[str, Setting], where: str = "") -> Settings:
    """Return a table with every key checked.

    Args:
        entries: the table as written in a file.
        keys: declared keys.
        where: path of the table; empty at the top.

    Raises:
        UserError: that names the first problem; `UserError.others` has the rest.
    """
    if not isinstance(entries, Mapping):
        raise UserError(f"{where} = {shown(entries)} is no table; write keys and values")
    mistakes = Mistakes()
    for key in entries:
        if key not in keys:
            mistakes.found.append(unknown_key(str(key), keys, where))
    values: dict[str, Any] = {}
    for key, setting in keys.items():
        with mistakes.kept(below(where, key)):
            if key not in entries and setting.is_required:
                raise UserError(f"{below(where, key)} is missing; give {setting.kind}: {setting.doc}")
            value = entries.get(key, setting.default)
            is_absent = key not in entries and value is None
            values[key] = None if is_absent else setting.check(value, below(where, key))
    mistakes.raise_if_any()
    return Settings(values, where, frozenset(map(str, entries)))


def unknown_key(key: str, keys: Mapping[str, Setting], where: str) -> UserError:
    """Return the refusal of an unknown key of a table; its remedy is the closest known name, or to leave it out.

    Args:
        key: as written in a file.
        keys: declared keys.
        where: path of the table.
    """
    meant = closest(key, keys)
    remedy = Remedy("rename", meant) if meant else Remedy("remove")
    message = f"{below(where, one_line(key, 64))} is not a known key{nearest(key, tuple(keys))}"
    return UserError(message, key=below(where, key), allowed=keys, remedy=remedy)


def declares[Factory: Callable[..., Any]](keys: Mapping[str, Setting]) -> Callable[[Factory], Factory]:
    """Return a decorator that attaches the declarations of a factory's arguments, for its schema and documentation.

    Args:
        keys: settings by name of argument.
    """

    def mark(factory: Factory) -> Factory:
        factory.settings = keys  # type: ignore[attr-defined]
        return factory

    return mark


def arguments[Function: Callable[..., Any]](**declared: Setting) -> Callable[[Function], Function]:
    """Return a decorator that checks arguments of a function against declarations, which are in its schema, too.

    Defaults are those of the function. It gets the checked values, and an unknown name is refused like an unknown key.

    Args:
        **declared: settings by name of argument; other arguments are not checked.
    """

    def mark(function: Function) -> Function:
        signature = inspect.signature(function)
        parameters = {name: each for name, each in signature.parameters.items() if name in declared}
        settings = {
            name: dataclasses.replace(
                declared[name],
                default=None if each.default is each.empty else each.default,
                is_required=each.default is each.empty,
            )
            for name, each in parameters.items()
        }
        takes_any = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())

        @functools.wraps(function)
        def checked(*values: Any, **named: Any) -> Any:
            for name in named:
                if name not in signature.parameters and not takes_any:
                    raise unknown_key(name, dict.fromkeys(signature.parameters, None), "")  # type: ignore[arg-type]
            bound = signature.bind(*values, **named)
            for name, setting in settings.items():
                if name in bound.arguments:
                    bound.arguments[name] = setting.check(_plain(bound.arguments[name]), name)
            return function(*bound.args, **bound.kwargs)

        checked.settings = settings  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return mark


def _plain(value: Any) -> Any:
    """Return a number of an array library as one of Python."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value


def schema_of(keys: Mapping[str, Setting]) -> dict[str, Any]:
    """Return the JSON Schema of a table with the given keys."""
    properties = {
        key: {"description": setting.doc, **({"x-unit": setting.unit} if setting.unit else {})}
        | ({} if setting.default is None else {"default": setting.default})
        | dict(setting.schema)
        for key, setting in keys.items()
    }
    required = [key for key, setting in keys.items() if setting.is_required]
    table = {"type": "object", "properties": properties, "additionalProperties": False}
    return table | ({"required": required} if required else {})


def listing(keys: Mapping[str, Setting], path: str = "") -> list[tuple[str, Setting]]:
    """Return every key with its path, each followed by those of its inner tables; ``NAME`` is a name the user chooses.

    Args:
        keys: declared keys.
        path: path of their table.
    """
    rows = []
    for key, setting in keys.items():
        here = below(path, key)
        rows.append((here, setting))
        rows += listing(setting.keys, here + {"list": "[]", "names": ".NAME"}.get(setting.form, ""))
    return rows


def shown(value: Any) -> str:
    """Return a value on one short line, for messages."""
    if isinstance(value, int) and value.bit_length() > 64:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, list | tuple):
        return one_line(f"[{', '.join(map(shown, value))}]", 60)
    return one_line(repr(value) if isinstance(value, str) else value, 60)
