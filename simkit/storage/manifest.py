"""Manifest of a run directory: the request, the software and devices that decide the bytes, and the array layouts."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.core.parameter import UNBOUNDED, Parameter
from simkit.errors import UserError
from simkit.scenario import checks
from simkit.scenario.scenario import Scenario
from simkit.storage.archives import Layout
from simkit.storage.files import checksum
from simkit.storage.kinds import KINDS
from simkit.storage.manifest_schema import DTYPES, SchemaError, check_schema
from simkit.storage.software import devices, versions

if TYPE_CHECKING:
    from simkit.core.simulation import Arrays

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
        UserError: naming the fault and the remedy.
    """
    if (found := manifest.get("format")) != FORMAT or isinstance(found, bool):
        written = "an earlier" if isinstance(found, int) and found < FORMAT else "another"
        raise UserError(
            f"{path} has format {found!r:.20}, of {written} simkit, and this one reads format {FORMAT}; "
            "run the scenario again (overwrite=True replaces it), or read it with the simkit that wrote it"
        )
    if manifest.get("checksum") != checksum({k: v for k, v in manifest.items() if k != "checksum"}, text):
        raise UserError(f"{path}: its manifest.json or scenario.toml has changed; run the scenario again")
    try:
        check_schema(manifest)
    except SchemaError as error:
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
                "output= out"
            )
    return {name: [str(array.dtype), list(array.shape)] for name, array in frame.items()}


def frames_layout(request: Mapping[str, Any]) -> Layout:
    """Return the layout of the segments of a run.

    Args:
        request: the manifest's request.
    """
    arrays = {name: (dtype, ("frame", *shape)) for name, (dtype, shape) in request["arrays"].items()}
    return Layout(arrays | {"status": ("int32", ("frame",))})
