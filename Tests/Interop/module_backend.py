"""The fixture `backend` for the tests of one module, which share it. Import it in place of conftest.py's, of one test."""

import pytest

from backend import Backend


@pytest.fixture(scope="module")
def backend():
    with Backend() as running:
        yield running
