"""Sections of a scenario file: each a record whose fields are the declared keys of a table."""

# Fields of dataclasses are declared by calls.
# ruff: noqa: RUF009

import dataclasses
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from simkit.core.expressions.syntax import parse
from simkit.core.parameter import POSITIVE, Numbers, Parameter
from simkit.core.paths import below
from simkit.core.settings import (
    Rule,
    Setting,
    Settings,
    declared,
    excludes,
    flag,
    interval,
    line,
    named,
    needs,
    number,
    numbers,
    record,
    whole,
    word,
)
from simkit.core.settings.records import keys_of
from simkit.errors import Mistakes, UserError, closest
from simkit.scenario import checks
from simkit.scenario.checks import LONGEST_LABEL, STEP, diagnostic, expression

# Functions of expressions by name of the reduction.
_REDUCTIONS = {
    "final": "final",
    "mean": "time_mean",
    "root_mean_square": "time_rms",
    "maximum": "largest",
    "minimum": "smallest",
    "sum": "time_sum",
}
REDUCTIONS = tuple(_REDUCTIONS)
PRECISIONS = ("float32", "float64")
UNCHECKED = Setting("a value", "checked when it is applied", lambda value, where: value)


@dataclasses.dataclass(frozen=True)
class ParameterSettings:
    """Settings of a parameter in a file; ``None`` where the declaration of the simulation applies."""

    default: Numbers | None = declared(numbers("its value, or nested lists of values", None))
    bounds: tuple[float, float] | None = declared(interval("lowest and highest value allowed", None, is_open=True))
    unit: str | None = declared(line("physical unit", None, LONGEST_LABEL))
    doc: str | None = declared(line("its meaning", None))

    def applied_to(self, parameter: Parameter) -> Parameter:
        """Return a declared parameter with these settings applied.

        Args:
            parameter: as declared.
        """
        return dataclasses.replace(
            parameter, **{name: value for name, value in vars(self).items() if value is not None}
        )

    @property
    def as_declaration(self) -> Parameter:
        """The declaration of a parameter that the file itself declares."""
        return self.applied_to(Parameter(0.0))


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """Length, precision and seed of a run."""

    steps: int = declared(whole("number of steps, a multiple of every", low=1), example=1000)
    every: int = declared(whole("steps between two stored frames", low=1), example=10)
    precision: str = declared(word("precision of all arrays", PRECISIONS, "float32"))
    seed: int = declared(whole("seed of the random key", 0, high=checks.MAX_SEED))
    stop: str = declared(expression("condition that ends the run; empty for none", "", is_condition=True))


RUN_KEYS = keys_of(RunSettings)


def indivisible(steps: int, every: int, where: Callable[[str], str]) -> str:
    """Return what is wrong with ``steps`` that are not a multiple of ``every``, and the remedies; empty if they are.

    Args:
        steps: number of steps.
        every: steps between two frames.
        where: ``key -> name`` of the key in errors; its last part sets the key.
    """
    if steps % every == 0:
        return ""
    below = steps - steps % every
    pairs = ((divisor, steps // divisor) for divisor in range(1, math.isqrt(steps) + 1) if steps % divisor == 0)
    divisor = min((each for pair in pairs for each in pair), key=lambda each: (abs(each - every), each))
    steps_key, every_key = (where(key).rpartition(": ")[2] for key in ("steps", "every"))
    multiples = f"{below} or {below + every}" if below else f"{every}"
    problem = f"steps = {steps} is not a multiple of every = {every}"
    return f"{problem}; use {steps_key}={multiples}, or {every_key}={divisor}"


@dataclasses.dataclass(frozen=True)
class ObjectiveSettings:
    """A scalar of a run that is differentiated and optimized."""

    name: str = ""
    doc: str = declared(line("its meaning", ""))
    quantity: str = declared(diagnostic("name of the diagnostic; by default that of the objective", ""))
    reduce: str = declared(word("reduction of the history of the diagnostic to one number", REDUCTIONS, "final"))
    square: bool = declared(flag("whether the quantity is squared, which turns a root into a minimum"))
    goal: str = declared(word("what optimize does", ("minimize", "maximize"), "minimize"))
    expression: str = declared(expression("of observed arrays and diagnostics, in place of quantity", ""))

    @property
    def as_expression(self) -> str:
        """The objective as an expression, to be combined with others."""
        if self.expression:
            return self.expression
        return f"{_REDUCTIONS[self.reduce]}({self.quantity}){'**2' * self.square}"

    @property
    def made_of(self) -> tuple[str, ...]:
        """Names of the quantities in the objective."""
        return parse(self.expression, f"objectives.{self.name}").names if self.expression else (self.quantity,)


@dataclasses.dataclass(frozen=True)
class QuantitySettings:
    """A quantity that a scenario adds to those of its simulation."""

    expression: str = declared(expression("of parameters, quantities and coordinates"), example="0")
    doc: str = declared(line("its meaning"), example="-")
    unit: str = declared(line("physical unit", "1", LONGEST_LABEL))


@dataclasses.dataclass(frozen=True)
class RenderSettings:
    """Settings for drawing the stored frames.

    Attributes:
        view: name of a view.
        quantity: the observed array shown as color; for a chart, the diagnostic drawn over time.
        label: text of the color bar; by default the name of the quantity.
        unit: unit of the quantity; ``"1"`` for a pure number.
        limits: lowest and highest color value; ``None`` takes them from the data.
        frames_per_second: speed of the animation.
        options: values of the keys that the view declares.
    """

    view: str
    quantity: str
    label: str = ""
    unit: str = "1"
    limits: tuple[float, float] | None = None
    frames_per_second: float = 20.0
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Label the color bar with the name of the quantity by default."""
        object.__setattr__(self, "label", self.label or self.quantity.replace("_", " "))

    def table(self) -> dict[str, Any]:
        """Return the table ``[render]`` with these settings."""
        values = {**vars(self), **self.options}
        return {key: value for key, value in values.items() if key != "options" and value is not None and value != {}}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Validation:
    """A published or analytic number that the scenario reproduces."""

    quantity: str = declared(diagnostic("the compared diagnostic; of a derivative that of the objective", ""))
    expected: float = declared(number("the published or analytic value"), example=1.0)
    tolerance: float = declared(number("relative to |expected|; absolute if that is 0", bounds=POSITIVE), example=1.0)
    source: str = declared(line("where the value is from"), example="-")
    overrides: dict[str, Any] = declared(named("values for this comparison, by key", UNCHECKED, ".+"), key="set")
    derivative: str | None = declared(line("parameter by which objective is differentiated", None, LONGEST_LABEL))
    objective: str | None = declared(line("objective whose derivative is compared", None))
    reduce: str = declared(word("reduction of the history of the diagnostic to one number", REDUCTIONS, "final"))
    expression: str = declared(expression("compared in place of the quantity", ""))

    @property
    def words(self) -> str:
        """Label of the compared number: ``energy``, ``overlap (maximum)`` or ``d objective / d parameter``."""
        if self.derivative is not None:
            return f"d {self.objective} / d {self.derivative}"
        if self.expression:
            return self.expression
        return self.quantity if self.reduce == "final" else f"{self.quantity} ({self.reduce.replace('_', ' ')})"


def _default_in_bounds(table: Settings) -> UserError | None:
    if table["default"] is None or table["bounds"] is None:
        return None
    try:
        checks.inside(table["default"], table.path("default"), table["bounds"])
    except UserError as error:
        return error
    return None


def _whole_frames(table: Settings) -> UserError | None:
    problem = indivisible(table["steps"], table["every"], table.path)
    return UserError(f"{table.path('steps')}: {problem}", key=table.path("steps")) if problem else None


def _compares_something(table: Settings) -> UserError | None:
    if not table.given.isdisjoint(("quantity", "expression", "objective", "derivative")):
        return None
    return table.refuse("quantity", "is missing; give the name of a diagnostic, or an expression")


def parameters(doc: str) -> Setting:
    """Return the setting of ``[params]``: by path ``name = value``, or a table of value, bounds, unit and doc.

    A table without any of these keys is a branch, such as ``[params.closure]``.

    Args:
        doc: its meaning.
    """
    rules = (Rule(("default", "bounds"), _default_in_bounds),)
    parameter = record("a parameter", ParameterSettings, rules, "default")
    branch = named("parameters", UNCHECKED, rf"{STEP}(?:\.{STEP})*")

    def check(value: Any, where: str) -> dict[str, ParameterSettings]:
        mistakes, settings = Mistakes(), {}
        for name, entry in mistakes.result(where, lambda: branch.check(value, where), dict).items():
            path = below(where, name)
            if isinstance(entry, Mapping) and _is_branch(entry):
                inner = mistakes.result(path, partial(check, entry, path), dict)
                settings |= {below(name, each): setting for each, setting in inner.items()}
            else:
                settings[name] = mistakes.result(path, partial(parameter.check, entry, path), ParameterSettings)
        mistakes.raise_if_any(settings)
        return settings

    return Setting("a table, by name, of values", doc, check, {}, dict, False, lambda: {"type": "object"}, "names")


def _is_branch(table: Mapping[str, Any]) -> bool:
    """Return whether a table is a branch of parameters: none of its keys is a key of one parameter, or a typo of it."""
    keys = keys_of(ParameterSettings)
    values = {key: value for key, value in table.items() if key in keys}
    if any(not isinstance(value, dict) for value in values.values()):
        return False
    if any(isinstance(value, dict) for value in table.values()):
        return True
    return bool(table) and not any(closest(key, keys) for key in table)


PARAMETERS_OF_FILE = parameters("values of parameters, or their declarations")
QUANTITY = record("a quantity", QuantitySettings)
OBJECTIVE = record(
    "a scalar of a run", ObjectiveSettings, excludes("expression", ("quantity", "reduce", "square")), "expression"
)
VALIDATION = record(
    "a number to be reproduced",
    Validation,
    (
        *needs(("derivative",), "objective"),
        *needs(("objective",), "derivative"),
        *excludes("expression", ("quantity", "reduce", "derivative", "objective")),
        *excludes("objective", ("quantity", "reduce")),
        Rule(("quantity", "expression", "objective", "derivative"), _compares_something),
    ),
)
RUN = record("length and precision of a run", RunSettings, (Rule(("steps", "every"), _whole_frames),), is_required=True)
