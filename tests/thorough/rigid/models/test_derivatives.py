"""Derivatives of articulated models, and errors of one line for engines without them."""

import warnings

import jax
import numpy as np
import pytest

from simkit.core import gradient
from simkit.errors import UserError
from tests.rigid.models.models import DIFFERENTIABLE, FALLING, GRAVITY, PENDULUM
from tests.rigid.models.test_derivatives import KEY, objective, trace_gradient

STEPS = 50


@pytest.mark.parametrize("engine", DIFFERENTIABLE)
def test_derivatives_without_contact_equal_central_differences(x64, engine):
    found = objective(PENDULUM, engine, "momentum", STEPS)
    values = {"initial_position": (0.4,), "control": (0.3,), "control_amplitude": (0.2,)}
    params = found.simulation.with_params(**values).params
    wrt = ["gravity", "mass", "mass_scale", "time_step", "initial_position", "initial_velocity", "control"]
    with warnings.catch_warnings():
        # Nothing touches, so there is nothing to warn of; brax itself warns of other things.
        warnings.filterwarnings("error", message=".*not with physics.*")
        checked = gradient.check_gradient(found, params, KEY, wrt)
    for name in wrt:
        # Central differences with h = eps^(1/3) are off by eps / h, 4e-11 of the scale, and by h^2 times a third
        # derivative, large for the time step of a stiff method: 3e-7 of the derivative itself for brax-positional.
        scale = abs(checked.value) / max(float(np.max(np.abs(params[name]))), 1.0)
        np.testing.assert_allclose(
            checked.derivative[name], checked.difference[name], rtol=1e-6, atol=1e-8 * scale, err_msg=name
        )
        assert np.abs(checked.derivative[name]).max() > 1e-3 * scale, name


def test_a_free_body_at_rest_has_a_derivative_on_generalized_coordinates(x64):
    """At zero velocity brax itself gives NaN."""
    steps = 10
    found = objective(FALLING, "brax-generalized", "height", steps)
    params = found.simulation.params
    assert not params["initial_velocity"].any()
    wrt = ["gravity", "initial_position", "initial_velocity"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value, derivative = jax.jit(gradient.with_derivative(found, wrt))(params, KEY)
    time_step = float(params["time_step"])
    fallen = time_step**2 * steps * (steps + 1) / 2
    np.testing.assert_allclose(value, 0.5 - GRAVITY * fallen, rtol=1e-12)
    np.testing.assert_allclose(derivative["gravity"], -fallen, rtol=1e-10)
    np.testing.assert_allclose(derivative["initial_velocity"], [0, 0, steps * time_step, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(derivative["initial_position"][:3], [0, 0, 1], atol=1e-12)
    assert np.isfinite(derivative["initial_position"]).all()


@pytest.mark.parametrize("engine", ["brax-spring", "mjx"])
def test_derivatives_through_contact_warn_that_they_are_not_physical(x64, engine):
    config = {"solver_iterations": 1} if engine == "mjx" else {}
    with pytest.warns(UserWarning, match=f"contact of engine = '{engine}' agree with its own finite differences, not"):
        trace_gradient(objective(FALLING, engine, "height", 2, **config))


def test_reverse_mode_through_the_solver_of_mjx_is_refused(x64):
    found = objective(FALLING, "mjx", "height", 2, solver_iterations=4)
    with pytest.raises(UserError, match=r"reverse mode through a solver of 4 iterations; set solver_iterations = 1"):
        trace_gradient(found)
    with pytest.warns(UserWarning, match="not with physics"):
        trace_gradient(found, "forward")


def test_forward_mode_through_the_solver_of_mjx_is_right(x64):
    found = objective(FALLING, "mjx", "height", 4, solver_iterations=4)
    # Close to the floor, and pressed into it: the ball moves by what the solver finds.
    params = found.simulation.with_params(initial_position=(0, 0, 0.099, 1, 0, 0, 0)).params
    checked = gradient.check_gradient(found, params, KEY, ["gravity", "mass_scale", "time_step"], "forward")
    for name, value in checked.derivative.items():
        np.testing.assert_allclose(value, checked.difference[name], rtol=1e-5, atol=1e-9, err_msg=name)
