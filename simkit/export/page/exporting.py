"""Export of a simulation as a page that computes it: preview, sliders, document, comparison with JAX."""

import dataclasses
import html
import json
import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jax
import numpy as np

from simkit import __version__
from simkit.core.converge import with_room
from simkit.core.dependence import draws
from simkit.core.parameter import POSITIVE
from simkit.core.precision import precision
from simkit.core.rollout import recorded
from simkit.core.simulation import Simulation
from simkit.core.status import MESSAGES, Status, failed, stops
from simkit.errors import UserError, one_line
from simkit.export.markup import block, digest, embedded, packed
from simkit.export.npm import three_blocks
from simkit.export.onnx.model import count_of, graphs_of, share_constants
from simkit.export.page.derivative import check_requested, gradient_program, with_labels
from simkit.export.page.drawing import clock_of, diagnostics_of, drawing_of
from simkit.export.page.runtime import MACHINE, SCRIPT, VERSION, runtime_files
from simkit.export.programs import runtimes
from simkit.export.programs.exporting import Request, references
from simkit.export.programs.functions import PARTS, Port, Program, program_of
from simkit.export.programs.runtimes import to_onnx
from simkit.export.programs.verification import TOLERANCES, Difference, differences
from simkit.export.replacing import check_page, check_replaceable
from simkit.render.color import check_scenario
from simkit.render.style import shown_unit
from simkit.render.views import Clip
from simkit.scenario.build import build
from simkit.scenario.scenario import Scenario
from simkit.storage.files import make_folder, write_bytes

# An array with more entries has no sliders.
MOST_ENTRIES = 12
# Ratio of the ends of a range above which its scale is logarithmic.
_WIDE = 50.0
# Ratio of the end of an unbounded range to the default value.
_REACH = 10.0


def sliders_of(ports: Sequence[Port], values: Sequence[np.ndarray], live: Collection[str]) -> dict[str, Any]:
    """Return the inputs and sliders of a page's parameters as plain data.

    Args:
        ports: of the parameters.
        values: their defaults, in the same order.
        live: names of the parameters that a step or a picture depends on; the others act on the initial state only.

    Returns:
        ``inputs``, the parameters' names, shapes and defaults; ``sliders``, one for each number of small finite
        arrays; and ``without_slider``, labels of the other arrays.
    """
    inputs, sliders, without = [], [], []
    for port, value in zip(ports, values, strict=True):
        numbers = [float(number) for number in np.ravel(value)]
        inputs.append({"name": port.name, "dtype": port.dtype, "shape": list(port.shape), "default": numbers})
        label = port.name.removeprefix("params.")
        if len(numbers) > MOST_ENTRIES or not all(map(math.isfinite, numbers)):
            without.append(label)
            continue
        for index, entry in enumerate(np.ndindex(*port.shape)):
            low, high = port.bounds or (-math.inf, math.inf)
            first, last = _range(numbers[index], low, high)
            sliders.append(
                {
                    "input": port.name,
                    "index": index,
                    "label": label + (f"[{', '.join(map(str, entry))}]" if entry else ""),
                    "unit": shown_unit(port.unit),
                    "doc": port.doc,
                    "default": numbers[index],
                    "low": low if math.isfinite(low) else None,
                    "high": high if math.isfinite(high) else None,
                    "first": first,
                    "last": last,
                    "logarithmic": first > 0 and last / first > _WIDE,
                    "live": port.name in live,
                }
            )
    return {"inputs": inputs, "sliders": sliders, "without_slider": without}


def _range(default: float, low: float, high: float) -> tuple[float, float]:
    """Return the ends of a slider: finite bounds, otherwise values near the default.

    Args:
        default: initial value.
        low: lower bound, or minus infinity.
        high: upper bound, or infinity.
    """
    size = abs(default) or 1.0
    first, last = low, high
    if low == POSITIVE[0]:
        # Any positive number is allowed: begin at a tenth of the default.
        first = min(default, last) / _REACH if math.isfinite(last) else size / _REACH
    if not math.isfinite(first):
        first = -size if default <= 0 or math.isfinite(last) else -default
        first = min(first, default)
    if not math.isfinite(last):
        last = _REACH * size if first > 0 else max(2 * size, 2 * first)
    return first, max(last, default)


# In the order in which they run: each uses declarations of those before it.
SCRIPTS = (
    *("page/web/runtime.js", "page/web/simulation.js", "page/web/colors.js", "web/ticks.js", "page/web/axes.js"),
    "page/web/field.js",
    *("page/web/bodies_of_frame.js", "player/web/stage.js", "player/web/solids.js", "player/web/spheres.js"),
    *("page/web/space.js", "page/web/side.js", "page/web/chart.js", "page/web/controls.js", "page/web/optimizer.js"),
    *("page/web/worker.js", "page/web/overlay.js", "page/web/derivative.js", "page/web/main.js"),
)
# Files that pages share; the second is loaded by pages whose pictures are in space.
SHARED_RUNTIME, SHARED_THREE, SHARED_SCRIPT, SHARED_STYLE = "runtime.js", "three.js", "page.js", "page.css"
# Block of the constants that the programs of a page share; web/runtime.js names it too.
CONSTANTS = "constants"
# Kinds of drawings that are scenes of three.js.
IN_SPACE = ("bodies", "spheres", "disks")


def document(
    texts: Mapping[str, str], description: Any, blocks: Mapping[str, bytes], lesson: str = "", shared: str = ""
) -> bytes:
    """Return the page as bytes of HTML.

    Its content security policy allows only the script and the style in the file, or those in the shared folder, and no
    request of any other kind.

    Args:
        texts: plain text of the placeholders in ``page.html``: ``title``, ``summary``, ``scenario``, ``precision``,
            ``runtime_version``.
        description: plain data for the script.
        blocks: binary blocks by element identifier.
        lesson: HTML above the picture; the policy keeps scripts in it from running.
        shared: address of the folder of `shared_files`, relative to the page; empty for a page that holds them.
    """
    script, style = _script(), _file("page/web/style.css")
    # Folders of files have no origin, so 'self' means them on servers only.
    trusted = ("'self' file:",) * 2 if shared else (digest(script), digest(style))
    policy = (
        f"default-src 'none'; script-src {trusted[0]} 'wasm-unsafe-eval' blob:; style-src {trusted[1]}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    names = (SHARED_RUNTIME, *([SHARED_THREE] if is_in_space(description) else []), SHARED_SCRIPT)
    scripts = [f'<script src="{html.escape(shared)}/{name}"></script>' for name in names]
    parts = {name: html.escape(text) for name, text in {**texts, "version": __version__}.items()} | {
        "policy": policy,
        "style": _linked(shared) if shared else f"<style>{style}</style>",
        "script": "\n".join(scripts) if shared else f"<script>{script}</script>",
        "text": f'<div class="lesson">\n{lesson}\n</div>' if lesson else "",
        "description": embedded(description),
        "blocks": "\n".join(block(name, data) for name, data in blocks.items()),
    }
    # One pass, so that braces in an inserted text are not replaced again.
    return re.sub(r"\{(\w+)\}", lambda match: parts[match[1]], _file("page/web/page.html")).encode()


def is_in_space(description: Any) -> bool:
    """Return whether the picture of a page is a scene of three.js.

    Args:
        description: plain data for its script.
    """
    return description["drawing"]["kind"] in IN_SPACE


def _script() -> str:
    return '"use strict";\n(() => {\n' + "\n".join(_file(name) for name in SCRIPTS) + "\n})();\n"


def _linked(shared: str) -> str:
    return f'<link rel="stylesheet" href="{html.escape(shared)}/{SHARED_STYLE}">'


def shared_files(carried: Mapping[str, bytes], three: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that pages share, by name: libraries in scripts, the script and the style of the page.

    A page from a folder may load scripts, but no other data, from beside it.

    Args:
        carried: blocks of onnxruntime-web.
        three: blocks of three.js; empty for a page that does not need it.
    """
    libraries = {SHARED_RUNTIME: carried, **({SHARED_THREE: three} if three else {})}
    scripts = {}
    for name, data in libraries.items():
        texts = json.dumps({key: packed(content) for key, content in data.items()})
        scripts[name] = f"Object.assign((window.SIMKIT_BLOCKS ??= {{}}), {texts});\n"
    scripts |= {SHARED_SCRIPT: _script(), SHARED_STYLE: _file("page/web/style.css")}
    return {name: text.encode() for name, text in scripts.items()}


def _file(name: str) -> str:
    return (resources.files("simkit.export") / name).read_text(encoding="utf-8")


def preview_of(scenario: Scenario, simulation: Simulation) -> tuple[Simulation, Clip]:
    """Run a scenario to its end in memory, and return the simulation with the buffers that it needed, and the frames.

    Args:
        scenario: for steps, seed and drawing settings.
        simulation: built from the scenario.

    Raises:
        UserError: if the run fails, or the simulation has several members.
    """
    run, key = scenario.run, jax.random.key(scenario.run.seed)
    simulation.check_values(simulation.params, key)

    def attempt(simulation: Simulation, _: object) -> tuple:
        state, record = jax.jit(recorded(simulation, run.steps, run.every))(simulation.params, key)
        return state, record.status, (simulation, record)

    simulation, record = with_room(simulation, attempt)
    status = np.asarray(record.status)
    if status.ndim > 1:
        raise UserError(f"{scenario.name} has several members, and a page shows one simulation; leave them out")
    if failed(status[-1]):
        raise UserError(f"{scenario.name} {MESSAGES[Status(int(status[-1]))]}; a page begins with a run that succeeds")
    stored = np.asarray(record.stored)
    frames = {name: np.asarray(array)[stored] for name, array in record.observed.items()}
    diagnostics = {name: np.asarray(array)[stored] for name, array in record.diagnosed.items()}
    coordinates = {name: np.asarray(values) for name, values in simulation.coordinates.items()}
    units = {name: quantity.unit for name, quantity in simulation.quantities.items()}
    return simulation, Clip(frames, diagnostics, coordinates, scenario.title, scenario.render, units)


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
            f"{difference.output} of '{form}' differs from JAX by {difference.error:.2g} in onnxruntime; "
            f"{difference.allowed:.2g} is allowed"
            for form, differences in self.differences.items()
            for difference in differences
            if not difference.passed
        ]

    @property
    def passed(self) -> bool:
        """Whether every output differs from JAX by at most its allowed error."""
        return not self.misses


@dataclasses.dataclass(frozen=True)
class PageOptions:
    """What a page holds beside the simulation.

    Attributes:
        objective: name or expression of the objective whose gradient is shown; ``None`` takes the scenario's first.
        wrt: paths of its parameters; ``None`` for a page without derivative.
        lesson: file of HTML that is shown above the picture.
        runtime: folder with the files of onnxruntime-web, see `simkit.export.page.runtime.runtime_files`.
        shared: folder of the files that pages share, written if they are missing; ``None`` for a page that holds them.
        overwrite: replace an existing file.
    """

    objective: str | None = None
    wrt: str | Sequence[str] | None = None
    lesson: Path | None = None
    runtime: Path | None = None
    shared: Path | None = None
    overwrite: bool = False


def export_page(scenario: Scenario, file: Path, options: PageOptions) -> PageReport:
    """Write a page that computes a scenario.

    Args:
        scenario: with overrides applied.
        file: where to write.
        options: derivative, text and runtime.

    Raises:
        UserError: if the file exists, an option is wrong, the run fails, pages do not draw its view, a program has no
            ONNX form, or onnxruntime-web is not available. Nothing is written then.
    """
    check_page(file)
    check_requested(options.objective, options.wrt)
    check_replaceable(
        file, options.overwrite, is_earlier=lambda content: b'name="generator" content="simkit ' in content
    )
    check_scenario(scenario)
    lesson = "" if options.lesson is None else _text_of(options.lesson)
    files = runtime_files(options.runtime)
    carried = {"runtime-script": files[SCRIPT], "runtime-wasm": files[MACHINE]}
    with precision(scenario.run.precision):
        simulation = build(scenario)
        derivative: dict[str, Any] = {}
        programs = {}
        if options.wrt is not None:
            # First, since what is wrong with it is known before the run.
            programs["gradient"], derivative = gradient_program(scenario, simulation, options.objective, options.wrt)
        simulation, clip = preview_of(scenario, simulation)
        drawing, names = drawing_of(clip)
        if derivative:
            names = [*names, *({"position", "velocity"} & clip.frames.keys() - {*names})]
        programs |= {form: program_of(scenario, simulation, form, names=names) for form in PARTS}
        made = {form: _model(program, scenario) for form, program in programs.items()}
        description: dict[str, Any] = _description(scenario, simulation, clip, programs, made) | {"drawing": drawing}
        if derivative:
            description["derivative"] = with_labels(derivative, description["sliders"])
    texts = {
        "title": scenario.title,
        "summary": scenario.summary,
        "scenario": scenario.name,
        "precision": {"float32": "single precision", "float64": "double precision"}[scenario.run.precision],
        "runtime_version": VERSION,
    }
    constants = share_constants((model.content for model in made.values()), CONSTANTS)
    blocks = {f"model-{form}": model.content.SerializeToString() for form, model in made.items()}
    blocks[CONSTANTS] = constants
    three = three_blocks() if is_in_space(description) else {}
    if options.shared is None:
        page = document(texts, description, blocks | carried | three, lesson)
    else:
        address = Path(os.path.relpath(options.shared, file.parent)).as_posix()
        page = document(texts, description, blocks, lesson, quote(address))
        make_folder(options.shared)
        for name, content in shared_files(carried, three).items():
            write_bytes(options.shared / name, content)
    make_folder(file.parent)
    write_bytes(file, page)
    return PageReport(
        file,
        len(page),
        {form: model.nodes for form, model in made.items()},
        {form: model.differences for form, model in made.items()},
    )


def _text_of(lesson: Path) -> str:
    """Return the HTML of a lesson.

    Raises:
        UserError: if the file cannot be read.
    """
    try:
        return lesson.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{lesson} cannot be read as the HTML of a lesson ({one_line(error, 160)})") from None


@dataclasses.dataclass(frozen=True)
class _Model:
    """A program as an ONNX model, its number of nodes, names of the tensors it reads, differences from JAX."""

    content: Any
    nodes: int
    used: set[str]
    differences: list[Difference]


def _model(program: Program, scenario: Scenario) -> _Model:
    """Return the model of a program, compared with JAX at the start of the run and, for steps, at its next frame."""
    request = Request("onnx", program.form)
    tolerance = TOLERANCES[scenario.run.precision]
    model, _ = to_onnx(program, None)
    outputs = [port.name for port in program.outputs]
    run = runtimes.run_onnx(
        model.SerializeToString(),
        ([port.name for port in program.inputs], outputs),
        f"{scenario.name} ({program.form})",
    )
    differences_of_model = [
        difference
        for case in references(program, scenario, request).values()
        for difference in differences(outputs, case.outputs, run(case.inputs), tolerance)
    ]
    used = {name for graph in graphs_of(model.graph) for node in graph.node for name in node.input}
    return _Model(model, count_of(model), used, differences_of_model)


def _description(
    scenario: Scenario,
    simulation: Simulation,
    clip: Clip,
    programs: dict[str, Program],
    models: dict[str, _Model],
) -> dict[str, Any]:
    """Return the data of the page's script, without the drawing."""
    start = programs["start"]
    *ports, key = start.inputs
    *values, _ = start.start(scenario.run.seed)
    docs = {name: quantity.doc for name, quantity in simulation.quantities.items()}
    diagnostics = diagnostics_of(clip, docs)
    names = [diagnostic["name"] for diagnostic in diagnostics]
    central = [name for objective in scenario.objectives.values() for name in objective.made_of]
    central += [claim.quantity for claim in scenario.validations]
    stopping = [status for status in Status if bool(stops(np.asarray(status)))]
    return {
        "seed": scenario.run.seed,
        "draws": draws(simulation),
        "keyWords": key.shape[-1],
        "steps": scenario.run.steps,
        "steps_per_second": scenario.run.every * scenario.render.frames_per_second,
        "clock": clock_of(clip),
        "diagnostics": diagnostics,
        "main": next((name for name in central if name in names), ""),
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
