"""Processor time of each test, and the list of heavy tests by which tests are sorted into three sets.

SIMKIT_MEASURED=times.tsv pytest -p tests.measure -n 2 --dist loadgroup -m "not slow or slow"
python tests/measure.py times.tsv
"""

import os
import sys
from pathlib import Path

import pytest

HEAVY = Path(__file__).with_name("heavy.txt")
# Seconds of processor time above which a test runs with `make thorough` only, and above which with `make slow` only.
# On two cores and with no compiled programs on disk, all tests below the first take about ten minutes, and those
# between the two about twenty.
THOROUGH, SLOW = 2.0, 6.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Record the processor time of a test, its fixtures and its child processes."""
    before = os.times()
    result = yield
    spent = sum(os.times()[:4]) - sum(before[:4])
    with Path(os.environ["SIMKIT_MEASURED"]).open("a") as file:
        file.write(f"{spent:.1f}\t{item.nodeid.partition('@')[0]}\n")
    return result


def heavy_tests() -> dict[str, float]:
    """Return the processor time in seconds of the heavy tests, by name."""
    return {name: seconds for seconds, name in _rows(HEAVY)}


def _rows(path: Path) -> list[tuple[float, str]]:
    rows = (line.split("\t", 1) for line in path.read_text().splitlines())
    return [(float(seconds), name) for seconds, name in rows]


if __name__ == "__main__":
    # Times of tests that were not measured this time are kept.
    known = {name: seconds for path in (HEAVY, Path(sys.argv[1])) for seconds, name in _rows(path)}
    heavy = sorted(name for name, seconds in known.items() if seconds > THOROUGH)
    HEAVY.write_text("".join(f"{known[name]:.1f}\t{name}\n" for name in heavy))
