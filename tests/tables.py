"""Tables of cases: one loop that collects every miss, in place of a test for each case."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any


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


def every(*table: Any, ids: Callable | Iterable[str] | None = None) -> Callable:
    """Run a test with every case of a table and list all that miss, as `misses` does.

    ``every(names, cases)`` takes the arguments of `pytest.mark.parametrize`, but makes one test: to collect, set up and
    distribute a test costs more than most cases do, and what is compiled for one case serves the others. Without names,
    ``every(cases)``, the cases fill the last parameters of the test. Other parameters are fixtures, which are shared.
    The keys of a mapping without names name its cases. The function itself is the attribute ``check`` of the test.
    """
    *names, cases = table
    keys = [key.strip() for each in names for key in (each.split(",") if isinstance(each, str) else each)]
    is_named = isinstance(cases, Mapping) and not keys
    rows = dict(cases) if is_named else dict(enumerate(cases))
    if not rows:
        raise ValueError("the table has no cases")

    def decorate(test: Callable) -> Callable:
        def values_of(case: Any) -> tuple:
            return tuple(case) if len(keys) > 1 or (not keys and isinstance(case, tuple)) else (case,)

        def label(name: Any, values: tuple) -> str:
            if is_named:
                return str(name)
            return "-".join(map(str, map(ids, values))) if callable(ids) else f"{name}: {', '.join(map(repr, values))}"

        tuples = {name: values_of(case) for name, case in rows.items()}
        signature = inspect.signature(test)
        filled = keys or list(signature.parameters)[-len(next(iter(tuples.values()))) :]

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            def check(*values: Any) -> object:
                return test(**fixtures, **dict(zip(filled, values, strict=True)))

            labels = [label(*item) for item in tuples.items()] if ids is None or callable(ids) else list(ids)
            found = misses(dict(zip(labels, tuples.values(), strict=True)), check)
            assert not found, f"{len(found)} of {len(tuples)} cases miss:\n" + "\n".join(found)

        others = [parameter for name, parameter in signature.parameters.items() if name not in filled]
        run.__signature__ = signature.replace(parameters=others)  # pyright: ignore[reportAttributeAccessIssue]
        run.check = test  # pyright: ignore[reportFunctionMemberAccess]
        return run

    return decorate
