"""Importing and listing stay cheap."""

import subprocess
import sys

import pytest

HEAVY = ("jax", "numpy", "matplotlib", "xarray", "scipy", "optax", "imageio", "ase")

PROGRAMS = {
    "import": "import simkit",
    "list": "from simkit.cli.main import main; assert main(['list']) == 0",
    "simulations": "from simkit.cli.main import main; assert main(['list', '--simulations']) == 0",
    "help": "from simkit.cli.main import main; assert main([]) == 0",
    "help of every verb": "from simkit.cli.main import VERBS; [shown(verb) for verb in VERBS]",
}
HELPERS = """
import sys

def found(name):
    print(*(f"{{name}} imports {{each}}" for each in {heavy} if each in sys.modules), sep="\\n")

def shown(verb):
    try:
        main([verb, "--help"])
    except SystemExit as end:
        assert end.code == 0

"""


def test_nothing_heavy_is_imported():
    checks = [f"{program}; found({name!r})" for name, program in PROGRAMS.items()]
    command = [sys.executable, "-c", HELPERS.format(heavy=HEAVY) + "\n".join(checks)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not [line for line in ran.stdout.splitlines() if line.partition(" imports ")[2] in HEAVY]
    assert "channel_flow" in ran.stdout and "usage: simkit VERB" in ran.stdout


def test_every_public_name_exists():
    import simkit

    assert all(getattr(simkit, name) is not None for name in simkit.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = simkit.nothing
