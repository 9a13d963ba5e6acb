"""Arguments of a factory of simulations, from its signature."""

from collections.abc import Callable
from typing import Any

# The argument of a factory that takes parameters of the user's own, which a scenario file gives in [params].
PARAMETERS = "parameters"


def arguments_of(factory: Callable[..., Any]) -> dict[str, Any]:
    """Return the default of each argument that a scenario file gives in ``[config]``; those needed have none.

    Args:
        factory: of simulations.
    """
    return {each.name: each.default for each in _named(factory) if each.default is not each.empty}


def needed_arguments(factory: Callable[..., Any]) -> list[str]:
    """Return the arguments without which a factory makes nothing: on them depends what its simulation has.

    Args:
        factory: of simulations.
    """
    return [each.name for each in _named(factory) if each.default is each.empty]


def takes_parameters(factory: Callable[..., Any]) -> bool:
    """Return whether a factory takes parameters of the user's own besides those that it declares.

    Args:
        factory: of simulations.
    """
    return any(each.name == PARAMETERS for each in _given(factory))


def takes_any(factory: Callable[..., Any]) -> bool:
    """Return whether a factory takes arguments of any name.

    Args:
        factory: of simulations.
    """
    return any(each.kind is each.VAR_KEYWORD for each in _given(factory))


def _named(factory: Callable[..., Any]) -> list[Any]:
    kinds = ("KEYWORD_ONLY", "POSITIONAL_OR_KEYWORD")
    return [each for each in _given(factory) if each.kind.name in kinds and each.name != PARAMETERS]


def _given(factory: Callable[..., Any]) -> list[Any]:
    import inspect

    return list(inspect.signature(factory).parameters.values())
