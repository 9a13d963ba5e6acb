"""Data sets of jobs, which a notebook shows with pictures, and which know the work that they are the result of."""

import dataclasses
from typing import Any

import xarray

from simkit.core.display import html_of
from simkit.scenario.scenario import Scenario


@dataclasses.dataclass(frozen=True)
class Origin:
    """The work that a data set is the result of.

    Attributes:
        report: name of the kind of report, such as ``"run"``, see `simkit.jobs.job.Job`.
        scenario: scenario with overrides applied.
        result: what the job returned: of a run or an optimization a `simkit.jobs.runs.Outcome`.
        wrt: paths of optimized or differentiated parameters.
        objective: name of the objective.
    """

    report: str
    scenario: Scenario
    result: Any
    wrt: tuple[str, ...] = ()
    objective: str = ""


class ResultDataset(xarray.Dataset):
    """Data set of a whole job, shown in a notebook with its pictures; selections of it are plain data sets."""

    __slots__ = ("_html", "_origin")

    @classmethod
    def of(cls, dataset: xarray.Dataset, origin: Origin) -> "ResultDataset":
        """Return a data set with the work that it is the result of."""
        made = cls(dataset.data_vars, coords=dataset.coords, attrs=dataset.attrs)
        made._origin, made._html = origin, None
        return made

    @property
    def origin(self) -> Origin | None:
        """The work of which this is the whole result; ``None`` for a part of it."""
        return getattr(self, "_origin", None)

    def plain(self) -> xarray.Dataset:
        """Return the data set without the work."""
        return xarray.Dataset(self.data_vars, coords=self.coords, attrs=self.attrs)

    def __reduce__(self) -> Any:
        """Return how to make the plain data set, which other processes get."""
        return xarray.Dataset.__copy__, (self.plain(),)

    def _repr_html_(self) -> str:
        """Return pictures and tables, drawn on first display, above the folded HTML of xarray."""
        if self.origin is None:
            return super()._repr_html_()
        if self._html is None:
            self._html = html_of("result", self) or ""
        whole = super()._repr_html_()
        return f"{self._html}<details><summary>arrays</summary>{whole}</details>" if self._html else whole
