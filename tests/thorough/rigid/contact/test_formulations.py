"""Contacts formulated for accelerators, on the CPU."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import formulated_for
from simkit.core.precision import precision
from simkit.scenario.build import build
from tests.scenarios.small import small
from tests.tables import every

# Scenarios, the settings that differ from small ones, and the number of steps until bodies have met.
SCENES = {
    "pile": ("falling_pile", {"config.bodies.0.grid.counts": [2, 1, 1], "spacing": 0.37}, 48),
    "exact impacts": ("billiards_break", {}, 32),
}
MEMBERS = 16
# Roundings of the largest of a quantity: contacts round a velocity a few times in each of 4 sweeps and 4 passes over 5
# planes and 3 rounds; measured are 1.1 in float64.
ROUNDINGS = 100


def compiled(function, *arguments):
    """Return the number of loops of a program, and its result, compiled in a third of the usual time."""
    program = jax.jit(function).lower(*arguments)
    loops = program.as_text().count("stablehlo.while")
    return loops, program.compile({"xla_backend_optimization_level": 0})(*arguments)


@every(SCENES)
def test_both_formulations_of_contacts_agree_for_members_and_derivatives_too(x64, name, settings, steps):
    def built(kind):
        return build(small(name, **settings, precision=kind))

    first = built("float64")

    def run(state):
        return jax.lax.scan(lambda s, _: (first.step(s, first.params), s), state, None, length=steps)[1]

    _, states = compiled(run, first.init(first.params, jax.random.key(0)))
    states = jax.tree.map(lambda array: array[:: steps // MEMBERS], states)
    met = (states.memory.impacts > 0) if name == "billiards_break" else states.memory.struck
    assert met.any() and not met.all()
    if name == "falling_pile":
        assert (states.memory.pushes.pairs.along > 0).any()
    for kind in ("float64", "float32"):
        with precision(kind):
            simulation = built(kind)
            some = jax.tree.map(lambda array, kind=kind: array.astype(kind) if array.dtype == float else array, states)

            def after(factor, state, simulation=simulation):
                velocity = jax.tree.map(lambda values: factor * values, state.motion.velocity)
                state = dataclasses.replace(state, motion=dataclasses.replace(state.motion, velocity=velocity))
                state = simulation.step(state, simulation.params)
                return sum(map(jnp.sum, jax.tree.leaves((state.motion.position, state.motion.velocity)))), state

            of_one = jax.value_and_grad(after, has_aux=True) if kind == "float64" else after
            results = []
            for target in ("cpu", "accelerator"):
                with formulated_for(target):
                    results.append(compiled(jax.vmap(of_one, (None, 0)), jnp.ones((), kind), some))
            (loops, on_cpu), (fewer, elsewhere) = results
            assert fewer < loops
            for one, other in zip(*map(jax.tree.leaves, (on_cpu, elsewhere)), strict=True):
                is_float = jnp.issubdtype(one.dtype, jnp.inexact)
                bound = ROUNDINGS * float(jnp.finfo(one.dtype).eps) * float(jnp.abs(one).max()) if is_float else 0
                np.testing.assert_allclose(one, other, rtol=0, atol=bound)
