"""Documentation pages: their code runs and prints the shown output, their links, names and flags exist.

The generated pages equal docstrings and declarations, and samples and systems those of their files.
"""

import functools
import importlib
import inspect
import re
import tomllib

import pytest

from simkit.cli.main import REGISTERED, VERBS, Parser, add_arguments, verb_of
from simkit.core.optimizers.methods import OPTIMIZERS
from simkit.core.settings.records import keys_of
from simkit.errors import UserError
from simkit.flow import parts as flow_parts
from simkit.jobs.executors.choice import EXECUTORS
from simkit.molecular import parts
from simkit.plugins import Registry
from simkit.scenario import catalog
from simkit.scenario.catalog import list_scenarios
from simkit.scenario.drawing import render_table
from simkit.scenario.registry import FACTORIES, SIMULATIONS, VIEWS
from simkit.scenario.sections import (
    REDUCTIONS,
    ObjectiveSettings,
    ParameterSettings,
    QuantitySettings,
    RunSettings,
    Validation,
)
from tests.docs.generated import DOCS, check_section, program
from tests.docs.pages import PAGES, QUICK, REPOSITORY, assert_shown, blocks, run_alone, run_page
from tests.docs.systems import SYSTEMS
from tests.tables import every

# Groups of entry points are not Python names.
REGISTRIES = (SIMULATIONS, VIEWS, REGISTERED, OPTIMIZERS, EXECUTORS, *vars(parts).values(), *vars(flow_parts).values())
GROUPS = {each.group for each in REGISTRIES if isinstance(each, Registry)}
every_page = every("page", PAGES, ids=lambda page: page.stem)


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem in QUICK], ids=lambda page: page.stem)
def test_every_example_runs_and_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    run_alone(page, tmp_path, monkeypatch)


@every_page
def test_every_scenario_shown_is_valid(page):
    for block in blocks(page):
        if block.language != "toml":
            continue
        tomllib.loads(block.text)
        if block.file and block.file != "pyproject.toml":
            assert catalog.parse_scenario(block.text, block.file).name == block.file.removesuffix(".toml")


@every_page
def test_every_link_has_a_target(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists() and file.is_relative_to(REPOSITORY), f"{page.name}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in headings], target


def test_the_table_of_checked_numbers_equals_the_scenario_files():
    text = (REPOSITORY / "docs" / "checked_numbers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| (\S+) \| (\S+) \|", text, re.MULTILINE)
    claimed = [(name, what.strip().replace("`", ""), float(expected)) for name, what, expected, _ in rows]
    scenarios, problems = list_scenarios()
    assert not problems
    found = []
    for scenario in scenarios:
        for check in scenario.validations:
            found.append((scenario.name, check.words, float(f"{check.expected:.6g}")))
    assert claimed == found
    tolerances = [check.tolerance for scenario in scenarios for check in scenario.validations]
    assert all(float(error) <= tolerance for (*_, error), tolerance in zip(rows, tolerances, strict=True))


def test_every_key_of_a_scenario_file_is_explained():
    text = (REPOSITORY / "docs" / "scenario_files.md").read_text(encoding="utf-8")
    records = (ParameterSettings, RunSettings, ObjectiveSettings, QuantitySettings, Validation)
    keys = {key for record in records for key in keys_of(record)} | render_table().every_key().keys()
    keys |= {key for key, setting in catalog.FILE.items() if setting.form == "value"}
    words = {*REDUCTIONS, "minimize", "maximize", *VIEWS.own}
    assert not [key for key in keys if f"| `{key}` |" not in text]
    assert not [word for word in words if f'`"{word}"`' not in text]


def test_a_page_with_other_output_is_detected():
    printed = "run fine\n\nenergy   1.2345\n-------  ----\nresidual 1e-12\nend\n"
    assert_shown("run fine\nenergy 1.2346\n--- --\nresidual 3e-09\nend", printed, 0.01, "")
    assert_shown("...\nenergy 1.2345\n...", printed, 0.01, "")
    assert_shown("run fine\n...\nend", printed, 0.01, "")
    wrong = [
        "run fine",
        "...\nenergy 1.3\n...",
        "...\nenergie 1.2345\n...",
        "energy 1.2345\n...",
        "...\nend\n...\nrun fine\n...",
        "run fine\n...\nresidual 1e-12",
        "...\nresidual 1e-3\n...",
    ]
    for shown in wrong:
        with pytest.raises(AssertionError):
            assert_shown(shown, printed, 0.01, "")


def test_a_page_with_a_broken_example_is_detected(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    refused = "$ simkit list --tag nonsense\n"
    page.write_text(f"```console\n{refused}```\n")
    with pytest.raises(AssertionError, match="ended with 2"):
        run_page(page, tmp_path)
    page.write_text(f"```console\n{refused}$ echo $?\n2\n```\n\n```python\nprint(1)\n```\n\n```text\n2\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md:11"):
        run_page(page, tmp_path)
    page.write_text("```toml\n# bad.toml\nname = 1\n```\n")
    with pytest.raises(UserError, match=r"bad\.toml"):
        catalog.parse_scenario(blocks(page)[0].text, "bad.toml")


@every_page
def test_every_name_verb_and_flag_that_a_page_mentions_exists(page):
    text = page.read_text(encoding="utf-8")
    # Names defined in code blocks are checked by running them; those in prose are checked here.
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    words = re.findall(r"`([^`]+)`", prose)
    quoted = " ".join(words)
    for name in set(re.findall(r"\bsimkit(?:\.[A-Za-z_]\w*)+", quoted)) - GROUPS:
        assert resolved(name), f"{page.name}: {name} does not exist"
    for verb in re.findall(r"^simkit ([a-z]+)", "\n".join(words), re.MULTILINE):
        assert verb in VERBS, f"{page.name}: simkit {verb} is no verb"
    for flag in re.findall(r"(?<![\w-])--[a-z][\w-]*", quoted):
        assert flag in flags() or page.stem == "speed", f"{page.name}: {flag} is no flag"


def resolved(name):
    """Return whether a dotted name is a module or an attribute of one."""
    first, *rest = name.split(".")
    found = importlib.import_module(first)
    for part in rest:
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(f"{found.__name__}.{part}")
            except (ImportError, AttributeError):
                return False
    return True


@functools.cache
def flags():
    """Return the flags of all verbs, as their help shows them."""
    found = {"--version"}
    for verb in VERBS:
        parser = Parser(allow_abbrev=False)
        add_arguments(verb_of(verb), parser)
        found |= set(re.findall(r"(?<![\w-])--[a-z][\w-]*", parser.format_help()))
    return found


def test_the_page_of_the_public_surface_equals_the_docstrings():
    pages = program("make_api")
    assert pages.page() == (DOCS / "reference" / "api.md").read_text(), "write it again: make api"
    assert pages.results_page() == (DOCS / "reference" / "results.md").read_text(), "write it again: make api"


def test_every_public_callable_has_an_example_that_uses_it():
    missing = []
    for path, value in program("make_api").public():
        code = "\n".join(re.findall(r"^ *(?:>>>|\.\.\.) (.*)", inspect.getdoc(value) or "", re.MULTILINE))
        if callable(value) and not re.search(rf"\b{path.rpartition('.')[2]}\b", code):
            missing.append(path)
    assert not missing


@every("name", ("flow.kolmogorov_turbulence", "molecular.basin_hopping", "rigid.bouncing_ball"))
def test_the_page_of_simulations_equals_their_declarations(name):
    check_section(name)


def test_the_page_of_simulations_has_no_other_section():
    lines = (DOCS / "reference" / "simulations.md").read_text().splitlines()
    assert [line[3:] for line in lines if line.startswith("## ")] == [*sorted(FACTORIES), "Functions of expressions"]


def test_the_functions_of_expressions_equal_their_declarations():
    functions = program("make_simulations").functions()
    assert functions in (DOCS / "reference" / "simulations.md").read_text(), "write it again: make api"


DATA = ("flow.domain", "molecular.system", "rigid.scene")


def test_every_scenario_from_data_is_on_the_page_in_at_most_30_lines():
    assert sorted(SYSTEMS) == sorted(one.name for one in list_scenarios()[0] if one.simulation in DATA)
    assert not [name for name, text in SYSTEMS.items() if len(text.splitlines()) > 30]


SAMPLES = REPOSITORY / "docs" / "samples"


def test_the_page_shows_the_programs_unchanged():
    page = blocks(REPOSITORY / "docs" / "export.md")
    shown = {block.file: block.text.partition("\n")[2] for block in page if block.file}
    assert shown == {path.name: path.read_text(encoding="utf-8") for path in SAMPLES.glob("*.py")}


def test_the_animations_are_small():
    sizes = [path.stat().st_size for path in SAMPLES.glob("*.gif")]
    assert len(sizes) == 4 and max(sizes) < 1_000_000
