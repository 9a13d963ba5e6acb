"""The `Simulation` record: pure functions, default parameters, and the units and meanings of its quantities."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from simkit.core import paths
from simkit.core.arguments import check_shape
from simkit.core.display import html_of
from simkit.core.parameter import Parameter, out_of_bounds
from simkit.core.tracing import Programs, shapes_and_types, traced_once
from simkit.errors import UserError


def check_bounds(declared: Mapping[str, Parameter], params: Mapping[str, Any]) -> None:
    """Refuse parameters that are out of their declared bounds or NaN.

    Args:
        declared: parameters by path.
        params: values by path, of any shape.

    Raises:
        UserError: that names the first such parameter.
    """
    for name, parameter in declared.items():
        low, high = parameter.bounds
        values = np.ravel(jax.device_get(params[name]))
        wrong = values[~((values >= low) & (values <= high))]
        if wrong.size:
            problem = out_of_bounds(parameter.bounds, wrong[0])
            raise UserError(f"{name} = {wrong[0]:g} {problem}", key=name, allowed=parameter.bounds)


# Names of coordinates and columns that data sets of runs and sweeps add, which no quantity may have.
TAKEN = ("frame", "seed", "member", "status", "failed", "message")
type State = Any
type Params = Any
"""Any pytree of float arrays, usually a (nested) dictionary by name, see `simkit.core.paths`."""
type Arrays = dict[str, jax.Array]


@dataclasses.dataclass(frozen=True)
class Equilibrium:
    """Equations of a converged state: ``residual(unknowns(state), params) = 0``.

    From them the derivative of a converged state follows by one linear solve at the solution (implicit function
    theorem), independent of the iterations.

    Attributes:
        unknowns: ``state -> x``, the part of the state that solves the equations (any pytree of float arrays).
        residual: ``(x, params) -> r``, same structure as ``x``; its Jacobian in ``x`` must be symmetric and
            positive semidefinite, as for the gradient of an energy at a minimum; see ``is_definite``.
        replace: ``(state, x) -> state``, the state with its unknowns replaced.
        project: ``x -> x``, removes the zero modes of the Jacobian (rigid translations, for instance).
        is_definite: false where the Jacobian may have negative eigenvalues, as at a saddle; the linear solve is then
            by MINRES instead of conjugate gradients, whose derivative at a saddle is NaN.

    Example:
        >>> residual = lambda x, params: params["k"] * x - 1
        >>> spring = simkit.Simulation(
        ...     init=lambda params, key: {"x": jnp.zeros_like(params["k"]), "iteration": jnp.int32(0)},
        ...     step=lambda state, params: {
        ...         "x": state["x"] - residual(state["x"], params) / 4,
        ...         "iteration": state["iteration"] + 1,
        ...     },
        ...     observe=lambda state, params: {"x": state["x"]},
        ...     diagnose=lambda state, params: state,
        ...     params={"k": 2.0},
        ...     converges=True,
        ...     status=simkit.converged_when(lambda state, params: jnp.abs(residual(state["x"], params)) < 1e-5),
        ...     equilibrium=simkit.Equilibrium(
        ...         unknowns=lambda state: state["x"],
        ...         residual=residual,
        ...         replace=lambda state, x: {**state, "x": x},
        ...     ),
        ... )
        >>> last = lambda frames, diagnostics: frames["x"][-1]
        >>> x, slope = simkit.value_and_grad(spring, "k", objective=last, steps=100)
        >>> print(f"x = 1/k = {x:.4f}, dx/dk = -1/k^2 = {slope['k']:.4f}")
        x = 1/k = 0.5000, dx/dk = -1/k^2 = -0.2500
    """

    unknowns: Callable[[State], Any]
    residual: Callable[[Any, Params], Any]
    replace: Callable[[State, Any], State]
    project: Callable[[Any], Any] = lambda x: x
    is_definite: bool = True


class Shapes(NamedTuple):
    """Shapes and types of the arrays of a simulation: of a state, and of what one frame observes and diagnoses."""

    state: State
    observed: Arrays
    diagnosed: Arrays


@dataclasses.dataclass(frozen=True)
class Quantity:
    """Unit and meaning of an observed array or a diagnostic.

    Attributes:
        unit: physical unit; ``"1"`` for a pure number.
        doc: its meaning in a few words.
        caution: what the report of a run says where the last value of a diagnostic is above zero; empty for nothing.
        limit: what the last value of a diagnostic is within where a run has converged, in words; empty for nothing.

    Example:
        >>> quantity = simkit.Quantity("m/s", "speed of the fastest ball")
        >>> f"{quantity.doc} in {quantity.unit}"
        'speed of the fastest ball in m/s'
    """

    unit: str
    doc: str
    caution: str = ""
    limit: str = ""


def over_steps(
    check: Callable[[Params, jax.Array], None], lasting: Callable[[Params, int], None]
) -> Callable[[Params, jax.Array], None]:
    """Return a check of a simulation with one of runs of a number of steps, such as that data in time lasts as long.

    Args:
        check: ``(params, key) -> None``, see `Simulation`.
        lasting: ``(params, steps) -> None``; raises `UserError`.
    """
    check.lasting = lasting  # type: ignore[attr-defined]
    return check


@dataclasses.dataclass(frozen=True, repr=False)
class Simulation:
    """A simulation as pure functions and the default parameters they take.

    Attributes:
        init: ``(params, key) -> state``. Time, iteration count and random key live in the state.
        step: ``(state, params) -> state``, one time step or one minimizer iteration; shapes and dtypes preserved.
        observe: ``(state, params) -> {name: array}``, the arrays that a frame stores and a renderer draws.
        diagnose: ``(state, params) -> {name: scalar}``; has ``time`` (or ``iteration``) among its names.
        params: default parameters, exactly those that may be swept or differentiated: a dictionary of float arrays by
            name, or any pytree of them, each addressed by its path, ``"closure.0.weight"``, or ``"closure"`` for the
            whole branch. Plain numbers, nested lists of plain numbers and `Parameter` (with unit, meaning and bounds)
            become arrays of the working precision; JAX arrays keep their own.
        converges: whether it runs until its ``status`` is ``CONVERGED``, and the number of steps is only a limit.
        equilibrium: equations of a converged state; ``None`` where no implicit derivative exists.
        status: ``(state, params) -> int32``, a `simkit.core.status.Status` code or one per member, see
            `simkit.core.status.converged_when`; evaluated after every step, or at frames only if it is marked by
            `simkit.core.status.at_frames`; ``None`` checks at frames whether the state is finite.
        sized_like: ``state -> simulation``, on the host, where the state contains a `simkit.core.buffers.Buffer`: the
            same simulation, whose ``init`` and ``equilibrium`` make buffers as large as those of the state. All other
            functions take buffers of any size. Called by `with_buffers_of`.
        check: ``(params, key) -> None``, on the host before a run, with the arguments of ``init``; raises `UserError`
            for values, or an initial state drawn from the key, with which it cannot run. Called by `check_values`. See
            `over_steps` for what depends on the number of steps.
        step_members: ``(states, params) -> states``, the step of many members at once, every array of states and params
            with a leading member axis, for kernels with a better layout for a batch; ``None`` uses `jax.vmap`, as
            where `dataclasses.replace` gives another ``step`` alone.
        dimensions: ``{observed name: dimension names}``, one name per array axis, for labeled data sets.
        coordinates: ``{dimension name: values}`` of dimensions with a physical coordinate, and further data for
            renderers: the kinds of the ``sides``; names of integer values as ``NAME_names``; widths of unequal cells as
            ``NAME_widths``, which are also the weights of means along the axis NAME.
        quantities: ``{name: Quantity}``, unit and meaning of observed arrays, diagnostics and coordinates; may describe
            names that this configuration does not have. See `simkit.core.simulation.described`.
        parameters: ``{path: Parameter}``, those of ``params`` that were given with unit, meaning and bounds.

    Example:
        >>> decay = simkit.Simulation(
        ...     init=lambda params, key: {"x": params["x"], "time": jnp.zeros_like(params["x"])},
        ...     step=lambda state, params: {"x": state["x"] * (1 - params["rate"] / 100), "time": state["time"] + 0.01},
        ...     observe=lambda state, params: {"x": state["x"]},
        ...     diagnose=lambda state, params: {"time": state["time"], "x": state["x"]},
        ...     params={"x": 1.0, "rate": simkit.Parameter(2.0, (0.0, 10.0), "1/s", "rate of decay")},
        ... )
        >>> print(f"{float(simkit.run(decay, steps=100)['x'][-1]):.3f}, by hand {0.98**100:.3f}")
        0.133, by hand 0.133
    """

    init: Callable[[Params, jax.Array], State]
    step: Callable[[State, Params], State]
    observe: Callable[[State, Params], Arrays]
    diagnose: Callable[[State, Params], Arrays]
    params: Params
    converges: bool = False
    equilibrium: Equilibrium | None = None
    status: Callable[[State, Params], jax.Array] | None = None
    sized_like: "Callable[[State], Simulation] | None" = None
    check: Callable[[Params, jax.Array], None] | None = None
    step_members: Callable[[State, Params], State] | None = None
    dimensions: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    coordinates: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    quantities: Mapping[str, Quantity] = dataclasses.field(default_factory=dict)
    parameters: Mapping[str, Parameter] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make arrays, in the working precision, of parameters that are plain numbers or `Parameter`.

        Its functions become `simkit.core.tracing.Traced`.

        Raises:
            UserError: if a parameter is not made of real numbers, if it converges without a ``status``, or has an
                ``equilibrium`` and does not converge.
        """
        if self.converges and self.status is None:
            raise UserError(
                "converges = True needs a status that becomes CONVERGED; give status=converged_when(test), see "
                "simkit.converged_when"
            )
        if self.equilibrium is not None and not self.converges:
            raise UserError(
                "an equilibrium holds in a converged state only; set converges=True with a status that becomes "
                "CONVERGED, or leave equilibrium out"
            )
        object.__setattr__(self, "params", as_arrays(params := self.params))
        entries = paths.leaves(params, is_leaf=_is_array)
        declared = {
            path: dataclasses.replace(value, default=default)
            for name, value in entries.items()
            if isinstance(value, Parameter)
            for path, default in paths.leaves(value.default, name, _is_array).items()
        }
        # `dataclasses.replace` with other params passes on declarations of parameters that no longer exist.
        leaves = paths.leaves(self.params)
        kept = {path: parameter for path, parameter in self.parameters.items() if path in leaves}
        object.__setattr__(self, "parameters", kept | declared)
        for name in ("init", "step", "observe", "diagnose", "status", "step_members"):
            object.__setattr__(self, name, traced_once(getattr(self, name)))
        # `dataclasses.replace` with another step passes on the step of many members of the one before.
        together: Any = self.step_members
        if together is not None and together.alone not in (None, self.step):
            object.__setattr__(self, "step_members", None)
        elif together is not None:
            together.alone = self.step
        object.__setattr__(self, "_programs", Programs())

    @property
    def shapes(self) -> Shapes:
        """Shapes and types of a state, and of what one frame observes and diagnoses, by tracing alone."""

        def trace() -> Shapes:
            state = jax.eval_shape(self.init, self.params, jax.eval_shape(jax.random.key, 0))
            arrays = (jax.eval_shape(function, state, self.params) for function in (self.observe, self.diagnose))
            return Shapes(state, *arrays)

        return self.programs.cached("shapes", trace)

    @property
    def programs(self) -> Programs:
        """What was traced and compiled for this simulation, shared with those of `with_params`."""
        return self.__dict__["_programs"]

    def __repr__(self) -> str:
        """Return one line: the parameters, shapes in place of arrays."""
        shown = (f"{name} = {_shown(value)}" for name, value in paths.leaves(self.params).items())
        return f"<Simulation: {', '.join(shown)}>"

    def _repr_html_(self) -> str | None:
        return html_of("simulation", self)

    def check_values(self, params: Params, key: jax.Array, steps: int | None = None) -> None:
        """Refuse values that are out of declared bounds or refused by the simulation's ``check``.

        Args:
            params: the parameters that ``init`` will get, not traced.
            key: the random key that ``init`` will get, not traced.
            steps: number of steps of the run, where it is known.

        Raises:
            UserError: that names the first parameter out of bounds, or raised by ``check``.

        Example:
            >>> ball = rigid.bouncing_ball()
            >>> try:
            ...     ball.check_values(ball.params | {"friction": jnp.array(-1.0)}, jax.random.key(0))
            ... except simkit.UserError as error:
            ...     print(error)
            friction = -1 is negative; choose 0 or a value above
        """
        check_bounds(self.parameters, paths.leaves(params))
        if self.check is not None:
            self.check(params, key)
        lasting = getattr(self.check, "lasting", None)
        if steps is not None and lasting is not None:
            lasting(params, steps)

    def with_params(self, values: Any = None, /, **named: Any) -> "Simulation":
        """Return the same simulation with other default parameters.

        They may be traced, and out of bounds: `check_values` refuses those, as every run, sweep and derivative does
        before it computes.

        Args:
            values: new values by path, ``{"closure.0.weight": array}``, or a tree of them all like ``params``.
            **named: likewise, by name: a leaf of the default's shape, cast to its dtype, or a branch as a tree.

        Raises:
            UserError: if a name is unknown, or a value is not made of real numbers of that shape.

        Example:
            >>> on_moon = rigid.bouncing_ball().with_params(gravity=1.62)
            >>> run = simkit.run(on_moon, steps=300)
            >>> print(f"{float(run['height'].max()):.2f} m on the moon")
            4.70 m on the moon
        """
        leaves = paths.leaves(self.params)
        if values is not None and not isinstance(values, Mapping):
            values = paths.leaves(values, is_leaf=lambda path, _: path in leaves)
            if "" in values:
                raise UserError('with_params takes values by name: gravity=9.8, or {"closure.0.weight": array}')
        replacements = paths.by_leaf(dict(values or {}) | named, leaves)
        arrays = {name: _like(name, value, leaves[name]) for name, value in replacements.items()}
        return self.at(paths.replaced(self.params, arrays))

    def with_buffers_of(self, state: State) -> "Simulation":
        """Return the same simulation with initial buffers as large as those of a state.

        Args:
            state: state of this simulation; only the sizes of its buffers matter.
        """

        def sized() -> Simulation:
            assert self.sized_like is not None  # without it no buffer is limited
            made = self.sized_like(state)
            return dataclasses.replace(self, init=made.init, equilibrium=made.equilibrium, sized_like=made.sized_like)

        return self.programs.cached(("buffers", shapes_and_types(state)), sized).at(self.params)

    def unshared(self) -> "Simulation":
        """Return the same simulation without what is kept with it.

        Whatever is kept with a simulation refers to this one instead, so that both are freed together.
        """
        return dataclasses.replace(self)

    def at(self, params: Params) -> "Simulation":
        """Return the same simulation with other default parameters of the same shapes and types, and its programs."""
        other = dataclasses.replace(self, params=params)
        object.__setattr__(other, "_programs", self.programs)
        return other

    def with_quantities(self, **functions: "Callable[[State, Params], jax.Array]") -> "Simulation":
        """Return the same simulation with further quantities.

        Args:
            **functions: ``(state, params) -> array`` by name. Scalars are added to the diagnostics, from which
                objectives are made; arrays are added to the frames. A quantity of the same name is replaced.

        Raises:
            UserError: if a function does not return one array.

        Example:
            >>> two = simkit.load("newtons_cradle", {"config.bodies.0.count": 2, "precision": "float32"})
            >>> pair = simkit.build(two)
            >>> pair = pair.with_quantities(share=lambda state, params: state.motion.velocity.x[1] / params["speed"])
            >>> run = simkit.run(pair, steps=160, every=160, restitution=0.5)
            >>> print(f"{float(run['share'][-1]):.4f}, by hand {(1 + 0.5) / 2:.4f}")
            0.7500, by hand 0.7500
        """
        scalars, arrays = {}, {}
        for name, function in functions.items():
            result = jax.eval_shape(function, self.shapes.state, self.params)
            if not isinstance(result, jax.ShapeDtypeStruct):
                raise UserError(f"quantity '{name}' gives {type(result).__name__}; return one array of numbers")
            (arrays if result.shape else scalars)[name] = function

        def joined(declared: Callable[[State, Params], Arrays], added: Mapping[str, Callable]) -> Callable:
            def quantities(state: State, params: Params) -> Arrays:
                kept = {name: array for name, array in declared(state, params).items() if name not in functions}
                return kept | {name: jnp.asarray(function(state, params)) for name, function in added.items()}

            return quantities

        return dataclasses.replace(self, observe=joined(self.observe, arrays), diagnose=joined(self.diagnose, scalars))


def as_arrays(params: Any) -> Params:
    """Return parameters as arrays of the working precision.

    Args:
        params: numbers, nested lists of plain numbers, arrays or `Parameter` (of which the default is taken), in a
            dictionary by name or in any other pytree.

    Raises:
        UserError: if one is not made of real numbers, or ``params`` is a single number or array without a name.
    """

    def array(name: str, value: Any) -> Any:
        if not name:
            kind = type(value).__name__
            raise UserError(f"params are of type {kind}; give a dictionary of numbers, arrays or Parameter by name")
        if isinstance(value, Parameter):
            return paths.mapped(_parameter, value.default, name, _is_array)
        return _parameter(name, value)

    return paths.mapped(array, params, is_leaf=_is_array)


def _is_array(_: str, value: Any) -> bool:
    """Return whether a list or tuple is an array of plain numbers instead of a branch."""
    if type(value) not in (list, tuple):
        return False
    return all(isinstance(entry, int | float | np.generic) or _is_array(_, entry) for entry in value)


def _like(name: str, value: Any, default: Any) -> jax.Array:
    """Return a parameter's value as an array of its default's shape and type."""
    _check_real(name, value)
    # In the precision of the simulation, which may differ from the present one of JAX.
    with jax.enable_x64(jax.config.jax_enable_x64 or default.dtype.itemsize > 4):
        array = jnp.asarray(value, dtype=default.dtype)
    wanted = f"an array of shape {default.shape}" if default.ndim else "one number"
    check_shape(f"parameter '{name}'", array, wanted, default.shape)
    return array


def _parameter(name: str, value: Any) -> Any:
    if isinstance(value, jax.Array | jax.ShapeDtypeStruct) and jnp.issubdtype(value.dtype, jnp.floating):
        return value
    _check_real(name, value)
    return jnp.asarray(value, dtype=float)


def _check_real(name: str, value: Any) -> None:
    real = jnp.issubdtype(value.dtype, jnp.floating) if isinstance(value, jax.Array) else False
    kind = value.dtype.kind if isinstance(value, jax.Array) else _kind(value)
    if not real and kind not in "iuf":
        what = "an integer beyond the range of float64" if type(value) is int else type(value).__name__
        raise UserError(f"parameter '{name}' is {what}; give a number, or an array of real numbers")


def _kind(value: Any) -> str:
    try:
        return np.asarray(value).dtype.kind
    except ValueError:  # rows of different lengths
        return "O"
    except TypeError:  # traced entries
        return "f"


def _shown(value: Any) -> str:
    """Return a scalar as text, or dtype and shape of an array."""
    if value.shape or isinstance(value, Tracer | jax.ShapeDtypeStruct):
        return f"{value.dtype.name}{list(value.shape)}"
    return f"{value.item():.6g}"


def described[**P](
    *declared: Mapping[str, Quantity], **own: tuple[str, str]
) -> Callable[[Callable[P, Simulation]], Callable[P, Simulation]]:
    """Return a decorator of a factory that adds unit and meaning of quantities to its simulations.

    Args:
        *declared: tables of quantities shared by several factories; later tables take precedence.
        **own: ``(unit, doc)`` of this factory's further quantities by name, which take precedence over the tables.

    Example:
        >>> @core.described(x=("m", "displacement"))
        ... def decay():
        ...     return simkit.Simulation(
        ...         init=lambda params, key: {"x": params["x"], "time": jnp.zeros_like(params["x"])},
        ...         step=lambda state, params: {"x": 0.9 * state["x"], "time": state["time"] + 1},
        ...         observe=lambda state, params: {"x": state["x"]},
        ...         diagnose=lambda state, params: {"time": state["time"]},
        ...         params={"x": 1.0},
        ...     )
        >>> simkit.run(decay(), steps=2)["x"].units
        'm'
    """
    quantities = {name: quantity for table in declared for name, quantity in table.items()}
    quantities |= {name: Quantity(unit, doc) for name, (unit, doc) in own.items()}

    def decorate(factory: Callable[P, Simulation]) -> Callable[P, Simulation]:
        @functools.wraps(factory)
        def make(*arguments: P.args, **keywords: P.kwargs) -> Simulation:
            simulation = factory(*arguments, **keywords)
            return dataclasses.replace(simulation, quantities={**simulation.quantities, **quantities})

        return make

    return decorate


def over(numerator: str, denominator: str) -> str:
    """Return the unit of a quotient as text, such as ``"U/h"`` of ``("U", "h")`` or ``"1/(H^2/kappa)"``.

    Args:
        numerator: unit of the numerator.
        denominator: unit of the denominator.
    """
    if denominator == "1":
        return numerator
    return f"{numerator}/({denominator})" if set("/ ") & set(denominator) else f"{numerator}/{denominator}"


def times(one: str, other: str) -> str:
    """Return the unit of a product as text, such as ``"U^2 D"`` of ``("U^2", "D")``.

    Args:
        one: unit of one factor.
        other: unit of the other factor.
    """
    return " ".join(unit for unit in (one, other) if unit != "1") or "1"


def raised(unit: str, power: int) -> str:
    """Return a power of a unit as text, such as ``"U^2"`` or ``"(kappa/H)^2"``.

    Args:
        unit: a unit.
        power: at least 1.
    """
    if unit == "1" or power == 1:
        return unit
    return f"({unit})^{power}" if not unit.replace("_", "").isalnum() else f"{unit}^{power}"
