"""A simulation driven by the host loop, segment by segment."""

from simkit.engine.driver import Drive, Program, segments_of


def drive(simulation, params, key, plan, *, store=None, program=None, warn=lambda message: None):
    """Yield the segments of a run."""
    return segments_of(Drive(program or Program.of(simulation, plan), params, key, plan), store, warn)
