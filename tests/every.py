"""Tables of cases in one test."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def every(names: str | tuple[str, ...], cases: Iterable, ids: Callable | Iterable[str] | None = None) -> Callable:
    """Run a test with every case of a table and list all that fail.

    It takes the arguments of `pytest.mark.parametrize`, but makes one test: to collect, set up and distribute a test
    costs more than most cases do, and what is compiled for one case serves the others. Fixtures are shared.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [case if len(keys) > 1 else (case,) for case in cases]
    labels = ["-".join(map(str, map(ids, case))) for case in table] if callable(ids) else list(ids or [])

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures = []
            for index, case in enumerate(table):
                values = dict(zip(keys, case, strict=True))
                label = labels[index] if labels else ", ".join(f"{key}={value!r}" for key, value in values.items())
                try:
                    test(**fixtures, **values)
                except (Exception, pytest.fail.Exception) as error:
                    failures.append(f"{label}: {type(error).__name__}: {error}")
            assert not failures, f"{len(failures)} of {len(table)} cases failed:\n" + "\n".join(failures)

        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        run.__signature__ = signature.replace(parameters=kept)  # pyright: ignore[reportAttributeAccessIssue]
        return run

    return decorate
