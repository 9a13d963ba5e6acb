"""Motion of a pendulum and a falling ball in every engine, alone and in an ensemble."""
