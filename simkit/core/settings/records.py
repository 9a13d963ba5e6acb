"""Tables that are read as frozen dataclasses: each field has the declaration of its key."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from simkit.core.settings.setting import Rule, Setting, Settings, read, schema_of
from simkit.errors import UserError


def declared(setting: Setting, *, key: str = "", example: Any = None) -> Any:
    """Return a field of a dataclass with the declaration of its key; its default is that of the setting.

    Args:
        setting: the declaration.
        key: name of the key, if it is not that of the field.
        example: value in place of a missing or wrong one, to look for further mistakes.
    """
    metadata = {"setting": dataclasses.replace(setting, example=setting.example or example), "key": key}
    if setting.is_required:
        return dataclasses.field(metadata=metadata)
    if setting.default is None or isinstance(setting.default, str | int | float):
        return dataclasses.field(default=setting.default, metadata=metadata)
    return dataclasses.field(default_factory=setting.instead, metadata=metadata)


def keys_of(record: type) -> dict[str, Setting]:
    """Return the declared keys of a dataclass, with their settings."""
    return {key: setting for key, (_, setting) in _fields_of(record).items()}


def fields_of(record: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a checked table by the names of the fields of a dataclass."""
    return {field: values[key] for key, (field, _) in _fields_of(record).items()}


def record[T](
    doc: str, made: type[T], rules: tuple[Rule, ...] = (), shorthand: str = "", *, is_required: bool = False
) -> Setting:
    """Return a setting that is a table, kept as an instance of a dataclass with `declared` fields.

    Args:
        doc: its meaning.
        made: the dataclass.
        rules: what must hold between keys.
        shorthand: key of a value that is written in place of the table; empty if there must be one.
        is_required: whether the table must be given.
    """
    keys = keys_of(made)

    def check(value: Any, where: str) -> T:
        entries = value if isinstance(value, Mapping) or not shorthand else {shorthand: value}
        try:
            return of(read(entries, keys, where, rules))
        except UserError as error:
            error.partial = of(error.partial)
            raise

    def of(values: Settings) -> T:
        return made(**fields_of(made, values))

    def describe() -> dict[str, Any]:
        schema = schema_of(keys, rules)
        return {"anyOf": [dict(keys[shorthand].schema), schema]} if shorthand else schema

    example = of(Settings({key: setting.instead() for key, setting in keys.items()}, "", frozenset()))
    return Setting("a table", doc, check, None, lambda: keys, is_required, describe, "table", example=example)


def _fields_of(record: type) -> dict[str, tuple[str, Setting]]:
    return {
        field.metadata["key"] or field.name: (field.name, field.metadata["setting"])
        for field in dataclasses.fields(record)  # pyright: ignore[reportArgumentType]
        if "setting" in field.metadata
    }
