"""Types of the functions that a job calls while it runs: one for progress, one for warnings."""

from collections.abc import Callable

type Report = Callable[[float, str], None]
"""Called with the fraction done and a few words."""
type Warn = Callable[[str], None]
"""Called with one line that says what was damaged or has changed."""
