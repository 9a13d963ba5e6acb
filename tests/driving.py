"""A simulation driven by the host loop, segment by segment."""

from simkit.engine.driver import Drive, Program
from simkit.engine.loop import pieces_of


def drive(simulation, params, key, plan, *, store=None, program=None, warn=lambda message: None):
    """Yield the pieces of a run."""
    return pieces_of(Drive(program or Program.of(simulation, plan), params, key, plan), store, warn)
