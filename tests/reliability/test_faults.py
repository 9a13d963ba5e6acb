"""Random faults in the files of a run: one line naming the file, or no difference; no traceback, no wrong number."""

import pytest

from tests.reliability.faults import endure_all, works

__all__ = ["works"]

pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("kind", ["half a run", "sweep"])
def test_some_random_faults_give_one_line_or_no_difference(kind, works, recwarn):
    assert endure_all(works, kind, range(12), recwarn).total() == 12
