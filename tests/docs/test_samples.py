"""The sample programs equal those on their page."""

from tests.docs.pages import REPOSITORY, blocks

SAMPLES = REPOSITORY / "docs" / "samples"


def test_the_page_shows_the_programs_unchanged():
    page = blocks(REPOSITORY / "docs" / "export.md")
    shown = {block.file: block.text.partition("\n")[2] for block in page if block.file}
    assert shown == {path.name: path.read_text(encoding="utf-8") for path in SAMPLES.glob("*.py")}


def test_the_animations_are_small():
    sizes = [path.stat().st_size for path in SAMPLES.glob("*.gif")]
    assert len(sizes) == 4 and max(sizes) < 1_000_000
