"""Folder of compiled programs that processes share."""

import os
import warnings
from pathlib import Path


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
    """Keep compiled programs on disk between processes; must run before JAX makes its first array.

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
    # A cached program that cannot be read or written is compiled again; there is nothing for a user to do about it.
    warnings.filterwarnings("ignore", r"Error (read|writ)ing persistent compilation cache entry", UserWarning)
    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    return directory
