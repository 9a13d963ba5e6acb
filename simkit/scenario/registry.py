"""Registered simulations: names to the functions that make them, imported only when asked for."""

from collections.abc import Callable
from typing import Any

from simkit.errors import UserError, nearest
from simkit.scenario.toml import one_line

FACTORIES = {
    "molecular.soft_sphere_packing": "simkit.molecular.systems.packing:soft_sphere_packing",
    "molecular.jamming": "simkit.molecular.systems.jamming:jamming",
    "molecular.cluster": "simkit.molecular.systems.clusters:cluster",
    "molecular.colloid_assembly": "simkit.molecular.systems.colloid_assembly:colloid_assembly",
    "molecular.basin_hopping": "simkit.molecular.search.basin_hopping:basin_hopping",
    "molecular.bubble_raft": "simkit.molecular.systems.bubble_raft:bubble_raft",
    "molecular.crystal": "simkit.molecular.systems.crystal:crystal",
    "molecular.fluid": "simkit.molecular.systems.fluid:fluid",
    "molecular.jax_md_soft_spheres": "simkit.molecular.systems.jax_md_packing:jax_md_soft_spheres",
    "molecular.structure": "simkit.molecular.systems.from_structure:relaxed_structure",
    "flow.channel": "simkit.flow.systems.channel:channel",
    "flow.heated_cavity": "simkit.flow.systems.heated_cavity:heated_cavity",
    "flow.turbulent_channel": "simkit.flow.systems.turbulent_channel:turbulent_channel",
    "flow.viscosity_from_frames": "simkit.flow.systems.viscosity_from_frames:viscosity_from_frames",
    "flow.lid_driven_cavity": "simkit.flow.systems.lid_driven_cavity:lid_driven_cavity",
    "flow.taylor_green": "simkit.flow.systems.taylor_green:taylor_green",
    "flow.womersley": "simkit.flow.systems.womersley:womersley",
    "flow.kolmogorov_turbulence": "simkit.flow.systems.kolmogorov_turbulence:kolmogorov_turbulence",
    "flow.spectral_channel": "simkit.flow.spectral.fourier_chebyshev:spectral_channel",
    "flow.cylinder_in_channel": "simkit.flow.systems.cylinder:cylinder_in_channel",
    "flow.drag_reduction": "simkit.flow.systems.drag_reduction:drag_reduction",
    "rigid.bouncing_ball": "simkit.rigid.systems.bouncing_ball:bouncing_ball",
    "rigid.projectile": "simkit.rigid.systems.projectile:projectile",
    "rigid.asymmetric_top": "simkit.rigid.systems.asymmetric_top:asymmetric_top",
    "rigid.heavy_top": "simkit.rigid.systems.heavy_top:heavy_top",
    "rigid.billiards_break": "simkit.rigid.systems.billiards_break:billiards_break",
    "rigid.newtons_cradle": "simkit.rigid.systems.newtons_cradle:newtons_cradle",
    "rigid.mjcf": "simkit.rigid.models.mjcf:from_text",
    "rigid.box_stack": "simkit.rigid.systems.box_stack:box_stack",
    "rigid.falling_pile": "simkit.rigid.systems.falling_pile:falling_pile",
    "rigid.rolling_ball": "simkit.rigid.systems.rolling_ball:rolling_ball",
    "rigid.sliding_block": "simkit.rigid.systems.sliding_block:sliding_block",
    "rigid.compliant_bounce": "simkit.rigid.systems.compliant_bounce:compliant_bounce",
    "rigid.double_pendulum": "simkit.rigid.systems.double_pendulum:double_pendulum",
    "rigid.four_bar_linkage": "simkit.rigid.systems.four_bar_linkage:four_bar_linkage",
    "rigid.system_identification": "simkit.rigid.systems.system_identification:system_identification",
    "rigid.steered_puck": "simkit.rigid.systems.steered_puck:steered_puck",
}
ENTRY_POINT_GROUP = "simkit.simulations"


def names() -> list[str]:
    """Return the names of every registered simulation, those of installed plugins included."""
    return sorted({*FACTORIES, *(entry.name for entry in _entry_points())})


def providers() -> list[tuple[str, str, str]]:
    """Return ``(name, provider, target)`` of every registered simulation, sorted; nothing is imported.

    The provider is ``"simkit"``, or the package that registers it through the entry-point group. A name that two
    packages register is there twice.
    """
    own = [(name, "simkit", target) for name, target in FACTORIES.items()]
    return sorted(own + [(entry.name, _owner(entry), entry.value) for entry in _entry_points()])


def resolve(name: str) -> Callable[..., Any]:
    """Return the factory registered under a name.

    A package adds one through the entry-point group ``simkit.simulations``, for instance
    ``"waves.string" = "my_package.waves:string"`` in its ``pyproject.toml``.

    Args:
        name: such as ``"flow.channel"``.

    Raises:
        UserError: if the name is unknown, registered twice, or its module cannot be imported.
    """
    entries = [entry for entry in _entry_points() if entry.name == name]
    owners = [*(["simkit"] if name in FACTORIES else []), *(_owner(entry) for entry in entries)]
    if len(owners) > 1:
        raise UserError(
            f"simulation '{name}' is registered by {' and by '.join(owners)}; uninstall one of the packages"
        )
    if not owners:
        raise UserError(f"unknown simulation '{one_line(name, 80)}'{nearest(name[:64], names())}")
    target = FACTORIES[name] if name in FACTORIES else entries[0].value
    try:
        factory = _load(target) if name in FACTORIES else entries[0].load()
    except Exception as error:  # a plugin's module may fail in any way while it is imported
        reason = one_line(f"{type(error).__name__}: {error}")
        remedy = "install what it needs" if isinstance(error, ImportError) else "repair or uninstall that package"
        raise UserError(
            f"simulation '{name}' of {owners[0]} cannot be loaded from {target}: {reason}; {remedy}"
        ) from error
    if not callable(factory):
        raise UserError(f"simulation '{name}' of {owners[0]}: {target} is not a function; register the factory itself")
    return factory


def _load(target: str) -> Any:
    import importlib

    module, _, function = target.partition(":")
    return getattr(importlib.import_module(module), function)


def _entry_points() -> list[Any]:
    import importlib.metadata

    return list(importlib.metadata.entry_points(group=ENTRY_POINT_GROUP))


def _owner(entry: Any) -> str:
    return f"package '{entry.dist.name}'" if entry.dist else "an installed package"
