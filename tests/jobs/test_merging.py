"""Merged sweeps: the order of their members, and what is refused."""

import dataclasses
import re

import pytest

from simkit.errors import UserError
from simkit.jobs.sweep_functions import joined
from simkit.jobs.sweeps import Sweep
from tests.toys import begun, toy


@pytest.fixture
def two(tmp_path):
    """Two run directories of sweeps over two seeds."""
    return [begun(tmp_path / name, toy(seed=seed), "sweep") for name, seed in (("a", 2), ("b", 0))]


def over(sweep, zip=False, **values):
    return dataclasses.replace(sweep, over=values, zip=zip)


def test_members_are_those_of_all_sweeps_in_the_order_of_seeds_values_or_points(two):
    a, b = (Sweep.of(directory) for directory in two)
    whole, numbers = joined(two, [a, b])
    assert (whole.seeds, whole.scenario.run.seed, numbers.tolist()) == (4, 0, [2, 3, 0, 1])
    # Two seeds for each of the values 1 and 3, and then of 2.
    whole, numbers = joined(two, [over(a, frequency=(1.0, 3.0)), over(a, frequency=(2.0,))])
    assert (whole.over, numbers.tolist()) == ({"frequency": (1.0, 2.0, 3.0)}, [0, 1, 4, 5, 2, 3])
    grids = [over(a, frequency=(1.0, 2.0), time_step=(0.01,)), over(a, frequency=(3.0,), time_step=(0.02, 0.03))]
    whole, numbers = joined(two, grids)
    assert whole.zip and whole.origin == "merged: grid" and numbers.tolist() == list(range(8))
    assert whole.over == {"frequency": (1.0, 2.0, 3.0, 3.0), "time_step": (0.01, 0.01, 0.02, 0.03)}
    lists = [over(a, True, frequency=(2.0, 1.0), time_step=(0.01, 0.02)) for _ in two]
    lists[1] = dataclasses.replace(b, over=lists[1].over, zip=True)
    whole, numbers = joined(two, lists)
    assert whole.zip and whole.over["frequency"] == (2.0, 1.0)
    assert numbers.reshape(2, 4).tolist() == [[4, 5, 0, 1], [6, 7, 2, 3]]


def test_sweeps_that_do_not_belong_together_are_refused_in_one_line(two):
    one = over(Sweep.of(two[0]), frequency=(2.0, 3.0))

    def later(seed, **changes):
        run = dataclasses.replace(one.scenario.run, seed=seed)
        return dataclasses.replace(one, scenario=dataclasses.replace(one.scenario, run=run), **changes)

    steps = dataclasses.replace(one.scenario, run=dataclasses.replace(one.scenario.run, steps=40))
    cases = {
        "other steps": (dataclasses.replace(one, scenario=steps), "run.steps is 20 and 40"),
        "other parameters": (over(one, time_step=(0.01,)), r"over is \['frequency'\] and \['time_step'\]"),
        "no frames": (dataclasses.replace(one, final_frames=False), "final_frames is True and False"),
        "the same point": (over(one, frequency=(5.0, 3.0)), "both have frequency = 3; leave one of them out"),
        "the same points": (one, "of equal points, with the seeds 2 and then 2"),
        "a gap of seeds": (later(7), "of equal points, with the seeds 3 and then 7"),
        "other seeds and points": (later(4, over={"frequency": (1.0,)}), r"in seeds \(2 to 3 and 4 to 5\)"),
    }
    missed = []
    for what, (other, words) in cases.items():
        try:
            missed.append(f"{what}: accepted, {joined(two, [one, other])}")
        except UserError as error:
            if not re.search(words, str(error)) or str(two[0].path) not in str(error) or "\n" in str(error):
                missed.append(f"{what}: {error}")
    assert not missed
