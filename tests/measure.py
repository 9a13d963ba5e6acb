"""Processor time of each test, without compiled programs on disk, as where tests run for the first time.

SIMKIT_MEASURED=times.tsv pytest -p tests.measure -n 2 --dist worksteal
python tests/measure.py times.tsv
"""

import collections
import os
import sys
from pathlib import Path

import pytest

# Of this process, of the workers that it starts, and of the commands that tests start.
os.environ["SIMKIT_COMPILATION_CACHE"] = "off"
LONGEST = 40


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Record the processor time of a test, its fixtures and its child processes."""
    before = os.times()
    result = yield
    spent = sum(os.times()[:4]) - sum(before[:4])
    with Path(os.environ["SIMKIT_MEASURED"]).open("a") as file:
        file.write(f"{spent:.1f}\t{item.nodeid.partition('@')[0]}\n")
    return result


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Record the processor time of a process until its tests are collected: all its imports."""
    result = yield
    if not hasattr(session.config, "workerinput") and getattr(session.config.option, "numprocesses", None):
        return result
    with Path(os.environ["SIMKIT_MEASURED"]).open("a") as file:
        file.write(f"{sum(os.times()[:4]):.1f}\tcollection\n")
    return result


def summary(rows: list[tuple[float, str]]) -> str:
    """Return seconds and cases of each folder, and the longest tests."""
    seconds, cases = collections.Counter[str](), collections.Counter[str]()
    for spent, name in rows:
        parts = name.partition("::")[0].split("/")
        folder = "/".join(parts[: 3 if parts[1:2] == ["thorough"] else 2])
        for of in (folder, "all"):
            seconds[of] += spent
            cases[of] += 1
    lines = [f"{spent:9.1f} s {cases[folder]:6} cases  {folder}" for folder, spent in seconds.most_common()]
    return "\n".join([*lines, "", *(f"{spent:9.1f} s  {name}" for spent, name in sorted(rows, reverse=True)[:LONGEST])])


if __name__ == "__main__":
    entries = (line.split("\t", 1) for line in Path(sys.argv[1]).read_text().splitlines())
    print(summary([(float(spent), name) for spent, name in entries]))
