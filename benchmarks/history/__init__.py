# SPDX-License-Identifier: BSD-3-Clause
"""tracejit over its commits, in asv's format: ``asv run --config benchmarks/asv.conf.json COMMITS``.

asv installs tracejit as it was at each commit. What is measured stands in the checkout, beside this folder. It is found
by its own path, so that `import tracejit` finds what asv installed, and not the checkout.
"""

import importlib.util
import os
import sys
from pathlib import Path

os.environ["TRACEJIT_CACHE"] = "off"  # each process compiles

if "benchmarks" not in sys.modules:
    folder = Path(__file__).parents[1]
    spec = importlib.util.spec_from_file_location(
        "benchmarks", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    package = sys.modules["benchmarks"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
