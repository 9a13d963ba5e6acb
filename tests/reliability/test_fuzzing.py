"""Random wrong input of the command line: an exit code, one line with the remedy, soon and with nothing left behind."""

import pytest

from tests.reliability import fuzzing
from tests.reliability.promises import TRACING, fuzz

pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("kind", [kind for kind in fuzzing.KINDS if kind not in TRACING])
def test_some_wrong_input_is_refused_as_promised(kind, tmp_path):
    codes, broken = fuzz(kind, range(40), tmp_path / "work")
    assert not broken and codes[2]


@pytest.mark.parametrize("kind", TRACING)
def test_some_wrong_commands_are_refused_as_promised(kind, tmp_path):
    codes, broken = fuzz(kind, range(6), tmp_path / "work")
    assert not broken and codes[2]
