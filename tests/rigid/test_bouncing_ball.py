"""The bouncing ball as a record: dtypes, mapping, random throws, export, and derivatives without NaN."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.rollout import trajectory
from simkit.rigid import bouncing_ball
from tests.tables import every

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
