"""Sweeps over configurations: a loop over sweeps, one per configuration in its own folder, and a joined result.

Members of one configuration have equal shapes and one compiled program; other configurations may have other arrays.
Arrays with the same axes in all configurations (diagnostics, statuses, final quantities of equal size) are joined along
the values of the configuration; arrays that differ in size stay in the folder of their configuration, without padding.
"""

import contextlib
import dataclasses
import itertools
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xarray

from simkit.core.settings import unwrapped
from simkit.core.simulation import Simulation
from simkit.engine.driver import Program
from simkit.engine.memory import shapes_of
from simkit.errors import UserError, argument, one_line
from simkit.jobs.chunk_size import Sizes, most_in_one_file
from simkit.jobs.job import Prepared, StoredProgress, begin, proceed
from simkit.jobs.points import check_listed
from simkit.jobs.reporting import Report, Warn
from simkit.jobs.sweep_datasets import stacked_variable
from simkit.jobs.sweep_results import read_summary, store_result
from simkit.jobs.sweeps import Sweep, SweepJob
from simkit.scenario import checks
from simkit.scenario.overrides import with_values
from simkit.storage import manifest
from simkit.storage.files import DamagedFileError
from simkit.storage.run_directory import RunDirectory, UnfinishedError

_OR_NONE = manifest.value_check(
    "a whole number from 1 or null", lambda v: v is None or (isinstance(v, int) and not isinstance(v, bool) and v > 0)
)
_VALUES = manifest.value_check("a list of values", lambda value: isinstance(value, list) and bool(value))


@dataclasses.dataclass(frozen=True)
class ConfigSweep(SweepJob):
    """A loop over the sweeps of several configurations.

    Attributes:
        configs: values by ``config.KEY``; every combination is a separate sweep.
    """

    kind = "config_sweep"
    noun = "a sweep over configurations"
    files = r"sweep\.(nc|png)"
    nested = (r"config_\d{4,}", "sweep")
    request_checks: ClassVar = {
        **SweepJob.request_checks,
        "chunk": _OR_NONE,
        "memory": _OR_NONE,
        "configs": manifest.each(_VALUES),
    }

    configs: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)

    @property
    def combinations(self) -> list[dict[str, Any]]:
        """Values by key of every configuration, the last key varying first."""
        return [dict(zip(self.configs, values, strict=True)) for values in itertools.product(*self.configs.values())]

    @property
    def parts(self) -> list[Sweep]:
        """The sweep of every configuration."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(SweepJob)}
        scenarios = (with_values(self.scenario, values, "over {}".format) for values in self.combinations)
        return [Sweep(**{**fields, "scenario": scenario}) for scenario in scenarios]

    @property
    def named_parts(self) -> list[tuple[str, Sweep]]:
        """The words that name every configuration, such as ``"config.particles = 50"``, and its sweep."""
        words = (", ".join(f"{key} = {checks.show(v)}" for key, v in values.items()) for values in self.combinations)
        return list(zip(words, self.parts, strict=True))

    def checked(self) -> "ConfigSweep":
        """Return the job with its values as tuples."""
        configs = {key: self._values(key, values) for key, values in self.configs.items()}
        job, over = dataclasses.replace(self, configs=configs), self.over
        for words, part in job.named_parts:
            with _named(words):
                over = part.checked().over
        return dataclasses.replace(job, over=over)

    def _values(self, key: str, values: Any) -> tuple[Any, ...]:
        label = f"over {one_line(key, 80)}"
        listed = unwrapped(list(values) if isinstance(values, range) else values, label)
        if self.scenario.made is not None:
            raise UserError(f"{label}: a simulation made in Python has no configuration; make one of each")
        check_listed(listed, label)
        return tuple(checks.plain(value, label) for value in listed)

    def simulation(self, *, new: bool) -> "Simulation":
        """Return the simulation of one member of the first configuration."""
        words, part = self.named_parts[0]
        with _named(words):
            return part.checked().simulation(new=new)

    def program(self, simulation: "Simulation") -> "Program":
        """Return the program of a chunk of the first configuration."""
        return self.parts[0].program(simulation)

    def bytes_at_once(self, prepared: Prepared) -> float:
        """Return the bytes of the states of a chunk of the largest configuration."""
        made = [(part, part.simulation(new=False)) for part in self.parts]
        return max(part.bytes_at_once(Prepared(each, prepared.program)) for part, each in made)

    def fitted(self, prepared: Prepared, output: Path | None) -> "ConfigSweep":
        """Build every configuration and check that its results fit; chunk sizes are chosen when each sweep begins."""
        self.check_folder(output)
        first, results = dict[str, Any](), 0
        for index, (words, part) in enumerate(named := self.named_parts):
            with _named(words):
                made = part.simulation(new=True) if index else prepared.simulation
            results += Sizes(part, Prepared(made, part.program(made))).results
            axes = _axes_of(made)
            first = first or axes
            different = sorted(n for n in axes.keys() | first.keys() if n not in axes or axes[n] != first.get(n))
            if different and output is None and self.final_frames:
                raise UserError(
                    f"{words}: '{different[0]}' has other axes than with {named[0][0]}; "
                    f"give {argument('output')} to store each with its configuration, or "
                    f"{argument('final_frames', 'False')}"
                )
        return dataclasses.replace(self, in_one_file=output is None or results <= most_in_one_file(self.memory))

    def execute(
        self, prepared: Prepared, directory: RunDirectory | None, report: Report, warn: Warn
    ) -> "xarray.Dataset":
        """Run the sweep of every unfinished configuration, and join the results."""
        results, count = list[xarray.Dataset](), len(self.parts)
        for index, (words, part) in enumerate(self.named_parts):

            def report_total(fraction: float, words: str, index: int = index) -> None:
                report((index + fraction) / count, f"configuration {index + 1} of {count}, {words}")

            folder = directory.path / _folder(index) if directory else None
            with _named(words):
                results.append(_result(part, folder, report_total, warn))
        result = joined(results, self.configs)
        return store_result(directory, result, in_one_file=self.in_one_file) if directory else result

    def opened(self, directory: RunDirectory) -> "xarray.Dataset":
        """Return the result that stays in the chunks of all configurations."""
        summary = read_summary(directory)
        results = [Sweep.of(folder).opened(folder) for folder in self._folders(directory)]
        return joined(results, self.configs).assign_attrs(failed=summary["failures"])

    def stored_progress(self, directory: RunDirectory) -> StoredProgress:
        """Return the number of stored members of all configurations, and their failures."""
        parts, count = list[StoredProgress](), len(self.combinations)
        for index, (words, _) in enumerate(self.named_parts):
            folder = directory.path / _folder(index)
            if (folder / "manifest.json").exists():
                opened = RunDirectory.open(folder)
                part = Sweep.of(opened).stored_progress(opened)
                parts.append(dataclasses.replace(part, failed=[f"{words}: {line}" for line in part.failed]))
        ended = sum(part.members for part in parts)
        return StoredProgress(
            sum(part.fraction for part in parts) / count,
            f"{ended} of {self.members * count} members",
            [line for part in parts for line in part.failed],
            [time for part in parts for time in part.times],
            sum(part.failures or 0 for part in parts),
            ended,
        )

    def check_finished(self, directory: RunDirectory) -> None:
        """Check the files of every configuration."""
        for folder in self._folders(directory):
            try:
                Sweep.of(folder).check_finished(folder)
                Sweep.read(folder)
            except UserError as error:
                raise DamagedFileError(str(error)) from None

    def _folders(self, directory: RunDirectory) -> Iterator[RunDirectory]:
        """Yield the run directories of all configurations.

        Raises:
            DamagedFileError: naming a missing or damaged one.
        """
        for index in range(len(self.combinations)):
            try:
                opened = RunDirectory.open(directory.path / _folder(index))
            except UserError as error:
                raise DamagedFileError(str(error)) from None
            yield opened


@contextlib.contextmanager
def _named(words: str) -> Iterator[None]:
    """Name a configuration in errors."""
    try:
        yield
    except UnfinishedError as error:
        raise UnfinishedError(f"{words}: {error.reason}", error.folder.parent) from None
    except UserError as error:
        raise error.within("", f"{words}: ") from None


def _folder(index: int) -> str:
    return f"config_{index:04d}"


def _result(part: Sweep, folder: Path | None, report: Report, warn: Warn) -> "xarray.Dataset":
    """Return the result of one configuration, resumed from its folder if that exists.

    Raises:
        UserError: if the folder holds another sweep.
    """
    if folder is None or not (folder / "manifest.json").exists():
        if folder:
            # Left by a process that was killed while it created the folder of a configuration.
            for leftover in folder.parent.glob(f".{folder.name}.*"):
                if re.fullmatch(r"\.config_\d{4,}\.\d+\.(tmp|old)", leftover.name) and not leftover.is_symlink():
                    shutil.rmtree(leftover, ignore_errors=True)
        return begin(part, folder, report=report)
    opened = RunDirectory.open(folder)
    job = dataclasses.replace(Sweep.of(opened), executor=part.executor)
    chosen = {name: getattr(part, name) for name in ("scenario", "chunk", "memory", "blocks")}
    if job.scenario.config != part.scenario.config or dataclasses.replace(job, **chosen) != part:
        raise UserError(f"{folder} holds another sweep; restore the right folder, or remove it")
    return proceed(job, opened, warn, report)


def _axes_of(simulation: "Simulation") -> dict[str, Any]:
    """Return shape, names and coordinates of the axes of each observed array; equal for arrays that can be joined."""
    coordinates = {name: np.asarray(values).tolist() for name, values in simulation.coordinates.items()}
    axes = {}
    for key, array in shapes_of(simulation)[1].items():
        group, _, name = key.partition(".")
        if group == "observed":
            dims = simulation.dimensions.get(name, ())
            axes[name] = tuple(array.shape), tuple(dims), {n: coordinates[n] for n in dims if n in coordinates}
    return axes


def joined(results: "Sequence[xarray.Dataset]", configs: Mapping[str, Sequence[Any]]) -> "xarray.Dataset":
    """Return the results of all configurations, joined along the values of the configuration.

    Args:
        results: result of every configuration, the last key varying first.
        configs: values by key.

    Returns:
        A data set whose first axes are the keys; its attribute ``apart`` names the arrays that could not be joined.
    """
    lengths, first = {key: len(values) for key, values in configs.items()}, results[0]

    def alike(name: str) -> bool:
        try:
            xarray.align(*(result[name] for result in results), join="exact", copy=False)
        except (KeyError, ValueError):  # missing, or of other axes
            return False
        return all(result[name].dims == first[name].dims for result in results)

    names = list(dict.fromkeys(str(name) for result in results for name in result.data_vars))
    shared = [name for name in names if alike(name)]
    variables = {name: stacked_variable([result[name] for result in results], lengths) for name in shared}
    axes = {axis for variable in variables.values() for axis in variable.dims}
    coordinates = {key: np.asarray(_coordinate(values)) for key, values in configs.items()}
    coordinates |= {name: array.variable for name, array in first.coords.items() if set(array.dims) <= axes}
    # Attributes are joined by xarray: those that differ are dropped.
    same = xarray.merge([xarray.Dataset(attrs=result.attrs) for result in results], combine_attrs="drop_conflicts")
    totals = {count: sum(int(result.attrs[count]) for result in results) for count in ("members", "failed")}
    apart = {"apart": ", ".join(name for name in names if name not in shared)}
    attributes = same.attrs | totals | (apart if apart["apart"] else {})
    result = xarray.Dataset(variables, coords=coordinates, attrs=attributes)
    return result if "preferred_chunks" in first["status"].encoding else result.load()


def _coordinate(values: Sequence[Any]) -> list[Any]:
    is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return list(values) if is_number else [value if isinstance(value, str) else checks.show(value) for value in values]
