"""Report of a sweep's totals."""

from collections.abc import Mapping
from typing import Any

from simkit.cli.output import print_table


def print_totals(totals: Mapping[str, Any]) -> None:
    """Print the number of members by status, and quantiles of their final diagnostics.

    Args:
        totals: see `simkit.jobs.totals.Totals.plain`; empty if no member is stored.
    """
    if not totals:
        return
    ended = ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in totals["statuses"].items())
    print(f"ended:      {ended}")
    if quantiles := totals["quantiles"]:
        header = ("at the end", *next(iter(quantiles.values())))
        print()
        print_table(header, [(name, *found.values()) for name, found in quantiles.items()])
        print()
