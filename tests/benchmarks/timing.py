"""Timing shared by the benchmarks: programs take turns in one process, so that all meet the same machine."""

import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

# Between two programs, and as long as a program's turn lasts at least, s.
PAUSE, TURN = 0.05, 0.1
type Work = Callable[[], Any]


def compiled(function: Callable[..., Any], *arguments: Any) -> tuple[Work, float]:
    """Return the call of a compiled program, which ran once and runs to its end, and its temporary memory in MB."""
    program = jax.jit(function).lower(*arguments).compile()
    jax.block_until_ready(program(*arguments))
    megabytes = program.memory_analysis().temp_size_in_bytes / 1e6
    return (lambda: jax.block_until_ready(program(*arguments))), megabytes


def best(work: dict[str, Work], repeats: int, pause: float = PAUSE, turn: float = TURN) -> dict[str, float]:
    """Return the least wall time of each, s, all run in turn."""
    least = dict.fromkeys(work, np.inf)
    for _ in range(repeats):
        for name, run in work.items():
            # The threads of whoever ran before go on waiting for work for a while, each on a core.
            time.sleep(pause)
            begin = time.perf_counter()
            # What is short is run again while its data are in the cache.
            while True:
                start = time.perf_counter()
                run()
                end = time.perf_counter()
                least[name] = min(least[name], end - start)
                if end - begin > turn:
                    break
    return least


def cost(work: Work, turn: float = 0.2) -> float:
    """Return the processor time of one call, over a turn of at least so many seconds."""
    begin, count = time.process_time(), 0
    while count == 0 or time.process_time() - begin < turn:
        jax.block_until_ready(work())
        count += 1
    return (time.process_time() - begin) / count


def median_ratio(work: Work, reference: Work, turns: int) -> tuple[float, float]:
    """Return the median processor time of a call of ``work``, s, and of its ratio to ``reference``, taken in turn."""
    pairs = [(cost(reference), cost(work)) for _ in range(turns)]
    return float(np.median([own for _, own in pairs])), float(np.median([own / other for other, own in pairs]))
