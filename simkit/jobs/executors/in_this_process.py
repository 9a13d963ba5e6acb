"""Executor in the process of the sweep: chunks computed by one thread for each device that JAX makes of a CPU."""

import contextlib
import dataclasses
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from simkit.core.parts import part
from simkit.core.precision import precision
from simkit.jobs.chunk_size import Sizes, memory_limit
from simkit.jobs.chunks import Chunks, cores_for_chunks
from simkit.jobs.executors.executor import Tally
from simkit.jobs.reporting import Report, Warn


@dataclasses.dataclass(frozen=True)
class InThisProcess:
    """Chunks in the process of the sweep, on each device of a CPU as soon as it pays, and else one after another.

    Every device runs the same program on whole chunks, so equal chunks have the same bytes with any number of them.
    """

    concurrency: int = 1
    shares_memory: bool = True
    in_this_process: bool = True

    def run(
        self, chunks: "Chunks", indices: Sequence[int], report: "Report", warn: "Warn"
    ) -> Generator[tuple[int, dict[str, np.ndarray]], None, None]:
        """Compute chunks, see `simkit.jobs.executors.executor.Executor.run`."""
        tally = Tally(chunks, indices, report)
        devices = cores_for_chunks() if len(indices) > 1 else []
        if len(devices) > 1:
            needed, compilation = Sizes(chunks.sweep, chunks.prepared).program(chunks.together)
            fitting = max(memory_limit(chunks.sweep) // max(needed, 1), 1)
            devices = devices[: min(len(indices), fitting)]
            clock = Clock(len(indices), compilation)
            computed = _in_threads(devices, clock, chunks, indices, tally.update, warn)
        else:
            computed = _one_after_another(chunks, indices, tally.update, warn)
        with contextlib.closing(computed):
            for index, arrays in computed:
                yield index, arrays
                tally.update(index, 1.0)


IN_THIS_PROCESS = InThisProcess()


@part()
def in_this_process() -> InThisProcess:
    """Return the executor in the process of the sweep."""
    return IN_THIS_PROCESS


def _one_after_another(
    chunks: "Chunks", indices: Sequence[int], update: Callable[[int, float], None], warn: "Warn"
) -> Generator[tuple[int, dict[str, np.ndarray]], None, None]:
    for index in indices:
        yield index, chunks.compute(index, lambda fraction, words, index=index: update(index, fraction), warn)


def _in_threads(
    devices: Sequence[Any],
    clock: "Clock",
    chunks: "Chunks",
    indices: Sequence[int],
    update: Callable[[int, float], None],
    warn: "Warn",
) -> Generator[tuple[int, dict[str, np.ndarray]], None, None]:
    """Compute chunks in a thread for each device; messages are read in this one."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    messages: queue.SimpleQueue[tuple[str, Any, Any]] = queue.SimpleQueue()
    stopping, others = threading.Event(), devices[1:]
    for index in indices:
        waiting.put(index)

    settings = _settings()

    def compute_waiting(device: Any) -> None:
        # Settings of JAX within a context belong to a thread.
        with contextlib.ExitStack() as stack:
            for setting, value in settings:
                stack.enter_context(setting(value))
            stack.enter_context(precision(chunks.sweep.scenario.run.precision))
            stack.enter_context(jax.default_device(device))
            for index in _taken(waiting):
                try:
                    compute(index)
                except _StoppedError:
                    return
                except BaseException as error:
                    messages.put(("failed", index, error))
                    return

    def compute(index: int) -> None:
        def send(fraction: float, words: str) -> None:
            if stopping.is_set():
                raise _StoppedError
            messages.put(("progress", index, fraction))

        arrays = chunks.compute(index, send, lambda words: messages.put(("warning", index, words)))
        messages.put(("finished", index, arrays))

    # If this thread is interrupted, the others end their segments.
    with ThreadPoolExecutor(len(devices)) as pool, _set_at_the_end(stopping):
        pool.submit(compute_waiting, devices[0])
        missing = len(indices)
        while missing:
            match messages.get():
                case "progress", index, fraction:
                    update(index, fraction)
                    clock.advance(fraction)
                case "warning", _, words:
                    warn(words)
                case "failed", _, error:
                    raise error
                case _, index, arrays:
                    missing -= 1
                    clock.advance(1.0)
                    yield index, arrays
            if others and clock.pays():
                for device in others:
                    pool.submit(compute_waiting, device)
                others = ()


def _settings() -> list[tuple[Callable[[Any], Any], Any]]:
    """Return the settings of JAX in this thread that change results or errors: context managers and values."""
    names = ("default_prng_impl", "default_matmul_precision", "numpy_dtype_promotion", "numpy_rank_promotion")
    found = [(getattr(jax, name), getattr(jax.config, f"jax_{name}")) for name in (*names, "debug_nans", "debug_infs")]
    return [(setting, value) for setting, value in found if value is not None]


class Clock:
    """Time that the first device needs for the remaining chunks, and that of compilation, repeated for each device.

    Args:
        chunks: number of chunks.
        compilation: seconds of compilation.
    """

    def __init__(self, chunks: int, compilation: float) -> None:
        self._chunks, self._compilation = chunks, compilation
        self._done, self._fraction, self._marks = 0, 0.0, list[tuple[float, float]]()

    def advance(self, fraction: float) -> None:
        """Record the fraction done of the present chunk."""
        self._done, self._fraction = (self._done + 1, 0.0) if fraction >= 1 else (self._done, fraction)
        # The first segment compiles what is not compiled yet.
        if fraction > 0:
            self._marks.append((time.monotonic(), self._done + self._fraction))

    def pays(self) -> bool:
        """Return whether the remaining chunks take longer than the compilation, once their rate is known."""
        (began, first), (now, done) = (self._marks[0], self._marks[-1]) if self._marks else ((0.0, 0.0), (0.0, 0.0))
        return done > first and (now - began) / (done - first) * (self._chunks - done) > self._compilation


class _StoppedError(Exception):
    """The sweep has stopped, so this thread stops too."""


def _taken(waiting: "queue.SimpleQueue[int]") -> Iterator[int]:
    with contextlib.suppress(queue.Empty):
        while True:
            yield waiting.get_nowait()


@contextlib.contextmanager
def _set_at_the_end(event: threading.Event) -> Iterator[None]:
    try:
        yield
    finally:
        event.set()
