"""The changelog is assembled from files of single changes."""

from tests.docs.generated import DOCS, program

LOG = "# Changelog\n\n## Unreleased\n\nFirst.\n\n### Flow\n\n- One.\n\n### Fixed\n\n- Two.\n\n"
LOG += "## 0.1.0\n\n### Flow\n\n- Old.\n"


def test_a_change_is_added_below_its_heading_of_the_unreleased_part():
    text = program("make_changelog").assembled(LOG, ["### Flow\n\n- New.\n", "### Export\n\n- Other.\n"])
    assert text == LOG.replace("- One.\n", "- One.\n- New.\n", 1).replace(
        "- Two.\n", "- Two.\n\n### Export\n\n- Other.\n", 1
    )


def test_a_release_takes_the_unreleased_part_and_leaves_an_empty_one():
    text = program("make_changelog").assembled(LOG, [], "0.2.0 (1 January 2027)")
    assert text == LOG.replace("## Unreleased\n", "## Unreleased\n\n## 0.2.0 (1 January 2027)\n")
    assert (
        program("make_changelog").assembled(text, ["### Flow\n\n- Next.\n"]).index("Next") < text.index("## 0.2.0") + 30
    )


def test_every_change_that_waits_has_a_known_heading_and_lines():
    known = (DOCS / "changes/README.md").read_text(encoding="utf-8").partition("Headings: ")[2].partition(".")[0]
    for file in DOCS.glob("changes/*.md"):
        if file.name != "README.md":
            found = program("make_changelog").sections(file.read_text(encoding="utf-8"))
            assert found.keys() <= {*" ".join(known.split()).split("; ")}, file.name
            assert all(body.startswith("- ") for body in found.values()), file.name
