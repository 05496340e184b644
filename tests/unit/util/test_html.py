# SPDX-License-Identifier: BSD-3-Clause
"""Notebook displays of arrays, graphs and accelerated functions."""

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from counted_runs import counts_runs

from tracejit import NotAcceleratedWarning, dlaccelerate, dlarray, dlfeval, tanh
from tracejit.aval import Aval
from tracejit.ir import Builder, Graph
from tracejit.util import html

NASTY = "</td><script>alert(1)</script>\"'&"


class Table(HTMLParser):
    """The cells of the tables in a text, row by row; the rest of the text; and the elements, which are closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.rest = ""
        self.tags: set[str] = set()
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self._open):
            self.rows[-1][-1] += data
        else:
            self.rest += data


def shown(thing: Any) -> Table:
    text = thing._repr_html_()
    assert "class=" not in text and "color:" not in text.replace("border", "")  # neutral on light and on dark
    return Table(text)


class TestArrays:
    def test_a_matrix(self) -> None:
        found = shown(dlarray(np.array([[1.0, 2.5], [-3.0, np.inf]]), "BC"))
        assert found.rest.strip() == "2(B) x 2(C) dlarray float64"
        assert found.rows == [["1", "2.5"], ["-3", "inf"]]

    @pytest.mark.parametrize(
        ("data", "rows"),
        [
            (np.float32(0.1), [["0.1"]]),
            ([1, 2, 3], [["1", "2", "3"]]),
            ([True, False], [["True", "False"]]),
            (np.arange(9), [[str(i) for i in range(9)]]),
            (np.arange(10), [["0", "1", "2", "3", "...", "6", "7", "8", "9"]]),
        ],
    )
    def test_values(self, data: Any, rows: list[list[str]]) -> None:
        assert shown(dlarray(np.asarray(data))).rows == rows

    def test_the_ends_of_long_axes(self) -> None:
        found = shown(dlarray(np.arange(400.0).reshape(20, 20)))
        assert len(found.rows) == 9
        assert found.rows[0] == ["0", "1", "2", "3", "...", "16", "17", "18", "19"]
        assert found.rows[4] == ["..."] * 9
        assert found.rows[8][-1] == "399"

    def test_the_first_matrix_of_several(self) -> None:
        found = shown(dlarray(np.arange(24.0).reshape(2, 3, 2, 2), "SSCB"))
        assert found.rows == [["0", "1"], ["2", "3"]]
        assert "[0, 0, :, :], the first of 6 matrices" in found.rest

    def test_no_elements(self) -> None:
        found = shown(dlarray(np.zeros((0, 3))))
        assert (found.rows, found.rest) == ([], "0x3 dlarray float64 no elements")

    @counts_runs
    def test_a_traced_array_tells_no_values(self) -> None:
        texts = []

        def f(x: dlarray) -> dlarray:
            texts.append(x._repr_html_())
            return x

        accelerated = dlaccelerate(f)
        kept = []
        for _ in range(2):
            accelerated(np.ones(3))
        assert [Table(text).rest.strip() for text in texts] == ["3 dlarray float64 traced"] * 2
        assert not accelerated.explain().keys[0].variants[0].guards
        dlfeval(kept.append, dlarray([1.0]))
        assert shown(kept[0]).rest.strip() == "1 dlarray float64"


class TestGraphs:
    def test_ops_in_order(self) -> None:
        b = Builder(Graph())
        x = b.input(Aval((2, 3), None, np.dtype(np.float32)))
        b.location = (f"{NASTY}.py", 7)
        b.graph.outputs = [b.sum(b.mul(x, 2.0), axes=(0,), keepdims=False)]
        found = shown(b.graph)
        assert found.rest == "Graph of 2 ops in0: 2x3 float32; results: v1"
        assert found.rows == [
            ["value", "op", "size", "line"],
            ["v0", "mul(in0, 2.0)", "2x3 float32", f"{NASTY}.py:7"],
            ["v1", "sum(v0, axes=(0,), keepdims=False)", "3 float32", f"{NASTY}.py:7"],
        ]
        assert "script" not in found.tags

    def test_long_and_empty_graphs(self) -> None:
        b = Builder(Graph())
        x = b.input(Aval((), None, np.dtype(np.float32)))
        for _ in range(100):
            x = b.neg(x)
        found = shown(b.graph)
        assert len(found.rows) == 61
        assert found.rest.endswith("and 40 more ops")
        assert shown(Graph()).rest == "Graph of 0 ops no inputs; results: none"


class TestFunctions:
    def test_before_and_after_calls(self) -> None:
        def f(x: dlarray) -> dlarray:
            return tanh(x) if x.sum() > 0 else x

        accelerated = dlaccelerate(f)
        found = shown(accelerated)
        assert re.fullmatch(
            r"TestFunctions\S+f \(\S+:\d+\) 0 calls, hit rate 0 %; 0 programs of 0 kernels", found.rest
        )
        assert found.rows == []
        for size in (2, 2, 2, 3):
            accelerated(np.ones(size))
        found = shown(accelerated)
        assert found.rest.endswith("4 calls, hit rate 25 %; 1 program of 3 kernels")
        assert found.rows == [
            ["arguments", "calls", "traces", "guards", "state"],
            ["x: 2 float64", "3", "1", "1", "replayed"],
            ["x: 3 float64", "1", "1", "1", "to be confirmed by another call"],
        ]

    def test_a_function_that_is_refused_and_an_argument_that_is_nasty(self) -> None:
        accelerated = dlaccelerate(lambda x, name: x * float(np.random.default_rng().random()))
        with pytest.warns(NotAcceleratedWarning):
            for _ in range(3):
                accelerated(np.ones(2), NASTY)
        found = shown(accelerated)
        assert found.rows[1][0] == f"x: 2 float64, name: {NASTY!r}"
        assert found.rows[1][-1].startswith("runs uncompiled: ")
        assert found.tags == {"div", "b", "span", "table", "thead", "tbody", "tr", "th", "td"}

    def test_many_signatures(self) -> None:
        accelerated = dlaccelerate(tanh)
        for size in range(1, 31):
            accelerated(np.ones(size))
        found = shown(accelerated)
        assert len(found.rows) == 21
        assert found.rest.endswith("and 10 more signatures")


def test_texts_are_escaped() -> None:
    found = Table(html.block(NASTY, NASTY, html.table([NASTY], [[NASTY], [NASTY]], 1, NASTY)))
    assert found.rows == [[NASTY], [NASTY]]
    assert found.rest == f"{NASTY} {NASTY}and 1 more {NASTY}"
    assert "script" not in found.tags
