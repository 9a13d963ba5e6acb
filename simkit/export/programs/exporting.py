"""Export of a simulation as a program for other runtimes, run from its files and compared with JAX."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from simkit.core.parameter import POSITIVE
from simkit.core.precision import precision
from simkit.core.settings import number, whole, word
from simkit.core.status import Status
from simkit.errors import UserError, argument
from simkit.export.programs import folder as folders
from simkit.export.programs import runtimes, stand_alone
from simkit.export.programs.functions import FORMS, KEY, Program, program_of
from simkit.export.programs.runtimes import to_onnx
from simkit.export.programs.verification import (
    SMALLEST_SCALES,
    TOLERANCES,
    Report,
    check_finite,
    compared,
    differences,
    write_report,
)
from simkit.export.targets.operators import Operators
from simkit.scenario.build import build
from simkit.scenario.scenario import Scenario

TARGETS = ("stablehlo", "onnx", "all")
# Members of a batch start one after another, some milliseconds each.
LARGEST_BATCH = 2**16
# Size at which a symbolic batch is verified: small, odd, and not one, which tracing might specialize to.
VERIFIED_BATCH = 3
# Effect of the roundings inside of a program, in units of that of moving its inputs by one unit in the last place: up
# to 3 was measured in steps. A run whose results this would change beyond the tolerance is compared over fewer steps;
# an output of one step that it decides, such as forces of joints in single precision, is allowed as much.
ROUNDINGS = 30.0
HOW_TO_MAKE_A_KEY = (
    "uint32 words; of a seed below 2^31 they are [0, seed] for threefry2x32, numpy.array([0, seed], numpy.uint32); in "
    "JAX jax.random.key_data(jax.random.key(seed))"
)


@dataclasses.dataclass(frozen=True)
class Request:
    """Options of an export.

    Attributes:
        to: one of `TARGETS`.
        form: one of `simkit.export.programs.functions.FORMS`.
        batch: size of a leading axis of every array, ``"symbolic"`` for any size, or ``None``.
        objective: name of the objective to differentiate; ``None`` takes the first.
        tolerance: largest error, see `simkit.export.programs.verification`; ``None`` takes that of the precision.
        operators: ONNX operators of the target; ``None`` allows all.
    """

    to: str = "stablehlo"
    form: str = "step"
    batch: int | str | None = None
    objective: str | None = None
    tolerance: float | None = None
    operators: Operators | None = None

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UserError: if one is unknown, out of range, or does not apply to the target.
        """
        word("target", TARGETS).check(self.to, "to")
        word("form of the program", tuple(FORMS)).check(self.form, "what")
        if self.batch not in (None, runtimes.SYMBOLIC):
            whole("members, or 'symbolic'", low=1, high=LARGEST_BATCH).check(self.batch, "batch")
        if self.tolerance is not None:
            # Beyond the largest one a comparison means nothing.
            number("error", bounds=(POSITIVE[0], folders.LARGEST_TOLERANCE)).check(self.tolerance, "tolerance")
        if self.operators is not None and self.to == "stablehlo":
            raise UserError(
                f"a list of operators is for ONNX models; write {argument('to', '"onnx"')}, or leave it out"
            )


def export_program(scenario: Scenario, folder: Path, request: Request, overwrite: bool = False) -> Report:
    """Write a program of a scenario, run it from its files, and compare it with JAX.

    Where rounding decides the results of the run, as in a chaotic motion, no two runtimes agree in them: then a program
    of fewer steps is written beside it, in the folder ``shorter``, and compared instead.

    Args:
        scenario: with overrides applied.
        folder: where to write.
        request: options.
        overwrite: replace an earlier program in the folder.

    Raises:
        UserError: if the folder exists, the run has no finite result or derivative, or a primitive has no form in the
            target. Nothing is written then.
    """
    folders.check_new(folder, overwrite)
    kind = scenario.run.precision
    tolerance = request.tolerance or TOLERANCES[kind]
    with precision(kind):
        program, function, cases = _computed(scenario, request)
        shorter = _comparable(program, scenario, request, cases, function, tolerance)
        files, seconds, outside = _files(program, scenario, request)
        steps = None
        if shorter is not None:
            steps = shorter.run.every if request.form == "segment" else shorter.run.steps
        card = _card(program, scenario, request, tolerance, list(cases), steps)
        is_step = program.steps <= 1 and not program.converges
        if is_step and (changes := _unsettled(program, cases, function, tolerance)):
            # More than the whole scale of an output, and infinity, is no allowance.
            card["allowed"] = [[name, min(change, folders.LARGEST_ALLOWED)] for name, change in changes.items()]
        source = inspect.getsource(stand_alone)
        extra = {
            runner: source.replace("stand_alone.py", runner).encode()
            for name, runner in folders.STAND_ALONE.items()
            if name in files
        }
        text = {folders.SCENARIO: scenario.text.encode()} if scenario.text else {}
        folders.new_folder(folder, overwrite)
        folders.write_program(folder, card, {**files, **extra, **text}, cases)
        reports = compared(folder, folders.read_card(folder), cases)
    reports = [dataclasses.replace(report, seconds_to_make=seconds[report.file]) for report in reports]
    report = Report(folder, request.form, tolerance, reports, steps, outside)
    if shorter is not None:
        report = report.compared_by(export_program(shorter, folder / folders.SHORTER, request))
    write_report(folder, scenario.name, report)
    return report


def _files(
    program: Program, scenario: Scenario, request: Request
) -> tuple[dict[str, bytes], dict[str, float], dict[str, Any]]:
    """Return the files by name, the processor time of making each in seconds, and the operators of `to_onnx`."""
    files: dict[str, bytes] = {}
    seconds: dict[str, float] = {}
    outside: dict[str, Any] = {}
    if request.to in ("onnx", "all"):
        (model, outside), spent = runtimes.timed(lambda: to_onnx(program, request.batch, request.operators))
        files[runtimes.ONNX], seconds[runtimes.ONNX] = model.SerializeToString(), spent
    if request.to in ("stablehlo", "all"):
        made, spent = runtimes.timed(lambda: runtimes.to_stablehlo(program, request.batch, scenario.name))
        files |= made
        seconds[runtimes.JAXEXPORT] = spent
    return files, seconds, outside


def _computed(scenario: Scenario, request: Request) -> tuple[Program, Callable[..., Any], dict[str, folders.Case]]:
    """Return the program of a scenario, its function, compiled, and the inputs and JAX's outputs by case."""
    program = program_of(scenario, build(scenario), request.form, request.objective)
    function = jax.jit(runtimes.batched(program, request.batch))
    return program, function, references(program, scenario, request, function)


def references(
    program: Program, scenario: Scenario, request: Request, function: Callable[..., Any] | None = None
) -> dict[str, folders.Case]:
    """Return the inputs and JAX's outputs, by case; ``function`` is that of the program, compiled."""
    function = function or jax.jit(runtimes.batched(program, request.batch))
    inputs = _start(program, scenario.run.seed, request.batch)
    cases = {}
    for name in folders.CASES[: 2 if program.calls else 1]:
        outputs = [np.asarray(array) for array in function(*inputs)]
        if program.form in ("final", "gradient"):
            for port, array in zip(program.outputs, outputs, strict=True):
                check_finite(f"{scenario.name}: {port.name}", array)
        cases[name] = folders.Case(inputs, outputs)
        for _ in range(program.calls):
            inputs = program.following(inputs, [np.asarray(array) for array in function(*inputs)])
    return cases


def _comparable(
    program: Program,
    scenario: Scenario,
    request: Request,
    cases: Mapping[str, folders.Case],
    function: Callable[..., Any],
    tolerance: float,
) -> Scenario | None:
    """Return the scenario with a half, a quarter, ... of the steps, the most at whose end rounding decides nothing.

    Returns:
        ``None`` if that is all steps, and for a relaxation, which has no result after fewer steps.
    """

    def is_settled(scenario: Scenario) -> bool:
        program, function, cases = _computed(scenario, request)
        return not _unsettled(program, cases, function, tolerance)

    if program.converges or program.steps <= 1 or not _unsettled(program, cases, function, tolerance):
        return None
    shorter, steps = _with_steps(scenario, request.form, 1), program.steps // 2
    while steps > 1 and is_settled(shorter):
        if is_settled(longer := _with_steps(scenario, request.form, steps)):
            return longer
        steps //= 2
    return shorter


def _unsettled(
    program: Program, cases: Mapping[str, folders.Case], function: Callable[..., Any], tolerance: float
) -> dict[str, float]:
    """Return the change of outputs when inputs move by `ROUNDINGS` units in the last place, where it is not allowed.

    Args:
        program: of which this is asked.
        cases: inputs and outputs.
        function: of the program, compiled.
        tolerance: of the comparison.
    """
    names = [port.name for port in program.outputs]
    changes: dict[str, float] = {}
    for case in cases.values():
        for towards_zero in (True, False):
            outputs = [np.asarray(array) for array in function(*(_moved(each, towards_zero) for each in case.inputs))]
            for change in differences(names, case.outputs, outputs, tolerance / ROUNDINGS):
                if not change.passed:
                    changes[change.output] = max(ROUNDINGS * change.error, changes.get(change.output, 0.0))
    return changes


def _moved(array: np.ndarray, towards_zero: bool) -> np.ndarray:
    """Return numbers, each moved by one unit in its last place; zeros, infinities and integers stay.

    Args:
        array: the numbers.
        towards_zero: whether all move towards zero, which leaves results that do not depend on scale, or every second
            one away from it.
    """
    if array.dtype.kind != "f":
        return array
    away = (np.arange(array.size) % 2 == 1).reshape(array.shape) & (not towards_zero)
    ends = np.where(away, np.copysign(np.inf, array), 0).astype(array.dtype)
    return np.where(np.isfinite(array) & (array != 0), np.nextafter(array, ends), array)


def _with_steps(scenario: Scenario, form: str, steps: int) -> Scenario:
    """Return a scenario whose program of a form takes ``steps`` steps, or the next smaller multiple of its frames."""
    run = scenario.run
    if form == "segment":
        return dataclasses.replace(scenario, run=dataclasses.replace(run, steps=steps, every=steps))
    every = min(run.every, steps)
    return dataclasses.replace(scenario, run=dataclasses.replace(run, steps=steps - steps % every, every=every))


def _start(program: Program, seed: int, batch: "int | str | None") -> list[np.ndarray]:
    """Return the inputs at the start; members of a batch have consecutive seeds."""
    if batch is None:
        return program.start(seed)
    count = VERIFIED_BATCH if batch == runtimes.SYMBOLIC else int(batch)
    members = [program.start(seed + member) for member in range(count)]
    return [np.stack(arrays) for arrays in zip(*members, strict=True)]


def _card(
    program: Program,
    scenario: Scenario,
    request: Request,
    tolerance: float,
    cases: list[str],
    compared_steps: int | None,
) -> dict[str, Any]:
    """Return the content of ``io.json``."""
    card = {
        "format": folders.FORMAT,
        "scenario": scenario.name,
        "simulation": scenario.simulation,
        "values": {"config": scenario.config, "run": vars(scenario.run)},
        "form": program.form,
        "about": FORMS[program.form],
        "precision": scenario.run.precision,
        "steps_per_call": program.steps,
        "batch": request.batch,
        "inputs": [port.described(request.batch) for port in program.inputs],
        "outputs": [port.described(request.batch) for port in program.outputs],
        "tolerance": tolerance,
        "smallest_scales": SMALLEST_SCALES,
        "cases": cases,
    }
    if compared_steps is not None:
        card["compared_steps"] = compared_steps
    if any(port.kind == KEY for port in program.inputs):
        card["random_keys"] = HOW_TO_MAKE_A_KEY
    if any(port.name == "status" for port in program.outputs):
        card["status"] = {str(int(code)): code.name.lower() for code in Status}
    if any(port.name.startswith("next.") for port in program.outputs):
        card["feedback"] = "give next.NAME as state.NAME of the next call"
    return card
