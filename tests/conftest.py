"""Fixtures shared by every test."""

import jax
import pytest

from tests.measure import SLOW, heavy_tests


@pytest.fixture
def x64():
    """Run the test in float64."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True, scope="session")
def compilation_cache(tmp_path_factory):
    """Compile each program once per machine, not once per test process."""
    from simkit.core.compilation import use_compilation_cache

    use_compilation_cache()


# Compiling these takes up to half a minute each; tests that do so run with -m slow.
SLOW_TO_COMPILE = (
    "ant",
    "billiards_break",
    "binary_glass",
    "box_stack",
    "bubble_raft",
    "colloid_self_assembly",
    "compliant_bounce",
    "cylinder_in_channel",
    "double_pendulum",
    "drag_reduction",
    "falling_pile",
    "four_bar_linkage",
    "heated_cavity",
    "jamming",
    "jax_md_soft_spheres",
    "jax_cfd_channel",
    "kolmogorov_turbulence",
    "lennard_jones_cluster",
    "lennard_jones_crystal",
    "lennard_jones_fluid",
    "lid_driven_cavity",
    "monodisperse_packing",
    "newtons_cradle",
    "nose_hoover",
    "rolling_ball",
    "silicon",
    "silicon_vacancy",
    "sliding_block",
    "steered_puck",
    "system_identification",
    "tollmien_schlichting",
    "trapped_charges",
    "turbulent_channel",
    "viscosity_from_frames",
    "womersley",
)
# These tests only trace.
COMPILE_NOTHING = (
    "test_step_keeps_shapes_and_dtypes_without_weak_types",
    "test_every_number_has_the_requested_precision",
    "test_diagnostics_contain_the_time_or_the_iteration",
    "test_observed_arrays_have_named_dimensions",
    "test_every_quantity_has_a_unit_and_a_meaning",
)


@pytest.fixture(autouse=True, scope="module")
def clear_compiled_programs():
    """Clear the compiled programs of a module, which would fill the memory of a test process."""
    yield
    jax.clear_caches()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    heavy = heavy_tests()
    for item in items:
        if item.nodeid in heavy:
            item.add_marker(pytest.mark.slow if heavy[item.nodeid] > SLOW else pytest.mark.thorough)
        values = item.callspec.params if hasattr(item, "callspec") else {}
        # Tests are distributed over the workers by file, those of the contract by scenario.
        item.add_marker(pytest.mark.xdist_group(str(values.get("contract", item.path))))
        name = values.get("contract", values.get("name"))
        compiles = item.path.parent.name in ("scenarios", "export", "jobs") and item.originalname not in COMPILE_NOTHING
        if compiles and name in SLOW_TO_COMPILE:
            item.add_marker(pytest.mark.slow)


# Printed at the end of a run of the tests: the scenarios for which each of these passed.
CLAIMS = {
    "compiled and ran as stored": "test_driven_run_equals_the_trajectory_bit_for_bit",
    "differentiated": "test_derivatives_equal_central_differences_and_each_other",
    "exported": "test_exported_program_runs_and_differentiates_any_batch",
}


def pytest_terminal_summary(terminalreporter):
    passed = [report.nodeid.partition("@")[0] for report in terminalreporter.stats.get("passed", [])]
    lines = []
    for claim, test in CLAIMS.items():
        names = sorted({name.partition("[")[2][:-1] for name in passed if f"::{test}[" in name})
        if names:
            lines.append(f"{claim}: {len(names)} scenarios: {', '.join(names)}")
    if lines:
        terminalreporter.section("scenarios")
        terminalreporter.write("\n".join(lines) + "\n")
