"""Estimation and control: misfit to a noisy recording, and parameters that change every few steps."""

from collections.abc import Callable, Collection, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.core.arguments import check_shape
from simkit.core.averages import averaged
from simkit.core.formulation import root
from simkit.core.parameter import Parameter
from simkit.core.pytrees import pytree
from simkit.core.rollout import segment, trajectory
from simkit.core.settings import arguments, whole
from simkit.core.simulation import Arrays, Params, Simulation, State
from simkit.core.status import Status, as_often, status_of, stops
from simkit.errors import UserError, known


@arguments(steps=whole("steps for which each value is held", low=1))
def controlled(simulation: Simulation, steps: int = 1) -> Callable[[State, Params, Params], tuple[State, Arrays]]:
    """Return ``(state, params, controls) -> (state, diagnostics)`` that holds each control value for some steps.

    Zero-order hold: the control jumps at the ends of steps. A load that depends on time cannot do this, since methods
    evaluate loads within a step; a parameter is constant during a step. Derivatives with respect to every control value
    exist; reverse mode recomputes the steps of each interval.

    Args:
        simulation: one whose step depends on the controls, by a load that takes a parameter for instance.
        steps: number of steps for which each value is held, at least 1.

    Returns:
        The function. Its ``controls`` are ``{path of a parameter: (intervals, ...)}``, in the unit of the parameter;
        the diagnostics are those at the end of each interval, (intervals,).

    Raises:
        UserError: if ``steps`` is below 1; and, when called, for a name that is not a parameter or unequal lengths.

    Example:
        >>> stone = {"shape": "sphere", "name": "stone", "radius": 0.1, "mass": 1}
        >>> fall = {"gravity": "gravity", "method": "free", "parameters": {"gravity": 9.81, "time_step": 0.01}}
        >>> puck = rigid.system(bodies=[stone], measured=["stone"], **fall)
        >>> run, start = core.controlled(puck, steps=50), puck.init(puck.params, jax.random.key(0))
        >>> height = lambda pull: jax.jit(run)(start, puck.params, {"gravity": pull})[1]["stone.z"][-1]
        >>> print(jax.grad(height)(jnp.array([9.81, 9.81])), "m per m/s^2, by hand -3/8 and -1/8")
        [-0.3749998  -0.12499999] m per m/s^2, by hand -3/8 and -1/8
    """
    advance = segment(simulation, steps)

    def run(state: State, params: Params, controls: Params) -> tuple[State, Arrays]:
        leaves = paths.leaves(params)
        for name, values in controls.items():
            shape = jnp.shape(leaves[known(name, leaves, "control")])
            wanted = f"one value of shape {shape} for each interval along a first axis"
            check_shape(f"control '{name}'", values, wanted, (None, *shape))
        lengths = {name: len(values) for name, values in controls.items()}
        if len(set(lengths.values())) != 1:
            raise UserError(f"controls have {lengths or 'no'} values; give as many for each, at least one control")

        def interval(state: State, values: Params) -> tuple[State, Arrays]:
            current = paths.replaced(params, values)
            state = advance(state, current)
            return state, simulation.diagnose(state, current)

        series = {name: jnp.asarray(values, leaves[name].dtype) for name, values in controls.items()}
        return jax.lax.scan(jax.checkpoint(interval, prevent_cse=False), state, series)

    return run


@pytree
class Recording:
    """State of the trial simulation and of the true one.

    Attributes:
        pair: states with the trial parameters and with the true ones, stacked along a leading axis of 2.
        key: data of the random key of the noise, uint32.
        steps: int32, number of steps taken.
    """

    pair: State
    key: jax.Array
    steps: jax.Array


def beside_recording(
    simulation: Simulation,
    true: Mapping[str, float],
    measure: Callable[[State, Params], Arrays],
    *,
    every: int,
    noise: Parameter | float,
    start: Callable[[jax.Array], jax.Array] = lambda key: key,
    fixed: Collection[str] = (),
) -> Simulation:
    """Return a simulation that runs a trial simulation beside one with the true parameters, which is recorded.

    Both start from the same key and share all parameters except those named in ``true``. One step is ``every`` steps of
    the given simulation and one recorded frame: each number y* that ``measure`` returns for the true simulation, plus
    a normal error of standard deviation ``noise`` (a parameter). With y the same numbers of the trial simulation,

        misfit = mean over frames and numbers of ((y - y*) / noise)^2

    is about 1 where the trial parameters explain the frames. Its minimum is the maximum-likelihood estimate.

    Frames hold the observed arrays of the trial simulation and ``recorded_NAME`` for every name of ``measure``;
    diagnostics are those of the trial simulation, ``misfit``, and ``distance``, the root mean square of y - y* at
    present without the errors.

    Args:
        simulation: one that runs a fixed number of steps.
        true: parameters of the recorded simulation, by path.
        measure: ``(state, params) -> {name: array}``.
        every: steps between recorded frames.
        noise: the parameter ``noise``.
        start: ``key of the run -> key of both initial states``; the noise is drawn from the key of the run.
        fixed: names of parameters (or whole branches) at the top level that keep their defaults and are not parameters
            of the result.

    Raises:
        UserError: if the parameters are not in a dictionary.
    """
    if not isinstance(simulation.params, dict):
        raise UserError("a recording needs params in a dictionary, to which 'noise' is added; put them in one")

    def both(params: Params) -> Params:
        """Return the trial and the true parameters, stacked."""
        trial = paths.leaves(with_fixed(params))
        recorded = trial | {name: jnp.asarray(value, trial[name].dtype) for name, value in true.items()}
        return paths.mapped(lambda name, value: jnp.stack([value, recorded[name]]), with_fixed(params))

    def with_fixed(params: Params) -> Params:
        """Return the trial parameters, the fixed ones included."""
        return simulation.params | {name: params[name] for name in simulation.params if name in params}

    def init(params: Params, key: jax.Array) -> Recording:
        pair = jax.vmap(simulation.init, (0, None))(both(params), start(key))
        return Recording(pair=pair, key=jax.random.key_data(key), steps=jnp.int32(0))

    def step(state: Recording, params: Params) -> Recording:
        pair = jax.vmap(simulation.step)(state.pair, both(params))
        return Recording(pair=pair, key=state.key, steps=state.steps + 1)

    def measured(state: Recording, params: Params) -> tuple[Arrays, Arrays, Arrays]:
        """Return the measured numbers of the trial and of the true simulation, and the errors."""
        values = jax.vmap(measure)(state.pair, both(params))
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key, impl="threefry2x32"), state.steps)
        errors = {
            name: params["noise"] * jax.random.normal(one, value.shape[1:], value.dtype)
            for (name, value), one in zip(values.items(), jax.random.split(key, len(values)), strict=True)
        }
        return {name: value[0] for name, value in values.items()}, {n: v[1] for n, v in values.items()}, errors

    def mean_square(differences: Arrays) -> jax.Array:
        count = sum(difference.size for difference in differences.values())
        return sum((jnp.sum(difference**2) for difference in differences.values()), jnp.zeros(())) / count

    def sample(state: Recording, params: Params) -> Arrays:
        trial, exact, errors = measured(state, params)
        return {"misfit": mean_square({n: (trial[n] - exact[n] - errors[n]) / params["noise"] for n in trial})}

    def of_trial(state: Recording, params: Params) -> tuple[State, Params]:
        return jax.tree.map(lambda leaf: leaf[0], (state.pair, both(params)))

    def observe(state: Recording, params: Params) -> Arrays:
        _, exact, errors = measured(state, params)
        recorded = {f"recorded_{name}": exact[name] + errors[name] for name in exact}
        return simulation.observe(*of_trial(state, params)) | recorded

    def diagnose(state: Recording, params: Params) -> Arrays:
        trial, exact, _ = measured(state, params)
        distance = root(mean_square({name: trial[name] - exact[name] for name in trial}))
        return simulation.diagnose(*of_trial(state, params)) | {"distance": distance}

    def check(params: Params, key: jax.Array) -> None:
        for values in (with_fixed(params), jax.tree.map(lambda value: value[1], both(params))):
            simulation.check_values(values, start(key))

    status_of_one = status_of(simulation)

    def status(state: Recording, params: Params) -> jax.Array:
        codes = jax.vmap(status_of_one)(state.pair, both(params))
        # A code that stops one of the two stops both, and takes precedence over a caution of the other.
        stopping = jnp.max(jnp.where(stops(codes), codes, Status.OK))
        return jnp.where(stopping == Status.OK, jnp.max(codes), stopping)

    free = {name: value for name, value in simulation.params.items() if name not in fixed}
    pair = Simulation(
        init=init,
        step=step,
        observe=observe,
        diagnose=diagnose,
        params={**free, "noise": noise},
        status=as_often(simulation, status),
        check=check,
        dimensions=simulation.dimensions,
        coordinates=simulation.coordinates,
        parameters={path: declared for path, declared in simulation.parameters.items() if path.split(".")[0] in free},
    )
    return averaged(pair, sample, every=every, skip=0, diagnose=lambda mean, params: dict(mean))


def standard_errors(
    simulation: Simulation, params: Params, frames: int, wrt: Sequence[str], names: Sequence[str]
) -> dict[str, float]:
    """Return the standard errors of the parameters estimated by the least misfit.

        F_ij = sum over frames and numbers of (dy/dp_i) (dy/dp_j) / noise^2,   errors = sqrt(diag(inverse(F)))

    F is the Fisher information; no unbiased estimate has a smaller variance (Cramer and Rao).

    Args:
        simulation: a result of `beside_recording`.
        params: parameters near the minimum, ``noise`` among them.
        frames: number of recorded frames.
        wrt: paths of the scalar parameters that are estimated together.
        names: names of the recorded numbers y among the observed arrays.

    Example:
        >>> ball = rigid.system_identification()
        >>> true = ball.with_params(mass=0.6, restitution=0.8, friction=0.06).params
        >>> errors = core.standard_errors(ball, true, frames=70, wrt=["mass", "restitution"], names=["position"])
        >>> print({name: f"{error:.2g}" for name, error in errors.items()})
        {'mass': '0.0034', 'restitution': '0.00084'}
    """
    record = trajectory(simulation, frames, 1)

    def measured(values: jax.Array) -> jax.Array:
        trial = paths.replaced(params, dict(zip(wrt, values, strict=True)))
        observed = record(trial, jax.random.key(0))[1]
        # The first frame, the initial state, is not recorded.
        return jnp.concatenate([observed[name][1:].ravel() for name in names])

    leaves = paths.leaves(params)
    slopes = jax.jit(jax.jacfwd(measured))(jnp.stack([leaves[name] for name in wrt]))
    slopes = np.asarray(slopes, dtype=np.float64) / float(params["noise"])
    variances = np.diag(np.linalg.inv(slopes.T @ slopes))
    return {name: float(np.sqrt(variance)) for name, variance in zip(wrt, variances, strict=True)}
