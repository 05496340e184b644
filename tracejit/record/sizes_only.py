# SPDX-License-Identifier: BSD-3-Clause
"""Evaluation for sizes, labels and dtypes only: operations check their operands and compute nothing."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tracejit.aval import Aval
from tracejit.ir import Builder
from tracejit.ops import Op
from tracejit.record.recorder import Recorder


class _SizeBuilder(Builder):
    """A builder whose values are zeros that take no memory, whatever their size."""

    def append(self, op: Op, values: Sequence[Any], params: dict[str, Any], avals: Any) -> Any:
        result = zeros_of(avals) if type(avals) is Aval else tuple([zeros_of(aval) for aval in avals])
        return self.node(op, tuple(values), params, avals, result)


def zeros_of(aval: Aval) -> np.ndarray:
    """Return zeros of the size of an array that take the memory of one."""
    return np.broadcast_to(np.zeros((), aval.dtype), aval.shape)


@contextmanager
def sizes_only(name: str) -> Iterator[None]:
    """Let operations in the block infer sizes, labels and dtypes; elements of all results are 0.

    Args:
        name: what is evaluated, for messages.
    """
    recorder = Recorder(name)
    recorder.keeps_graph = recorder.has_values = False
    recorder.builder = _SizeBuilder(recorder.graph, owner=recorder)
    with recorder:
        yield
