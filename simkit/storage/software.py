"""The software and the devices that decide a result, and whether what is needed can be imported."""

import json
import platform
import subprocess
import sys
from importlib import metadata

# What must be importable, and, of the first line, what decides a result, so that a manifest holds its version.
RECORDED = ("jax", "jaxlib", "numpy", "jax-md", "jax-cfd", "brax", "matplotlib", "imageio", "optax", "xarray", "ase")
OTHERS = ("scipy", "pillow", "imageio-ffmpeg", "flatbuffers", "mujoco")
MODULES = {package: package.replace("-", "_") for package in (*RECORDED, *OTHERS)} | {"pillow": "PIL"}
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


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide a result."""
    from simkit import __version__

    found = {"python": platform.python_version(), "simkit": __version__}
    for package in RECORDED:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def devices() -> list[str]:
    """Return the devices JAX computes on, such as ``cpu:0``."""
    import jax

    return [f"{device.platform}:{device.id}" for device in jax.devices()]
