"""Minimizers of energy, one evaluation of energy and force per iteration."""

from simkit.molecular.minimizers.conjugate_gradient import conjugate_gradient
from simkit.molecular.minimizers.fire import FireSettings, fire
from simkit.molecular.minimizers.fire2 import fire2
from simkit.molecular.minimizers.gradient_descent import gradient_descent
from simkit.molecular.minimizers.lbfgs import lbfgs
from simkit.molecular.minimizers.protocol import Evaluate, Minimizer, Scale, largest_norm, start, step
from simkit.molecular.parts import MINIMIZERS

__all__ = [
    "Evaluate",
    "FireSettings",
    "Minimizer",
    "Scale",
    "by_name",
    "conjugate_gradient",
    "fire",
    "fire2",
    "gradient_descent",
    "largest_norm",
    "lbfgs",
    "start",
    "step",
]


def by_name(name: str) -> Minimizer:
    """Return a minimizer with its default settings.

    Args:
        name: ``"lbfgs"`` (fewest evaluations), ``"fire"``, ``"fire2"``, ``"conjugate_gradient"`` or
            ``"gradient_descent"``, or that of an installed package.

    Raises:
        UserError: if there is no such minimizer.

    Example:
        >>> molecular.minimizers.by_name("fire").monotone, molecular.minimizers.by_name("lbfgs").monotone
        (False, True)
    """
    return MINIMIZERS.resolve(name)()
