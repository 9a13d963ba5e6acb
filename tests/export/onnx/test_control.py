"""Loops and branches, each as one Loop, Scan or If, nested and with closures."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest
from jax import lax

pytest.importorskip("onnxruntime")

from simkit.core.rollout import segment
from simkit.export.onnx.runtime import convert
from tests.core.toys import oscillator
from tests.export.onnx.agreement import check, check_all


def operators(converted):
    """Return the operators of the outermost graph."""
    return [node.op_type for node in converted.model.graph.node]


def nested(x, n):
    """A scan in a while loop in a cond, with integers in the state and closures at each level."""
    scale = jnp.sin(x)

    def outer(state):
        count, total = state
        ratio = total * scale

        def inner(carry, row):
            return carry + row * ratio, (carry, count)

        total, rows = lax.scan(inner, total, x)
        return count + 1, jnp.tanh(total) + rows[0].sum()

    return lax.cond(n > 2, lambda: lax.while_loop(lambda s: s[0] < n, outer, (jnp.int32(0), x)), lambda: (n, 2 * x))


def test_nested_control_flow_agrees(x64):
    x = jnp.asarray([0.5, -1.0])
    converted = check(nested, x, jnp.int32(0), rtol=1e-13, also=[(x, jnp.int32(3)), (x, jnp.int32(5))])
    assert operators(converted).count("If") == 1 and "Loop" not in operators(converted)


def test_while_loop_of_any_length_agrees(x64):
    def run(n):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2, ~s[2]), (0, 1.5, True))

    converted = check(run, 0, rtol=0, also=[(1,), (4,)])
    assert operators(converted).count("Loop") == 1


def test_scan_of_any_length_and_direction_agrees(x64):
    def run(reverse, x, y):
        return lax.scan(lambda c, r: ((c[0] + r[0], c[1]), {"a": c[0], "b": r[1]}), (y, 3), (x, x > 1), reverse=reverse)

    table = {
        f"{length}, reverse = {reverse}": (partial(run, reverse), (jnp.arange(1.0 * length), 2.0))
        for length in (0, 1, 5)
        for reverse in (False, True)
    }
    kinds = operators(check_all(table, rtol=0))
    # A scan of no or one row is no loop.
    assert kinds.count("Scan") == 2 and "Loop" not in kinds


def test_scan_without_inputs_agrees(x64):
    def run(x):
        return [lax.scan(lambda c, _: (c * 2, c), x, length=4, reverse=reverse) for reverse in (False, True)]

    check(run, 1.5, rtol=0)


def test_switch_clips_its_index(x64):
    branches = [lambda x: x, lambda x: 2 * x, lambda x: jnp.cos(x)]
    x = jnp.arange(3.0)
    check(lambda i, x: lax.switch(i, branches, x), -1, x, rtol=1e-15, also=[(i, x) for i in (0, 1, 2, 7)])


def test_loop_invariants_are_hoisted(x64):
    def run(a, x):
        return lax.fori_loop(0, 4, lambda i, x: jnp.tanh(jnp.exp(a) @ x), x)

    converted = check(run, jnp.eye(3), jnp.arange(3.0), rtol=1e-14)
    assert "Exp" in operators(converted) and "MatMul" not in operators(converted)


def test_derivatives_by_either_mode_agree(x64):
    def energy(x):
        y = lax.scan(lambda c, r: (jnp.sin(c) * r, c), x[0], x)[0]
        return jax.checkpoint(lambda z: lax.while_loop(lambda s: s < 9, lambda s: s + 1, 5) * jax.nn.softplus(z))(y)

    check(lambda x: (jax.grad(energy)(x), jax.jacfwd(energy)(x)), jnp.arange(1.0, 4), rtol=1e-13)


def test_custom_derivatives_solves_and_calls_are_converted(x64):
    @jax.custom_vjp
    def root(x):
        return jnp.sqrt(x)

    root.defvjp(lambda x: (root(x), x), lambda x, g: (g / 7,))

    def run(a, b):
        solved = lax.custom_linear_solve(lambda x: a * x, b, lambda _, b: b / a, symmetric=True)
        return lax.optimization_barrier((jax.jit(root)(b), jax.nn.relu(b), solved, jax.grad(root)(b[0])))

    check(run, jnp.asarray([2.0, 4.0]), jnp.asarray([1.0, 9.0]), rtol=1e-15)


def test_batched_while_loop_ends_for_each_member_separately(x64):
    def halve(x, limit):
        return lax.while_loop(lambda s: s[0] > limit, lambda s: (s[0] / 2, s[1] + 1), (x, jnp.int32(0)))

    x, limits = jnp.array([0.5, 9.0, 100.0]), jnp.array([1.0, 1.0, 30.0])
    assert operators(convert(jax.vmap(halve), x, limits)).count("Loop") == 1
    table = {
        "both": (jax.vmap(halve), (x, limits)),
        "nested": (jax.vmap(jax.vmap(halve, (0, None)), (None, 0)), (x, limits)),
        "one limit": (jax.vmap(halve, (0, None)), (jnp.array([0.1, 0.2]), 1.0)),
    }
    check_all(table, rtol=0)


def test_batched_while_loop_keeps_the_keys_of_each_member(x64):
    def draw(key, count):
        def turn(carry):
            key, total, turns = carry
            key, drawn = jax.random.split(key)
            return key, total + jax.random.uniform(drawn), turns + 1

        return lax.while_loop(lambda carry: carry[2] < count, turn, (key, jnp.zeros(()), jnp.int32(0)))

    check(jax.vmap(draw), jax.random.split(jax.random.key(3), 3), jnp.array([0, 2, 5], jnp.int32), rtol=1e-15)


def test_uninitialized_arrays_are_converted():
    check(lambda x: lax.empty((3,), jnp.float32).at[:].set(x), jnp.arange(3.0), rtol=0)


def test_derivative_through_branches_agrees(x64):
    """Each branch returns the residuals of the other one's derivative as uninitialized arrays."""

    def branched(x):
        return lax.cond(x > 0, lambda x: jnp.sin(x) * jnp.exp(x), lambda x: x**3, x)

    assert "empty" in str(jax.make_jaxpr(jax.grad(branched))(0.7))
    check(jax.value_and_grad(branched), 0.7, rtol=1e-14, also=[(-0.7,)])


def test_segment_is_one_loop(x64):
    simulation = oscillator(3)
    state = simulation.init(simulation.params, jax.random.key(0))
    kinds = operators(check(segment(simulation, 3), state, simulation.params, rtol=1e-14))
    assert kinds.count("Loop") == 1 and "Scan" not in kinds
