"""Upper bounds on the number of particles."""

from simkit.errors import UserError

# The tables of a neighbor list hold up to a hundred numbers per particle, counted by 32-bit integers.
MAX_PARTICLES = 2**24
# A table of all their pairs takes a gigabyte.
MAX_PARTICLES_IN_PAIRS = 2**14


def check_particles(count: int, given: str, most: int = MAX_PARTICLES) -> None:
    """Refuse more particles than can be simulated, before arrays are allocated.

    Args:
        count: number of particles.
        given: the request for the message, such as ``"particles = 64"``.
        most: upper bound.

    Raises:
        UserError: if there are more.
    """
    if count > most:
        raise UserError(f"{given} makes {count:.3g} particles; choose fewer, at most {most}")
