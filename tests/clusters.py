"""Real clusters for tests: what is missing is one clear line and a skip, and in CI a failure."""

import os
from typing import NoReturn

import pytest


def leave_out(missing: str) -> NoReturn:
    """Skip the test that needs what is missing; where $CI is set nothing may be left out."""
    line = f"needs a real Kubernetes; missing: {missing}"
    if os.environ.get("CI"):
        pytest.fail(line, pytrace=False)
    pytest.skip(line)
