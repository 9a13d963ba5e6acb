"""Functions that compile themselves, and the folder of compiled programs that processes share."""

import functools
import os
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def cache_directory() -> Path | None:
    """Return where compiled programs are kept, or ``None`` if ``SIMKIT_COMPILATION_CACHE`` is ``off``."""
    chosen = os.environ.get("SIMKIT_COMPILATION_CACHE", "")
    if chosen.lower() == "off":
        return None
    if chosen:
        return Path(chosen).expanduser()
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "simkit" / "compiled"


def use_compilation_cache() -> Path | None:
    """Store programs compiled from now on in the folder on disk that processes share.

    Returns:
        The directory, or ``None`` if the cache is off or cannot be written.
    """
    import jax

    directory = cache_directory()
    if directory is None:
        return None
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(directory, os.W_OK):
        return None
    # A cached program that cannot be read or written is compiled again; the user need not act.
    warnings.filterwarnings("ignore", r"Error (read|writ)ing persistent compilation cache entry", UserWarning)
    if jax.config.jax_compilation_cache_dir == str(directory):
        return directory  # An update, even to the same value, makes JAX look up every program again.
    jax.config.update("jax_compilation_cache_dir", str(directory))
    # Also programs of one operation, of which some hundred run before the first step, are read faster than compiled.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.005)
    return directory


def compiled[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that runs as one compiled program, cached on disk; inside traced code it is the plain function.

    Without `jax.jit`, JAX runs operation by operation and compiles a loop of steps again in every call.

    Args:
        function: of arrays, pure.
    """
    import jax
    from jax.core import Tracer

    program = jax.jit(function)
    # Once per function, since it accesses the disk.
    use_cache_once = functools.cache(use_compilation_cache)

    @functools.wraps(function)
    def run(*arguments: P.args, **keywords: P.kwargs) -> R:
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((arguments, keywords))):
            return function(*arguments, **keywords)
        use_cache_once()
        return program(*arguments, **keywords)

    return run


@functools.cache
def compilations() -> list[tuple[float, float]]:
    """Return begin and end of each trace and compilation since the first call, by `time.monotonic`; the list grows."""
    import jax

    times = list[tuple[float, float]]()

    def listen(event: str, duration_secs: float, **kwargs: Any) -> None:
        if event.startswith("/jax/core/compile/"):
            times.append(((now := time.monotonic()) - duration_secs, now))

    jax.monitoring.register_event_duration_secs_listener(listen)
    return times


def covered(intervals: Iterable[tuple[float, float]], end: float) -> float:
    """Return the seconds up to an end that are in at least one of several intervals, which may contain each other."""
    total, reached = 0.0, -float("inf")
    for first, last in sorted(intervals):
        total += max(min(last, end) - max(first, reached), 0.0)
        reached = max(reached, last)
    return total


def needed_bytes(compiled: Any) -> int:
    """Return the memory of one execution of a compiled program in bytes, as reported by the compiler.

    Args:
        compiled: from ``jax.jit(f).lower(...).compile()``.
    """
    analysis = compiled.memory_analysis()
    return (
        analysis.argument_size_in_bytes
        + analysis.output_size_in_bytes
        + analysis.temp_size_in_bytes
        - analysis.alias_size_in_bytes
    )
