"""Gallery pages show the texts of scenario files literally, without markup or scripts."""

import dataclasses
import html
import html.parser
import json
import re
import shlex
from pathlib import Path

import pytest
from PIL import Image

from simkit.cli.gallery import FILM, POSTER, escaped, write_index
from simkit.cli.main import Parser, verb_of
from simkit.scenario.catalog import find_scenario
from tests.tables import every

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


@every("text", HOSTILE)
def test_markdown_shows_a_text_as_it_is(text):
    words = Words(_page(escaped(text)))
    assert words.tags == ["p"]
    assert words.text.strip() == " ".join(text.split())


def test_addresses_and_mentions_become_no_links():
    line = escaped(HOSTILE[2])
    # GitHub makes links of these without markup.
    assert not re.search(r"(?<!\\)://|www\.|(?<!\\)@|(?<!\\)#", line)


def drawn(folder, name, card=None):
    """A folder of the gallery with a film, its poster of 480 by 420, and a card."""
    film = folder / name / FILM
    film.parent.mkdir()
    film.write_bytes(b"film")
    Image.new("RGB", (480, 420)).save(film.with_name(POSTER))
    if card is not None:
        (folder / name / "card.json").write_text(json.dumps(card))


def of_file(source, **changes):
    return dataclasses.replace(find_scenario("couette_poiseuille"), source=Path(source), **changes)


def test_a_scenario_of_a_file_is_run_by_its_path(tmp_path):
    drawn(tmp_path, "mine")
    drawn(tmp_path, "couette_poiseuille")
    mine = of_file("my flows/`mine`.toml", name="mine", title="My flow")
    page = write_index([find_scenario("couette_poiseuille"), mine], tmp_path).read_text()
    assert "<code>simkit run couette_poiseuille</code>" in page
    assert "<code>simkit run &#x27;my flows/`mine`.toml&#x27;</code>" in page
    notes = (tmp_path / "README.md").read_text()
    assert "\n`simkit run couette_poiseuille`\n" in notes
    assert Words(_page(notes)).text.strip().endswith("simkit run 'my flows/`mine`.toml'")


CARD = {"name": "mine", "title": "My flow", "summary": "It flows.", "domain": "flow", "command": "simkit run mine.toml"}


def test_scenarios_drawn_before_stay_in_the_index(tmp_path):
    drawn(tmp_path, "mine", {**CARD, "title": HOSTILE[0]})
    drawn(tmp_path, "couette_poiseuille", {**CARD, "name": "couette_poiseuille", "title": "Old title"})
    (tmp_path / "undrawn").mkdir()
    (tmp_path / "undrawn" / "card.json").write_text(json.dumps({**CARD, "name": "undrawn"}))
    page = write_index([find_scenario("couette_poiseuille")], tmp_path).read_text()
    assert HOSTILE[0] in Words(page).text and "simkit run mine.toml" in page and page.count("<video") == 2
    assert "Old title" not in page
    tags = Words(_page((tmp_path / "README.md").read_text())).tags
    assert not {"script", "s"} & set(tags) and tags.count("a") == 2


@every("card", [{**CARD, "name": "../mine"}, {"name": "mine"}, [1], CARD])
def test_a_damaged_card_is_not_shown(card, tmp_path):
    folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    drawn(folder, "mine", card)
    assert write_index([], folder).read_text().count("<video") == (card == CARD)


def test_pages_show_texts_of_a_scenario_literally(tmp_path):
    scenario = dataclasses.replace(find_scenario("couette_poiseuille"), title=HOSTILE[0], summary=HOSTILE[1])
    drawn(tmp_path, scenario.name)
    page = write_index([scenario], tmp_path)
    shown = Words(page.read_text())
    # The script of the gallery itself, and the links to the domain and to the page of the scenario.
    assert [shown.tags.count(tag) for tag in ("script", "video", "img", "a", "s", "em")] == [1, 1, 0, 2, 0, 0]
    assert HOSTILE[0] in shown.text and HOSTILE[1] in shown.text
    assert 'width="480" height="420"' in page.read_text()
    of_scenario = Words((tmp_path / scenario.name / "index.html").read_text())
    assert [of_scenario.tags.count(tag) for tag in ("script", "video", "img", "s", "em")] == [1, 1, 0, 0, 0]
    assert HOSTILE[0] in of_scenario.text and HOSTILE[1] in of_scenario.text and scenario.text in of_scenario.text
    notes = Words(_page((tmp_path / "README.md").read_text()))
    # The picture, and the link to its film.
    assert notes.tags.count("img") == notes.tags.count("a") == 1
    assert not {"script", "s", "em", "strong"} & set(notes.tags)
    assert HOSTILE[0] in notes.text and HOSTILE[1] in notes.text


def test_the_page_of_a_scenario_shows_what_it_reproduces_and_commands_that_exist(tmp_path):
    scenario = find_scenario("couette_poiseuille")
    drawn(tmp_path, scenario.name, {**CARD, "diagnostics": {"flow_rate": 0.125, "time": 3}})
    write_index([scenario], tmp_path)
    page = (tmp_path / scenario.name / "index.html").read_text()
    shown = Words(page).text
    sources = {each.source for each in scenario.validations}
    assert [
        word for word in scenario.parameters.keys() | scenario.objectives.keys() | sources if word not in shown
    ] == []
    assert "0.125" in shown
    codes = [html.unescape(code) for code in re.findall("<pre[^>]*><code>(.*?)</code>", page, re.DOTALL)]
    commands = [shlex.split(line)[1:] for code in codes for line in code.splitlines() if line.startswith("simkit ")]
    assert [words[0] for words in commands] == ["run", "sweep", "grad", "optimize", "validate"]
    for verb, *options in commands:
        parser = Parser()
        verb_of(verb).add_arguments(parser)
        parser.parse_args(options)


CURVE = {"name": "energy", "unit": "m^2", "clock": "time", "clock_unit": "s", "points": [[0, 2.5], [1, 3.5], [2, 0.5]]}


def shown_with(folder, **card):
    """The page of a scenario whose card has further entries."""
    scenario = find_scenario("couette_poiseuille")
    drawn(folder, scenario.name, {**CARD, **card})
    write_index([scenario], folder)
    return (folder / scenario.name / "index.html").read_text()


def test_charts_of_a_card_are_curves_with_their_extremes(tmp_path):
    hostile = CURVE | {"name": f"{HOSTILE[0]} \u202e {'x' * 10_000}"}
    damaged = [{}, 3, CURVE | {"points": [[0, "a"]]}, CURVE | {"points": []}, CURVE | {"points": [[0, 1], [1, 1]]}]
    seconds = {"compile": 1.5, "run": 0.25, "device": "<b>"}
    page = shown_with(tmp_path, charts=[CURVE, hostile, *damaged], seconds=seconds)
    assert page.count("<svg") == page.count("<polyline") == 2
    assert re.findall('points="([^"]*)"', page)[0] == "0.0,57.3 160.0,22.0 320.0,128.0"
    assert ">3.5</text>" in page and ">0.5</text>" in page and "energy (m\u00b2)" in page
    assert "1.5 s to compile, 0.25 s to run; &lt;b&gt;" in page
    assert "<script>a" not in page and "\u202e" not in page and "x" * 400 not in page


def test_a_scenario_says_whether_a_page_computes_it(tmp_path):
    assert "No page computes it: it has &lt;b&gt; members" in shown_with(tmp_path, missing_page="it has <b> members")
    (tmp_path / "couette_poiseuille" / "compute.html").write_text("")
    index = write_index([find_scenario("couette_poiseuille")], tmp_path)
    for page in (tmp_path / "couette_poiseuille" / "index.html", index):
        assert "compute.html" in page.read_text()


def test_only_pages_of_named_scenarios_are_written_anew(tmp_path):
    shown_with(tmp_path)
    page = tmp_path / "couette_poiseuille" / "index.html"
    page.write_text("kept")
    write_index([find_scenario("couette_poiseuille")], tmp_path, renewed=())
    assert page.read_text() == "kept"


def test_commands_vary_a_parameter_that_the_file_sets_and_not_the_time_step(tmp_path):
    block, wheel = find_scenario("sliding_block"), find_scenario("rimless_wheel")
    assert next(iter(block.parameters)) == "time_step" and next(iter(wheel.parameters)) == "gravity"
    for scenario in (block, wheel):
        drawn(tmp_path, scenario.name)
    write_index([block, wheel], tmp_path)
    page = (tmp_path / block.name / "index.html").read_text()
    assert "simkit sweep sliding_block --over" in page and "time_step=" not in page
    assert "simkit sweep rimless_wheel --over slope=" in (tmp_path / wheel.name / "index.html").read_text()
