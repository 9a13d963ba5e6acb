"""Reporting of jobs: callbacks of progress and warnings, and the display of jobs in a notebook."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

type Report = Callable[[float, str], None]
"""Called with the fraction done and a few words."""
type Warn = Callable[[str], None]
"""Called with one line about damaged files or changed software."""

DISPLAYS: dict[str, Callable[..., Any]] = {}
"""``"progress"``, the class of progress bars, and ``"animation"``, the function that draws the frames of a run."""


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
        **options: further options of the progress bar.
    """
    if not in_notebook():
        yield lambda fraction, words="": None
        return
    with DISPLAYS["progress"](name, steps, unit, terminal=True, **options) as progress:
        yield progress.update
