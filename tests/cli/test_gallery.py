"""Gallery pages show the texts of scenario files literally, without markup or scripts."""

import dataclasses
import html.parser
import re
import struct

import pytest

from simkit.cli.gallery import write_index
from simkit.cli.markdown import escaped
from simkit.scenario.catalog import find_scenario

markdown_it = pytest.importorskip("markdown_it", reason="reads Markdown as GitHub does, but for its links")
HOSTILE = (
    "[free](javascript:alert(1)) ![x](http://evil.example/x.png) <img src=x onerror=alert(1)> <script>a</script>",
    "`code` *stress* __strong__ ~~gone~~ | cell | # not a heading $x$ \\[y] &lt;b&gt; &copy; [a]: http://b.c 'd'",
    "<!-- hidden --> <http://a.b> ref[^1] :) === a@b.example https://evil.example www.evil.example @someone #12",
    "- a list\n\n# a heading\n    code",
    "1. first",
    "2) second",
    "+ a list",
    "=====",
    "-----",
    "> quoted",
    "``` fence",
)


def _page(text):
    return markdown_it.MarkdownIt("gfm-like", {"linkify": False}).render(text)


class Words(html.parser.HTMLParser):
    """The text of a page and the tags around it."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_shows_a_text_as_it_is(text):
    words = Words(_page(escaped(text)))
    assert words.tags == ["p"]
    assert words.text.strip() == " ".join(text.split())


def test_addresses_and_mentions_become_no_links():
    line = escaped(HOSTILE[2])
    # GitHub makes links of these without markup.
    assert not re.search(r"(?<!\\)://|www\.|(?<!\\)@|(?<!\\)#", line)


def test_pages_show_texts_of_a_scenario_literally(tmp_path):
    scenario = dataclasses.replace(find_scenario("couette_poiseuille"), title=HOSTILE[0], summary=HOSTILE[1])
    picture = tmp_path / scenario.name / "animation.gif"
    picture.parent.mkdir()
    picture.write_bytes(b"GIF89a" + struct.pack("<HH", 480, 420))
    page = write_index([scenario], tmp_path)
    shown = Words(page.read_text())
    assert "script" not in shown.tags and shown.tags.count("img") == 1 and "a" not in shown.tags
    assert HOSTILE[0] in shown.text and HOSTILE[1] in shown.text
    assert 'width="480" height="420"' in page.read_text()
    notes = Words(_page((tmp_path / "README.md").read_text()))
    assert notes.tags.count("img") == 1 and not {"script", "a", "s", "em", "strong"} & set(notes.tags)
    assert HOSTILE[0] in notes.text and HOSTILE[1] in notes.text
