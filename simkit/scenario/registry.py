"""Registries of simulations (factories by name) and of views, and the arguments of factories."""

import inspect
from collections.abc import Callable
from typing import Any

from simkit.plugins import Registry

FACTORIES = {
    "molecular.jamming": "simkit.molecular.systems.jamming:jamming",
    "molecular.colloid_assembly": "simkit.molecular.systems.colloid_assembly:colloid_assembly",
    "molecular.basin_hopping": "simkit.molecular.systems.basin_hopping:basin_hopping",
    "molecular.learned_pair": "simkit.molecular.systems.learned_pair:learned_pair",
    "molecular.bubble_raft": "simkit.molecular.systems.bubble_raft:bubble_raft",
    "molecular.system": "simkit.molecular.description.system:system",
    "flow.domain": "simkit.flow.description.system:system",
    "flow.turbulent_channel": "simkit.flow.systems.turbulent_channel:turbulent_channel",
    "flow.viscosity_from_frames": "simkit.flow.systems.viscosity_from_frames:viscosity_from_frames",
    "flow.jax_cfd_channel": "simkit.flow.systems.jax_cfd_channel:jax_cfd_channel",
    "flow.kolmogorov_turbulence": "simkit.flow.systems.kolmogorov_turbulence:kolmogorov_turbulence",
    "flow.spectral_channel": "simkit.flow.spectral.fourier_chebyshev:spectral_channel",
    "rigid.bouncing_ball": "simkit.rigid.systems.hard_impacts:bouncing_ball",
    "rigid.billiards_break": "simkit.rigid.systems.hard_impacts:billiards_break",
    "rigid.scene": "simkit.rigid.description.system:system",
    "rigid.mjcf": "simkit.rigid.models.mjcf:from_text",
    "rigid.system_identification": "simkit.rigid.systems.plans_and_identification:system_identification",
    "rigid.steered_puck": "simkit.rigid.systems.plans_and_identification:steered_puck",
}
SIMULATIONS = Registry("simulation", FACTORIES)
# `simkit.render` adds its own.
VIEWS = Registry("view", {})

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
    return list(inspect.signature(factory).parameters.values())
