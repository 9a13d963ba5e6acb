"""Settings of a system as data: declarations of the keys of tables, and the check of tables against them."""

from simkit.core.settings.kinds import (
    condition,
    either,
    flag,
    formula,
    formula_text,
    named,
    number,
    row,
    several,
    table,
    text,
    whole,
    word,
)
from simkit.core.settings.setting import FormulaText, Setting, Settings, arguments, declares, listing, read, schema_of

__all__ = [
    "FormulaText",
    "Setting",
    "Settings",
    "arguments",
    "condition",
    "declares",
    "either",
    "flag",
    "formula",
    "formula_text",
    "listing",
    "named",
    "number",
    "read",
    "row",
    "schema_of",
    "several",
    "table",
    "text",
    "whole",
    "word",
]
