"""Options of `simkit launch` that do not fit are refused."""

from simkit.cli.main import main
from tests.tables import every


@every(
    "words, message",
    [
        (["launch", "-n", "1", "run", "channel_flow"], "-n = 1 is not an integer of 2 to 256; write one"),
        (["launch", "-n", "2", "sweep", "channel_flow"], "argument VERB: invalid choice: 'sweep'"),
        (["run", "channel_flow", "--processes", "2"], "--process-id is missing; several processes need all of"),
        (
            ["run", "channel_flow", "--processes", "2", "--process-id", "0", "--coordinator", "x"],
            "coordinator = 'x' is not an address; write host:port",
        ),
        (
            ["run", "channel_flow", "--processes", "2", "--process-id", "2", "--coordinator", "127.0.0.1:1"],
            "process_id = 2 is not an integer of 0 to 1; write one",
        ),
    ],
    ids=["one", "sweep", "missing", "address", "index"],
)
def test_options_that_do_not_fit_are_refused(words, message, capsys):
    assert main(words) == 2
    assert message in capsys.readouterr().err
