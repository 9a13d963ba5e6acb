"""Files made of parts of another package run like any other."""

import jax
import numpy as np
import pytest

import simkit
from simkit.core.converge import converge
from simkit.core.status import Status
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.molecular.description.test_parts import (
    DYNAMICS,
    RELAXATION,
    package,  # noqa: F401
    written,
)


def test_files_with_parts_of_another_package_run(x64, tmp_path):
    rest = simkit.run(written(tmp_path / "rest.toml", RELAXATION), output=None)
    assert float(rest["energy"][-1]) < float(rest["energy"][0])
    moves = simkit.run(written(tmp_path / "moves.toml", DYNAMICS), output=None)
    assert np.isfinite(moves["energy"]).all()


def test_potential_field_start_and_minimizer_of_another_package_relax_a_file(x64, tmp_path):
    made = build(load(written(tmp_path / "rest.toml", RELAXATION)))

    @jax.jit
    def relaxed(params):
        start = made.init(params, jax.random.key(0))
        end = converge(made, 1000)(start, params)
        return made.diagnose(start, params)["energy"], end.status, made.observe(end.state, params)["position"]

    first, status, position = relaxed(made.params)
    # Three equal distances sqrt(3) R: 3 q^2 exp(-d) / d + 3 k R^2 / 2, with R = 1 at the start.
    energy = lambda r: 3 * 1.5**2 * np.exp(-np.sqrt(3) * r) / (np.sqrt(3) * r) + 3 * 2.0 * r**2 / 2  # noqa: E731
    assert float(first) == pytest.approx(energy(1.0), rel=1e-12) and int(status) == Status.CONVERGED
    radii = np.linalg.norm(position, axis=1)
    assert energy(radii[0]) < min(energy(0.999 * radii[0]), energy(1.001 * radii[0]))
    np.testing.assert_allclose(radii, radii[0], rtol=1e-7)


def test_thermostat_and_barostat_of_another_package_move_a_file(x64, tmp_path):
    made = build(load(written(tmp_path / "moves.toml", DYNAMICS)))

    @jax.jit
    def moved(params):
        start = made.init(params, jax.random.key(0))
        end = jax.lax.fori_loop(0, 4, lambda _, state: made.step(state, params), start)
        return [(made.diagnose(state, params), made.observe(state, params)["cell"]) for state in (start, end)]

    (first, cell), (last, deformed) = moved(made.params)
    assert np.isfinite(last["energy"]) and float(last["volume"]) != float(first["volume"])
    # At this rate the velocities have the temperature of the bath in the middle of every step.
    assert float(last["temperature"]) == pytest.approx(0.4 + 4 * 0.005, rel=0.2)
    assert float(deformed[0, 0] / deformed[1, 1]) != pytest.approx(float(cell[0, 0] / cell[1, 1]))
