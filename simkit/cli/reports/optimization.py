"""Report of an optimization."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.cli.main import FAILED, FINE
from simkit.cli.output import print_json, print_table, show
from simkit.cli.progress import Progress
from simkit.core.status import Status
from simkit.errors import UserError
from simkit.jobs.job import begin
from simkit.jobs.runs import Outcome, Run
from simkit.scenario.made_in_python import load
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    from simkit.jobs.optimizations import Optimization, Optimized
    from simkit.render.page import Size

# Supported options of pictures.
PICTURES = ("size", "no_render")
# Number of iterations in the table.
ROWS = 12


def finish(
    outcome: "Optimized", job: "Optimization", folder: Path, arguments: argparse.Namespace, size: "Size | None"
) -> int:
    """Report an optimization, with a chart of its loss and a picture of the run before and after.

    Args:
        outcome: outcome of the optimization.
        job: the optimization.
        folder: its run directory.
        arguments: arguments with ``json``.
        size: size of the pictures; ``None`` draws none.
    """
    best, scenario = {name: outcome.best[name] for name in job.wrt}, job.scenario
    losses = outcome.arrays["diagnosed.loss"]
    best_loss = float(outcome.arrays["diagnosed.best_loss"][-1])
    initial = {name: scenario.parameters[name].default for name in job.wrt}
    pictures: dict[str, Path] = {}
    status = Status(int(outcome.status))
    runs: list[Outcome] = []
    refused = ""
    if size and not outcome.failed:
        from simkit.export.pictures import draw_before_and_after, objective_units
        from simkit.render.chart import history_chart

        pictures["loss"] = folder / "loss.png"
        try:
            runs = _before_and_after(scenario, load(scenario, _inside(scenario, best)))
        except UserError as error:  # an optimization may end where a run of its own would not start
            refused = f"a run with these parameters is refused: {error}"
        else:
            captions = [", ".join(f"{name} = {show(value)}" for name, value in v.items()) for v in (initial, best)]
            file, titles = folder / "before_after.png", (f"before: {captions[0]}", f"after: {captions[1]}")
            with Progress(scenario.name, doing="drawing", phase="drew"):
                pictures["before_after"] = draw_before_and_after(runs[0], runs[1], file, titles, size)
        paths = {name: outcome.arrays.get(f"diagnosed.{name}", np.zeros(0)) for name in job.wrt}
        series = {job.objective: losses} | {name: path for name, path in paths.items() if path.shape == losses.shape}
        units = {name: scenario.parameters[name].unit for name in paths}
        labels = runs[0].labels.get("quantities", {}) if runs else {}
        units |= objective_units(scenario, {name: label["unit"] for name, label in labels.items()})
        history_chart(
            pictures["loss"],
            "iteration",
            outcome.arrays["diagnosed.iteration"],
            series,
            scenario.title,
            units,
            int(np.nanargmin(np.abs(losses - best_loss))),
        )
    if arguments.json:
        report = {
            "scenario": scenario.name,
            "objective": job.objective,
            "status": status.name.lower(),
            "message": outcome.message,
            "iterations": len(losses) - 1,
            "loss": losses,
            "best_loss": best_loss,
            "best": best,
            "begun": initial,
            "at_bounds": outcome.at_bounds,
            "directory": folder,
            "pictures": pictures,
        }
        print_json(report, "optimization")
    else:
        shown = np.unique(np.linspace(0, len(losses) - 1, ROWS).round().astype(int)).tolist()
        # Of arrays the best so far are stored.
        stored = {n: f"diagnosed.{n}" if f"diagnosed.{n}" in outcome.arrays else f"observed.best_{n}" for n in job.wrt}
        columns = [outcome.arrays[key] for key in stored.values()]
        rows = [(i, float(losses[i]), *(column[i].tolist() for column in columns)) for i in shown]
        heads = (n if key.startswith("diagnosed.") else f"best {n}" for n, key in stored.items())
        print_table(("iteration", job.objective, *heads), rows)
        words = ", ".join(f"{name} = {show(value)}" for name, value in best.items())
        print(f"\nbest {job.objective}: {best_loss:.6g} at {words}")
        if not outcome.failed:
            print(outcome.message)
        for name, file in pictures.items():
            print(f"{name.replace('_', ' ')}: {file}")
    for changed, run in zip(("before", "after"), runs, strict=False):
        if run.failed:
            print(f"simkit: warning: the run {changed} the optimization: {run.message}", file=sys.stderr)
    if refused:
        print(f"simkit: warning: {refused}", file=sys.stderr)
    if outcome.failed:
        print(f"simkit: {outcome.message}", file=sys.stderr)
    return FAILED if outcome.failed else FINE


def _before_and_after(*scenarios: Scenario) -> "list[Outcome]":
    """Run the scenarios of the start and of the best parameters, with progress."""
    runs: list[Outcome] = []
    with Progress(scenarios[0].name, 2 * scenarios[0].run.steps, phase="ran") as progress:
        for finished, scenario in enumerate(scenarios):
            words = ("before the optimization", "after the optimization")[finished]

            def report(fraction: float, _: str, finished: int = finished, words: str = words) -> None:
                progress.update((finished + fraction) / 2, words)

            runs.append(begin(Run(scenario), None, report=report))
    return runs


def _inside(scenario: Scenario, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values clipped to their bounds, which rounding may have exceeded."""
    bounds = {name: scenario.parameters[name].bounds for name in values}
    return {f"params.{name}": np.clip(value, *bounds[name]).tolist() for name, value in values.items()}
