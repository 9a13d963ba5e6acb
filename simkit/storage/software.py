"""Versions and devices that decide a result, and import checks of the required packages."""

import json
import platform
import subprocess
import sys
from importlib import metadata

# Required packages; the versions of RECORDED ones decide a result and are stored in manifests.
RECORDED = ("jax", "jaxlib", "numpy", "jax-md", "jax-cfd", "brax", "matplotlib", "imageio", "optax", "xarray", "ase")
OTHERS = ("scipy", "pillow", "imageio-ffmpeg", "flatbuffers", "mujoco")
MODULES = {package: package.replace("-", "_") for package in (*RECORDED, *OTHERS)} | {"pillow": "PIL"}
_IMPORTING = """
import importlib, json, os, sys
report, sys.stdout = os.dup(1), sys.stderr
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        reason = ""
    except BaseException as error:
        reason = f"{type(error).__name__}: {error}"
    os.write(report, (json.dumps([name, reason]) + "\\n").encode())
"""


def import_failures(seconds: float = 120.0) -> dict[str, str]:
    """Import every required package in another process, and return the reasons of failures.

    Args:
        seconds: time limit of all imports; packages not imported by then count as failures.

    Returns:
        ``{package: reason}``, empty if every import succeeds.
    """
    command = [sys.executable, "-c", _IMPORTING, *MODULES.values()]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        output, missing = ran.stdout, "the importing process was killed"
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
    """Return the devices JAX computes on, such as ``cpu:0``, which stands for all cores of a CPU."""
    import jax

    found = [f"{device.platform}:{device.id}" for device in jax.devices()]
    return found[:1] if jax.default_backend() == "cpu" else found
