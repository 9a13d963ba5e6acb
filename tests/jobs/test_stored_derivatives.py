"""Derivatives stored in pieces: equal to those of one program, and resumed bit for bit."""

import jax.numpy as jnp
import pytest

import simkit
from simkit.errors import UserError
from tests.toys import toy


def test_refusals_from_python(tmp_path):
    for values, words in (({"memory": 10}, "pass a larger memory="), ({"mode": "forward"}, "forward mode")):
        with pytest.raises(UserError, match=words):
            simkit.value_and_grad(toy(), "frequency", output=tmp_path / "run", **values)
    with pytest.raises(UserError, match="only its name can be stored"):
        simkit.value_and_grad(toy(), "frequency", output=tmp_path / "run", objective=lambda f, d: jnp.sum(d["energy"]))
    assert not list(tmp_path.iterdir())
