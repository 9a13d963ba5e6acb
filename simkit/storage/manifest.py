"""Manifest of a run directory: its schema, and the software and devices that decide the bytes."""

import contextlib
import dataclasses
import json
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit import __version__
from simkit.core import devices as core_devices
from simkit.core.parameter import UNBOUNDED, Parameter
from simkit.core.settings import Setting, named, read
from simkit.errors import UserError, argument
from simkit.scenario import checks
from simkit.scenario.scenario import Scenario
from simkit.storage.files import DamagedFileError, Layout, checksum
from simkit.storage.kinds import KINDS, kind_of

if TYPE_CHECKING:
    from simkit.core.simulation import Arrays


# Required packages; the versions of RECORDED ones decide a result and are stored in manifests.
RECORDED = (
    *("jax", "jaxlib", "numpy", "jax-md", "jax-cfd", "brax", "mujoco"),
    *("matplotlib", "imageio", "optax", "xarray", "ase"),
)
OTHERS = ("scipy", "pillow", "imageio-ffmpeg", "flatbuffers")
MODULES = {package: package.replace("-", "_") for package in (*RECORDED, *OTHERS)} | {"pillow": "PIL"}
_IMPORTING = """
import importlib, json, os, sys, time
report, sys.stdout = os.dup(1), sys.stderr
for name in sys.argv[1:]:
    began = time.perf_counter()
    try:
        importlib.import_module(name)
        reason = ""
    except BaseException as error:
        reason = f"{type(error).__name__}: {error}"
    os.write(report, (json.dumps([name, reason, time.perf_counter() - began]) + "\\n").encode())
"""


@dataclasses.dataclass(frozen=True)
class Import:
    """The import of a required package.

    Attributes:
        seconds: how long it took after the packages imported before it, which share dependencies with it.
        failure: why it failed; empty if it succeeded.
        is_late: whether the time was up before it was done.
    """

    seconds: float
    failure: str
    is_late: bool = False


def imports(seconds: float = 120.0) -> dict[str, Import]:
    """Import every required package, in one other process, and return how each import went.

    Args:
        seconds: time limit of all imports.
    """
    command = [sys.executable, "-c", _IMPORTING, *MODULES.values()]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        output, missing = ran.stdout, Import(0.0, "the importing process was killed")
    except subprocess.TimeoutExpired as error:
        output = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        missing = Import(0.0, f"not imported within {seconds:g} s", is_late=True)
    done = {module: Import(took, reason) for module, reason, took in map(json.loads, output.splitlines())}
    return {package: done.get(module, missing) for package, module in MODULES.items()}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide a result."""
    installed = {"python": platform.python_version(), "simkit": __version__}
    for package in RECORDED:
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            installed[package] = "not installed"
    return installed


def devices() -> list[str]:
    """Return the devices on which programs run, with their models; ``"cpu:0 ..."`` stands for all cores of a CPU."""
    is_cpu = core_devices.platform() == "cpu"
    found = core_devices.devices()
    words = [f"{d.platform}:{d.id} {_processor() if is_cpu else d.device_kind}".strip() for d in found]
    return words[:1] if is_cpu else words


def _processor() -> str:
    """Return the model of the processor, whose vector instructions decide the last digits."""
    with contextlib.suppress(OSError):
        if model := re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE):
            return model[1].strip()
    return platform.processor() or platform.machine()


def without_numbers(devices: Sequence[str]) -> list[str]:
    """Return the different ones of `devices`, without their numbers."""
    return sorted({re.sub(r":\d+", "", word, count=1) for word in devices})


def other_devices(began: Sequence[str], now: Sequence[str]) -> str:
    """Return on what a job began and continues, if these are of other kinds, in words; empty if they are alike.

    Args:
        began: `devices` at its start; earlier versions stored no models, which are then not compared.
        now: `devices` of this process.
    """
    before, after = (set(without_numbers(words)) for words in (began, now))
    if all(" " not in word for word in before):
        after = {word.partition(" ")[0] for word in after}
    return "" if before == after else f"{', '.join(sorted(before))} -> {', '.join(sorted(after))}"


type Check = Setting
"""Declaration of an entry of a request."""


def value_check(words: str, test: Callable[[Any], bool]) -> Setting:
    """Return the declaration of a value in a manifest.

    Args:
        words: description of a valid value, such as ``"a word"``.
        test: predicate of the value.
    """

    def check(value: Any, where: str) -> Any:
        if not test(value):
            raise UserError(f"{where} is not {words}", key=where)
        return value

    return Setting(words, "", check, is_required=True)


def each(entry: Setting) -> Setting:
    """Return the declaration of a table with arbitrary keys, whose values all have the same declaration."""
    return dataclasses.replace(named("", entry, "(?s).*"), is_required=True)


def table(keys: Mapping[str, Setting]) -> Setting:
    """Return the declaration of a table with the given keys and any others, those of later versions."""

    def check(value: Any, where: str) -> Any:
        known = {key: entry for key, entry in value.items() if key in keys} if isinstance(value, dict) else value
        return read(known, keys, where)

    return Setting("a table", "", check, is_required=True)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_description(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[1], list):
        return False
    return value[0] in DTYPES and all(map(_is_count, value[1]))


def _is_bounds(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(end is None or _is_number(end) for end in value)


_INTEGERS = (f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))
DTYPES = ("bool", *_INTEGERS, "float16", "float32", "float64")
# Declarations of values in requests.
WORD = value_check("a word", lambda value: isinstance(value, str))
FLAG = value_check("true or false", lambda value: isinstance(value, bool))
NUMBER = value_check("a number", _is_number)
COUNT = value_check("a whole number from 1", lambda value: _is_count(value) and value > 0)
NUMBERS = value_check(
    "a list of numbers", lambda value: isinstance(value, list) and bool(value) and all(map(_is_number, value))
)
WORDS = value_check(
    "a list of words", lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value)
)
_LABELS = table(
    {
        "dimensions": each(WORDS),
        "coordinates": each(value_check("a list", lambda value: isinstance(value, list))),
        "quantities": each(table({"unit": WORD, "doc": WORD})),
    }
)
_PARAMETER = table({"bounds": value_check("two numbers or null", _is_bounds), "unit": WORD, "doc": WORD})
_PICTURES = each(value_check("a word or true", lambda value: value is True or isinstance(value, str)))
_ARRAYS = each(value_check("a type and a shape", _is_description))
_MANIFEST = table(
    {
        "kind": value_check(f"one of {', '.join(KINDS)}", lambda value: value in tuple(KINDS)),
        "scenario": WORD,
        "values": table({"config": table({}), "params": table({}), "run": table({})}),
        "request": table({}),
        "versions": each(WORD),
        "devices": WORDS,
    }
)


def check_schema(manifest: Mapping[str, Any]) -> None:
    """Check that every required key exists and its value is valid; unknown keys are ignored.

    Args:
        manifest: manifest read from a run directory.

    Raises:
        UserError: naming the key.
    """
    _MANIFEST.check(manifest, "manifest.json")
    if "parameters" in manifest:  # absent in earlier versions
        described = table(dict.fromkeys(manifest["values"]["params"], _PARAMETER))
        described.check(manifest["parameters"], "manifest.json.parameters")
    kind, request = kind_of(manifest["kind"]), manifest["request"]
    required = {"labels": _LABELS, "arrays": _ARRAYS, **kind.request_checks}
    added_later = {"pictures": _PICTURES, **kind.request_added_later}
    table(required | {name: check for name, check in added_later.items() if name in request}).check(
        request, "manifest.json.request"
    )


FORMAT = 2


def manifest_of(kind: str, scenario: Scenario, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a new job.

    Args:
        kind: kind of job, a key of `KINDS`.
        scenario: scenario with overrides applied.
        request: the job's further settings, as plain data.
    """
    manifest = {
        "format": FORMAT,
        "kind": kind,
        "scenario": scenario.name,
        "values": {
            "config": scenario.config,
            "params": {name: parameter.default for name, parameter in scenario.parameters.items()},
            "run": vars(scenario.run),
        },
        "parameters": {name: _declaration(parameter) for name, parameter in scenario.parameters.items()},
        "request": dict(request),
        "versions": versions(),
        "devices": devices(),
        "device": core_devices.choice(),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
    }
    return manifest | {"checksum": checksum(manifest, scenario.text)}


def _declaration(parameter: Parameter) -> dict[str, Any]:
    # JSON has no infinity.
    bounds = [end if math.isfinite(end) else None for end in parameter.bounds]
    return {"bounds": bounds, "unit": parameter.unit, "doc": parameter.doc}


def declared_in(manifest: Mapping[str, Any], scenario: Scenario) -> dict[str, Parameter]:
    """Return the parameters of a run with their declarations at its start.

    Args:
        manifest: manifest of the run; in earlier versions it held values without declarations, which are then taken
            from the scenario.
        scenario: scenario parsed from the stored file.
    """
    declarations, values = manifest.get("parameters"), manifest["values"]["params"]
    defaults = {name: checks.numbers(value, f"manifest.json: values.params.{name}") for name, value in values.items()}
    if declarations is None:
        undescribed = {name: Parameter(value, doc="not described in its file") for name, value in defaults.items()}
        return undescribed | {name: settings.as_declaration for name, settings in scenario.parameter_settings.items()}
    return {name: Parameter(value, *_declared(declarations[name])) for name, value in defaults.items()}


def _declared(entry: Mapping[str, Any]) -> tuple[tuple[float, float], str, str]:
    low, high = (end if end is not None else open_end for end, open_end in zip(entry["bounds"], UNBOUNDED, strict=True))
    return (low, high), entry["unit"], entry["doc"]


def check_manifest(manifest: Mapping[str, Any], text: str, path: Path) -> None:
    """Check format, checksum and schema of a manifest.

    Args:
        manifest: manifest read from the run directory.
        text: text of the stored scenario file.
        path: run directory, named in the error.

    Raises:
        DamagedFileError: if the manifest or the scenario has changed.
        UserError: naming another fault and the remedy.
    """
    if (written := manifest.get("format")) != FORMAT or isinstance(written, bool):
        writer = "an earlier" if isinstance(written, int) and written < FORMAT else "another"
        raise UserError(
            f"{path} has format {written!r:.20}, of {writer} simkit, and this one reads format {FORMAT}; "
            f"run the scenario again ({argument('overwrite', 'True')} replaces it), or read it with the simkit that "
            "wrote it"
        )
    if manifest.get("checksum") != checksum({k: v for k, v in manifest.items() if k != "checksum"}, text):
        raise DamagedFileError(f"{path}: its manifest.json or scenario.toml has changed")
    try:
        check_schema(manifest)
    except UserError as error:
        raise UserError(f"{path}: {error}; run the scenario again") from None


def is_manifest(manifest: Mapping[str, Any]) -> bool:
    """Return whether a JSON object has the keys of a manifest, of this or an earlier format, altered or not."""
    return {"format", "scenario", "values", "request"} <= set(manifest) and manifest.get("kind") in tuple(KINDS)


def identity_of(manifest: Mapping[str, Any]) -> str:
    """Return the identity of a run, stored in the seals of its files: half the digits of the manifest's checksum."""
    return manifest["checksum"].removeprefix("sha256 ")[:32]


def describe_frames(frame: "Arrays") -> dict[str, Any]:
    """Return names, types and shapes of the arrays of a frame as plain data, for a manifest.

    Args:
        frame: ``{"observed.NAME" | "diagnosed.NAME": array or shape}`` of one frame of one member.

    Raises:
        UserError: naming an array of a type that no run stores.
    """
    for name, array in frame.items():
        if str(array.dtype) not in DTYPES:
            group, _, plain = name.partition(".")
            what = "as real and imaginary parts" if "complex" in str(array.dtype) else "in another type"
            raise UserError(
                f"{group} array '{plain}' has type {array.dtype}, which runs do not store; give it {what}, or leave "
                f"{argument('output')} out"
            )
    return {name: [str(array.dtype), list(array.shape)] for name, array in frame.items()}


def frames_layout(request: Mapping[str, Any]) -> Layout:
    """Return the layout of the segments of a run.

    Args:
        request: the manifest's request.
    """
    arrays = {name: (dtype, ("frame", *shape)) for name, (dtype, shape) in request["arrays"].items()}
    return Layout(arrays | {"status": ("int32", ("frame",))})
