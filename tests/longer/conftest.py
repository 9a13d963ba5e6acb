"""Fixtures of the quick tests of these parts."""

from tests.cli.conftest import simkit
from tests.export.conftest import factories, flow
from tests.toys import stored, toys

__all__ = ["factories", "flow", "simkit", "stored", "toys"]
