"""Settings of a system as data: tables whose keys are declared once, read and checked all together."""

from simkit.core.settings.kinds import (
    condition,
    either,
    flag,
    formula,
    named,
    number,
    said,
    several,
    table,
    text,
    whole,
    word,
)
from simkit.core.settings.setting import Said, Setting, Settings, declares, listing, read, schema_of

__all__ = [
    "Said",
    "Setting",
    "Settings",
    "condition",
    "declares",
    "either",
    "flag",
    "formula",
    "listing",
    "named",
    "number",
    "read",
    "said",
    "schema_of",
    "several",
    "table",
    "text",
    "whole",
    "word",
]
