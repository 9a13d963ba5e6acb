"""Derivatives of the mean over random seeds: those of single seeds averaged, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.cli.main import main
from simkit.core.gradient import differences
from simkit.errors import UserError
from simkit.jobs.derivatives import prepared
from tests.tables import every
from tests.toys import PENDULUMS, toy

BOTH = ["frequency", "time_step"]


SEEDS = 5


def test_central_differences_of_the_mean():
    _, derivative = simkit.value_and_grad(toy(), BOTH, objective="energy", seeds=SEEDS)

    def mean(params):
        return jnp.mean(jax.vmap(lambda key: function(params, key))(keys))

    with prepared(toy(), "energy") as (function, params, _):
        keys = jax.vmap(jax.random.key)(jnp.arange(SEEDS, dtype=jnp.uint32))
        found = differences(mean, params, BOTH)
    for name in BOTH:
        np.testing.assert_allclose(derivative[name], found[name].value, rtol=1e-7)


@every(
    ("more", "words"),
    [
        (["--seeds", "1"], "seeds = 1 is not an integer of 2 to"),
        (["--seeds", "0"], "seeds"),
        (["--seeds", "4", "--output", "run"], "--output is not for the mean over seeds"),
        (["--seeds", "4", "--check"], "--check is not for the mean over seeds"),
        (["--seeds", "4", "--second"], "--second is not for the mean over seeds"),
        (["--seeds", "4", "--memory", "1"], "at least, and 1 B may be used"),
    ],
)
def test_what_is_refused(more, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    assert main(["grad", "./toy.toml", "--wrt", "frequency", "--mode", "reverse", *more]) == 2
    told = capsys.readouterr().err
    assert words in told and told.count("\n") == 1


def test_refusals_from_python(tmp_path):
    with pytest.raises(UserError, match="projectile does not depend on the seed; leave seeds= out"):
        simkit.value_and_grad("projectile", "launch_speed", seeds=4)
    with pytest.raises(UserError, match="leave it out, or leave seeds= out"):
        simkit.value_and_grad(toy(), "frequency", seeds=4, output=tmp_path / "run")
