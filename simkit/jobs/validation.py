"""Validation of a scenario against its published and analytic numbers."""

import dataclasses
from collections.abc import Iterator
from typing import cast

import jax.numpy as jnp
import numpy as np

from simkit.core.compilation import use_compilation_cache
from simkit.core.expressions.measures import measure_of
from simkit.core.objective import Reduce, reduced
from simkit.core.precision import precision
from simkit.jobs.differentiation import value_and_grad
from simkit.jobs.job import begin
from simkit.jobs.reporting import Report
from simkit.jobs.runs import Outcome, Run
from simkit.scenario.build import build, check_validations
from simkit.scenario.made_in_python import load
from simkit.scenario.scenario import Scenario, Validation


@dataclasses.dataclass(frozen=True)
class Check:
    """Comparison of an expected number with the scenario's.

    Attributes:
        scenario: name of the scenario.
        what: the quantity, or the derivative, in words.
        expected: published or analytic value.
        found: the scenario's value.
        error: relative to ``|expected|``; absolute where that is zero.
        tolerance: largest allowed error.
        source: source of the expected value.
        failure: failure of the run, in words; empty if there was none.
    """

    scenario: str
    what: str
    expected: float
    found: float
    error: float
    tolerance: float
    source: str
    failure: str = ""

    @property
    def passed(self) -> bool:
        """Whether the run succeeded and the error is within the tolerance (NaN is not)."""
        return not self.failure and self.error <= self.tolerance


def validate(scenario: Scenario, report: Report = lambda fraction, words: None) -> Iterator[Check]:
    """Yield one `Check` per validation entry, running each set of overrides once."""
    check_validations(scenario)
    use_compilation_cache()
    outcomes: dict[str, Outcome] = {}
    for validation in scenario.validations:
        value, failure = _value_of(scenario, validation, outcomes, report)
        error = abs(value - validation.expected)
        yield Check(
            scenario=scenario.name,
            what=validation.words,
            expected=validation.expected,
            found=value,
            error=error / abs(validation.expected) if validation.expected else error,
            tolerance=validation.tolerance,
            source=validation.source,
            failure=failure,
        )


def _value_of(
    scenario: Scenario, validation: Validation, outcomes: dict[str, Outcome], report: Report
) -> tuple[float, str]:
    """Return the value of a validation, and the failure of its run (empty if there was none)."""
    changed = load(scenario, validation.overrides)
    if validation.derivative is not None:
        _, derivative = value_and_grad(changed, validation.derivative, objective=validation.objective)
        return float(np.asarray(derivative[validation.derivative])), ""
    overrides = repr(sorted(validation.overrides.items()))
    if overrides not in outcomes:
        outcomes[overrides] = begin(Run(changed), None, report=report)
    outcome = outcomes[overrides]
    failure = outcome.message if outcome.failed else ""
    if validation.expression:
        return _measured(changed, validation.expression, outcome), failure
    series = outcome.arrays[f"diagnosed.{validation.quantity}"]
    with precision(changed.run.precision):
        value = float(reduced(cast(Reduce, validation.reduce), jnp.asarray(series)))
    return value, failure


def _measured(scenario: Scenario, text: str, outcome: Outcome) -> float:
    """Return the value of an expression of a run's observed arrays and diagnostics."""
    arrays = outcome.arrays
    with precision(scenario.run.precision):
        frames, diagnostics = (
            {name.partition(".")[2]: jnp.asarray(array) for name, array in arrays.items() if name.startswith(kind)}
            for kind in ("observed.", "diagnosed.")
        )
        return float(measure_of(build(scenario), text, f"{scenario.file}: validation")(frames, diagnostics))
