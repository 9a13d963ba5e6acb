"""Misfit between a simulation and the noisy recording of another, for parameter estimation."""

from collections.abc import Callable, Collection, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.core.averages import averaged
from simkit.core.parameter import Parameter
from simkit.core.pytree import pytree
from simkit.core.rollout import trajectory
from simkit.core.simulation import Arrays, Params, Simulation, State
from simkit.core.status import Status, asked_at_every_step, status_of, stops
from simkit.errors import UserError


@pytree
class Recording:
    """A simulation and the one that it is compared with.

    Attributes:
        pair: states with the parameters that are tried and with the true ones, stacked.
        key: data of the random key of the noise, uint32.
        steps: int32, taken so far.
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
    """Return a simulation that runs beside one with the true parameters, of which noisy measurements are recorded.

    Both start from the same key and share all parameters but those named in ``true``. One step is ``every`` steps of
    the given simulation and one recorded frame: every number ``y*`` that ``measure`` returns for the true one, with a
    normal error of standard deviation ``noise`` (a parameter). The misfit of what is tried, y,

        misfit = mean over frames and numbers of ((y - y*) / noise)^2

    is about 1 where it explains the frames. Its minimum is the estimate of greatest likelihood.

    It observes, besides what the tried simulation does, ``recorded_NAME`` for every name that ``measure`` returns, and
    diagnoses ``misfit``, and ``distance``: root of the mean square of ``y - y*`` now, without the errors.

    Args:
        simulation: one that runs a fixed number of steps.
        true: parameters of the recorded one, by path.
        measure: ``(state, params) -> {name: array}``.
        every: steps between recorded frames.
        noise: the parameter ``noise``.
        start: key of the run -> key that both start from; the noise has the run's own.
        fixed: names of parameters (or of whole branches) at the top that keep their defaults and are not parameters of
            what is returned.

    Raises:
        UserError: if the parameters are not in a dictionary.
    """
    if not isinstance(simulation.params, dict):
        raise UserError("what is recorded needs params in a dictionary, to which 'noise' is added; put them in one")

    def both(params: Params) -> Params:
        """Return the parameters of the two, stacked."""
        tried = paths.leaves(every_one(params))
        recorded = tried | {name: jnp.asarray(value, tried[name].dtype) for name, value in true.items()}
        return paths.mapped(lambda name, value: jnp.stack([value, recorded[name]]), every_one(params))

    def every_one(params: Params) -> Params:
        """Return the parameters of the tried one, those included that are fixed."""
        return simulation.params | {name: params[name] for name in simulation.params if name in params}

    def init(params: Params, key: jax.Array) -> Recording:
        pair = jax.vmap(simulation.init, (0, None))(both(params), start(key))
        return Recording(pair=pair, key=jax.random.key_data(key), steps=jnp.int32(0))

    def step(state: Recording, params: Params) -> Recording:
        pair = jax.vmap(simulation.step)(state.pair, both(params))
        return Recording(pair=pair, key=state.key, steps=state.steps + 1)

    def measured(state: Recording, params: Params) -> tuple[Arrays, Arrays, Arrays]:
        """Return what is measured of the tried one and of the true one, and the errors."""
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
        tried, exact, errors = measured(state, params)
        return {"misfit": mean_square({n: (tried[n] - exact[n] - errors[n]) / params["noise"] for n in tried})}

    def own(state: Recording, params: Params) -> tuple[State, Params]:
        return jax.tree.map(lambda leaf: leaf[0], (state.pair, both(params)))

    def observe(state: Recording, params: Params) -> Arrays:
        _, exact, errors = measured(state, params)
        recorded = {f"recorded_{name}": exact[name] + errors[name] for name in exact}
        return simulation.observe(*own(state, params)) | recorded

    def diagnose(state: Recording, params: Params) -> Arrays:
        tried, exact, _ = measured(state, params)
        square = mean_square({name: tried[name] - exact[name] for name in tried})
        moved = square > 0
        distance = jnp.where(moved, jnp.sqrt(jnp.where(moved, square, 1)), 0)
        return simulation.diagnose(*own(state, params)) | {"distance": distance}

    def check(params: Params, key: jax.Array) -> None:
        for shown in (every_one(params), jax.tree.map(lambda value: value[1], both(params))):
            simulation.check_values(shown, start(key))

    status_of_one = status_of(simulation)

    def status(state: Recording, params: Params) -> jax.Array:
        codes = jax.vmap(status_of_one)(state.pair, both(params))
        # What stops one of the two stops both; a caution of the other must not hide it.
        stopping = jnp.max(jnp.where(stops(codes), codes, Status.OK))
        return jnp.where(stopping == Status.OK, jnp.max(codes), stopping)

    free = {name: value for name, value in simulation.params.items() if name not in fixed}
    pair = Simulation(
        init=init,
        step=step,
        observe=observe,
        diagnose=diagnose,
        params={**free, "noise": noise},
        status=status,
        watched=asked_at_every_step(simulation),
        check=check,
        dimensions=simulation.dimensions,
        coordinates=simulation.coordinates,
        parameters={name: told for name, told in simulation.parameters.items() if name.split(".")[0] in free},
    )
    return averaged(pair, sample, every=every, skip=0, diagnose=lambda mean, params: dict(mean))


def standard_errors(
    simulation: Simulation, params: Params, frames: int, wrt: Sequence[str], names: Sequence[str]
) -> dict[str, float]:
    """Return how far from the truth the parameters of least misfit may be expected, one standard deviation each.

        F_ij = sum over frames and numbers of (dy/dp_i) (dy/dp_j) / noise^2,   errors = sqrt(diag(inverse(F)))

    F is Fisher's information; no unbiased estimate scatters less (Cramer and Rao).

    Args:
        simulation: as `beside_recording` returns it.
        params: where to evaluate, near the minimum; ``noise`` among them.
        frames: number of recorded frames.
        wrt: paths of the single numbers that are estimated together.
        names: of what is recorded, y, as the simulation observes it for the tried parameters.
    """
    record = trajectory(simulation, frames, 1)

    def measured(values: jax.Array) -> jax.Array:
        tried = paths.replaced(params, dict(zip(wrt, values, strict=True)))
        observed = record(tried, jax.random.key(0))[1]
        # The first frame is the start, of which nothing is recorded.
        return jnp.concatenate([observed[name][1:].ravel() for name in names])

    known = paths.leaves(params)
    slopes = jax.jit(jax.jacfwd(measured))(jnp.stack([known[name] for name in wrt]))
    slopes = np.asarray(slopes, dtype=np.float64) / float(params["noise"])
    variances = np.diag(np.linalg.inv(slopes.T @ slopes))
    return {name: float(np.sqrt(variance)) for name, variance in zip(wrt, variances, strict=True)}
