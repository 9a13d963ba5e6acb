"""Progress bar of a job in a notebook."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from simkit.jobs.callbacks import Report


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell else None
    return hasattr(running, "kernel")


@contextmanager
def progress_of(name: str, steps: int | None = None, unit: str = "steps", **options: Any) -> Iterator[Report]:
    """Show progress in a notebook, and nothing anywhere else.

    Args:
        name: name of the job.
        steps: total number of steps.
        unit: name of a step, in the plural.
        **options: further options of `simkit.cli.progress.Progress`.
    """
    if not in_notebook():
        yield lambda fraction, words="": None
        return
    import simkit

    # Through the public package, so that this layer does not import the command line above it.
    with simkit.Progress(name, steps, unit, terminal=True, **options) as progress:
        yield progress.update
