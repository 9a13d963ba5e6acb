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
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_nothing_heavy_is_imported(program):
    check = f"{program}\nimport sys\nprint([name for name in {HEAVY} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_every_public_name_exists():
    import simkit

    assert all(getattr(simkit, name) is not None for name in simkit.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = simkit.nothing
