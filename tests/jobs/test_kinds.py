"""Kinds of jobs: one class each, found by the name in a manifest and imported on demand."""

import dataclasses

from simkit.jobs.job import Job
from simkit.storage.kinds import KINDS, kind_of
from tests.tables import every


@every("name", KINDS)
def test_every_kind_is_declared_under_its_name(name):
    kind = kind_of(name)
    assert issubclass(kind, Job) and kind.kind == name
    fields = {field.name for field in dataclasses.fields(kind)}
    assert set(kind.request_checks) <= fields
