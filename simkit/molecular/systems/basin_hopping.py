"""Basin hopping: Monte Carlo search for the global minimum of a cluster, with its success rate and cost."""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Parameter
from simkit.core.pytrees import pytree
from simkit.core.settings import arguments, number, whole, word
from simkit.core.simulation import Arrays, Equilibrium, Params, Simulation, described
from simkit.core.status import Status, is_finite, status_of
from simkit.molecular import spaces
from simkit.molecular.analysis.order import bond_order
from simkit.molecular.declarations import TOLERANCE, particle_quantities
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.minimizers import Minimizer, Scale, lbfgs
from simkit.molecular.neighbors import pairs
from simkit.molecular.potentials import PairPotential, lennard_jones, morse
from simkit.molecular.relaxation import RelaxationState, relaxation
from simkit.molecular.spaces import MAX_PARTICLES_IN_PAIRS, Cell

DIMENSION = 3
DEPTH = Parameter(1.0, POSITIVE, "energy", "depth of the pair potential")
LENNARD_JONES_PARAMETERS = {
    "epsilon": DEPTH,
    "sigma": Parameter(1.0, POSITIVE, "length", "distance at which the pair potential crosses zero"),
}
MORSE_PARAMETERS = {
    "epsilon": DEPTH,
    "sigma": Parameter(1.0, POSITIVE, "length", "distance of the minimum of the pair potential"),
    "rho": Parameter(6.0, POSITIVE, "1", "sigma over the width of the well"),
}
# sigma^2 U''(r) / epsilon of Lennard-Jones at its minimum, 72 / 2^(1/3).
LENNARD_JONES_STIFFNESS = 72 / 2 ** (1 / 3)


class ClusterModel(NamedTuple):
    """A Lennard-Jones or Morse cluster, with a pair potential without cut-off.

    Attributes:
        particles: number of atoms, at least 2.
        potential: ``"lennard_jones"`` or ``"morse"``.
        spread: radius of the sphere of starts, in units of the radius of a close-packed ball of the atoms.
    """

    particles: int
    potential: str
    spread: float

    @property
    def params(self) -> dict[str, Parameter]:
        """``epsilon``, ``sigma`` and, for Morse, ``rho``."""
        return MORSE_PARAMETERS if self.potential == "morse" else LENNARD_JONES_PARAMETERS

    @property
    def bond(self) -> float:
        """Distance of the minimum of the pair potential, in units of sigma."""
        return 1 if self.potential == "morse" else 2 ** (1 / 6)

    @property
    def radius(self) -> float:
        """Radius of a close-packed ball of the atoms, in units of sigma."""
        # A close-packed crystal has sqrt(2) atoms per cubed bond length.
        return self.bond * (3 * self.particles / (4 * math.pi * math.sqrt(2))) ** (1 / 3)

    @property
    def pair(self) -> PairPotential:
        """The pair potential."""
        return morse() if self.potential == "morse" else lennard_jones()

    def start(self, params: Params, key: jax.Array) -> jax.Array:
        """Return positions that are uniformly random in a sphere, (N, 3)."""
        direction_key, distance_key = jax.random.split(key)
        dtype = params["sigma"].dtype
        direction = jax.random.normal(direction_key, (self.particles, DIMENSION), dtype)
        direction = direction / jnp.sqrt(jnp.sum(direction**2, axis=1, keepdims=True))
        distance = jax.random.uniform(distance_key, (self.particles, 1), dtype) ** (1 / 3)
        return self.spread * self.radius * params["sigma"] * distance * direction

    def scale(self, params: Params) -> Scale:
        """Return sigma and the curvature of the pair potential at its minimum."""
        unit = params["epsilon"] / params["sigma"] ** 2
        lennard_jones_stiffness = jnp.full_like(params["sigma"], LENNARD_JONES_STIFFNESS)
        stiffness = 2 * params["rho"] ** 2 if self.potential == "morse" else lennard_jones_stiffness
        return Scale(length=params["sigma"], stiffness=stiffness * unit)

    def energies(self, position: jax.Array, params: Params) -> jax.Array:
        """Return half the pair energies of each atom, (N,)."""
        apart = pairs.all_pairs(position, spaces.free(DIMENSION))
        return pairs.energy_per_particle(apart, self.pair, **{name: params[name] for name in self.params})

    def observe(self, position: jax.Array, cell: Cell, params: Params) -> Arrays:
        """Return ``diameter`` and ``energy_of_particle``, (N,) each."""
        del cell
        diameter = jnp.full(self.particles, self.bond, position.dtype) * params["sigma"]
        return {"diameter": diameter, "energy_of_particle": self.energies(position, params)}


# Ratio of the energies of the most weakly and the most strongly bound atom, below which the former is moved. A surface
# atom of a compact cluster has half the energy of the innermost; an adatom less.
WEAKLY_BOUND = 0.5


def hop(
    position: jax.Array, energies: jax.Array, uniform: jax.Array, *, step: jax.Array, container: jax.Array
) -> jax.Array:
    """Return a cluster with its atoms displaced at random.

    Every atom moves by up to ``step`` along each axis. The most weakly bound one, if its energy is less than half that
    of the most strongly bound, moves instead to a random direction at the distance of the outermost atom. Atoms outside
    the container are moved back to its wall, so that none evaporates.

    Args:
        position: length, (N, 3).
        energies: share of each atom in the energy of the cluster, (N,).
        uniform: uniform random numbers in [0, 1), (N + 1, 3).
        step: length.
        container: radius of the container around the center of the cluster, length.

    Returns:
        Positions around the origin, (N, 3).

    Reference: Wales and Doye, J. Phys. Chem. A 101, 5111 (1997), doi:10.1021/jp970984n.
    """
    arm = position - position.mean(axis=0)
    displaced = arm + step * (2 * uniform[:-1] - 1)
    surface = jnp.sqrt(jnp.sum(arm**2, axis=1).max()) * _direction(uniform[-1, 0], uniform[-1, 1])
    weakest = jnp.argmax(energies)
    is_moved = (jnp.arange(len(position)) == weakest) & (energies[weakest] > WEAKLY_BOUND * energies.min())
    moved = jnp.where(is_moved[:, None], surface, displaced)
    distance = jnp.sqrt(jnp.sum(moved**2, axis=1, keepdims=True))
    return moved * jnp.minimum(1, container / jnp.where(distance > 0, distance, 1))


def _direction(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return a unit vector, uniform on the sphere for uniform a and b in [0, 1)."""
    along, around = 2 * a - 1, 2 * jnp.pi * b
    across = jnp.sqrt(1 - along**2)
    return jnp.stack([across * jnp.cos(around), across * jnp.sin(around), along])


def is_within(position: jax.Array, container: jax.Array) -> jax.Array:
    """Return whether all atoms are inside the container around the center of the cluster.

    Args:
        position: length, (N, 3).
        container: radius, length.
    """
    arm = position - position.mean(axis=0)
    return jnp.sum(arm**2, axis=1).max() <= container**2


def accepts(change: jax.Array, thermal_energy: jax.Array, uniform: jax.Array) -> jax.Array:
    """Return whether a change of energy is accepted, with the Metropolis probability ``min(1, exp(-change / T))``.

    Args:
        change: energy of the new minimum less that of the old one.
        thermal_energy: T, energy; at zero no increase is accepted.
        uniform: uniform random number in [0, 1).

    Reference: Metropolis et al., J. Chem. Phys. 21, 1087 (1953), doi:10.1063/1.1699114.
    """
    # The logarithm of a number in (0, 1] is finite, and T = 0 needs no case of its own.
    return change <= -thermal_energy * jnp.log(1 - uniform)


class SearchReport(NamedTuple):
    """Success rate and mean cost of a search.

    Attributes:
        success_rate: fraction of the walkers that found the minimum.
        mean_cost: cost of all walkers, each up to its first success or its end, over the number of successes. It
            estimates the cost until one walker, restarted after each failure, finds the minimum.
    """

    success_rate: float
    mean_cost: float


def search_report(energy: np.ndarray, cost: np.ndarray, *, lowest: float, tolerance: float) -> SearchReport:
    """Return success rate and mean cost of a search for a known minimum.

    Args:
        energy: the lowest energy so far, (frames, walkers), as in the diagnostic ``energy`` of an ensemble.
        cost: accumulated cost, (frames, walkers), such as ``force_evaluations``.
        lowest: energy of the minimum.
        tolerance: excess energy that counts as success: below the gap to the next minimum, above the error of a quench.

    Returns:
        A `SearchReport`; the mean cost is infinite if no walker found it.
    """
    found = np.asarray(energy) <= lowest + tolerance
    hit = found.any(axis=0)
    frame = np.where(hit, found.argmax(axis=0), len(found) - 1)
    spent = np.take_along_axis(np.asarray(cost), frame[None], axis=0)
    return SearchReport(float(hit.mean()), float(spent.sum() / hit.sum()) if hit.any() else float("inf"))


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
    """Parts of a basin-hopping search; see `simkit.molecular.systems.basin_hopping.basin_hopping`.

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
        reach, step = self.container(params), params["step_size"] * self.model.bond * params["sigma"]
        hopped = hop(minimum, self.model.energies(minimum, params), uniform, step=step, container=reach)
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


PARAMETERS = {
    "temperature": Parameter(
        0.8,
        NOT_NEGATIVE,
        "epsilon",
        "Metropolis temperature of the walk over minima; at 0 no higher minimum is accepted",
    ),
    "step_size": Parameter(
        0.36,
        NOT_NEGATIVE,
        doc="largest random displacement of an atom along each axis, in bond lengths; below 0.3 the cluster falls back",
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
@arguments(
    particles=whole("number of atoms", low=2, high=MAX_PARTICLES_IN_PAIRS),
    potential=word("the potential", ("lennard_jones", "morse")),
    hops=whole("hops after the first quench", low=1),
    quench_steps=whole("most iterations of a quench", low=1),
    quench_tolerance=TOLERANCE,
    force_tolerance=TOLERANCE,
    spread=number("radius of the sphere of starts, in units of that of a close-packed ball", bounds=POSITIVE),
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
    """Return the search for the lowest minimum of a cluster in free space by basin hopping.

    A hop displaces the atoms of the current minimum at random (`simkit.molecular.systems.basin_hopping.hop`) and
    relaxes them by L-BFGS (a quench). The new minimum is accepted if it is lower, and otherwise with probability
    ``exp(-dE / T)``. After the last hop the lowest minimum is relaxed to ``force_tolerance``, and the search has
    converged.

    One step is one evaluation of energy and force: the step that ends a quench also accepts or rejects its minimum and
    starts the next quench. So many walkers run as one `simkit.core.ensemble.ensemble` without waiting for each other's
    quenches. The derivative of the result is the implicit derivative of the minimum.

    T is the parameter ``temperature``. With a ``step_size`` well below 0.36 a cluster relaxes to the same minimum, well
    above it the cluster melts.

    Args:
        particles: number of atoms, at least 2.
        potential: ``"lennard_jones"`` or ``"morse"``.
        hops: hops after the first quench. Good values: 30 for 13 atoms, 1000 for 31.
        force_tolerance: largest residual force of the result, in units of epsilon / sigma. Good values: 1e-10 in
            float64, 1e-3 in float32.
        quench_tolerance: largest residual force of a quench. Good values: 0.01 to 0.3, enough to tell minima apart.
        quench_steps: maximum number of iterations of a quench.
        spread: radius of the sphere of starts, in units of the radius of a close-packed ball of the atoms. Good values:
            1 to 1.5.

    Raises:
        UserError: if an argument is out of its range.

    Example:
        >>> with jax.enable_x64(True):
        ...     trimer = molecular.basin_hopping(particles=3, hops=3)
        ...     run = simkit.run(trimer, steps=500, every=500)
        >>> print(f"{float(run['energy'][-1]):.4f}, three bonds of depth 1")
        -3.0000, three bonds of depth 1

    Reference: Wales and Doye, J. Phys. Chem. A 101, 5111 (1997), doi:10.1021/jp970984n; Cambridge Cluster Database.
    """
    model = ClusterModel(particles, potential, spread)
    interaction = pair_interaction(model.pair, cutoff=None, parameters=list(model.params), method="all_pairs")
    params = model.params | PARAMETERS
    # With twice the memory a quench takes as many iterations, and each of them longer.
    minimizer = lbfgs(memory=4)

    def relaxed_to(tolerance: float) -> Simulation:
        return relaxation(
            interaction,
            model.start,
            params=params,
            scale=model.scale,
            minimizer=minimizer,
            force_tolerance=tolerance,
            force_unit=lambda params: params["epsilon"] / params["sigma"],
            observe=model.observe,
        )

    return BasinHopping(
        model=model,
        minimizer=minimizer,
        quench=relaxed_to(quench_tolerance),
        polish=relaxed_to(force_tolerance),
        hops=hops,
        quench_steps=quench_steps,
    ).simulation()
