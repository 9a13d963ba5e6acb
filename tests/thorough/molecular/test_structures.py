"""Structures to text and to ASE and back, and refusal of invalid texts in one line."""

import subprocess
import sys


def test_ase_is_imported_only_where_a_structure_is():
    program = (
        "import sys, simkit.molecular, simkit.molecular.structures.structures, simkit.export.data_files\n"
        "from simkit.cli.main import main\n"
        "main(['show', 'soft_sphere_packing', '--json'])\n"
        "assert not [name for name in sys.modules if name.split('.')[0] == 'ase']"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
