"""Members of a sweep: points from grids, lists, samples and tables of parameters, each with several seeds."""

import dataclasses
import itertools
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import jax
import numpy as np

from simkit.core.arguments import check_distinct, check_type
from simkit.core.dependence import draws
from simkit.core.files import read_text
from simkit.core.parameter import POSITIVE
from simkit.core.settings import unwrapped
from simkit.core.settings.tables import number_of, rows_of
from simkit.core.simulation import Simulation
from simkit.engine.driver import Plan, plan_of
from simkit.errors import UserError, one_line, untaken
from simkit.scenario import checks
from simkit.scenario.overrides import single_parameter
from simkit.scenario.scenario import ObjectiveSettings, Scenario
from simkit.storage.files import open_regular

type Axes = Mapping[str, Sequence[float]]
POINT = "point"
"""Name of the axis of zipped, sampled or tabulated points."""
# Maximum number of members checked before a sweep, at a few milliseconds each.
CHECKED = 1000
# Maximum number of values of all points, which a manifest lists.
MOST_NUMBERS = 1_000_000


@dataclasses.dataclass(frozen=True)
class Members:
    """The members of a sweep.

    Attributes:
        failures: names of the statuses in which a member failed, in lower case; empty for those of a run.
        scenario: scenario with overrides applied.
        over: values by parameter.
        seeds: number of random seeds per point, consecutive from the scenario's seed.
        chunk: members per program: the size of a chunk, or the number of lanes of a converging simulation; ``None``
            until chosen by `fitted`.
        final_frames: whether the last frame of every member is stored beside its diagnostics.
        memory: memory limit of a program in bytes; ``None`` takes a fraction of the free memory.
        zip: whether values at the same index of all lists make a point; otherwise every combination does.
        origin: method or file that gave the points, in words, of a sample or a table.
        blocks: number of ranges into which converging members are divided, each with its own lanes; chosen by
            `fitted`.
        in_one_file: whether the result is small enough for one file in memory; otherwise it stays in chunks, which are
            read when they are indexed; chosen by `fitted`.
    """

    failures: ClassVar[tuple[str, ...]] = ()

    scenario: Scenario
    over: Axes
    seeds: int = 1
    chunk: int | None = None
    final_frames: bool = True
    memory: int | None = None
    zip: bool = False
    origin: str = ""
    blocks: int = 1
    in_one_file: bool = True

    @property
    def plan(self) -> Plan:
        """Steps and frames of a member's run."""
        return plan_of(self.scenario)

    @property
    def objectives(self) -> Mapping[str, ObjectiveSettings]:
        """Objectives by name, of which the result holds a value per member."""
        return self.scenario.objectives

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes: the parameters, or ``point`` for zipped values; then ``seed``."""
        return (POINT, "seed") if self.zip else (*self.over, "seed")

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of points along each of their axes, then the number of seeds."""
        lengths = [len(values) for values in self.over.values()]
        return (*(lengths[:1] if self.zip else lengths), self.seeds)

    @property
    def members(self) -> int:
        """Number of members."""
        return math.prod(self.shape)

    @property
    def coordinates(self) -> dict[str, Any]:
        """Coordinates of the points, for a data set."""
        values = {name: (POINT if self.zip else name, np.asarray(array)) for name, array in self.over.items()}
        number = {POINT: np.arange(self.shape[0], dtype=np.int32)} if self.zip else {}
        return number | values

    def chunk_length(self, *, converges: bool) -> int:
        """Return the number of members in each chunk but the last; for converging members, a chunk is a block."""
        return -(-self.members // self.blocks) if converges else self.chunk or self.members

    def points(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Return the values at points, given by flat index, int (n,), the last axis varying first."""
        where = np.unravel_index(numbers, self.shape[:-1]) if self.over else ()
        where = where * len(self.over) if self.zip else where
        return {name: np.asarray(self.over[name])[i] for name, i in zip(self.over, where, strict=True)}

    def values_of(self, members: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the swept values and the seeds of members, given by index, int (n,)."""
        return self.points(members // self.seeds), self.scenario.run.seed + members % self.seeds

    def checked_points(self) -> dict[str, tuple[float, ...]]:
        """Return the swept values as tuples of numbers.

        Raises:
            UserError: if a name is unknown, or a value is not a number or is out of its bounds.
        """
        over = {name: self._checked_values(name, values) for name, values in self.over.items()}
        if self.zip and len({len(values) for values in over.values()}) != 1:
            lengths = ", ".join(f"{name} {len(values)}" for name, values in over.items())
            raise UserError(
                f"zipped parameters need equal numbers of values, at least one; there are {lengths or 'none'}"
            )
        if (numbers := sum(map(len, over.values()))) > MOST_NUMBERS:
            raise UserError(f"over lists {numbers} numbers; give at most {MOST_NUMBERS}")
        return over

    def _checked_values(self, name: str, values: Sequence[float]) -> tuple[float, ...]:
        single_parameter(self.scenario, name, f"'{name}'")
        label = f"over {name}"
        try:
            listed = np.asarray(unwrapped(values, label)).tolist()
        except ValueError:  # rows of different lengths
            listed = list(values)
        check_listed(listed, label, may_repeat=self.zip)
        bounds, numbers = self.scenario.parameters[name].bounds, []
        for index, value in enumerate(listed):
            where = f"{label}, point {index}" if self.zip else label
            numbers.append(checks.number(value, where))
            checks.inside(numbers[-1], where, bounds)
        return tuple(numbers)

    def extreme_points(self) -> Iterator[int]:
        """Return the flat indices of the points with the least and the largest value of each parameter."""
        ends = [sorted({int(np.argmin(values)), int(np.argmax(values))}) for values in self.over.values()]
        if self.zip:
            return iter(sorted(set(itertools.chain(*ends))))
        corners = itertools.product(*ends)
        return (int(np.ravel_multi_index(index, self.shape[:-1])) if index else 0 for index in corners)


def check_listed(values: Any, label: str, *, may_repeat: bool = False) -> None:
    """Refuse values to sweep that are no list, none at all, or equal to one another unless they ``may_repeat``.

    Raises:
        UserError: with the label.
    """
    check_type(label, values, "a list of values", list, tuple)
    if not values:
        raise UserError(f"{label} has no values; give a list of them")
    if not may_repeat:
        check_distinct(label, map(str, values))


def check_axes(simulation: "Simulation", over: Axes) -> None:
    """Refuse a parameter whose name is that of another axis of the result.

    Raises:
        UserError: naming the parameter.
    """
    reserved = {"seed", "frame", "status", POINT, *simulation.coordinates}
    reserved |= {axis for axes in simulation.dimensions.values() for axis in axes}
    for name in over:
        untaken(name, reserved, f"over '{name}'")


def check_counts(
    scenario: Scenario, seeds: int, chunk: int | None = None, memory: int | None = None, least: int = 1
) -> None:
    """Check the numbers of seeds per point, at ``least`` one, members per chunk and bytes of memory.

    Raises:
        UserError: naming the number and the allowed values.
    """
    checks.integer(seeds, "seeds", least, 2**31)
    for name, count, most in (("chunk", chunk, 2**31), ("memory", memory, 2**60)):
        if count is not None:
            checks.integer(count, name, 1, most)
    if scenario.run.seed + seeds - 1 > checks.MAX_SEED:
        raise UserError(
            f"{seeds} seeds from seed = {scenario.run.seed} go past {checks.MAX_SEED}; begin with a smaller seed"
        )


def check_extremes(simulation: "Simulation", members: Members) -> None:
    """Run the simulation's check on the extreme members, those with the least or largest value of each parameter.

    If the initial state depends on the seed, they are checked with every seed, `CHECKED` members at most. Checks run on
    the host, one member after another; a failure of other members is reported by their status.

    Raises:
        UserError: naming the member by its index and parameters.
    """
    if simulation.check is None and not simulation.parameters:
        return
    first, steps = members.scenario.run.seed, None if members.scenario.run.stop else members.scenario.run.steps
    seeds = range(first, first + members.seeds if draws(simulation) else first + 1)
    # All extreme points with the first seed, then with the next. (`itertools.product` would store all seeds.)
    extremes = ((seed, point) for seed in seeds for point in members.extreme_points())
    for seed, point in itertools.islice(extremes, CHECKED):
        chosen = {name: float(value) for name, value in members.points(np.asarray(point)).items()}
        try:
            simulation.check_values(simulation.with_params(chosen).params, jax.random.key(seed), steps)
        except UserError as error:
            words = named(point * members.seeds + seed - first, chosen | {"seed": seed})
            raise error.within("", f"{words}: ", 200) from None


def named(index: int, values: Mapping[str, float | str]) -> str:
    """Return the description of a member of a sweep, by its index, its swept values and its seed."""
    words = (f"{name} = {v if isinstance(v, str) else f'{v:g}'}" for name, v in values.items())
    return f"member {index} ({', '.join(words)})"


METHODS = ("sobol", "latin_hypercube")
type Ranges = Mapping[str, Sequence[Any]]
"""``{parameter: (low, high) or (low, high, "log")}``."""


def sampled(scenario: Scenario, ranges: Ranges, method: str, count: int) -> tuple[dict[str, tuple[float, ...]], str]:
    """Return points that fill ranges of parameters evenly, equal for equal seeds of the scenario.

    A Sobol' sequence is scrambled (Owen, J. Complexity 14, 466, 1998; here by a random linear matrix and a digital
    shift, Matousek, J. Complexity 14, 527, 1998) and balanced where the count is a power of 2; a Latin hypercube
    (McKay, Beckman and Conover, Technometrics 21, 239, 1979) has one point in each of ``count`` intervals of every
    parameter. Both by `scipy.stats.qmc`.

    Args:
        scenario: scenario with the parameters and the seed of the scrambling.
        ranges: ends by parameter; linear, or with ``"log"`` evenly in the logarithm.
        method: one of `METHODS`.
        count: number of points.

    Returns:
        Values by parameter, ``count`` of each, and the method in words.

    Raises:
        UserError: if a name, an end, the method or the count is wrong.
    """
    checks.choice(method, "sample", METHODS)
    count = checks.integer(unwrapped(count, "members"), "members", 1, MOST_NUMBERS)
    if not isinstance(ranges, Mapping) or not ranges:
        raise UserError("a sample needs a range of at least one parameter, {name: (low, high)}")
    ends = {name: _ends(scenario, name, interval) for name, interval in ranges.items()}
    if method == "sobol" and count & (count - 1):
        below = 2 ** (count.bit_length() - 1)
        warnings.warn(
            f"a Sobol' sequence is balanced for powers of 2, and members = {count} is not one; "
            f"{below} and {2 * below} are",
            stacklevel=2,
        )
    unit = _unit_points(method, len(ends), count, scenario.run.seed)
    values = {name: tuple(_scaled(unit[:, i], *end).tolist()) for i, (name, end) in enumerate(ends.items())}
    words = "Sobol' sequence" if method == "sobol" else "Latin hypercube"
    return values, f"{words} of {count} points, scrambled with seed {scenario.run.seed}"


def _unit_points(method: str, dimensions: int, count: int, seed: int) -> np.ndarray:
    from scipy.stats import qmc

    random = np.random.default_rng(seed)
    if method == "latin_hypercube":
        return qmc.LatinHypercube(dimensions, rng=random).random(count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about counts that are not powers of 2, given above
        return qmc.Sobol(dimensions, rng=random).random(count)


def _scaled(unit: np.ndarray, low: float, high: float, is_log: bool) -> np.ndarray:
    inner = low * np.exp(unit * (math.log(high) - math.log(low))) if is_log else low + unit * (high - low)
    # Rounding must not move a value past the ends, which may be the bounds.
    return np.clip(inner, low, high)


def _ends(scenario: Scenario, name: str, interval: Sequence[Any]) -> tuple[float, float, bool]:
    """Return ``(low, high, is_log)`` of the range of a parameter."""
    single_parameter(scenario, name, f"'{name}'")
    label = f"over {name}"
    entries = unwrapped(interval, label)
    is_log = isinstance(entries, list | tuple) and len(entries) == 3 and entries[2] == "log"
    if not isinstance(entries, list | tuple) or (len(entries) != 2 and not is_log):
        raise UserError(f'{label} is not a range to sample; write (low, high) or (low, high, "log")')
    low, high = checks.interval(entries[:2], label)
    checks.inside((low, high), label, scenario.parameters[name].bounds)
    if is_log:
        checks.number(low, f"{label}, with 'log': the lower end", POSITIVE)
    return low, high, is_log


_LARGEST = 64 * 2**20


def tabulated(scenario: Scenario, file: Path | str) -> tuple[dict[str, tuple[float, ...]], str]:
    """Read the points of a table, one per row.

    Args:
        scenario: scenario with the parameters.
        file: ``.csv`` with a header (`rows_of`), or ``.parquet`` (if ``pyarrow`` is installed). Every column is
            named after a parameter and holds numbers.

    Returns:
        Values by parameter, one per row, and the file's name.

    Raises:
        UserError: naming the file, row and column of the mistake. A row of a CSV file is named by its line.
    """
    path = Path(file).expanduser() if isinstance(file, str | Path) else Path()
    readers = {".csv": _read_csv, ".parquet": _read_parquet}
    if path.suffix.lower() not in readers:
        raise UserError(f"table = {checks.show(file)} is neither .csv nor .parquet; give a file of one of these kinds")
    label = path.name
    try:
        header, rows = readers[path.suffix.lower()](path)
    except UserError:
        raise
    except Exception as error:  # csv and pyarrow raise many types of errors on malformed bytes
        raise UserError(f"table {label} cannot be read: {one_line(error, 80)}; correct it") from None
    for name in header:
        single_parameter(scenario, name, f"{label}: column '{one_line(name, 60)}'")
    check_distinct(f"{label}: header", header)
    columns: dict[str, list[float]] = {name: [] for name in header}
    for row, cells in rows:
        if len(cells) != len(header):
            raise UserError(f"{label}: row {row} has {len(cells)} cells, and the header {len(header)}; give as many")
        for name, cell in zip(header, cells, strict=True):
            where = f"{label}: row {row}, column '{name}'"
            number = number_of(cell) if isinstance(cell, str) else None
            columns[name].append(checks.number(cell if number is None else number, where))
            checks.inside(columns[name][-1], where, scenario.parameters[name].bounds)
    if not rows:
        raise UserError(f"{label} has no rows; name parameters in its first line and give values below them")
    return {name: tuple(column) for name, column in columns.items()}, f"table {label}"


type _Table = tuple[list[str], Sequence[tuple[int, Sequence[Any]]]]
"""Names of the columns, and the rows with their numbers."""


def _read_csv(path: Path) -> _Table:
    return rows_of(read_text(path, "table", _LARGEST, "for a table"), f"table {path.name}")


def _read_parquet(path: Path) -> _Table:
    from pyarrow import parquet

    with open_regular(path, "rb") as opened:
        file = parquet.ParquetFile(opened)
        header = [str(name) for name in file.schema_arrow.names]
        if file.metadata.num_rows * len(header) > MOST_NUMBERS:
            raise ValueError(f"it has over {MOST_NUMBERS} numbers")
        columns = [column.to_pylist() for column in file.read().columns]
    rows = ([math.nan if cell is None else cell for cell in row] for row in zip(*columns, strict=True))
    return header, list(enumerate(rows, 1))
