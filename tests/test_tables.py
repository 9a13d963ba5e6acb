"""A loop over a table names each case that misses."""

import pytest

from tests.tables import every, lacking, misses, refusal


def _even(number):
    assert number % 2 == 0, f"{number} is odd"


def test_every_case_that_misses_is_named():
    assert misses({"two": 2, "three": 3, "five": 5}, _even) == [
        "three: AssertionError: 3 is odd\nassert (3 % 2) == 0",
        "five: AssertionError: 5 is odd\nassert (5 % 2) == 0",
    ]
    assert misses([(1, 1), (1, 2)], lambda a, b: a == b) == ["1: (1, 2): misses"]
    assert misses([("a", int)], lambda text, kind: pytest.fail(text)) == [f"0: ('a', {int!r}): Failed: a"]


@pytest.fixture
def ten():
    return 10


def test_a_test_of_every_case_takes_fixtures_and_fails_with_all_misses(ten):
    for decorator in (every(("a", "b"), [(4, 5), (6, 4), (2, 3)]), every({"x": (4, 5), "y": (6, 4), "z": (2, 3)})):

        @decorator
        def check(ten, a, b):
            assert a + b == ten or a == 6

        with pytest.raises(AssertionError, match=r"2 of 3 cases miss"):
            check(ten=ten)
    every("size", [1, 2])(lambda size: None)()
    with pytest.raises(AssertionError, match="1 of 2 cases miss"):
        every([1, 2])(lambda size: size == 1)()


def test_a_table_without_cases_is_a_mistake():
    with pytest.raises(ValueError, match="no cases"):
        misses([], _even)
    with pytest.raises(ValueError, match="no cases"):
        every([])


def test_a_refusal_is_a_message_and_its_absence_a_failure():
    assert lacking(refusal(ValueError, int, "x"), "invalid literal", "'x'") is None
    assert lacking("one", "one", "two") == "lacks ['two'] in 'one'"
    with pytest.raises(AssertionError, match="the result is 3"):
        refusal(ValueError, int, "3")
