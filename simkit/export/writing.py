"""Functions that write programs, pages and data files, and check what they wrote."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.export import data_files
from simkit.export.page.exporting import PageOptions, PageReport, export_page
from simkit.export.programs import verification
from simkit.export.programs.exporting import Request, export_program
from simkit.export.programs.verification import Report
from simkit.export.targets.operators import read_operators
from simkit.scenario.made_in_python import Source, load

if TYPE_CHECKING:
    import xarray


def program(
    scenario: Source,
    folder: Path | str,
    *,
    to: str = "stablehlo",
    what: str = "step",
    batch: int | str | None = None,
    objective: str | None = None,
    tolerance: float | None = None,
    ops: Path | str | None = None,
    overwrite: bool = False,
    **values: Any,
) -> Report:
    """Write a function of a simulation for other runtimes, run what was written, and compare it with JAX.

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a `Simulation` (then with ``steps=``).
        folder: where to write.
        to: ``"stablehlo"``, ``"onnx"`` or ``"all"``.
        what: ``"step"``, ``"segment"``, ``"trajectory"``, ``"gradient"``, ``"final"``, ``"start"``, ``"advance"`` or
            ``"show"``, see `simkit.export.programs.functions.FORMS`.
        batch: size of a leading axis of every array; ``"symbolic"`` for any size.
        objective: name of the objective to differentiate; ``None`` takes the scenario's first.
        tolerance: largest difference relative to the scale of an output; ``None`` takes 1e-3 in single and 1e-8 in
            double precision, see `simkit.export.programs.verification`.
        ops: a TOML file with the ONNX operators that the target has, see `simkit.export.targets.operators`.
        overwrite: replace an earlier program in the folder.
        **values: parameters, config or run settings.

    Returns:
        The differences of each runtime from JAX; ``passed`` is whether all are within their limits.

    Raises:
        UserError: if an argument is wrong, the folder exists, or a primitive has no form in the target.

    Example:
        >>> report = simkit.export.program("projectile", "programs/throw", what="step", overwrite=True)
        >>> report.passed
        True
    """
    operators = None if ops is None else read_operators(Path(ops))
    request = Request(to, what, batch, objective, tolerance, operators)
    return export_program(load(scenario, values), Path(folder), request, overwrite)


def web_page(
    scenario: Source,
    file: Path | str,
    *,
    objective: str | None = None,
    wrt: str | Sequence[str] | None = None,
    lesson: Path | str | None = None,
    runtime: Path | str | None = None,
    shared: Path | str | None = None,
    overwrite: bool = False,
    **values: Any,
) -> PageReport:
    """Write one HTML file that computes a simulation in a browser, with sliders for its parameters, without network.

    The page holds three ONNX models (initial state, one step, arrays of a frame) and onnxruntime-web to run them.

    Args:
        scenario: as for `program`; it is run to its end, for the limits of colors and the extent of the motion.
        file: where to write, ``*.html``.
        objective: name or expression of the objective that the page differentiates and improves; ``None`` takes the
            scenario's first.
        wrt: paths of the parameters of its gradient; ``None`` for a page without derivative.
        lesson: file of HTML that is shown above the picture; scripts in it do not run.
        runtime: folder with the files of onnxruntime-web 1.30.0; ``None`` takes the one that the environment variable
            ``SIMKIT_PAGE_RUNTIME`` names, or npm's package.
        shared: folder of the runtime that several pages share, written if it is missing; ``None`` for a page that holds
            all in one file.
        overwrite: replace an existing file.
        **values: parameters, config or run settings.

    Returns:
        The differences of the page's programs from JAX.

    Raises:
        UserError: if an argument is wrong, the file exists, the run fails, or a primitive has no ONNX form.

    Example:
        >>> report = simkit.export.web_page("projectile", "throw.html", overwrite=True, steps=20)
        >>> report.passed
        True
    """
    text, own, common = (None if path is None else Path(path) for path in (lesson, runtime, shared))
    options = PageOptions(objective, wrt, text, own, common, overwrite)
    return export_page(load(scenario, values), Path(file), options)


def verify(folder: Path | str) -> Report:
    """Run the programs of a folder written by `program`, and compare them with its reference.

    Args:
        folder: may come from an untrusted source: none of its code is run, and nothing is unpickled.

    Raises:
        UserError: if it is not such a folder, or is damaged.

    Example:
        >>> _ = simkit.export.program("projectile", "programs/throw", what="step", overwrite=True)
        >>> simkit.export.verify("programs/throw").passed
        True
    """
    return verification.verify(Path(folder))


def data_file(result: "xarray.Dataset", to: str, path: Path | str, *, overwrite: bool = False) -> Path:
    """Write a result as NetCDF, Zarr, a table or VTK files, and return the path; see `simkit.export.data_files`.

    Args:
        result: of a run, a sweep or an optimization.
        to: ``"netcdf"``, ``"zarr"``, ``"csv"``, ``"parquet"`` or ``"vtk"``.
        path: where to write.
        overwrite: replace an earlier file or folder of this format.

    Raises:
        UserError: if the format is unknown, a package is missing, or the path exists or cannot be written.

    Example:
        >>> run = simkit.run("projectile", steps=20, every=10)
        >>> table = simkit.export.data_file(run, "csv", "throw.csv", overwrite=True)
        >>> [line.split(",")[0] for line in table.read_text().splitlines()]
        ['time', '0.0', '0.1', '0.2']
    """
    return data_files.data_file(result, to, path, overwrite)
