"""The Python interface: run, resume, open_run, value_and_grad, optimize."""

import numpy as np
import pytest
import xarray

import simkit
from tests.jobs.test_api import bytes_of
from tests.jobs.test_sweeps import wild_flow
from tests.stopping import StopAfter, Stopped
from tests.toys import PENDULUMS, SPRINGS, toy


def test_non_finite_run_raises_and_can_be_opened(tmp_path):
    when = r"between step \d+, where courant_number = .*, largest_velocity = .*, and step \d+"
    message = rf"^channel_flow turned non-finite; .* \({when}, with reynolds = 20000.0, .*time_step = 5.0\)"
    with pytest.raises(simkit.RunFailedError, match=message):
        simkit.run(wild_flow(time_step=5.0), output=tmp_path / "run")
    with pytest.raises(simkit.RunFailedError, match=message):
        simkit.resume(tmp_path / "run")
    stored = simkit.open_run(tmp_path / "run")
    assert stored.attrs["status"] == "non_finite"
    energy = stored["kinetic_energy"].values
    assert np.isfinite(energy[:-1]).all() and not np.isfinite(energy[-1])


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_value_and_grad_gives_the_objective_and_its_derivatives(mode):
    value, derivative = simkit.value_and_grad(toy(), ["frequency", "time_step"], mode=mode)
    assert value == pytest.approx(float(simkit.run(toy())["energy"][-1]), rel=1e-14)
    for name, at in (("frequency", 1.3), ("time_step", 0.01)):
        step = 1e-5 * at
        ends = [simkit.value_and_grad(toy(), name, **{name: at + sign * step})[0] for sign in (1, -1)]
        # Central differences: truncation 1e-10, rounding 1e-16 / 1e-5.
        assert derivative[name] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-8)


def test_a_function_of_frames_and_diagnostics_is_an_objective():
    def last_energy(frames, diagnostics):
        return diagnostics["energy"][-1] + 0 * frames["position"].sum()

    named = simkit.value_and_grad(toy(), ["frequency", "time_step"], objective="energy")
    given = simkit.value_and_grad(toy(), ["frequency", "time_step"], objective=last_energy)
    assert given[0] == pytest.approx(named[0], rel=1e-14)
    for name in named[1]:
        assert given[1][name] == pytest.approx(named[1][name], rel=1e-12)
    # A relaxation has one frame, the last, and an implicit derivative.
    length = simkit.value_and_grad(toy(SPRINGS), "rest")
    spread = simkit.value_and_grad(toy(SPRINGS), "rest", objective=lambda frames, numbers: numbers["length"].sum())
    assert spread[0] == pytest.approx(length[0], rel=1e-12)
    assert spread[1]["rest"] == pytest.approx(length[1]["rest"], rel=1e-9)
    with pytest.raises(simkit.UserError, match=r"returns float64 of shape \(\d+,\); return one real number"):
        simkit.value_and_grad(toy(), "frequency", objective=lambda frames, numbers: numbers["energy"])
    with pytest.raises(simkit.UserError, match="reads 'enrgy', which is unknown; did you mean 'energy'"):
        simkit.value_and_grad(toy(), "frequency", objective=lambda frames, numbers: numbers["enrgy"][-1])
    with pytest.raises(
        simkit.UserError, match=r"objective is of type function, .* declare a diagnostic as an objective"
    ):
        simkit.optimize(toy(), "frequency", objective=last_energy)


def test_numpy_and_jax_scalars_are_accepted_as_numbers():
    import jax.numpy as jnp

    plain = simkit.run(toy(), frequency=2.5, steps=30, every=3)
    for frequency, steps in [
        (np.float32(2.5), np.int64(30)),
        (np.array(2.5), np.array(30)),
        (jnp.float32(2.5), jnp.int32(30)),
        (jnp.asarray(2.5), 30),
    ]:
        xarray.testing.assert_identical(plain, simkit.run(toy(), frequency=frequency, steps=steps, every=np.uint8(3)))
    for wrong, message in [
        (np.array([1.0, 2.0]), "does not have the default's shape"),
        (object(), "is no number; write one"),
        (np.array("a"), "is no number; write one"),
    ]:
        with pytest.raises(simkit.UserError, match=message):
            simkit.run(toy(), frequency=wrong)


def test_optimum_is_found_and_stored(tmp_path):
    # The chain is shortest at the lower bound of the rest length.
    result = simkit.optimize(toy(SPRINGS), "rest", output=tmp_path / "best", iterations=30)
    assert float(result["best_rest"][-1]) == pytest.approx(0.5, abs=1e-3)
    assert float(result["loss"][-1]) < float(result["loss"][0])
    # The data set says so, too.
    assert int(result["bound_rest"][-1]) == -1
    line = "rest = 0.5 ends at its lower bound 0.5, toward which the objective still improves"
    assert result.attrs["at_bounds"] == line
    count = int(result["iteration"][-1])
    assert result.attrs["message"].endswith(f"converged after {count} iterations; {line}")
    assert "rest = 0.5 ends at its lower bound" in repr(result)
    xarray.testing.assert_identical(simkit.open_run(tmp_path / "best"), result)
    xarray.testing.assert_identical(simkit.resume(tmp_path / "best"), result)


@pytest.mark.parametrize("method", ["lbfgs", "adam"])
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_interrupted_optimization_resumes_bit_for_bit(method, tmp_path):
    from simkit.jobs.job import begin
    from simkit.jobs.optimizations import Optimization

    job = Optimization(toy(), ("frequency", "time_step"), "energy", method=method, iterations=5)
    with pytest.raises(Stopped):
        begin(job, tmp_path / "stopped", report=StopAfter(3))
    resumed = simkit.resume(tmp_path / "stopped")
    whole = simkit.optimize(toy(), ["frequency", "time_step"], method=method, iterations=5, output=tmp_path / "whole")
    xarray.testing.assert_identical(resumed, whole)
    assert bytes_of(tmp_path / "stopped") == bytes_of(tmp_path / "whole")


def test_numpy_integers_are_accepted_as_counts(tmp_path):
    found = simkit.sweep(toy(), {"frequency": [1.0]}, seeds=np.int64(2), chunk=np.int32(1), output=tmp_path / "sweep")
    assert found.sizes["seed"] == 2
    best = simkit.optimize(toy(), "frequency", method="adam", iterations=np.int64(1), learning_rate=np.float32(0.1))
    assert best.sizes["iteration"] == 2


@pytest.mark.parametrize("work", ["run", "sweep", "optimize", "grad"])
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_interrupted_job_resumes_with_a_parameter_missing_in_its_file(work, tmp_path):
    from simkit.jobs.job import begin
    from simkit.jobs.optimizations import Optimization
    from simkit.jobs.runs import Run
    from simkit.jobs.stored_derivatives import Gradient
    from simkit.jobs.sweeps import Sweep
    from simkit.scenario.made_in_python import load

    start, end = PENDULUMS.index("[params.time_step]"), PENDULUMS.index("[run]")
    (tmp_path / "mine.toml").write_text(PENDULUMS[:start] + PENDULUMS[end:])
    scenario = load(tmp_path / "mine.toml", {"params.time_step": 0.02})
    job = {
        "run": lambda: Run(scenario),
        "sweep": lambda: Sweep(scenario, {"frequency": (1.0, 2.0)}, chunk=1),
        "optimize": lambda: Optimization(scenario, ("frequency",), "energy", iterations=5),
        "grad": lambda: Gradient(scenario, ("frequency",), "energy"),
    }[work]().checked()
    with pytest.raises(Stopped):
        begin(job, tmp_path / "stopped", report=StopAfter(2))
    resumed = simkit.resume(tmp_path / "stopped")
    begin(job, tmp_path / "whole")
    xarray.testing.assert_identical(resumed, simkit.open_run(tmp_path / "whole"))
    assert bytes_of(tmp_path / "stopped") == bytes_of(tmp_path / "whole")
