"""Methods of optimization by name: each declares its options and what it evaluates beside its update.

A package adds one by an entry point of the group ``simkit.optimizers``: a function of ``numbers`` (how many are
optimized), ``tolerance`` and its options that returns a `simkit.core.optimizers.optimizer.Optimizer`::

    @method(keys={"step": number("length of a step", 0.1)}, evaluates="gradient")
    def fixed_step(*, numbers, tolerance, step): ...
"""

import dataclasses
from typing import Any, Literal

from simkit.core.arguments import check_type
from simkit.core.parts import Choice, Declaration, PartTable, declaration_of, table_of
from simkit.core.settings import Settings
from simkit.errors import UserError, argument
from simkit.plugins import Registry

# Each method in one line: what it is for, and its function.
_OWN = {
    "lbfgs": ("smooth objectives", "simkit.core.optimizers.lbfgs:lbfgs"),
    "adam": ("noisy derivatives", "simkit.core.optimizers.adam:adam"),
    "levenberg_marquardt": ("sums of squares", "simkit.core.optimizers.levenberg_marquardt:levenberg_marquardt"),
    "cma_es": ("objectives without useful derivatives", "simkit.core.optimizers.cma_es:cma_es"),
}
METHODS = {name: use for name, (use, _) in _OWN.items()}
# Stored with an optimization whose method has none.
LEARNING_RATE = 0.1
OPTIMIZERS = Registry("optimizer", {name: target for name, (_, target) in _OWN.items()})


@dataclasses.dataclass(frozen=True)
class Method(Declaration):
    """What a method of optimization declares besides its options; ``@method(...)`` marks the function of one.

    Attributes:
        evaluates: what it reads of the objective: its gradient, the residuals of a sum of squares, or values alone.
    """

    evaluates: Literal["gradient", "residuals", "values"] = "gradient"


method = Method


def chosen(text: str, **options: Any) -> Settings:
    """Return the name of a method, ``settings["method"]``, and its options.

    Args:
        text: ``"adam"``, or with options ``"adam:learning_rate=0.05"``.
        **options: further options; ``None`` for those that are not given.

    Raises:
        UserError: if the method is unknown, or an option is not one of it or has a wrong value.
    """
    check_type("method", text, f"one of {', '.join(METHODS)}", str)
    table = table_of(text, "method")
    for key, value in options.items():
        if value is not None and table.setdefault(key, value) is not value and table[key] != value:
            raise UserError(f"{key} = {value} is given beside method = '{text:.60}'; keep one of them")
    return PartTable((Choice(OPTIMIZERS, "method", "method of optimization"),), {}).read(table, "")


def options_of(settings: Settings) -> dict[str, Any]:
    """Return the options among the settings of a method, arguments of its function."""
    return {key: value for key, value in settings.items() if key != "method"}


def evaluated(name: str) -> str:
    """Return what a method evaluates, see `Method`."""
    return getattr(declaration_of(OPTIMIZERS.resolve(name)), "evaluates", "gradient")


def learning_rate_of(text: str, learning_rate: float | None) -> float:
    """Return the learning rate of an optimization; methods without one ignore it.

    Args:
        text: method, as for `chosen`.
        learning_rate: the user's learning rate, or ``None`` for that of the method.

    Raises:
        UserError: as `chosen`.
    """
    return chosen(text, learning_rate=learning_rate).get("learning_rate", LEARNING_RATE)


def check_options(name: str, *, maximize: bool, mode: str) -> None:
    """Refuse a goal or a mode of differentiation that a method does not have.

    Args:
        name: of the method.
        maximize: whether the objective is to be maximized.
        mode: mode of differentiation; ``"shortest"`` by default.

    Raises:
        UserError: if a method of sums of squares is to maximize, or one without derivatives is given a mode.
    """
    if maximize and evaluated(name) == "residuals":
        raise UserError(f'{name} minimizes sums of squares, and this objective is to be maximized; pass method="lbfgs"')
    if mode != "shortest" and evaluated(name) == "values":
        raise UserError(f"{argument('mode')} is for methods with derivatives; {name} uses none; leave it out")
