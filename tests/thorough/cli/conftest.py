"""The command line, called in this process, as in tests/cli."""

from tests.cli.conftest import simkit

__all__ = ["simkit"]
