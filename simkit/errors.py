"""User errors, and helpers for their messages."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import ClassVar


class UserError(Exception):
    """A mistake in what the user gave: one clear line naming what, where, what is allowed and the remedy.

    The command line prints the message and exits with code 2; Python callers catch it like any exception. Notebooks
    show the line without a traceback.

    Attributes:
        is_mistake: whether the input is wrong; otherwise the work ended for another reason, which is exit code 3.
        others: messages of further mistakes found at the same time; `simkit check` prints all of them.
    """

    is_mistake: ClassVar[bool] = True

    def __init__(self, message: str = "", *, others: Iterable[str] = ()) -> None:
        """Store the message and those of further mistakes."""
        super().__init__(message)
        self.others = tuple(others)

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython prints instead of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class Mistakes:
    """Collector of mistakes: each block ``with mistakes.kept():`` adds its `UserError`, and checks continue after it.

    Attributes:
        found: messages, in order.
    """

    def __init__(self) -> None:
        """Start with no mistake."""
        self.found: list[str] = []

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Collect the `UserError` of a block and continue after it."""
        try:
            yield
        except UserError as error:
            self.found += [str(error), *error.others]

    def raise_if_any(self) -> None:
        """Raise the collected mistakes as one error, if there are any.

        Raises:
            UserError: with the first message, and the rest as ``others``.
        """
        if self.found:
            raise UserError(self.found[0], others=self.found[1:])


# Characters of an error message, which may quote a name or a command line of any length.
LONGEST_ERROR = 2000
# Characters of a name that are compared with others, in a time that grows with their number.
COMPARED = 64


def nearest(name: str, known: "list[str] | tuple[str, ...]") -> str:
    """Return the end of an error message: ``"; did you mean 'reynolds'?"``, or the known names if none is close.

    Args:
        name: what the user wrote.
        known: the names that exist.
    """
    if (close := closest(str(name), known)) is not None:
        return f"; did you mean '{close}'?"
    return f"; known names: {', '.join(sorted(known))}" if known else "; there are none, so leave it out"


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to what the user wrote, or ``None`` if none is close.

    One that differs in capital letters only is closest.

    Args:
        name: what the user wrote.
        known: the names that exist.
    """
    import difflib

    known = list(known)
    if (same := next((one for one in known if one.lower() == name.lower()), None)) is not None:
        return same
    return next(iter(difflib.get_close_matches(name[:COMPARED], known, n=1, cutoff=0.6)), None)


def likeliest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return the names that may have been meant: first similar ones, then those that begin with or contain the text.

    Args:
        name: what the user wrote.
        known: the names that exist.
        count: largest number of names.
    """
    import difflib

    names, text = list(known), name[:COMPARED].lower()
    if len(text) < 3:
        return [one for one in names if one.startswith(text)][:count] if text else []
    alike = difflib.get_close_matches(text, names, n=count, cutoff=0.6)
    # A shortened or misspelled word of a long name is not similar to the whole name: compare with its words.
    parts = {one: one.replace(".", "_").split("_") for one in names}
    begin = [one for one in names if any(part.startswith(text) for part in [one, *parts[one]])]
    near = [one for one in names if difflib.get_close_matches(text, parts[one], n=1, cutoff=0.75)]
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
