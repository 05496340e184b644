# SPDX-License-Identifier: BSD-3-Clause
"""Emission of attention for a device.

Note [rows of attention]
A few neighbouring threads have a query. Each of them keeps some columns of it, and of its result, in registers, goes
through the keys one after the other, and adds up its share of a score with the others. Neighbouring queries meet the
same key at the same time, so that it is read once for all of them. The greatest score so far is subtracted before exp,
and the sums so far are scaled down where a greater score appears (T. Dao and others, 2022: Note [attention] in
codegen/templates/attention.py). The adjoint by queries works alike. The adjoint by keys and values has the keys in
registers, and goes through the queries of its band. No memory is written by two threads, and every sum has one order.

A thread has columns of about COLUMN_BYTES, or more where those of a group of 32 threads would not be enough. With c
threads for a query, a thread's columns come in fours, 4 c columns apart. Where widths fill all fours, they are loaded
by 16 bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from tracejit.codegen.device.text import emitted, indented, taken_apart
from tracejit.codegen.names import INDENT
from tracejit.codegen.nest import Emitted
from tracejit.codegen.templates.attention import BACKWARD_NUMBERS, FORWARD_NUMBERS
from tracejit.ops.attention import blocks_of as queries_and_keys
from tracejit.ops.attention import room_of
from tracejit.passes.loops.kept_values import GROUP
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.nest import Access
from tracejit.passes.loops.spread import BLOCK, blocks_of
from tracejit.program import Grid
from tracejit.util.named_tuples import NamedTuple

COLUMN_BYTES = 64  # of the columns that a thread keeps
_MOST_BYTES = 96  # the same where a width is not a power of two
_NEAR = 4  # columns that are loaded at once
_READS = "q k v mask scale"
_FORWARD = (_READS, "out lse")
_BACKWARD = (f"{_READS} lse delta ct", "dq dk dv")


class _HeadColumns(NamedTuple):
    """The columns of a thread.

    threads     that share a query, or a key
    own         how many columns each of them has
    fill        whether these are all columns of keys and of values, which can be loaded by fours
    """

    threads: int
    own: int
    fill: bool

    def places(self) -> list[str]:
        """Return the text of each column's number; that of the first column of the thread is `first`."""
        return [
            f"first + {i // _NEAR * _NEAR * self.threads + i % _NEAR}" if i else "first"
            for i in range(self.own)
        ]

    def load(self, name: str, x: str, row: str, width: str) -> list[str]:
        """Return the lines that load the columns of a row of x, whose element 0 lies at `row`, as name0, name1, ..."""
        places = self.places()
        if self.fill:
            return [
                ", ".join(f"{name}{i + k}" for k in range(_NEAR)) + f" = four({x}, {row} + {places[i]})"
                for i in range(0, self.own, _NEAR)
            ]
        return [
            f"{name}{i} = {x}[{row} + {place}] if {place} < {width} else T(0)"
            for i, place in enumerate(places)
        ]

    def store(self, out: str, row: str, width: str, value: str) -> list[str]:
        """Return the lines that store a value for each column, in whose text # stands for its number."""
        lines = []
        for i, place in enumerate(self.places()):
            indent = ""
            if not self.fill:
                lines.append(f"if {place} < {width}:")
                indent = INDENT
            lines.append(f"{indent}{out}[{row} + {place}] = {value.replace('#', str(i))}")
        return lines

    def each(self, line: str) -> list[str]:
        """Return a line for each column, in which # stands for its number."""
        return [line.replace("#", str(i)) for i in range(self.own)]

    def dot(self, name: str, x: str, y: str) -> list[str]:
        """Return the lines that compute a thread's share of a dot product, in sums that do not wait for each other."""
        lines = [f"{name}_{i} = {x}{i} * {y}{i}" for i in range(_NEAR)]
        lines += [
            f"{name}_{i % _NEAR} = fma_T({x}{i}, {y}{i}, {name}_{i % _NEAR})" for i in range(_NEAR, self.own)
        ]
        return [*lines, f"{name} = ({name}_0 + {name}_1) + ({name}_2 + {name}_3)"]

    def together(self, *names: str) -> list[str]:
        """Return the lines that add up what the threads have."""
        lines, step = [], 1
        while step < self.threads:
            lines += [f"{name} = {name} + across_T({name}, index({step}))" for name in names]
            step *= 2
        return lines


def emit_attention(launch: KernelLaunch) -> list[tuple[Emitted, Grid]]:
    """Return the kernels of attention or of its adjoint, with their arguments and threads."""
    is_forward = launch.name == "attention_forward"
    n = dict(zip(FORWARD_NUMBERS if is_forward else BACKWARD_NUMBERS, launch.numbers, strict=True))
    del n["first"], n["last"]
    reads, writes = map(str.split, _FORWARD if is_forward else _BACKWARD)
    places = dict(zip([*reads, *writes], launch.pointers, strict=True))
    n["shared"] = n.pop("group")
    n["key_heads"] = n["heads"] // n["shared"]
    units = places["lse"].root.aval.size
    if is_forward:
        return _launches("attention_forward", n, units, places, (reads, writes))
    block, _ = queries_and_keys(room_of(max(n["width"], n["value_width"])), places["q"].dtype.itemsize)
    n["blocks"], n["block"] = -(-n["queries"] // block), block
    keys = n["bands"] * n["batch"] * n["keys"] * n["key_heads"]
    return [
        *_launches("attention_backward_queries", n, units, places, (reads, ["dq"])),
        *_launches("attention_backward_keys", n, keys, places, (reads, ["dk", "dv"])),
    ]


def _launches(
    name: str,
    numbers: dict[str, int],
    units: int,
    places: dict[str, Access],
    operands: Sequence[Sequence[str]],
) -> list[tuple[Emitted, Grid]]:
    """Return the launch of a kernel, none if there is nothing to do."""
    if not units:
        return []
    reads, writes = [{operand: places[operand] for operand in some} for some in operands]
    columns = _columns_of(numbers["width"], numbers["value_width"], places)
    text = _text(name, columns)
    grid = Grid(blocks_of(units * columns.threads), BLOCK)
    return [(emitted(name, text, places["q"].dtype, {**numbers, "units": units}, reads, writes), grid)]


def _columns_of(width: int, value_width: int, places: Mapping[str, Access]) -> _HeadColumns:
    """Return the columns of threads, which have room for a power of two where they do not fit exactly."""
    is_aligned = all(access.offset % _NEAR == 0 for access in places.values())
    itemsize = places["q"].dtype.itemsize
    if width == value_width and is_aligned:
        threads = 1
        while threads < GROUP and width * itemsize > threads * _MOST_BYTES:
            threads *= 2
        if width and width % (threads * _NEAR) == 0:
            return _HeadColumns(threads, width // threads, fill=True)
    columns = COLUMN_BYTES // itemsize
    room = max(columns, 1 << (max(width, value_width) - 1).bit_length())
    threads = min(GROUP, room // columns)
    return _HeadColumns(threads, room // threads, fill=False)


@cache
def _text(name: str, columns: _HeadColumns) -> str:
    own = GROUP // columns.threads
    lines = [
        f"unit = index(base + quotient(lane(), {columns.threads}))",
        "kept = unit < units",
        "unit = index(min(unit, units - 1))",
        *_TEXTS[name](columns),
        f"base = index(base + groups() * {own})",
    ]
    return "\n".join([
        f"first = index(remainder(lane(), {columns.threads}) * {_NEAR})",
        "factor = scale[0]",
        "lowest = T(-1e999)",
        f"base = index(group() * {own})",
        "while base < units:",
        *indented(1, lines),
    ])  # fmt: skip


def _of_group(name: str, function: str) -> list[str]:
    """Return the lines that make an index the least or greatest one in a group: its threads exchange, so they go
    through a loop equally often."""
    return [
        f"step = index({GROUP // 2})",
        "while step > 0:",
        f"    {name} = index({function}({name}, across_i32({name}, step)))",
        "    step = index(step >> 1)",
    ]


_QUERY = [
    *taken_apart("unit", [("image", ""), ("head", "heads"), ("query", "queries")]),
    "row = (image * queries + query) * heads + head",
    "at_key = image * keys * key_heads + quotient(head, shared)",
    "at_mask = image * mask_batch + head * mask_head + query * mask_query",
    "stop = keys",
    "if causal:",
    "    stop = index(min(keys, query + 1))",
    "last = stop",
    *_of_group("last", "max"),
]
"""The lines that find where a query, its keys and its mask lie."""


def _score(is_seen: str, mask: str) -> list[str]:
    return [
        "if masked:",
        f"    score = score + mask[{mask}]",
        f"score = score if {is_seen} else lowest",
    ]


def _forward(c: _HeadColumns) -> list[str]:
    body = [
        "at = at_key + key * key_heads",
        *c.load("k_", "k", "at * width", "width"),
        *c.dot("score", "q_", "k_"),
        *c.together("score"),
        *_score("key < stop", "at_mask + key"),
        "if score > top:",
        "    shrunk = exp_T(top - score)",
        "    total = total * shrunk",
        *indented(1, c.each("sum# = sum# * shrunk")),
        "    top = score",
        "power = T(0) if score == lowest else exp_T(score - top)",
        "total = total + power",
        *c.load("v_", "v", "at * value_width", "value_width"),
        *c.each("sum# = fma_T(power, v_#, sum#)"),
        "key = index(key + 1)",
    ]
    return [
        *_QUERY,
        *c.load("q_", "q", "row * width", "width"),
        *c.each("q_# = q_# * factor"),
        *c.each("sum# = T(0)"),
        "top = lowest",
        "total = T(0)",
        "key = index(0)",
        "while key < last:",
        *indented(1, body),
        "share = T(0) if total == T(0) else T(1) / total",
        "if kept:",
        *indented(
            1, c.store("out", "row * value_width", "value_width", "T(0) if share == T(0) else sum# * share")
        ),
        "    if first == 0:",
        "        lse[row] = -lowest if total == T(0) else top + log_T(total)",
    ]


def _backward_queries(c: _HeadColumns) -> list[str]:
    body = [
        "at = at_key + key * key_heads",
        *c.load("k_", "k", "at * width", "width"),
        *c.load("v_", "v", "at * value_width", "value_width"),
        *c.dot("score", "q_", "k_"),
        *c.dot("slope", "ct_", "v_"),
        *c.together("score", "slope"),
        *_score("key < stop", "at_mask + key"),
        "slope = exp_T(score - shift) * (slope - less)",
        *c.each("sum# = fma_T(slope, k_#, sum#)"),
        "key = index(key + 1)",
    ]
    return [
        *_QUERY,
        *c.load("q_", "q", "row * width", "width"),
        *c.load("ct_", "ct", "row * value_width", "value_width"),
        *c.each("q_# = q_# * factor"),
        *c.each("sum# = T(0)"),
        "shift = lse[row]",
        "less = delta[row]",
        "key = index(0)",
        "while key < last:",
        *indented(1, body),
        "if kept:",
        *indented(1, c.store("dq", "row * width", "width", "sum# * factor")),
    ]


def _backward_keys(c: _HeadColumns) -> list[str]:
    body = [
        "at = at_query + query * heads",
        *c.load("q_", "q", "at * width", "width"),
        *c.load("ct_", "ct", "at * value_width", "value_width"),
        *c.dot("score", "q_", "k_"),
        *c.dot("slope", "ct_", "v_"),
        *c.together("score", "slope"),
        *_score("query >= start and query < stop", "at_mask + query * mask_query"),
        "power = exp_T(score - lse[at])",
        "slope = power * (slope - delta[at])",
        *c.each("sum_v# = fma_T(power, ct_#, sum_v#)"),
        *c.each("sum_k# = fma_T(slope, q_#, sum_k#)"),
        "query = index(query + 1)",
    ]
    heads = [
        "head = key_head * shared + member",
        "at_query = image * queries * heads + head",
        "at_mask = image * mask_batch + head * mask_head + key",
        "query = begin",
        "while query < last:",
        *indented(1, body),
        "member = index(member + 1)",
    ]
    return [
        *taken_apart("unit", [("band", ""), ("image", "batch"), ("key_head", "key_heads"), ("key", "keys")]),
        "row = (image * keys + key) * key_heads + key_head",
        *c.load("k_", "k", "row * width", "width"),
        *c.load("v_", "v", "row * value_width", "value_width"),
        *c.each("k_# = k_# * factor"),
        *c.each("sum_k# = T(0)"),
        *c.each("sum_v# = T(0)"),
        "start = index(min(queries, quotient(index(blocks * band), bands) * block))",
        "stop = index(min(queries, quotient(index(blocks * (band + 1)), bands) * block))",
        "if causal:",
        "    start = index(max(start, key))",
        "begin = start",
        "last = stop",
        *_of_group("begin", "min"),
        *_of_group("last", "max"),
        "member = index(0)",
        "while member < shared:",
        *indented(1, heads),
        "row = row + band * batch * keys * key_heads",
        "if kept:",
        *indented(1, c.store("dk", "row * width", "width", "sum_k# * factor")),
        *indented(1, c.store("dv", "row * value_width", "value_width", "sum_v#")),
    ]


_TEXTS: Mapping[str, Callable[[_HeadColumns], list[str]]] = {
    "attention_forward": _forward,
    "attention_backward_queries": _backward_queries,
    "attention_backward_keys": _backward_keys,
}
