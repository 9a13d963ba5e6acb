"""Ctrl-C on resumable work."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def resumable(output: Path) -> Iterator[None]:
    """Turn Ctrl-C into one line that says how to go on: whatever was finished is on disk already."""
    try:
        yield
    except KeyboardInterrupt:
        on_disk = (output / "manifest.json").exists()
        raise KeyboardInterrupt(
            f"interrupted; go on with: simkit resume {shlex.quote(str(output))}" if on_disk else "interrupted"
        ) from None
