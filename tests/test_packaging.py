"""The package as it is distributed."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_extra_that_a_message_or_a_page_names_exists():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [*ROOT.glob("simkit/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    named = {
        (name, extra.strip())
        for path in texts
        for name, extras in re.findall(r"pip install '?([\w-]+)\[([\w, ]+)\]", path.read_text())
        for extra in extras.split(",")
    }
    assert len(named) > 2
    assert {name for name, _ in named} == {project["name"]}
    assert {extra for _, extra in named} <= set(project["optional-dependencies"])


def test_the_extra_cuda_is_that_of_jax_in_the_required_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (needed,) = project["optional-dependencies"]["cuda"]
    name, extra, version = re.fullmatch(r"(\w+)\[(\w+)\](\S+)", needed).groups()
    assert f"{name}{version}" in project["dependencies"]
    assert extra in metadata.metadata(name).get_all("Provides-Extra")
    assert any(f'extra == "{extra}"' in each and "cuda" in each.split(";")[0] for each in metadata.requires(name))


def test_the_version_to_cite_is_that_of_the_package():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
