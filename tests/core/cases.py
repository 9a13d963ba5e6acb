"""Tables of cases as one test: every case runs, and those that fail are named together."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def cases(names: str | tuple[str, ...], values: Iterable[Any]) -> Callable[[Callable], Callable]:
    """Return a decorator that runs a test for every case; arguments as for `pytest.mark.parametrize`.

    Decorators may be stacked. All cases share the fixtures of the test.

    Args:
        names: arguments of the test that vary, ``"text, value"`` or a tuple of them.
        values: their values, one tuple for each case, or one value where there is one name.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [dict(zip(arguments, value if len(arguments) > 1 else (value,), strict=True)) for value in values]

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failed = []
            for case in table:
                try:
                    test(**case, **fixtures)
                except (Exception, pytest.fail.Exception) as error:
                    shown = ", ".join(f"{name} = {str(value)[:80]}" for name, value in case.items())
                    failed.append(f"{shown}: {type(error).__name__}: {error}")
            assert not failed, f"{len(failed)} of {len(table)} cases fail:\n" + "\n".join(failed)

        signature = inspect.signature(test)
        rest = [each for name, each in signature.parameters.items() if name not in arguments]
        run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return run

    return decorate
