"""Helpers for error messages."""

import time

from simkit.errors import closest, likeliest, nearest, one_line


def test_an_unknown_name_where_none_is_known_has_a_remedy():
    assert nearest("cells", []) == "; there are none, so leave it out"


def test_a_name_of_any_length_is_compared_in_bounded_time():
    begin = time.process_time()
    for compare in (nearest, closest, likeliest):
        compare("cells" * 100_000, ["cells", "time_step"] * 20)
    # Whole names would take minutes.
    assert time.process_time() - begin < 1


def test_the_remedy_at_the_end_of_a_long_message_is_kept():
    message = one_line(f"unknown minimizer '{'a' * 1000}'; did you mean 'fire'?")
    assert message == f"unknown minimizer '{'a' * 29}...a'; did you mean 'fire'?"
    for count in (300, 300_000):
        message = one_line("a " * count + "; choose another")
        assert len(message) == 200 and message.startswith("a a a") and message.endswith("a a ; choose another")
    assert one_line("a" * 300_000 + "; choose another") == f"{'a' * 30}...aa; choose another"


def test_what_is_no_text_is_near_no_name():
    assert nearest(7.0, ["fire", "lbfgs"]) == "; known names: fire, lbfgs"


def test_a_name_in_other_capital_letters_is_nearest():
    assert nearest("mean_U", ["mean_v", "mean_u", "mean_w"]) == "; did you mean 'mean_u'?"
