"""The process around a run: where compiled programs are cached, which precision and devices it uses."""

import json
import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

PACKAGES = (
    "jax",
    "jaxlib",
    "numpy",
    "jax-md",
    "jax-cfd",
    "brax",
    "matplotlib",
    "imageio",
    "optax",
    "xarray",
    "ase",
)


# What must be importable, by the name of the package that brings it.
MODULES = {
    "jax": "jax",
    "jaxlib": "jaxlib",
    "numpy": "numpy",
    "scipy": "scipy",
    "xarray": "xarray",
    "optax": "optax",
    "matplotlib": "matplotlib",
    "pillow": "PIL",
    "imageio": "imageio",
    "imageio-ffmpeg": "imageio_ffmpeg",
    "flatbuffers": "flatbuffers",
    "ase": "ase",
    "jax-cfd": "jax_cfd",
    "jax-md": "jax_md",
    "mujoco": "mujoco",
    "brax": "brax",
}
_IMPORTING = """
import importlib, json, os, sys
told, sys.stdout = os.dup(1), sys.stderr
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        reason = ""
    except BaseException as error:
        reason = f"{type(error).__name__}: {error}"
    os.write(told, (json.dumps([name, reason]) + "\\n").encode())
"""


def import_failures(seconds: float = 120.0) -> dict[str, str]:
    """Import every package that simkit needs, in another process, and return why some cannot be imported.

    Args:
        seconds: in all; what is not imported by then counts as a failure.

    Returns:
        ``{package: reason}``, empty if all is well.
    """
    command = [sys.executable, "-c", _IMPORTING, *MODULES.values()]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        output, missing = ran.stdout, "the process that imported it was killed"
    except subprocess.TimeoutExpired as error:
        output = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        missing = f"not imported within {seconds:g} s"
    reasons = dict(json.loads(line) for line in output.splitlines())
    found = {package: reasons.get(module, missing) for package, module in MODULES.items()}
    return {package: reason for package, reason in found.items() if reason}


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


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Compute in ``"float32"`` or ``"float64"`` inside the block.

    Args:
        name: the precision.
    """
    import jax

    with jax.enable_x64(name == "float64"):
        yield


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide a result."""
    from simkit import __version__

    found = {"python": platform.python_version(), "simkit": __version__}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def devices() -> list[str]:
    """Return the devices JAX computes on, such as ``cpu:0``."""
    import jax

    return [f"{device.platform}:{device.id}" for device in jax.devices()]
