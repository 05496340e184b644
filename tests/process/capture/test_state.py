# SPDX-License-Identifier: BSD-3-Clause
"""Modules that an accelerated function imports, in a process of their own."""

import subprocess
import sys

IMPORTING = """
import builtins, sys
import numpy as np
import tracejit as tj

class Finder:
    def __init__(self, many): self.many = many
    def find_spec(self, name, path=None, target=None):
        sum(one[0] for one in self.many)
        return None

sys.meta_path.insert(0, Finder([[i] for i in range(30_000)]))
sys.path.insert(0, FOLDER)

@tj.dlaccelerate(audit=False)
def scaled(x):
    import settings_of_a_test
    from package_of_a_test.inner import shifted
    return shifted(x * settings_of_a_test.rate)

def values(n=4):
    return [scaled(np.ones(1)).item() for _ in range(n)]

assert values() == [5.0] * 4, values()
assert scaled.stats.hits > 0 and scaled.stats.uncompiled == 0, scaled.explain()
sys.modules["settings_of_a_test"].rate = 7.0
assert values() == [10.0] * 4, values()
sys.modules["package_of_a_test.inner"].shift = 1.0
assert values() == [8.0] * 4, values()
assert (scaled.stats.uncompiled, scaled.stats.hits) == (0, 5), scaled.explain()  # the first call imports
assert "many" not in scaled.explain() and len(scaled._cache.last_trace.state.guards()) == 2, scaled.explain()
"""


class TestImports:
    """What an import runs is not what the function reads; what it reads of the module afterwards is."""

    def test_of_modules_that_read_much(self, tmp_path):
        (tmp_path / "settings_of_a_test.py").write_text(
            "class Entry:\n"
            "    def __init__(self, n): self.n = n\n"
            "entries = [Entry(n) for n in range(30_000)]\n"
            "def total(): return sum(entry.n for entry in entries)\n"
            "size = total()\n"
            "rate = 2.0\n"
        )
        (tmp_path / "package_of_a_test").mkdir()
        (tmp_path / "package_of_a_test" / "__init__.py").write_text("")
        (tmp_path / "package_of_a_test" / "inner.py").write_text(
            "shift = 3.0\ndef shifted(x): return x + shift\nnothing = shifted(0)\n"
        )
        source = IMPORTING.replace("FOLDER", repr(str(tmp_path)))
        command = [sys.executable, "-W", "error", "-c", source]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
