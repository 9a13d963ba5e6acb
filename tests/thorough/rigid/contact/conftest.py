"""Fixtures of the quick tests of contact."""

from tests.rigid.contact.test_impulses import precision  # noqa: F401
