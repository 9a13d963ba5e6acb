"""Data sets of runs, which a notebook displays below their animation."""

import xarray

from simkit.errors import UserError
from simkit.jobs.reporting import DISPLAYS


class RunDataset(xarray.Dataset):
    """Data set of a run, displayed in a notebook below its animation; selections of it are plain data sets."""

    __slots__ = ("_html", "_outcome")

    @classmethod
    def of(cls, dataset: xarray.Dataset, outcome: object) -> "RunDataset":
        """Return the data set with the outcome of its run, which an animation draws."""
        made = cls(dataset.data_vars, coords=dataset.coords, attrs=dataset.attrs)
        made._outcome, made._html = outcome, None
        return made

    def _repr_html_(self) -> str:
        """Return the animation, drawn on first display, above the HTML of xarray."""
        if getattr(self, "_outcome", None) is None:
            return super()._repr_html_()
        if self._html is None:
            self._html = _animation(self)
        return self._html + super()._repr_html_()


def _animation(run: RunDataset) -> str:
    try:
        return DISPLAYS["animation"](run)._repr_html_()
    except UserError:
        return ""  # frames that cannot be drawn are still data
