"""Reporting of jobs: callbacks of progress and warnings, and what a process's messages are attached to."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from simkit.core.display import DISPLAYS

type Report = Callable[[float, str], None]
"""Called with the fraction done and a few words."""
type Warn = Callable[[str], None]
"""Called with one line about damaged files or changed software."""


def attached_to() -> Literal["notebook", "terminal", "log"]:
    """Return what shows the messages of this process: a notebook, a terminal, or a file or pipe, which keep them."""
    shell = sys.modules.get("IPython")
    if hasattr(shell.get_ipython() if shell else None, "kernel"):
        return "notebook"
    return "terminal" if sys.stderr.isatty() else "log"


@contextmanager
def progress_of(name: str, steps: int | None = None, unit: str = "steps", **options: Any) -> Iterator[Report]:
    """Show progress in a notebook, and nothing anywhere else.

    Args:
        name: name of the job.
        steps: total number of steps.
        unit: name of a step, in the plural.
        **options: further options of the progress display.
    """
    if attached_to() != "notebook":
        yield lambda fraction, words="": None
        return
    with DISPLAYS["progress"](name, steps, unit, **options) as progress:
        yield progress.update
