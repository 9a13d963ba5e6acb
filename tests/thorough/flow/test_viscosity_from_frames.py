"""Reynolds number and forcing are identified from noisy frames, within the standard error."""

import jax

import simkit
from simkit.core.estimation import standard_errors
from simkit.flow.systems.viscosity_from_frames import viscosity_from_frames
from tests.physics.test_viscosity_from_frames import TRUE, at_truth


def test_shipped_optimization_finds_the_truth_within_its_standard_error():
    found = simkit.optimize("viscosity_from_frames", ["reynolds", "forcing"], iterations=20)
    with jax.enable_x64(True):
        simulation = viscosity_from_frames()
        errors = standard_errors(simulation, at_truth(simulation), 40, tuple(TRUE), "uv")
    for name, truth in TRUE.items():
        assert abs(float(found[f"best_{name}"][-1]) - truth) < 4 * errors[name], (name, errors)
