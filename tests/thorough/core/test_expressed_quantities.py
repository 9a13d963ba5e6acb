"""Quantities defined by expressions in runs, sweeps, derivatives and ensembles: the longer tests."""

import dataclasses

import jax
import numpy as np
import pytest

import simkit
from simkit.errors import UserError
from tests.core.test_expressed_quantities import UNIT, channel, measured  # noqa: F401  # noqa: F401
from tests.differences import central_difference
from tests.flow.plane_channel import plane_channel
from tests.molecular.clusters import cluster
from tests.tables import every


def test_numbers_and_fields_are_added_to_diagnostics_and_frames(channel):
    told = measured(
        channel,
        fluctuation='u - mean(u, axis="x")',
        share="rms(fluctuation) / rms(u)",
        height="max(where(u > 0.02, y, -1))",
        viscosity="1 / reynolds",
    )
    run = simkit.run(told, steps=20, every=10, perturbation=0.1, reynolds=50.0)
    u = run["u"].values
    np.testing.assert_allclose(run["fluctuation"], u - u.mean(axis=run["u"].dims.index("x"), keepdims=True), atol=1e-7)
    share = np.sqrt((run["fluctuation"] ** 2).mean(("x", "y")) / (run["u"] ** 2).mean(("x", "y")))
    np.testing.assert_allclose(run["share"], share, rtol=1e-5)
    np.testing.assert_allclose(run["height"], run["y"].where(run["u"] > 0.02, -1).max(("x", "y")))
    np.testing.assert_allclose(run["viscosity"], 0.02)
    assert run["fluctuation"].dims == run["u"].dims
    assert run["share"].attrs == {"units": "1", "long_name": "a measure"}


def test_means_are_weighted_by_the_widths_of_unequal_cells():
    stretched = plane_channel((8, 12), stretching=2.0)
    told = measured(
        stretched,
        average="mean(u)",
        layers='mean(u, axis="x")',
        of_layers="mean(layers)",
        size="rms(u)",
        weighed="mean(y**2*layers)",
        along='mean(u, axis="y")',
    )
    run = simkit.run(told, steps=20, every=10, perturbation=0.1)
    faces = np.tanh(np.linspace(-1, 1, 13) * 2.0) / np.tanh(2.0)
    widths, centers = np.diff(faces), (faces[1:] + faces[:-1]) / 2
    np.testing.assert_allclose(run["y"], centers, atol=1e-6)
    u, share = run["u"].transpose("time", "x", "y").values, widths / 2
    np.testing.assert_allclose(run["average"], u.mean(1) @ share, atol=1e-6)
    np.testing.assert_allclose(run["of_layers"], run["average"], atol=1e-6)
    np.testing.assert_allclose(run["along"].transpose("time", "x"), u @ share, atol=1e-6)
    np.testing.assert_allclose(run["size"], np.sqrt((u**2).mean(1) @ share), atol=1e-6)
    np.testing.assert_allclose(run["weighed"], u.mean(1) @ (centers**2 * share), atol=1e-6)
    # Cells differ in size by so much that a plain mean is another number.
    assert np.all(np.abs(u[1:].mean((1, 2)) - run["average"][1:]) > 0.05 * run["average"][1:])
    # Objectives weigh as quantities do.
    value, slope = simkit.value_and_grad(told, "forcing", objective="final(mean(u))", steps=20)
    again, rate = simkit.value_and_grad(told, "forcing", objective="average", steps=20)
    np.testing.assert_allclose([value, slope["forcing"]], [again, rate["forcing"]], rtol=1e-6)


def test_a_sweep_and_an_ensemble_have_the_quantity_of_every_member(channel):
    told = measured(channel, energy="mean(u**2 + v**2) / 2")
    swept = simkit.sweep(told, {"reynolds": [20.0, 80.0]}, steps=10, perturbation=0.1)
    for reynolds in (20.0, 80.0):
        run = simkit.run(told, steps=10, every=10, perturbation=0.1, reynolds=reynolds)
        member = swept["energy"].sel(reynolds=reynolds).squeeze()
        np.testing.assert_allclose(member[-1], run["energy"][-1], rtol=1e-5)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_derivative_of_an_expressed_quantity_equals_the_central_difference(mode, x64):
    told = measured(plane_channel((8, 6)), norm='norm(u - reynolds*mean(v, axis="y"))')
    params = told.params | {"perturbation": np.float64(0.1)}
    objective = simkit.Objective(told, "norm", 10)
    _, derivative = simkit.value_and_grad(told, ["reynolds"], objective="norm", steps=10, perturbation=0.1, mode=mode)
    params = {name: jax.numpy.asarray(value) for name, value in params.items()}
    difference = central_difference(lambda p: objective(p, jax.random.key(0)), params, ["reynolds"])["reynolds"]
    assert derivative["reynolds"] == pytest.approx(float(difference), rel=1e-6)


def test_the_derivative_of_a_converged_quantity_is_implicit(x64):
    # Every bond of a pair at rest has the length at which its potential is least.
    told = measured(
        cluster(particles=2, force_tolerance=1e-12),
        extent='norm(max(position, axis="particle") - min(position, axis="particle"))',
    )
    value, derivative = simkit.value_and_grad(told, ["sigma"], objective="extent", steps=500)
    assert value == pytest.approx(2 ** (1 / 6), rel=1e-9)
    assert derivative["sigma"] == pytest.approx(2 ** (1 / 6), rel=1e-7)


def test_a_name_of_a_parameter_and_a_quantity_means_the_quantity(channel):
    def pressure(state, params):
        return 2 * params["reynolds"]

    doubled = channel.with_quantities(reynolds=pressure)
    run = simkit.run(measured(doubled, ratio="reynolds / params.reynolds"), steps=2, every=2)
    np.testing.assert_allclose(run["ratio"], 2.0)


def test_a_name_that_is_observed_and_diagnosed_means_the_diagnostic(channel):
    both = dataclasses.replace(
        channel, observe=lambda state, params: {"bulk_velocity": channel.observe(state, params)["u"]}
    )
    told = measured(
        dataclasses.replace(both, dimensions={"bulk_velocity": ("x", "y")}), twice="2*max(bulk_velocity, 0)"
    )
    run = simkit.run(told, steps=10, every=10, view="chart")
    np.testing.assert_allclose(run["twice"], 2 * run["bulk_velocity"], rtol=1e-6)
    assert run["observed_bulk_velocity"].ndim == 3


def test_an_entry_of_an_array_is_a_quantity_and_an_objective(channel):
    told = measured(channel, corner="u[2, 1]", row='mean(u[2], axis="y")', wall="side_velocity[3]")
    run = simkit.run(told, steps=10, every=5, view="chart")
    u = run["u"].transpose("time", "x", "y").values
    np.testing.assert_allclose(run["corner"], u[:, 2, 1], rtol=1e-6)
    np.testing.assert_allclose(run["row"], u[:, 2].mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(run["wall"], run["side_velocity"].values[:, 3], rtol=1e-6)
    found, slopes = simkit.value_and_grad(
        channel, "wall_velocity", objective="time_mean(u[2, 1]) + final(side_velocity[3])", steps=10, every=5
    )
    np.testing.assert_allclose(found, u[:, 2, 1].mean() + run["side_velocity"].values[-1, 3], rtol=1e-5)
    assert np.isfinite(slopes["wall_velocity"]) and slopes["wall_velocity"] >= 1


@every(
    ("name", "message"),
    [
        ("u", "'u' is already a quantity or coordinate; choose another name"),
        ("x", "'x' is already a quantity or coordinate; choose another name"),
        ("frame", "'frame' is a name used by data sets; choose another name"),
        ("status", "'status' is a name used by data sets; choose another name"),
    ],
)
def test_a_quantity_needs_a_name_of_its_own(channel, name, message):
    with pytest.raises(UserError) as caught:
        measured(channel, **{name: "1 / reynolds"})
    assert message in str(caught.value)


@every("text", ["first(energy)", "time_mean(energy)", "final(energy) - largest(energy)"])
def test_reductions_of_frames_are_refused_for_simulations_that_converge(text):
    pair = cluster(particles=2)
    with pytest.raises(UserError, match="has no meaning for a simulation that runs until it converges; use final"):
        simkit.value_and_grad(pair, ["sigma"], objective=text, steps=500)


@every(
    ("text", "message"),
    [
        ("u + w", "column 5 of 'u + >>>w': 'w' is not known here"),
        ("time_mean(u)", "reduces frames, and a quantity has one; make it an objective"),
        ('mean(u, axis="z")', "reduces along 'z'; the array has x, y"),
        ("profile + side_velocity + u[-1]", "'u[-1]' is no entry of an array"),
        ("u[8, 0]", "is beyond the 8 entries along 'x'; write a number up to 7"),
        ("u[0, 0, 0]", "has 3 numbers, and the array has 2 axes"),
        ("reynold", "did you mean 'reynolds'?"),
    ],
)
def test_a_mistake_is_one_line(channel, text, message):
    with pytest.raises(UserError, match=r"file\.toml: quantities\.wrong: ") as caught:
        measured(channel, wrong=text)
    assert message in str(caught.value)
