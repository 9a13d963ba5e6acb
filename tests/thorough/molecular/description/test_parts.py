"""Files made of parts of another package run like any other."""

import numpy as np

import simkit
from tests.molecular.description.test_parts import DYNAMICS, RELAXATION, package, written  # noqa: F401


def test_files_with_parts_of_another_package_run(x64, tmp_path):
    rest = simkit.run(written(tmp_path / "rest.toml", RELAXATION), output=None)
    assert float(rest["energy"][-1]) < float(rest["energy"][0])
    moves = simkit.run(written(tmp_path / "moves.toml", DYNAMICS), output=None)
    assert np.isfinite(moves["energy"]).all()
