"""Expressions: values, derivatives, and quantities made of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.core.expressions.evaluation import Named, expression
from simkit.core.expressions.functions import lowest_point
from simkit.core.expressions.measures import measure
from simkit.errors import UserError
from simkit.flow.grid import bounded_axis
from tests.core.test_expressions import FIELD, FORMULAS, LIFT, NUMBERS, TIME, U, X, Y, measured, of
from tests.differences import central_difference
from tests.flow.plane_channel import plane_channel
from tests.molecular.clusters import cluster
from tests.tables import every


def test_lowest_point_of_a_parabola_is_found_between_the_points(x64):
    points = bounded_axis(10, 1.0, 0.0, 1.5).faces

    def place(x, y):
        f = (points[:, None] - x) ** 2 + 2 * (points - y) ** 2 - 3
        value, coordinates = lowest_point(jnp.asarray(f), (points, points))
        return jnp.stack([*coordinates, value])

    # Exact for parabolas, and so are the derivatives.
    np.testing.assert_allclose(place(0.42, 0.67), [0.42, 0.67, -3], rtol=0, atol=1e-13)
    slopes = jax.jacobian(place, (0, 1))(0.42, 0.67)
    np.testing.assert_allclose(jnp.stack(slopes, 1), np.eye(3)[:, :2], rtol=0, atol=1e-12)
    # Also between the last two points; and beyond the last the field has none, so that its lowest value is there.
    edge = points[1] / 3
    np.testing.assert_allclose(place(edge, 0.67), [edge, 0.67, -3], rtol=0, atol=1e-13)
    np.testing.assert_allclose(place(1.2, 0.67), [1, 0.67, 0.04 - 3], rtol=0, atol=1e-13)


def test_values_and_derivatives(x64):
    step, places = 1e-5, [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)]

    def all_of(x, y):
        """Value, first derivatives in both modes, and second ones in both orders of the modes, of every formula."""
        found = {}
        for text in FORMULAS:
            f, both = of(text), (0, 1)
            mixed = [
                outer(inner(f, argument), argument)(x, y)
                for outer, inner in ((jax.jacfwd, jax.grad), (jax.grad, jax.jacfwd))
                for argument in both
            ]
            found[text] = f(x, y), jax.grad(f, both)(x, y), jax.jacfwd(f, both)(x, y), mixed
        return found

    # One program of all formulas, at the point and at its four neighbors.
    near = jnp.asarray([(X + i * step, Y + j * step) for i, j in places])
    program = jax.jit(jax.vmap(all_of), compiler_options={"xla_backend_optimization_level": 0})
    for text, (value, slopes, forward, mixed) in jax.tree.map(np.asarray, program(near[:, 0], near[:, 1])).items():
        assert value[0] == pytest.approx(FORMULAS[text], rel=1e-14), text
        for argument in (0, 1):
            ahead, behind = 1 + 2 * argument, 2 + 2 * argument
            difference = (value[ahead] - value[behind]) / (2 * step)
            for slope in (slopes[argument], forward[argument]):
                assert slope[0] == pytest.approx(difference, rel=1e-7, abs=1e-8), text
            curvature = (slopes[argument][ahead] - slopes[argument][behind]) / (2 * step)
            for second in (mixed[argument], mixed[2 + argument]):
                assert second[0] == pytest.approx(curvature, rel=1e-6, abs=1e-6), text


# Formulas with their derivatives by x and by y at x = 0, y = 3.
AT_THE_EDGE = {
    "where(x > 0, y/x, 0)": (0.0, 0.0),
    "where(x > 0, x*log(x), y)": (0.0, 1.0),
    "where(x > 0, sqrt(x), y**2)": (0.0, 6.0),
    "sqrt(x**2 + (y - 3)**2)": (0.0, 0.0),
    "hypot(x, y - 3)": (0.0, 0.0),
    "x**y": (0.0, 0.0),
    "x**2 * y": (0.0, 0.0),
    "x**1": (1.0, 0.0),
    "sqrt(x*(y - 3))": (0.0, 0.0),
    "where(hypot(x, y - 3) > 0, atan2(y - 3, x), y)": (0.0, 1.0),
}


def test_derivatives_are_finite_where_the_mathematics_is(x64):
    def all_of(x, y):
        return {text: [mode(of(text), (0, 1))(x, y) for mode in (jax.grad, jax.jacfwd)] for text in AT_THE_EDGE}

    one = jax.jit(all_of)(0.0, 3.0)
    many = jax.jit(jax.vmap(all_of))(jnp.zeros(2), jnp.full(2, 3.0))
    for text, expected in AT_THE_EDGE.items():
        for alone, together in zip(one[text], many[text], strict=True):
            assert tuple(map(float, alone)) == expected, text
            assert [slope.tolist() for slope in together] == [[slope] * 2 for slope in expected], text


@every(
    ("text", "axes", "value"),
    [
        ("mean(u)", (), U.mean()),
        ("rms(u)", (), np.sqrt((U**2).mean())),
        ("norm(u)", (), np.sqrt((U**2).sum())),
        ('sum(u, axis="y")', ("x",), U.sum(1)),
        ("max(u)", (), U.max()),
        ('min(u, axis="x")', ("y",), U.min(0)),
        ('u - mean(u, axis="x")', ("x", "y"), U - U.mean(0)),
        ("x*y", ("x", "y"), np.outer(np.arange(3), np.arange(4))),
        ("y + u", ("x", "y"), U + np.arange(4)),
        ("where(x > y, x, y)", ("x", "y"), np.maximum.outer(np.arange(3), np.arange(4))),
        ("max(x, y)", ("x", "y"), np.maximum.outer(np.arange(3), np.arange(4))),
        ("at(u, x=1.25)", ("y",), 0.75 * U[1] + 0.25 * U[2]),
        ("at(u, y=-0.5, x=2)", (), 1.5 * U[2, 0] - 0.5 * U[2, 1]),
        ("at(at(x*y, x=1.5), y=0.3)", (), 0.45),
        ('max(at(u, x=1), axis="y") - at(u, x=max(x), y=3)', (), U[1].max() - U[2, 3]),
    ],
)
def test_axes_of_one_name_are_taken_together(text, axes, value):
    result = expression(text)(FIELD)
    assert result.axes == axes
    np.testing.assert_allclose(result.array, value, rtol=1e-6)


def test_an_interpolated_value_has_a_derivative_and_is_nan_beyond_the_field(x64):
    field = {"u": Named(jnp.asarray(U), ("x", "y"))} | {
        axis: Named(jnp.arange(n, dtype=float), (axis,)) for axis, n in (("x", 3), ("y", 4))
    }

    def value(x):
        return expression("at(u, x=here, y=1)")({**field, "here": x}).array

    assert float(jax.grad(value)(1.3)) == pytest.approx(U[2, 1] - U[1, 1], rel=1e-12)
    step = 1e-6
    assert float(jax.grad(value)(2.2)) == pytest.approx(float(value(2.2 + step) - value(2.2 - step)) / (2 * step))
    assert jnp.isnan(jax.jit(value)(2.6)) and jnp.isnan(jax.jit(value)(-0.6)) and jnp.isnan(jax.grad(value)(2.6))
    places = jnp.asarray([0.25, 1.5])
    np.testing.assert_allclose(jax.vmap(value)(places), [value(0.25), value(1.5)], rtol=1e-12)


FRAMES = {"speed": jnp.asarray(np.multiply.outer(LIFT, U))}


@every(
    ("text", "value"),
    [
        ("time_mean(lift, after=2)", LIFT[TIME >= 2].mean()),
        ("time_rms(lift)", np.sqrt((LIFT**2).mean())),
        ("largest(lift, after=3) - smallest(lift)", LIFT[TIME >= 3].max() - LIFT.min()),
        ("at_time(lift, 2)", LIFT[4]),
        ("at_time(time**3 - 5*time, 3.8)", 3.8**3 - 19),
        ("at_time(time**3 - 5*time, 0.1 + first(time))", 0.001 - 0.5),
        ("mean(at_time(speed, 3.5))", LIFT[7] * U.mean()),
        ("time_integral(lift**2)", 0.5 * ((LIFT**2).sum() - (LIFT[0] ** 2 + LIFT[-1] ** 2) / 2)),
        ("time_integral(lift, after=3.75)", 0.25 * (LIFT[7] + 3 * LIFT[8]) / 4),
        ("mean(time_integral(3*time + 0*speed, after=0.7, before=3.1))", 1.5 * (3.1**2 - 0.7**2)),
        ("final(lift) + first(mean(speed))", LIFT[-1] + LIFT[0] * U.mean()),
        ("lift**2", LIFT[-1] ** 2),
        ("lift # of the last frame", LIFT[-1]),
        ("lift*" + "1*" * 60 + "1" + " " * 870, LIFT[-1]),
        ("largest(max(abs(speed)))", np.abs(LIFT).max() * U.max()),
        ('max(time_mean(speed, after=1), axis="x")*0 + 1', None),
        ("mean(time_mean(speed, after=1))", LIFT[TIME >= 1].mean() * U.mean()),
    ],
)
def test_frames_are_reduced_to_an_objective(text, value):
    made = measure(text, "objective", {"speed": ("x", "y")}, {"time", "lift", "speed"})
    if value is None:
        with pytest.raises(UserError, match="has one number for each y; reduce it by mean"):
            made(FRAMES, NUMBERS)
    else:
        assert made(FRAMES, NUMBERS) == pytest.approx(value, rel=1e-6)


@every("moment", [-0.1, 4.1])
def test_a_time_beyond_the_frames_is_not_a_number(moment):
    for text in ("at_time(lift, {})", "time_integral(lift, after={})", "time_integral(lift, before={})"):
        made = measure(text.format(moment), "objective", {}, {"time", "lift"})
        value, slope = jax.value_and_grad(lambda lift, made=made: made({}, {**NUMBERS, "lift": lift}))(NUMBERS["lift"])
        assert jnp.isnan(value) and jnp.isnan(slope).any()


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


@every("text", ["first(energy)", "time_mean(energy)", "final(energy) - largest(energy)"])
def test_reductions_of_frames_are_refused_for_simulations_that_converge(text):
    pair = cluster(particles=2)
    with pytest.raises(UserError, match="has no meaning for a simulation that runs until it converges; use final"):
        simkit.value_and_grad(pair, ["sigma"], objective=text, steps=500)


@every(
    ("name", "text", "message"),
    [
        ("u", "reynolds", "the name 'u' is taken; choose another"),
        ("x", "reynolds", "the name 'x' is taken; choose another"),
        ("frame", "reynolds", "the name 'frame' is taken; choose another"),
        ("status", "reynolds", "the name 'status' is taken; choose another"),
        ("wrong", "u + w", "column 5 of 'u + >>>w': 'w' is not known here"),
        ("wrong", "time_mean(u)", "reduces frames, and here is the present one only; make it an objective"),
        ("wrong", 'mean(u, axis="z")', "reduces along 'z'; the array has x, y"),
        ("wrong", "profile + side_velocity + u[-1]", "'u[-1]' is no entry of an array"),
        ("wrong", "u[8, 0]", "is beyond the 8 entries along 'x'; write a number up to 7"),
        ("wrong", "u[0, 0, 0]", "has 3 numbers, and the array has 2 axes"),
        ("wrong", "reynold", "did you mean 'reynolds'?"),
    ],
)
def test_a_mistake_is_one_line(channel, name, text, message):
    with pytest.raises(UserError, match=rf"file\.toml: quantities\.{name}: ") as caught:
        measured(channel, **{name: text})
    assert message in str(caught.value)
