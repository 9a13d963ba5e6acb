"""The Python interface: objectives, optimizations, resumption, records made in Python, number types and size checks."""

import base64
import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import simkit
import simkit.export
from simkit.cli.main import main
from simkit.core.parameter import POSITIVE
from simkit.engine import memory
from simkit.errors import UserError
from simkit.export import data_file
from simkit.jobs.job import begin
from simkit.jobs.runs import Run
from simkit.scenario.made_in_python import load
from tests.jobs.test_api import bytes_of
from tests.jobs.test_made_in_python import named, swing
from tests.jobs.test_number_types import counting, multiples
from tests.stopping import StopAfter, Stopped
from tests.tables import every
from tests.thorough.jobs.test_sweeps import wild_flow
from tests.toys import SPRINGS, toy


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
    with pytest.raises(simkit.UserError, match="reads = 'enrgy' is unknown; did you mean 'energy'"):
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


def test_interrupted_job_resumes_bit_for_bit_with_its_simulation_only(tmp_path):
    scenario = load(swing(), {"steps": 400, "every": 1})
    with pytest.raises(Stopped):
        begin(Run(scenario), tmp_path / "stopped", report=StopAfter(2))
    for simulation, message in (
        (None, "made in Python and is not in the file; hand it over with simkit.resume"),
        (swing(stronger=2.0), "began with another simulation"),
        (swing(step=lambda state, params: state), "began with another simulation"),
        (swing().with_quantities(angle=lambda state, params: state["motion"][0]), "began with another simulation"),
    ):
        with pytest.raises(simkit.UserError, match=message):
            simkit.resume(tmp_path / "stopped", simulation=simulation)
    resumed = simkit.resume(tmp_path / "stopped", simulation=swing())
    whole = simkit.run(swing(), steps=400, every=1, output=tmp_path / "whole")
    xarray.testing.assert_identical(resumed, whole)
    assert bytes_of(tmp_path / "stopped") == bytes_of(tmp_path / "whole")
    # A finished run is read without the simulation.
    xarray.testing.assert_identical(simkit.resume(tmp_path / "whole"), simkit.open_run(tmp_path / "whole"))


def test_run_of_a_named_simulation_refuses_another_one(tmp_path):
    simkit.run("bouncing_ball", steps=2, every=1, output=tmp_path / "run")
    with pytest.raises(simkit.UserError, match="which has a name; leave simulation= out"):
        simkit.resume(tmp_path / "run", simulation=swing())


def test_added_quantities_extend_or_replace_existing_ones():
    simulation = swing().with_quantities(
        height=lambda state, params: params["gravity"] * state["motion"][0],
        twice=lambda state, params: 2 * state["motion"],
        whole=lambda state, params: state["motion"].sum(),
    )
    found = simkit.run(simulation, steps=3)
    np.testing.assert_allclose(found["twice"], 2 * found["motion"])
    np.testing.assert_allclose(found["height"], 2.0 * found["motion"][:, 0], rtol=1e-6)
    np.testing.assert_allclose(found["whole"], found["motion"].sum("motion_0"), rtol=1e-6)
    with pytest.raises(simkit.UserError, match="quantity 'pair' gives tuple; return one array"):
        swing().with_quantities(pair=lambda state, params: (state["count"], state["count"]))


def test_simulation_without_diagnostics_runs_and_is_not_drawn(tmp_path, capsys):
    bare = simkit.Simulation(
        init=lambda params, key: {"x": params["scale"] * jnp.ones(3)},
        step=lambda state, params: {"x": 0.5 * state["x"]},
        observe=lambda state, params: {"x": state["x"]},
        diagnose=lambda state, params: {},
        params={"scale": 2.0},
    )
    run = simkit.run(bare, steps=2, every=1, output=tmp_path / "run")
    np.testing.assert_array_equal(run["x"][:, 0], [2.0, 1.0, 0.5])
    assert simkit.open_run(tmp_path / "run").equals(run)
    assert simkit.sweep(bare, {"scale": [1.0, 4.0]}, steps=2)["x"].values[:, 0, 0].tolist() == [0.25, 1.0]
    value, derivative = simkit.value_and_grad(bare, "scale", objective=lambda frames, _: frames["x"][-1].sum(), steps=2)
    assert (value, derivative["scale"]) == (1.5, 0.75)
    message = "there is nothing to draw: no number is diagnosed, and no field, particles or bodies are observed; add"
    with pytest.raises(simkit.UserError, match=message):
        simkit.picture(run)
    assert main(["render", str(tmp_path / "run")]) == 2
    assert message in capsys.readouterr().err
    assert "<img" not in run._repr_html_()
    with pytest.raises(simkit.UserError, match=r"render\.quantity = 'y' is unknown"):
        simkit.run(bare, steps=2, quantity="y")


def test_shell_draws_a_stored_run_and_says_how_to_finish_one(tmp_path, capsys):
    with pytest.raises(Stopped):
        begin(Run(load(swing(), {"steps": 400, "every": 4})), tmp_path / "run", report=StopAfter(1))
    assert main(["resume", str(tmp_path / "run")]) == 2
    assert "hand it over with simkit.resume(folder, simulation=...)" in capsys.readouterr().err
    assert main(["render", str(tmp_path / "run"), "--format", "png"]) == 0
    assert (tmp_path / "run" / "simulation.png").stat().st_size > 1000


def test_parameter_with_the_name_of_an_attribute_is_stored_with_a_prefix():
    names = ("seed", "status", "title", "steps")
    found = simkit.run(named(*names), steps=2, **{"seed": 3, "title": "A swing", "params.seed": 2.5})
    assert (found.attrs["seed"], found.attrs["title"], found.attrs["status"]) == (3, "A swing", "ok")
    assert [found.attrs[f"params.{name}"] for name in names] == [2.5, 1.5, 1.5, 1.5]


def test_best_value_at_an_open_bound_is_reported_as_zero():
    gravity = simkit.Parameter(2.0, (POSITIVE[0], 5.0), "1/s^2", "gravity over length")
    simulation = swing(params=swing().params | {"gravity": gravity}).with_quantities(
        loss=lambda state, params: params["gravity"] + 0 * state["motion"].sum()
    )
    found = simkit.optimize(simulation, "gravity", objective="loss", iterations=30, steps=1)
    assert found.attrs["at_bounds"].endswith(
        "ends at its lower bound 0, which it must stay above, toward which the objective still improves"
    )
    with pytest.raises(simkit.UserError, match=r"gravity = 0 is not above 0; choose a value in \(0, 5\]"):
        simkit.run(simulation, steps=1, gravity=0.0)


def gate():
    """A number that counts up while it is below a limit: a function of the limit in steps."""
    return simkit.Simulation(
        init=lambda params, key: jnp.zeros_like(params["limit"]),
        step=lambda state, params: state + jnp.where(state < params["limit"], params["rate"], 0.0),
        observe=lambda state, params: {},
        diagnose=lambda state, params: {"sum": state},
        params={"limit": 1.3, "rate": 0.5},
    )


@pytest.mark.filterwarnings("error")
def test_a_zero_derivative_in_reverse_mode_alone_is_taken_as_it_is():
    @jax.custom_vjp
    def kept(x):
        return x

    kept.defvjp(lambda x: (x, None), lambda _, slope: (0 * slope,))
    simulation = dataclasses.replace(gate(), init=lambda params, key: kept(params["limit"]))
    _, derivative = simkit.value_and_grad(simulation, "limit", steps=2, objective="final(sum)", mode="reverse")
    assert derivative == {"limit": 0}


def test_a_derivative_that_is_zero_between_steps_says_so(capsys):
    with pytest.warns(UserWarning, match="depends on limit in steps only"):
        value, derivative = simkit.value_and_grad(gate(), ["limit", "rate"], steps=5, objective="final(sum)")
    assert value == 1.5 and derivative == {"limit": 0, "rate": 3}
    with pytest.warns(UserWarning, match="depends on limit in steps only"):
        simkit.optimize(gate(), ["limit"], steps=5, objective="final(sum)", iterations=2)


@pytest.mark.parametrize("dtype", ["complex64", "bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize(
    "call", [simkit.run, lambda simulation, **rest: simkit.sweep(simulation, {"index": [0.0]}, **rest)]
)
def test_a_type_that_no_file_has_is_refused_before_the_run(dtype, call, tmp_path):
    simulation = counting(getattr(jnp, dtype))
    with pytest.raises(UserError, match=f"'shown' has type {dtype}, which runs do not store; give it (as real|in ano)"):
        call(simulation, steps=1, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    call(simulation, steps=1)


def test_netcdf_refuses_complex_numbers_and_zarr_stores_them(tmp_path):
    result = simkit.run(counting(np.complex64, [1j, 2j]), steps=1)
    with pytest.raises(UserError, match=r"NetCDF cannot store '.*', of type complex64; choose zarr"):
        data_file(result, "netcdf", tmp_path / "run.nc")
    found = xarray.open_zarr(data_file(result, "zarr", tmp_path / "run.zarr"))
    np.testing.assert_array_equal(found["count"], result["count"])


def test_seeds_reach_the_largest_one(tmp_path):
    largest = 2**32 - 1
    result = simkit.sweep(
        "bouncing_ball", {"launch_speed": [3.0]}, seeds=2, steps=3, every=3, seed=largest - 1, output=tmp_path / "sweep"
    )
    assert result["seed"].values.tolist() == [largest - 1, largest]
    assert simkit.open_run(tmp_path / "sweep")["seed"].values.tolist() == [largest - 1, largest]
    with pytest.raises(UserError, match=f"2 seeds from seed = {largest} go past {largest}; begin with a smaller seed"):
        simkit.sweep("bouncing_ball", {"launch_speed": [3.0]}, seeds=2, steps=3, seed=largest)


@pytest.mark.parametrize("to", ["netcdf", "zarr", "csv"])
def test_an_array_without_elements_is_stored(to, tmp_path):
    simulation = dataclasses.replace(
        counting("float32"), observe=lambda state, params: {"none": jnp.zeros((0, 3)), "shown": state[None]}
    )
    in_memory = simkit.sweep(simulation, {"index": [0.0, 1.0]}, steps=1)
    simkit.sweep(simulation, {"index": [0.0, 1.0]}, steps=1, output=tmp_path / "sweep")
    opened = simkit.open_run(tmp_path / "sweep")
    assert opened["none"].shape == in_memory["none"].shape == (2, 1, 0, 3)
    assert opened["none"].dtype == np.float32 and opened.equals(in_memory)
    assert data_file(opened, to, tmp_path / "file").exists()


@pytest.mark.parametrize(
    ("observed", "diagnosed", "expected"),
    [
        ({}, {"a": 2.0, "diagnosed_a": 3.0}, {"diagnosed_a": 3.0, "diagnosed_diagnosed_a": 2.0}),
        ({}, {"diagnosed_a": 3.0, "a": 2.0}, {"diagnosed_a": 3.0, "diagnosed_diagnosed_a": 2.0}),
        ({"x": 4.0, "final_x": 5.0}, {"x": 6.0}, {"x": 6.0, "final_x": 5.0, "final_final_x": 4.0}),
        ({"x": 4.0}, {"x": 6.0, "final_x": 7.0}, {"x": 6.0, "final_x": 7.0, "final_final_x": 4.0}),
        ({"seed": 4.0, "final_seed": 5.0}, {"seed": 6.0}, {"final_seed": 5.0, "diagnosed_seed": 6.0}),
    ],
)
def test_no_array_of_a_sweep_takes_the_place_of_another(observed, diagnosed, expected, tmp_path):
    result = simkit.sweep(multiples(observed, diagnosed), {"a": [1.0, 2.0]}, steps=1, output=tmp_path / "sweep")
    assert len(result.data_vars) == len(observed) + len(diagnosed) + 1  # the status
    for found in (result, simkit.open_run(tmp_path / "sweep")):
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name].values[1], np.full(found[name].shape[1:], 2 * value))


def test_only_a_whole_run_is_displayed_with_its_animation():
    run = simkit.run(load("bouncing_ball", {"steps": 60, "every": 3}))
    html = run._repr_html_()
    data = re.search(r'src="data:image/(?:gif|png);base64,([^"]+)"', html)  # a film, where there is time for one
    assert data and base64.b64decode(data[1])[:4] in (b"GIF8", b"\x89PNG")
    assert "xr-wrap" in html and data[0] in run._repr_html_()
    assert "image/" not in run.isel(time=[0, 1])._repr_html_()
    assert isinstance(run, xarray.Dataset)
    # Frames that cannot be drawn are still data.
    assert "xr-wrap" in simkit.run(toy(steps=2, every=1)).assign_attrs(a=1)._repr_html_()


HUGE = {
    "particles": "jamming particles=100000000",
    "every step": "channel_flow config.axes.x.cells=1024 config.axes.y.cells=512 every=1 time_step=1e-3",
    "cells": "channel_flow config.axes.x.cells=100000000",
    "boxes": "falling_pile config.bodies.0.grid.counts=[100000000,1,1]",
    "stacked boxes": "box_stack config.bodies.1.count=100000000",
    "unit cells": "lennard_jones_fluid config.start.repeats=[8192,8192,8192]",
    "atoms": "lennard_jones_cluster particles=100000000",
    "steps between": "lennard_jones_fluid config.averages.skip=1000000000000",
    "degrees": "tollmien_schlichting points=[512,512]",
    "harmonics": "tollmien_schlichting points=[100000000,49]",
    "fine cylinder": "cylinder_in_channel config.axes.x.refined.cell=1.5e-8",
}
FINE = {
    "channel": "channel_flow config.axes.x.cells=8192 config.axes.y.cells=8192 time_step=1e-4",
    "channel at an unstable time step": "channel_flow config.axes.x.cells=8192 config.axes.y.cells=8192",
    "cavity": "lid_driven_cavity config.axes.x.cells=8192 config.axes.y.cells=8192 time_step=1e-4",
    "heated cavity": "heated_cavity config.axes.x.cells=4096 config.axes.y.cells=4096 time_step=1e-4",
    "cylinder": "cylinder_in_channel config.axes.x.refined.cell=0.0005 config.axes.y.refined.cell=0.0005",
    "waves": "tollmien_schlichting cells=[8192,8192]",
}


def arguments(words):
    """Return the name of a scenario and its settings as arguments of the command line."""
    name, *settings = words.split()
    return [name, *(word for setting in settings for word in ("--set", setting))]


@pytest.fixture
def fast(monkeypatch):
    """No line about a long first wait, as on a machine that does nothing else."""
    monkeypatch.setattr("simkit.cli.progress.LONG_WAIT", 1e6)


@every("verb", ["run", "sweep"])
@every("words", FINE.values(), ids=FINE)
def test_too_large_grids_are_refused_before_solver_tables_are_computed(
    words, verb, tmp_path, capsys, monkeypatch, fast
):
    def told(*_, **__):
        raise AssertionError("a table of a solver was made")

    for table in ("modes.Transform", "tridiagonal.matrix_of_slopes", "tridiagonal.eliminate", "pressure.eliminate"):
        monkeypatch.setattr(f"simkit.flow.solvers.{table}", told)
    monkeypatch.setattr("simkit.scenario.build._check_names", told)
    monkeypatch.setattr("simkit.core.expressions.measures.Moment", told)
    # Ten frames of 4096 x 4096 numbers of 4 bytes; the scenario stores more frames.
    monkeypatch.setattr(memory, "available_bytes", lambda: 10 * 2**26)
    swept = [] if verb == "run" else ["--seeds", "100"]
    assert main([verb, *arguments(words), *swept, "--output", str(tmp_path / "run")]) == 2
    refused = capsys.readouterr().err
    assert refused.count("\n") == 1
    assert "are free; " in refused or "stability limit" in refused
    assert not list(tmp_path.iterdir())


@every("words", HUGE.values(), ids=HUGE)
def test_huge_settings_are_refused_in_one_line_before_anything_is_computed(words, tmp_path, capsys, monkeypatch, fast):
    monkeypatch.setattr("simkit.jobs.runs.run_all", pytest.fail)
    monkeypatch.setattr(memory, "available_bytes", lambda: 4 * 2**30)
    assert main(["run", *arguments(words), "--output", str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "Traceback" not in told
    assert not list(tmp_path.iterdir())
