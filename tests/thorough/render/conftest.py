"""Fixtures of the quick tests of pictures."""

from tests.render.conftest import body_run, drawn, field_run, figures, particle_run, rgb, settings, window_of  # noqa: F401
