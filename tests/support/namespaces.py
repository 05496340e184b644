# SPDX-License-Identifier: BSD-3-Clause
"""Functions in namespaces of their own, called accelerated and plain while what they read changes."""

import numpy as np

import tracejit as tj
from tracejit import dlaccelerate, dlfeval

X = np.array([1.0, 2.0, 3.0])


def values(result):
    """Return a result as lists and numbers, with dtypes."""
    leaves, treedef = tj.tree.flatten(result)
    return [(np.asarray(leaf).dtype, np.asarray(leaf).tolist()) for leaf in leaves], treedef


def follow(function, *changes, args=(X,), traces=None):
    """Call an accelerated function and the plain one between changes; each state is replayed in the end."""
    accelerated = (
        function if isinstance(function, tj.AcceleratedFunction) else dlaccelerate(function, audit=False)
    )
    plain = accelerated.function
    for change in (lambda: None, *changes):
        change()
        for _ in range(6):  # what varies takes two recordings more
            before = accelerated.stats.hits
            result = values(accelerated(*args))
            expected = values(dlfeval(plain, *args))
            assert result[1] == expected[1]
            for (dtype, got), (wanted_dtype, wanted) in zip(result[0], expected[0], strict=True):
                assert dtype == wanted_dtype
                if got != wanted:
                    np.testing.assert_allclose(got, wanted, rtol=1e-6)
        assert accelerated.stats.hits == before + 1, accelerated.explain()
    if traces is not None:
        assert accelerated.stats.traces == traces, accelerated.explain()
    return accelerated


class Namespace:
    """Globals of a function that a test can change."""

    def __init__(self, source, **names):
        self.names = {"__name__": "a_module_of_a_test", "np": np, "tj": tj, **names}
        exec(compile(source, "<test>", "exec"), self.names)

    def __getitem__(self, name):
        return self.names[name]

    def set(self, **names):
        return lambda: self.names.update(names)


def setting(owner, name, value):
    return lambda: setattr(owner, name, value)
