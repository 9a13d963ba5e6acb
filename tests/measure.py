"""Which tests are heavy: the processor time of each, measured, and the list that `make test` leaves to `make thorough`.

SIMKIT_MEASURED=times.tsv pytest -p tests.measure -n 2 --dist loadgroup -m "not slow"
python tests/measure.py times.tsv
"""

import os
import sys
from pathlib import Path

import pytest

HEAVY = Path(__file__).with_name("heavy.txt")
# Seconds of processor time. All tests below take ten minutes on two cores.
LIMIT = 2.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Note the processor time of a test, its fixtures and its child processes."""
    before = os.times()
    result = yield
    spent = sum(os.times()[:4]) - sum(before[:4])
    with Path(os.environ["SIMKIT_MEASURED"]).open("a") as file:
        file.write(f"{spent:.3f}\t{item.nodeid.partition('@')[0]}\n")
    return result


def heavy_tests() -> frozenset[str]:
    """Return the names of the tests that were found to be heavy."""
    return frozenset(HEAVY.read_text().splitlines())


if __name__ == "__main__":
    measured = (line.split("\t", 1) for line in Path(sys.argv[1]).read_text().splitlines())
    names = sorted({name for spent, name in measured if float(spent) > LIMIT})
    HEAVY.write_text("".join(f"{name}\n" for name in names))
