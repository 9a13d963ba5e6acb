"""Registries of parts by name: simkit's own, and those of installed packages with entry points."""

import contextlib
import functools
import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from simkit.errors import UserError, nearest, one_line


class Registry:
    """Names of one kind of part, each with the module and attribute of its definition, imported only when resolved.

    A package adds a part by an entry point of the group in its ``pyproject.toml``, for instance
    ``[project.entry-points."simkit.simulations"]`` with ``"waves.string" = "my_package.waves:string"``.

    Args:
        kind: kind of part, for messages and the name of the group: ``"simulation"``.
        own: simkit's own parts, ``{name: "module:attribute"}`` or ``{name: "module"}``.
        needed: attributes that a part must have; empty for parts that are functions.
        aliases: what to write instead of names that others use for a part.
    """

    def __init__(
        self,
        kind: str,
        own: Mapping[str, str],
        needed: tuple[str, ...] = (),
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.kind, self.group, self.own, self.needed = kind, f"simkit.{kind}s", own, needed
        self.aliases = aliases or {}

    def add(self, parts: Mapping[str, str]) -> None:
        """Add parts of simkit that belong to a higher layer.

        Args:
            parts: as ``own``.
        """
        self.own = {**self.own, **parts}

    def names(self) -> list[str]:
        """Return every name, sorted."""
        return sorted({*self.own, *(entry.name for entry in self._entry_points())})

    def providers(self) -> list[tuple[str, str, str]]:
        """Return ``(name, provider, target)`` of every part, sorted; nothing is imported.

        The provider is ``"simkit"``, or the package that registers the part. A name registered by two packages has two
        entries.
        """
        own = [(name, "simkit", target) for name, target in self.own.items()]
        return sorted(own + [(entry.name, _owner(entry), entry.value) for entry in self._entry_points()])

    def resolve(self, name: str) -> Any:
        """Return the part of that name.

        Raises:
            UserError: if the name is unknown or registered twice, its module cannot be imported, or the attribute is
                not a part of this kind.
        """
        entries = [entry for entry in self._entry_points() if entry.name == name]
        owners = [*(["simkit"] if name in self.own else []), *map(_owner, entries)]
        if len(owners) > 1:
            raise UserError(
                f"{self.kind} '{name}' is registered by {' and by '.join(owners)}; uninstall one of the packages"
            )
        if not owners:
            raise UserError(f"unknown {self.kind} '{one_line(name, 80)}'", nearest(name, self.names()))
        target = self.own[name] if name in self.own else entries[0].value
        try:
            part = _load(target) if name in self.own else entries[0].load()
        except Exception as error:  # a plug-in's module may fail in any way while it is imported
            reason = one_line(f"{type(error).__name__}: {error}")
            remedy = "install what it needs" if isinstance(error, ImportError) else "repair or uninstall that package"
            raise UserError(
                f"{self.kind} '{name}' of {owners[0]} cannot be loaded from {target}: {reason}; {remedy}"
            ) from error
        if not self.needed and not callable(part):
            raise UserError(f"{self.kind} '{name}' of {owners[0]}: {target} is not a function; register a function")
        missing = [each for each in self.needed if not hasattr(part, each)]
        if missing:
            marked = missing == ["declaration"]
            remedy = "mark it with @part of simkit.core.parts" if marked else "define it there"
            raise UserError(f"{self.kind} '{name}' of {owners[0]}: {target} has no '{missing[0]}'; {remedy}")
        return part

    @contextlib.contextmanager
    def blamed(self, name: str) -> Iterator[None]:
        """Name the package of a part whose code fails in the block.

        Args:
            name: of the part; those of simkit itself fail as they do.

        Raises:
            UserError: for any failure of a part of another package but a `UserError`.
        """
        try:
            yield
        except Exception as error:
            entry = next((entry for entry in self._entry_points() if entry.name == name), None)
            if isinstance(error, UserError) or entry is None:
                raise
            reason = one_line(f"{type(error).__name__}: {error}")
            problem = f"fails in {entry.value}: {reason}; repair or uninstall that package"
            raise UserError(f"{self.kind} '{name}' of {_owner(entry)} {problem}") from error

    def shipped(self) -> "Registry":
        """Return the parts of simkit alone, found without reading which packages are installed."""
        shipped = Registry(self.kind, self.own, self.needed)
        shipped.group = ""
        return shipped

    def _entry_points(self) -> list[Any]:
        if not self.group:
            return []
        # Reading all packages takes 20 ms, and every table of a file asks several times.
        folders = tuple((folder, os.stat(folder).st_mtime_ns) for folder in sys.path if os.path.isdir(folder))
        return list(_of_group(folders, self.group))


@functools.lru_cache(maxsize=4)
def _installed(folders: tuple[tuple[str, int], ...]) -> Any:
    """Return the entry points of all packages in folders, each with the time of its last change."""
    import importlib.metadata

    del folders
    return importlib.metadata.entry_points()


@functools.lru_cache(maxsize=128)
def _of_group(folders: tuple[tuple[str, int], ...], group: str) -> tuple[Any, ...]:
    """Return the entry points of a group: the check of one table asks for them some hundred times."""
    return tuple(_installed(folders).select(group=group))


def _load(target: str) -> Any:
    module, _, attribute = target.partition(":")
    loaded = importlib.import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


def _owner(entry: Any) -> str:
    return f"package '{entry.dist.name}'" if entry.dist else "an installed package"
