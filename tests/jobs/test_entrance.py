"""Calls from Python: under transformations of JAX, and flags that are neither True nor False."""

import jax
import pytest

import simkit
from simkit.errors import UserError
from tests.tables import every

CALLS = {
    "run": lambda **more: simkit.run("projectile", steps=2, every=1, **more),
    "sweep": lambda **more: simkit.sweep("projectile", over={"target_x": [4.0, 5.0]}, steps=2, every=1, **more),
    "optimize": lambda **more: simkit.optimize("projectile", "spin", steps=2, every=1, iterations=1, **more),
    "value_and_grad": lambda **more: simkit.value_and_grad("projectile", "spin", steps=2, every=1, **more),
    "hessian": lambda **more: simkit.hessian("projectile", "spin", steps=2, every=1, **more),
}


@every("transform", [jax.jit, jax.grad], ids=["jit", "grad"])
@every("name", CALLS)
def test_a_call_with_a_traced_parameter_is_refused_in_one_line(name, transform):
    with pytest.raises(UserError, match=f"^simkit.{name} is called under jax.jit, jax.grad or another .*trajectory"):
        transform(lambda speed: CALLS[name](launch_speed=speed))(7.0)


@every("name", CALLS)
def test_a_call_while_jit_traces_is_refused_in_one_line(name):
    with pytest.raises(UserError, match=f"^simkit.{name} is called under jax.jit"):
        jax.jit(CALLS[name])()


@every("value", ["no", 1, None, [True]])
@every("name", [name for name in CALLS if name != "hessian"])
def test_overwrite_is_true_or_false(name, value, tmp_path):
    with pytest.raises(UserError, match=r"^overwrite = .* is neither true nor false"):
        CALLS[name](overwrite=value, output=tmp_path / "out")


@every("flag", ["zip", "final_frames"])
def test_flags_of_a_sweep_are_true_or_false(flag):
    with pytest.raises(UserError, match=f"^{flag} = 'no' is neither true nor false"):
        CALLS["sweep"](**{flag: "no"})
