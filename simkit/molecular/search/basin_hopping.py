"""Basin hopping: a walk over the minima of a cluster, in search of the lowest one."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE, Parameter
from simkit.core.pytree import pytree
from simkit.core.quantities import described
from simkit.core.simulation import Arrays, Equilibrium, Params, Simulation
from simkit.core.status import Status, is_finite
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.analysis.bond_order import bond_order
from simkit.molecular.minimizers import lbfgs
from simkit.molecular.models.cluster_model import DIMENSION, cluster_model
from simkit.molecular.models.quantities import particle_quantities
from simkit.molecular.neighbors import pairs
from simkit.molecular.relaxation import RelaxationState, relaxation
from simkit.molecular.search.hops import accepts, hop, is_within

# Space between a close-packed ball and the container, in bond lengths: room for an atom on top of it all.
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


PARAMETERS = {
    "temperature": Parameter(
        0.8,
        NOT_NEGATIVE,
        "epsilon",
        "temperature of the walk: how readily it climbs to a higher minimum; 0 only goes downhill",
    ),
    "step_size": Parameter(
        0.36,
        NOT_NEGATIVE,
        doc="furthest an atom is shaken along each axis, in bond lengths; below 0.3 the cluster falls back",
    ),
}


@described(
    particle_quantities(dimension="3"),
    energy=("energy", "energy of the lowest minimum so far"),
    energy_per_particle=("energy", "energy per particle of the lowest minimum so far"),
    trial_energy=("energy", "energy of the trial"),
    max_force=("energy/length", "largest force of the trial"),
    hops=("1", "hops so far"),
    acceptance_rate=("1", "fraction of hops accepted"),
    central_bond_order_6=("1", "bond order of the innermost particle, sixth degree"),
)
def basin_hopping(
    *,
    particles: int = 13,
    potential: str = "lennard_jones",
    hops: int = 50,
    force_tolerance: float = 1e-10,
    quench_tolerance: float = 0.1,
    quench_steps: int = 500,
    spread: float = 1.25,
) -> Simulation:
    """Return the search for the lowest minimum of a cluster in free space, by hopping from minimum to minimum.

    A hop shakes the cluster out of its minimum (`simkit.molecular.search.hops.hop`) and quenches it by L-BFGS. The
    walker goes to the minimum found if that is lower, and otherwise with probability ``exp(-dE / T)``. After the last
    hop the lowest minimum is quenched to ``force_tolerance``, and the search is done.

    One step is one evaluation of energy and force, wherever the walker is: a trial that ends is judged, and the next
    one set up, in the same step. So many walkers run as one `simkit.core.ensemble.ensemble` and none waits for
    another's quench. The derivative of the end is that of the minimum, whatever the walk that led there.

    T is the parameter ``temperature``. Shaken by less than ``step_size`` = 0.36 a cluster falls back where it was,
    shaken by more it melts.

    Args:
        particles: number of atoms, at least 2.
        potential: ``"lennard_jones"`` or ``"morse"``.
        hops: hops after the first quench. Good values: 30 for 13 atoms, 1000 for 31.
        force_tolerance: largest force left in the end, in units of epsilon / sigma. Good values: 1e-10 in float64,
            1e-3 in float32.
        quench_tolerance: largest force left in a trial. Good values: 0.01 to 0.3; a minimum is only to be recognized.
        quench_steps: iterations after which a trial ends anyway.
        spread: radius of the sphere of starts, as for `simkit.molecular.systems.clusters.cluster`.

    Raises:
        UserError: if an argument is out of its range.

    Reference: Wales and Doye, J. Phys. Chem. A 101, 5111 (1997), doi:10.1021/jp970984n; Cambridge Cluster Database.
    """
    if hops < 1:
        raise UserError(f"hops = {hops} is below 1; for the nearest minimum alone use molecular.cluster")
    if not force_tolerance <= quench_tolerance < 1:
        raise UserError(
            f"quench_tolerance = {quench_tolerance} is not between force_tolerance = {force_tolerance} and 1; "
            "choose 0.1"
        )
    if quench_steps < 1:
        raise UserError(f"quench_steps = {quench_steps} is below 1; choose 500")
    model = cluster_model(particles=particles, potential=potential, spread=spread)
    params = model.params | PARAMETERS
    # A trial takes as many iterations with twice the memory, and these longer.
    minimizer = lbfgs(memory=4)

    def descent_to(tolerance: float) -> Simulation:
        return relaxation(
            model.interaction,
            model.start,
            params=params,
            scale=model.scale,
            minimizer=minimizer,
            force_tolerance=tolerance,
            force_unit=model.force_unit,
            observe=model.observe,
        )

    # They differ in when they are done, and in nothing else.
    quench, polish = descent_to(quench_tolerance), descent_to(force_tolerance)
    assert quench.status and polish.status and polish.equilibrium
    trial_status, final_status, solution = quench.status, polish.status, polish.equilibrium

    def container(params: Params) -> jax.Array:
        return (model.radius + CLEARANCE * model.bond) * params["sigma"]

    def is_searching(state: BasinHoppingState) -> jax.Array:
        return state.quenches <= hops

    def init(params: Params, key: jax.Array) -> BasinHoppingState:
        trial = quench.init(params, key)
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

    def step(state: BasinHoppingState, params: Params) -> BasinHoppingState:
        trial = quench.step(state.trial, params)
        position, energy = trial.descent.position, trial.descent.energy
        # Energies found under other parameters do not compare.
        is_current = (trial.relaxed_for == state.trial.relaxed_for).all()
        minimum_energy = jnp.where(is_current, state.minimum_energy, _largest(position))
        lowest_energy = jnp.where(is_current, state.lowest_energy, _largest(position))

        is_over = (trial_status(trial, params) != Status.OK) | (trial.descent.iteration >= quench_steps)
        ended = is_searching(state) & is_over
        sound = ended & is_finite(trial.descent) & is_within(position, container(params))
        chance = _chance(state, position)
        thermal_energy = params["temperature"] * params["epsilon"]
        accepted = sound & accepts(energy - minimum_energy, thermal_energy, chance[-1, 2])
        lower = sound & (energy < lowest_energy)
        minimum, lowest = jnp.where(accepted, position, state.minimum), jnp.where(lower, position, state.lowest)

        shaken = hop(
            minimum,
            model.energies(minimum, params),
            chance,
            step=params["step_size"] * model.bond * params["sigma"],
            container=container(params),
        )
        quenches = state.quenches + ended
        following = _setting_out(trial, jnp.where(quenches > hops, lowest, shaken), params)
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

    def _setting_out(trial: RelaxationState, position: jax.Array, params: Params) -> RelaxationState:
        """Return a relaxation that has yet to evaluate where it starts, and takes it whatever the energy there."""
        largest = _largest(position)
        descent = minimizer.start(position, largest, jnp.zeros_like(position), model.scale(params))
        return dataclasses.replace(
            trial,
            # What was remembered counts for nothing without the products: to overwrite it would cost time.
            descent=dataclasses.replace(descent, moves=trial.descent.moves, pulls=trial.descent.pulls),
            least_force=largest,
            least_energy=largest,
            idle=jnp.int32(0),
        )

    def is_polished_once(state: BasinHoppingState) -> jax.Array:
        # A descent that has evaluated nothing yet has no force.
        return ~is_searching(state) & (state.trial.descent.iteration > 0)

    def status(state: BasinHoppingState, params: Params) -> jax.Array:
        return jnp.where(is_polished_once(state), final_status(state.trial, params), jnp.int32(Status.OK))

    def best(state: BasinHoppingState) -> jax.Array:
        known = is_searching(state) & (state.lowest_energy < _largest(state.lowest))
        return jnp.where(known, state.lowest, state.trial.descent.position)

    def central_bond_order(position: jax.Array, params: Params) -> jax.Array:
        reach = BOND_REACH * model.bond * params["sigma"]
        arm = position - position.mean(axis=0)
        innermost = jnp.argmin(jnp.sum(arm**2, axis=1))
        return bond_order(pairs.all_pairs(position, spaces.free(DIMENSION), reach), 6)[innermost]

    def observe(state: BasinHoppingState, params: Params) -> Arrays:
        return polish.observe(state.trial, params)

    def diagnose(state: BasinHoppingState, params: Params) -> Arrays:
        current = polish.diagnose(state.trial, params)
        energy = model.energies(best(state), params).sum()
        return {
            "iteration": state.evaluations - 1,
            "force_evaluations": state.evaluations,
            "energy": energy,
            "energy_per_particle": energy / particles,
            "trial_energy": current["energy"],
            "max_force": current["max_force"],
            "hops": jnp.clip(state.quenches - 1, 0, hops),
            "acceptance_rate": state.accepted / jnp.maximum(state.quenches, 1).astype(energy.dtype),
            "central_bond_order_6": central_bond_order(best(state), params),
        }

    return Simulation(
        init=init,
        step=step,
        observe=observe,
        diagnose=diagnose,
        params=params,
        converges=True,
        equilibrium=Equilibrium(
            unknowns=lambda state: solution.unknowns(state.trial),
            residual=solution.residual,
            replace=lambda state, x: dataclasses.replace(state, trial=solution.replace(state.trial, x)),
        ),
        status=status,
        dimensions=dict(polish.dimensions) | {"energy_of_particle": ("particle",)},
    )


def _chance(state: BasinHoppingState, position: jax.Array) -> jax.Array:
    """Return all the random numbers of one hop, (N + 1, 3)."""
    key = jax.random.fold_in(jax.random.wrap_key_data(state.seed, impl="threefry2x32"), state.quenches)
    # Drawn at every step: in single precision, which costs half and shakes as well.
    return jax.random.uniform(key, (len(position) + 1, DIMENSION), jnp.float32).astype(position.dtype)


def _largest(position: jax.Array) -> jax.Array:
    # Not infinity, which would look like a failure.
    return jnp.asarray(jnp.finfo(position.dtype).max, position.dtype)
