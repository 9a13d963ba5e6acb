"""Random walk of basin hopping over the minima of a cluster, one evaluation of energy and force per step."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.pytree import pytree
from simkit.core.simulation import Arrays, Equilibrium, Params, Simulation
from simkit.core.status import Status, is_finite, status_of
from simkit.molecular import spaces
from simkit.molecular.analysis.bond_order import bond_order
from simkit.molecular.minimizers import Minimizer
from simkit.molecular.models.cluster_model import DIMENSION, ClusterModel
from simkit.molecular.neighbors import pairs
from simkit.molecular.relaxation import RelaxationState
from simkit.molecular.search.hops import accepts, hop, is_within

# Distance between a close-packed ball and the container, in bond lengths: one atom fits on the surface.
CLEARANCE = 1.0
# Cut-off of a bond, in bond lengths: between the first shell of neighbors and the second at sqrt(2).
BOND_REACH = 1.25


@pytree
class BasinHoppingState:
    """State of a search.

    Attributes:
        trial: the current quench; after the last hop, the relaxation of the lowest minimum.
        seed: uint32, (2,); random numbers depend on it and on the number of quenches.
        minimum: the last accepted minimum, (N, d).
        minimum_energy: energy of ``minimum``.
        lowest: the lowest minimum so far, (N, d).
        lowest_energy: energy of ``lowest``.
        quenches: int32, number of finished quenches.
        accepted: int32, number of accepted minima.
        evaluations: int32, evaluations of energy and force.
    """

    trial: RelaxationState
    seed: jax.Array
    minimum: jax.Array
    minimum_energy: jax.Array
    lowest: jax.Array
    lowest_energy: jax.Array
    quenches: jax.Array
    accepted: jax.Array
    evaluations: jax.Array


@dataclasses.dataclass(frozen=True)
class BasinHopping:
    """Parts of a basin-hopping search; see `simkit.molecular.search.basin_hopping.basin_hopping`.

    Attributes:
        model: the cluster.
        minimizer: of the quenches.
        quench: relaxation after a hop.
        polish: relaxation of the lowest minimum, which differs in the tolerance alone.
        hops: hops after the first quench.
        quench_steps: maximum number of iterations of a quench.
    """

    model: ClusterModel
    minimizer: Minimizer
    quench: Simulation
    polish: Simulation
    hops: int
    quench_steps: int

    def init(self, params: Params, key: jax.Array) -> BasinHoppingState:
        """Return the state before the first evaluation of the first quench."""
        trial = self.quench.init(params, key)
        position = trial.descent.position
        return BasinHoppingState(
            trial=trial,
            seed=jax.random.bits(key, (2,), jnp.uint32),
            minimum=position,
            minimum_energy=_largest(position),
            lowest=position,
            lowest_energy=_largest(position),
            quenches=jnp.int32(0),
            accepted=jnp.int32(0),
            evaluations=jnp.int32(1),
        )

    def step(self, state: BasinHoppingState, params: Params) -> BasinHoppingState:
        """Return the state after one evaluation of energy and force, which may end a quench and start the next."""
        trial = self.quench.step(state.trial, params)
        position, energy = trial.descent.position, trial.descent.energy
        # Energies for other parameters are not comparable.
        is_current = (trial.relaxed_for == state.trial.relaxed_for).all()
        minimum_energy = jnp.where(is_current, state.minimum_energy, _largest(position))
        lowest_energy = jnp.where(is_current, state.lowest_energy, _largest(position))

        is_over = (status_of(self.quench)(trial, params) != Status.OK) | (trial.descent.iteration >= self.quench_steps)
        ended = self.is_searching(state) & is_over
        is_valid = ended & is_finite(trial.descent) & is_within(position, self.container(params))
        uniform = _uniform(state, position)
        thermal_energy = params["temperature"] * params["epsilon"]
        accepted = is_valid & accepts(energy - minimum_energy, thermal_energy, uniform[-1, 2])
        lower = is_valid & (energy < lowest_energy)
        minimum, lowest = jnp.where(accepted, position, state.minimum), jnp.where(lower, position, state.lowest)

        quenches = state.quenches + ended
        hopped = self.hopped(minimum, uniform, params)
        restarted = self.restarted(trial, jnp.where(quenches > self.hops, lowest, hopped), params)
        return BasinHoppingState(
            trial=jax.tree.map(lambda new, same: jnp.where(ended, new, same), restarted, trial),
            seed=state.seed,
            minimum=minimum,
            minimum_energy=jnp.where(accepted, energy, minimum_energy),
            lowest=lowest,
            lowest_energy=jnp.where(lower, energy, lowest_energy),
            quenches=quenches,
            accepted=state.accepted + accepted,
            evaluations=state.evaluations + 1,
        )

    def container(self, params: Params) -> jax.Array:
        """Return the radius of the container, length."""
        return (self.model.radius + CLEARANCE * self.model.bond) * params["sigma"]

    def is_searching(self, state: BasinHoppingState) -> jax.Array:
        """Return whether quenches remain."""
        return state.quenches <= self.hops

    def hopped(self, minimum: jax.Array, uniform: jax.Array, params: Params) -> jax.Array:
        """Return the start of the next quench, (N, d).

        Args:
            minimum: the last accepted minimum, (N, d).
            uniform: uniform random numbers, (N + 1, 3).
            params: parameters.
        """
        return hop(
            minimum,
            self.model.energies(minimum, params),
            uniform,
            step=params["step_size"] * self.model.bond * params["sigma"],
            container=self.container(params),
        )

    def restarted(self, trial: RelaxationState, position: jax.Array, params: Params) -> RelaxationState:
        """Return a relaxation before its first evaluation, which accepts the start at any energy."""
        largest = _largest(position)
        descent = self.minimizer.start(position, largest, jnp.zeros_like(position), self.model.scale(params))
        return dataclasses.replace(
            trial,
            # L-BFGS ignores moves whose products are zero: to overwrite them would cost time.
            descent=dataclasses.replace(descent, moves=trial.descent.moves, pulls=trial.descent.pulls),
            least_force=largest,
            least_energy=largest,
            idle=jnp.int32(0),
        )

    def status(self, state: BasinHoppingState, params: Params) -> jax.Array:
        """Return the `simkit.core.status.Status` code: OK until the lowest minimum is being relaxed."""
        # The force is valid after the first evaluation.
        is_polished_once = ~self.is_searching(state) & (state.trial.descent.iteration > 0)
        return jnp.where(is_polished_once, status_of(self.polish)(state.trial, params), jnp.int32(Status.OK))

    def best(self, state: BasinHoppingState) -> jax.Array:
        """Return the lowest minimum so far, (N, d)."""
        known = self.is_searching(state) & (state.lowest_energy < _largest(state.lowest))
        return jnp.where(known, state.lowest, state.trial.descent.position)

    def central_bond_order(self, position: jax.Array, params: Params) -> jax.Array:
        """Return the bond order of the innermost atom, sixth degree."""
        reach = BOND_REACH * self.model.bond * params["sigma"]
        arm = position - position.mean(axis=0)
        innermost = jnp.argmin(jnp.sum(arm**2, axis=1))
        return bond_order(pairs.all_pairs(position, spaces.free(DIMENSION), reach), 6)[innermost]

    def diagnose(self, state: BasinHoppingState, params: Params) -> Arrays:
        """Return the diagnostics of the search."""
        current = self.polish.diagnose(state.trial, params)
        position = self.best(state)
        energy = self.model.energies(position, params).sum()
        return {
            "iteration": state.evaluations - 1,
            "force_evaluations": state.evaluations,
            "energy": energy,
            "energy_per_particle": energy / len(position),
            "trial_energy": current["energy"],
            "max_force": current["max_force"],
            "hops": jnp.clip(state.quenches - 1, 0, self.hops),
            "acceptance_rate": state.accepted / jnp.maximum(state.quenches, 1).astype(energy.dtype),
            "central_bond_order_6": self.central_bond_order(position, params),
        }

    def simulation(self) -> Simulation:
        """Return the `Simulation` record."""
        solution = self.polish.equilibrium
        assert solution is not None  # every relaxation has one
        return Simulation(
            init=self.init,
            step=self.step,
            observe=lambda state, params: self.polish.observe(state.trial, params),
            diagnose=self.diagnose,
            params=self.polish.params,
            converges=True,
            equilibrium=Equilibrium(
                unknowns=lambda state: solution.unknowns(state.trial),
                residual=solution.residual,
                replace=lambda state, x: dataclasses.replace(state, trial=solution.replace(state.trial, x)),
            ),
            status=self.status,
            parameters=self.polish.parameters,
            dimensions=dict(self.polish.dimensions) | {"energy_of_particle": ("particle",)},
        )


def _uniform(state: BasinHoppingState, position: jax.Array) -> jax.Array:
    """Return the random numbers of one hop, uniform in [0, 1), (N + 1, 3)."""
    key = jax.random.fold_in(jax.random.wrap_key_data(state.seed, impl="threefry2x32"), state.quenches)
    # Drawn at every step: single precision suffices and costs half.
    return jax.random.uniform(key, (len(position) + 1, DIMENSION), jnp.float32).astype(position.dtype)


def _largest(position: jax.Array) -> jax.Array:
    # Not infinity: the status would be NON_FINITE.
    return jnp.asarray(jnp.finfo(position.dtype).max, position.dtype)
