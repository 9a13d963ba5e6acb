"""Random faults in the files of a run: one line naming the file, or no difference; no traceback, no wrong number."""

import collections
import contextlib
import shutil

import pytest

import simkit
from simkit.scenario import registry
from tests.reliability.faults import WORK, endure
from tests.stopping import Stopped
from tests.toys import FACTORIES

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def works(tmp_path_factory):
    """Return a function that runs the two jobs of a kind once, and returns their folder and the results."""
    home, results = tmp_path_factory.mktemp("faults"), {}

    def make(kind):
        if kind not in results:
            for seed in (0, 1):
                with contextlib.suppress(Stopped):
                    WORK[kind](home / kind / str(seed), seed)
            # The result of the complete job, read back.
            whole = home / "whole" / kind
            shutil.copytree(home / kind / "0", whole)
            simkit.resume(whole)
            results[kind] = simkit.open_run(whole)
        return home, results[kind]

    with pytest.MonkeyPatch.context() as patch:
        for name, target in FACTORIES.items():
            patch.setitem(registry.FACTORIES, name, target)
        yield make


def endure_all(works, kind, numbers, recwarn):
    home, wanted = works(kind)
    return collections.Counter(endure(kind, number, home, wanted, recwarn.list)[::2] for number in numbers)


@pytest.mark.parametrize("kind", ["run", "half a run", "sweep"])
def test_some_random_faults_give_one_line_or_no_difference(kind, works, recwarn):
    assert endure_all(works, kind, range(12), recwarn).total() == 12


@pytest.mark.slow
@pytest.mark.parametrize("kind", WORK)
def test_many_random_faults_give_one_line_or_no_difference(kind, works, recwarn):
    counts = endure_all(works, kind, range(100, 300), recwarn)
    print(kind, dict(counts))
    # Flipped or missing bytes of an archive, a manifest or a summary are always reported.
    assert counts.total() == 200
