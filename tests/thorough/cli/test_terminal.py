"""Examples of the help, run one after another; results against their schemas; quiet commands; pages after the work."""

import json
import re
import shlex
import subprocess
import sys

from simkit.cli.main import FINE, VERBS, main, verb_of
from tests.cli.test_schemas import WITHOUT, valid
from tests.toys import PENDULUMS, toys  # noqa: F401


def test_every_example_of_the_help_runs_and_prints_what_its_schema_says(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    kinds = set()
    for name in VERBS:
        for line in verb_of(name).EXAMPLES:
            words = shlex.split(line.partition(">")[0])[1:]
            if name == "mcp":  # ends with its input
                command = [sys.executable, "-m", "simkit.cli.main", *words]
                told = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
                assert (told.returncode, told.stdout, told.stderr) == (FINE, "", "")
                continue
            capfd.readouterr()
            words = [*words, *(["--json"] if name not in WITHOUT and "--json" not in words else [])]
            code = main(words)
            out, err = capfd.readouterr()
            assert code == FINE, f"{line}: {err}"
            if name in WITHOUT:
                json.loads(out)
            else:
                kinds.add(valid(name, out))
    assert kinds >= {"run", "sweep", "derivative", "second_derivative", "optimization", "starts", "status", "picture"}
    assert kinds >= {"page_of_report", "validation", "program", "data", "gallery", "installation", "citation"}


def test_a_quiet_run_tells_its_result_alone_and_a_page_follows_where_wanted(simkit, tmp_path):
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    ran = simkit("run", "toy.toml", "--quiet", "--no-render", "--report")
    assert ran.code == 0 and ran.err == ""
    page = re.search(r"\nreport: +(.+)\n", ran.out)[1]
    assert (tmp_path / page).read_text().startswith("<!doctype html>")
    ran = simkit("sweep", "toy.toml", "--seeds", "2", "--no-render", "--report", "--json")
    report = json.loads(ran.out)
    text = (tmp_path / report["report"]).read_text()
    assert "<strong>2 members: 2 ok</strong>" in text
    assert re.search(r'<td class="number">[-\d.e]+</td>', text)
    assert simkit("grad", "toy.toml", "--wrt", "frequency", "--report").line.startswith(
        "simkit: --report needs --output"
    )
