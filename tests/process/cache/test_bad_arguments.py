# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of every kind for the functions that read and write files: errors of ours that name them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bad_arguments import KINDS

import tracejit as tj
from tracejit import TraceJitError, config

TEXTS = (
    "text",
    "text of a class",
    "a missing label",
    "a repeated label",
    "scalar of text",
    "no text",
    "bytes",
)


def doubled(x: Any) -> Any:
    return 2 * x


CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "cache.list": (tj.cache.list, ("*",), {
        "file": "*", "target": "*", "since_s": 1.0, "sort": "used", "reverse": False, "limit": 2,
    }),
    "cache.pack": (tj.cache.pack, ("cache.tar",), {}),
    "cache.remove": (tj.cache.remove, ("nothing",), {}),
    "cache.show": (tj.cache.show, ("nothing",), {}),
    "cache.unpack": (tj.cache.unpack, ("nothing.tar", "0" * 64), {}),
    "cache.why": (tj.cache.why, ("nothing", "other"), {}),
    "export": (tj.export, (tj.dlaccelerate(doubled), "folder"), {
        "args": (np.ones(2),), "kwargs": {}, "cpus": "host", "captured": "refuse", "replace": True,
    }),
    "load": (tj.load, ("nothing",), {"shared": False, "sha256": "0" * 64, "classes": {}, "cpu": "x86-64"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_function_of_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
    monkeypatch.setattr(config.settings, "backend", "python")
    monkeypatch.chdir(tmp_path)
    function, args, options = CALLS[name]
    refused = 0
    for place in (*range(len(args)), *options):
        for kind, make in KINDS.items():
            given: list[Any] = list(args)
            named = dict(options)
            if isinstance(place, int):
                given[place] = make()
            else:
                named[place] = make()
            try:
                function(*given, **named)
            except TraceJitError as error:
                assert 20 < len(str(error)) < 900, str(error)
                refused += 1
            except TypeError as error:  # as Python has it: the call does not fit the function
                assert name == "export" and "argument" in str(error), f"{place}, {kind}: {error}"
    assert refused
    outside = {path.name for path in tmp_path.iterdir()} - {"cache", "cache.tar", "folder"}
    assert outside <= {KINDS[kind]() for kind in TEXTS if isinstance(KINDS[kind](), str)}
