"""A mistake in the data of a flow gives one line with the key, the column and the remedy."""

import jax
import pytest

from simkit import flow
from simkit.errors import UserError
from tests.flow.description.test_mistakes import changed
from tests.tables import every, lacking, refusal

pytestmark = pytest.mark.usefixtures("x64")


@every(
    [
        ("initial.u", "1/x0", "initial.u: '1/x0' is inf at index [0, 0] of [8, 8] at the start"),
        ("initial.stream_function", "log(x - 1)", "initial.stream_function: 'log(x - 1)' is"),
        ("force.x", "1/(u - u)", "force.x: '1/(u - u)' is inf"),
        ("viscosity", "nu + 0/x0", "viscosity: 'nu + 0/x0' is nan"),
        ("viscosity", "x - 0.5", "viscosity: 'x - 0.5' = -0.4375 at the start is negative; choose 0 or a value above"),
        ("scalars.dye.diffusivity", "-nu", "scalars.dye.diffusivity: '-nu' = -0.1 at the start is negative"),
        ("scalars.dye.source", "sqrt(-1 - dye)", "scalars.dye.source: 'sqrt(-1 - dye)' is nan"),
        ("scalars.dye.initial", "log(-x)", "scalars.dye.initial: 'log(-x)' is nan"),
        ("scalars.dye.sides.y.lower", "1/time", "scalars.dye.sides.y.lower: '1/time' is inf"),
        ("axes.y.lower", {"kind": "wall", "u": "x/time"}, "axes.y.lower.u: 'x/time' is inf"),
        ("flow_rate", "1/x0", "flow_rate: '1/x0' is inf at the start"),
        ("largest_speed", "nu - 0.1", "largest_speed: 'nu - 0.1' = 0 at the start is not positive; choose"),
        ("largest_speed", ["nu", "x0 - nu"], "largest_speed[1]: 'x0 - nu' = -0.1 at the start is negative; choose"),
        ("largest_speed", [0, "x0 + 400"], "above the stability limit of advection on this grid, 0.000541;"),
        ("axes.y.upper", {"kind": "wall", "u": "400*sin(time)"}, "above the stability limit of advection"),
    ]
)
def test_formulas_that_are_not_finite_at_the_start_are_refused(path, value, message):
    settings = changed(path, value)
    settings["parameters"]["x0"] = 0.0
    simulation = flow.system(**settings)
    return lacking(refusal(UserError, simulation.check_values, simulation.params, jax.random.key(0)), message)
