"""Arguments of factories of simulations, from their signatures."""

from collections.abc import Callable
from typing import Any

# Argument of a factory for parameters that a scenario file declares itself in [params].
PARAMETERS = "parameters"


def arguments_of(factory: Callable[..., Any]) -> dict[str, Any]:
    """Return the defaults of the optional arguments of a factory, the keys of ``[config]``.

    Args:
        factory: of simulations.
    """
    return {each.name: each.default for each in _named(factory) if each.default is not each.empty}


def needed_arguments(factory: Callable[..., Any]) -> list[str]:
    """Return the names of the required arguments of a factory.

    Args:
        factory: of simulations.
    """
    return [each.name for each in _named(factory) if each.default is each.empty]


def takes_parameters(factory: Callable[..., Any]) -> bool:
    """Return whether a factory takes further parameters that a scenario file declares.

    Args:
        factory: of simulations.
    """
    return any(each.name == PARAMETERS for each in _signature(factory))


def takes_any(factory: Callable[..., Any]) -> bool:
    """Return whether a factory takes arguments of any name.

    Args:
        factory: of simulations.
    """
    return any(each.kind is each.VAR_KEYWORD for each in _signature(factory))


def _named(factory: Callable[..., Any]) -> list[Any]:
    kinds = ("KEYWORD_ONLY", "POSITIONAL_OR_KEYWORD")
    return [each for each in _signature(factory) if each.kind.name in kinds and each.name != PARAMETERS]


def _signature(factory: Callable[..., Any]) -> list[Any]:
    import inspect

    return list(inspect.signature(factory).parameters.values())
