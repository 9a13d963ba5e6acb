import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment, trajectory
from tests.flow.plane_channel import plane_channel


def channel(**params):
    """Return the flow on few cells."""
    return plane_channel((8, 6), length=3.0, **params)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_step_preserves_structure_shapes_and_types(precision):
    with jax.enable_x64(precision == "float64"):
        sim = channel()
        before = jax.eval_shape(sim.init, sim.params, jax.random.key(0))
        after = jax.eval_shape(sim.step, before, sim.params)
        assert jax.tree.structure(before) == jax.tree.structure(after)
        for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
            assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type)
        assert {leaf.dtype.name for leaf in jax.tree.leaves(before)} == {precision, "int32"}


def test_float32_parameters_stay_float32_in_64_bit_mode(x64):
    sim = channel()
    params = jax.tree.map(lambda value: value.astype(jnp.float32), sim.params)
    state = jax.eval_shape(lambda p: sim.step(sim.init(p, jax.random.key(0)), p), params)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(state)} == {"float32", "int32"}


def test_observed_arrays_fit_their_dimensions_and_coordinates():
    sim = channel()
    state = sim.init(sim.params, jax.random.key(0))
    observed = sim.observe(state, sim.params)
    sizes = {name: len(values) for name, values in sim.coordinates.items()}
    assert sizes == {"x": 8, "y": 6, "sides": 4}
    sizes["side"] = 4
    assert observed.keys() == sim.dimensions.keys()
    for name, array in observed.items():
        assert array.shape == tuple(sizes[axis] for axis in sim.dimensions[name])
    assert all(value.shape == () for value in sim.diagnose(state, sim.params).values())


def test_time_is_the_number_of_steps_times_the_time_step():
    sim = channel()
    state = sim.init(sim.params, jax.random.key(0))
    assert sim.diagnose(state, sim.params)["time"] == 0
    state = segment(sim, 7)(state, sim.params)
    assert sim.diagnose(state, sim.params)["time"] == 7 * sim.params["time_step"]


def test_changing_any_parameter_compiles_nothing_new():
    sim = channel()
    traces = []

    @jax.jit
    def run(params, key):
        traces.append(1)
        return segment(sim, 2)(sim.init(params, key), params)

    for name, default in sim.params.items():
        run(dict(sim.params, **{name: default + 0.01}), jax.random.key(1))
    assert len(traces) == 1


def test_members_of_a_sweep_equal_single_runs(x64):
    sim = channel(perturbation=0.3)
    run = trajectory(sim, 40, 10)
    keys = jax.random.split(jax.random.key(0), 3)
    values = {
        "reynolds": jnp.array([20.0, 100.0, 3000.0]),
        "wall_velocity": jnp.array([0.0, 1.0, -1.0]),
        "time_step": jnp.array([0.01, 0.015, 0.02]),
    }
    together = jax.jit(jax.vmap(lambda swept, key: run(sim.params | swept, key)))(values, keys)
    single = jax.jit(run)
    for i, key in enumerate(keys):
        alone = single(sim.params | {name: value[i] for name, value in values.items()}, key)
        for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            # The same operations in another order: rounding of quantities of size 1, carried through 40 steps. The
            # divergence, itself a rounding error, is below 1e-13.
            np.testing.assert_allclose(a[i], b, rtol=1e-12, atol=1e-12)


def test_step_exports_for_every_platform_without_calls_outside_the_compiler():
    sim = channel()
    state = jax.eval_shape(sim.init, sim.params, jax.random.key(0))
    exported = jax.export.export(jax.jit(segment(sim, 3)), platforms=["cpu", "cuda", "tpu"])(state, sim.params)
    assert "custom_call" not in exported.mlir_module()


def test_derivatives_at_rest_are_finite():
    sim = channel()

    def total(params):
        _, frames, diagnostics = trajectory(sim, 4, 2)(params, jax.random.key(0))
        return sum(jnp.sum(value) for value in jax.tree.leaves((frames, diagnostics)))

    # Speed, divergence and Courant number have kinks where the fluid rests, as it does here everywhere at the start.
    assert all(jnp.isfinite(value) for value in jax.jit(jax.grad(total))(sim.params).values())
