"""Random wrong input of the command line: an exit code, one line with the remedy, soon and with nothing left behind."""

import collections
import os
import random
import subprocess
import sys

import jax
import pytest

from tests.reliability import fuzzing
from tests.reliability.promises import attempt, emptied, without_work

# Number of cases of the long test, divided among the kinds.
CASES = int(os.environ.get("SIMKIT_FUZZ", "2000"))
# Cases of a kind among as many of all kinds: what builds a simulation takes a second.
SHARES = dict.fromkeys(fuzzing.KINDS, 0.18) | {"scenario files built": 0.01, "models": 0.05, "command lines": 0.04}
# Seconds of processor time to trace a simulation, which a wrong file may need before its mistake is found.
TRACING = {"scenario files built": 8.0, "command lines": 8.0}
CACHED = 100

pytestmark = pytest.mark.filterwarnings("default")


def fuzz(kind, numbers, folder):
    """Return the number of cases by exit code, and what is broken."""
    codes, broken = collections.Counter(), []
    with without_work():
        for number in numbers:
            # What exceeds the time or memory is measured again, with all modules imported.
            for _ in range(2):
                moments = random.Random(f"{kind} {number}")
                command = fuzzing.KINDS[kind](moments, emptied(folder))
                found = attempt(folder, command)
                if not (reason := found.broken(TRACING.get(kind, 0.0))):
                    break
            else:
                broken.append(f"{kind} {number}: {command if isinstance(command, list) else ''} {reason}")
            codes[found.code] += 1
            if number % CACHED == CACHED - 1:
                jax.clear_caches()
    return codes, broken


@pytest.mark.parametrize("kind", [kind for kind in fuzzing.KINDS if kind not in TRACING])
def test_some_wrong_input_is_refused_as_promised(kind, tmp_path):
    codes, broken = fuzz(kind, range(40), tmp_path / "work")
    assert not broken and codes[2]


@pytest.mark.parametrize("kind", TRACING)
def test_some_wrong_commands_are_refused_as_promised(kind, tmp_path):
    codes, broken = fuzz(kind, range(6), tmp_path / "work")
    assert not broken and codes[2]


@pytest.mark.slow
@pytest.mark.parametrize("kind", fuzzing.KINDS)
def test_much_wrong_input_is_refused_as_promised(kind, tmp_path):
    codes, broken = fuzz(kind, range(1000, 1000 + round(CASES * SHARES[kind])), tmp_path / "work")
    print(kind, dict(codes))
    assert not broken, "\n".join(broken)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TRACING)
def test_wrong_commands_are_refused_by_real_processes_alike(kind, tmp_path):
    compared = 0
    for number in range(20):
        folder = emptied(tmp_path / "work")
        words = fuzzing.KINDS[kind](random.Random(f"process {kind} {number}"), folder)
        with without_work():
            found = attempt(folder, words)
        if found.code != 2 or any("\x00" in word or "\ud800" in word for word in words):
            continue
        before, compared = sorted(folder.rglob("*")), compared + 1
        process = [sys.executable, "-m", "simkit.cli.main", *words]
        ran = subprocess.run(process, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        assert (ran.returncode, ran.stderr.splitlines()) == (2, found.lines), (words, ran)
        assert sorted(folder.rglob("*")) == before, words
    assert compared > 5
