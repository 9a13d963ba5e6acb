"""The bouncing ball as a record: dtypes, mapping, random throws, export, and derivatives without NaN."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.rollout import trajectory
from simkit.rigid import bouncing_ball
from simkit.rigid.algebra.vector import norm
from tests.every import every

KEY = jax.random.key_data(jax.random.key(0))


def last_diagnostics(simulation, steps):
    def run(params, key):
        start = simulation.init(params, key)
        end, _ = jax.lax.scan(lambda state, _: (simulation.step(state, params), None), start, length=steps)
        return simulation.diagnose(end, params)

    return run


@every("precision", ["float32", "float64"])
def test_a_step_keeps_every_dtype_and_shape(precision):
    with jax.enable_x64(precision == "float64"):
        simulation = bouncing_ball()
        state = simulation.init(simulation.params, KEY)
        after = jax.eval_shape(simulation.step, state, simulation.params)
        assert {leaf.dtype.name for leaf in jax.tree.leaves(state)} == {precision, "int32", "bool"}
        for old, new in zip(jax.tree.leaves(state), jax.tree.leaves(after), strict=True):
            assert (old.dtype, old.shape) == (new.dtype, new.shape)
            assert not old.weak_type and not new.weak_type


def test_frames_have_the_declared_dimensions_and_unit_quaternions():
    simulation = bouncing_ball()
    _, frames, diagnostics = jax.jit(trajectory(simulation, 360, 40))(simulation.params, KEY)
    assert set(frames) == set(simulation.dimensions)
    for name, array in frames.items():
        assert array.shape[0] == 10 and array.ndim == 1 + len(simulation.dimensions[name])
    # A float32 quaternion is scaled to unit length at every step, to a few units of 6e-8.
    np.testing.assert_allclose(jnp.linalg.norm(frames["orientation"], axis=-1), 1, atol=3e-7)
    np.testing.assert_allclose(diagnostics["time"], np.linspace(0, 3.6, 10), rtol=1e-5)  # 360 sums in float32


def test_float32_agrees_with_float64():
    results = {}
    for precision in (False, True):
        with jax.enable_x64(precision):
            simulation = bouncing_ball()
            results[precision] = jax.jit(last_diagnostics(simulation, 360))(simulation.params, KEY)
    assert results[False]["bounces"] == results[True]["bounces"] == 6
    for name in ("position_x", "height", "energy"):
        # 360 roundings of 6e-8 of positions of up to 3 m, energies of up to 10 J.
        assert abs(float(results[False][name]) - float(results[True][name])) < 360 * 6e-8 * 10


def test_vmap_over_parameters_and_keys_equals_a_loop(x64):
    simulation = bouncing_ball()
    run = last_diagnostics(simulation, 100)
    count = 5
    keys = jax.random.split(jax.random.key(1), count)
    varied = {
        "launch_speed": jnp.linspace(1.0, 9.0, count),
        "restitution": jnp.array([0.0, 0.3, 0.6, 0.9, 1.0]),
        "launch_scatter": jnp.full(count, 0.1),
        "time_step": jnp.array([0.001, 0.01, 0.02, 0.1, 0.5]),
    }
    axes = {name: 0 if name in varied else None for name in simulation.params}
    mapped = jax.jit(jax.vmap(run, in_axes=(axes, 0)))({**simulation.params, **varied}, keys)
    single = jax.jit(run)
    for member in range(count):
        one = single({**simulation.params, **{name: array[member] for name, array in varied.items()}}, keys[member])
        for name, value in one.items():
            np.testing.assert_allclose(mapped[name][member], value, rtol=1e-12, atol=1e-12)


def test_scatter_draws_throws_with_the_given_standard_deviation(x64):
    simulation = bouncing_ball().with_params(launch_scatter=0.1)
    keys = jax.random.split(jax.random.key(2), 4000)
    states = jax.vmap(simulation.init, in_axes=(None, 0))(simulation.params, keys)
    speed = norm(states.ball.velocity)
    angle = jnp.rad2deg(jnp.arctan2(states.ball.velocity.z, states.ball.velocity.x))
    for sample, mean in ((speed, 4.0), (angle, 60.0)):
        # Four standard errors: 0.1 / sqrt(4000) of the mean, and 0.1 / sqrt(8000) of the standard deviation.
        assert abs(jnp.mean(sample) / mean - 1) < 4 * 0.1 / 4000**0.5
        assert abs(jnp.std(sample) / mean - 0.1) < 4 * 0.1 / 8000**0.5


def test_a_step_can_be_exported_without_callbacks():
    simulation = bouncing_ball()
    state = simulation.init(simulation.params, KEY)
    leaves, structure = jax.tree.flatten(state)

    def step(leaves, params):
        return jax.tree.leaves(simulation.step(jax.tree.unflatten(structure, leaves), params))

    exported = jax.export.export(jax.jit(step), platforms=("cpu", "cuda", "tpu"))(leaves, simulation.params)
    restored = jax.export.deserialize(exported.serialize(vjp_order=1))
    for a, b in zip(restored.call(leaves, simulation.params), jax.jit(step)(leaves, simulation.params), strict=True):
        np.testing.assert_array_equal(a, b)
