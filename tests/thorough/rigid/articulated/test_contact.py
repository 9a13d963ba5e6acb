"""Walkers and stacks on a floor in joint coordinates."""

from pathlib import Path

import brax
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simkit.core.ensemble import ensemble
from simkit.rigid import mjcf

ASSETS = Path(brax.__file__).parent / "envs" / "assets"


def settled(text, steps, **params):
    """Return two states, after a number of steps each, and the largest penetration at them."""
    simulation = mjcf(text, engine="simkit", substeps=steps)
    params = simulation.with_params(**params).params
    step = jax.jit(simulation.step)
    first = step(simulation.init(params, jax.random.key(0)), params)
    second = step(first, params)
    depths = [float(simulation.diagnose(state, params)["penetration"]) for state in (first, second)]
    return first.memory, second.memory, max(depths)


@pytest.mark.parametrize("name", ["ant", "half_cheetah", "hopper", "humanoid", "walker2d"])
def test_the_walkers_of_brax_run(name):
    with jax.enable_x64(True):
        _, state, _ = settled(str(ASSETS / f"{name}.xml"), 50)
        assert np.isfinite(state.position).all() and state.misfit < 0.05


def test_a_humanoid_that_lies_on_the_floor_does_not_drift():
    """1 mm in 10 s is the demand; it rests to rounding."""
    spec = mujoco.MjSpec.from_file(str(ASSETS / "humanoid.xml"))
    for geom in spec.geoms:
        if geom.type == mujoco.mjtGeom.mjGEOM_PLANE:
            geom.conaffinity = 1
        else:
            geom.contype = 1
    with jax.enable_x64(True):
        first, second, depth = settled(spec.to_xml(), 3334)
        assert np.abs(second.position - first.position)[:3].max() < 1e-6 and depth < 1e-8


ROLLERS = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="1 1 1"/>
<body pos="-0.3 0 0.1"><freejoint/><geom type="capsule" size="0.1" fromto="0 -0.3 0 0 0.3 0" mass="1"/>
<body pos="0 0.5 0"><joint axis="1 0 0" pos="0 -0.1 0"/>
<geom type="capsule" size="0.1" fromto="0 0 0 0 0.3 0" mass="1"/></body></body>
<body pos="0.3 0 0.1"><freejoint/><geom type="capsule" size="0.1" fromto="0 -0.3 0 0 0.3 0" mass="1"/></body>
<body pos="0 0 0.3"><freejoint/><geom type="capsule" size="0.1" fromto="-0.6 0 0 0.6 0 0" mass="{mass}"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("mass", [1, 1000])
def test_a_heavy_body_rests_on_light_jointed_ones(mass):
    with jax.enable_x64(True):
        _, state, depth = settled(ROLLERS.format(mass=mass), 500)
        assert depth < 1e-8 and np.abs(state.velocity).max() < 1e-6


def test_members_advance_as_each_would_alone():
    with jax.enable_x64(True):
        simulation = mjcf(str(ASSETS / "hopper.xml"), engine="simkit", substeps=20)
        params = simulation.with_params(velocity_scatter=0.2).params
        keys = jax.random.split(jax.random.key(3), 3)
        together = ensemble(simulation)
        members = jax.jit(together.step)(together.init(params, keys), params)
        alone = jax.jit(jax.vmap(simulation.step, (0, None)))(
            jax.vmap(simulation.init, (None, 0))(params, keys), params
        )
        np.testing.assert_allclose(members.memory.position, alone.memory.position, atol=1e-6)


def test_a_step_lowered_for_cuda_has_no_condition():
    simulation = mjcf(str(ASSETS / "hopper.xml"), engine="simkit")
    params = simulation.params
    state = jax.eval_shape(simulation.init, params, jax.random.key(0))
    text = jax.jit(simulation.step).trace(state, params).lower(lowering_platforms=("cuda",)).as_text()
    assert not text.count("stablehlo.case") and not text.count("stablehlo.if ")
    assert jnp.float32 == params["time_step"].dtype
