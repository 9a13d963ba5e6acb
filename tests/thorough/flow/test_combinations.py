"""Sides, friction, dimension, scalar, obstacle, method and drive together: conservation and refusals."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from simkit.errors import UserError
from simkit.flow.diagnosis.measures import control_volumes, kinetic_energy, mean_velocity
from simkit.flow.equations import Equations
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.direct_forcing import DirectForcing
from simkit.flow.obstacles.shapes import ball
from simkit.flow.operators.differences import divergence, inside
from simkit.flow.scalar import TransportedScalar, mean_scalar
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.flow.flows import solenoidal_noise
from tests.flow.test_combinations import place_of

pytestmark = pytest.mark.usefixtures("x64")

STEPS, TIME_STEP = 6, 0.004

# Every pair of entries of two columns is in one row at least, as far as they go together.
# sides, dimension, implicit axes, method, scheme, scalar, obstacle, drive, slope at walls
TABLE = [
    ("periodic", 2, "none", "runge_kutta", "central", "none", True, "none", "parabola"),
    ("periodic", 3, "all", "adams_bashforth", "upwind", "central", False, "force", "symmetric"),
    ("channel", 2, "all", "runge_kutta", "upwind", "bounded", True, "flow rate", "parabola"),
    ("channel", 3, "one", "adams_bashforth", "central", "none", True, "flow rate", "symmetric"),
    ("channel", 2, "none", "adams_bashforth", "central", "central", False, "none", "parabola"),
    ("half open channel", 3, "none", "runge_kutta", "central", "bounded", False, "flow rate", "symmetric"),
    ("half open channel", 2, "one", "adams_bashforth", "upwind", "central", True, "force", "parabola"),
    ("cavity", 2, "one", "runge_kutta", "central", "central", True, "none", "symmetric"),
    ("cavity", 3, "all", "adams_bashforth", "upwind", "bounded", False, "force", "parabola"),
    ("duct", 2, "all", "adams_bashforth", "central", "bounded", True, "none", "symmetric"),
    ("duct", 3, "none", "runge_kutta", "upwind", "central", False, "force", "parabola"),
    ("slippery duct", 2, "one", "runge_kutta", "central", "none", False, "force", "parabola"),
    ("inflow to pressure", 2, "none", "runge_kutta", "upwind", "bounded", True, "none", "parabola"),
    ("inflow to pressure", 2, "all", "adams_bashforth", "central", "central", True, "force", "symmetric"),
    ("inflow to pressure", 3, "one", "runge_kutta", "central", "bounded", False, "none", "parabola"),
    ("pressures", 2, "one", "runge_kutta", "upwind", "central", False, "none", "symmetric"),
    ("pressures", 2, "none", "adams_bashforth", "central", "bounded", True, "force", "parabola"),
    ("pressures", 3, "all", "adams_bashforth", "central", "central", True, "none", "parabola"),
    ("slippery duct", 3, "all", "runge_kutta", "central", "central", True, "none", "symmetric"),
]


def momentum(velocity, i, grid):
    return jnp.sum(inside(velocity[i], i, grid) * control_volumes(i, grid))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: ", ".join(map(str, row)))
def test_combination_conserves_volume_scalar_and_momentum(row):
    sides, dimension, implicit, method, scheme, carried, body, drive, slope = row
    place = place_of(sides, dimension, slope)
    grid, open_sides = place.grid, bool(place.entrances()) or bool(place.open_sides())
    inward = {side: -1.0 if side else 1.0 for _, side in place.entrances()}
    still = (0.0,) * dimension

    def boundary(params, time):
        pairs = []
        for i, pair in enumerate(place.sides):
            ends = [still, still]
            for side in (0, 1):
                if (i, side) in place.entrances():
                    ends[side] = (0.8 * inward[side], *still[1:])
            pairs.append(None if pair is None else tuple(ends))
        return tuple(pairs)

    scalar = None
    if carried != "none":
        kinds = tuple(
            None if pair is None else tuple("value" if kind in ("inflow", "pressure") else "insulated" for kind in pair)
            for pair in place.kinds
        )
        ones = tuple(pair and tuple(1.0 if kind == "value" else 0.0 for kind in pair) for pair in kinds)
        scalar = TransportedScalar(
            place, kinds, lambda params: params["diffusivity"], lambda params, time: ones, scheme=carried
        )
    center = (0.45, 0.55, 0.5)[:dimension]
    held = Body(lambda params: ball(center, 0.2), lambda params: center)
    equations = Equations(
        place,
        lambda params: params["viscosity"],
        fixed_time_step,
        boundary=boundary if place.entrances() else None,
        force=(lambda velocity, scalar, params, time: (0.5, *still[1:])) if drive == "force" else None,
        flow_rate=(lambda params, time: 0.2) if drive == "flow rate" else None,
        scalar=scalar,
        obstacle=DirectForcing(place, {"ball": held}) if body else None,
        method=method,
        implicit={"none": (), "one": (1,), "all": tuple(range(dimension))}[implicit],
        scheme=scheme,
    )
    if body and scalar is not None:
        with pytest.raises(UserError, match="body 'ball' has no condition for it"):
            stepper(equations)
        scalar, equations = None, dataclasses.replace(equations, scalar=None)
    start, step = stepper(equations)
    velocity = jax.tree.map(lambda f: 0.1 * f, solenoidal_noise(grid, 0))
    if place.entrances():
        velocity = (velocity[0] + 0.8 * next(iter(inward.values())), *velocity[1:])
    # In a duct what flows in has the value 1: a scalar that is 1 everywhere stays so.
    first = () if scalar is None else jnp.ones(grid.cells)
    if scalar is not None and not open_sides:
        first = jax.random.normal(jax.random.key(1), grid.cells)
    params = {"viscosity": jnp.asarray(0.01), "diffusivity": jnp.asarray(0.02), "time_step": jnp.asarray(TIME_STEP)}

    @jax.jit
    def run():
        begin = start(velocity, params, first)
        return jax.lax.scan(lambda s, _: (step(s, params),) * 2, begin, length=STEPS)

    state, states = run()
    for leaf in jax.tree.leaves(state):
        assert jnp.all(jnp.isfinite(leaf))
    # Rounding of velocities of about 1 in cells of about 0.05.
    assert jnp.max(jnp.abs(divergence(state.velocity, grid))) < 1e-12
    for i, f in enumerate(state.velocity):
        for side in (0, 1):
            if (place.kinds[i] or ("", ""))[side] in ("wall", "free_slip"):
                assert jnp.all(jnp.take(f, -side, axis=i) == 0)
    if scalar is not None:
        if open_sides:
            assert jnp.max(jnp.abs(state.scalar - 1)) < 1e-12
        else:
            assert mean_scalar(state.scalar, grid) == pytest.approx(float(mean_scalar(first, grid)), abs=1e-14)
    if drive == "flow rate":
        assert mean_velocity(state.velocity, 0, grid) == pytest.approx(0.2, abs=1e-14)
    if drive == "none" and not open_sides:
        # Walls and bodies at rest and friction only take energy; central Runge-Kutta steps add none to speak of.
        assert kinetic_energy(state.velocity, grid) < kinetic_energy(velocity, grid)
    if sides == "periodic":
        for i in range(dimension):
            given = STEPS * TIME_STEP * (0.5 if drive == "force" and i == 0 else 0.0)
            taken = TIME_STEP * jnp.sum(states.load[:, i]) if body else 0.0
            change = momentum(state.velocity, i, grid) - momentum(velocity, i, grid)
            # Rounding of a sum of 512 numbers of about 0.1.
            assert change == pytest.approx(float(given - taken), abs=1e-14)
