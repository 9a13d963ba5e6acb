"""The claims of quick tests on the grids, domains and methods that those leave out."""

from itertools import product

import pytest

from tests.flow import (
    test_diffusion_solver,
    test_direct_forcing,
    test_eddies,
    test_measures,
    test_open_sides,
    test_operators,
    test_pressure_solver,
    test_scalar,
    test_statistics,
    test_stepper,
    test_viscosity,
    test_wall_slopes,
)
from tests.flow.flows import CHANNELS, DOMAINS, SCHEMES, over, some
from tests.thorough.flow import test_diffusion_solver as longer_diffusion_solver
from tests.thorough.flow import test_eddies as longer_eddies
from tests.thorough.flow import test_open_sides as longer_open_sides
from tests.thorough.flow import test_operators as longer_operators
from tests.thorough.flow import test_pressure_sides as longer_pressure_sides
from tests.thorough.flow import test_pressure_solver as longer_pressure_solver
from tests.thorough.flow import test_scalar as longer_scalar
from tests.thorough.flow import test_shapes as longer_shapes
from tests.thorough.flow import test_statistics as longer_statistics
from tests.thorough.flow import test_viscosity as longer_viscosity

pytestmark = pytest.mark.usefixtures("x64")

METHODS = ("elimination", "modes")
OPERATORS = (
    longer_operators.test_gradient_is_minus_the_adjoint_of_divergence,
    longer_operators.test_advection_conserves_kinetic_energy_of_a_solenoidal_flow,
    test_operators.test_upwind_advection_dissipates_kinetic_energy,
    test_operators.test_advection_conserves_momentum_along_periodic_axes,
    test_operators.test_viscous_term_dissipates_kinetic_energy,
    test_operators.test_laplacian_of_sides_at_rest_is_the_product_with_its_matrices,
    test_measures.test_kinetic_energy_is_half_the_square_of_the_velocity,
)
SLOPES = (
    test_wall_slopes.test_symmetric_friction_is_self_adjoint,
    test_wall_slopes.test_symmetric_friction_dissipates_the_sum_of_the_squares_of_all_gradients,
    test_wall_slopes.test_symmetric_laplacian_of_sides_at_rest_is_the_product_with_its_matrices,
)
PRESSURES = (
    longer_pressure_solver.test_pressure_satisfies_the_equation_in_every_cell,
    longer_pressure_solver.test_projected_velocity_has_no_divergence_in_any_row,
    test_pressure_solver.test_solver_inverts_the_operator,
    test_pressure_solver.test_mean_of_the_source_over_the_volume_is_ignored,
)
SCALARS = (
    test_scalar.test_central_advection_conserves_the_variance,
    test_scalar.test_constant_scalar_stays_constant,
    test_scalar.test_bounded_advection_never_raises_a_maximum_nor_lowers_a_minimum,
    test_scalar.test_diffusion_lowers_the_variance,
)
DIFFUSIONS = (
    test_diffusion_solver.test_without_viscosity_the_change_is_the_source,
    test_diffusion_solver.test_single_precision_is_kept_and_accurate,
)
DERIVED = (
    longer_pressure_solver.test_solver_is_self_adjoint_and_its_transpose_too,
    test_pressure_solver.test_batches_equal_single_solves,
    test_pressure_solver.test_program_is_exported_without_calls_to_libraries,
)


@over(product(DOMAINS, OPERATORS))
def test_operators_keep_their_identities_on_every_domain(name, claim):
    claim.check(DOMAINS[name])


@over(product(test_wall_slopes.SYMMETRIC, SLOPES))
def test_symmetric_slopes_keep_their_identities_on_every_domain(name, claim):
    claim.check(test_wall_slopes.SYMMETRIC[name])


def test_every_operator_is_second_order_with_upwind_advection():
    test_operators.test_every_operator_is_second_order.check("upwind")


@over(product(test_pressure_solver.GRIDS, METHODS, PRESSURES))
def test_pressure_solver_solves_on_every_grid(name, method, claim):
    claim.check(name, method)


@over(test_pressure_solver.GRIDS)
def test_both_pressure_solvers_agree_on_every_grid(grid):
    test_pressure_solver.test_both_methods_agree.check(grid)


@over(product(["periodic-stretched", "periodic-periodic", "periodic-stretched-random"], METHODS))
def test_pressure_does_not_depend_on_the_size_of_the_box_on_more_grids(name, method):
    test_pressure_solver.test_solution_does_not_depend_on_the_size_of_the_box.check(name, method)


@over(
    product(
        ["random-equal", "periodic-periodic", "periodic-stretched-periodic", "equal-random-periodic"], METHODS, DERIVED
    )
)
def test_pressure_solver_is_derived_batched_and_exported_on_more_grids(name, method, claim):
    claim.check(name, method)


@over(product(test_diffusion_solver.CASES, METHODS, [0.0, 1e-3, 10.0]))
def test_diffusion_satisfies_its_equation_on_every_grid(name, method, coefficient):
    test_diffusion_solver.test_change_satisfies_the_equation.check(name, method, coefficient)


@over(product(test_diffusion_solver.CASES, METHODS, DIFFUSIONS))
def test_diffusion_solver_keeps_its_claims_on_every_grid(name, method, claim):
    claim.check(name, method)


@over(list(test_diffusion_solver.CASES))
def test_both_diffusion_solvers_agree_on_every_grid(name):
    test_diffusion_solver.test_both_methods_agree.check(name)


@over(product(["wall-normal", "channel", "periodic", "wall-normal and spanwise in 3-D"], METHODS))
def test_diffusion_solver_has_the_derivatives_of_differences_on_more_grids(name, method):
    longer_diffusion_solver.test_derivatives_match_differences.check(name, method)


@over(product(["channel", "duct"], METHODS))
def test_batches_of_coefficients_equal_single_solves_on_more_grids(name, method):
    test_diffusion_solver.test_a_batch_of_coefficients_equals_single_solves.check(name, method)


@over(test_open_sides.PLACES)
def test_energy_passes_open_sides_only_on_every_domain(place):
    test_open_sides.test_advection_changes_the_energy_only_by_the_flux_through_open_sides.check(place)


@over(product(test_open_sides.PLACES, METHODS))
def test_pressure_between_open_sides_solves_its_equation_on_every_domain(name, method):
    longer_open_sides.test_pressure_between_open_sides_solves_its_equation.check(name, method)


@over(list(SCHEMES))
def test_flow_between_two_pressures_becomes_poiseuille_flow_by_every_method(scheme):
    longer_pressure_sides.test_flow_between_two_pressures_becomes_poiseuille_flow.check(scheme)


@over(product(["periodic", "channel 3-D"], ["central", "bounded"]))
def test_insulated_scalar_is_conserved_on_more_domains(name, scheme):
    longer_scalar.test_insulated_scalar_is_conserved.check(name, scheme)


@over(product(["periodic", "channel 3-D"], SCALARS))
def test_scalars_keep_their_claims_on_more_domains(name, claim):
    claim.check(DOMAINS[name])


@over(list(longer_shapes.SHAPES))
def test_every_shape_has_finite_derivatives_that_equal_differences(name):
    longer_shapes.test_derivatives_are_finite_everywhere_and_equal_differences.check(name)


@over(
    product(
        ["even", "stretched"],
        [
            longer_statistics.test_dissipation_is_the_work_of_viscosity,
            test_statistics.test_slope_of_the_shear_stress_is_the_force_on_each_layer,
            test_statistics.test_moments_of_known_fields,
        ],
    )
)
def test_statistics_are_exact_on_more_channels(name, claim):
    claim.check(DOMAINS[name])


@over(product(SCHEMES, [(0.0, 0.0), (-0.5, 1.0)]))
def test_velocity_has_the_order_of_every_method_in_time(scheme, walls):
    test_stepper.test_velocity_has_the_order_of_its_method_in_time.check(scheme, walls)


@over(product(DOMAINS, ["runge_kutta", "adams_bashforth, implicit"], ["float32", "float64"]))
def test_divergence_is_round_off_on_every_domain(name, scheme, precision):
    test_stepper.test_divergence_is_round_off_in_every_cell_after_any_number_of_steps.check(name, scheme, precision)


@over(list(SCHEMES))
def test_kinetic_energy_decays_by_viscosity_by_every_method(scheme):
    test_stepper.test_kinetic_energy_decays_by_viscosity.check(scheme)


def test_very_viscous_flow_is_stable_with_implicit_stages():
    test_stepper.test_very_viscous_flow_is_stable_at_any_time_step.check("runge_kutta, implicit")


def test_held_flow_rate_is_exact_with_stages():
    test_stepper.test_held_flow_rate_is_exact_and_its_drive_balances_the_friction.check("runge_kutta")


@over(["periodic", "slip", "leftward", "upward, 3-D"])
def test_friction_of_a_uniform_field_is_that_of_its_value_on_more_domains(name):
    longer_viscosity.test_friction_of_a_uniform_field_is_that_of_its_value.check(name)


@over(["periodic", "stretched", "box 3-D"])
def test_friction_of_a_field_is_self_adjoint_on_more_domains(name):
    test_viscosity.test_friction_of_a_field_is_self_adjoint_and_dissipates_energy.check(name)


@over(product(test_pressure_solver.MIRRORED, [(8, 6, 4), (7, 9, 5)]))
def test_mirror_symmetry_changes_the_cost_and_not_the_solution_on_more_grids(kinds, cells):
    test_pressure_solver.test_mirror_symmetry_changes_the_cost_and_not_the_solution.check(kinds, cells)


@over([0.5, 0.5313, 0.4688])
def test_the_thickness_of_a_body_does_not_depend_on_more_places_on_the_grid(center):
    test_direct_forcing.test_the_thickness_of_a_body_does_not_depend_on_its_place_on_the_grid.check(center)


@over(some(CHANNELS, "odd", "small"))
def test_eddies_are_solenoidal_and_have_no_mean_flow_on_more_channels(walls):
    longer_eddies.test_eddies_are_solenoidal_and_have_unit_root_mean_square_speed.check(walls)
    test_eddies.test_eddies_have_no_mean_flow.check(walls)


def test_pressure_is_accurate_in_single_precision_by_modes():
    test_pressure_solver.test_pressure_is_accurate_in_single_precision_where_the_operator_is_ill_conditioned.check(
        "modes"
    )
