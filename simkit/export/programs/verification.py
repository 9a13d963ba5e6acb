"""Verification of exported programs: run from their files, compared with JAX within limits, and reported."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simkit.core.precision import precision
from simkit.errors import UserError
from simkit.export.onnx.model import count_of
from simkit.export.programs import folder as folders
from simkit.export.programs import runtimes
from simkit.export.programs.runtimes import loaded
from simkit.export.programs.stand_alone import errors_of
from simkit.storage.files import DamagedFileError, write_json

# Largest error that passes. In single precision the pressure of a flow around a moving cylinder differs by 3e-4, in
# double precision the joint forces of a double pendulum by 2e-10; round-off grows along a run.
TOLERANCES = {"float32": 1e-3, "float64": 1e-8}
# Smallest scale of an output, as a share of the largest number of all outputs: an output that is nothing but round-off,
# such as the divergence of a projected flow, agrees in no digit of its own. With the tolerances, 840 and 4,500 units in
# the last place of that largest number are allowed.
SMALLEST_SCALES = {"float32": 0.1, "float64": 1e-4}
type Arrays = Sequence[np.ndarray]


@dataclasses.dataclass(frozen=True)
class Difference:
    """Difference of one output of a runtime from the reference.

    Attributes:
        output: its name.
        error: largest difference relative to the scale of the output; for integers and booleans the fraction that
            differs; infinite where one is finite and the other is not.
        allowed: largest error that passes, 0 for integers and booleans.
    """

    output: str
    error: float
    allowed: float

    @property
    def passed(self) -> bool:
        """Whether the error is allowed."""
        return self.error <= self.allowed


def differences(
    names: Sequence[str], expected: Arrays, actual: Arrays, tolerance: float, allowed: Mapping[str, float] = {}
) -> list[Difference]:
    """Return the difference of each output from the reference.

    Args:
        names: of the outputs.
        expected: results of JAX.
        actual: results of another runtime, of the same shapes.
        tolerance: largest error of numbers that passes.
        allowed: of outputs that rounding decides, by name, in place of the tolerance.
    """
    errors = errors_of(expected, actual, SMALLEST_SCALES)
    return [
        Difference(name, error, allowed.get(name, tolerance) if array.dtype.kind == "f" else 0.0)
        for name, array, error in zip(names, expected, errors, strict=True)
    ]


def worst_of(differences: Sequence[Difference]) -> Difference | None:
    """Return the output whose error is largest relative to what is allowed.

    Args:
        differences: of any number of outputs; ``None`` is returned for none.
    """
    return max(
        differences,
        key=lambda difference: (not difference.passed, difference.error / (difference.allowed or 1.0)),
        default=None,
    )


def check_finite(what: str, *arrays: np.ndarray) -> None:
    """Refuse results with which nothing can be compared.

    Args:
        what: scenario and name of the results.
        *arrays: the results.

    Raises:
        UserError: if one is not finite.
    """
    if not all(np.isfinite(array).all() for array in arrays):
        raise UserError(
            f"{what} is not finite, so that nothing can be compared: the run fails or does not converge; change its "
            "parameters or give it more steps"
        )


@dataclasses.dataclass(frozen=True)
class RuntimeReport:
    """Results of a program in one runtime.

    Attributes:
        runtime: its name.
        file: name of the program's file.
        size: of the file, in bytes.
        differences: of all outputs in all cases; empty if the runtime refused the program.
        seconds_to_load: processor time of loading, compilation included.
        seconds_to_run: processor time of one call.
        nodes: number of nodes of an ONNX model.
        seconds_to_make: processor time of the export; ``None`` for a verification.
        refused: reason why the runtime does not run the program; empty if it does.
    """

    runtime: str
    file: str
    size: int
    differences: list[Difference]
    seconds_to_load: float
    seconds_to_run: float
    nodes: int | None = None
    seconds_to_make: float | None = None
    refused: str = ""

    @property
    def passed(self) -> bool:
        """Whether the runtime runs the program, and every output differs from JAX by at most its allowed error."""
        return not self.refused and all(difference.passed for difference in self.differences)

    @property
    def worst(self) -> Difference | None:
        """The output whose error is largest relative to what is allowed."""
        return worst_of(self.differences)

    @property
    def largest_error(self) -> float | None:
        """Largest error of all outputs."""
        return max((difference.error for difference in self.differences), default=None)


@dataclasses.dataclass(frozen=True)
class Report:
    """Results of an exported program.

    Attributes:
        folder: of its files.
        form: of the program, see `simkit.export.programs.functions.FORMS`.
        tolerance: largest error relative to the scale of an output.
        runtimes: reports of the runtimes that ran or refused the program.
        compared_steps: number of steps of the run that is compared in place of the whole one, at whose end rounding
            decides the results; ``None`` for a comparison of the program itself.
        outside: operators of the ONNX model that the target lacks, ``{operator: {"count": n, "lines": [...]}}`` with
            the source lines that they come from.
    """

    folder: Path
    form: str
    tolerance: float
    runtimes: list[RuntimeReport]
    compared_steps: int | None = None
    outside: dict[str, Any] = dataclasses.field(default_factory=dict)

    def compared_by(self, shorter: "Report") -> "Report":
        """Return the report with the differences of a program of fewer steps.

        Args:
            shorter: its report.
        """
        by_file = {report.file: report for report in shorter.runtimes}
        reports = [
            dataclasses.replace(
                report,
                differences=by_file[report.file].differences if report.file in by_file else [],
                refused=report.refused or (by_file[report.file].refused if report.file in by_file else ""),
            )
            for report in self.runtimes
        ]
        return dataclasses.replace(self, runtimes=reports)

    @property
    def misses(self) -> list[str]:
        """One line for each operator that is missing, each runtime that refused, and each output that differs."""
        lines_of_misses = []
        for operator, uses in self.outside.items():
            lines = ", ".join([*uses["lines"][:3], *(["..."] if len(uses["lines"]) > 3 else [])])
            lines_of_misses.append(f"the target has no {operator}, {uses['count']} of which come from {lines}")
        lines_of_misses += [runtime.refused for runtime in self.runtimes if runtime.refused]
        # Of an output that differs in several cases, the largest error.
        worst: dict[tuple[str, str], Difference] = {}
        for runtime in self.runtimes:
            for difference in runtime.differences:
                earlier = worst.get((runtime.file, difference.output))
                if not difference.passed and (earlier is None or difference.error > earlier.error):
                    worst[runtime.file, difference.output] = difference
        lines_of_misses += [
            f"{self.folder / file}: {output} differs from JAX by {difference.error:.2g} in {runtimes.RUNTIMES[file]}; "
            f"{difference.allowed:.2g} is allowed"
            for (file, output), difference in worst.items()
        ]
        return lines_of_misses

    @property
    def passed(self) -> bool:
        """Whether every runtime runs the program within the allowed errors, and the target has every operator."""
        return not self.misses


def verify(folder: Path, shorter: bool = False) -> Report:
    """Run the programs of a folder and compare them with its reference, without running any code in it.

    No file is unpickled or imported; names, types, shapes, bounds and sizes are checked before memory is allocated; a
    program that calls anything but JAX's own libraries, or reads other files, is refused.

    Args:
        folder: of an exported program.
        shorter: whether it is the program of fewer steps in the folder of another, which has no such folder itself.

    Raises:
        UserError: if the folder is not one, or a file of it is damaged.
    """
    card = folders.read_card(folder)
    cases = folders.read_cases(folder, card)
    kinds = {port.dtype for port in (*card.inputs, *card.outputs)}
    with precision("float64" if kinds & {"float64", "int64", "uint64"} else "float32"):
        report = Report(folder, card.form, card.tolerance, compared(folder, card, cases), card.compared_steps)
    if shorter or card.compared_steps is None:
        return report
    return report.compared_by(verify(folder / folders.SHORTER, shorter=True))


def compared(folder: Path, card: folders.Card, cases: Mapping[str, folders.Case]) -> list[RuntimeReport]:
    """Return the report of each runtime on the program of a folder.

    Args:
        folder: of the files.
        card: content of its ``io.json``.
        cases: content of its ``reference.npz``.

    Raises:
        UserError: if a file is damaged.
    """
    files = [file for file in (runtimes.ONNX, runtimes.JAXEXPORT) if file in card.files]
    return [_report(folder, file, card, cases) for file in files]


def _report(folder: Path, file: str, card: folders.Card, cases: Mapping[str, folders.Case]) -> RuntimeReport:
    """Run the program of a file in its runtime, and return the report."""
    names = [port.name for port in card.inputs], [port.name for port in card.outputs]
    where, nodes, refused = str(folder / file), None, ""
    results: list[Difference] = []
    spent = seconds = 0.0
    with folders.reading(folder / file):
        data = folders.read_program(folder / file)
        if file == runtimes.ONNX:
            nodes = count_of(loaded(data))
        try:
            if file == runtimes.ONNX:
                run, seconds = runtimes.timed(lambda: runtimes.run_onnx(data, names, where))
            else:
                run, seconds = runtimes.timed(lambda: runtimes.run_stablehlo(data, where))
            for both in cases.values():
                # The first call compiles.
                _, first = runtimes.timed(lambda both=both: run(both.inputs))
                outputs, spent = runtimes.timed(lambda both=both: run(both.inputs))
                seconds += max(first - spent, 0.0)
                _check_shapes(card, both.outputs, outputs)
                results += differences(names[1], both.outputs, outputs, card.tolerance, card.allowed)
        except runtimes.RefusedError as error:
            refused = str(error)
    return RuntimeReport(runtimes.RUNTIMES[file], file, len(data), results, seconds, spent, nodes, refused=refused)


def write_report(folder: Path, scenario: str, report: Report) -> None:
    """Write ``report.json``.

    Args:
        folder: of the program.
        scenario: name of the scenario.
        report: to write.
    """
    write_json(folder / folders.REPORT, {"scenario": scenario, **as_plain(report)})


def as_plain(report: Report) -> dict[str, Any]:
    """Return a report as plain data for JSON."""
    plain = dataclasses.asdict(report)
    for runtime, each in zip(plain["runtimes"], report.runtimes, strict=True):
        runtime |= {"passed": each.passed, "largest_error": each.largest_error}
        for entry, difference in zip(runtime["differences"], each.differences, strict=True):
            entry["passed"] = difference.passed
    outside = {"operators_outside": plain.pop("outside")}
    return plain | {"folder": str(report.folder), "passed": report.passed, "misses": report.misses} | outside


def _check_shapes(card: folders.Card, expected: list[np.ndarray], actual: list[np.ndarray]) -> None:
    kinds = [[f"{array.dtype}{list(array.shape)}" for array in side] for side in (expected, actual)]
    for name, a, b in itertools.zip_longest([port.name for port in card.outputs], *kinds):
        if a != b:
            raise DamagedFileError(f"its output {name} is {b}, not {a}")
