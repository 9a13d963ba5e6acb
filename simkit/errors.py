"""User errors, and helpers for their messages."""

import contextlib
import dataclasses
import importlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, ClassVar, Literal


@dataclasses.dataclass(frozen=True)
class Remedy:
    """What removes a mistake, as data.

    Attributes:
        action: whether the key is removed, gets another name, or another value.
        value: the new name or value.
        of_formula: whether the value stands for a wrong formula, so that numbers computed from it mean nothing.
        unknown: the unknown name in a wrong formula; empty if something else is wrong.
    """

    action: Literal["remove", "rename", "replace"]
    value: Any = None
    of_formula: bool = False
    unknown: str = ""


# Kinds of errors in JSON, each with its meaning.
CODES = {
    "unknown_key": "a key that does not exist",
    "unknown_value": "a name or word that is not among those allowed",
    "out_of_range": "a number outside the allowed range",
    "no_effect": "a key that has no effect here; leave it out",
    "wrong_input": "anything else that is wrong in what was given",
    "missing_package": "a package that cannot be imported",
    "file_access": "a file that cannot be read or written",
    "out_of_memory": "too little memory",
    "run_failed": "a run or its workers failed",
    "interrupted": "interrupted by Ctrl-C",
    "terminated": "terminated by SIGTERM",
}


class Hint(str):
    """Part of a message that suggests a name, with the name as data.

    Attributes:
        meant: the suggested name; ``None`` if none is close.
    """

    meant: str | None

    def __new__(cls, text: str, meant: str | None = None) -> "Hint":
        """Store the text and the name."""
        hint = super().__new__(cls, text)
        hint.meant = meant
        return hint


class UserError(Exception):
    """A mistake in what the user gave: one clear line naming what, where, what is allowed and the remedy.

    The command line prints the message and exits with code 2; Python callers catch it like any exception. Notebooks
    show the line without a traceback.

    Attributes:
        is_mistake: whether the input is wrong; otherwise the work ended for another reason, which is exit code 3.
        key: dotted path of the wrong key; empty if the mistake is about something else.
        allowed: what the key may be: words, or the lowest and highest number; ``None`` if that is not a list.
        remedy: what removes the mistake; ``None`` if there are several ways.
        meant: the name that may have been meant, which a `Hint` in the message suggests; or ``None``.
        further: mistakes found at the same time; `simkit check` prints all of them.
        partial: what was read with other values in place of the wrong ones, to look for further mistakes; or ``None``.

    Example:
        >>> try:
        ...     simkit.run("projectile", launch_sped=10.0)
        ... except simkit.UserError as error:
        ...     print(error)
        launch_sped is not a key of projectile; did you mean 'launch_speed'?
    """

    is_mistake: ClassVar[bool] = True

    def __init__(
        self,
        *message: str,
        key: str = "",
        allowed: Iterable[Any] | None = None,
        remedy: Remedy | None = None,
        further: "Iterable[UserError]" = (),
    ) -> None:
        """Store the message, which may be in parts, its data, and the further mistakes."""
        super().__init__("".join(message))
        self.meant = next((part.meant for part in message if isinstance(part, Hint)), None)
        self.key, self.remedy, self.further = key, remedy, tuple(further)
        self.partial: Any = None
        self.allowed = None if allowed is None else tuple(allowed)

    @property
    def code(self) -> str:
        """Word for the kind of mistake, for machines: see `CODES`."""
        if not self.is_mistake:
            return "run_failed"
        action = self.remedy.action if self.remedy else ""
        if action in ("rename", "remove") and self.allowed:
            return "unknown_key"
        if action == "remove":
            return "no_effect"
        if action == "replace" or (self.allowed and isinstance(self.allowed[0], str)):
            return "unknown_value"
        return "out_of_range" if self.allowed else "wrong_input"

    @property
    def as_data(self) -> dict[str, Any]:
        """The mistake as data for machines: ``code, key, allowed, did_you_mean, message, remedy``."""
        remedy = self.remedy
        if remedy and remedy.of_formula and self.meant is None:
            remedy = None  # its value only takes the place of a wrong formula
        return {
            "code": self.code,
            "key": self.key,
            "allowed": None if self.allowed is None else list(self.allowed),
            "did_you_mean": remedy.value if remedy and remedy.action != "remove" else self.meant,
            "message": str(self),
            "remedy": None if remedy is None else {"action": remedy.action, "value": remedy.value},
        }

    @property
    def others(self) -> tuple[str, ...]:
        """Messages of the further mistakes."""
        return tuple(map(str, self.further))

    def within(self, table: str, prefix: str = "", limit: int | None = None) -> "UserError":
        """Return these mistakes as those of a table that holds the key.

        Args:
            table: path of the table; empty if the keys are whole paths.
            prefix: put before the messages.
            limit: largest number of characters of a message, without the prefix.
        """
        first, *others = (
            UserError(
                prefix,
                Hint(one_line(each, limit) if limit else str(each), each.meant),
                key=table + ("." if table and each.key and not each.key.startswith("[") else "") + each.key,
                allowed=each.allowed,
                remedy=each.remedy,
            )
            for each in (self, *self.further)
        )
        first.further = tuple(others)
        return first

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython prints instead of a traceback."""
        return [f"{type(self).__name__}: {self}"]


# How the caller writes an argument: in Python, unless the command line says otherwise.
_SPELLED: ContextVar[Callable[[str, str], str]] = ContextVar("spelled", default=lambda name, value: f"{name}={value}")


def argument(name: str, value: str = "") -> str:
    """Return an argument as the caller writes it, for a message: ``output=`` in Python, ``--output`` on a command line.

    Args:
        name: of the argument.
        value: as written in Python; empty if the user chooses it.
    """
    return _SPELLED.get()(name, value)


@contextlib.contextmanager
def spelled(how: Callable[[str, str], str]) -> Iterator[None]:
    """Write the arguments in messages in another way, within a block.

    Args:
        how: ``(name, value) -> text``.
    """
    token = _SPELLED.set(how)
    try:
        yield
    finally:
        _SPELLED.reset(token)


@contextlib.contextmanager
def within(prefix: str, table: str = "", limit: int | None = None) -> Iterator[None]:
    """Give the mistakes of a block as those of a table that holds the key, see `UserError.within`.

    Args:
        prefix: put before the messages.
        table: path of the table; empty if the keys are whole paths.
        limit: largest number of characters of a message, without the prefix.
    """
    try:
        yield
    except UserError as error:
        raise error.within(table, prefix, limit) from error.__cause__


@contextlib.contextmanager
def about(key: str) -> Iterator[None]:
    """Give the mistakes of a block a key, if they have none.

    Args:
        key: dotted path.
    """
    try:
        yield
    except UserError as error:
        error.key = error.key or key
        raise


class Mistakes:
    """Collector of mistakes: each block ``with mistakes.kept():`` adds its `UserError`, and checks continue after it.

    Attributes:
        found: the mistakes, in order.
    """

    def __init__(self) -> None:
        """Start with no mistake."""
        self.found: list[UserError] = []

    @contextlib.contextmanager
    def kept(self, key: str = "") -> Iterator[None]:
        """Collect the `UserError` of a block and continue after it.

        Args:
            key: dotted path of the checked value, for mistakes that have none.
        """
        try:
            with about(key):
                yield
        except UserError as error:
            self.found += [error, *error.further]

    def result[T](self, key: str, make: Callable[[], T], instead: Callable[[], T]) -> T:
        """Return the result of a function; if it raises, collect the mistakes and return what takes its place.

        Args:
            key: dotted path of the value, for mistakes that have none.
            make: makes the value.
            instead: makes another value, if the error has nothing partial.
        """
        try:
            with about(key):
                return make()
        except UserError as error:
            self.found += [error, *error.further]
            return instead() if error.partial is None else error.partial

    def raise_if_any(self, partial: Any = None) -> None:
        """Raise the collected mistakes as one error, if there are any.

        Args:
            partial: what was read, with other values in place of the wrong ones.

        Raises:
            UserError: the first, with the rest as ``further``.
        """
        if self.found:
            first, *rest = self.found
            first.further, first.partial = tuple(rest), partial
            raise first


def package(name: str, user: str, install: str) -> Any:
    """Return a module of an optional package.

    Args:
        name: of the module.
        user: what needs it, for the message.
        install: what pip installs, such as ``"simkit-physics[data]"``.

    Raises:
        UserError: if it cannot be imported.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        needs, command = f"{user} needs the package {name.partition('.')[0]}", f"pip install '{install}'"
        raise UserError(f"{needs}: {command} ({one_line(error)})") from error


# Characters of an error message, which may quote a name or a command line of any length.
LONGEST_ERROR = 2000
# Characters of a name that are compared with others, in a time that grows with their number.
COMPARED = 64


def nearest(name: str, known: "list[str] | tuple[str, ...]") -> Hint:
    """Return the end of an error message: ``"; did you mean 'reynolds'?"``, or the known names if none is close.

    Pass it to `UserError` as a part of its own: text made of it is no `Hint`.

    Args:
        name: what the user wrote.
        known: the names that exist.
    """
    if (close := closest(str(name), known)) is not None:
        return Hint(f"; did you mean '{close}'?", close)
    return Hint(f"; known names: {', '.join(sorted(set(known)))}" if known else "; there are none, so leave it out")


def known(name: Any, names: Collection[str], where: str, what: str = "") -> str:
    """Return a name that is among those known.

    Args:
        name: what the user wrote.
        names: the names that exist.
        where: path of its key, or name of the argument.
        what: the names are those of, such as "species".

    Raises:
        UserError: if it is not among them; suggests the nearest.
    """
    if isinstance(name, str) and name in names:
        return name
    hint = nearest(name if isinstance(name, str) else "", list(names))
    rest = hint if hint.meant or not names else f"; choose one of {', '.join(names)}"
    remedy = Remedy("replace", hint.meant) if hint.meant else None
    raise UserError(
        f"{where} = {one_line(repr(name), 60)} is {f'no {what}' if what else 'unknown'}",
        rest,
        key=where.rpartition(": ")[2],
        allowed=names,
        remedy=remedy,
    )


def untaken(name: str, taken: Collection[str], where: str) -> str:
    """Return a name that the user chooses, if nothing else has it.

    Args:
        name: what the user wrote.
        taken: names of other things.
        where: path of its key.

    Raises:
        UserError: if it is taken.
    """
    if name in taken:
        raise UserError(f"{where}: the name '{name}' is taken; choose another", key=where.rpartition(": ")[2])
    return name


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to what the user wrote, or ``None`` if none is close.

    One that differs in capital letters only is closest.

    Args:
        name: what the user wrote.
        known: the names that exist.
    """
    known = list(known)
    if (same := next((one for one in known if one.lower() == name.lower()), None)) is not None:
        return same
    return next(iter(_similar(name[:COMPARED], known, 1, 0.6)), None)


def _similar(text: str, names: list[str], count: int, least: float) -> list[str]:
    import difflib  # only for mistakes

    return difflib.get_close_matches(text, names, n=count, cutoff=least)


def likeliest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return the names that may have been meant: first similar ones, then those that begin with or contain the text.

    Args:
        name: what the user wrote.
        known: the names that exist.
        count: largest number of names.
    """
    names, text = list(known), name[:COMPARED].lower()
    if len(text) < 3:
        return [one for one in names if one.startswith(text)][:count] if text else []
    alike = _similar(text, names, count, 0.6)
    # A shortened or misspelled word of a long name is not similar to the whole name: compare with its words.
    parts = {one: one.replace(".", "_").split("_") for one in names}
    begin = [one for one in names if any(part.startswith(text) for part in [one, *parts[one]])]
    near = [one for one in names if _similar(text, parts[one], 1, 0.75)]
    have = [one for one in names if text in one]
    return list(dict.fromkeys([*alike, *begin, *near, *have]))[:count]


def one_line(message: object, limit: int = 200) -> str:
    """Return a message's text on one printable line of at most ``limit`` characters.

    Long words, such as a name of a thousand letters, are shortened first, then the middle is left out, since the remedy
    is at the end.
    """
    text = str(message)
    if len(text) > 1000 * limit:
        text = f"{text[: 500 * limit]}...{text[-500 * limit :]}"
    text = "".join(character if character.isprintable() else " " for character in text)
    words = text.split()
    if len(text := " ".join(words)) > limit:
        text = " ".join(word if len(word) <= 40 else f"{word[:30]}...{word[-3:]}" for word in words)
    return text if len(text) <= limit else f"{text[: limit - limit // 3 - 5]} ... {text[-(limit // 3) :]}"


def listed(names: Iterable[str], where: str) -> tuple[str, ...]:
    """Return names as a tuple, and refuse a single text, whose letters would be taken as names.

    Args:
        names: list of names.
        where: name of the argument, for the message.

    Raises:
        UserError: if ``names`` is one text.
    """
    if isinstance(names, str):
        text = one_line(names, 40)
        raise UserError(f'{where} = {text!r} is one text, and a list is wanted; write ["{text}"]')
    return tuple(names)


def check_characters(word: str) -> None:
    """Refuse a word with characters that no file name may have: a zero byte, or half of a surrogate pair.

    Args:
        word: path or other word of a user.

    Raises:
        UserError: if it has such characters.
    """
    try:
        allowed = b"\0" not in os.fsencode(word)
    except UnicodeEncodeError:
        allowed = False
    if not allowed:
        raise UserError(f"{word!a:.80} has characters that no file name may have; leave them out")
