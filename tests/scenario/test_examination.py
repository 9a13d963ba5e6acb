"""Repair of a configuration by the remedies of its mistakes, in order to look for further ones."""

from simkit.errors import Remedy, UserError
from simkit.scenario.examination import repaired

CONFIG = {"task": "relax", "cell": {"lengths": (6.0, "breadth")}, "parts": ({"metod": "fire"}, {"energy": "1/rr"})}


def test_a_remedy_removes_its_mistake_and_keeps_the_rest():
    cell, parts = CONFIG["cell"], CONFIG["parts"]
    changes = {
        ("config.task", Remedy("replace", "dynamics")): {**CONFIG, "task": "dynamics"},
        ("config.task", Remedy("rename", "tasks")): {"tasks": "relax", "cell": cell, "parts": parts},
        ("config.cell", Remedy("remove")): {"task": "relax", "parts": parts},
        ("config.cell.lengths[1]", Remedy("replace", "1")): {**CONFIG, "cell": {"lengths": (6.0, "1")}},
        ("config.parts[0].metod", Remedy("rename", "method")): {**CONFIG, "parts": ({"method": "fire"}, parts[1])},
        ("config.parts[1]", Remedy("remove")): {**CONFIG, "parts": parts[:1]},
        # Without a single remedy, for another part of the file, or of a key that does not exist.
        ("config.task", None): None,
        ("config", Remedy("remove")): None,
        ("run.steps", Remedy("remove")): None,
        ("config.cell.width[0]", Remedy("remove")): None,
        ("config.parts[2].energy", Remedy("remove")): None,
    }
    found = {(key, remedy): repaired(CONFIG, UserError("", key=key, remedy=remedy)) for key, remedy in changes}
    assert found == changes
