"""Data set of a run, displayed in a notebook below the animation of the run."""

import xarray


class RunDataset(xarray.Dataset):
    """The data set of a run, which a notebook displays below its animation; what is taken out of it is a plain one."""

    __slots__ = ("_html", "_outcome")

    @classmethod
    def of(cls, dataset: xarray.Dataset, outcome: object) -> "RunDataset":
        """Return the same data set, with the outcome of the run that it came from, which `simkit.animate` draws."""
        made = cls(dataset.data_vars, coords=dataset.coords, attrs=dataset.attrs)
        made._outcome, made._html = outcome, None
        return made

    def _repr_html_(self) -> str:
        """Return the animation, drawn when it is first displayed, above what xarray shows."""
        if getattr(self, "_outcome", None) is None:
            return super()._repr_html_()
        if self._html is None:
            self._html = _animation(self)
        return self._html + super()._repr_html_()


def _animation(run: RunDataset) -> str:
    import simkit
    from simkit.errors import UserError

    try:
        return simkit.animate(run)._repr_html_()
    except UserError:
        return ""  # frames that cannot be drawn are still data
