"""Markdown escapes: text shown literally, without markup, tags or links."""

import re

# Characters that can begin markup within a line of GitHub's Markdown.
_MARKS = re.compile(r"([\\`*_{}\[\]()<>#!|~$@^=])")
# Beginnings of a line that make a list, a heading or a rule.
_BEGINNING = re.compile(r"^(?:([-+=])|(\d+)([.)]))")
# Addresses that become links without markup.
_ADDRESS = re.compile(r"(?i)(:(?=//)|(?<=\bwww)\.|(?<=\bmailto):|(?<=\bxmpp):)")


def escaped(text: str) -> str:
    """Return a text as one line of Markdown that shows it literally.

    Args:
        text: any text, such as the title of a scenario file.

    Source: GitHub Flavored Markdown, https://github.github.com/gfm/, sections 2.4 and 6.9.
    """
    line = _MARKS.sub(r"\\\1", " ".join(text.split()).replace("&", "&amp;"))
    line = _BEGINNING.sub(lambda found: f"\\{found[1]}" if found[1] else f"{found[2]}\\{found[3]}", line)
    return _ADDRESS.sub(r"\\\1", line)
