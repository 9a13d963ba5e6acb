"""Tables of the time and runs that are stored."""

import pytest

import simkit
from simkit.errors import UserError
from tests.flow.description.test_tables import SCENARIO


def test_further_steps_past_the_end_of_a_table_are_refused_with_what_a_stored_run_can_do(tmp_path):
    data = '{ x = [0, 0.05], y = [1, 1], at = "time" }'
    (tmp_path / "probe.toml").write_text(SCENARIO.replace("U", data) + "[params]\ntime_step = 0.01\n")
    simkit.run(tmp_path / "probe.toml", output=tmp_path / "run")
    words = (
        r"cannot continue to step 8, since a stored run keeps its settings; run it anew with others: .* ends at 0\.05"
    )
    with pytest.raises(UserError, match=words):
        simkit.resume(tmp_path / "run", steps=8)
    assert simkit.resume(tmp_path / "run", steps=4).attrs["status"] == "ok"
