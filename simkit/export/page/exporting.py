"""Export of a simulation as a page that computes it, with its programs compared with JAX."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.core.precision import precision
from simkit.core.simulation import draws
from simkit.core.status import MESSAGES, Status, failed, stops
from simkit.errors import UserError
from simkit.export.onnx.model import count_of, graphs_of
from simkit.export.page.document import document
from simkit.export.page.drawing import clock_of, diagnostics_of, drawing_of
from simkit.export.page.preview import Preview, preview_of
from simkit.export.page.runtime import VERSION, runtime_files
from simkit.export.page.sliders import sliders_of
from simkit.export.programs import comparison, runtimes
from simkit.export.programs.comparison import Difference, differences
from simkit.export.programs.exporting import Request, references
from simkit.export.programs.functions import PARTS, Program, part_of, program_of
from simkit.export.programs.onnx_model import to_onnx
from simkit.export.replacing import check_replaceable
from simkit.render.color import check_scenario
from simkit.scenario.build import build
from simkit.storage.files import make_folder, write_bytes

if TYPE_CHECKING:
    from simkit.scenario.scenario import Scenario

# Largest size of a page, bytes.
_LARGEST = 200 << 20


@dataclasses.dataclass(frozen=True)
class PageReport:
    """A page that was written.

    Attributes:
        file: the page.
        size: in bytes.
        nodes: number of nodes of each program, by form.
        differences: of the programs' outputs from JAX, by form.
    """

    file: Path
    size: int
    nodes: dict[str, int]
    differences: dict[str, list[Difference]]

    @property
    def misses(self) -> list[str]:
        """One line for each output that differs from JAX by more than is allowed."""
        return [
            f"{self.file}: {one.output} of '{form}' differs from JAX by {one.error:.2g} in onnxruntime; "
            f"{one.allowed:.2g} is allowed"
            for form, found in self.differences.items()
            for one in found
            if not one.passed
        ]

    @property
    def passed(self) -> bool:
        """Whether every output differs from JAX by at most its allowed error."""
        return not self.misses


def export_page(scenario: "Scenario", file: Path, runtime: Path | None = None, overwrite: bool = False) -> PageReport:
    """Write a page that computes a scenario.

    Args:
        scenario: with overrides applied.
        file: where to write.
        runtime: folder with the files of onnxruntime-web, see `simkit.export.page.runtime.runtime_files`.
        overwrite: replace an existing file.

    Raises:
        UserError: if the file exists, the run fails, pages do not draw its view, a program has no ONNX form, or
            onnxruntime-web is not available. Nothing is written then.
    """
    if file.suffix not in (".html", ".htm"):
        raise UserError(f"{file} cannot hold a page; name it {file.stem}.html")
    check_replaceable(file, overwrite, is_earlier=lambda content: b'name="generator" content="simkit ' in content)
    check_scenario(scenario)
    carried = runtime_files(runtime)
    with precision(scenario.run.precision):
        preview = preview_of(scenario, build(scenario))
        drawing, names = drawing_of(preview.clip)
        programs = _programs(scenario, preview, names)
        made = {form: _model(program, scenario) for form, program in programs.items()}
        description = _description(scenario, preview, programs, made) | {"drawing": drawing}
    texts = {
        "title": scenario.title,
        "summary": scenario.summary,
        "scenario": scenario.name,
        "precision": {"float32": "single precision", "float64": "double precision"}[scenario.run.precision],
        "runtime_version": VERSION,
    }
    blocks = {f"model-{form}": model.data for form, model in made.items()}
    blocks |= {"runtime-script": carried.script, "runtime-wasm": carried.machine}
    page = document(texts, description, blocks)
    if len(page) > _LARGEST:
        raise UserError(f"{scenario.name}: a page of {len(page) >> 20} MB is too large; take a smaller configuration")
    make_folder(file.parent)
    write_bytes(file, page)
    return PageReport(
        file,
        len(page),
        {form: model.nodes for form, model in made.items()},
        {form: model.differences for form, model in made.items()},
    )


@dataclasses.dataclass(frozen=True)
class _Model:
    """A program as an ONNX model: its bytes, number of nodes, names of the tensors it reads, differences from JAX."""

    data: bytes
    nodes: int
    used: set[str]
    differences: list[Difference]


def _programs(scenario: "Scenario", preview: Preview, names: list[str]) -> dict[str, Program]:
    simulation = preview.simulation
    programs = {form: program_of(scenario, simulation, form) for form in PARTS}
    parameters = [port for port in programs["show"].inputs if port.name.startswith("params.")]
    return programs | {"show": part_of(simulation, "show", parameters, 0, names)}


def _model(program: Program, scenario: "Scenario") -> _Model:
    """Return the model of a program, compared with JAX at the start of the run and, for steps, at its next frame."""
    request = Request("onnx", program.form)
    tolerance = comparison.TOLERANCES[scenario.run.precision]
    model, _ = to_onnx(program, None)
    data = model.SerializeToString()
    outputs = [port.name for port in program.outputs]
    run = runtimes.run_onnx(
        data, ([port.name for port in program.inputs], outputs), f"{scenario.name} ({program.form})"
    )
    found = [
        difference
        for case in references(program, scenario, request).values()
        for difference in differences(outputs, case.outputs, run(case.inputs), tolerance)
    ]
    used = {name for graph in graphs_of(model.graph) for node in graph.node for name in node.input}
    return _Model(data, count_of(model), used, found)


def _description(
    scenario: "Scenario", preview: Preview, programs: dict[str, Program], models: dict[str, _Model]
) -> dict[str, Any]:
    """Return the data of the page's script, without the drawing."""
    start = programs["start"]
    *ports, key = start.inputs
    *values, _ = start.start(scenario.run.seed)
    docs = {name: quantity.doc for name, quantity in preview.simulation.quantities.items()}
    diagnostics = diagnostics_of(preview.clip, docs)
    known = [one["name"] for one in diagnostics]
    central = [name for objective in scenario.objectives.values() for name in objective.made_of]
    central += [claim.quantity for claim in scenario.validations]
    stopping = [status for status in Status if bool(stops(np.asarray(status)))]
    return {
        "seed": scenario.run.seed,
        "draws": draws(preview.simulation),
        "keyWords": key.shape[-1],
        "steps": scenario.run.steps,
        "steps_per_second": scenario.run.every * scenario.render.frames_per_second,
        "clock": clock_of(preview.clip),
        "diagnostics": diagnostics,
        "main": next((name for name in central if name in known), ""),
        "statuses": {
            int(status): {
                "message": f"The simulation {MESSAGES[status]}.",
                "stops": True,
                "failed": bool(failed(np.asarray(status))),
            }
            for status in stopping
        },
        **sliders_of(ports, values, models["advance"].used | models["show"].used),
    }
