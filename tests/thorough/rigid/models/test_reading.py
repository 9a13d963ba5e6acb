"""Models are read from files, texts and the brax package; mistakes are refused in one line."""

import warnings

import jax
import numpy as np
import pytest

from simkit.cli.main import main
from simkit.core.status import Status, status_of
from simkit.rigid import mjcf
from tests.rigid.models.models import ENGINES, FALLING, PENDULUM, run, simulation
from tests.rigid.models.test_reading import SCENARIO, refusal
from tests.tables import every


@every("kind", ["sphere", "capsule", "box", "cylinder", "ellipsoid"])
def test_shapes_are_drawn_with_their_size(x64, kind):
    size = {"sphere": "0.3", "capsule": "0.1 0.2", "cylinder": "0.1 0.2"}.get(kind, "0.1 0.2 0.3")
    geom = f'<geom type="{kind}" size="{size}" pos="1 0 0" euler="0 90 0" mass="1"/>'
    text = f"<mujoco><worldbody><body pos='0 0 2'><freejoint/>{geom}</body></worldbody></mujoco>"
    _, observed, _ = run(text, "mujoco", 1, 1, time_step=0.001, gravity=0.0)
    half, radius = observed["half_lengths"][0, 0], observed["radius"][0, 0]
    expected = {
        "sphere": ([0, 0, 0], 0.3),
        "capsule": ([0, 0, 0.2], 0.1),
        "box": ([0.1, 0.2, 0.3], 0.0),
        "cylinder": ([0, 0, 0.1], 0.1),
        "ellipsoid": ([0, 0.1, 0.2], 0.1),
    }[kind]
    np.testing.assert_allclose(half, expected[0], atol=1e-12)
    np.testing.assert_allclose(radius, expected[1], atol=1e-12)
    np.testing.assert_allclose(observed["position"][0, 0], [1, 0, 2], atol=1e-12)
    np.testing.assert_allclose(observed["orientation"][0, 0], [np.sqrt(0.5), 0, np.sqrt(0.5), 0], atol=1e-6)


def test_a_time_step_too_long_for_the_springs_is_refused():
    """The ant is unstable at the time step of its file, 0.01 s, and above 0.0096 s."""
    with pytest.warns(UserWarning, match="ignores what this model says of the damping of joints and the armature of"):
        ant = mjcf("brax:ant.xml", engine="brax-spring")
    assert float(ant.params["time_step"]) == pytest.approx(0.01)
    message = refusal(ant.check_values, ant.params, jax.random.key(0))
    assert (
        "too long for the joint springs of brax-spring, which are unstable above 0.0096 s; choose 0.007 s or" in message
    )
    check = ant.check
    assert check is not None
    check(ant.with_params(time_step=0.009).params, jax.random.key(0))


@pytest.mark.parametrize(("time_step", "explodes"), [(0.0036, False), (0.0039, True)])
def test_springs_are_unstable_just_above_the_reported_time_step(time_step, explodes):
    # A tilted hinge, so that the swing moves every spring; its springs are said to explode above 0.0038 s.
    found = mjcf(PENDULUM.replace('axis="0 1 0"', 'axis="0.3 1 0.3"'), engine="brax-spring")
    params = found.with_params(initial_position=[0.5], time_step=time_step).params
    assert found.check is not None
    if explodes:
        assert "are unstable above 0.0038 s" in refusal(found.check_values, params, jax.random.key(0))
    else:
        found.check_values(params, jax.random.key(0))

    @jax.jit
    def fastest(params):
        def body(state, _):
            state = found.step(state, params)
            return state, abs(state.memory.xd_i.ang).max()

        return jax.lax.scan(body, found.init(params, jax.random.key(0)), None, length=300)[1].max()

    # Released at 0.5 rad the pendulum turns at 2.4 rad/s at most.
    assert (float(fastest(params)) > 10) == explodes


def test_a_scenario_runs_with_a_model_file_beside_it_in_mujoco(tmp_path, capsys):
    (tmp_path / "swing.toml").write_text(SCENARIO)
    (tmp_path / "pendulum.xml").write_text(PENDULUM)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(["run", str(tmp_path / "swing.toml"), "-o", str(tmp_path / "run")]) == 0
        (tmp_path / "pendulum.xml").write_text(PENDULUM.replace("hinge", "hinj"))
        assert main(["run", str(tmp_path / "swing.toml"), "-o", str(tmp_path / "other")]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "swing.toml: [config]: the model is refused by MuJoCo: XML Error: invalid keyword: 'hinj'" in error


@every("engine", ENGINES[:3])
def test_features_that_brax_ignores_in_its_own_models_cause_a_warning(engine):
    unlike = FALLING.replace('size="0.1"', 'size="0.1" condim="1" margin="0.01"')
    with pytest.warns(UserWarning, match=r"the margin and gap of geoms and the condim of geoms \(friction is that"):
        mjcf(unlike, engine=engine)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        mjcf(FALLING, engine=engine)


def test_an_unstable_run_of_mujoco_is_not_finite(x64):
    found = simulation(PENDULUM, "mujoco")
    state, _, diagnosed = run(PENDULUM, "mujoco", 20, 20, initial_velocity=(1e200,), time_step=1e5)
    assert not np.isfinite(diagnosed["energy"][-1])
    assert int(status_of(found)(state, found.params)) == Status.NON_FINITE


URDF = f"""
<robot name="pendulum">
  <link name="base"/>
  <link name="rod">
    <inertial>
      <origin xyz="0 0 -0.3"/><mass value="1"/>
      <inertia ixx="{0.4 / 12}" iyy="{0.4 / 12}" izz="{0.08 / 12}" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
  <joint name="pivot" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint>
</robot>
"""


def test_a_pendulum_in_urdf_swings_like_one_in_mjcf(x64):
    plain = run(PENDULUM, "mujoco", 20, 20, initial_position=(0.5,))
    found = run(URDF, "mujoco", 20, 20, initial_position=(0.5,), time_step=0.002)
    np.testing.assert_allclose(found[1]["joint_position"], plain[1]["joint_position"], rtol=1e-12)
    # Hung from the origin instead of 1 m above; without shapes it is drawn as one ball.
    np.testing.assert_allclose(found[2]["energy"], plain[2]["energy"] - 9.81, rtol=1e-12)
    assert found[1]["radius"].shape == (2, 1) and (found[1]["radius"] > 0).all()
