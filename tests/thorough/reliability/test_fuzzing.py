"""Much random wrong input of the command line.

``SIMKIT_FUZZ=100000 pytest tests/thorough/reliability/test_fuzzing.py`` tries that many cases.
"""

import os
import random
import subprocess
import sys

import pytest

from tests.reliability import fuzzing
from tests.reliability.promises import TRACING, attempt, emptied, fuzz, without_work

# Number of cases of the long test, divided among the kinds.
CASES = int(os.environ.get("SIMKIT_FUZZ", "2000"))
# Cases of a kind among as many of all kinds: what builds a simulation takes a second.
SHARES = dict.fromkeys(fuzzing.KINDS, 0.18) | {"scenario files built": 0.01, "models": 0.05, "command lines": 0.04}

pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("kind", fuzzing.KINDS)
def test_much_wrong_input_is_refused_as_promised(kind, tmp_path):
    codes, broken = fuzz(kind, range(1000, 1000 + round(CASES * SHARES[kind])), tmp_path / "work")
    print(kind, dict(codes))
    assert not broken, "\n".join(broken)


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
