"""A loop over runs and derivatives, as by an optimizer of one's own: its memory does not grow."""

from pathlib import Path

import simkit

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
