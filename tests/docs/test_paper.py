"""The draft of the paper agrees with the README and with its own list of references."""

import re

from tests.docs.generated import DOCS
from tests.docs.pages import REPOSITORY

PAPER = (DOCS / "paper/paper.md").read_text(encoding="utf-8")


def test_the_table_of_other_programs_is_that_of_the_readme():
    table = r"^\| program .*?(?=\n\n)"
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    rows = [re.search(table, text, re.MULTILINE | re.DOTALL)[0] for text in (readme, PAPER)]
    assert re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", rows[0]) == rows[1]


def test_every_citation_is_in_the_list_of_references_and_every_reference_is_cited():
    listed = set(re.findall(r"^@\w+\{(\w+),", (DOCS / "paper/paper.bib").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"@(\w+)", PAPER)) == listed
