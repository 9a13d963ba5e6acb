"""Derivatives in Python: `simkit.value_and_grad` and `simkit.hessian`."""

import dataclasses
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from simkit.core import second
from simkit.core.devices import computing_on
from simkit.core.display import html_of
from simkit.core.gradient import Difference, GradientCheck
from simkit.core.objective import Measure
from simkit.core.status import caution_of
from simkit.errors import UserError, argument
from simkit.jobs.derivatives import (
    Mode,
    compare,
    differentiate,
    objective_name,
    prepared,
    selected_parameters,
    status_note,
)
from simkit.jobs.job import begin, enter
from simkit.jobs.runs import NOT_FINITE
from simkit.jobs.stored_derivatives import gradient_job
from simkit.scenario.made_in_python import Source, load
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    import xarray


# Maximum number of rows of the Hessian, each of which is one Hessian-vector product.
MOST_ROWS = 256


@dataclasses.dataclass(frozen=True)
class Curvature:
    """Value, gradient and Hessian of an objective at a point.

    Attributes:
        value: value of the objective.
        entries: names of the differentiated numbers, ``"gravity"`` or ``"force[0, 1]"``.
        derivative: gradient, (n,), in the order of ``entries``.
        matrix: Hessian, (n, n).
        difference: central differences of the gradient, (n, n); ``None`` unless requested.
        status: status of the run, a code of `simkit.core.status.Status`.
        note: limits of the derivatives' validity, in one line; empty if there are none.
    """

    value: float
    entries: list[str]
    derivative: np.ndarray
    matrix: np.ndarray
    difference: "Difference | None"
    status: int
    note: str

    @property
    def is_finite(self) -> bool:
        """Whether all derivatives are finite."""
        return bool(np.isfinite(self.matrix).all() and np.isfinite(self.derivative).all())


def hessian(
    scenario: Source,
    wrt: str | Sequence[str],
    *,
    objective: "str | Measure | None" = None,
    mode: Mode = "shortest",
    device: str = "auto",
    **values: Any,
) -> "xarray.DataArray":
    """Return the second derivatives of an objective.

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a `Simulation` (then with ``steps=``).
        wrt: parameter name or names; of nested ones the path, ``"closure.0.weight"``, or a branch for all below it.
        objective: as for `simkit.value_and_grad`.
        mode: see `simkit.core.second.hessian`.
        device: as for `simkit.run`.
        **values: parameters, config or run settings.

    Returns:
        The matrix (``row``, ``column``), labeled by ``"gravity"`` or ``"force[0, 1]"``. Its attributes are ``value``
        and ``derivative``. Warns if the run failed, or if its derivative is not that of the physics.

    Raises:
        UserError: if an argument is wrong.

    Example:
        >>> second = simkit.hessian("projectile", ["launch_speed", "gravity"], objective="miss", steps=50)
        >>> print(f"value {second.attrs['value']:.3f}")
        value 11.823
        >>> print(second.round(3).values)
        [[ 0.031 -0.106]
         [-0.106  0.488]]
    """
    import xarray

    enter("hessian", scenario, values)
    with computing_on(device):
        result = curvature(load(scenario, values), wrt, objective, mode)
    if result.note:
        warnings.warn(result.note, stacklevel=2)
    labels = {"row": result.entries, "column": result.entries}
    attributes = {"value": result.value, "derivative": result.derivative}
    return xarray.DataArray(result.matrix, labels, ("row", "column"), "hessian", attributes)


def curvature(
    scenario: Scenario, wrt: Sequence[str], objective: "str | Measure | None", mode: Mode, *, check: bool = False
) -> Curvature:
    """Return value, derivative and Hessian of an objective.

    Args:
        scenario: scenario with overrides applied.
        wrt: paths of parameters; a branch selects all parameters below it.
        objective: as for `hessian`.
        mode: as for `hessian`.
        check: whether to compute central differences of the gradient, too.

    Raises:
        UserError: if a name is unknown, or the matrix has too many rows.
    """
    names = selected_parameters(scenario, wrt)
    if not callable(objective):
        objective_name(scenario, objective)
    with prepared(scenario, objective) as (function, params, key):
        entries = second.entries(params, names)
        if len(entries) > MOST_ROWS:
            raise UserError(
                f"second derivatives by {len(entries)} numbers are {len(entries)} x {len(entries)}; name parameters of "
                f"up to {MOST_ROWS} numbers, or take products with simkit.core.second.hessian_vector_product"
            )
        if function.simulation.sized_like is not None:
            function = function.with_room(params, key)
        derive = jax.jit(second.hessian(function.with_status, names, mode))
        value, status, derivative, matrix = derive(params, key)
        difference = None
        if check:
            near, bounds = function.continuation(params, key), {n: p.bounds for n, p in scenario.parameters.items()}
            difference = second.hessian_differences(lambda params, _: near(params), params, key, names, bounds)
        flat = np.concatenate([np.ravel(derivative[name]) for name in sorted(names)])
        notes = (status_note(scenario, int(status)), caution_of(function.simulation))
    return Curvature(
        float(value), entries, flat, np.asarray(matrix), difference, int(status), "; ".join(filter(None, notes))
    )


class _Pair(NamedTuple):
    value: float
    derivative: dict[str, np.ndarray]


class ValueAndDerivative(_Pair):
    """An objective's value and its derivatives, ``value, derivative = ...``, which a notebook shows as a table.

    Attributes:
        value: value of the objective.
        derivative: ``{path: array}``.
        scenario: scenario with overrides applied.
        objective: name of the objective.
        note: limits of the derivative's validity, in one line; empty if there are none.
        check: the derivative beside central differences; ``None`` if they were not computed.
    """

    scenario: Scenario
    objective: str
    note: str = ""
    check: "GradientCheck | None" = None

    __repr__ = tuple.__repr__

    def __reduce__(self) -> Any:
        """Return how to make the pair alone, which other processes get."""
        return (tuple, (tuple(self),))

    def _repr_html_(self) -> str | None:
        return html_of("derivative", self)


def value_and_grad(
    scenario: Source,
    wrt: str | Sequence[str],
    *,
    objective: "str | Measure | None" = None,
    mode: Mode = "shortest",
    memory: int | str | None = None,
    seeds: int | None = None,
    check: bool = False,
    output: Path | str | None = None,
    overwrite: bool = False,
    device: str = "auto",
    **values: Any,
) -> ValueAndDerivative:
    """Return an objective's value and its derivatives.

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a `Simulation` (then with ``steps=``).
        wrt: parameter name or names; of nested ones the path, ``"closure.0.weight"``, or a branch for all below it.
        objective: name of the objective; ``None`` takes the first in the file. Or a function ``(frames, diagnostics) ->
            scalar`` in ``jax.numpy`` of the observed arrays and diagnostics, with a leading frame axis (of length 1,
            the last frame, if the simulation converges).
        mode: ``"reverse"``, ``"forward"`` or ``"shortest"``, see `simkit.core.gradient.with_derivative`.
        memory: memory limit of the derivative, ``"200MB"`` or a number of bytes: as many states are stored as fit, and
            steps are recomputed from them, see `simkit.core.budget`; with ``output`` it limits a piece of the run.
            ``None`` stores about the square root of the number of steps.
        seeds: differentiate the mean over this number of consecutive seeds, beginning with the scenario's, as one
            vectorized program. ``simkit grad --seeds`` also prints the standard errors.
        check: also compute central differences of one run, the attribute ``check`` of the result; meaningful with
            ``precision="float64"``.
        output: run directory, for a derivative of many steps: the states between about 20 pieces of the run are stored
            in it, and `simkit.resume` finishes the derivative after an interruption. ``None`` keeps all in memory.
        overwrite: replace an existing run directory.
        device: as for `simkit.run`.
        **values: parameters, config or run settings.

    Returns:
        The value and ``{path: derivative}``, a pair with the attributes ``note`` and ``check``. Warns if the run
        failed, if a number is not finite, or if the derivative is not that of the physics.

    Raises:
        UserError: if an argument is wrong.

    Example:
        >>> height, slope = simkit.value_and_grad("projectile", "launch_speed", objective="final_height", drag=0.0)
        >>> print(f"{height:.4f} m, {slope['launch_speed']:.4f} s, by hand {np.sin(np.pi / 3):.4f} s")
        3.5232 m, 0.8660 s, by hand 0.8660 s
    """
    enter("value_and_grad", scenario, values, overwrite=overwrite, check=check)
    of_one_run = f"{argument('check', 'True')} compares" if check else ""
    of_one_run = of_one_run if output is None else f"{argument('output')} stores"
    if of_one_run and seeds is not None:
        raise UserError(
            f"{of_one_run} the derivative of one run, not of a mean; leave it out, or leave {argument('seeds')} out"
        )
    checked = None
    with computing_on(device):
        loaded = load(scenario, values)
        if output is None:
            result = differentiate(loaded, wrt, objective, mode, memory, seeds)
        else:
            result = begin(gradient_job(loaded, wrt, objective, mode, memory), output, overwrite)
        if check:
            checked = compare(loaded, wrt, objective, mode)
    note = result.note
    if not note and not result.is_finite:
        note = f"{loaded.name}: the objective or a derivative is not finite: {NOT_FINITE}"
    if note:
        warnings.warn(note, stacklevel=2)
    pair = ValueAndDerivative(result.value, result.derivative)
    pair.scenario, pair.note, pair.check = loaded, note, checked
    pair.objective = "objective" if callable(objective) else objective_name(loaded, objective)
    return pair
