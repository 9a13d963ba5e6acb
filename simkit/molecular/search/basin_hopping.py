"""Basin hopping: Monte Carlo search for the global minimum of a cluster."""

from simkit.core.parameter import NOT_NEGATIVE, Parameter
from simkit.core.quantities import described
from simkit.core.simulation import Simulation
from simkit.errors import UserError
from simkit.molecular.minimizers import lbfgs
from simkit.molecular.models.cluster_model import cluster_model
from simkit.molecular.models.quantities import particle_quantities
from simkit.molecular.relaxation import relaxation
from simkit.molecular.search.walk import BasinHopping

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

    A hop displaces the atoms of the current minimum at random (`simkit.molecular.search.hops.hop`) and relaxes them by
    L-BFGS (a quench). The new minimum is accepted if it is lower, and otherwise with probability ``exp(-dE / T)``.
    After the last hop the lowest minimum is relaxed to ``force_tolerance``, and the search has converged.

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

    Reference: Wales and Doye, J. Phys. Chem. A 101, 5111 (1997), doi:10.1021/jp970984n; Cambridge Cluster Database.
    """
    if hops < 1:
        raise UserError(f"hops = {hops} is below 1; for the nearest minimum alone use molecular.system")
    if not force_tolerance <= quench_tolerance < 1:
        raise UserError(
            f"quench_tolerance = {quench_tolerance} is not between force_tolerance = {force_tolerance} and 1; "
            "choose 0.1"
        )
    if quench_steps < 1:
        raise UserError(f"quench_steps = {quench_steps} is below 1; choose 500")
    model = cluster_model(particles=particles, potential=potential, spread=spread)
    params = model.params | PARAMETERS
    # With twice the memory a quench takes as many iterations, and each of them longer.
    minimizer = lbfgs(memory=4)

    def relaxed_to(tolerance: float) -> Simulation:
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

    return BasinHopping(
        model=model,
        minimizer=minimizer,
        quench=relaxed_to(quench_tolerance),
        polish=relaxed_to(force_tolerance),
        hops=hops,
        quench_steps=quench_steps,
    ).simulation()
