"""Derivatives of averages by fluctuations: on the command line, and stored."""

import json

from simkit.cli.main import main
from tests.jobs.test_fluctuations import (
    cloud,  # noqa: F401
)


def test_the_verb_grad_prints_averages_with_errors_and_stores_them(cloud, tmp_path, capsys):
    words = ["grad", str(cloud), "--method", "fluctuation", "--wrt", "k,warm", "--every", "5", "--json"]
    assert main([*words, "-o", str(tmp_path / "run")]) == 0
    stored = json.loads(capsys.readouterr().out)
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["wrt"] == stored["wrt"] and found["objective"] == "potential_energy"
    # <U> = N T, whatever the stiffness.
    assert abs(found["value"] - 64 * 0.7) < 4 * found["standard_error"] < 3
    for name, exact in (("k", 0.0), ("warm", 64.0)):
        row = found["wrt"][name]
        assert abs(row["derivative"] - exact) < 4 * row["standard_error"] < 40, name
