"""Each system on the page of scenarios in Python is the program of the scenario's file, in at most 30 lines."""

from tests.docs.systems import check_program
from tests.tables import every


@every("name", ("couette_poiseuille", "nose_hoover"))
def test_a_system_of_the_page_is_the_program_of_its_file(name):
    check_program(name)
