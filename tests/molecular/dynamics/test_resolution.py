"""Detection of time steps that do not resolve the forces."""

import pytest

pytestmark = pytest.mark.usefixtures("x64")
