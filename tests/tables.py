"""Tables of cases: one loop that collects every miss, in place of a test for each case."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest


def misses(cases: Mapping[str, Any] | Iterable[Any], check: Callable[..., object]) -> list[str]:
    """Return one text for each case that `check` does not pass, which begins with the name of the case.

    A case passes if `check` returns None or True. It misses if `check` raises, returns False, or returns a text that
    says what was wrong. A tuple is passed as arguments, any other case as the single argument. In a mapping the keys
    name the cases; otherwise position and value do. A table without cases is an error.

    Notes:
        assert not misses(MISTAKES, check)              # pytest prints the list
    """
    named = cases.items() if isinstance(cases, Mapping) else [(f"{i}: {case!r}", case) for i, case in enumerate(cases)]
    if not named:
        raise ValueError("the table has no cases")
    lines = []
    for name, case in named:
        try:
            outcome = check(*case) if isinstance(case, tuple) else check(case)
        # pytest.fail and a failed pytest.raises derive from BaseException.
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            outcome = f"{type(error).__name__}: {error}"
        if outcome is not None and outcome is not True:
            lines.append(f"{name}: {outcome or 'misses'}")
    return lines


def refusal(error: type[Exception], call: Callable[..., object], *args: Any, **options: Any) -> str:
    """Return the message with which `call` refuses its arguments; raise AssertionError if it accepts them."""
    try:
        result = call(*args, **options)
    except error as refused:
        return str(refused)
    raise AssertionError(f"no {error.__name__}; the result is {result!r}")


def lacking(message: str, *parts: str) -> str | None:
    """Return what `message` lacks of the texts that it must contain, for the outcome of a check of `misses`."""
    absent = [part for part in parts if part not in message]
    return f"lacks {absent} in {message!r}" if absent else None


def every(names: str | tuple[str, ...], cases: Iterable, ids: Callable | Iterable[str] | None = None) -> Callable:
    """Run a test with every case of a table and list all that fail.

    It takes the arguments of `pytest.mark.parametrize`, but makes one test: to collect, set up and distribute a test
    costs more than most cases do, and what is compiled for one case serves the others. Fixtures are shared.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [case if len(keys) > 1 else (case,) for case in cases]
    if not table:
        raise ValueError("the table has no cases")
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
