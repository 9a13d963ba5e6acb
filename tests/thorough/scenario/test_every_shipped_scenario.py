"""Every shipped scenario builds and follows its schema; hostile files; memory over a thousand runs."""

import time
from pathlib import Path

import pytest

import simkit
from tests.scenario import shipped
from tests.scenario.test_schema import refusal
from tests.scenarios.small import small
from tests.tables import every


@pytest.mark.parametrize("name", shipped.NAMES)
def test_every_shipped_scenario_builds(name):
    shipped.check_that_it_builds(name)


@pytest.mark.parametrize("name", shipped.NAMES)
def test_shipped_files_follow_the_schema_of_their_simulation(name, capsys):
    shipped.check_that_it_follows_its_schema(name, capsys)


@pytest.mark.parametrize("name", shipped.WITHOUT_ARGUMENTS)
def test_the_result_of_a_factory_becomes_a_scenario(name):
    shipped.check_that_a_factory_becomes_a_scenario(name)


@pytest.mark.parametrize("name", shipped.FLOWS)
def test_values_that_are_not_positive_are_refused(name):
    shipped.check_that_values_that_are_not_positive_are_refused(small(name, precision="float32"))


@every(
    "hostile",
    [
        '"' + '\\"' * 400_000,
        "a" * 900_000,
        "a." * 15 + "a" * 900_000,
        "'" * 900_000,
        '"""' + '"" ' * 300_000,
        "x = [" + "[],\n" * 200_000 + "]",
        "a = '" + "." * 900_000 + "'",
        "a " * 450_000,
    ],
    ids=["escapes", "word", "long part", "quotes", "triple quotes", "many lists", "dots in a string", "words"],
)
def test_a_hostile_file_is_refused_quickly(hostile):
    start = time.process_time()
    message = refusal(hostile)
    # A linear scan of 1 MiB takes well under a second; quadratic behavior would take minutes.
    assert time.process_time() - start < 5.0
    assert len(message) < 500


CALLS = 1000
# A program kept by every call has 20 kB at least, so a leak of one would be 18 MB.
MOST_GROWTH = 8.0  # MB


def resident() -> float:
    """Return the memory of this process in MB."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def growth(call) -> float:
    """Return by how much memory grows between a tenth and all of the calls, in MB."""
    for index in range(CALLS // 10):
        call(9.0 + 1e-3 * index)
    before = resident()
    for index in range(CALLS // 10, CALLS):
        call(9.0 + 1e-3 * index)
    return resident() - before


def test_memory_does_not_grow_over_a_thousand_runs_or_derivatives():
    short = {"steps": 20, "every": 10}
    grown = {
        "run": growth(lambda gravity: simkit.run("projectile", gravity=gravity, **short)),
        "derivative": growth(lambda gravity: simkit.value_and_grad("projectile", "gravity", gravity=gravity, **short)),
    }
    assert max(grown.values()) < MOST_GROWTH, grown
