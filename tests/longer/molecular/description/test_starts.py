"""Starts of systems as data: structures, random places, values of particles, and tasks."""

from tests.molecular.description.test_starts import LOWER, UPPER, fluid, refusal


def test_walls_without_room_between_them_are_refused(x64):
    told = refusal(fluid([LOWER, {**UPPER, "distance": "1.2 - y"}]))
    assert told.startswith("start.separation = 0.9 ") and "two, or one and a wall, are 0." in told
