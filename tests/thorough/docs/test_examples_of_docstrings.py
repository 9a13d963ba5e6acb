"""Examples in the docstrings of public names and their methods: each prints what it shows."""

import doctest
import inspect

import pytest

from simkit.errors import UserError
from simkit.export.page.runtime import runtime_files
from tests.docs.generated import program
from tests.docs.pages import TOLERANCE, assert_shown

MAKE_API = program("make_api")


class Checker(doctest.OutputChecker):
    """Comparison of outputs as on documentation pages: equal words, close numbers."""

    def check_output(self, want, got, optionflags):
        if not want.strip() or super().check_output(want, got, optionflags):
            return want == got
        try:
            assert_shown(want, got, TOLERANCE, "")
        except AssertionError:
            return False
        return True


def documented(path, value):
    """Yield path and docstring of a public name and, of a class, those of its public methods."""
    yield path, inspect.getdoc(value) or ""
    if inspect.isclass(value):
        for name, member in vars(value).items():
            if not name.startswith("_") and (inspect.isroutine(member) or isinstance(member, property)):
                yield f"{path}.{name}", inspect.getdoc(member) or ""


def needs_what_is_missing(path):
    """Return whether an example writes a page and there is no onnxruntime-web to put into it."""
    if path == "simkit.export.web_page":
        try:
            runtime_files()
        except UserError:
            return True
    return False


@pytest.mark.parametrize("package", MAKE_API.PACKAGES)
def test_every_example_prints_what_it_shows(package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parser, runner, failures = doctest.DocTestParser(), doctest.DocTestRunner(Checker(), verbose=False), []
    for public, value in MAKE_API.public():
        if public.rpartition(".")[0] != package:
            continue
        for path, text in documented(public, value):
            if needs_what_is_missing(path):
                continue
            names = {"__name__": "__main__"}
            exec(MAKE_API.IMPORTS, names)
            runner.run(parser.get_doctest(text, names, path, None, 0), out=failures.append)
    assert not failures, "".join(failures)
