"""How results, derivatives, scenarios and simulations show themselves in a notebook."""

import html
import time

import simkit
from tests.export.test_notebook import (
    HOSTILE,
    LARGEST,
    shown,  # noqa: F401
)


def test_everything_shows_itself_with_texts_as_they_are(shown):
    for name, value in shown.items():
        began = time.monotonic()
        page = value._repr_html_()
        assert time.monotonic() - began < 10, name  # a second or two on a machine of its own
        assert page.startswith("<style>") and len(page) < LARGEST, name
        assert "<script" not in page, name
        if name != "simulation":
            assert html.escape(HOSTILE)[:60] in page, name
        # The text is still there: one of a console, and of a notebook that shows no HTML.
        assert 0 < len(repr(value)) < 20_000 and "<div" not in repr(value), name


def test_texts_and_tables_are_bounded():
    long = "x" * 1000
    record = simkit.Simulation(
        init=lambda params, key: params["layers"],
        step=lambda state, params: state,
        observe=lambda state, params: {},
        diagnose=lambda state, params: {"first": state[0]},
        params={"layers": [simkit.Parameter(float(index), doc=long) for index in range(200)]},
    )
    page = record._repr_html_()
    assert "and 160 more" in page and long not in page and len(page) < 50_000
    result = simkit.value_and_grad(record, "layers", objective="first", steps=1)
    assert "and 160 more" in result._repr_html_() and len(result._repr_html_()) < 100_000
    assert len(simkit.run(record, steps=1)._repr_html_()) < LARGEST
