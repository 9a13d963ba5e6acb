"""Export of a simulation as a program for other runtimes, run from its files and compared with JAX."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.core.precision import precision
from simkit.errors import UserError, nearest
from simkit.export.programs import comparison, runtimes
from simkit.export.programs import folder as folders
from simkit.export.programs.derivative import check_derivative
from simkit.export.programs.functions import FORMS, Program, program_of
from simkit.export.programs.ports import KEY
from simkit.export.programs.rounding import perturbed
from simkit.export.programs.stand_alone import stand_alone
from simkit.export.programs.verification import Report, RuntimeReport, compared, write_report
from simkit.export.replacing import check_replaceable
from simkit.scenario.build import build

if TYPE_CHECKING:
    from simkit.export.targets.operators import Operators
    from simkit.scenario.scenario import Scenario

TARGETS = ("stablehlo", "onnx", "all")
# Members of a batch start one after another, some milliseconds each.
LARGEST_BATCH = 2**16
# Size at which a symbolic batch is verified: small, odd, and not one, which tracing might specialize to.
VERIFIED_BATCH = 3
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
        tolerance: largest difference relative to the largest number of an output; ``None`` takes the usual one.
        operators: ONNX operators of the target; ``None`` allows all.
    """

    to: str = "stablehlo"
    form: str = "step"
    batch: int | str | None = None
    objective: str | None = None
    tolerance: float | None = None
    operators: "Operators | None" = None

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UserError: if one is unknown, out of range, or does not apply to the target.
        """
        if self.to not in TARGETS:
            raise UserError(f"'{self.to}' is not a target{nearest(str(self.to), list(TARGETS))}")
        if self.form not in FORMS:
            raise UserError(f"'{self.form}' is not a form of program{nearest(str(self.form), list(FORMS))}")
        size = isinstance(self.batch, int) and not isinstance(self.batch, bool) and 0 < self.batch <= LARGEST_BATCH
        if not size and self.batch not in (None, runtimes.SYMBOLIC):
            raise UserError(
                f"batch = {self.batch!r:.60} is neither a size up to {LARGEST_BATCH} nor 'symbolic'; give one of them"
            )
        most = comparison.LARGEST_ALLOWED
        if self.tolerance is not None and not 0 < self.tolerance <= most:
            raise UserError(
                f"tolerance = {self.tolerance!r:.60} is not above 0 and at most {most}, beyond which "
                "nothing is compared; give 1e-5 for instance"
            )
        if self.operators is not None and self.to == "stablehlo":
            raise UserError('a list of operators is for ONNX models; write to="onnx", or leave it out')


def export_program(scenario: "Scenario", folder: Path, request: Request, overwrite: bool = False) -> Report:
    """Write a program of a scenario, run it from its files, and compare it with JAX.

    Args:
        scenario: with overrides applied.
        folder: where to write.
        request: options.
        overwrite: replace an earlier program in the folder.

    Raises:
        UserError: if the folder exists, the run has no finite result or derivative, or a primitive has no form in the
            target. Nothing is written then.
    """
    check_replaceable(folder, overwrite, (folders.CARD,), folders.is_own_file)
    kind = scenario.run.precision
    with precision(kind):
        simulation = build(scenario)
        program = program_of(scenario, simulation, request.form, request.objective)
        tolerance = request.tolerance or comparison.usual_tolerance(request.form, kind)
        cases, allowed = references(program, scenario, request, tolerance)
        files, seconds, outside, finite = _files(program, scenario, request)
        derivative = check_derivative(program, scenario, files.get(runtimes.JAXEXPORT), cases["start"].inputs)
        card = _card(program, scenario, request, tolerance, allowed)
        extra = {runner: stand_alone(runner, name) for name, runner in folders.STAND_ALONE.items() if name in files}
        text = {folders.SCENARIO: scenario.text.encode()} if scenario.text else {}
        folders.new_folder(folder, overwrite)
        folders.write_program(folder, card, {**files, **extra, **text}, cases)
        found = compared(folder, folders.read_card(folder), cases)
    found = [_completed(report, seconds, derivative) for report in found]
    report = Report(folder, request.form, tolerance, found, outside, finite)
    write_report(folder, scenario.name, report)
    return report


def _files(
    program: Program, scenario: "Scenario", request: Request
) -> tuple[dict[str, bytes], dict[str, float], dict[str, Any], list[str]]:
    """Return the files by name, the processor time of making each in seconds, and the operators of `to_onnx`."""
    files: dict[str, bytes] = {}
    seconds: dict[str, float] = {}
    outside: dict[str, Any] = {}
    finite: list[str] = []
    if request.to in ("onnx", "all"):
        from simkit.export.programs.onnx_model import to_onnx

        (model, outside, finite), spent = runtimes.timed(lambda: to_onnx(program, request.batch, request.operators))
        files[runtimes.ONNX], seconds[runtimes.ONNX] = model.SerializeToString(), spent
    if request.to in ("stablehlo", "all"):
        made, spent = runtimes.timed(lambda: runtimes.to_stablehlo(program, request.batch, scenario.name))
        files |= made
        seconds[runtimes.JAXEXPORT] = spent
    return files, seconds, outside, finite


def references(
    program: Program, scenario: "Scenario", request: Request, tolerance: float
) -> tuple[dict[str, folders.Case], dict[str, list[float | None]]]:
    """Return the inputs and JAX's outputs, and the allowed errors of the outputs, by case."""
    import jax

    function = jax.jit(runtimes.batched(program, request.batch))
    inputs = _start(program, scenario.run.seed, request.batch)
    shapes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in inputs]
    inexact = jax.jit(perturbed(runtimes.batched(program, request.batch), *shapes))

    def run(arrays: Any) -> list[np.ndarray]:
        return [np.asarray(array) for array in function(*arrays)]

    cases, allowed = {}, {}
    for name in folders.CASES[: 2 if program.calls else 1]:
        outputs = run(inputs)
        _refuse_unless_finite(program, scenario, outputs)
        cases[name] = folders.Case(inputs, outputs)
        allowed[name] = comparison.allowed_errors(
            lambda sample, inputs=inputs: [np.asarray(array) for array in inexact(np.uint32(sample), *inputs)],
            outputs,
            tolerance,
        )
        for _ in range(program.calls):
            inputs = program.following(inputs, run(inputs))
    return cases, allowed


def _start(program: Program, seed: int, batch: "int | str | None") -> list[np.ndarray]:
    """Return the inputs at the start; members of a batch have consecutive seeds."""
    if batch is None:
        return program.start(seed)
    count = VERIFIED_BATCH if batch == runtimes.SYMBOLIC else int(batch)
    members = [program.start(seed + member) for member in range(count)]
    return [np.stack(arrays) for arrays in zip(*members, strict=True)]


def _refuse_unless_finite(program: Program, scenario: "Scenario", outputs: list[np.ndarray]) -> None:
    if program.form not in ("final", "gradient"):
        return
    for port, array in zip(program.outputs, outputs, strict=True):
        if not np.isfinite(array).all():
            raise UserError(
                f"{scenario.name}: {port.name} is not finite, so that nothing can be compared: the run fails or does "
                "not converge; change its parameters or give it more steps"
            )


def _card(
    program: Program,
    scenario: "Scenario",
    request: Request,
    tolerance: float,
    allowed: Mapping[str, list[float | None]],
) -> dict[str, Any]:
    """Return the content of ``io.json``."""
    from simkit.core.status import Status

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
        "allowed_errors": allowed,
    }
    if any(port.kind == KEY for port in program.inputs):
        card["random_keys"] = HOW_TO_MAKE_A_KEY
    if any(port.name == "status" for port in program.outputs):
        card["status"] = {str(int(code)): code.name.lower() for code in Status}
    if any(port.name.startswith("next.") for port in program.outputs):
        card["feedback"] = "give next.NAME as state.NAME of the next call"
    return card


def _completed(
    report: RuntimeReport, seconds: Mapping[str, float], derivative: "comparison.Difference | None"
) -> RuntimeReport:
    """Return a report with the time of the export and the check of the derivative."""
    more: dict[str, Any] = {"seconds_to_make": seconds[report.file]}
    if derivative is not None and report.file == runtimes.JAXEXPORT:
        more["differences"] = [*report.differences, derivative]
    return dataclasses.replace(report, **more)
