"""Kinds of jobs, registered by the layer above, and the class that declares each."""

import importlib
from typing import Any

KINDS: dict[str, str] = {}
"""Module and class of each kind, ``"module:Class"``, by its name in manifests; imported when it is first needed."""


def kind_of(name: str) -> Any:
    """Return the class of a kind of job.

    Args:
        name: a key of `KINDS`, as stored in a manifest.
    """
    module, _, declared = KINDS[name].partition(":")
    return getattr(importlib.import_module(module), declared)
