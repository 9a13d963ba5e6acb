"""Messages of the command line: one line each, with options in place of Python arguments."""

from simkit.errors import LONGEST_ERROR, one_line

# Options that are not spelled like the argument.
_OPTIONS = {("final_frames", "False"): "--no-frames", ("KEY", 'Path("...")'): "--set KEY=@path"}


def option(name: str, value: str) -> str:
    """Return the option of the command line for a Python argument, for `simkit.errors.spelled`.

    Args:
        name: such as ``"overwrite"``.
        value: such as ``"True"``; empty if the user chooses it.
    """
    flag = f"--{name.replace('_', '-')}"
    told = "" if value in ("", "True") else " " + value.strip('"')
    return _OPTIONS.get((name, value), flag + told)


def as_line(message: str) -> str:
    """Return a message on one line of bounded length, with control characters escaped.

    Args:
        message: of an error or a warning.
    """
    line = " ".join(message.split())
    return one_line("".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line), LONGEST_ERROR)
