"""Products of all scenarios, and the loops and conditions of more steps on an accelerator."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import formulated_for
from simkit.core.precision import precision
from simkit.core.rollout import segment
from simkit.scenario.build import build
from tests.core.test_formulation import REBUILD, control_flow_misses
from tests.programs import imprecise, repeated_additions
from tests.scenarios.small import NAMES, small
from tests.tables import every, misses

# Of other libraries: the record, not their functions, asks for full precision.
LIBRARIES = {"ant", "jax_cfd_channel", "jax_md_soft_spheres"}
# Of a fixed number of turns, 9 us each; a contact changes the velocities that the next one sees.
PILE = {
    "sweeps, and in each the planes and the rounds of pairs": 3,
    "passes of impacts, and in each the planes and the rounds of pairs": 3,
    "impacts, if any: dozens of turns otherwise, 112 of a pile": 1,
    "a separating axis of pairs that may pass each other, until all are decided": 1,
    "such pairs, if any": 1,
}
CONTROL_FLOW = {
    "lennard_jones_fluid": {
        REBUILD + ", by steps and once per sample": 2,
        "steps between two samples, in groups that reverse mode stores": 2,
        "steps of a run that has stopped: a selection would copy the list": 1,
    },
    "lennard_jones_crystal": {REBUILD: 1},
    "silicon": {REBUILD: 1},
    "copper_eam": {REBUILD: 1},
    "salt_crystal": {"distance of a bond at rest, by Newton's method": 1},
    "polymer_melt": {
        REBUILD + ", by steps and once per sample": 2,
        "steps between two samples": 1,
        "steps of a run that has stopped: a selection would copy the list": 1,
    },
    "water_box": {
        REBUILD + ", by steps, when the cell changes and once per sample": 3,
        "stress for the barostat, every tenth step: as dear as the forces": 1,
        "steps between two samples, in groups that reverse mode stores": 2,
        "steps of a run that has stopped": 1,
        "pairs of all particles in parts, for the radial distribution": 1,
        "random numbers of a gamma distribution, by rejection": 2,
    },
    "turbulent_channel": {
        "stages of Runge-Kutta: unrolled they compile three times as long": 1,
        "steps between two samples: a segment, as the steps of a run are": 1,
    },
    "cylinder_in_channel": {
        "nearest points of the outline, by bisection": 2,
        "conjugate gradients of the forces": 1,
        "stages of Runge-Kutta": 1,
    },
    "falling_pile": PILE,
    "box_stack": PILE,
    "granular_column": {
        "sweeps and passes of impacts, as in a pile, with rounds of near pairs": 7,
        "impacts, if any": 1,
        "pairs near each other: places in a list by bisection": 2,
        "attempts to give pairs colors, of which a round has one": 1,
        "a separating axis, until all are decided, and such pairs, if any": 2,
        "rounds of near pairs": 2,
    },
    "humanoid": {
        "steps of Newton's method for contacts, and iterations before them": 2,
        "elimination of a matrix, column by column": 3,
        "substeps": 1,
    },
    "billiards_break": {"events of a step": 1, "an event, unless the step has ended: a hundred kernels": 1},
}
MOST_OPERATIONS = {
    "lennard_jones_fluid": 4900,
    "lennard_jones_crystal": 4600,
    "turbulent_channel": 1900,
    "cylinder_in_channel": 3500,
    "silicon": 3500,
    "copper_eam": 7900,
    "salt_crystal": 3800,
    "polymer_melt": 4400,
    "water_box": 38800,
    "falling_pile": 13000,
    "box_stack": 10600,
    "granular_column": 5300,
    "humanoid": 9300,
    "billiards_break": 2900,
}


def test_products_of_every_scenario_ask_for_full_precision():
    assert not misses(
        {name: name for name in NAMES},
        lambda name: "; ".join(sorted(set(imprecise(small(name), bare=name not in LIBRARIES)))) or None,
    )


# The descent that straightens walks at the start is a derivative of gathers.
ADDED = "simkit/molecular/description/packing.py"


def additions(name):
    return set(repeated_additions(small(name)))


def test_runs_on_an_accelerator_add_no_floats_at_indices_that_repeat():
    # So that two runs give the same bytes. Derivatives of gathers do add so: they need deterministic operations of XLA.
    names = {name: name for name in NAMES if name not in LIBRARIES}
    assert not misses(
        names,
        lambda name: "; ".join(line for line in additions(name) if ADDED not in line) or None,
    )


def test_steps_on_an_accelerator_have_no_other_loops_and_conditions():
    assert not control_flow_misses(CONTROL_FLOW, MOST_OPERATIONS)


# Small scenarios with kernels that have two formulations; those of long neighbor lists are compared with the lists.
KERNELS = (
    *("channel_flow", "heated_cavity", "cylinder_in_channel", "turbulent_channel"),
    *("lennard_jones_fluid", "silicon", "water_box"),
    *("billiards_break", "box_stack", "granular_column", "compliant_bounce", "hopper"),
)
FEW_STEPS = 2
# Of values and of derivatives, relative to the largest number of an array, or to LEAST where all are nearly zero.
ROUNDING = {"float64": (1e-11, 1e-8), "float32": (1e-4, 1e-2)}
LEAST = 1e-3
# Pressures are made of velocities by a division by the time step, 0.01.
OF_PRESSURE = 100
# Where lists were built: a list of an accelerator is built anew for all members if one of them is stale.
BUILT = ".neighbors.reference"


def of_both_formulations(scenario):
    """Yield the states of two members after a few steps, and their derivatives along all parameters."""
    with precision(scenario.run.precision):
        start = None
        for target in ("cpu", "accelerator"):
            with formulated_for(target):
                # A simulation keeps what was traced once.
                simulation = build(scenario)
                if start is None:
                    start = jax.jit(simulation.init)(simulation.params, jax.random.key(scenario.run.seed))
                factors = 1e-3 * jnp.arange(2.0)
                yield jax.jit(jax.vmap(_moved(simulation, start)))(factors)


def _moved(simulation, start):
    def moved(factor):
        params = jax.tree.map(lambda leaf: leaf * (1 + factor).astype(leaf.dtype), simulation.params)
        leaves = jax.tree.leaves_with_path(segment(simulation, FEW_STEPS)(start, params))
        return {jax.tree_util.keystr(path): x for path, x in leaves if jnp.issubdtype(x.dtype, jnp.floating)}

    return lambda factor: jax.jvp(moved, (factor,), (jnp.ones_like(factor),))


def differences(scenario):
    """Yield what is compared, by how much both formulations differ in it, and the allowed difference."""
    for digits, allowed in ROUNDING.items():
        run = dataclasses.replace(scenario.run, precision=digits)
        one, other = of_both_formulations(dataclasses.replace(scenario, run=run))
        for kind, most, a, b in zip(("value", "derivative"), allowed, one, other, strict=True):
            for name in (name for name in a if BUILT not in name):
                scale = np.nanmax(np.abs(a[name]), initial=LEAST)
                is_same = (a[name] == b[name]) | (np.isnan(a[name]) & np.isnan(b[name]))
                error = np.max(np.where(is_same, 0, np.abs(a[name] - b[name])), initial=0) / scale
                yield f"{digits} {kind} of {name}", error, most * (OF_PRESSURE if name == ".pressure" else 1)


@every("name", KERNELS)
def test_both_formulations_of_members_and_derivatives_agree_to_round_off(name):
    wrong = [f"{what}: {error:.1e}" for what, error, most in differences(small(name)) if not error <= most]
    return "; ".join(wrong) or None
