"""Products of all scenarios, and the loops and conditions of more steps on an accelerator."""

from tests.core.test_formulation import REBUILD, control_flow_misses
from tests.programs import imprecise, repeated_additions
from tests.scenarios.small import NAMES, small
from tests.tables import misses

# Of other libraries: the record, not their functions, asks for full precision.
LIBRARIES = {"ant", "jax_cfd_channel", "jax_md_soft_spheres"}
CONTROL_FLOW = {
    "lennard_jones_fluid": {
        REBUILD + ", by steps and once per sample": 2,
        "steps between two samples, in groups that reverse mode stores": 2,
        "steps of a run that has stopped: a selection would copy the list": 1,
    },
    "lennard_jones_crystal": {REBUILD: 1, "branches of the minimizer": 2},
    "turbulent_channel": {
        "stages of Runge-Kutta: unrolled they compile three times as long": 1,
        "steps between two samples: a segment, as the steps of a run are": 1,
    },
    "cylinder_in_channel": {
        "nearest points of the outline, by bisection": 2,
        "conjugate gradients of the forces": 1,
        "stages of Runge-Kutta": 1,
    },
    # Of a fixed number of turns, 9 us each; a contact changes the velocities that the next one sees.
    "falling_pile": {
        "sweeps, and in each the planes and the rounds of pairs": 3,
        "passes of impacts, and in each the planes and the rounds of pairs": 3,
        "impacts, if any: 112 turns otherwise": 1,
        "a separating axis of pairs that may pass each other, until all are decided": 1,
        "such pairs, if any": 1,
    },
    "billiards_break": {"events of a step": 1, "an event, unless the step has ended: a hundred kernels": 1},
}
MOST_OPERATIONS = {
    "lennard_jones_fluid": 4900,
    "lennard_jones_crystal": 4600,
    "turbulent_channel": 1900,
    "cylinder_in_channel": 3500,
    "falling_pile": 13000,
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
