"""Whole programs in onnxruntime: their size, and converters of other packages."""

import subprocess
import sys

import jax
import pytest

pytest.importorskip("onnxruntime")

from simkit.export.onnx.runtime import convert
from simkit.scenario.build import build
from tests.scenarios.small import small


@pytest.mark.parametrize(
    "particles",
    [
        16,
        pytest.param(
            500,
            marks=pytest.mark.xfail(
                strict=True,
                reason="742 nodes, more than half of them in the branch that updates the neighbor list",
            ),
        ),
    ],
)
def test_fire_step_has_at_most_200_nodes(particles):
    counts = {f"config.particles.{name}.count": particles // 2 for name in ("small", "large")}
    simulation = build(small("soft_sphere_packing", **counts, precision="float32"))
    state = jax.eval_shape(simulation.init, simulation.params, jax.random.key(0))
    assert convert(simulation.step, state, simulation.params).nodes <= 200


def test_converter_of_another_package_is_used():
    # In a process of its own: registered before anything is converted.
    program = """
import jax, jax.numpy as jnp, simkit
from jax.extend.core import Primitive
from simkit.export.onnx.registry import primitive

mine = Primitive("mine")
mine.def_abstract_eval(lambda x: x)

@primitive("mine")
def convert(graph, equation, x):
    return graph.elementwise("Neg", x)

print(simkit.onnxjit(lambda x: mine.bind(x) + 1)(jnp.ones(2)))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[0. 0.]"
