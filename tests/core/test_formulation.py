"""Formulations chosen when a program is lowered, and what programs lowered for an accelerator contain."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.formulation import by_device, computed_once, computed_once_on_cpu, formulated_for, in_blocks
from simkit.molecular.neighbors import neighbor_list
from simkit.scenario.catalog import find_scenario
from tests.programs import imprecise, operations, operations_of
from tests.scenarios.small import small
from tests.tables import misses

NUMBERS = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def added(x, number=1):
    """Return x + 1 on a CPU, x - 1 on an accelerator, and an integer."""
    return by_device(
        x,
        number,
        cpu=lambda x, number: (x + jnp.sin(number), jnp.int32(0)),
        accelerator=lambda x, number: (x + jnp.cos(number), jnp.int32(0)),
    )


def lowered(function, *arguments, platform="cuda"):
    return jax.jit(function).trace(*arguments).lower(lowering_platforms=(platform,)).as_text()


def test_each_platform_gets_its_formulation_and_only_that():
    def check(function, *arguments):
        on_cpu, elsewhere = (lowered(function, *arguments, platform=name) for name in ("cpu", "cuda"))
        assert "sine" in on_cpu and "cosine" not in on_cpu
        assert "cosine" in elsewhere and "stablehlo.sine" not in elsewhere

    def of_x(x):
        return by_device(x, cpu=lambda x: (jnp.sin(x),), accelerator=lambda x: (jnp.cos(x),))[0]

    assert not misses(
        {
            "plain": (of_x, NUMBERS),
            "members": (jax.vmap(of_x), NUMBERS),
            "loop": (lambda x: jax.lax.scan(lambda x, _: (of_x(x), None), x, None, length=3)[0], NUMBERS),
            "beside a derivative": (jax.grad(lambda x, y: jnp.sum(x * of_x(y))), NUMBERS, NUMBERS),
        },
        check,
    )


def test_a_program_for_several_platforms_has_both_formulations():
    exported = jax.export.export(jax.jit(lambda x: added(x)[0]), platforms=("cpu", "cuda"))(NUMBERS)
    assert "cosine" in exported.mlir_module()
    np.testing.assert_allclose(exported.call(NUMBERS), NUMBERS + np.sin(1), rtol=1e-6)


def test_derivatives_and_members_are_those_of_the_formulation():
    def slopes():
        return jax.jit(jax.vmap(jax.grad(lambda x: by_device(x, cpu=jnp.sin, accelerator=jnp.cos)[0])))(NUMBERS)

    expected = np.zeros_like(NUMBERS)
    expected[:, 0] = np.cos(NUMBERS[:, 0])
    np.testing.assert_allclose(slopes(), expected, atol=1e-6)
    with formulated_for("accelerator"):
        expected[:, 0] = -np.sin(NUMBERS[:, 0])
        np.testing.assert_allclose(slopes(), expected, atol=1e-6)


def test_a_traced_value_that_is_no_argument_is_refused():
    with pytest.raises(TypeError, match="not among its arguments"):
        jax.jit(lambda x, y: by_device(x, cpu=lambda x: x + y, accelerator=lambda x: x + y))(1.0, 2.0)


def test_barriers_for_speed_are_on_a_cpu_only():
    def squares(x):
        return jnp.sum(computed_once_on_cpu(2 * x) ** 2)

    for function in (squares, jax.grad(squares), jax.vmap(squares)):
        assert "optimization_barrier" in lowered(function, NUMBERS, platform="cpu")
        assert "optimization_barrier" not in lowered(function, NUMBERS)
    np.testing.assert_array_equal(jax.grad(squares)(NUMBERS), 8 * NUMBERS)


def test_members_are_computed_in_blocks_on_a_cpu_and_at_once_elsewhere():
    def cubes(x):
        return in_blocks(lambda x: x**3, x, block=3)

    x = jnp.arange(8.0)
    np.testing.assert_array_equal(jax.jit(cubes)(x), x**3)
    assert "while" in lowered(cubes, x, platform="cpu") and "while" not in lowered(cubes, x)


def test_programs_for_interpreters_have_the_formulation_for_accelerators():
    program = jax.jit(lambda x: added(x)[0])
    before = program(NUMBERS)
    with formulated_for("interpreter"):
        np.testing.assert_allclose(program(NUMBERS), NUMBERS + np.cos(1), rtol=1e-6)
    np.testing.assert_array_equal(program(NUMBERS), before)


def test_products_of_a_cavity_ask_for_full_precision():
    assert not imprecise(small("lid_driven_cavity"))


# Loops and conditions of steps on an accelerator, where each turn costs 9 us or more, and why they stay.
REBUILD = "a list is rebuilt only when it is stale: dozens of kernels otherwise"
CONTROL_FLOW = {
    "channel_flow": {},
    "soft_sphere_packing": {REBUILD: 1},
}
# Operations of these steps, rounded up to the next hundred.
MOST_OPERATIONS = {"channel_flow": 800, "soft_sphere_packing": 1700}


@functools.cache
def counts_of(name):
    return operations(find_scenario(name))


def control_flow_misses(table, most):
    def check(name):
        counts = counts_of(name)
        count, allowed = sum(counts[kind] for kind in ("while", "case", "if")), sum(table[name].values())
        total = sum(counts.values())
        return None if count == allowed and total <= most[name] else f"{count} of {allowed}, {total} operations"

    return misses({name: name for name in table}, check)


def test_steps_on_an_accelerator_have_no_other_loops_and_conditions():
    assert not control_flow_misses(CONTROL_FLOW, MOST_OPERATIONS)


# A channel with implicit friction: products and transforms there and back, of all components and of the pressure; what
# is joined are their batches and a few numbers, where every halo is a sum of padded parts, which stencils absorb.
MOST_LARGE_OPERATIONS = {"dot_general": 4, "fft": 4, "concatenate": 4}


def test_a_flow_on_an_accelerator_has_few_products_and_transforms_and_no_copied_halos():
    counts = counts_of("channel_flow")
    assert not misses(
        {kind: (counts[kind], most) for kind, most in MOST_LARGE_OPERATIONS.items()}, lambda count, most: count <= most
    )


def test_a_result_without_a_slope_passes_a_barrier_in_reverse_mode():
    @jax.checkpoint
    def step(x, _):
        doubled, unit = by_device(x, cpu=lambda x: (2 * x, jnp.ones(())), accelerator=lambda x: (2 * x, 1.0))
        return jnp.multiply(*computed_once((doubled, unit))), None

    def total(x):
        return jnp.sum(jax.lax.scan(step, x, length=3)[0])

    np.testing.assert_array_equal(jax.jit(jax.grad(total))(NUMBERS), jnp.full(NUMBERS.shape, 8.0))


def test_transposes_are_those_of_the_formulation():
    def transposed(x):
        return jax.linear_transpose(
            lambda y: by_device(y, x, cpu=lambda y, x: 2 * x * y, accelerator=lambda y, x: 3 * x * y), x
        )(x)[0]

    np.testing.assert_array_equal(jax.jit(transposed)(NUMBERS), 2 * NUMBERS**2)
    with formulated_for("accelerator"):
        np.testing.assert_array_equal(jax.jit(transposed)(NUMBERS), 3 * NUMBERS**2)


def test_a_neighbor_list_is_built_on_an_accelerator_without_loops_and_conditions():
    def build(position):
        return neighbor_list.build(position, jnp.full(3, 34.0), jnp.float32(2.8), 100)

    # Above 256,000 particles candidates are tested in three parts.
    for particles, most in ((32_000, 830), (1_000_000, 1130)):
        counts = operations_of(build, jax.ShapeDtypeStruct((particles, 3), jnp.float32))
        assert not any(counts[kind] for kind in ("while", "case", "if"))
        assert counts["sort"] == 1 and sum(counts.values()) <= most, (particles, counts)
