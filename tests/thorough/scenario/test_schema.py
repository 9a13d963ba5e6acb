"""Reading of scenario files, and refusal of mistakes in one line with file, key, value, allowed values and remedy."""

import time

from tests.scenario.test_schema import refusal
from tests.tables import every


@every(
    "hostile",
    [
        '"' + '\\"' * 400_000,
        "a" * 900_000,
        "a." * 15 + "a" * 900_000,
        "'" * 900_000,
        '"""' + '"" ' * 300_000,
        "x = [" + "[],\n" * 200_000 + "]",
        "a = '" + "." * 900_000 + "'",
        "a " * 450_000,
    ],
    ids=["escapes", "word", "long part", "quotes", "triple quotes", "many lists", "dots in a string", "words"],
)
def test_a_hostile_file_is_refused_quickly(hostile):
    start = time.process_time()
    message = refusal(hostile)
    # A linear scan of 1 MiB takes well under a second; quadratic behavior would take minutes.
    assert time.process_time() - start < 5.0
    assert len(message) < 500
