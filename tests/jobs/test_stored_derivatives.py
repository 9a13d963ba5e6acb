"""Derivatives stored in pieces: equal to those of one program, and resumed bit for bit."""

import jax.numpy as jnp
import pytest

import simkit
from simkit.cli.main import main
from simkit.errors import UserError
from tests.every import every
from tests.toys import PENDULUMS, toy


@every(
    ("more", "words"),
    [
        (["--memory", "10", "-o", "run"], "and 10 B may be used; pass a larger --memory"),
        (["--memory", "much", "-o", "run"], "memory"),
        (["--check", "-o", "run"], "--check is not for a derivative that is stored"),
        (["--second", "-o", "run"], "--second is not for a derivative that is stored"),
        (["--mode", "forward", "-o", "run"], "forward mode stores no states"),
        (["--overwrite"], "--overwrite needs --output"),
        (["--objective", "nothing", "-o", "run"], "'nothing' is not an objective"),
        (["-o", "toy.toml"], "exists and is not a folder"),
    ],
)
def test_options_that_contradict_each_other_are_refused(more, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    assert main(["grad", "./toy.toml", "--wrt", "frequency", *more]) == 2
    told = capsys.readouterr().err
    assert words in told and told.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["toy.toml"]


def test_refusals_from_python(tmp_path):
    for values, words in (({"memory": 10}, "pass a larger memory="), ({"mode": "forward"}, "forward mode")):
        with pytest.raises(UserError, match=words):
            simkit.value_and_grad(toy(), "frequency", output=tmp_path / "run", **values)
    with pytest.raises(UserError, match="only its name can be stored"):
        simkit.value_and_grad(toy(), "frequency", output=tmp_path / "run", objective=lambda f, d: jnp.sum(d["energy"]))
    assert not list(tmp_path.iterdir())
