"""The engine in joint coordinates on the models of brax, and in batches."""

from pathlib import Path

import brax
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simkit.core.ensemble import ensemble
from simkit.rigid import articulated, mjcf
from tests.rigid.articulated.models import EVERY_JOINT, model, random_state, relative, trajectory_error

ASSETS = Path(brax.__file__).parent / "envs" / "assets"
MODELS = sorted(path.name for path in ASSETS.glob("*.xml"))
FREE = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT


@pytest.mark.parametrize("name", MODELS)
def test_masses_and_accelerations_of_the_models_of_brax_are_those_of_mujoco(name):
    with jax.enable_x64(True):
        system = mujoco.MjModel.from_xml_path(str(ASSETS / name))
        system.opt.disableflags |= int(FREE)
        tree, inertia = articulated.kinematic_tree(system), articulated.inertia_of(system)
        gravity = jnp.asarray(system.opt.gravity)

        @jax.jit
        def both(position, velocity, force):
            matrix = articulated.mass_matrix(tree, inertia, position)
            return matrix, articulated.acceleration(tree, inertia, position, velocity, force, gravity)

        data, matrix = mujoco.MjData(system), np.zeros((system.nv,) * 2)
        for seed in range(5):
            position, velocity = random_state(system, seed)
            data.qpos[:], data.qvel[:] = position, velocity
            mujoco.mj_forward(system, data)
            mujoco.mj_fullM(system, data, matrix)
            mass, acceleration = both(position, velocity, data.qfrc_passive + data.qfrc_actuator)
            assert relative(mass, matrix) < 1e-10
            assert relative(acceleration, data.qacc_smooth) < 1e-10


@pytest.mark.parametrize("name", [name for name in MODELS if name != "swimmer.xml"])
def test_200_steps_of_the_models_of_brax_are_those_of_mujoco(name):
    """The swimmer is left out: it needs the forces of a fluid."""
    spec = mujoco.MjSpec.from_file(str(ASSETS / name))
    spec.option.disableflags |= int(FREE)
    spec.option.timestep = 0.001
    with jax.enable_x64(True):
        text = spec.to_xml()
        simulation, system = mjcf(text, engine="simkit", substeps=200), mujoco.MjModel.from_xml_string(text)
        system.opt.disableflags |= int(FREE)
        velocity = 0.3 * np.random.default_rng(1).normal(size=system.nv)
        params = simulation.with_params(initial_velocity=velocity).params
        state = jax.jit(simulation.step)(simulation.init(params, jax.random.key(0)), params)
        data = mujoco.MjData(system)
        data.qpos[:], data.qvel[:] = params["initial_position"], velocity
        if system.nu:
            data.ctrl[:] = params["control"]
        mujoco.mj_step(system, data, 200)
        np.testing.assert_allclose(state.memory.position, data.qpos, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("integrator", ["Euler", "RK4"])
def test_a_trajectory_of_every_joint_is_that_of_mujoco(integrator):
    assert trajectory_error(integrator) < 1e-9


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_members_advance_as_each_would_alone(precision):
    """In float32 the two eliminations differ by rounding, which 20 steps of a fast mechanism amplify to 1e-4."""
    with jax.enable_x64(precision == "float64"):
        simulation = mjcf(EVERY_JOINT.format(integrator="Euler"), engine="simkit", substeps=20)
        params = simulation.with_params(velocity_scatter=0.5).params
        keys = jax.random.split(jax.random.key(3), 5)
        together = ensemble(simulation)
        members = jax.jit(together.step)(together.init(params, keys), params)
        alone = jax.jit(jax.vmap(simulation.step, (0, None)))(
            jax.vmap(simulation.init, (None, 0))(params, keys), params
        )
        np.testing.assert_allclose(
            members.memory.position, alone.memory.position, atol=1e-10 if precision == "float64" else 1e-4
        )


def test_derivatives_by_parameters_named_after_parts_are_central_differences():
    """Differences of step 1e-6 have an error of 1e-12 in the cut and 1e-10 in the rounding."""
    with jax.enable_x64(True):
        simulation = mjcf(EVERY_JOINT.format(integrator="implicitfast"), engine="simkit", substeps=20)
        position, velocity = random_state(model(), seed=2)
        params = simulation.with_params(initial_position=position, initial_velocity=velocity).params
        names = [
            ("mass", "hand"),
            ("damping", "shoulder"),
            ("stiffness", "reach"),
            ("armature", "hip"),
            ("gain", "hold"),
        ]

        def reached(values):
            changed = dict(params)
            for (kind, part), value in zip(names, values, strict=True):
                changed[kind] = {**changed[kind], part: value}
            state = simulation.step(simulation.init(changed, jax.random.key(0)), changed)
            return jnp.sum(jnp.sin(state.memory.position)) + jnp.sum(jnp.sin(state.memory.velocity))

        at = jnp.stack([params[kind][part] for kind, part in names])
        reverse, forward, value = jax.jit(lambda x: (jax.grad(reached)(x), jax.jacfwd(reached)(x), reached(x)))(at)
        steps = 1e-6 * np.eye(len(names))
        both = jax.jit(jax.vmap(reached))(jnp.concatenate([at + steps, at - steps]))
        difference = (both[: len(names)] - both[len(names) :]) / 2e-6
        assert np.isfinite(value) and (np.abs(difference) > 1e-5).all()
        np.testing.assert_allclose(reverse, difference, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(forward, reverse, rtol=1e-10)


LIMB = '<geom type="capsule" size="0.05" fromto="0 0 0 0.6 0.1 0.2" mass="{mass}"/>'
CHAIN = """
<body name="x.y" pos="0 0 1"><joint name="x.y" axis="0 1 0" damping="1" stiffness="3" springref="30"/>{a}
  <body name="x_y" pos="0 0 1"><joint name="x_y" axis="0 1 0" damping="2"/>{a}
    <body name="x_y_1" pos="0 0 1"><joint name="x_y_1" axis="1 1 0" damping="30"/>{b}</body></body></body>
""".format(a=LIMB.format(mass=1), b=LIMB.format(mass=40))
SERVO = '<general joint="x.y" biastype="affine" biasprm="0 -1 -50" gainprm="1000" {limits}/>'
ODD = {
    "names that differ in a dot": ("", "", ""),
    "a servo at the limit of its force": ('integrator="implicitfast"', "", SERVO.format(limits='forcerange="-1 1"')),
    "a joint at the limit of its force": ('integrator="implicitfast"', "", SERVO.format(limits="")),
    "actuation switched off": ('integrator="implicitfast"', 'actuation="disable"', '<velocity joint="x_y" kv="4"/>'),
    "gravity switched off": ("", 'gravity="disable"', ""),
    "springs switched off": ("", 'spring="disable"', ""),
    "damping taken at the begin": ("", 'eulerdamp="disable"', ""),
    "limits of controls switched off": ("", 'clampctrl="disable"', '<motor joint="x_y" ctrlrange="-0.1 0.1"/>'),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_models_move_and_have_the_energy_as_in_mujoco(name):
    option, flag, actuator = ODD[name]
    head = f'<option timestep="0.004" {option}><flag contact="disable" {flag}/></option>'
    text = f"<mujoco>{head}<worldbody>{CHAIN}</worldbody><actuator>{actuator}</actuator></mujoco>"
    with jax.enable_x64(True):
        simulation, system = mjcf(text, engine="simkit", substeps=60), mujoco.MjModel.from_xml_string(text)
        params = simulation.with_params(**({"control": [0.5]} if actuator else {})).params
        state = jax.jit(simulation.step)(simulation.init(params, jax.random.key(0)), params)
        system.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
        data = mujoco.MjData(system)
        data.ctrl[:] = 0.5
        mujoco.mj_step(system, data, 60)
        mujoco.mj_forward(system, data)
        assert relative(state.memory.position, data.qpos) < 1e-9
        assert simulation.diagnose(state, params)["energy"] == pytest.approx(data.energy.sum(), rel=1e-9)
        assert len(params["mass"]) == 3


def test_a_step_lowered_for_cuda_has_no_condition_and_one_loop():
    """The loop is that over substeps."""
    simulation = mjcf(EVERY_JOINT.format(integrator="Euler"), engine="simkit")
    params = simulation.params
    state = jax.eval_shape(simulation.init, params, jax.random.key(0))
    text = jax.jit(simulation.step).trace(state, params).lower(lowering_platforms=("cuda",)).as_text()
    assert {name: text.count(f"stablehlo.{name}") for name in ("while", "case", "if ")} == {
        "while": 1,
        "case": 0,
        "if ": 0,
    }
