"""Objectives: a run reduced to one number, to be differentiated or optimized."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Literal

import jax
import jax.numpy as jnp

from simkit.core.converge import converge, converge_with_growth, with_room
from simkit.core.expressions import functions
from simkit.core.pytrees import size_in_bytes
from simkit.core.rollout import Frames, Memory, recorded, segment, width_of
from simkit.core.simulation import Arrays, Params, Simulation, State
from simkit.core.status import Status, checks_every_step, status_of, stops
from simkit.errors import UserError, known

type Reduce = Literal["final", "mean", "root_mean_square", "maximum", "minimum", "sum"]


REDUCTIONS: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "final": lambda series, stored: series[-1],
    "mean": functions.REDUCTIONS["time_mean"],
    "root_mean_square": functions.REDUCTIONS["time_rms"],
    "maximum": functions.REDUCTIONS["largest"],
    "minimum": functions.REDUCTIONS["smallest"],
    "sum": functions.REDUCTIONS["time_sum"],
}


def reduced(reduce: Reduce, series: jax.Array, stored: jax.Array | None = None) -> jax.Array:
    """Return a series reduced to one number.

    Args:
        reduce: final, mean, root_mean_square, maximum, minimum or sum.
        series: ``(frames,)``.
        stored: ``(frames,)`` booleans, False for frames after a stop, which only repeat the last one; ``None`` for a
            run that does not stop.
    """
    return REDUCTIONS[reduce](series, jnp.ones(len(series), bool) if stored is None else stored)


_EXAMPLE = "an expression such as time_mean((x - 1)**2)"
type Measure = Callable[[Arrays, Arrays], jax.Array]


@dataclasses.dataclass(frozen=True)
class Objective:
    """``(params, key) -> scalar``: one diagnostic of one run, or any function of its frames and diagnostics.

    A simulation that converges is run to convergence and differentiated implicitly; any other is run for its steps
    and differentiated through them.

    Attributes:
        simulation: what to run.
        quantity: name of a diagnostic, or ``(frames, diagnostics) -> scalar``, a differentiable function of all
            observed arrays and diagnostics with a leading frame axis (of length 1, the last frame, if the simulation
            converges), to which ``reduce`` does not apply. The frame in which a run stops is repeated to the end; a
            function with an argument ``stored`` also gets ``(frames,)`` booleans, False for the repeated ones.
        steps: number of steps (at most, if the simulation converges).
        every: steps between samples of the series that is reduced.
        reduce: reduction of the series to one number; a simulation that converges has only its ``"final"`` value.
        square: whether to return the square of that number.
        memory: memory of stored states in reverse mode, see `simkit.core.rollout.trajectory`.

    Example:
        >>> ball = rigid.bouncing_ball()
        >>> height = simkit.Objective(ball, "height", steps=30, every=30)
        >>> slope = jax.jit(jax.grad(height))(ball.params, jax.random.key(0))
        >>> print(f"d height / d speed = {slope['launch_speed']:.4f} s, by hand {0.3 * np.sin(np.pi / 3):.4f} s")
        d height / d speed = 0.2598 s, by hand 0.2598 s
    """

    simulation: Simulation
    quantity: str | Measure
    steps: int
    every: int = 1
    reduce: Reduce = "final"
    square: bool = False
    memory: Memory = "balanced"

    def __post_init__(self) -> None:
        """Refuse a number of steps below 1 and reductions over time of a simulation that converges.

        Raises:
            ValueError: if ``steps`` is below 1, or ``reduce`` is not ``"final"`` for a simulation that converges.
        """
        if self.steps < 1:
            raise ValueError(f"steps = {self.steps} takes no step; give at least 1")
        if self.converges and self.reduce != "final":
            raise ValueError(f"reduce = '{self.reduce}' needs a simulation that runs a fixed number of steps")

    @property
    def settings(self) -> tuple[Any, ...]:
        """All but the simulation, as part of a key of `simkit.core.tracing.Programs`."""
        return tuple(value for name, value in vars(self).items() if name != "simulation")

    def unshared(self) -> "Objective":
        """Return the objective of `simkit.core.simulation.Simulation.unshared`."""
        return dataclasses.replace(self, simulation=self.simulation.unshared())

    @property
    def converges(self) -> bool:
        """Whether the run ends at an equilibrium, so that the derivative is the implicit one."""
        return self.simulation.converges and self.simulation.equilibrium is not None

    @property
    def loops(self) -> tuple[int, ...]:
        """Iteration counts of the nested loops of a run, the outermost first."""
        return (self.steps,) if self.uses_last_only else (self.steps // self.every, self.every)

    @property
    def uses_last_only(self) -> bool:
        """Whether the number depends on the last state only."""
        return self.reduce == "final" and not (callable(self.quantity) and not self.converges)

    def __call__(self, params: Params, key: jax.Array) -> jax.Array:
        """Run from ``init(params, key)`` and return the number.

        Raises:
            UserError: if ``quantity`` is not a diagnostic of the simulation.
        """
        return self.with_status(params, key)[0]

    def with_status(self, params: Params, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Run likewise and return the number and the status of the run.

        Args:
            params: parameters.
            key: random key of the initial state.

        Returns:
            The number, and a code of `simkit.core.status.Status` (one per member for an ensemble).

        Example:
            >>> ball = rigid.bouncing_ball()
            >>> end = simkit.Objective(ball, "position_x", steps=100, every=100)
            >>> x, status = end.with_status(ball.params, jax.random.key(0))
            >>> print(f"{x:.3f} m, status {simkit.Status(int(status)).name}")
            1.956 m, status OK
        """
        if self.uses_last_only:
            state = self.last_state(self.simulation.init(params, key), params)
            value = self._value_of(state, params)
        else:
            state, frames = recorded(self.simulation, self.steps, self.every, memory=self.memory)(params, key)
            value = self._reduced(frames)
        status = status_of(self.simulation)(*jax.lax.stop_gradient((state, params)))
        if self.simulation.converges:
            status = jnp.where(stops(status), status, jnp.int32(Status.MAX_STEPS))
        return self._shape(value), status

    def of_frames(self, frames: Frames) -> jax.Array:
        """Return the number from the frames of a whole run of a simulation that does not converge.

        Args:
            frames: its frames, ``every`` steps apart; of an objective of the last state, the last frame suffices.
        """
        return self._shape(self._reduced(frames))

    def residuals(self, params: Params, key: jax.Array) -> jax.Array:
        """Run likewise and return residuals (m,) of which the number is the sum of squares.

        The number is one where ``square`` is set, or where ``quantity`` is a function with ``residuals``, such as that
        of an expression.

        Raises:
            UserError: if it is not a sum of squares.
        """
        if callable(self.quantity):
            of = getattr(self.quantity, "residuals", None)
            if of is None:
                raise UserError(f"the objective function is no sum of squares; write {_EXAMPLE}")
        elif not self.square:
            raise UserError(f"objective '{self.quantity}' is no sum of squares; set square = true, or write {_EXAMPLE}")
        elif self.reduce == "root_mean_square":
            of = _root_mean_square_of(self.quantity)
        else:
            return jnp.atleast_1d(dataclasses.replace(self, square=False)(params, key))
        if self.converges:
            last = self.last_state(self.simulation.init(params, key), params)
            frame = self.simulation.observe(last, params), self.simulation.diagnose(last, params)
            return of(*jax.tree.map(lambda leaf: leaf[None], frame))
        _, frames = recorded(self.simulation, self.steps, self.every, memory=self.memory)(params, key)
        return of(frames.observed, frames.diagnosed, frames.stored if checks_every_step(self.simulation) else None)

    def from_state(self, state: State, params: Params) -> jax.Array:
        """Return the final value of a run that starts from ``state``."""
        return self._shape(self._value_of(self.last_state(state, params), params))

    def last_state(self, state: State, params: Params) -> State:
        """Return the last state of a run that starts from ``state``."""
        if self.converges:
            return converge(self.simulation, self.steps)(state, params).state
        width = width_of((self.steps,), size_in_bytes(state), self.memory)
        return segment(self.simulation, self.steps, width=width)(state, params)

    def with_room(self, params: Params, key: jax.Array) -> "Objective":
        """Return the objective with buffers large enough for a run with these parameters.

        A derivative is one compiled program, whose buffers cannot grow, see `simkit.core.converge.with_room`.
        """
        if self.converges:
            return dataclasses.replace(
                self, simulation=converge_with_growth(self.simulation, self.steps)(params, key)[0]
            )

        def program(simulation: Simulation) -> Callable[[Params, jax.Array], tuple[State, jax.Array]]:
            run, status = segment(simulation, self.steps), status_of(simulation)

            def last(params: Params, key: jax.Array) -> tuple[State, jax.Array]:
                state = run(simulation.init(params, key), params)
                return state, status(state, params)

            return jax.jit(last)

        def attempt(simulation: Simulation, _: State) -> tuple[State, jax.Array, Simulation]:
            run = simulation.programs.cached(("last state", self.steps), lambda: program(simulation.unshared()))
            return *run(params, key), simulation

        return dataclasses.replace(self, simulation=with_room(self.simulation, attempt))

    def continuation(self, params: Params, key: jax.Array) -> Callable[[Params], jax.Array]:
        """Return ``params -> scalar`` that stays on the same solution when the parameters change slightly.

        A relaxation from a random start may end in another minimum after any change of parameters, which the derivative
        does not describe; so one that converges starts again from the solution at ``params``, with its buffers.
        """
        if not self.converges:
            return lambda params: self(params, key)
        grown, solution = converge_with_growth(self.simulation, self.steps)(params, key)
        objective = dataclasses.replace(self, simulation=grown)
        return lambda params: objective.from_state(solution.state, params)

    def _reduced(self, frames: Frames) -> jax.Array:
        # A stored run ends with the frame in which it stops; here that frame is repeated.
        stored = frames.stored if checks_every_step(self.simulation) else None
        if callable(self.quantity):
            return _measured(self.quantity, frames.observed, frames.diagnosed, stored)
        return reduced(self.reduce, frames.diagnosed[known(self.quantity, frames.diagnosed, "quantity")], stored)

    def _value_of(self, last: State, params: Params) -> jax.Array:
        if callable(self.quantity):
            frame = self.simulation.observe(last, params), self.simulation.diagnose(last, params)
            return _measured(self.quantity, *jax.tree.map(lambda leaf: leaf[None], frame))
        diagnosed = self.simulation.diagnose(last, params)
        return diagnosed[known(self.quantity, diagnosed, "quantity")]

    def _shape(self, value: jax.Array) -> jax.Array:
        return value**2 if self.square else value


def _root_mean_square_of(name: str) -> Callable[..., jax.Array]:
    def residuals(frames: Arrays, diagnostics: Arrays, stored: jax.Array | None = None) -> jax.Array:
        series = diagnostics[known(name, diagnostics, "quantity")]
        counted = jnp.ones(len(series), bool) if stored is None else stored
        return jnp.where(counted, series, 0) / jnp.sqrt(jnp.sum(counted))

    return residuals


def _stored_argument(measure: Measure, stored: jax.Array | None, arrays: Iterable[jax.Array]) -> dict[str, jax.Array]:
    """Return the argument ``stored`` of a function that has one; all frames are stored where no stop is possible."""
    try:
        argument = inspect.signature(measure).parameters.get("stored")
    except (TypeError, ValueError):  # the function has no signature
        return {}
    if argument is None or (stored is None and argument.default is not argument.empty):
        return {}
    return {"stored": jnp.ones(len(next(iter(arrays))), bool) if stored is None else stored}


def _measured(measure: Measure, frames: Arrays, diagnostics: Arrays, stored: jax.Array | None = None) -> jax.Array:
    more = _stored_argument(measure, stored, [*frames.values(), *diagnostics.values()])
    return number_by(measure, "the objective function", frames, diagnostics, **more)


def number_by(measure: Callable[..., Any], what: str, *quantities: Arrays, **more: Any) -> jax.Array:
    """Return what a user's function of quantities says, one real number.

    Args:
        measure: the function, which takes ``quantities`` and ``more``.
        what: the function is, for errors.
        *quantities: arrays by name.
        **more: of its arguments.

    Raises:
        UserError: if it reads a quantity that is unknown, or returns something else.
    """
    try:
        value = jnp.asarray(measure(*quantities, **more))
    except KeyError as error:
        known(error.args[0], [name for each in quantities for name in each], f"array that {what} reads")
        raise  # of something else
    if value.shape or not jnp.issubdtype(value.dtype, jnp.floating):
        raise UserError(f"{what} returns {value.dtype} of shape {value.shape}; return one real number")
    return value
