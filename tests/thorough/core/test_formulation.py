"""Products of all scenarios, and the loops and conditions of more steps on an accelerator."""

from tests.core.test_formulation import REBUILD, control_flow_misses
from tests.programs import imprecise
from tests.scenarios.small import NAMES, small
from tests.tables import misses

# Of other libraries: the record, not their functions, asks for full precision.
LIBRARIES = {"ant", "jax_cfd_channel", "jax_md_soft_spheres"}
CONTROL_FLOW = {
    "lennard_jones_fluid": {
        REBUILD: 2,
        "steps between two samples, those of a segment": 2,
        "the last step of a run that has stopped": 1,
        "offsets of the radial distribution, once per sample": 1,
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
    # Sweeps go from contact to contact, and conditions skip loops of hundreds of turns.
    "falling_pile": {"sweeps, rounds and slots of contacts": 19, "contacts, impacts and passing bodies if any": 8},
}
MOST_OPERATIONS = {
    "lennard_jones_fluid": 4900,
    "lennard_jones_crystal": 4600,
    "turbulent_channel": 1900,
    "cylinder_in_channel": 3500,
    "falling_pile": 12300,
}


def test_products_of_every_scenario_ask_for_full_precision():
    assert not misses(
        {name: name for name in NAMES},
        lambda name: "; ".join(sorted(set(imprecise(small(name), bare=name not in LIBRARIES)))) or None,
    )


def test_steps_on_an_accelerator_have_no_other_loops_and_conditions():
    assert not control_flow_misses(CONTROL_FLOW, MOST_OPERATIONS)
