"""Shipped scenarios with settings small enough for quick tests; those not named here are small already."""

from pathlib import Path
from typing import Any

from simkit.scenario.made_in_python import load
from simkit.scenario.scenario import Scenario

ROOT = Path(__file__).parents[2]
# A scenario has the name of its file; none is read when tests are collected.
NAMES = sorted(path.stem for path in (ROOT / "scenarios").glob("*/*.toml"))
FLOWS = sorted(path.stem for path in (ROOT / "scenarios" / "flow").glob("*.toml"))

# Refined axes: the fewest cells across a body that its method accepts.
COARSE = {"cell": 0.25, "growth": 0.6}
# Eight disks of each species.
FEW_DISKS = {f"config.particles.{name}.count": 8 for name in ("small", "large")}

FEWEST_SAMPLES = {"samples": 2, "target_samples": 2, "settle": 0}
# Settings that make one step cheap.
CONFIGURATION: dict[str, dict[str, Any]] = {
    "channel_flow": {"config.axes.x.cells": 8, "config.axes.y.cells": 8},
    # A wave that is neither small nor an eigenmode: its growth depends on every parameter, above round-off.
    "tollmien_schlichting": {"points": [4, 25], "cells": [8, 6], "perturbation": 1e-3, "wall_velocity": 0.1},
    "compliant_bounce": {"config.bodies.1.count": 2, "config.method.substeps": 4},
    "heated_cavity": {"config.axes.x.cells": 8, "config.axes.y.cells": 8},
    "turbulent_channel": {"cells": [6, 8, 6], "sample_every": 2, "settle": 2},
    "viscosity_from_frames": {"cells": [8, 8], "frame_every": 2},
    "jax_cfd_channel": {"cells": [8, 8]},
    "kolmogorov_turbulence": {"cells": 16},
    "couette_poiseuille": {"config.axes.x.cells": 8, "config.axes.y.cells": 8},
    "womersley": {"config.axes.x.cells": 8, "config.axes.y.cells": 8},
    "lid_driven_cavity": {"config.axes.x.cells": 8, "config.axes.y.cells": 8},
    "taylor_green": {"config.axes.x.cells": 16, "config.axes.y.cells": 16},
    "cylinder_in_channel": {
        "config.axes.x.refined": {"cell": 0.2, "from": 1.2, "to": 2.8, "growth": 0.015},
        "config.axes.y.refined": {"cell": 0.2, "from": 1.2, "to": 2.8, "growth": 0.015},
    },
    "drag_reduction": {"config.axes.x.cells": 56, "config.axes.y.cells": 35},
    "stokes_second_problem": {"config.axes.x.cells": 4, "config.axes.y.cells": 8},
    # A wave that is large compared with the step of a central difference.
    "rayleigh_benard_onset": {"config.axes.x.cells": 8, "config.axes.y.cells": 8, "disturbance": 0.05},
    "side_by_side_cylinders": {
        "config.axes.x.refined": {"cell": 0.2, "from": -0.6, "to": 0.6, "growth": 0.6},
        "config.axes.y.refined": {"cell": 0.2, "from": -2.0, "to": 2.0, "growth": 0.6},
    },
    "oscillating_cylinder": {
        f"config.axes.{axis}.refined.{key}": value for axis in "xy" for key, value in COARSE.items()
    },
    "sphere_in_stream": {f"config.axes.{axis}.refined.{key}": value for axis in "xyz" for key, value in COARSE.items()},
    "soft_sphere_packing": FEW_DISKS,
    "monodisperse_packing": {"config.particles.disk.count": 16},
    # At the onset itself contacts open and close within the step of a central difference.
    "jamming": {"particles": 16, "pressure": 1e-2, "force_tolerance": 1e-12},
    "silicon": {"config.start.repeats": [2, 2, 2]},
    "copper_eam": {"config.start.repeats": [2, 2, 2], "config.interactions.0.method": "all_pairs"},
    "salt_crystal": {
        "config.start.repeats": [1, 1, 1],
        "config.particles.Na.count": 4,
        "config.particles.Cl.count": 4,
    },
    # Few pairs over short times: hardly one crosses a knot of its splines within the step of a central difference.
    "learned_pair": {"side": 4, "knots": 4, "ridge": 1.0, "sample_steps": 1, "held_out": 1, **FEWEST_SAMPLES},
    "silicon_phonons": {"config.phonons.points": 4, "config.phonons.density_of_states.mesh": [2, 2, 2]},
    "silicon_vacancy": {"config.start.structure": ROOT / "tests" / "data" / "silicon_vacancy_63.xyz"},
    # An unstable honeycomb amplifies round-off, and so changes the number of iterations; this one is stable.
    "colloid_self_assembly": {"repeats": [4, 2], "well_distance": 1.85},
    "lennard_jones_fluid": {
        "config.start.repeats": [4, 4, 4],
        "config.interactions.0.cutoff": 3.0,
        "config.averages.radial_distribution.reach": 3.0,
        "config.averages.every": 2,
        "config.averages.skip": 2,
    },
    # Three iterations per trial: every phase of the search within a few steps. Four atoms have one minimum, which even
    # such short trials reach whatever the round-off.
    "lennard_jones_cluster": {"particles": 4, "hops": 2, "quench_steps": 3},
    "bubble_raft": {"repeats": [4, 3]},
    # Cooled for a few steps only, so that both ends of a central difference relax to the same minimum.
    "binary_glass": {
        "config.particles.A.count": 8,
        "config.particles.B.count": 4,
        "config.dynamics.steps": 4,
        "config.interactions.0.cutoff": "1.7*s",
    },
    # Chains that touch, over times before chaos.
    "polymer_melt": {
        "config.molecules.chain.atoms": {"bead": 5},
        "config.molecules.chain.count": 6,
        "config.averages.every": 2,
        "config.averages.skip": 2,
    },
    "polymer_in_bath": {
        "config.molecules.chain.count": 3,
        "config.averages.every": 2,
        "config.averages.skip": 2,
        "config.averages.correlation.lags": 3,
    },
    # Stiff bonds: the first steps of L-BFGS multiply round-off.
    "alanine_dipeptide": {"config.relax.minimizer": "conjugate_gradient"},
    # A few molecules, in cells that are wide enough for short cut-offs.
    "water_box": {
        "config.dimension": 3,
        "config.molecules.water.count": 8,
        "config.molecules.water.coordinates": [[0.0, 0.0, 0.0], [0.08165, 0.05774, 0.0], [-0.08165, 0.05774, 0.0]],
        "config.start": {"kind": "random", "separation": 0.9},
        "config.interactions.0": {"potential": "particle_mesh_ewald", "tolerance": 1e-2, "order": 4, "cutoff": 0.3}
        | {"values": {"coulomb_constant": 138.93545764}},
        "config.interactions.1.cutoff": 0.3,
        "config.averages.radial_distribution.reach": 0.3,
        "config.averages.every": 2,
        "config.averages.skip": 2,
        "config.dynamics.interval": 2,
        "time_step": 5e-4,
        # The derivative agrees to 2e-10 with differences over 10 bar, and only to 1e-3 over the usual step at 1 bar, of
        # 6e-6 bar, whose effect is round-off.
        "pressure": 2e4,
    },
    # In flight, and between recorded frames, where linear interpolation has kinks.
    "cube_toss": {"config.method.substeps": 4, "time_step": 0.0085},
    # Longer steps, so that impacts happen within the few steps.
    "newtons_cradle": {"config.bodies.0.count": 3, "time_step": 0.05},
    "billiards_break": {"rows": 2, "impacts": 12, "time_step": 0.02},
    # One ball: through an impact the wide step in time of a central difference meets the kinks of the contact force.
    "hanging_cradle": {
        "config.bodies.0.count": 1,
        "config.joints.0.count": 1,
        "config.method.contact.substeps": 2,
        "time_step": 0.03,
    },
    # Few grains above few bumps, in free fall: a collapse is chaotic.
    "granular_column": {
        "config.bodies.1.grid.counts": [7, 1, 3],
        "config.bodies.2.count": 7,
        "config.method.sweeps": 2,
        "time_step": 0.0002,
    },
    # In flight its legs move it by only 1e-4 m, comparable to the round-off of its size.
    "ant": {"initial_velocity": [1.0] + [0.0] * 13},
    # In flight: where feet land depends on every number with a kink.
    "hopper": {
        "initial_position": [0.0, 1.5, 0.1, -0.6, 1.2, -0.6],
        "initial_velocity": [0.5, 0.4, 0.3, 0.2, 0.1, 0.6],
    },
    "half_cheetah": {
        "initial_position": [0.0, 1.0, 0.3, 0.1, -0.1, 0.2, -0.2, 0.1, 0.1],
        "initial_velocity": [0.5, 0.4, 0.3, 0.2, 0.1, 0.6, 0.3, 0.2, 0.4],
    },
    "humanoid": {
        "initial_position": [0.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0] + [0.1, 0.2, -0.2, 0.4] + [0.2] * 9,
        "initial_velocity": [0.5, 0.4, 0.3, 0.2, 0.1, 0.6] + [0.3] * 13,
    },
    # Long steps, with an impact among the few. A light hub would multiply rounding by (I + m l^2) / I = 1000; and a
    # spoke that stands without pressure would be lifted by half of all scattered velocities.
    "rimless_wheel": {
        "initial_velocity": [1.847759065022573, 0.6, 2.0],
        "armature.turn": 0.5,
        "time_step": 0.05,
    },
    # A box that slips: one that is held moves by round-off only.
    "grasp": {"squeeze": 5.0},
    # Two boxes that have just landed, the lower one sliding: smooth within the few steps.
    "box_stack": {"config.bodies.1.count": 2, "drop": 0.001, "push": 0.5},
    # A pile is chaotic; a ball, a box and a capsule before their first impacts are not.
    "falling_pile": {
        **{f"config.bodies.{kind}.grid.counts": [1, 1, 1] for kind in range(3)},
        "config.method.sweeps": 4,
        "spacing": 0.27,
        "time_step": 0.02,
    },
}

FEW_STEPS = {"steps": 12, "every": 3}

# Scenarios whose derivative is tested over all steps, such as a whole throw with its bounces or a relaxation.
TO_THE_END = (
    "alanine_dipeptide",
    "binary_glass",
    "bouncing_ball",
    "colloid_self_assembly",
    "copper_eam",
    "bubble_raft",
    "heavy_top",
    "jamming",
    "jax_md_soft_spheres",
    "lennard_jones_cluster",
    "lennard_jones_crystal",
    "monodisperse_packing",
    "mueller_brown",
    "salt_crystal",
    "silicon",
    "silicon_phonons",
    "silicon_vacancy",
    "soft_sphere_packing",
    "steered_puck",
    "system_identification",
    "tollmien_schlichting",
    "trapped_charges",
)


def small(name: str, **values: Any) -> Scenario:
    """Return a shipped scenario, small, over a few steps, in float64."""
    return load(name, {**CONFIGURATION.get(name, {}), **FEW_STEPS, "precision": "float64", **values})


def small_to_the_end(name: str) -> Scenario:
    """Return a shipped scenario, small, in float64, over all its steps if it is in `TO_THE_END`."""
    run = load(name).run
    return small(name, **({"steps": run.steps, "every": run.every} if name in TO_THE_END else {}))


def settings(values: dict[str, Any]) -> list[str]:
    """Return values as arguments of the command line."""
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
