"""Notebook display: progress while work runs, and the animation of a run."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import xarray

if TYPE_CHECKING:
    from simkit.jobs.job import Report
    from simkit.jobs.outcome import Outcome


def in_notebook() -> bool:
    """Tell whether this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell else None
    return hasattr(running, "kernel")


@contextmanager
def progress_of(name: str, steps: int | None = None, unit: str = "steps", **options: Any) -> "Iterator[Report]":
    """Show progress in a notebook, and nothing anywhere else.

    Args:
        name: what is running.
        steps: steps in all.
        unit: what they are called.
        **options: others of `simkit.cli.progress.Progress`.
    """
    if not in_notebook():
        yield lambda fraction, words="": None
        return
    import simkit

    # The public face imports by name, so that this layer does not depend on those above.
    with simkit.Progress(name, steps, unit, terminal=True, **options) as progress:
        yield progress.update


class RunDataset(xarray.Dataset):
    """The data set of a run, which a notebook displays below its animation; what is taken out of it is a plain one."""

    __slots__ = ("_html", "_outcome")

    @classmethod
    def of(cls, dataset: xarray.Dataset, outcome: "Outcome") -> "RunDataset":
        """Return the same data set, with the run that it came from."""
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
