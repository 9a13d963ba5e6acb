"""Fixtures: the registered toy simulations, and a finished run of them."""

import shutil

import pytest

import simkit
from tests.toys import registered, stored, toy, toys

__all__ = ["stored", "toys"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished run, to be copied."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    with registered():
        simkit.run(toy(), output=folder)
    return folder


@pytest.fixture
def run(finished, tmp_path):
    """A copy of the folder of a finished run."""
    return shutil.copytree(finished, tmp_path / "run")
