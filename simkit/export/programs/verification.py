"""Programs run from their files and compared with their reference, and what is reported of them."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from simkit.core.precision import precision
from simkit.errors import UserError
from simkit.export.programs import folder as folders
from simkit.export.programs import runtimes
from simkit.export.programs.comparison import Difference, differences, not_compared, worst_of
from simkit.storage.files import write_json


@dataclasses.dataclass(frozen=True)
class RuntimeReport:
    """How one runtime does with a program.

    Attributes:
        runtime: its name.
        file: the program's.
        size: of the file, in bytes.
        differences: of all outputs in all cases; none if it was refused.
        seconds_to_load: processor time, with what the runtime compiles.
        seconds_to_run: processor time of one call.
        nodes: of an ONNX model.
        seconds_to_make: processor time; ``None`` where it was made before.
        refused: why the runtime does not run the program; empty if it does.
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
        """Whether it runs the program, and every output is as near to JAX as it must be."""
        return not self.refused and all(one.passed for one in self.differences)

    @property
    def worst(self) -> Difference | None:
        """The output that comes nearest to a miss, or misses most."""
        return worst_of(self.differences)

    @property
    def largest_error(self) -> float | None:
        """Of all outputs that are compared."""
        return max((one.error for one in self.differences if one.compared), default=None)

    @property
    def not_compared(self) -> list[str]:
        """Outputs of which nothing can be asked in one case at least, because rounding alone changes them too much."""
        return not_compared(self.differences)


@dataclasses.dataclass(frozen=True)
class Report:
    """How an exported program does.

    Attributes:
        folder: of its files.
        form: which function of the simulation it is.
        tolerance: that it was held to.
        runtimes: those that ran it, or refused it.
        outside: operators of the ONNX model that the target lacks, with how often they occur and the lines they come
            from.
    """

    folder: Path
    form: str
    tolerance: float
    runtimes: list[RuntimeReport]
    outside: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def misses(self) -> list[str]:
        """What is wrong, one line each."""
        found = [
            f"{self.folder / runtime.file}: {one.output} differs from JAX by {one.error:.2g} in {runtime.runtime}; "
            f"{one.allowed:.2g} is allowed"
            for runtime in self.runtimes
            for one in runtime.differences
            if not one.passed
        ]
        found += [
            f"{self.folder / runtime.file}: no output can be compared: rounding alone changes each of them too much"
            for runtime in self.runtimes
            if not runtime.refused and not any(one.compared for one in runtime.differences)
        ]
        found += [runtime.refused for runtime in self.runtimes if runtime.refused]
        for operator, told in self.outside.items():
            lines = ", ".join(told["lines"][:3])
            found.append(f"the target has no {operator}, {told['count']} of which come from {lines}")
        return found

    @property
    def passed(self) -> bool:
        """Whether every runtime runs it, as near to JAX as it must be, and the target has every operator."""
        return not self.misses


def verify(folder: Path) -> Report:
    """Run the programs of a folder and compare them with its reference, without running any code in it.

    Nothing of the folder is unpickled or imported; names, types, shapes, bounds and sizes are checked before memory is
    taken; a program that calls anything but JAX's own libraries, or reads other files, is refused.

    Args:
        folder: of an exported program.

    Raises:
        UserError: if the folder is not one, or a file of it is damaged.
    """
    card = folders.read_card(folder)
    cases = folders.read_cases(folder, card)
    kinds = {port.dtype for port in (*card.inputs, *card.outputs)}
    with precision("float64" if kinds & {"float64", "int64", "uint64"} else "float32"):
        found = compared(folder, card, cases)
    tolerance = card.told.get("tolerance")
    return Report(folder, card.form, tolerance if isinstance(tolerance, float) else 0.0, found)


def compared(folder: Path, card: folders.Card, cases: Mapping[str, folders.Case]) -> list[RuntimeReport]:
    """Return how each runtime does with the program of a folder.

    Args:
        folder: that holds the files.
        card: what its ``io.json`` says.
        cases: what its ``reference.npz`` holds.

    Raises:
        UserError: if there is no program, or a file is damaged.
    """
    found = [_ran(folder, file, card, cases) for file in (runtimes.ONNX, runtimes.JAXEXPORT) if file in card.files]
    if not found:
        raise UserError(f"{folder}: it holds neither {runtimes.ONNX} nor {runtimes.JAXEXPORT}; export it again")
    return found


def _ran(folder: Path, file: str, card: folders.Card, cases: Mapping[str, folders.Case]) -> RuntimeReport:
    """Return how the runtime of a file does with it."""
    names = [port.name for port in card.inputs], [port.name for port in card.outputs]
    data, where, nodes = folders.read_program(folder, file), str(folder / file), None
    if file == runtimes.ONNX:
        from simkit.export.programs.nested_graphs import count_of
        from simkit.export.programs.onnx_model import loaded

        nodes = count_of(loaded(data, where))
    told: list[Difference] = []
    spent = seconds = 0.0
    refused = ""
    try:
        if file == runtimes.ONNX:
            run, seconds = runtimes.timed(lambda: runtimes.run_onnx(data, names, where))
        else:
            run, seconds = runtimes.timed(lambda: runtimes.run_stablehlo(data, where))
        for case, both in cases.items():
            # The first call compiles.
            outputs, first = runtimes.timed(lambda both=both: run(both.inputs))
            again, spent = runtimes.timed(lambda both=both: run(both.inputs))
            seconds += max(first - spent, 0.0)
            _check_shapes(where, card, both.outputs, outputs)
            told += differences(names[1], both.outputs, again, card.allowed[case])
    except runtimes.RefusedError as error:
        refused = str(error)
    return RuntimeReport(runtimes.RUNTIMES[file], file, len(data), told, seconds, spent, nodes, refused=refused)


def write_report(folder: Path, scenario: str, report: Report) -> None:
    """Write ``report.json``.

    Args:
        folder: of the program.
        scenario: its name.
        report: what to write.
    """
    write_json(folder / folders.REPORT, {"scenario": scenario, **as_plain(report)})


def as_plain(report: Report) -> dict[str, Any]:
    """Return a report as plain data for machines."""
    return {
        "folder": str(report.folder),
        "form": report.form,
        "tolerance": report.tolerance,
        "passed": report.passed,
        "misses": report.misses,
        "operators_outside": report.outside,
        "runtimes": [
            {
                **dataclasses.asdict(runtime),
                "passed": runtime.passed,
                "largest_error": runtime.largest_error,
                "not_compared": runtime.not_compared,
                "differences": [
                    dataclasses.asdict(one) | {"compared": one.compared, "passed": one.passed}
                    for one in runtime.differences
                ],
            }
            for runtime in report.runtimes
        ],
    }


def _check_shapes(where: str, card: folders.Card, expected: list[np.ndarray], found: list[np.ndarray]) -> None:
    if len(found) != len(expected):
        raise UserError(f"{where}: it returns {len(found)} arrays and io.json names {len(expected)}; export it again")
    for port, a, b in zip(card.outputs, expected, found, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise UserError(
                f"{where}: {port.name} is {b.dtype}{list(b.shape)}, not {a.dtype}{list(a.shape)}; export it again"
            )
