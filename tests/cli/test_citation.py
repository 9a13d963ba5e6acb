"""BibTeX of simkit, of scenarios and of the parts they use."""

import re
import tomllib
from pathlib import Path

from simkit.cli.citation import bibtex, identifiers_in
from simkit.scenario.catalog import find_scenario, list_scenarios

TABLE = tomllib.loads((Path(__file__).parents[2] / "simkit/cli/references.toml").read_text())
# References of scenarios whose titles are not in the table.
WITHOUT = {"10.1017/S0022112099007752", "10.1017/S0022112077001217", "10.1038/s43246-024-00583-4"}


def test_a_scenario_cites_simkit_its_papers_and_those_of_the_parts_it_chooses(simkit):
    ran = simkit("cite", "soft_sphere_packing")
    assert ran.code == 0
    assert re.findall(r"@(\w+)\{(\w+),", ran.out) == [
        *(("software", "simkit"), ("article", "ohern2003"), ("article", "bitzek2006"), ("article", "guenole2020")),
    ]
    assert (
        "version = {0.1.0}" in ran.out
        and "year = {20" in ran.out
        and "doi = {10.1103/PhysRevLett.97.170201}" in ran.out
    )
    # Another minimizer is another method.
    changed = simkit("cite", "soft_sphere_packing", "--set", 'config.relax.minimizer="lbfgs"').out
    assert "liu1989" in changed and "bitzek2006" in changed and "guenole2020" not in changed


def test_every_reference_of_a_shipped_scenario_has_an_entry():
    named = {each for scenario in list_scenarios()[0] for each in identifiers_in(" ".join(scenario.references))}
    assert named - set(TABLE) == WITHOUT
    for name, entry in TABLE.items():
        assert {"author", "title"} <= entry.keys() and ("journal" in entry) != ("kind" in entry), name


def test_keys_are_unique_and_names_that_are_no_papers_are_told():
    cited = bibtex(find_scenario("colloid_self_assembly"))
    assert len(cited["keys"]) == len(set(cited["keys"])) > 2
    assert identifiers_in("(doi:10.1145/237170.237244). doi:10.1016/0021-9991(83)90014-1.") == [
        "10.1145/237170.237244",
        "10.1016/0021-9991(83)90014-1",
    ]
