"""The small scenarios of tests/export."""

from tests.export.conftest import factories, flow

__all__ = ["factories", "flow"]
