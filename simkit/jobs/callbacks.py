"""Callback types of jobs: progress and warnings."""

from collections.abc import Callable

type Report = Callable[[float, str], None]
"""Called with the fraction done and a few words."""
type Warn = Callable[[str], None]
"""Called with one line about damaged files or changed software."""
