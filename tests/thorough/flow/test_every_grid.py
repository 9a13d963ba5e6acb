"""The claims of quick tests on the grids, domains and methods that those leave out."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.flow import test_operators, test_scalar, test_solvers, test_statistics, test_stepper
from tests.flow.flows import CHANNELS, DOMAINS, SCHEMES, some
from tests.flow.test_solvers import friction_solver, noise_of_case
from tests.tables import every, misses
from tests.thorough.flow import test_shapes as longer_shapes
from tests.thorough.flow import test_sides as longer_sides
from tests.thorough.flow import test_viscosity as longer_viscosity

pytestmark = pytest.mark.usefixtures("x64")

METHODS = ("elimination", "modes")
SPACE = some(DOMAINS, "periodic", "channel 3-D")
CLAIMS = (
    (test_operators.test_every_operator_is_second_order, ["upwind"]),
    (test_solvers.test_solver_inverts_the_operator, product(test_solvers.GRIDS, METHODS)),
    (test_solvers.test_both_methods_of_the_pressure_agree, test_solvers.GRIDS),
    (
        test_solvers.test_pressure_is_accurate_in_single_precision_where_the_operator_is_ill_conditioned,
        ["modes"],
    ),
    (
        test_solvers.test_mirror_symmetry_changes_the_cost_and_not_the_solution,
        product(test_solvers.MIRRORED, [(8, 6, 4), (7, 9, 5)]),
    ),
    (
        test_solvers.test_change_satisfies_the_equation,
        product(test_solvers.CASES, METHODS, [0.0, 1e-3, 10.0]),
    ),
    (longer_sides.test_flow_between_two_pressures_becomes_poiseuille_flow, SCHEMES.keys()),
    (test_scalar.test_central_advection_conserves_the_variance, SPACE),
    (test_scalar.test_bounded_advection_never_raises_a_maximum_nor_lowers_a_minimum, SPACE),
    (longer_shapes.test_derivatives_are_finite_everywhere_and_equal_differences, list(longer_shapes.SHAPES)),
    (test_statistics.test_moments_of_known_fields, some(DOMAINS, "even", "stretched")),
    (test_stepper.test_velocity_has_the_order_of_its_method_in_time, product(SCHEMES, [(0.0, 0.0), (-0.5, 1.0)])),
    (
        test_stepper.test_divergence_is_round_off_in_every_cell_after_any_number_of_steps,
        product(DOMAINS, ["runge_kutta", "adams_bashforth, implicit"], ["float32", "float64"]),
    ),
    (test_stepper.test_kinetic_energy_decays_by_viscosity, SCHEMES.keys()),
    (test_stepper.test_very_viscous_flow_is_stable_at_any_time_step, ["runge_kutta, implicit"]),
    (test_stepper.test_held_flow_rate_is_exact_and_its_drive_balances_the_friction, ["runge_kutta"]),
    (longer_viscosity.test_friction_of_a_uniform_field_is_that_of_its_value, ["periodic", "slip", "upward, 3-D"]),
    (test_operators.test_friction_of_a_field_is_self_adjoint_and_dissipates_energy, ["periodic", "box 3-D"]),
    (test_operators.test_eddies_have_no_mean_flow, some(CHANNELS, "odd", "small")),
)


@pytest.mark.parametrize(("claim", "cases"), CLAIMS, ids=[claim.__name__.removeprefix("test_") for claim, _ in CLAIMS])
def test_claim_holds_on_every_grid(claim, cases):
    assert not misses(cases, claim.check)


@every(product(["duct", "channel", "periodic"], METHODS))
def test_derivatives_of_implicit_friction_match_differences(name, method):
    source, weight, direction = (noise_of_case(name, seed) for seed in (4, 5, 6))

    def total(f, coefficient):
        return jnp.sum(weight * friction_solver(name, method)(f, coefficient) ** 2)

    @jax.jit
    def derived(f, c):
        value, slopes = jax.value_and_grad(total, (0, 1))(f, c)
        return value, slopes, jax.jvp(lambda c: total(f, c), (c,), (1.0,))[1]

    c, h = 0.05, 1e-6
    _, (by_source, by_coefficient), forward = derived(source, c)
    along, differences = (
        float(derived(source + h * x, c + h * y)[0] - derived(source - h * x, c - h * y)[0]) / (2 * h)
        for x, y in ((direction, 0.0), (0.0 * direction, 1.0))
    )
    # Central differences err by rounding, 1e-15/h of sums of a hundred terms, and by h^2 times large derivatives.
    assert np.sum(by_source * direction) == pytest.approx(along, rel=1e-6)
    assert by_coefficient == pytest.approx(differences, rel=1e-6)
    assert forward == pytest.approx(differences, rel=1e-6)
