# SPDX-License-Identifier: BSD-3-Clause
"""Tests keep compiled kernels in a folder of their own, which new processes that they start use too."""

import atexit
import os
import shutil
import tempfile

_folder = tempfile.mkdtemp(prefix="tracejit-tests-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
os.environ["TRACEJIT_CACHE_DIR"] = os.path.join(_folder, "cache")  # read when tracejit is imported
