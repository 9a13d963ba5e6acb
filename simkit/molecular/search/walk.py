"""The walk of basin hopping: trials that are quenched, judged and shaken, one evaluation per step."""

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

# Distance between a close-packed ball and the container, in bond lengths: room for one atom on the surface.
CLEARANCE = 1.0
# What counts as a bond, in bond lengths: between the first and the second shell of neighbors, which is sqrt(2) away.
BOND_REACH = 1.25


@pytree
class BasinHoppingState:
    """A search under way.

    Attributes:
        trial: the relaxation of the current trial; of the lowest minimum once the search is over.
        seed: uint32, (2,); what is drawn depends on it and on the number of quenches.
        minimum: the minimum the walker is in, (N, d).
        minimum_energy: its energy.
        lowest: the lowest minimum so far, (N, d).
        lowest_energy: its energy.
        quenches: int32, trials that ended.
        accepted: int32, trials that ended where the walker then went.
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
    """A walk over the minima of a cluster; for what it does see `basin_hopping`.

    Attributes:
        model: the cluster.
        minimizer: of the trials.
        quench: the relaxation of a trial.
        polish: that of the lowest minimum, the same but for its tolerance.
        hops: hops after the first quench.
        quench_steps: iterations after which a trial ends anyway.
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
        """Return the state after one more evaluation of energy and force; a trial that ends is judged in it."""
        trial = self.quench.step(state.trial, params)
        position, energy = trial.descent.position, trial.descent.energy
        # Energies found under other parameters do not compare.
        is_current = (trial.relaxed_for == state.trial.relaxed_for).all()
        minimum_energy = jnp.where(is_current, state.minimum_energy, _largest(position))
        lowest_energy = jnp.where(is_current, state.lowest_energy, _largest(position))

        is_over = (status_of(self.quench)(trial, params) != Status.OK) | (trial.descent.iteration >= self.quench_steps)
        ended = self.is_searching(state) & is_over
        sound = ended & is_finite(trial.descent) & is_within(position, self.container(params))
        chance = _chance(state, position)
        thermal_energy = params["temperature"] * params["epsilon"]
        accepted = sound & accepts(energy - minimum_energy, thermal_energy, chance[-1, 2])
        lower = sound & (energy < lowest_energy)
        minimum, lowest = jnp.where(accepted, position, state.minimum), jnp.where(lower, position, state.lowest)

        quenches = state.quenches + ended
        shaken = self.shaken(minimum, chance, params)
        following = self.setting_out(trial, jnp.where(quenches > self.hops, lowest, shaken), params)
        return BasinHoppingState(
            trial=jax.tree.map(lambda new, same: jnp.where(ended, new, same), following, trial),
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
        """Return the radius of the sphere that no atom may leave."""
        return (self.model.radius + CLEARANCE * self.model.bond) * params["sigma"]

    def is_searching(self, state: BasinHoppingState) -> jax.Array:
        """Return whether trials are left."""
        return state.quenches <= self.hops

    def shaken(self, minimum: jax.Array, chance: jax.Array, params: Params) -> jax.Array:
        """Return where the next trial begins, (N, d).

        Args:
            minimum: where the walker is, (N, d).
            chance: uniform random numbers, (N + 1, 3).
            params: parameters.
        """
        return hop(
            minimum,
            self.model.energies(minimum, params),
            chance,
            step=params["step_size"] * self.model.bond * params["sigma"],
            container=self.container(params),
        )

    def setting_out(self, trial: RelaxationState, position: jax.Array, params: Params) -> RelaxationState:
        """Return a relaxation at its first evaluation, which accepts its start whatever the energy there."""
        largest = _largest(position)
        descent = self.minimizer.start(position, largest, jnp.zeros_like(position), self.model.scale(params))
        return dataclasses.replace(
            trial,
            # What was remembered counts for nothing without the products: to overwrite it would cost time.
            descent=dataclasses.replace(descent, moves=trial.descent.moves, pulls=trial.descent.pulls),
            least_force=largest,
            least_energy=largest,
            idle=jnp.int32(0),
        )

    def status(self, state: BasinHoppingState, params: Params) -> jax.Array:
        """Return the `simkit.core.status.Status` code: OK until the lowest minimum is being relaxed."""
        # A descent that has evaluated nothing yet has no force.
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
        """Return the record that everything else takes."""
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


def _chance(state: BasinHoppingState, position: jax.Array) -> jax.Array:
    """Return all the random numbers of one hop, (N + 1, 3)."""
    key = jax.random.fold_in(jax.random.wrap_key_data(state.seed, impl="threefry2x32"), state.quenches)
    # Drawn at every step: in single precision, which costs half and shakes as well.
    return jax.random.uniform(key, (len(position) + 1, DIMENSION), jnp.float32).astype(position.dtype)


def _largest(position: jax.Array) -> jax.Array:
    # Not infinity, which would look like a failure.
    return jnp.asarray(jnp.finfo(position.dtype).max, position.dtype)
