"""A run reduced to the one number that is differentiated or optimized."""

import dataclasses
import inspect
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.converge import converge
from simkit.core.growth import converge_with_growth, with_room
from simkit.core.pytree import size_in_bytes
from simkit.core.reductions import Reduce, reduced
from simkit.core.rematerialization import Memory, width_of
from simkit.core.rollout import recorded, segment
from simkit.core.simulation import Arrays, Params, Simulation, State
from simkit.core.status import Status, asked_at_every_step, status_of, stops
from simkit.errors import UserError, nearest

type Measure = Callable[[Arrays, Arrays], jax.Array]


@dataclasses.dataclass(frozen=True)
class Objective:
    """``(params, key) -> scalar``: one diagnostic of one run, or any function of its frames and diagnostics.

    A simulation that converges is run to convergence and differentiated implicitly; any other is run for its steps
    and differentiated through them.

    Attributes:
        simulation: what to run.
        quantity: name of the diagnostic; or ``(frames, diagnostics) -> scalar``, a differentiable function of all that
            is observed and diagnosed, each with a leading frame axis (of one frame, the last, if the simulation
            converges). Of such a function ``reduce`` has nothing left to do. After the frame in which a run stops,
            that frame is repeated; a function that takes ``stored``, too, gets which frames are none of these.
        steps: number of steps (at most, if the simulation converges).
        every: steps between the samples that ``reduce`` sees.
        reduce: how the series becomes one number; a simulation that converges has only its ``"final"`` value.
        square: whether to return the square of that number.
        memory: how much reverse mode may hold, see `simkit.core.rollout.trajectory`.
    """

    simulation: Simulation
    quantity: str | Measure
    steps: int
    every: int = 1
    reduce: Reduce = "final"
    square: bool = False
    memory: Memory = "balanced"

    def __post_init__(self) -> None:
        """Refuse what has no meaning.

        Raises:
            ValueError: if a simulation that converges is asked for anything but its final value, or no step is taken.
        """
        if self.steps < 1:
            raise ValueError(f"steps = {self.steps} takes no step; give at least 1")
        if self.converges and self.reduce != "final":
            raise ValueError(f"reduce = '{self.reduce}' needs a simulation that runs a fixed number of steps")

    @property
    def converges(self) -> bool:
        """Whether the run ends at an equilibrium, so that the derivative is the implicit one."""
        return self.simulation.converges and self.simulation.equilibrium is not None

    @property
    def loops(self) -> tuple[int, ...]:
        """Turns of the loops that a run takes its steps in, the outermost first."""
        return (self.steps,) if self._takes_last else (self.steps // self.every, self.every)

    @property
    def _takes_last(self) -> bool:
        """Whether the last state is all that counts."""
        return self.reduce == "final" and not (callable(self.quantity) and not self.converges)

    def __call__(self, params: Params, key: jax.Array) -> jax.Array:
        """Run from the initial state that ``key`` draws and return the number.

        Raises:
            UserError: if there is no such diagnostic.
        """
        return self.with_status(params, key)[0]

    def with_status(self, params: Params, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Run likewise and return the number and the status of the run, which tells what its derivative is worth.

        Args:
            params: parameters.
            key: random key of the initial state.

        Returns:
            The number, and a code of `simkit.core.status.Status` (one per member for an ensemble).
        """
        if self._takes_last:
            state = self.last_state(self.simulation.init(params, key), params)
            value = self._value_of(state, params)
        else:
            state, found = recorded(self.simulation, self.steps, self.every, memory=self.memory)(params, key)
            # A run that stops stores no frames from there on, while this one repeats its last.
            stored = found.stored if asked_at_every_step(self.simulation) else None
            if callable(self.quantity):
                value = _measured(self.quantity, found.observed, found.diagnosed, stored)
            else:
                value = reduced(self.reduce, _diagnostic(found.diagnosed, self.quantity), stored)
        status = status_of(self.simulation)(*jax.lax.stop_gradient((state, params)))
        if self.simulation.converges:
            status = jnp.where(stops(status), status, jnp.int32(Status.MAX_STEPS))
        return self._shape(value), status

    def from_state(self, state: State, params: Params) -> jax.Array:
        """Return the final value of a run that starts from ``state``."""
        return self._shape(self._value_of(self.last_state(state, params), params))

    def last_state(self, state: State, params: Params) -> State:
        """Return the state in which a run from ``state`` ends."""
        if self.converges:
            return converge(self.simulation, self.steps)(state, params).state
        width = width_of((self.steps,), size_in_bytes(state), self.memory)
        return segment(self.simulation, self.steps, width=width)(state, params)

    def with_room(self, params: Params, key: jax.Array) -> "Objective":
        """Return the objective with buffers that are large enough for its run with these parameters.

        Derivatives are those of one compiled program, whose buffers cannot grow, see `simkit.core.growth.with_room`.
        """
        if self.converges:
            return dataclasses.replace(
                self, simulation=converge_with_growth(self.simulation, self.steps)(params, key)[0]
            )

        def attempt(simulation: Simulation, _: State) -> tuple[State, jax.Array, Simulation]:
            run = segment(simulation, self.steps)
            state = jax.jit(lambda params, key: run(simulation.init(params, key), params))(params, key)
            return state, status_of(simulation)(state, params), simulation

        return dataclasses.replace(self, simulation=with_room(self.simulation, attempt))

    def near(self, params: Params, key: jax.Array) -> Callable[[Params], jax.Array]:
        """Return ``params -> scalar`` that follows the same solution when the parameters change a little.

        A relaxation from a random start may end in another minimum after any change, which no derivative describes;
        so one that converges starts again from the solution at ``params``, with room enough for its neighbors.
        """
        if not self.converges:
            return lambda params: self(params, key)
        larger, found = converge_with_growth(self.simulation, self.steps)(params, key)
        roomier = dataclasses.replace(self, simulation=larger)
        return lambda params: roomier.from_state(found.state, params)

    def _value_of(self, last: State, params: Params) -> jax.Array:
        if callable(self.quantity):
            seen = self.simulation.observe(last, params), self.simulation.diagnose(last, params)
            return _measured(self.quantity, *jax.tree.map(lambda leaf: leaf[None], seen))
        return _diagnostic(self.simulation.diagnose(last, params), self.quantity)

    def _shape(self, value: jax.Array) -> jax.Array:
        return value**2 if self.square else value


def _takes_stored(measure: Measure) -> bool:
    try:
        return "stored" in inspect.signature(measure).parameters
    except (TypeError, ValueError):  # of a function without one
        return False


def _diagnostic(diagnostics: Arrays, name: str) -> jax.Array:
    if name not in diagnostics:
        raise UserError(f"'{name}' is not a diagnostic{nearest(name, list(diagnostics))}")
    return diagnostics[name]


def _measured(measure: Measure, frames: Arrays, diagnostics: Arrays, stored: jax.Array | None = None) -> jax.Array:
    more = {} if stored is None or not _takes_stored(measure) else {"stored": stored}
    try:
        value = jnp.asarray(measure(frames, diagnostics, **more))
    except KeyError as error:
        name, known = str(error.args[0]), [*frames, *diagnostics]
        raise UserError(f"the objective function asks for '{name}'{nearest(name, known)}") from error
    if value.shape or not jnp.issubdtype(value.dtype, jnp.floating):
        raise UserError(f"the objective function returns {value.dtype} of shape {value.shape}; return one real number")
    return value
