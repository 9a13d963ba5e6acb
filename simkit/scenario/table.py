"""Reader of one table of a scenario file, with the full path of every key in errors."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from simkit.errors import Mistakes, Remedy, UserError, closest, nearest
from simkit.scenario import checks

_REQUIRED: Any = object()
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Table:
    """One table: collects a mistake for every unknown key, then returns checked values.

    Wrong and missing values are collected as mistakes, with the default or an example in their place, so that all
    mistakes of a file are found. Call ``mistakes.raise_if_any()`` at the end.

    Args:
        entries: the parsed TOML table.
        file: name of the file.
        path: dotted path of the table; empty for the top of the file.
        allowed: allowed keys; ``None`` for any.
        mistakes: of the file.
    """

    def __init__(
        self,
        entries: dict[str, Any],
        file: str,
        path: str,
        allowed: tuple[str, ...] | None,
        mistakes: Mistakes | None = None,
    ) -> None:
        """Collect unknown keys as mistakes."""
        self.entries, self.file, self.path, self.mistakes = entries, file, path, mistakes or Mistakes()
        for key in entries:
            if allowed is not None and key not in allowed:
                meant = closest(key, allowed)
                self._add(
                    key,
                    f"{self.where(key)} is not a known key{nearest(key, allowed)}",
                    allowed=allowed,
                    remedy=Remedy("rename", meant) if meant else Remedy("remove"),
                )

    def where(self, key: str) -> str:
        """Return the name of ``key`` in errors: file and dotted path."""
        shown = key if _BARE_KEY.fullmatch(key) else checks.show(key)
        return f"{self.file}: {self.path}.{shown}" if self.path else f"{self.file}: {shown}"

    def kept(self, key: str) -> AbstractContextManager[None]:
        """Collect the mistake of a block as one of the value of ``key``, and continue after it."""
        return self.mistakes.kept(self._path(key))

    def _add(self, key: str, message: str, **data: Any) -> None:
        self.mistakes.found.append(UserError(message, key=self._path(key), **data))

    def read[T](self, key: str, check: Callable[[Any, str], T], default: T = _REQUIRED, example: str = "") -> T:
        """Return the checked value of ``key``; the default or the example if that is a mistake.

        Args:
            key: of the value.
            check: ``(value, where) -> value``, from ``simkit.scenario.checks``.
            default: value of an absent key; without it the key is required.
            example: a TOML line for the error if a required key is missing.
        """
        with self.kept(key):
            if key in self.entries:
                return check(self.entries[key], self.where(key))
            if default is _REQUIRED:
                raise UserError(f"{self.where(key)} is missing; add a line such as {example}")
        if default is not _REQUIRED:
            return default
        import tomllib

        return tomllib.loads(example)[key]

    def table(self, key: str, allowed: tuple[str, ...] | None, example: str = "") -> "Table":
        """Return the table under ``key``; an empty one if it is absent and ``example`` is not given."""
        if key not in self.entries and example:
            self._add(key, f"{self.file}: the table [{key}] is missing; add [{key}] with {example}")
            return Table({}, self.file, self._path(key), None)
        return self._inner(key, self.entries.get(key, {}), self.where(key), self._path(key), allowed)

    def tables(self, key: str, allowed: tuple[str, ...]) -> "dict[str, Table]":
        """Return the named tables under ``key``, such as every ``[params.NAME]``."""
        outer = self.table(key, None)
        for inner in outer.entries:
            with outer.kept(inner):
                checks.path(inner, outer.where(inner))
        return {
            name: outer._inner(name, value, outer.where(name), outer._path(name), allowed)
            for name, value in outer.entries.items()
        }

    def list_of_tables(self, key: str, allowed: tuple[str, ...]) -> "list[Table]":
        """Return the tables of an array written ``[[key]]``."""
        values = self.entries.get(key, [])
        if not isinstance(values, list):
            self._add(key, f"{self.where(key)} is {checks.kind(values)}; write it as [[{key}]] in double brackets")
            return []
        keys = [f"{key}[{index}]" for index in range(len(values))]
        return [
            self._inner(each, value, f"{self.file}: {self._path(each)}", self._path(each), allowed)
            for value, each in zip(values, keys, strict=True)
        ]

    def _path(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def _inner(self, key: str, value: Any, where: str, path: str, allowed: tuple[str, ...] | None) -> "Table":
        if not isinstance(value, dict):
            shown = checks.show(value)
            holding = (
                f" with expression = {shown}" if isinstance(value, str) and "expression" in (allowed or ()) else ""
            )
            self._add(key, f"{where} = {shown} is {checks.kind(value)}; write the table [{path}]{holding}")
            return Table({}, self.file, path, None)
        return Table(value, self.file, path, allowed, self.mistakes)
