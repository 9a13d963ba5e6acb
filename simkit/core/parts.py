"""Parts: what a table of a file chooses by name, with keys that each part declares itself.

A part is a function, such as a potential, that is listed in one line of the registry of its kind, or that an installed
package registers by an entry point of the group ``simkit.KINDs``. Its declaration stands beside its equation::

    @part(
        keys={"exponent": number("2 is harmonic, 2.5 Hertzian", 2.0, (2.0, 64.0))},
        values={"epsilon": formula("energy scale", unit="energy"), "sigma": formula("first contact", unit="length")},
        excludes={"cutoff": "which ends by itself"},
    )
    def soft_sphere(exponent: float = 2.0) -> PairPotential: ...

A `PartTable` is a table of a file in which each `Choice` chooses one part of a kind. Neither knows any names: checks,
defaults, remedies, the JSON Schema and the list of keys are made of the declarations.
"""

import contextlib
import dataclasses
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from simkit.core.paths import below
from simkit.core.settings.kinds import word
from simkit.core.settings.setting import FormulaText, Setting, Settings, read, schema_of, shown
from simkit.errors import Mistakes, Remedy, UserError


@dataclasses.dataclass(frozen=True)
class Declaration:
    """What a part declares.

    Attributes:
        keys: options of its function, by name of the argument, such as a number of thermostats; another value compiles
            anew.
        values: numbers that it takes, written as formulas of the parameters, so that they may be swept and
            differentiated.
        excludes: keys of the table that have no effect on it, each with the reason: ``"which ends by itself"``. The key
            of a later choice of the table stands for all keys of its parts.
        needs: keys that have an effect only beside a value of another key: ``{"azimuth": ("camera", "perspective")}``.
    """

    keys: Mapping[str, Setting] = dataclasses.field(default_factory=dict)
    values: Mapping[str, Setting] = dataclasses.field(default_factory=dict)
    excludes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    needs: Mapping[str, tuple[str, Any]] = dataclasses.field(default_factory=dict)


def part[Function: Callable[..., Any]](
    *,
    keys: Mapping[str, Setting] | None = None,
    values: Mapping[str, Setting] | None = None,
    excludes: Mapping[str, str] | None = None,
) -> Callable[[Function], Function]:
    """Return a decorator that attaches the declaration of a part to its function; arguments as for `Declaration`."""

    def mark(function: Function) -> Function:
        function.declaration = Declaration(keys or {}, values or {}, excludes or {})  # type: ignore[attr-defined]
        return function

    return mark


def declaration_of(function: Any) -> Declaration:
    """Return what a part declares; nothing if it has no declaration."""
    return getattr(function, "declaration", Declaration())


class Parts(Protocol):
    """A registry of parts of one kind, see `simkit.plugins.Registry`."""

    kind: str

    def names(self) -> list[str]:
        """Return every name, sorted."""
        ...

    def resolve(self, name: str) -> Any:
        """Return the part of that name."""
        ...


@dataclasses.dataclass(frozen=True)
class Choice:
    """What chooses a part in a table: its name, a key of that name, or else the default.

    ``{ potential = "morse", ... }`` chooses `morse` by the key ``potential``; ``{ lattice = "square", ... }`` chooses
    ``lattice``, whose declaration has a key of its own name.

    Attributes:
        parts: registry of the kind.
        key: key of the table that names the part.
        doc: meaning of that key.
        default: name of the part where the table chooses none; ``None`` if it must choose.
        is_optional: whether there is no part unless the table has one of its keys.
        values: name and setting of the inner table for the values of a part; ``None`` if these are keys of the table,
            too.
    """

    parts: Parts
    key: str
    doc: str
    default: str | None = None
    is_optional: bool = False
    values: tuple[str, Setting] | None = None

    def part(self, settings: Settings) -> Any:
        """Return the part that a table chooses."""
        return self.parts.resolve(settings[self.key])

    def make(self, settings: Settings) -> Any:
        """Return what the part makes of the options in the table."""
        function = self.part(settings)
        return function(**{key: settings[key] for key in declaration_of(function).keys})

    def name(self, entries: Mapping[str, Any]) -> str | None:
        """Return the name of the part that a table chooses; ``None`` for an unknown name, or without any."""
        known = self.parts.names()
        if self.key in entries:
            name = entries[self.key]
            return name if isinstance(name, str) and name in known else None
        for key in entries:
            if key in known and key in declaration_of(self.parts.resolve(key)).keys:
                return str(key)
        is_used = not self.is_optional or (self.default and not self._own(self.default).keys().isdisjoint(entries))
        return self.default if is_used else None

    def keys_of(self, name: str | None) -> dict[str, Setting]:
        """Return the keys of a part, and the one that names it; ``None`` for no part."""
        default = None if self.is_optional else self.default
        selector = word(self.doc, tuple(self.parts.names()), default)
        if default is None:
            selector = dataclasses.replace(selector, is_required=False)
        return {self.key: selector} | ({} if name is None else self._own(name))

    def every_key(self) -> dict[str, Setting]:
        """Return the keys of all parts, each with the names of the parts that take it."""
        declared = {name: declaration_of(self.parts.resolve(name)) for name in self.loadable()}
        keys = _merged({name: each.keys for name, each in declared.items()})
        values = _merged({name: each.values for name, each in declared.items()})
        return self.keys_of(None) | keys | self._settings_of(values)

    def excluded(self, name: str, groups: Mapping[str, Mapping[str, Setting]]) -> dict[str, str]:
        """Return the keys that a part excludes, each with the reason.

        Args:
            name: name of the part.
            groups: keys for which the key of a later choice stands.
        """
        declared = declaration_of(self.parts.resolve(name)).excludes
        return {each: reason for key, reason in declared.items() for each in groups.get(key, (key,))}

    def refusals(
        self,
        name: str,
        entries: Mapping[str, Any],
        common: Mapping[str, Setting],
        groups: Mapping[str, Mapping[str, Setting]],
    ) -> dict[str, str]:
        """Return the keys of a table that have no effect on a part, each with a message; not those that nobody knows.

        Args:
            name: name of the part.
            entries: the table.
            common: keys of the table whatever part it chooses.
            groups: as for `excluded`.
        """
        excluded = self.excluded(name, groups)
        doubtful = [key for key in entries if key not in self.keys_of(name) and key not in common]
        of_others = self.every_key().keys() & doubtful if doubtful else set()
        reasons = {key: f", {excluded[key]}" for key in entries if key in excluded} | dict.fromkeys(of_others, "")
        return {
            key: f"has no effect on {self.key} = '{name}'{reasons[key]}; leave it out"
            for key in entries
            if key in reasons
        }

    def refuse_alone(self, settings: Settings) -> None:
        """Refuse keys that need a value of another key beside them.

        Args:
            settings: the checked table.

        Raises:
            UserError: for the first such key.
        """
        if settings[self.key] is None:
            return
        for key, (other, value) in declaration_of(self.part(settings)).needs.items():
            if key in settings.given and settings[other] != value:
                raise settings.refuse(key, f"needs {other} = {shown(value)} beside it; add that, or remove {key}")

    def missing(self, where: str) -> str:
        """Return the message for a table that chooses no part, but must."""
        ways = [self.key, *(name for name in self.loadable() if name in self._own(name))]
        if len(ways) == 1:
            return f"{below(where, self.key)} is missing; choose one of {', '.join(self.parts.names())}"
        return f"{where} chooses no {self.parts.kind}; give one of {', '.join(ways)}"

    def conditions(self, groups: Mapping[str, Mapping[str, Setting]]) -> list[dict[str, Any]]:
        """Return the JSON Schema of what each part needs and excludes."""
        loadable = self.loadable()
        markers = [name for name in loadable if name in self._own(name)]
        special = set(self.every_key()) - {self.key}
        rules = []
        if self.default is None and not self.is_optional:
            rules.append({"anyOf": [{"required": [key]} for key in (self.key, *markers)]})
        for name in loadable:
            own, excluded = self._own(name), self.excluded(name, groups)
            needed = [key for key, setting in own.items() if setting.is_required]
            ways: list[dict[str, Any]] = [{"properties": {self.key: {"const": name}}, "required": [self.key]}]
            if name in markers:
                ways.append({"required": [name], "not": {"required": [self.key]}})
            elif name == self.default and not self.is_optional:
                ways.append({"not": {"anyOf": [{"required": [key]} for key in (self.key, *markers)]}})
            elif name == self.default:
                ways.append({"anyOf": [{"required": [key]} for key in own], "not": {"required": [self.key]}})
            idle = dict.fromkeys(sorted((special - set(own)) | set(excluded)), False)
            rules.append({"if": {"anyOf": ways}, "then": {"properties": idle, "required": needed}})
        return rules

    def loadable(self) -> list[str]:
        """Return the names of all parts, without those of other packages that cannot be imported."""
        names = []
        for name in self.parts.names():
            with contextlib.suppress(UserError):
                self.parts.resolve(name)
                names.append(name)
        return names

    def _own(self, name: str) -> dict[str, Setting]:
        declaration = declaration_of(self.parts.resolve(name))
        return {**declaration.keys, **self._settings_of(declaration.values)}

    def _settings_of(self, values: Mapping[str, Setting]) -> dict[str, Setting]:
        """Return the keys for the values of a part: themselves, or those of an inner table, which takes others too."""
        if self.values is None:
            return dict(values)
        key, setting = self.values

        def describe() -> dict[str, Any]:
            free = setting.schema.get("additionalProperties", {})
            properties = schema_of(values)["properties"]
            # A value may be written in every way that the table allows; what is said of it stays.
            kept = (
                properties
                if not free
                else {
                    name: {key: each[key] for key in ("description", "x-unit", "default") if key in each} | free
                    for name, each in properties.items()
                }
            )
            return {**setting.schema, "properties": kept}

        return {key: dataclasses.replace(setting, inner=lambda: values, describe=describe, form="table")}


def _merged(by_part: Mapping[str, Mapping[str, Setting]]) -> dict[str, Setting]:
    """Return the settings of several parts: each meaning with the names of its parts, none required.

    A setting that parts share has a default only if it is the same for all.
    """
    takers: dict[str, dict[str, Setting]] = {}
    for name, settings in by_part.items():
        for key, setting in settings.items():
            takers.setdefault(key, {})[name] = setting
    merged = {}
    for key, settings in takers.items():
        names_of_docs: dict[str, list[str]] = {}
        for name, setting in settings.items():
            names_of_docs.setdefault(setting.doc, []).append(name)
        doc = "; ".join(f"{', '.join(names)}: {doc}" for doc, names in names_of_docs.items())
        first, *others = settings.values()
        default = first.default if all(other.default == first.default for other in others) else None
        merged[key] = dataclasses.replace(first, doc=doc, default=default, is_required=False)
    return merged


@dataclasses.dataclass(frozen=True)
class PartTable:
    """A table with keys of its own and one part for each choice.

    Attributes:
        choices: what chooses the parts.
        common: keys of the table whatever parts it chooses.
    """

    choices: tuple[Choice, ...]
    common: Mapping[str, Setting]

    def setting(self, doc: str, default: Any = None) -> Setting:
        """Return the setting of such a table; ``None`` where it is absent and has no default."""
        return Setting("a table", doc, self.read, default, self.every_key, False, self.schema, "table")

    def every_key(self) -> dict[str, Setting]:
        """Return the keys of the table and of all parts."""
        return {key: s for choice in self.choices for key, s in choice.every_key().items()} | dict(self.common)

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema: the keys of all parts, with those that each part needs and excludes."""
        conditions = [each for i, choice in enumerate(self.choices) for each in choice.conditions(self._groups(i))]
        return schema_of(self.every_key()) | {"allOf": conditions}

    def read(self, entries: Any, where: str) -> Settings:
        """Return a table with every key checked; it has the keys of the chosen parts and the common ones.

        Raises:
            UserError: if it chooses no part, or a key is unknown, has no effect on a part, or has a wrong value; lists
                all mistakes.
        """
        if not isinstance(entries, Mapping):
            raise UserError(f"{where} = {shown(entries)} is no table; write keys and values")
        mistakes = Mistakes()
        rest, keys = dict(entries), {}
        for index, choice in enumerate(self.choices):
            name = choice.name(rest)
            if name is None and choice.key not in rest and not choice.is_optional:
                raise UserError(choice.missing(where))
            if name is None and choice.key in rest:
                # An unknown name: other mistakes are told, too, as far as they do not depend on it.
                keys |= choice.every_key()
                continue
            keys |= choice.keys_of(name)
            if name is not None:
                for key, problem in choice.refusals(name, rest, self.common, self._groups(index)).items():
                    path = below(where, key)
                    mistakes.found.append(UserError(f"{path} {problem}", key=path, remedy=Remedy("remove")))
                    del rest[key]
                rest[choice.key] = name
        settings = Settings({}, where, frozenset())
        with mistakes.kept():
            settings = read(rest, keys | dict(self.common), where)
            for choice in self.choices:
                choice.refuse_alone(settings)
        mistakes.raise_if_any()
        return Settings(dict(settings), where, frozenset(map(str, entries)))

    def _groups(self, index: int) -> dict[str, dict[str, Setting]]:
        """Return the keys of each choice after one of them, by the key that names its part."""
        return {choice.key: choice.every_key() for choice in self.choices[index + 1 :]}


def formulas_in(settings: Settings) -> dict[str, FormulaText]:
    """Return the formulas among the values of a table, by key."""
    return {key: value for key, value in settings.items() if isinstance(value, FormulaText)}


def table_of(text: str, key: str) -> dict[str, Any]:
    """Return the table of a choice on one line: ``"adam:learning_rate=0.05"`` chooses ``adam`` with that option.

    Args:
        text: name of the part; after a colon its options, with commas between them and values as in TOML.
        key: key of the table that names the part.

    Raises:
        UserError: if an option is not written ``KEY=VALUE``.
    """
    name, _, options = text.partition(":")
    table: dict[str, Any] = {key: name}
    if not options:
        return table
    for option in re.split(r",(?=\s*\w+\s*=)", options):
        option_key, sign, value = option.partition("=")
        if not sign:
            raise UserError(f"{key} = {shown(text)} has the option {shown(option)}; write {name}:KEY=VALUE,KEY=VALUE")
        try:
            table[option_key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            table[option_key.strip()] = value.strip()  # text may be written without quotes
    return table
