"""The one error type a user is meant to read."""

import contextlib
from collections.abc import Iterable, Iterator


class UserError(Exception):
    """A mistake in what the user gave: one clear line naming what, where, what is allowed and the remedy.

    The command line prints the message and exits with code 2; Python callers catch it like any exception. Notebooks
    show the line without a traceback.

    Attributes:
        others: further mistakes in the same place, found along with it; `simkit check` tells them all.
    """

    def __init__(self, message: str = "", *, others: Iterable[str] = ()) -> None:
        """Keep the message and what else is wrong."""
        super().__init__(message)
        self.others = tuple(others)

    def _render_traceback_(self) -> list[str]:
        """Return what IPython prints."""
        return [f"{type(self).__name__}: {self}"]


class Mistakes:
    """Mistakes of one place, told all together: each ``with mistakes.kept():`` goes on after the first of its own."""

    def __init__(self) -> None:
        """Begin without any."""
        self.found: list[str] = []

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the mistake that a block raises, and go on behind it."""
        try:
            yield
        except UserError as error:
            self.found += [str(error), *error.others]

    def raise_if_any(self) -> None:
        """Raise the first with all others, if there is any.

        Raises:
            UserError: with the first as its message.
        """
        if self.found:
            raise UserError(self.found[0], others=self.found[1:])


def nearest(name: str, known: "list[str] | tuple[str, ...]") -> str:
    """Return a hint such as ``"; did you mean 'reynolds'?"``, or the known names when none is close.

    Args:
        name: what the user wrote.
        known: the names that exist.
    """
    if (close := closest(name, known)) is not None:
        return f"; did you mean '{close}'?"
    return f"; known names: {', '.join(sorted(known))}" if known else ""


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the name that was probably meant, or ``None`` where none is close.

    Args:
        name: what the user wrote.
        known: the names that exist.
    """
    import difflib

    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)), None)


def likeliest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return the names that may have been meant, the likeliest first: those alike, that begin with it, or have it.

    Args:
        name: what the user wrote.
        known: the names that exist.
        count: at most so many.
    """
    import difflib

    names, text = list(known), name.lower()
    if len(text) < 3:
        return [one for one in names if one.startswith(text)][:count] if text else []
    alike = difflib.get_close_matches(text, names, n=count, cutoff=0.6)
    # A word of a long name, cut short or misspelled, is not like the whole of it.
    parts = {one: one.replace(".", "_").split("_") for one in names}
    begin = [one for one in names if any(part.startswith(text) for part in [one, *parts[one]])]
    near = [one for one in names if difflib.get_close_matches(text, parts[one], n=1, cutoff=0.75)]
    have = [one for one in names if text in one]
    return list(dict.fromkeys([*alike, *begin, *near, *have]))[:count]


def one_line(message: object, limit: int = 200) -> str:
    """Return a message's text on one printable line of at most ``limit`` characters."""
    text = "".join(character if character.isprintable() else " " for character in str(message)[: 4 * limit])
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def listed(names: Iterable[str], where: str) -> tuple[str, ...]:
    """Return a list of names, which one text is not: its letters would be taken one by one.

    Args:
        names: given.
        where: what they are given as, for the message.

    Raises:
        UserError: if they are one text.
    """
    if isinstance(names, str):
        text = one_line(names, 40)
        raise UserError(f'{where} = {text!r} is one text, and a list is wanted; write ["{text}"]')
    return tuple(names)
