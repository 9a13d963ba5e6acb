"""Differentiate a scenario's objective with respect to its parameters."""

import argparse
import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from simkit.cli.arguments import add_mode, add_scenario, add_wrt, carry_out, given_of, names_of, scenario_of
from simkit.cli.processes import add_processes, follow, group_of, together
from simkit.cli.progress import Progress
from simkit.cli.reports.derivative import report, report_second
from simkit.core.compilation import use_compilation_cache
from simkit.errors import UserError
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    from simkit.engine.processes import ProcessGroup


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    add_scenario(parser)
    add_wrt(parser)
    add_mode(parser)
    parser.add_argument(
        "--memory", help="memory limit of the derivative, such as 200MB; steps are recomputed to stay within it"
    )
    parser.add_argument(
        "--check", action="store_true", help="compare with central differences (in float64 unless --precision is given)"
    )
    parser.add_argument("--second", action="store_true", help="also compute the matrix of second derivatives")
    parser.add_argument(
        "-o", "--output", type=Path, help="folder for the states and the result of a long derivative, which can resume"
    )
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="differentiate the mean over N seeds, as one vectorized program"
    )
    add_processes(parser)
    parser.add_argument("--overwrite", action="store_true", help="replace an existing run directory")


def main(arguments: argparse.Namespace) -> int:
    """Differentiate and report; a non-finite derivative, or one that differs from its difference, is a failure."""
    group = group_of(arguments)
    from simkit.jobs.derivatives import (
        Derivative,
        compare,
        differentiate,
        note_of_steps,
        objective_name,
        selected_parameters,
        status_note,
        zeros_in,
    )
    from simkit.jobs.job import begin
    from simkit.jobs.stored_derivatives import gradient_job

    scenario = scenario_of(arguments)
    wrt = selected_parameters(scenario, names_of(arguments.wrt))
    objective = objective_name(scenario, arguments.objective)
    use_compilation_cache()
    if arguments.seeds is not None:
        return _of_mean(scenario, wrt, objective, arguments, group)
    if group:
        raise UserError("--processes divides the seeds of a derivative; give --seeds, or leave --processes out")
    if arguments.output is not None:
        if given := given_of(arguments, ["check", "second"]):
            raise UserError(f"{given} is not for a derivative that is stored; leave it out, or leave --output out")
        job = gradient_job(scenario, wrt, objective, arguments.mode, arguments.memory)
        work = partial(begin, job, arguments.output, arguments.overwrite)
        return carry_out(job, arguments.output, arguments, None, work)
    if arguments.overwrite:
        raise UserError("--overwrite needs --output; give the folder to replace, or leave it out")
    if arguments.second:
        if arguments.memory:
            raise UserError("--second has no memory limit; leave --memory out")
        return report_second(scenario, wrt, objective, arguments)
    if arguments.check and arguments.memory:
        raise UserError("--check has no memory limit; leave --memory or --check out")
    if not arguments.check:
        with Progress(scenario.name, doing="differentiating"):
            found = differentiate(scenario, wrt, objective, arguments.mode, arguments.memory)
        return report(found, scenario, objective, wrt, json=arguments.json)
    if arguments.precision is None:
        scenario = dataclasses.replace(scenario, run=dataclasses.replace(scenario.run, precision="float64"))
    with Progress(scenario.name, doing="differentiating, and comparing with central differences"):
        checked = compare(scenario, wrt, objective, arguments.mode)
    note = status_note(scenario, checked.status) or note_of_steps(scenario, objective, zeros_in(checked.derivative))
    found = Derivative(checked.value, checked.derivative, checked.status, note)
    return report(found, scenario, objective, wrt, json=arguments.json, checked=checked)


def _of_mean(
    scenario: Scenario, wrt: list[str], objective: str, arguments: argparse.Namespace, group: "ProcessGroup | None"
) -> int:
    """Differentiate the mean over seeds, and report."""
    from simkit.jobs.derivatives import differentiate_mean

    if given := given_of(arguments, ["output", "check", "second", "overwrite"]):
        raise UserError(f"{given} is not for the mean over seeds; leave it out, or leave --seeds out")
    mode, seeds, memory = arguments.mode, arguments.seeds, arguments.memory
    work = partial(differentiate_mean, scenario, wrt, objective, mode, seeds, memory, group)
    if group and not group.is_first:
        return follow(work, group)
    with Progress(scenario.name, doing="differentiating"):
        found = (together(group, "run the command again", work) if group else work)()
    return report(found, scenario, objective, wrt, json=arguments.json)
