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
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Protocol

from simkit.core.paths import below
from simkit.core.settings.kinds import AXES, several, word
from simkit.core.settings.setting import FormulaText, Rule, Setting, Settings, check_table, read, schema_of, shown
from simkit.errors import Mistakes, Remedy, UserError


@dataclasses.dataclass(frozen=True)
class Declaration:
    """What a part declares; as a decorator, ``@part(keys={...})``, it marks the function of the part.

    Attributes:
        keys: options of its function, by name of the argument, such as a number of thermostats; another value compiles
            anew.
        values: numbers that it takes, written as formulas of the parameters, so that they may be swept and
            differentiated.
        excludes: keys of the table that have no effect on it, each with the reason: ``"which ends by itself"``. The key
            of a later choice of the table stands for all keys of its parts.
        aliases: names that others use for its keys, each with the key to write.
        dimensions: numbers of axes of space that it serves; empty for any.
        rules: what must hold between its keys, such as ``needs(("azimuth",), "camera", "perspective")``.

    Example:
        >>> @core.part(values={"k": core.formula("stiffness", unit="energy / length^2")})
        ... def harmonic():
        ...     return molecular.potentials.pair_potential(lambda r, k: k / 2 * (r - 1) ** 2)
        >>> sorted(harmonic.declaration.values), harmonic().energy(jnp.array(1.5), k=8.0).item()
        (['k'], 1.0)
    """

    keys: Mapping[str, Setting] = dataclasses.field(default_factory=dict)
    values: Mapping[str, Setting] = dataclasses.field(default_factory=dict)
    excludes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)
    dimensions: tuple[int, ...] = ()
    rules: tuple[Rule, ...] = ()

    def __call__[Function: Callable[..., Any]](self, function: Function) -> Function:
        """Attach the declaration to the function of a part, which is returned."""
        function.declaration = self  # type: ignore[attr-defined]
        return function


part = Declaration


def declaration_of(function: Any) -> Declaration:
    """Return what a part declares; nothing if it has no declaration."""
    return getattr(function, "declaration", Declaration())


_CHOSEN: ContextVar[list[Any] | None] = ContextVar("chosen_parts", default=None)


@contextlib.contextmanager
def chosen_parts() -> Iterator[list[Any]]:
    """Collect the parts that the tables read inside the block choose, in order and perhaps more than once."""
    chosen: list[Any] = []
    token = _CHOSEN.set(chosen)
    try:
        yield chosen
    finally:
        _CHOSEN.reset(token)


class Parts(Protocol):
    """A registry of parts of one kind, see `simkit.plugins.Registry`."""

    kind: str
    aliases: Mapping[str, str]
    own: Mapping[str, str]

    def names(self) -> list[str]:
        """Return every name, sorted."""
        ...

    def resolve(self, name: str) -> Any:
        """Return the part of that name."""
        ...

    def blamed(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Name the package of a part whose code fails in the block."""
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
        declared: ``part -> `` its declaration at this place; by default that which the part has anywhere.
        unfit: ``part -> `` why it does not serve at this place, such as ``"takes a whole side"``; ``None`` if it does.
        dimension: number of axes of space: parts that serve other numbers are refused, and lists of `per_axis` have as
            many entries; ``None`` where it is not known.
    """

    parts: Parts
    key: str
    doc: str
    default: str | None = None
    is_optional: bool = False
    values: tuple[str, Setting] | None = None
    declared: Callable[[Any], Declaration] = declaration_of
    unfit: Callable[[Any], str | None] = lambda part: None
    dimension: int | None = None

    def part(self, settings: Settings) -> Any:
        """Return the part that a table chooses."""
        part = self.parts.resolve(settings[self.key])
        if (chosen := _CHOSEN.get()) is not None:
            chosen.append(part)
        return part

    def make(self, settings: Settings, makes: tuple[Any, ...] = ()) -> Any:
        """Return what the part makes of the options in the table.

        Args:
            settings: the table.
            makes: classes of what it may return; empty for anything.
        """
        options = {key: settings[key] for key in declaration_of(self.part(settings)).keys}
        return self.call(settings, makes, **options)

    def call(self, settings: Settings, makes: tuple[Any, ...], *arguments: Any, **options: Any) -> Any:
        """Return what the part makes of arguments.

        Args:
            settings: the table that chooses it.
            makes: classes of what it may return; empty for anything.
            *arguments: of its function.
            **options: of its function.

        Raises:
            UserError: if its code fails, or returns something else; names the package.
        """
        with self.parts.blamed(settings[self.key]):
            made = self.part(settings)(*arguments, **options)
            if makes and not isinstance(made, makes):
                raise TypeError(f"returns {type(made).__name__}, not {' or '.join(each.__name__ for each in makes)}")
        return made

    def name(self, entries: Mapping[str, Any]) -> str | None:
        """Return the name of the part that a table chooses; ``None`` for an unknown name, or without any."""
        fitting = self.fitting()
        if self.key in entries:
            name = entries[self.key]
            return name if isinstance(name, str) and name in fitting else None
        for key in entries:
            if key in fitting and key in self._own(key):
                return str(key)
        is_used = not self.is_optional or (self.default and not self._own(self.default).keys().isdisjoint(entries))
        return self.default if is_used else None

    def keys_of(self, name: str | None) -> dict[str, Setting]:
        """Return the keys of a part, and the one that names it; ``None`` for no part."""
        default = None if self.is_optional else self.default
        selector = word(self.doc, tuple(self.fitting()), default)
        selector = dataclasses.replace(selector, check=self.checked_name, is_required=False)
        return {self.key: selector} | ({} if name is None else self._own(name))

    def checked_name(self, value: Any, where: str) -> str:
        """Return the name of a part that serves at this place.

        Raises:
            UserError: if it is unknown, with the name to write where others call the part so, or does not serve.
        """
        names = self.fitting()
        if isinstance(value, str) and value in self.parts.names():
            part = self.parts.resolve(value)
            reason = self._reason(part)
            if getattr(part, "kind", value) != value:
                reason = f"is a class of the kind '{part.kind}'; register it by that name"
            if reason is not None:
                problem = f"{where} = '{value}' {reason}; choose one of {', '.join(names)}"
                raise UserError(problem, key=where, allowed=names)
        elif isinstance(value, str) and value in self.parts.aliases:
            meant = self.parts.aliases[value]
            problem = f"{where} = '{value}' is unknown; write '{meant}'"
            raise UserError(problem, key=where, allowed=names, remedy=Remedy("replace", meant))
        return word(self.doc, tuple(names)).check(value, where)

    def every_key(self, unfit: str = "") -> dict[str, Setting]:
        """Return the keys of all parts, each with the names of the parts that take it.

        Args:
            unfit: name of a part that does not serve here, but whose keys are wanted, too.
        """
        names = [*self.fitting(), *([unfit] if unfit in self.parts.names() else [])]
        declared = {name: self.declared(self.parts.resolve(name)) for name in names}
        keys = _merged({name: self._in_space(each.keys) for name, each in declared.items()})
        values = _merged({name: self._in_space(each.values) for name, each in declared.items()})
        return self.keys_of(None) | keys | self._settings_of(values)

    def excluded(self, name: str, groups: Mapping[str, Mapping[str, Setting]]) -> dict[str, str]:
        """Return the keys that a part excludes, each with the reason.

        Args:
            name: name of the part.
            groups: keys for which the key of a later choice stands.
        """
        declared = self.declared(self.parts.resolve(name)).excludes
        return {each: reason for key, reason in declared.items() for each in groups.get(key, (key,))}

    def refusals(
        self,
        name: str,
        entries: Mapping[str, Any],
        common: Mapping[str, Setting],
        groups: Mapping[str, Mapping[str, Setting]],
        where: str,
    ) -> dict[str, UserError]:
        """Return the refusals of keys of a table that have no effect on a part; not of those that nobody knows.

        Args:
            name: name of the part.
            entries: the table.
            common: keys of the table whatever part it chooses.
            groups: as for `excluded`.
            where: path of the table.
        """
        excluded, aliases = self.excluded(name, groups), self.declared(self.parts.resolve(name)).aliases
        own = self.keys_of(name)
        doubtful = [key for key in entries if key not in own and key not in common]
        of_others = self.every_key().keys() & doubtful if doubtful else set()
        reasons = dict.fromkeys(of_others, "") | {key: f", {excluded[key]}" for key in entries if key in excluded}
        refused = {}
        for key in entries:
            path = below(where, key)
            if key in doubtful and key in aliases:
                problem = f"{path} is no key of {self.key} = '{name}'; write {aliases[key]}"
                refused[key] = UserError(problem, key=path, remedy=Remedy("rename", aliases[key]))
            elif key in reasons:
                problem = f"{path} has no effect on {self.key} = '{name}'{reasons[key]}; leave it out"
                refused[key] = UserError(problem, key=path, remedy=Remedy("remove"))
        return refused

    def missing(self, where: str) -> str:
        """Return the message for a table that chooses no part, but must."""
        ways = [self.key, *(name for name in self.fitting() if name in self._own(name))]
        if len(ways) == 1:
            return f"{below(where, self.key)} is missing; choose one of {', '.join(self.parts.names())}"
        return f"{where} chooses no {self.parts.kind.replace('_', ' ')}; give one of {', '.join(ways)}"

    def conditions(self, groups: Mapping[str, Mapping[str, Setting]]) -> list[dict[str, Any]]:
        """Return the JSON Schema of what each part needs and excludes."""
        fitting = self.fitting()
        markers = [name for name in fitting if name in self._own(name)]
        special = set(self.every_key()) - {self.key}
        rules = []
        if self.default is None and not self.is_optional:
            rules.append({"anyOf": [{"required": [key]} for key in (self.key, *markers)]})
        for name in fitting:
            own, excluded, declared = (
                self._own(name),
                self.excluded(name, groups),
                self.declared(self.parts.resolve(name)),
            )
            needed = [key for key, setting in own.items() if setting.is_required]
            ways: list[dict[str, Any]] = [{"properties": {self.key: {"const": name}}, "required": [self.key]}]
            if name in markers:
                ways.append({"required": [name], "not": {"required": [self.key]}})
            elif name == self.default and not self.is_optional:
                ways.append({"not": {"anyOf": [{"required": [key]} for key in (self.key, *markers)]}})
            elif name == self.default:
                ways.append({"anyOf": [{"required": [key]} for key in own], "not": {"required": [self.key]}})
            idle = dict.fromkeys(sorted((special - set(own)) | set(excluded)), False)
            held = {"allOf": [dict(rule.schema) for rule in declared.rules]} if declared.rules else {}
            rules.append({"if": {"anyOf": ways}, "then": {"properties": idle, "required": needed, **held}})
        return rules

    def fitting(self) -> list[str]:
        """Return the names of the parts that serve here, without those of other packages that cannot be imported."""
        names = []
        for name in self.parts.names():
            with contextlib.suppress(UserError):
                if self._reason(self.parts.resolve(name)) is None:
                    names.append(name)
        return names

    def _own(self, name: str) -> dict[str, Setting]:
        declaration = self.declared(self.parts.resolve(name))
        return {**self._in_space(declaration.keys), **self._settings_of(self._in_space(declaration.values))}

    def _reason(self, part: Any) -> str | None:
        """Return why a part does not serve here; ``None`` if it does."""
        served = self.declared(part).dimensions
        if self.dimension is not None and served and self.dimension not in served:
            return f"is for {' or '.join(map(str, served))} axes, and there are {self.dimension}"
        return self.unfit(part)

    def _in_space(self, settings: Mapping[str, Setting]) -> dict[str, Setting]:
        """Return settings whose lists with an entry for each axis have as many as there are axes."""
        return {
            key: setting.of_axes(self.dimension) if setting.of_axes and self.dimension else setting
            for key, setting in settings.items()
        }

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


def per_axis(entry: Setting, doc: str) -> Setting:
    """Return a setting that is a list with an entry for each axis: as many as the space of its table has.

    Args:
        entry: setting of an entry.
        doc: its meaning.
    """
    return dataclasses.replace(several(entry, doc, AXES), of_axes=lambda count: several(entry, doc, (count,)))


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
    rules: tuple[Rule, ...] = ()

    def setting(self, doc: str, default: Any = None) -> Setting:
        """Return the setting of such a table; ``None`` where it is absent and has no default."""
        return Setting("a table", doc, self.read, default, self.every_key, False, self.schema, "table")

    def by_name(self, doc: str, value_of: str = "") -> Setting:
        """Return the setting of such a table of which only the name of its first part is written, or one value.

        Args:
            doc: its meaning.
            value_of: name of the part of which anything but a name is the value of its own key; empty for none.
        """
        choice = self.choices[0]

        def own(name: str) -> dict[str, Setting]:
            return choice.keys_of(name) | dict(self.common)

        def check(value: Any, where: str) -> Settings:
            is_name = isinstance(value, str) and (value in choice.parts.names() or value in choice.parts.aliases)
            is_value = bool(value_of) and not is_name
            name = value_of if is_value else choice.checked_name(value, where)
            checked: dict[str, Any] = {value_of: own(name)[value_of].check(value, where)} if is_value else {}
            return Settings(dict(self.read({choice.key: name}, where, checked)), where, frozenset(checked))

        def schema() -> dict[str, Any]:
            needing = {name: [key for key, each in own(name).items() if each.is_required] for name in choice.fitting()}
            names = {"enum": [name for name, keys in needing.items() if not keys]}
            # A table would be that of the part.
            return {"anyOf": [names, {"type": ["number", "string"]}]} if value_of else names

        # The names themselves are told by the key that chooses one: they are those of packages installed later, too.
        kind = f"{'a value, or ' if value_of else ''}the name of a {choice.parts.kind.replace('_', ' ')}"
        return Setting(kind, doc, check, None, dict, False, schema, "value")

    def every_key(self) -> dict[str, Setting]:
        """Return the keys of the table and of all parts."""
        return {key: s for choice in self.choices for key, s in choice.every_key().items()} | dict(self.common)

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema: the keys of all parts, with those that each part needs and excludes."""
        conditions = [each for i, choice in enumerate(self.choices) for each in choice.conditions(self._groups(i))]
        conditions += [rule.schema for rule in self.rules if rule.schema]
        return schema_of(self.every_key()) | {"allOf": conditions}

    def read(self, entries: Any, where: str, checked: Mapping[str, Any] | None = None) -> Settings:
        """Return a table with every key checked; it has the keys of the chosen parts and the common ones.

        Args:
            entries: the table as written.
            where: path of the table.
            checked: values of further keys that are checked already.

        Raises:
            UserError: if it chooses no part, or a key is unknown, has no effect on a part, or has a wrong value; lists
                all mistakes.
        """
        check_table(entries, where)
        mistakes = Mistakes()
        rest, keys = dict(entries), {}
        rules = self.rules
        for index, choice in enumerate(self.choices):
            name = choice.name(rest)
            if name is None and choice.key not in rest and not choice.is_optional:
                raise UserError(choice.missing(where))
            if name is None and choice.key in rest:
                # An unknown name: other mistakes are told, too, as far as they do not depend on it.
                wrong = rest.pop(choice.key)
                with mistakes.kept(below(where, choice.key)):
                    choice.checked_name(wrong, below(where, choice.key))
                keys |= choice.every_key(str(wrong))
                continue
            keys |= choice.keys_of(name)
            if name is not None:
                rules += choice.declared(choice.parts.resolve(name)).rules
                refused = choice.refusals(name, rest, self.common, self._groups(index), where)
                mistakes.found += refused.values()
                for key, error in refused.items():
                    value = rest.pop(key)
                    # What is written under another name needs not be told as missing.
                    if error.remedy is not None and error.remedy.action == "rename":
                        rest.setdefault(error.remedy.value, value)
                rest[choice.key] = name
        unchecked = {key: each for key, each in (keys | dict(self.common)).items() if key not in (checked or {})}
        values = mistakes.result(where, lambda: read(rest, unchecked, where, rules), dict)
        settings = Settings({**values, **(checked or {})}, where, frozenset(map(str, entries)))
        mistakes.raise_if_any(settings)
        return settings

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
        if not sign or not option_key.strip():
            raise UserError(f"{key} = {shown(text)} has the option {shown(option)}; write {name}:KEY=VALUE,KEY=VALUE")
        if option_key.strip() in table:
            raise UserError(f"{key} = {shown(text)} gives {option_key.strip()} twice; keep one of them")
        try:
            table[option_key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            table[option_key.strip()] = value.strip()  # text may be written without quotes
    return table
