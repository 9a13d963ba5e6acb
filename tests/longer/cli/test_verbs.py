"""Verbs: printed output, written files and exit codes, on toys that compile in a second."""

from tests.cli.test_verbs import files  # noqa: F401
from tests.tables import every
from tests.toys import toys  # noqa: F401


@every(
    ("words", "begun", "options", "drawn"),
    [
        (("run",), ("--no-render",), (), []),
        (("run",), ("--no-render",), ("--size", "90x90"), ["toy_pendulums.gif"]),
        (("run",), ("--format", "png"), (), ["toy_pendulums.png"]),
        (("run",), ("--format", "png"), ("--no-render",), []),
        (("sweep", "--over", "frequency=1,2"), ("--no-render",), (), []),
        (("sweep", "--over", "config.size=2,3"), ("--no-render",), (), []),
        (("optimize", "--wrt", "frequency", "--iterations", "1"), ("--no-render",), (), []),
    ],
)
def test_a_resumed_job_is_drawn_as_the_command_that_began_it_said(files, tmp_path, words, begun, options, drawn):
    verb, *rest = words
    assert files(verb, "toy.toml", *rest, "-o", "folder", "--overwrite", *begun).code == 0
    for picture in tmp_path.glob("folder/toy_pendulums.*"):
        picture.unlink()
    assert files("resume", "folder", *options).code == 0
    pictures = {".png", ".gif", ".mp4"}
    assert [path.name for path in (tmp_path / "folder").iterdir() if path.suffix in pictures] == drawn
