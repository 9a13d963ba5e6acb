"""Data files of LAMMPS written by hand: two molecules in a tilted box, across its faces, with atoms in no order."""

from simkit import molecular
from tests.molecular.test_tersoff import MIXTURE

ATOMS = """\
7 1 A -0.4 8.261184 1.497251 12.439373 0 0 0
3 1 2 0.3 7.305909 1.028773 11.668405 0 0 0 # a type by label or number
1 1 2 0.1 9.261638 12.811642 11.22066 0 -1 0
10 1 3 -0.2 7.895194 12.103712 10.862003 0 -1 0
5 1 1 0.2 5.922967 1.51644 12.360786 0 0 0
2 2 1 -0.39 0.961935 8.037566 6.92407 0 0 0
9 2 2 +3.1e-1 0.595033 8.833424 8.066538 0 0 0
4 2 2 0.11 1.014754 8.178733 9.524196 0 0 0
8 2 3 -0.19 1.192316 8.982338 10.599777 0 0 0
6 2 1 0.21 1.147916 10.084676 7.970244 0 0 0
"""
# Of both molecules, 7-3-1-10 with 5 at 3, and 2-9-4-8 with 6 at 9.
DATA = f"""\
50 atoms, says the title, which nobody reads
  10 atoms
# a comment of its own
  8 bonds  # and one that follows
  8 angles
  4 dihedrals
  2 impropers
  3 atom types
  2 bond types
  2 angle types
  1 dihedral types
  1 improper types
  2 extra bond per atom

  -3.0 11.0 xlo xhi
  1.0e0 14 ylo yhi
  2 14.0 zlo zhi
  2.0 1.0 -1.5 xy xz yz

Atom Type Labels

1 A
2 B
3 c+

Masses

1 12.0
2 14.0 # N
3 1.0

Atoms # full

{ATOMS}
Velocities

1 0 0 1
2 0 0 2
3 0 0 3
4 0 0 4
5 0 0 5
6 0 0 6
7 0 0 7
8 0 0 8
9 0 0 9
10 0.5 0 10

Bonds

1 1 7 3
2 2 3 1
3 1 1 10
4 2 3 5
5 1 2 9
6 2 9 4
7 1 4 8
8 2 9 6

Angles

1 1 7 3 1
2 2 3 1 10
3 1 7 3 5
4 2 1 3 5
5 1 2 9 4
6 2 9 4 8
7 1 2 9 6
8 2 4 9 6

Dihedrals

1 1 7 3 1 10
2 1 5 3 1 10
3 1 2 9 4 8
4 1 6 9 4 8

Impropers

1 1 3 7 1 5
2 1 9 2 4 6
"""
STYLES = """\
units real
atom_style full
bond_style harmonic
angle_style harmonic
dihedral_style charmm
improper_style cvff
pair_style lj/cut/coul/cut 4.5 5.0
pair_modify mix arithmetic shift yes
special_bonds lj/coul 0 0 0.5
bond_coeff 1 100 1.4
bond_coeff 2 120 1.6
angle_coeff 1 30 110
angle_coeff 2 25.5 120.5
dihedral_coeff 1 1.3 3 30 0.0
improper_coeff 1 2.5 -1 2
pair_coeff 1 1 0.1 3.0
pair_coeff 2* 2* 0.2 2.6
pair_coeff 2 3 0.15 2.8 4.2 4.8
"""


def silicon_carbide(style="pair_style tersoff", coefficients="pair_coeff * * SiC.tersoff C Si"):
    """Return the atoms of `tests.molecular.test_tersoff` by a data file and commands of LAMMPS."""
    kinds = (2, 2, 2, 1, 1, 1, 1, 2)
    """Return the atoms of `tests.molecular.test_tersoff` by a data file and commands of LAMMPS."""
    rows = [f"{at + 1} {kind} {' '.join(map(repr, MIXTURE[at].tolist()))}" for at, kind in enumerate(kinds)]
    data = f"t\n{len(rows)} atoms\n2 atom types\n0 4.4 xlo xhi\n0 4.4 ylo yhi\n0 4.4 zlo zhi\nAtoms # atomic\n\n"
    commands = f"units metal\n{style}\n{coefficients}\nmass 1 12.011\nmass 2 28.0855\n"
    return molecular.from_lammps(data + "\n".join(rows) + "\n", commands)
