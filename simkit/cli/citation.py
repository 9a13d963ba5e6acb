"""BibTeX of simkit, and of the papers that a scenario, its simulation and the parts of its configuration name."""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from simkit.core.parts import chosen_parts
from simkit.core.precision import precision
from simkit.scenario.registry import SIMULATIONS
from simkit.scenario.scenario import Scenario, make

_MARK = re.compile(r"(?:doi:(10\.\d{4,}/[^\s,;\"'`]+)|(arXiv:\d{4}\.\d{4,5}))")
# The end of ``Weeks, Chandler, Andersen, J. Chem. Phys. 54, 5237 (1971)``, as references of docstrings are written.
_WRITTEN = re.compile(r" (?P<volume>\d+), (?P<pages>\w+) \((?P<year>\d{4})\)$")
_PLAIN = ("title", "version", "license", "doi", "url", "repository-code", "date-released")


def identifiers_in(text: str) -> list[str]:
    """Return the DOIs, without ``doi:``, and the arXiv numbers in a text, each once.

    Args:
        text: such as a docstring.
    """
    marks = ((doi or number).rstrip(".") for doi, number in _MARK.findall(text))
    # A bracket that the text opened before the identifier is no part of it.
    return list(dict.fromkeys(each[:-1] if each.count(")") > each.count("(") else each for each in marks))


def documents_of(scenario: Scenario) -> list[str]:
    """Return the docstrings of the simulation of a scenario and of the parts that its configuration chooses.

    Args:
        scenario: its simulation is made, and not run.
    """
    factory = SIMULATIONS.resolve(scenario.simulation)
    with precision(scenario.run.precision), chosen_parts() as chosen:
        make(scenario)
    return [each.__doc__ or "" for each in dict.fromkeys([factory, *chosen])]


def bibtex(scenario: Scenario | None) -> dict[str, Any]:
    """Return ``bibtex``, all entries as text, their ``keys``, that of simkit first, and ``others``, which are no entry.

    Args:
        scenario: to be cited beside simkit; ``None`` for simkit alone.
    """
    documents = documents_of(scenario) if scenario else []
    named = scenario.references if scenario else ()
    wanted = identifiers_in(" ".join([*named, *documents]))
    others = [each for each in named if not identifiers_in(each)]
    with Path(__file__).with_name("references.toml").open("rb") as file:
        table = tomllib.load(file)
    written = _derived(documents)
    entries = {"simkit": _entry("simkit", _own())}
    for each in wanted:
        number = {"eprint": each[6:], "archiveprefix": "arXiv"} if each.startswith("arXiv:") else {"doi": each}
        fields = table.get(each) or written.get(each) or {"kind": "misc"}
        key = _key(fields, each, entries)
        entries[key] = _entry(key, fields | number)
    return {"bibtex": "\n\n".join(entries.values()), "keys": list(entries), "others": others}


def _derived(documents: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return entries without titles of the references in docstrings, by identifier."""
    entries = {}
    for text in documents:
        words, start = " ".join(text.split()), 0
        for mark in _MARK.finditer(words):
            before = re.split(r"; |References?: ", words[start : mark.start()])[-1].rstrip(" ,(")
            if written := _WRITTEN.search(before):
                authors, _, journal = before[: written.start()].rpartition(", ")
                names = " and ".join(filter(None, re.split(r", | and ", authors)))
                entries[identifiers_in(mark[0])[0]] = {"author": names, "journal": journal} | written.groupdict()
            start = mark.end()
    return entries


def _own() -> dict[str, Any]:
    """Return the fields of simkit's own entry, from CITATION.cff, in an installed package or a source tree."""
    package = Path(__file__).parents[1]
    file = next(path for path in (package / "_citation.cff", package.parent / "CITATION.cff") if path.is_file())
    text = file.read_text(encoding="utf-8")
    plain = {key: value.strip("\"'") for key, value in re.findall(r"^([\w-]+): *(.+)$", text, re.MULTILINE)}
    people = re.findall(r"^ +- (?:name|family-names): *(.+)(?:\n +given-names: *(.+))?$", text, re.MULTILINE)
    names = [f"{name}, {given}" if given else f"{{{name}}}" for name, given in people]
    fields = {"kind": "software", "author": " and ".join(names)} | {key: plain[key] for key in _PLAIN if key in plain}
    fields["url"] = fields.pop("repository-code", fields.get("url"))
    # A version that is not released has no year.
    return fields | {"year": fields.pop("date-released", "")[:4]}


def _key(fields: Mapping[str, Any], identifier: str, taken: Iterable[str]) -> str:
    """Return the key of an entry, such as ``weeks1971``; of one without an author its identifier."""
    family = re.split(r",| and ", str(fields.get("author", "")))[0]
    word = re.sub(r"[^a-z]", "", unicodedata.normalize("NFKD", family).lower())
    key = f"{word}{fields.get('year', '')}" if word else re.sub(r"[^\w]+", "_", identifier).strip("_")
    return next(each for each in (key, *(f"{key}{letter}" for letter in "bcdefghij")) if each not in taken)


def _entry(key: str, fields: Mapping[str, Any]) -> str:
    kind = fields.get("kind", "article")
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if name != "kind" and value]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
