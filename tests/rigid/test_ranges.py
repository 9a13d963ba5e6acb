"""Parameters out of their physical range are refused before a run by every rigid system, in a line that names them."""

import jax
import jax.numpy as jnp
import pytest

from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.simulation import Simulation
from simkit.errors import UserError
from simkit.rigid.systems.asymmetric_top import asymmetric_top
from simkit.rigid.systems.billiards_break import billiards_break
from simkit.rigid.systems.bouncing_ball import bouncing_ball
from simkit.rigid.systems.box_stack import box_stack
from simkit.rigid.systems.compliant_bounce import compliant_bounce
from simkit.rigid.systems.double_pendulum import double_pendulum
from simkit.rigid.systems.falling_pile import falling_pile
from simkit.rigid.systems.four_bar_linkage import four_bar_linkage
from simkit.rigid.systems.heavy_top import heavy_top
from simkit.rigid.systems.newtons_cradle import newtons_cradle
from simkit.rigid.systems.projectile import projectile
from simkit.rigid.systems.rolling_ball import rolling_ball
from simkit.rigid.systems.sliding_block import sliding_block
from simkit.rigid.systems.steered_puck import steered_puck
from simkit.rigid.systems.system_identification import system_identification
from tests.tables import every

# What is out of range of each; its time step is added for all.
WRONG = {
    asymmetric_top: {"moment_y": 0.0, "mass": -1.0},
    billiards_break: {"cloth_friction": -0.1, "restitution": 1.5, "length": 0.0},
    bouncing_ball: {
        "restitution": 1.5,
        "mass": -1.0,
        "radius": -0.1,
        "friction": -0.1,
        "launch_height": -1.0,
        "launch_scatter": -0.1,
        "gravity": 0.0,
    },
    box_stack: {"length": -1.0, "friction": -0.5, "drop": -0.1},
    compliant_bounce: {"stiffness": 0.0, "dissipation": -1.0},
    double_pendulum: {"upper_length": 0.0, "lower_mass": -1.0},
    falling_pile: {"room": 0.0, "restitution": -0.5},
    four_bar_linkage: {"crank_length": -0.1, "motor_damping": -1.0},
    heavy_top: {"width": 0.0, "arm": -0.1},
    newtons_cradle: {"mass": 0.0, "restitution": 1.01},
    projectile: {"drag": -0.1, "length": 0.0},
    rolling_ball: {"radius": -0.1, "friction": -0.1},
    sliding_block: {"friction": -0.1, "gravity": -9.81},
    steered_puck: {"start_gap": -0.1, "velocity_weight": -1.0},
    system_identification: {"mass": 0.0, "restitution": -0.5, "noise": 0.0},
}


@every("make", WRONG)
def test_a_parameter_out_of_its_range_is_named_with_its_value(make):
    simulation = make()
    for name, value in (WRONG[make] | {"time_step": -0.01}).items():
        with pytest.raises(
            UserError,
            match=rf"^{name} = {value:g} is (not positive|negative|above its upper bound|below its lower bound)",
        ):
            simulation.check_values(simulation.params | {name: jnp.asarray(value)}, jax.random.key(0))
    with pytest.raises(UserError, match=r"^time_step = 0 is not positive; choose a value above 0$"):
        simulation.check_values(simulation.params | {"time_step": jnp.asarray(0.0)}, jax.random.key(0))


def test_bounds_are_checked_before_the_check_of_the_simulation():
    asked = []
    simulation = Simulation(
        init=lambda params, key: params["x"],
        step=lambda state, params: state,
        observe=lambda state, params: {},
        diagnose=lambda state, params: {},
        params={"x": Parameter(1.0, POSITIVE)},
        check=lambda params, key: asked.append(float(params["x"])),
    )
    simulation.check_values(simulation.params, jax.random.key(0))
    with pytest.raises(UserError, match="x = -1"):
        simulation.check_values({"x": jnp.asarray(-1.0)}, jax.random.key(0))
    assert asked == [1.0]
