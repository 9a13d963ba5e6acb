"""Write the table of docs/export.md from the lines that tests/thorough/export/test_every_scenario.py writes.

``python docs/make_runtimes.py rows.jsonl``; lines of scenarios that the file does not name stay as they are.
"""

import json
import sys
from pathlib import Path

PAGE = Path(__file__).with_name("export.md")
BEGIN, END = "<!-- the table begins -->\n", "<!-- the table ends -->\n"
FORMS = ("step", "trajectory", "gradient")
HEAD = "| scenario | form | onnxruntime | nodes | jax.export |\n|---|---|---:|---:|---:|\n"


def lines_of(text: str) -> dict[tuple[str, str], str]:
    """Return the lines of the table by scenario and form."""
    table = text.partition(BEGIN)[2].partition(END)[0].splitlines()[2:]
    return {(cells[1].strip(" `"), cells[2].strip()): line for line in table for cells in [line.split("|")]}


def line(row: dict) -> str:
    """Return one line of the table."""
    onnx, jax = (row["runtimes"][name] for name in ("onnxruntime", "jax.export"))
    return f"| `{row['scenario']}` | {row['form']} | {_error(onnx)} | {onnx['nodes']:,} | {_error(jax)} |"


def _error(told: dict) -> str:
    if told.get("refused"):
        return "refused"
    if not told["passed"]:
        return "differs"
    return "0" if told["error"] == 0 else f"{told['error']:.0e}"


def main(rows: Path) -> None:
    """Rewrite the page."""
    text = PAGE.read_text()
    lines = lines_of(text)
    for told in map(json.loads, rows.read_text().splitlines()):
        lines[told["scenario"], told["form"]] = line(told)
    order = sorted(lines, key=lambda place: (place[0], FORMS.index(place[1])))
    before, _, rest = text.partition(BEGIN)
    table = HEAD + "".join(f"{lines[place]}\n" for place in order)
    PAGE.write_text(before + BEGIN + table + END + rest.partition(END)[2])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
