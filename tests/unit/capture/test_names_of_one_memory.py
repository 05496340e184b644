# SPDX-License-Identifier: BSD-3-Clause
"""Two names for the same elements, through views of their own: each is followed when it gets another array."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracejit as tj


@pytest.mark.parametrize("moved", ["first", "second"])
@pytest.mark.filterwarnings("ignore::tracejit.ChangedTraceWarning")
def test_either_name_gets_another_array(moved: str) -> None:
    base = np.arange(48.0)
    owner, items = SimpleNamespace(array=base[28:32]), {"array": base[24:28]}

    def weighted(x: Any) -> Any:
        return x * owner.array + items["array"] * 3

    accelerated, x = tj.dlaccelerate(weighted), base[:4]
    accelerated(x)
    owner.array = base[2:6]
    accelerated(x)
    items["array"] = base[2:6]
    for _ in range(17):  # an audit is among them
        assert accelerated(x).tolist() == weighted(x).tolist()
    if moved == "first":
        owner.array = base[6:10]
    else:
        items["array"] = base[4:8]
    for _ in range(3):
        assert accelerated(x).tolist() == weighted(x).tolist()
