# SPDX-License-Identifier: BSD-3-Clause
"""Tests keep compiled kernels in a folder of their own, which new processes that they start use too."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest

_folder = tempfile.mkdtemp(prefix="tracejit-tests-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
os.environ["TRACEJIT_CACHE_DIR"] = os.path.join(_folder, "cache")  # read when tracejit is imported


@pytest.fixture(autouse=True, scope="session")
def _messages_without_addresses() -> Iterator[None]:
    """Leave out the address below the message of an error: tests, pages and docstrings compare the message alone.

    The ``match`` of pytest reads it too, and so does doctest, in Python 3.11 instead of the message. Its own
    tests are in tests/process/test_error_pages.py.
    """
    from tracejit import errors

    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(errors.TraceJitError, "__notes__")
        patch.delattr(errors.TraceJitWarning, "__notes__")
        yield
