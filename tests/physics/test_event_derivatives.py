"""Derivatives through impacts of balls with planes and each other, against analysis and central differences."""

import numpy as np
import pytest

from tests.rigid.contact.two_balls import DEFAULTS, central_differences, derivatives, end

GRAVITY = 9.81


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("steps", [80, 200, 800])
def test_the_derivative_of_the_height_through_one_bounce_is_the_analytic_one(steps):
    z0, e, time = 1.0, 0.8, 0.8
    t1 = np.sqrt(2 * z0 / GRAVITY)
    analytic = (e * GRAVITY * (time - 2 * t1) + GRAVITY * (time - t1)) / (GRAVITY * t1)
    found = derivatives(time, steps, z0=z0, z1=0.0, gravity=GRAVITY)["z0"][2]
    # 800 roundings of 1e-16, amplified tenfold; 1e-6 would do.
    np.testing.assert_allclose(found, analytic, rtol=1e-12)
    difference = central_differences(time, steps, ["z0"], z0=z0, z1=0.0, gravity=GRAVITY)["z0"][2]
    # Truncation of h^2 and cancellation of 1e-16 / h at h = 1e-5.
    np.testing.assert_allclose(difference, analytic, rtol=1e-8)


def driven_collision(p, time):
    """Return the end of a ball under ``A sin(w t)`` that hits another head on, analytic in every number.

    The time of impact is found by Newton's method in complex numbers, so that a complex step differentiates it.
    """
    push = p["amplitude"] / p["mass0"]
    w = p["frequency"]

    def way(t):
        return p["x0"] + p["vx0"] * t + push * (t / w - np.sin(w * t) / w**2)

    def speed(t):
        return p["vx0"] + push * (1 - np.cos(w * t)) / w

    t = 0.3 + 0j
    for _ in range(60):
        gap = p["x1"] + p["vx1"] * t - way(t) - p["radius0"] - p["radius1"]
        t = t - gap / (p["vx1"] - speed(t))
    impulse = (1 + p["restitution"]) * (speed(t) - p["vx1"]) / (1 / p["mass0"] + 1 / p["mass1"])
    left = time - t
    first = way(time) - impulse / p["mass0"] * left
    return np.array([first, p["x1"] + p["vx1"] * time + impulse / p["mass1"] * left])


@pytest.mark.usefixtures("x64")
def test_derivatives_through_an_impact_of_two_balls_under_a_periodic_force_are_the_analytic_ones():
    changes = {"vx0": 0.5, "x1": 0.7, "vx1": -0.4, "mass1": 0.8, "amplitude": 1.5, "frequency": 6.0}
    p, time = {**DEFAULTS, **changes}, 1.0
    expected = np.real(driven_collision(p, time))
    names = ("x0", "vx0", "x1", "vx1", "mass0", "mass1", "radius0", "radius1", "restitution", "amplitude", "frequency")
    for steps in (100, 1000):
        time_step = time / steps
        # The quadratic misses the sine by at most 0.008 (w dt)^3 of its size, 3 m/s^2. The derivative of a velocity at
        # an impact sees that once, times ways of a meter or two at 1 m/s; the position sees it over one step.
        tolerance = 0.05 * (p["frequency"] * time_step) ** 3
        seen, found = end(time, steps, **changes), derivatives(time, steps, **changes)
        assert seen["impacts"] == 1
        np.testing.assert_allclose(seen["position"][:, 0], expected, atol=tolerance * time_step)
        for name in names:
            analytic = np.imag(driven_collision({**p, name: p[name] + 1e-30j}, time)) / 1e-30
            np.testing.assert_allclose(found[name][[0, 3]], analytic, atol=tolerance, rtol=tolerance, err_msg=name)


EVERYTHING = {
    "z0": 1.0,
    "gravity": GRAVITY,
    "vx0": 2.0,
    "x1": 1.2,
    "y1": 0.03,
    "z1": 0.0,
    "radius1": 0.15,
    "mass1": 0.8,
    "friction": 0.3,
    "spin0": -30.0,
    "restitution": 0.7,
    "amplitude": 0.5,
    "lift": 0.3,
    "frequency": 7.0,
}


@pytest.mark.usefixtures("x64")
def test_derivatives_through_every_kind_of_event_equal_central_differences():
    seen, found = end(1.0, 100, **EVERYTHING), derivatives(1.0, 100, **EVERYTHING)
    assert seen["impacts"] == 7
    # The second ball stands on the floor: to lower or to lift it are two different things.
    names = [name for name in DEFAULTS if name != "z1"]
    for name, difference in central_differences(1.0, 100, names, **EVERYTHING).items():
        # Truncation at h = 1e-5 of third derivatives that are up to 1e4 times the first, through seven impacts.
        scale = 1 + np.abs(found[name]).max()
        np.testing.assert_allclose(found[name] / scale, difference / scale, atol=1e-6, err_msg=name)
