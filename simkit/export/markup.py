"""HTML of pages that need no network: texts shown literally, tables, code and the frame of a page."""

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


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


def line(text: str, longest: int = 300) -> str:
    """Return a text as one line of bounded length, without characters that are not printed or that turn its direction.

    Args:
        text: any text.
        longest: number of characters.
    """
    words = " ".join("".join(letter if letter.isprintable() else " " for letter in text[: 4 * longest]).split())
    return words if len(words) <= longest else words[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"


def embedded(value: Any) -> str:
    """Return JSON without the characters of HTML markup, so that it cannot end the element that holds it.

    Args:
        value: plain data.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def block(name: str, data: bytes) -> str:
    """Return an element that holds bytes, gzip in base64; the script of a page reads them.

    Args:
        name: identifier of the element.
        data: the bytes.
    """
    return f'<script type="application/octet-stream" id="{name}">{packed(data)}</script>'


def packed(data: bytes) -> str:
    """Return bytes as text, gzip in base64; the same for the same bytes.

    Args:
        data: the bytes.
    """
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def framed(page: bytes, title: str) -> str:
    """Return a frame that shows a whole page within another one, apart from its scripts and its style.

    Args:
        page: HTML.
        title: what it shows.
    """
    return (
        f'<iframe class="player" sandbox="allow-scripts allow-downloads" style="width:100%;height:min(34rem,90vh);'
        f'border:0" title="{literal(line(title))}" srcdoc="{literal(page.decode())}"></iframe>'
    )


def digest(text: str) -> str:
    """Return what names a script or a style in a content security policy.

    Args:
        text: of the element.
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


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
