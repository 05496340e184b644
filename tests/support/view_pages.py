# SPDX-License-Identifier: BSD-3-Clause
"""Pages that need no compiler: a program of repeated layers, of any length."""

from typing import Any

from tracejit.view.data import Page, PageKernel, PageLaunch, PageOp, PageProgram, PageValue

KERNELS: list[PageKernel] = [
    {"name": "product_a03d145bd845", "line": 0}, {"name": "add_tanh_b5dc16ee29a6", "line": 20},
]  # fmt: skip
LAYER = ("matmul", "add", "tanh")


def op(name: str, inputs: list[int], launch: int | None, line: int, **changes: Any) -> PageOp:
    """Return an op of 128 x 64 numbers."""
    made: PageOp = {
        "kind": "op", "name": name, "result": "128x64 float32", "detail": "", "inputs": inputs, "place": (0, line),
        "launch": launch, "output": "",
    }  # fmt: skip
    return {**made, **changes}  # type: ignore[typeddict-item]


def launch(number: int, kernel: int, note: str, timed: bool) -> PageLaunch:
    """Return a launch that takes between 1 and 9 us."""
    ns = 1000.0 * (1 + number * 7 % 9)
    return {
        "kernel": kernel, "note": note, "parts": 1 + kernel, "line": 40 + 2 * number, "bytes": 32768 * (1 + kernel),
        "flops": 1 << 20, "ns": ns if timed else None, "least_ns": ns / (1 + number % 4) if timed else None,
        "bound": "memory" if kernel else "arithmetic",
        "apart": [(number - 1, "v3", "matmul is a matrix product")] if number else [],
    }  # fmt: skip


def program(layers: int, timed: bool = True, title: str = "step") -> PageProgram:
    """Return a program of `layers` layers of three ops each, two launches a layer."""
    ops: list[PageOp] = [
        op("x", [], None, 0, kind="argument", place=None),
        op("w", [], None, 0, kind="argument", place=None, result="64x64 float32"),
    ]
    launches: list[PageLaunch] = []
    links: list[list[int]] = []
    before = 0
    for layer in range(layers):
        first = len(ops)
        ops += [
            op("matmul", [before, 1], 2 * layer, 12, detail=""),
            op("add", [first, 1], 2 * layer + 1, 13),
            op("tanh", [first + 1], 2 * layer + 1, 13),
        ]
        launches += [launch(2 * layer, 0, "matmul", timed), launch(2 * layer + 1, 1, "add, tanh", timed)]
        links += [[40 + 4 * layer, first], [42 + 4 * layer, first + 1, first + 2]]
        before = first + 2
    if layers:
        ops[before]["output"] = "result"
        links += [[10, *range(2, len(ops), 3)], [30, *range(3, len(ops), 3)], [31, *range(4, len(ops), 3)]]
    for number, each in enumerate(launches):
        each["line"] = 40 + 2 * number
    emitted = [f"    line {i} of the kernels" for i in range(38)] + ["", "def forward(memory):"]
    for number in range(2 * layers):
        emitted += [f"    # {launches[number]['note']}  (step.py:12)"]
        emitted += [
            f"    kernel_{number % 2}([128, 64, memory('arena', {64 * number}, 'float32')])  # {number}"
        ]
    if layers:
        emitted[0], emitted[20] = "def product_a03d145bd845(args):", "def add_tanh_b5dc16ee29a6(args):"
        emitted[10] = "                tile = add_outer_f32x16(tile, x, at_x, rows, x_row, y)"
        emitted[30], emitted[31] = (
            "            v0 = p0[i0] + p1[i1]",
            "            v1 = tanh_f32(v0)  # step.py:13",
        )
    values: list[PageValue] = [
        {
            "what": LAYER[2 * (i % 2)], "op": 2 + i // 2 * 3 + 2 * (i % 2), "offset": 32768 * (i % 2), "bytes": 32768,
            "first": i, "last": min(i + 1, 2 * layers - 1),
        }
        for i in range(2 * layers)
    ]  # fmt: skip
    return {
        "title": title,
        "signature": ["x: 128(B) x 64(C) float32", "w: 64x64 float32"],
        "ops": ops,
        "launches": launches,
        "kernels": KERNELS if layers else [],
        "emitted": emitted if layers else [],
        "links": links,
        "repeats": [(0, 2, layers)] if layers > 2 else [],
        "arena": {"bytes": 65536 if layers else 0, "values": values, "missing": ""},
        "timing": ["Each launch was run alone, five times; the fastest counts."],
        "is_timed": timed,
        "kept": "",
        "guards": [{"text": "step.py:4: the global 'rate' is 0.1", "place": (0, 4)}],
        "facts": [("results", "128x64 float32"), ("built in", "12 ms")],
    }


def page(*programs: PageProgram, title: str = "step", **changes: Any) -> Page:
    """Return a page of programs."""
    made: Page = {
        "title": title,
        "notes": [],
        "programs": list(programs),
        "files": [{"name": "/home/ann/project/step.py", "chunks": [(1, SOURCE)], "missing": ""}],
        "keys": [
            {
                "arguments": "x: 128(B) x 64(C) float32", "calls": 12, "traces": 1, "confirmations": 1, "audits": 1,
                "replaced": 0, "state": "replayed",
            }
        ],
        "last": "step: hit. The call was replayed from the trace for x: 128(B) x 64(C) float32.",
        "history": [
            {"call": 1, "outcome": "a new trace", "why": "because there was none yet."},
            {"call": 2, "outcome": "confirmed", "why": "The call was recorded again, and confirmed the trace."},
        ],
        "facts": [("tracejit", "0.1.0")],
    }  # fmt: skip
    return {**made, **changes}  # type: ignore[typeddict-item]


SOURCE = [
    "import tracejit as tj", "", "", "rate = 0.1", "", "", "@tj.dlaccelerate", "def step(x, w):",
    '    """Many equal layers."""', "", "    for _ in range(n):", "        y = x @ w  # a product",
    "        x = tj.tanh(y + w)", "    return x", "",
]  # fmt: skip
