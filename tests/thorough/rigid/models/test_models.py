"""Models of MuJoCo and brax: reading, motion, derivatives, warm starts."""

import functools
import warnings

import jax
import mujoco
import numpy as np
import pytest
from scipy.special import ellipk

from simkit.cli.main import main
from simkit.core import gradient
from simkit.core.rollout import trajectory
from simkit.core.status import Status, status_of
from simkit.errors import UserError
from simkit.rigid import mjcf
from simkit.rigid.models.source import compiled, read_spec
from tests.rigid.models.models import (
    DIFFERENTIABLE,
    ENGINES,
    FALLING,
    GRAVITY,
    INERTIA,
    LENGTH,
    MASS,
    PENDULUM,
    run,
    simulation,
)
from tests.rigid.models.test_models import KEY, SCENARIO, objective, refusal, trace_gradient
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


START = 1.0
STEPS = 800
# Softness of brax's springs: on its way the rod pulls with up to m g (3 - 2 cos 1) = 1.9 m g at the pivot, whose
# stiffness is k = 2000 N/m, and so lengthens by up to 9.4 mm of 300, 3 %; the period by at most half of that. brax's
# positions are pulled together by half the gap in each step: a change of 0.3 %, which we measured. The others
# integrate the angle itself by the semi-implicit Euler method, whose period is off by (omega dt)^2 / 24 = 4e-6.
EXACT = dict.fromkeys(("brax-generalized", "mjx", "mujoco"), 1e-5)
TOLERANCE = {"brax-spring": 0.015, "brax-positional": 0.005} | EXACT
swing = functools.cache(functools.partial(run, PENDULUM, steps=STEPS, every=4, initial_position=(START,)))


def crossings(time, angle):
    """Return when the angle passes through zero, by linear interpolation."""
    before = np.flatnonzero(angle[:-1] * angle[1:] <= 0)
    part = angle[before] / (angle[before] - angle[before + 1])
    return time[before] + part * (time[before + 1] - time[before])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_pendulum_keeps_its_analytic_period(x64, engine):
    _, observed, diagnosed = swing(engine)
    first, second = crossings(diagnosed["time"], observed["joint_position"][:, 0])
    small = np.sqrt(INERTIA / (MASS * GRAVITY * LENGTH))
    period = 4 * small * ellipk(np.sin(START / 2) ** 2)
    np.testing.assert_allclose(2 * (second - first), period, rtol=TOLERANCE[engine])


@pytest.mark.parametrize("engine", ENGINES)
def test_diagnostics_of_a_pendulum_are_those_of_mechanics(x64, engine):
    _, observed, diagnosed = swing(engine)
    angle, rate = observed["joint_position"][:, 0], observed["joint_velocity"][:, 0]
    # Soft joints give way and swing by 3 % of the length, and so by twice that or more in energies and momenta.
    near = 1e-10 if TOLERANCE[engine] < 1e-3 else 0.1
    scale = MASS * GRAVITY * LENGTH
    energy = MASS * GRAVITY - scale * np.cos(angle) + INERTIA * rate**2 / 2
    np.testing.assert_allclose(diagnosed["energy"], energy, atol=near * scale)
    # The method keeps the energy but for a swing of half a step's work, dt/2 times the greatest power.
    power = scale * np.max(np.abs(rate))
    assert np.ptp(diagnosed["energy"]) < TIME_STEP * power + near * scale
    np.testing.assert_allclose(diagnosed["momentum"], MASS * LENGTH * np.abs(rate), atol=near * 2)
    place = np.stack([-LENGTH * np.sin(angle), 0 * angle, 1 - LENGTH * np.cos(angle)], axis=1)
    np.testing.assert_allclose(observed["position"][:, 0], place, atol=near * LENGTH)
    # brax's positions turn a quaternion by its derivative: its length is off by (omega dt / 2)^4 / 8, about 1e-8.
    np.testing.assert_allclose(
        np.linalg.norm(observed["orientation"], axis=2), 1, rtol=1e-12 if engine in EXACT else 1e-7
    )
    assert (diagnosed["contacts"] == 0).all()


def test_engines_with_the_same_equations_agree(x64):
    values = {"initial_position": (0.4,), "control": (0.3,), "control_amplitude": (0.2,), "control_phase": (1.0,)}
    reference = run(PENDULUM, "mujoco", 20, 5, **values)
    found = run(PENDULUM, "mjx", 20, 5, **values)
    for group in (1, 2):
        for name, value in reference[group].items():
            # The same arithmetic in another order, over 20 steps.
            np.testing.assert_allclose(found[group][name], value, rtol=1e-10, atol=1e-12, err_msg=name)


TIME_STEP = 0.002


@pytest.mark.parametrize("engine", ENGINES)
def test_a_ball_falls_freely_and_then_has_contact_with_the_floor(x64, engine):
    _, observed, diagnosed = run(FALLING, engine, 150, 25, initial_velocity=(0.5, 0, 0, 0, 0, 0))
    steps = 25 * np.arange(7)
    # The semi-implicit Euler method falls by g dt^2 n (n + 1) / 2 in n steps, exactly.
    height = 0.5 - GRAVITY * TIME_STEP**2 * steps * (steps + 1) / 2
    flying = height > 0.1
    assert flying[:5].all() and not flying[-1]
    np.testing.assert_allclose(diagnosed["height"][flying], height[flying], rtol=1e-12)
    np.testing.assert_allclose(observed["position"][flying, 0, 0], 0.5 * TIME_STEP * steps[flying], atol=1e-12)
    # What is observed belongs to the coordinates of the same moment, not to those of a step before.
    np.testing.assert_allclose(observed["position"][:, 0], observed["joint_position"][:, :3], atol=1e-14)
    speed = np.hypot(0.5, GRAVITY * TIME_STEP * steps)[flying]
    np.testing.assert_allclose(diagnosed["momentum"][flying], 2 * speed, rtol=1e-12)
    assert (diagnosed["contacts"][flying] == 0).all() and (diagnosed["penetration"][flying] == 0).all()
    # On the floor it is held: without it the ball would be 0.04 m below by then.
    depth = np.max(diagnosed["penetration"])
    assert diagnosed["contacts"].max() == 1 and 0 < depth < 0.05


DERIVED_STEPS = 50


@pytest.mark.parametrize("engine", DIFFERENTIABLE)
def test_derivatives_without_contact_equal_central_differences(x64, engine):
    found = objective(PENDULUM, engine, "momentum", DERIVED_STEPS)
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
    # In this order: the warning comes with the first trace, which JAX keeps.
    with pytest.warns(UserWarning, match="not with physics"):
        trace_gradient(found, "forward")
    with pytest.raises(UserError, match=r"reverse mode through a solver of 4 iterations; set solver_iterations = 1"):
        trace_gradient(found)


def test_forward_mode_through_the_solver_of_mjx_is_right(x64):
    found = objective(FALLING, "mjx", "height", 4, solver_iterations=4)
    # Close to the floor, and pressed into it: the ball moves by what the solver finds.
    params = found.simulation.with_params(initial_position=(0, 0, 0.099, 1, 0, 0, 0)).params
    checked = gradient.check_gradient(found, params, KEY, ["gravity", "mass_scale", "time_step"], "forward")
    for name, value in checked.derivative.items():
        np.testing.assert_allclose(value, checked.difference[name], rtol=1e-5, atol=1e-9, err_msg=name)


WARM_STEPS = 200


def plain_loop(model, iterations, control):
    """Return coordinates and velocities after each step of `mj_step`, (steps, nq + nv)."""
    spec = read_spec(model)
    if iterations:
        spec.option.iterations = iterations
    found = compiled(spec)
    data, rows = mujoco.MjData(found), []
    data.qpos[:] = start_of(model)
    data.ctrl[:] = control
    for _ in range(WARM_STEPS):
        mujoco.mj_step(found, data)
        rows.append(np.concatenate([data.qpos, data.qvel]))
    return np.array(rows)


def start_of(model):
    return np.asarray(mjcf(model, engine="mujoco").params["initial_position"], float)


@pytest.mark.parametrize(("model", "iterations"), [("brax:ant.xml", 0), ("brax:ant.xml", 1), ("brax:humanoid.xml", 1)])
def test_200_steps_equal_a_plain_loop_of_mujoco(x64, model, iterations):
    """With one iteration the result depends on the warm start; the converged result for the ant does not."""
    found = mjcf(model, engine="mujoco", solver_iterations=iterations)
    control = 0.4 * np.sin(np.arange(found.params["control"].size))
    found = found.with_params(control=control)
    _, observed, _ = jax.jit(trajectory(found, WARM_STEPS, 1))(found.params, jax.random.key(0))
    ours = np.concatenate([observed["joint_position"], observed["joint_velocity"]], axis=1)[1:]
    expected = plain_loop(model, iterations, control)
    np.testing.assert_allclose(ours, expected, atol=1e-12 * np.abs(expected).max(), rtol=0)


def test_members_carry_their_own_warm_starts(x64):
    """Substeps equal single time steps, in an ensemble whose members differ."""
    results = []
    for substeps in (1, 4):
        found = mjcf("brax:ant.xml", engine="mujoco", substeps=substeps, solver_iterations=1)
        params = found.params | {"gravity": np.array([9.81, 5.0, 20.0])}
        axes = dict.fromkeys(params) | {"gravity": 0}
        many = jax.jit(jax.vmap(trajectory(found, 40 // substeps, 40 // substeps), in_axes=(axes, None)))
        results.append(many(params, jax.random.key(0))[1]["joint_position"])
    np.testing.assert_allclose(results[0], results[1], atol=1e-12)
