"""The bouncing ball as a record: dtypes, mapping, random throws, export, and derivatives without NaN."""

import jax

from simkit.rigid import bouncing_ball

KEY = jax.random.key_data(jax.random.key(0))


def last_diagnostics(simulation, steps):
    def run(params, key):
        start = simulation.init(params, key)
        end, _ = jax.lax.scan(lambda state, _: (simulation.step(state, params), None), start, length=steps)
        return simulation.diagnose(end, params)

    return run


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
