"""Lessons: each has a scenario that loads, an objective and parameters of it, and a text with an equation."""

import html.parser
import tomllib
from pathlib import Path

import simkit
from simkit.jobs.derivatives import objective_name, selected_parameters

LESSONS = Path(__file__).parents[3] / "docs" / "lessons"
TABLE = tomllib.loads((LESSONS / "lessons.toml").read_text(encoding="utf-8"))


class Balanced(html.parser.HTMLParser):
    """Tags of a text, of which each that opens closes."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_every_lesson_names_an_objective_and_parameters_of_its_scenario():
    for name, lesson in TABLE.items():
        source = lesson["scenario"]
        scenario = simkit.load(LESSONS / source if source.endswith(".toml") else source, lesson.get("set", {}))
        assert ("wrt" in lesson) == ("objective" in lesson), name
        if "wrt" in lesson:
            assert objective_name(scenario, lesson["objective"]) in scenario.objectives
            assert selected_parameters(scenario, lesson["wrt"]) == lesson["wrt"]


def test_every_lesson_has_three_paragraphs_an_equation_and_links_to_lessons_only():
    assert {file.stem for file in LESSONS.glob("*.html")} == set(TABLE) and len(TABLE) == 8
    for name in TABLE:
        tags = Balanced((LESSONS / f"{name}.html").read_text(encoding="utf-8")).tags
        assert [tag for tag, _ in tags].count("p") == 3, name
        assert ("math", {"display": "block"}) in tags and ("p", {"class": "try"}) in tags, name
        assert all(given["href"].removesuffix(".html") in TABLE for tag, given in tags if tag == "a"), name
