"""Operators of a target, read from a TOML file."""

import dataclasses
from pathlib import Path

from simkit.errors import UserError, nearest
from simkit.scenario.toml import parse_toml
from simkit.storage.files import DamagedFileError, read_bytes

OLDEST_OPSET = 13
_KEYS = ("opset", "operators")


@dataclasses.dataclass(frozen=True)
class Operators:
    """Operators of a target.

    Attributes:
        names: of the ONNX operators.
        opset: version of ONNX's operator set, which defines their meanings and arguments.
    """

    names: frozenset[str]
    opset: int


def read_operators(path: Path) -> Operators:
    """Read a list of operators: a TOML file with ``opset = 17`` and ``operators = ["Add", "MatMul"]``.

    Args:
        path: of the file.

    Raises:
        UserError: if it cannot be read, has unknown keys, or names an operator that this version of ONNX lacks.
    """
    from simkit.export.onnx.model import OPSET, onnx_package

    try:
        text = read_bytes(path).decode()
    except (DamagedFileError, UnicodeDecodeError) as error:
        raise UserError(f"the list of operators cannot be read: {error}; give the path of a TOML file") from None
    tables = parse_toml(text, path.name)
    if odd := next((key for key in tables if key not in _KEYS), None):
        raise UserError(f"{path.name}: unknown key '{odd}'{nearest(odd, _KEYS)}")
    opset, names = tables.get("opset", OPSET), tables.get("operators")
    if not isinstance(opset, int) or isinstance(opset, bool) or not OLDEST_OPSET <= opset <= OPSET:
        raise UserError(f"{path.name}: opset = {opset!r:.60} is not in [{OLDEST_OPSET}, {OPSET}]")
    if names == []:
        raise UserError(f"{path.name}: operators is empty; write those of the target, such as ['Add', 'MatMul']")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UserError(f"{path.name}: operators is not a list of names; write operators = ['Add', 'MatMul']")
    onnx = onnx_package()
    known = [one.name for one in onnx.defs.get_all_schemas() if one.domain == ""]
    for name in names:
        if name not in known:
            near = nearest(name, known)
            hint = near if "did you mean" in near else ""
            raise UserError(f"{path.name}: '{name:.60}' is no operator of ONNX{hint}")
        if not onnx.defs.has(name, opset):
            raise UserError(f"{path.name}: ONNX {opset} has no {name}; raise opset, or leave it out")
    return Operators(frozenset(names), opset)
