"""Interactions whose params are converted by a function before they are passed on."""

from collections.abc import Callable

from simkit.core.simulation import Params
from simkit.molecular.composed.names import TIME
from simkit.molecular.interactions.interaction import Interaction


def with_converted_params(interaction: Interaction, view: Callable[[Params], Params]) -> Interaction:
    """Return an interaction whose params are first converted by a function.

    Args:
        interaction: interaction with params of its own.
        view: ``params -> params`` of that interaction.
    """
    resize, fits = interaction.sized_like, interaction.fits
    return Interaction(
        prepare=lambda position, cell, params: interaction.prepare(position, cell, view(params)),
        refresh=lambda neighbors, position, cell, params: interaction.refresh(neighbors, position, cell, view(params)),
        energy=lambda position, cell, params, neighbors: interaction.energy(position, cell, view(params), neighbors),
        force=lambda position, cell, params, neighbors: interaction.force(position, cell, view(params), neighbors),
        stress=lambda position, cell, params, neighbors: interaction.stress(position, cell, view(params), neighbors),
        sized_like=resize and (lambda neighbors: with_converted_params(resize(neighbors), view)),
        is_translation_invariant=interaction.is_translation_invariant,
        fits=fits and (lambda cell, params: fits(cell, view(params))),
    )


def without_time(params: Params) -> Params:
    """Return the params of a system without the time, which only fields use."""
    return {name: value for name, value in params.items() if name != TIME}
