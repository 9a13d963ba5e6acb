"""Status codes of a simulation: failures as values, each with a message and a remedy."""

import enum
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.buffers import overflow_of
from simkit.core.simulation import Params, Simulation, State
from simkit.errors import UserError


class Status(enum.IntEnum):
    """Status codes returned by compiled code, one per simulation (one per member for an ensemble).

    Example:
        >>> simkit.Status(1).name, simkit.Status.NON_FINITE.value
        ('CONVERGED', 3)
    """

    OK = 0
    CONVERGED = 1
    MAX_STEPS = 2
    NON_FINITE = 3
    STALLED = 4
    BUFFER_OVERFLOW = 5
    IMPACT_OVERFLOW = 6
    BRIEF_CONTACT = 7
    JOINTS_APART = 8
    STEPPED_IMPACT = 9
    DISK_OUT_OF_PLANE = 10
    BOXES_MET = 11
    STOPPED = 12
    BODY_TOO_NEAR = 13
    UNRESOLVED = 14
    CELL_TOO_SMALL = 15
    VISCOSITY_OUT_OF_RANGE = 16
    OUTLINE_TOO_COARSE = 17
    COURANT_ABOVE_LIMIT = 18
    BACKFLOW = 19
    UNBALANCED = 20
    SWEEPS_TOO_FEW = 21
    STEP_TOO_LONG = 22
    TABLE_ENDED = 23
    STANCE_SLIPS = 24
    CONTACT_MISSED = 25


_ENDS = {
    Status.OK: "ran all its steps",
    Status.CONVERGED: "converged",
    Status.STOPPED: "stopped where its condition held",
}
_FAILURES = {
    Status.MAX_STEPS: "did not converge within its steps; give it more steps or loosen its tolerance",
    Status.NON_FINITE: "turned non-finite; bring the parameters nearer to their defaults, or reduce the time "
    "step where there is one; a flow may need more cells or scheme = 'upwind', particles a start farther apart",
    Status.STALLED: "got no further; loosen its tolerance, use float64 if it is float32, or take another minimizer",
    Status.BUFFER_OVERFLOW: "ran out of room in a buffer, such as a list of neighbors, so forces may be missing; raise "
    "its capacity",
    Status.IMPACT_OVERFLOW: "had more impacts in a step than its budget; reduce the time step or allow more impacts",
    Status.JOINTS_APART: "has joints or rigid bonds that its iterations did not close; reduce the time step or allow "
    "more iterations",
    Status.DISK_OUT_OF_PLANE: "pushed a disk out of the x-z plane; remove what pushes it along y or turns it about "
    "another axis, or take the method free, compliant or jointed",
    Status.BODY_TOO_NEAR: "moved a body to within two cells of a side or of another body, where the flow between is "
    "not resolved; let it turn back sooner, or use smaller cells",
    Status.CELL_TOO_SMALL: "shrank its cell to less than twice the cut-off of its forces, where pairs would be missed; "
    "take a larger cell of more particles, a shorter cut-off, or a lower pressure",
    Status.VISCOSITY_OUT_OF_RANGE: "has a viscosity, a diffusivity or a drag that became negative, or one of the first "
    "two that became too large for its explicit time step; change its formula, or reduce the time step",
    Status.TABLE_ENDED: "went on beyond the last row of a table of the time, where it has no value; give the table "
    "more rows, write outside = 'hold' in it, or take fewer steps",
    Status.OUTLINE_TOO_COARSE: "has a body whose outline became too long for its points, so that fluid leaks through; "
    "give the obstacle more points",
}
# Statuses that do not stop a run, whose result or derivatives may deviate from the physics.
_CAUTIONS = {
    Status.BRIEF_CONTACT: "ran all its steps, but a contact lasted too few of them for derivatives through it; take a "
    "smaller time step, more substeps or less stiffness",
    Status.STEPPED_IMPACT: "ran all its steps; its bodies hit each other or a plane at whole steps, so derivatives are "
    "those of the steps and, through these impacts, not those of the physics; take the method events for spheres and "
    "disks, or compliant",
    Status.BOXES_MET: "ran all its steps, but boxes touched boxes, where the force of the method compliant jumps from "
    "corner to corner: energy is not kept, and derivatives are not those of the physics; take the method impulses "
    "there",
    Status.UNRESOLVED: "ran all its steps, but moved particles so far in one step that the forces on them changed "
    "too much within it, as from a start that overlaps; reduce the time step, relax the start first, or place "
    "particles farther apart and from walls",
    Status.COURANT_ABOVE_LIMIT: "ran all its steps, but the flow crosses more cells in a step than the method carries "
    "stably; reduce the time step, give courant_number, or resolve the flow with more cells or scheme = 'upwind'",
    Status.BACKFLOW: "ran all its steps, but an outflow side took in fluid, of which nothing says what it carries: the "
    "other sides draw out more than they let in; make that side a 'pressure' side or an inflow",
    Status.UNBALANCED: "ran all its steps, but the flows given on its sides do not balance, so that what leaves was "
    "scaled to what enters; correct them, or make one side an outflow",
    Status.SWEEPS_TOO_FEW: "ran all its steps, but its solver left contacts unsolved, as of a heavy body on a light "
    "one, so that stacks sink and collapse; give the method impulses more sweeps, engine = 'simkit' a shorter time "
    "step, or bodies of less different mass",
    Status.STANCE_SLIPS: "ran all its steps, but a point that stands, or strikes, needs more friction than it has "
    "(friction_used); raise the friction of its geoms, as events follow points that do not slip",
    Status.CONTACT_MISSED: "ran all its steps, but a contact was not resolved at its time; reduce the time step, or "
    "let fewer points act at once",
    Status.STEP_TOO_LONG: "ran all its steps, but a body moved by more than its thickness in the step of an impact, "
    "which the method impulses applies up to a step early; reduce the time step, or take the method events for spheres "
    "and disks",
}
MESSAGES = _ENDS | _FAILURES | _CAUTIONS
FAILURES, CAUTIONS = tuple(_FAILURES), tuple(_CAUTIONS)
# Diagnostics whose last values a message of a run adds, since they say how much or when.
TELLING = {
    Status.COURANT_ABOVE_LIMIT: ("courant_number",),
    Status.SWEEPS_TOO_FEW: ("residual", "largest_penetration"),
    Status.STEP_TOO_LONG: ("largest_penetration",),
    Status.STANCE_SLIPS: ("friction_used",),
    Status.TABLE_ENDED: ("time",),
}
# Failures that leave a state which is not finite.
BROKEN = (Status.NON_FINITE, Status.TABLE_ENDED)
# Cautions about derivatives only: the run itself is as accurate as without them.
ONLY_DERIVATIVES = (Status.STEPPED_IMPACT,)


def failed(status: jax.Array | np.ndarray, failures: Sequence[Status] = FAILURES) -> Any:
    """Return which statuses are failures, for compiled code, tables, messages, exit codes, charts and data sets.

    Args:
        status: codes of `Status`, of any shape, in compiled code or on the host; or, on the host, their names in lower
            case as in the data set of a sweep.
        failures: the statuses that are failures; those of an optimization are fewer.

    Returns:
        Booleans of the same shape, a JAX or NumPy array like ``status``.
    """
    if status.dtype.kind in "OU":
        return np.isin(status, [code.name.lower() for code in failures])
    # One bit per code: XLA would repeat a comparison with every code in each loop that uses the result.
    bits = np.int32(sum(1 << failure for failure in failures))
    return (bits >> status) & 1 == 1


def stops(status: jax.Array | np.ndarray) -> Any:
    """Return whether a simulation with this status takes no further step: it converged or failed.

    Args:
        status: codes of `Status`, of any shape, in compiled code or on the host. A caution such as ``BRIEF_CONTACT``
            does not stop.

    Returns:
        Booleans of the same shape, a JAX or NumPy array like ``status``.
    """
    continues = status == Status.OK
    for caution in CAUTIONS:
        continues = continues | (status == caution)
    return ~continues


def checks_every_step(simulation: Simulation) -> bool:
    """Return whether a run evaluates the status after every step, and may stop there, or at frames only.

    Args:
        simulation: any.
    """
    status = simulation.status
    return status is not None and not getattr(getattr(status, "function", status), "is_for_frames", False)


def at_frames(status: Callable[[State, Params], jax.Array]) -> Callable[[State, Params], jax.Array]:
    """Mark a status function as evaluated at frames only, for steps that cost less than a check of the whole state.

    Args:
        status: ``(state, params) -> int32``; a step must leave states as they are whose status stops the run.

    Example:
        >>> status = core.at_frames(simkit.converged_when(lambda state, params: state["energy"] < params["tolerance"]))
        >>> simkit.Status(int(status({"energy": jnp.array(0.01)}, {"tolerance": 0.1}))).name
        'CONVERGED'
    """
    status.is_for_frames = True  # type: ignore[attr-defined]
    return status


def as_often(
    simulation: Simulation, status: Callable[[State, Params], jax.Array]
) -> Callable[[State, Params], jax.Array]:
    """Return a status function that is evaluated as often as that of a simulation.

    Args:
        simulation: any.
        status: of another simulation that contains it.
    """
    return status if checks_every_step(simulation) else at_frames(status)


def cautioned(step: Callable[[State, Params], State], caution: str) -> Callable[[State, Params], State]:
    """Mark a step whose second derivatives are not those of the physics.

    Args:
        step: ``(state, params) -> state``.
        caution: the reason in one line; empty where second derivatives are as accurate as first ones.
    """
    step.caution = caution  # type: ignore[attr-defined]
    return step


def caution_of(simulation: Simulation) -> str:
    """Return why second derivatives of a simulation are not those of the physics; empty where they are.

    Args:
        simulation: any, see `cautioned`.
    """
    return getattr(getattr(simulation.step, "function", simulation.step), "caution", "")


def is_finite(tree: State) -> jax.Array:
    """Return whether every floating-point number in ``tree`` is finite.

    Args:
        tree: any pytree of arrays; integers and random keys are ignored.

    Returns:
        A boolean scalar.
    """
    leaves = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.inexact)]
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves])) if leaves else jnp.bool_(True)


def status_of(simulation: Simulation) -> Callable[[State, Params], jax.Array]:
    """Return ``(state, params) -> int32``, the `Status` of a simulation, with the checks common to all simulations.

    ``BUFFER_OVERFLOW`` of a `simkit.core.buffers.Buffer` in the state takes precedence: numbers that follow from it may
    be NaN on purpose. A simulation without ``status`` is ``NON_FINITE`` or ``OK``. All functions that advance a
    simulation stop by this status and `stops`, and so at the same step.

    Args:
        simulation: any simulation; an ensemble returns one status per member.

    Raises:
        UserError: if its ``status`` does not return an integer (when called).
    """
    inner = simulation.status or converged_when(lambda state, params: jnp.bool_(False))

    def status(state: State, params: Params) -> jax.Array:
        code = inner(state, params)
        kind = jnp.result_type(code) if hasattr(code, "dtype") or isinstance(code, int | float) else type(code).__name__
        if isinstance(kind, str) or not jnp.issubdtype(kind, jnp.integer):
            raise UserError(
                f"status gives {kind}; return the integer of a simkit.Status, such as jnp.int32(Status.OK), or make it "
                "with simkit.converged_when(test)"
            )
        code, overflowed = jnp.asarray(code, jnp.int32), overflow_of(state)
        if overflowed is None:
            return code
        # A state may hold an array of buffers; its status is one code.
        if overflowed.ndim > code.ndim:
            overflowed = overflowed.any(axis=tuple(range(code.ndim, overflowed.ndim)))
        return jnp.where(overflowed, jnp.int32(Status.BUFFER_OVERFLOW), code)

    return status


def converged_when(test: Callable[[State, Params], jax.Array]) -> Callable[[State, Params], jax.Array]:
    """Return a ``status`` function: ``CONVERGED`` once the test is true, ``NON_FINITE`` if the state is not finite.

    Args:
        test: ``(state, params) -> bool`` scalar.

    Example:
        >>> status = simkit.converged_when(lambda state, params: jnp.abs(state) < params["tolerance"])
        >>> codes = [status(jnp.array(x), {"tolerance": 0.1}) for x in (1.0, 0.01, np.nan)]
        >>> [simkit.Status(int(code)).name for code in codes]
        ['OK', 'CONVERGED', 'NON_FINITE']
    """

    def status(state: State, params: Params) -> jax.Array:
        code = jnp.where(test(state, params), jnp.int32(Status.CONVERGED), jnp.int32(Status.OK))
        return jnp.where(is_finite(state), code, jnp.int32(Status.NON_FINITE))

    return status
