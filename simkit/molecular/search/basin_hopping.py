"""Basin hopping: a walk over the minima of a cluster, in search of the lowest one."""

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
    return BasinHopping(
        model=model,
        minimizer=minimizer,
        quench=descent_to(quench_tolerance),
        polish=descent_to(force_tolerance),
        hops=hops,
        quench_steps=quench_steps,
    ).simulation()
