"""Shipped scenarios made small enough to test in a moment; one that is not named here is small already."""

from typing import Any

from simkit.runtime.runs import load
from simkit.scenario.catalog import list_scenarios
from simkit.scenario.scenario import Scenario

NAMES = [scenario.name for scenario in list_scenarios()[0]]

# What makes one step cheap.
CONFIGURATION: dict[str, dict[str, Any]] = {
    "channel_flow": {"cells": [8, 8]},
    "soft_sphere_packing": {"particles": 16},
    "silicon": {"repeats": [2, 2, 2]},
}

FEW_STEPS = {"steps": 12, "every": 3}

# Where a derivative says more than over a few steps: one whole throw with its bounces, one whole relaxation.
TO_THE_END = (
    "bouncing_ball",
    "jax_md_soft_spheres",
    "lennard_jones_cluster",
    "lennard_jones_crystal",
    "silicon",
    "soft_sphere_packing",
)


def small(name: str, **values: Any) -> Scenario:
    """Return a shipped scenario, small, over a few steps, in float64."""
    return load(name, {**CONFIGURATION.get(name, {}), **FEW_STEPS, "precision": "float64", **values})


def small_to_the_end(name: str) -> Scenario:
    """Return a shipped scenario, small, in float64, over all its steps if it is in `TO_THE_END`."""
    run = load(name).run
    return small(name, **({"steps": run.steps, "every": run.every} if name in TO_THE_END else {}))


def settings(values: dict[str, Any]) -> list[str]:
    """Return values as arguments of the command line."""
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
