"""The kinds of jobs: where each is declared, and what storage must know of it."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

# A job is declared beside what it does, above this layer, so that it stands here as text.
KINDS = {
    "run": "simkit.jobs.runs:Run",
    "sweep": "simkit.jobs.sweeps:Sweep",
    "optimize": "simkit.jobs.optimizations:Optimization",
}


class Kind:
    """What storage must know of one kind of job; `simkit.jobs.job.Job` adds what is done.

    Attributes:
        kind: as in manifests, a key of `KINDS`.
        noun: as in messages, such as ``"a sweep"``.
        asked: what the manifest's ``request`` holds besides ``labels`` and ``arrays``: the check of each key, see
            `simkit.storage.manifest_schema`.
        files: regular expression of the names of files that other kinds do not write.
        stores: regular expression of the folders that hold segments, besides the run directory itself.
    """

    kind: ClassVar[str]
    noun: ClassVar[str]
    asked: ClassVar[Mapping[str, Callable[[Any, str], None]]] = {}
    files: ClassVar[str] = ""
    stores: ClassVar[str] = ""


def kind_of(name: str) -> type[Kind]:
    """Return a kind of job.

    Args:
        name: as in a manifest, a key of `KINDS`.
    """
    module, _, declared = KINDS[name].partition(":")
    return getattr(importlib.import_module(module), declared)
