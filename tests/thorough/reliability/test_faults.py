"""Many random faults in the files of every kind of work."""

import pytest

from tests.reliability.faults import WORK, endure_all, works

__all__ = ["works"]

pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("kind", WORK)
def test_many_random_faults_give_one_line_or_no_difference(kind, works, recwarn):
    counts = endure_all(works, kind, range(100, 300), recwarn)
    print(kind, dict(counts))
    # Flipped or missing bytes of an archive, a manifest or a summary are always reported.
    assert counts.total() == 200
