"""Sweeps over configurations: one sweep per configuration, in its own folder, and a joined result.

Members of one configuration have equal shapes and one compiled program; other configurations may have other arrays.
Arrays with the same axes in all configurations (diagnostics, statuses, final quantities of equal size) are joined along
the values of the configuration; arrays that differ in size stay in the folder of their configuration, without padding.
"""

import dataclasses
import itertools
import math
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from simkit.errors import UserError, one_line
from simkit.jobs.callbacks import Report, Warn
from simkit.jobs.chunk_size import most_in_one_file, result_bytes
from simkit.jobs.job import Prepared, begin, proceed
from simkit.jobs.stored_progress import StoredProgress
from simkit.jobs.sweep_results import read_summary, store_result
from simkit.jobs.sweeps import Sweep
from simkit.scenario import checks
from simkit.scenario.overrides import with_values
from simkit.storage import manifest_schema
from simkit.storage.files import DamagedFileError
from simkit.storage.run_directory import RunDirectory, UnfinishedError

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Simulation

# Every configuration is compiled separately.
MOST_CONFIGURATIONS = 10_000

_OR_NONE = manifest_schema.value_check(
    "a whole number from 1 or null", lambda v: v is None or (isinstance(v, int) and not isinstance(v, bool) and v > 0)
)
_VALUES = manifest_schema.value_check("a list of values", lambda value: isinstance(value, list) and bool(value))


@dataclasses.dataclass(frozen=True)
class ConfigSweep(Sweep):
    """A sweep over configurations, run one after another.

    Attributes:
        configs: values by ``config.KEY``; every combination is a separate sweep.
    """

    kind = "config_sweep"
    noun = "a sweep over configurations"
    files = r"sweep\.(nc|png)"
    stores = ""
    nested = (r"config_\d{4,}", "sweep")
    request_checks: ClassVar = {
        **Sweep.request_checks,
        "chunk": _OR_NONE,
        "memory": _OR_NONE,
        "configs": manifest_schema.each(_VALUES),
    }

    configs: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes along which members are arranged."""
        return (*self.configs, *super().axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each key of the configuration, then the shape of each sweep."""
        return (*(len(values) for values in self.configs.values()), *super().shape)

    @property
    def parts(self) -> list[Sweep]:
        """The sweep of every configuration, the last key varying first.

        Raises:
            UserError: if a value of the configuration is not allowed.
        """
        combinations = itertools.product(*self.configs.values())
        overrides = (dict(zip(self.configs, values, strict=True)) for values in combinations)
        scenarios = (with_values(self.scenario, values, "over {}".format) for values in overrides)
        fields: dict[str, Any] = {field.name: getattr(self, field.name) for field in dataclasses.fields(Sweep)}
        return [Sweep(**{**fields, "scenario": scenario}) for scenario in scenarios]

    def words_of(self, index: int) -> str:
        """Return a configuration in words, such as ``"config.particles = 50"``."""
        indices = np.unravel_index(index, [len(values) for values in self.configs.values()])
        shown = (
            f"{key} = {checks.show(values[int(i)])}"
            for (key, values), i in zip(self.configs.items(), indices, strict=True)
        )
        return ", ".join(shown)

    def checked(self) -> "ConfigSweep":
        """Return the job with its values as tuples.

        Raises:
            UserError: if a value is not allowed in one of the configurations.
        """
        configs = {key: self._values(key, values) for key, values in self.configs.items()}
        count = math.prod(len(values) for values in configs.values())
        if count > MOST_CONFIGURATIONS:
            raise UserError(f"{count} configurations are over {MOST_CONFIGURATIONS}, and each is compiled; give fewer")
        known = dataclasses.replace(self, configs=configs)
        over = self.over
        for index, part in enumerate(known.parts):
            over = known.naming_config(index, part.checked).over
        return dataclasses.replace(known, over=over)

    def _values(self, key: str, values: Any) -> tuple[Any, ...]:
        label, listed = f"over {one_line(key, 80)}", checks.unwrapped(values)
        if self.scenario.made is not None:
            raise UserError(f"{label}: a simulation made in Python has no configuration; make one of each")
        if not isinstance(listed, list | tuple) or not listed:
            raise UserError(f"{label} has no values; give a list of them")
        plain = tuple(checks.plain(value, label) for value in listed)
        for index, value in enumerate(plain):
            if value in plain[:index]:
                raise UserError(f"{label} lists {checks.show(value)} twice; keep one of them")
        return plain

    def naming_config[Result](self, index: int, work: Callable[[], Result]) -> Result:
        """Call a function for a configuration, which errors then name."""
        try:
            return work()
        except UnfinishedError as error:
            raise UnfinishedError(f"{self.words_of(index)}: {error.reason}", error.folder.parent) from None
        except UserError as error:
            raise UserError(f"{self.words_of(index)}: {error}") from None

    def simulation(self, *, new: bool) -> "Simulation":
        """Return the simulation of one member of the first configuration."""
        return self.naming_config(0, lambda: self.parts[0].checked().simulation(new=new))

    def fitted(self, prepared: Prepared, output: Path | None) -> "ConfigSweep":
        """Build every configuration and check that its results fit; chunk sizes are chosen when each sweep begins."""
        from simkit.engine.memory import shapes_of

        self.check_folder(output)
        first: dict[str, Any] = {}
        kept = 0
        for index, part in enumerate(self.parts):
            made = (
                prepared.simulation
                if index == 0
                else self.naming_config(index, lambda part=part: part.simulation(new=True))
            )
            kept += result_bytes(part, Prepared(made, part.program(made)))
            arrays = {n.partition(".")[2]: a for n, a in shapes_of(made)[1].items() if n.startswith("observed.")}
            axes = {name: _axes_of(made, name, array.shape) for name, array in arrays.items()}
            first = first or axes
            different = sorted(n for n in axes.keys() | first.keys() if n not in axes or axes[n] != first.get(n))
            if different and output is None and self.final_frames:
                raise UserError(
                    f"{self.words_of(index)}: '{different[0]}' has other axes than with {self.words_of(0)}; "
                    "give output= to store each with its configuration, or final_frames=False"
                )
        return dataclasses.replace(self, in_one_file=output is None or kept <= most_in_one_file(self.memory))

    def execute(
        self, prepared: Prepared, directory: RunDirectory | None, report: Report, warn: Warn
    ) -> "xarray.Dataset":
        """Run the sweep of every unfinished configuration, and join the results."""
        parts, results = self.parts, []
        for index, part in enumerate(parts):

            def report_total(fraction: float, words: str, index: int = index) -> None:
                report((index + fraction) / len(parts), f"configuration {index + 1} of {len(parts)}, {words}")

            folder = directory.path / _folder(index) if directory else None
            results.append(
                self.naming_config(index, lambda part=part, folder=folder: _result(part, folder, report_total, warn))
            )
        result = joined(results, self.configs)
        return store_result(directory, result, in_one_file=self.in_one_file) if directory else result

    def opened(self, directory: RunDirectory) -> "xarray.Dataset":
        """Return the result that stays in the chunks of all configurations.

        Raises:
            DamagedFileError: naming a missing file, or damage that is detected without reading the chunks.
        """
        summary, results = read_summary(directory), []
        for index in range(len(self.parts)):
            try:
                folder = RunDirectory.open(directory.path / _folder(index))
            except UserError as error:
                raise DamagedFileError(str(error)) from None
            results.append(Sweep.of(folder).opened(folder))
        return joined(results, self.configs).assign_attrs(failed=summary["failures"])

    def stored_progress(self, directory: RunDirectory) -> StoredProgress:
        """Return the number of stored members of all configurations, and their failures."""
        parts, found = self.parts, []
        for index in range(len(parts)):
            folder = directory.path / _folder(index)
            if (folder / "manifest.json").exists():
                opened = RunDirectory.open(folder)
                one = Sweep.of(opened).stored_progress(opened)
                failed = [f"{self.words_of(index)}: {line}" for line in one.failed]
                found.append(dataclasses.replace(one, failed=failed))
        fraction = sum(one.fraction for one in found) / len(parts)
        return StoredProgress(
            fraction,
            f"{(ended := sum(one.members for one in found))} of {self.members} members",
            [line for one in found for line in one.failed],
            [time for one in found for time in one.times],
            sum(len(one.failed) if one.failures is None else one.failures for one in found),
            ended,
        )

    def check_finished(self, directory: RunDirectory) -> None:
        """Check the files of every configuration."""
        for index in range(len(self.parts)):
            try:
                opened = RunDirectory.open(directory.path / _folder(index))
                Sweep.of(opened).check_finished(opened)
                Sweep.read(opened)
            except UserError as error:
                raise DamagedFileError(str(error)) from None


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
    job, free = Sweep.of(opened), ("scenario", "chunk", "memory", "blocks", "executor")
    names = [field.name for field in dataclasses.fields(Sweep) if field.name not in free]
    if job.scenario.config != part.scenario.config or any(getattr(job, n) != getattr(part, n) for n in names):
        raise UserError(f"{folder} holds another sweep; restore the right folder, or remove it")
    return proceed(dataclasses.replace(job, executor=part.executor), opened, warn, report)


def _axes_of(simulation: "Simulation", name: str, shape: Sequence[int]) -> Any:
    """Return shape, names and coordinates of an array's axes; equal for arrays that can be joined."""
    names = simulation.dimensions.get(name, ())
    known = {
        axis: np.asarray(simulation.coordinates[axis]).tolist() for axis in names if axis in simulation.coordinates
    }
    return tuple(shape), tuple(names), known


def joined(results: "Sequence[xarray.Dataset]", configs: Mapping[str, Sequence[Any]]) -> "xarray.Dataset":
    """Return the results of all configurations, joined along the values of the configuration.

    Args:
        results: result of every configuration, the last key varying first.
        configs: values by key.

    Returns:
        A data set whose first axes are the keys; its attribute ``apart`` names the arrays that could not be joined.
    """
    import xarray

    lengths, first = tuple(len(values) for values in configs.values()), results[0]

    def alike(name: str) -> bool:
        if not all(name in result and result[name].sizes == first[name].sizes for result in results):
            return False
        return all(
            result[name].coords[axis].equals(first[name].coords[axis]) if axis in first[name].coords else True
            for result in results
            for axis in first[name].dims
        )

    names = list(dict.fromkeys(str(name) for result in results for name in result.data_vars))
    shared = [name for name in names if name in first and alike(name)]
    variables = {}
    for name in shared:
        variables[name] = _stacked([result[name] for result in results], dict(zip(configs, lengths, strict=True)))
    used = {axis for variable in variables.values() for axis in variable.dims}
    coordinates = {key: np.asarray(_coordinate(values)) for key, values in configs.items()}
    coordinates |= {name: array.variable for name, array in first.coords.items() if set(array.dims) <= used}
    attributes = {
        key: value for key, value in first.attrs.items() if all(_same(r.attrs.get(key), value) for r in results)
    }
    attributes |= {count: sum(int(result.attrs[count]) for result in results) for count in ("members", "failed")}
    if apart := [name for name in names if name not in shared]:
        attributes["apart"] = ", ".join(apart)
    return xarray.Dataset(variables, coords=coordinates, attrs=attributes)


def _stacked(arrays: "Sequence[xarray.DataArray]", configs: Mapping[str, int]) -> "xarray.Variable":
    """Return arrays of all configurations as one variable, on disk if they are."""
    import xarray

    first, dims = arrays[0], (*configs, *map(str, arrays[0].dims))
    if "preferred_chunks" in first.encoding:
        from simkit.jobs.lazy_results import stacked_variable

        return stacked_variable(arrays, configs)
    values = np.stack([array.values for array in arrays])
    return xarray.Variable(dims, values.reshape(*configs.values(), *first.shape), first.attrs)


def _coordinate(values: Sequence[Any]) -> list[Any]:
    is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return list(values) if is_number else [value if isinstance(value, str) else checks.show(value) for value in values]


def _same(a: Any, b: Any) -> bool:
    return np.array_equal(np.asarray(a), np.asarray(b))
