"""Declarations of settings (kind, default, meaning), and the check of tables against them."""

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, Literal, Unpack, get_args, get_origin, get_type_hints

from simkit.core.parameter import UNBOUNDED
from simkit.core.paths import below
from simkit.errors import Mistakes, Remedy, UserError, nearest, one_line

type Form = Literal["value", "list", "table", "names", "arrays", "branch"]


@dataclasses.dataclass(frozen=True)
class FormulaText:
    """A formula as written in a file.

    Attributes:
        text: the expression.
        where: path of its key, for messages.
        bounds: lowest and highest value that it may have.
        takes: names that it may take besides parameters, such as ``time``.
        tables: `simkit.core.settings.tables.Table` by name, those of the formula alone.
    """

    text: str
    where: str
    bounds: tuple[float, float] = UNBOUNDED
    takes: tuple[str, ...] = ()
    tables: tuple[tuple[str, Any], ...] = ()


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
        form: whether it is a list, a table of declared keys, a table of names chosen by the user, arrays by name, the
            path of parameters, or a single value; of a setting that may be written in several ways, the form of the
            first one.
        unit: unit of a formula, in words such as ``"energy"``; empty for pure numbers and other values.
        bounds: lowest and highest value of a number or formula.
        example: value in place of a wrong or missing one without default, to look for further mistakes.
        of_axes: ``count -> `` the setting in a space of that many axes, if it depends on their number.
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
    example: Any = None
    of_axes: "Callable[[int], Setting] | None" = None

    @property
    def keys(self) -> "Mapping[str, Setting]":
        """Declared keys of its table or tables; none for other values."""
        return self.inner()

    @property
    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of its values."""
        return self.describe()

    def instead(self) -> Any:
        """Return the checked value in place of a wrong one."""
        with contextlib.suppress(UserError):
            return self.example if self.default is None else self.check(self.default, "")


@dataclasses.dataclass(frozen=True)
class Rule:
    """What must hold between keys of a table.

    Attributes:
        keys: keys on which it depends; it is not checked where one of them is wrong.
        check: ``table -> mistake``, or ``None``.
        schema: JSON Schema of the rule.
    """

    keys: tuple[str, ...]
    check: "Callable[[Settings], UserError | None]"
    schema: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def needs(keys: tuple[str, ...], other: str, *values: str) -> tuple[Rule, ...]:
    """Return the rules that keys have an effect only beside another one.

    Args:
        keys: keys of a table.
        other: key that must be given, too.
        values: values that it may have; empty for any.
    """

    def check(key: str, table: "Settings") -> UserError | None:
        if key not in table.given or (other in table.given and (not values or table[other] in values)):
            return None
        wanted = f"{other} = {' or '.join(map(repr, values))}" if values else other
        return table.refuse(key, f"has an effect only beside {wanted}; add that, or leave {key} out")

    then = {"required": [other]} | ({"properties": {other: {"enum": list(values)}}} if values else {})
    return tuple(Rule((key, other), partial(check, key), {"if": {"required": [key]}, "then": then}) for key in keys)


def excludes(other: str, keys: tuple[str, ...], *values: Any) -> tuple[Rule, ...]:
    """Return the rules that keys have no effect beside another one; those that are zero or false do no harm.

    Args:
        other: key of a table.
        keys: those without effect where it is given.
        values: values of it for which that holds; empty for any.
    """

    def check(key: str, table: "Settings") -> UserError | None:
        is_idle = isinstance(table[key], int | float) and not table[key]
        if not table.has(key) or is_idle or not table.has(other) or (values and table[other] not in values):
            return None
        beside = f"{other} = {shown(table[other])}" if values else other
        return table.refuse(key, f"has no effect beside {beside}; leave it out", Remedy("remove"))

    condition = {"required": [other]} | ({"properties": {other: {"enum": list(values)}}} if values else {})
    return tuple(
        Rule((key, other), partial(check, key), {"if": condition, "then": {"properties": {key: False}}}) for key in keys
    )


def one_of(*keys: str, unless: str = "") -> tuple[Rule, ...]:
    """Return the rule that exactly one of several keys is given.

    Args:
        *keys: of a table; one that is false counts as not given.
        unless: key beside which none of them is needed; empty for no such key.
    """

    def check(table: "Settings") -> UserError | None:
        given = [key for key in keys if table.has(key)]
        if len(given) == 1 or (unless and not given and table.has(unless)):
            return None
        wanted = f"give one of {', '.join(keys)}"
        if given:
            return table.refuse(given[1], f"is given beside {given[0]}; {wanted}")
        return UserError(f"{table.where}: {wanted}", key=table.where)

    return (Rule((*keys, unless) if unless else keys, check),)


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

    def has(self, key: str) -> bool:
        """Return whether a key is given, and is not false."""
        return key in self.given and self._values.get(key) is not None and self._values[key] is not False

    def path(self, key: str) -> str:
        """Return the path of a key, for messages."""
        return below(self.where, key)

    def refuse(self, key: str, problem: str, remedy: Remedy | None = None, hint: str = "") -> UserError:
        """Return an error about a key.

        Args:
            key: name of the key.
            problem: the problem and its remedy.
            remedy: the remedy as data, where there is one only.
            hint: a name that may have been meant.
        """
        return UserError(f"{self.path(key)} {problem}", hint, key=self.path(key), remedy=remedy)


def check_table(entries: Any, where: str, instead: Callable[[], Any] = lambda: None) -> None:
    """Refuse what is no table.

    Args:
        entries: the table as written in a file.
        where: path of the table.
        instead: returns what takes its place while further mistakes are looked for.

    Raises:
        UserError: that names the table.
    """
    if not isinstance(entries, Mapping):
        error = UserError(f"{where} = {shown(entries)} is no table; write keys and values", key=where)
        error.partial = instead()
        raise error


def read(entries: Any, keys: Mapping[str, Setting], where: str = "", rules: tuple[Rule, ...] = ()) -> Settings:
    """Return a table with every key checked.

    Args:
        entries: the table as written in a file.
        keys: declared keys.
        where: path of the table; empty at the top.
        rules: what must hold between keys.

    Raises:
        UserError: that names the first problem; `UserError.others` has the rest, and `UserError.partial` the table with
            defaults and examples in place of wrong values.
    """
    check_table(
        entries, where, lambda: Settings({key: each.instead() for key, each in keys.items()}, where, frozenset())
    )
    mistakes, values, wrong = Mistakes(), {}, set()
    mistakes.found += [unknown_key(str(key), keys, where) for key in entries if key not in keys]
    for key, setting in keys.items():
        before = len(mistakes.found)
        values[key] = mistakes.result(
            below(where, key), partial(_value, setting, entries, key, below(where, key)), setting.instead
        )
        wrong |= {key} if len(mistakes.found) > before else set()
    table = Settings(values, where, frozenset(map(str, entries)))
    for rule in rules:
        if wrong.isdisjoint(rule.keys) and (mistake := rule.check(table)):
            mistakes.found.append(mistake)
    mistakes.raise_if_any(table)
    return table


def _value(setting: Setting, entries: Mapping[str, Any], key: str, where: str) -> Any:
    """Return the checked value of a key, or of its default."""
    if key not in entries and setting.is_required:
        raise UserError(f"{where} is missing; give {setting.kind}: {setting.doc}")
    value = entries.get(key, setting.default)
    return None if key not in entries and value is None else setting.check(value, where)


def unknown_key(key: str, keys: Collection[str], where: str) -> UserError:
    """Return the refusal of an unknown key of a table; its remedy is the closest known name, or to leave it out.

    Args:
        key: as written in a file.
        keys: those known.
        where: path of the table.
    """
    hint, message = nearest(key, tuple(keys)), f"{below(where, one_line(key, 64))} is not a known key"
    remedy = Remedy("rename", hint.meant) if hint.meant else Remedy("remove")
    return UserError(message, hint, key=below(where, key), allowed=keys, remedy=remedy)


def declares[Factory: Callable[..., Any]](keys: Mapping[str, Setting]) -> Callable[[Factory], Factory]:
    """Return a decorator that attaches the declarations of a factory's arguments, for its schema and documentation.

    The factory then refuses other arguments as a file would.

    Args:
        keys: settings by name of argument.
    """

    def mark(factory: Factory) -> Factory:
        arguments = inspect.signature(factory).parameters

        @functools.wraps(factory)
        def checked(*positional: Any, **options: Any) -> Any:
            for key, value in options.items():
                if key not in arguments:
                    raise unknown_key(key, {name: keys[name] for name in arguments if name in keys}, "")
                if key in keys and keys[key].form != "arrays":
                    options[key] = unwrapped(value, key)
                elif key == "parameters" and value is not None:
                    check_table(value, key)
            return factory(*positional, **options)

        checked.settings = keys  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

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
        names = dict.fromkeys(name for name, each in signature.parameters.items() if each.kind is not each.VAR_KEYWORD)
        takes_any = len(names) < len(signature.parameters)
        for each in signature.parameters.values():
            # ``**options: Unpack[Options]`` takes the keys of a table.
            for table in get_args(each.annotation) if get_origin(each.annotation) is Unpack else ():
                names |= dict.fromkeys(get_type_hints(table))
                takes_any = False

        @functools.wraps(function)
        def checked(*values: Any, **named: Any) -> Any:
            for name in named:
                if name not in names and not takes_any:
                    raise unknown_key(name, names, "")
            bound = signature.bind(*values, **named)
            for name, setting in settings.items():
                is_none = bound.arguments.get(name) is None and setting.default is None and not setting.is_required
                if name in bound.arguments and not is_none:
                    bound.arguments[name] = setting.check(unwrapped(bound.arguments[name], name), name)
            return function(*bound.args, **bound.kwargs)

        checked.settings = settings  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return mark


def unwrapped(value: Any, where: str) -> Any:
    """Return numbers and arrays of array libraries as those of Python, also in tables and lists; others unchanged.

    Args:
        value: given in Python.
        where: name of the argument.

    Raises:
        UserError: for an array without numbers, such as an argument of a function that is being compiled.
    """
    if isinstance(value, Mapping):
        return {key: unwrapped(entry, below(where, key)) for key, entry in value.items()}
    if type(value) in (list, tuple) and not {float, int}.issuperset(map(type, value)):
        return type(value)(unwrapped(entry, f"{where}[{index}]") for index, entry in enumerate(value))
    if not hasattr(value, "tolist"):
        return value
    try:
        return value.tolist()
    except Exception:  # libraries raise errors of their own
        raise UserError(f"{where} is an array without numbers yet; make it a parameter, or give numbers") from None


def schema_of(keys: Mapping[str, Setting], rules: tuple[Rule, ...] = ()) -> dict[str, Any]:
    """Return the JSON Schema of a table with the given keys and rules."""
    properties = {
        key: {"description": setting.doc, **({"x-unit": setting.unit} if setting.unit else {})}
        | ({} if setting.default is None else {"default": setting.default})
        | dict(setting.schema)
        for key, setting in keys.items()
    }
    required = [key for key, setting in keys.items() if setting.is_required]
    table = {"type": "object", "properties": properties, "additionalProperties": False}
    conditions = [rule.schema for rule in rules if rule.schema]
    return table | ({"required": required} if required else {}) | ({"allOf": conditions} if conditions else {})


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


def shown(value: Any, depth: int = 0) -> str:
    """Return a value as a short printable text, as written in a scenario file, for messages."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 64:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, Mapping):
        return "{...}"
    if isinstance(value, str) and len(value.splitlines()) > 1 and len(value) > 60:
        return f"a text of {len(value.splitlines())} lines"
    if isinstance(value, list | tuple):
        text = f"[{', '.join(shown(entry, depth + 1) for entry in value[:20])}]" if depth < 8 else "[...]"
    else:
        text = repr(value) if isinstance(value, int | float | str) else str(value)
    return one_line(text, 60)
