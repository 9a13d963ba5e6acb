"""Fixtures of the quick tests of contact."""

from tests.rigid.contact.test_steps import precision  # noqa: F401
