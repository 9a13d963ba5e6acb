"""Dependence of a function on its arguments."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.dependence import draws, in_steps_only, without_effect
from simkit.core.tracing import traced_once
from tests.core.toys import oscillator
from tests.tables import every


def _through_barrier(p, x):
    return jax.lax.optimization_barrier((p["used"] * x, p["idle"]))[0]


def _through_scan(p, x):
    def turn(carry, number):
        return (carry[0] + p["used"], carry[1] * p["idle"]), number

    return jax.lax.scan(turn, (x, x), None, length=3)[0][0]


def _through_while(p, x):
    def test(carry):
        return carry[0] < p["used"]

    return jax.lax.while_loop(test, lambda carry: (carry[0] + 1, carry[1] + p["idle"]), (x, x))[0]


def _through_carry(p, x):
    """What is carried from turn to turn reaches the result one turn later."""

    def turn(_, carry):
        return carry[1], carry[2], carry[2] + p["used"], carry[3] + p["idle"]

    return jax.lax.fori_loop(0, 4, turn, (x, x, x, x))[0]


def _through_branch(p, x):
    return jax.lax.cond(x > 0, lambda: (p["used"], p["idle"]), lambda: (x, x))[0]


def _through_jit(p, x):
    return jax.jit(lambda used, idle: (used + x, idle))(p["used"], p["idle"])[0]


def _through_checkpoint(p, x):
    return jax.checkpoint(lambda used, idle: (jnp.sin(used) + x, jnp.sin(idle)))(p["used"], p["idle"])[0]


def _through_own_derivative(p, x):
    @jax.custom_jvp
    def both(used, idle):
        return used * x, idle

    both.defjvps(lambda t, *_: (t, t), lambda t, *_: (t, t))
    return both(p["used"], p["idle"])[0]


@every(
    "function",
    [
        _through_barrier,
        _through_scan,
        _through_while,
        _through_carry,
        _through_branch,
        _through_jit,
        _through_checkpoint,
        _through_own_derivative,
    ],
)
def test_what_passes_beside_a_result_has_no_effect_on_it(function):
    params = {"used": jnp.float32(1), "idle": jnp.float32(2)}
    assert without_effect(function, params, jnp.float32(0.5)) == ["idle"]


def test_a_parameter_that_is_compared_alone_changes_a_result_in_steps():
    def inside(p, x):
        return jnp.sum(jnp.where(jnp.abs(x) < p["edge"], p["height"], 0.0)) + jnp.floor(p["rounded"])

    params = {name: jnp.float32(1) for name in ("edge", "height", "idle", "rounded")}
    assert in_steps_only(inside, params, jnp.linspace(-2, 2, 5)) == ["edge", "rounded"]


def test_a_test_for_finite_numbers_is_no_effect():
    def checked(p, x):
        return jnp.where(jnp.isfinite(p["idle"]), p["used"] * x, jnp.nan)

    params = {"idle": jnp.float32(1), "used": jnp.float32(2)}
    assert without_effect(checked, params, jnp.float32(1)) == ["idle"]
    assert not in_steps_only(checked, params, jnp.float32(1))


def test_a_key_that_is_passed_on_and_not_used_draws_nothing():
    simulation = oscillator()
    fixed = traced_once(lambda params, key: simulation.init(params, jax.random.key(0)))
    assert draws(simulation)
    assert not draws(dataclasses.replace(simulation, init=lambda params, key: fixed(params, key)))
