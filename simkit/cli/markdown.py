"""Text as it stands in Markdown: nothing in it is a mark, a tag or a link."""

import re

# Every character that can begin a mark in GitHub's Markdown, within a line.
_MARKS = re.compile(r"([\\`*_{}\[\]()<>#!|~$@^=])")
# What makes a list, a heading or a rule where a line begins with it.
_BEGINNING = re.compile(r"^(?:([-+=])|(\d+)([.)]))")
# Addresses become links without any mark around them.
_ADDRESS = re.compile(r"(?i)(:(?=//)|(?<=\bwww)\.|(?<=\bmailto):|(?<=\bxmpp):)")


def escaped(text: str) -> str:
    """Return a text as one line of Markdown that shows it as it is.

    Args:
        text: anything, such as the title of a scenario file.

    Source: GitHub Flavored Markdown, https://github.github.com/gfm/, sections 2.4 and 6.9.
    """
    line = _MARKS.sub(r"\\\1", " ".join(text.split()).replace("&", "&amp;"))
    line = _BEGINNING.sub(lambda found: f"\\{found[1]}" if found[1] else f"{found[2]}\\{found[3]}", line)
    return _ADDRESS.sub(r"\\\1", line)
