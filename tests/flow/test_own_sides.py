"""Kinds of sides defined outside the package: each in one class, supported everywhere or refused by name."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from simkit.errors import UserError
from simkit.flow.boundary.domain import domain, no_motion
from simkit.flow.boundary.sides import NavierSlip, Outflow, Side
from simkit.flow.diagnosis.statistics import ChannelStatistics
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.flow.flows import SCHEMES

pytestmark = pytest.mark.usefixtures("x64")


@dataclasses.dataclass(frozen=True)
class Wind(Side):
    """A surface at which the gradient of the first component, stress over viscosity, is given."""

    kind = "wind"

    def values(self, params, time):
        return params["stress"] / params["viscosity"]

    def slope(self, f, component, given, place, values):
        return place.layer(f, values * place.outward) if component == 0 else None


@dataclasses.dataclass(frozen=True)
class PorousWall(Outflow):
    """A wall at rest with suction through it."""

    kind = "porous"
    takes_along = True
    sticks = True

    def share(self, component, place, values):
        return 1.0


@dataclasses.dataclass(frozen=True)
class PressureOutlet(Outflow):
    kind = "pressure_outlet"
    gives_pressure = True


SLIP = NavierSlip(lambda params, time: params["slip_length"])

PARAMS = {"viscosity": 1.0, "force": 0.6, "upper": 0.5, "slip_length": 0.3, "time_step": 0.01}


def params_of(**others):
    return {name: jnp.asarray(value) for name, value in (PARAMS | others).items()}


def equations(place, scheme, boundary=None, **options):
    return Equations(
        place,
        lambda params: params["viscosity"],
        fixed_time_step,
        boundary=boundary or (lambda params, time: (None, ((0.0, 0.0), (params["upper"], 0.0)))),
        force=lambda velocity, scalar, params, time: (params["force"], 0.0),
        **SCHEMES[scheme] | options,
    )


def still(place):
    return tuple(jnp.zeros(place.grid.shape(i)) for i in range(place.grid.dimension))


def test_own_sides_are_drawn_as_declared():
    place = domain((bounded_axis(4, 1.0), bounded_axis(4, 1.0)), ((Wind(), SLIP), ("wall", PorousWall())[:1] * 2))
    assert [str(word) for word in place.drawn_sides()] == ["free_slip", "wall", "wall", "wall"]


def test_unsupported_sides_are_refused_by_name():
    axes = periodic_axis(4, 1.0), bounded_axis(6, 2.0, -1.0)
    with pytest.raises(UserError, match="axis y, of kind 'pressure_outlet', gives both the pressure and the velocity"):
        domain(axes, (None, ("wall", PressureOutlet())))
    place = domain(axes, (None, (SLIP, SLIP)))
    with pytest.raises(UserError, match=r"sides \(None, \('navier_slip', 'navier_slip'\)\) are not those of a channel"):
        ChannelStatistics(place, lambda params: 1.0)
    with pytest.raises(UserError, match="lower side of axis y, which is of kind 'navier_slip', a velocity along y"):
        model = equations(place, "runge_kutta", lambda params, time: (None, ((0.0, 1.0), (0.0, 0.0))))
        model.on_sides(params_of(), jnp.zeros(()))
    box = domain((bounded_axis(4, 1.0),) * 2, ((SLIP, SLIP), (SLIP, "wall")))
    start, step = stepper(equations(box, "adams_bashforth, implicit", lambda params, time: no_motion(box)))
    state = jax.eval_shape(start, still(box), params_of())
    # One component after the other: each has only the sides along which it flows.
    assert jax.eval_shape(step, state, params_of())
    cube = domain((bounded_axis(4, 1.0),) * 3, ((SLIP, SLIP),) * 3)
    _, step = stepper(
        Equations(cube, lambda p: p["viscosity"], fixed_time_step, method="adams_bashforth", implicit=(0, 1, 2))
    )
    with pytest.raises(UserError, match=r"sides of the axes y and z depend on parameters.* support one such axis"):
        jax.eval_shape(step, jax.eval_shape(stepper(equations_of(cube))[0], still(cube), params_of()), params_of())


def equations_of(place):
    return Equations(place, lambda params: params["viscosity"], fixed_time_step, method="adams_bashforth")
