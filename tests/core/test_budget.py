"""Derivatives within a memory limit."""

import jax

from simkit.core.objective import Objective
from simkit.core.pytrees import size_in_bytes
from simkit.core.rollout import SMALL_BYTES, nesting_of, nesting_within
from tests.core.toys import oscillator
from tests.tables import every

KEY = 7
SIZE = 4096  # of the oscillator: a state of 32 kB


def state_size():
    simulation = oscillator(SIZE)
    return size_in_bytes(jax.eval_shape(simulation.init, simulation.params, jax.random.key(KEY)))


def compiled_size(steps, memory, **how):
    simulation = oscillator(SIZE)
    objective = Objective(simulation, "energy", steps, memory=memory, **how)
    program = jax.jit(jax.grad(objective)).lower(simulation.params, jax.random.key(KEY)).compile()
    return program.memory_analysis().temp_size_in_bytes


def test_more_memory_computes_steps_less_often():
    found = [nesting_within((100_000,), 10**6, memory).levels for memory in (10**8, 2 * 10**8, 10**9, 10**12)]
    assert found == sorted(found, reverse=True) and found[0] > found[-1] == 2


@every("loops", [(1,), (7,), (97,), (1000,), (100, 10), (13, 17), (1, 4096)])
@every("memory", [0, 10 * SMALL_BYTES, 50 * SMALL_BYTES, 10**12])
def test_the_nesting_chosen_fits_wherever_one_does(loops, memory):
    size = SMALL_BYTES  # so that no loop of two turns is held whole for being little
    found = nesting_within(loops, size, memory)
    widths = range(4, max(loops) + 5)
    best = min((nesting_of(loops, size, width) for width in widths), key=lambda nesting: nesting.states)
    assert found.states * size <= memory or found.states <= 1.2 * best.states
    fitting = [n.levels for width in widths if (n := nesting_of(loops, size, width)).states * size <= memory]
    if fitting and found.states * size <= memory:
        assert found.levels <= min(fitting) + 1
