"""Interactions as calculators of ASE, so that its optimizers, filters and other tools act on them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.buffers import enlarged, overflow_of
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.spaces import Cell

if TYPE_CHECKING:
    from ase import Atoms
    from ase.calculators.calculator import Calculator

# Rows and columns of the entries of a stress in ASE's order.
_VOIGT = (0, 1, 2, 1, 0, 0), (0, 1, 2, 2, 2, 1)


def ase_calculator(interaction: Interaction, params: Params) -> "Calculator":
    """Return a calculator of ASE for an interaction: energy, forces and, in a cell, stress.

    It computes in the present precision of JAX; tools that differentiate forces, such as phonopy, need
    ``jax.config.update("jax_enable_x64", True)``. Neighbor lists are kept between calls and enlarged where needed.

    Args:
        interaction: of as many particles as the atoms, in three dimensions and in the units of the atoms, which are eV
            and Angstrom in ASE.
        params: of the interaction, numbers or arrays.

    Raises:
        UserError: when it is used, if the atoms are periodic along some axes only and their cell is not orthorhombic.

    Example:
        >>> import ase.build, ase.optimize
        >>> pairs = molecular.interactions.pair_interaction(molecular.potentials.lennard_jones(), cutoff=None)
        >>> dimer = ase.Atoms("Ar2", positions=[[0.0, 0.0, 0.0], [4.0, 0.0, 0.0]])
        >>> dimer.calc = molecular.interactions.ase_calculator(pairs, {"epsilon": 0.0104, "sigma": 3.4})
        >>> bool(ase.optimize.BFGS(dimer, logfile=None).run(fmax=1e-4))
        True
        >>> print(f"{dimer.get_distance(0, 1):.2f} A, {dimer.get_potential_energy():.4f} eV")
        3.82 A, -0.0104 eV

    Reference: Larsen et al., J. Phys. Condens. Matter 29, 273002 (2017), doi:10.1088/1361-648X/aa680e.
    """
    from ase.calculators.calculator import Calculator, all_changes

    class InteractionCalculator(Calculator):
        """Calculator of one interaction."""

        implemented_properties = ["energy", "free_energy", "forces", "stress"]  # noqa: RUF012 (ASE reads it so)

        def __init__(self) -> None:
            super().__init__()
            self._evaluation = _Evaluation(interaction)

        def calculate(
            self,
            atoms: "Atoms | None" = None,
            properties: Sequence[str] = ("energy",),
            system_changes: Sequence[str] = all_changes,
        ) -> None:
            """Compute all that the atoms admit."""
            super().calculate(atoms, list(properties), list(system_changes))
            assert self.atoms is not None  # set by the call before
            position = jnp.asarray(self.atoms.positions, float)
            energy, forces, *stress = self._evaluation(position, *_cell_of(self.atoms), params)
            self.results = {"energy": float(energy), "free_energy": float(energy), "forces": np.asarray(forces, float)}
            if stress:
                self.results["stress"] = np.asarray(stress[0], float)[_VOIGT]

    return InteractionCalculator()


class _Evaluation:
    """Energy, forces and stress at arrangements that follow each other, with neighbors that are kept and enlarged."""

    def __init__(self, interaction: Interaction) -> None:
        self._neighbors: Any = None
        self._kind: Any = None
        self._set(interaction)

    def _set(self, interaction: Interaction) -> None:
        self._interaction = interaction
        self._prepare, self._refresh = jax.jit(interaction.prepare), jax.jit(interaction.refresh)
        self._several = jax.jit(interaction.several, static_argnums=0)

    def __call__(self, position: jax.Array, cell: Cell, has_volume: bool, params: Params) -> tuple[jax.Array, ...]:
        kind = position.shape, position.dtype, None if cell is None else cell.shape
        if self._kind != kind:
            self._kind, self._neighbors = kind, self._prepare(position, cell, params)
        else:
            self._neighbors = self._refresh(self._neighbors, position, cell, params)
        while (resize := self._interaction.sized_like) is not None and _overflows(self._neighbors):
            self._set(resize(enlarged(self._neighbors)))
            self._neighbors = self._prepare(position, cell, params)
        names = ("energy", "force", "stress") if has_volume else ("energy", "force")
        return self._several(names, position, cell, params, self._neighbors)


def _overflows(neighbors: Any) -> bool:
    overflow = overflow_of(neighbors)
    return overflow is not None and bool(np.any(np.asarray(overflow)))


def _cell_of(atoms: Any) -> tuple[Cell, bool]:
    """Return the cell of atoms, and whether it has a volume."""
    if not atoms.pbc.any():
        return None, False
    if atoms.pbc.all():
        return jnp.asarray(np.array(atoms.cell), float), True
    sides = atoms.cell.lengths()
    if not np.allclose(np.array(atoms.cell), np.diag(np.diagonal(atoms.cell)), atol=1e-12 * sides.max()):
        raise UserError(
            f"atoms with pbc = {atoms.pbc.tolist()} have a cell that is not orthorhombic; give lattice vectors along "
            "the axes, or make all of them periodic"
        )
    return jnp.asarray(np.where(atoms.pbc, sides, np.inf), float), False
