"""HTML of pages that need no network: texts shown literally, tables, code and the frame of a page."""

import html
import re
from collections.abc import Iterable, Sequence
from pathlib import Path


def shared(name: str) -> str:
    """Return the content of a style sheet or script of pages.

    Args:
        name: of a file in the folder ``web``.
    """
    return (Path(__file__).with_name("web") / name).read_text(encoding="utf-8")


def literal(text: str) -> str:
    """Return a text as HTML that shows it literally, also within an attribute.

    Args:
        text: any text.
    """
    return html.escape(text)


def table(head: Sequence[str], rows: Iterable[Iterable[str]], kind: str = "") -> str:
    """Return a table, which scrolls where the page is too narrow for it.

    Args:
        head: names of the columns.
        rows: texts of the cells.
        kind: class of the table.
    """
    heads = "".join(f'<th scope="col">{literal(word)}</th>' for word in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'
    )


# A number or an interval is one word: browsers would break it at its signs and blanks.
_ONE = r"([-+]?[\d.]+(e[-+]?\d+)?|nan|[-+]?inf)"
_NUMBER = re.compile(rf"{_ONE}|[\[(]{_ONE}, {_ONE}[\])]")


def _cell(text: str) -> str:
    kind = ' class="number"' if _NUMBER.fullmatch(text) else ""
    return f"<td{kind}>{literal(text)}</td>"


def code(text: str) -> str:
    """Return a block of code, which is reached by the keyboard to be scrolled.

    Args:
        text: the code.
    """
    return f'<pre tabindex="0"><code>{literal(text)}</code></pre>'


def page(title: str, head: str, body: str) -> str:
    """Return a page.

    Args:
        title: of its window, as text.
        head: HTML of further elements of its head.
        body: HTML of its body.
    """
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{literal(title)}</title>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
