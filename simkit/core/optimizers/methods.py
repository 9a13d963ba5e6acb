"""Names of the methods of optimization, and what each of them accepts."""

from typing import Literal

from simkit.errors import UserError, argument

type Method = Literal["lbfgs", "adam", "levenberg_marquardt", "cma_es"]

METHODS: dict[str, str] = {
    "lbfgs": "smooth objectives",
    "adam": "noisy derivatives",
    "levenberg_marquardt": "sums of squares",
    "cma_es": "objectives without useful derivatives",
}
LEARNING_RATE = 0.1


def learning_rate_of(method: str, given: float | None) -> float:
    """Return the learning rate of an optimization; methods other than Adam ignore it.

    Args:
        method: one of `METHODS`.
        given: the user's learning rate, or ``None`` for 0.1.

    Raises:
        UserError: if a learning rate is given to a method that chooses its own steps.
    """
    if given is not None and method != "adam":
        raise UserError(
            f"{argument('learning_rate')} is for adam; {method} chooses its own steps; pass "
            f"{argument('method', '"adam"')}, or leave it out"
        )
    return LEARNING_RATE if given is None else given


def check_options(method: str, *, maximize: bool, mode: str) -> None:
    """Refuse a goal or a mode of differentiation that a method does not have.

    Args:
        method: one of `METHODS`.
        maximize: whether the objective is to be maximized.
        mode: mode of differentiation; ``"shortest"`` by default.

    Raises:
        UserError: if a method of sums of squares is to maximize, or one without derivatives is given a mode.
    """
    if maximize and method == "levenberg_marquardt":
        raise UserError(
            'levenberg_marquardt minimizes sums of squares, and this objective is to be maximized; pass method="lbfgs"'
        )
    if mode != "shortest" and method == "cma_es":
        raise UserError(f"{argument('mode')} is for methods with derivatives; cma_es uses none; leave it out")
