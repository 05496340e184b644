# SPDX-License-Identifier: BSD-3-Clause
"""Divisions and square roots of a GPU, compiled for this CPU, with a model of the GPU's two approximate instructions.

The model is as far from the exact result as NVIDIA says that the instructions may be, on either side.
"""

import ctypes
import re
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from effort import sweep

from tracejit.compile.device_arithmetic import arithmetic_functions, with_own_arithmetic

FORMATS = {"float32": ("float", "f", "i32", "f32", 0), "float64": ("double", "d", "i64", "f64", 32)}
MODEL = """
@{native}_ulps = global {word} 0
define {kind} @"model.{name}.{native}"({kind} %x) alwaysinline {{
  %bits = bitcast {kind} %x to {word}
  %known = and {word} %bits, {read}
  %size = and {word} %known, {no_sign}
  %is_subnormal = icmp ult {word} %size, {smallest}
  %sign = xor {word} %known, %size
  %flushed = select i1 %is_subnormal, {word} %sign, {word} %known
  %y = bitcast {word} %flushed to {kind}
  {root}
  %exact = fdiv {kind} 1.0, %z
  %all = bitcast {kind} %exact to {word}
  %kept = and {word} %all, {read}
  %ulps = load {word}, ptr @{native}_ulps
  %off = add {word} %kept, %ulps
  %magnitude = and {word} %kept, {no_sign}
  %above = sub {word} %magnitude, {smallest}
  %is_normal = icmp ult {word} %above, {normal}
  %is_zero = icmp ult {word} %magnitude, {smallest}
  %as_it_is = select i1 %is_zero, {word} %sign, {word} %all
  %chosen = select i1 %is_normal, {word} %off, {word} %as_it_is
  %result = bitcast {word} %chosen to {kind}
  ret {kind} %result
}}
"""
LOOP = """
define void @{function}_{dtype}(ptr %a, ptr %b, ptr %out, i64 %n) {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
  %pa = getelementptr {kind}, ptr %a, i64 %i
  %pb = getelementptr {kind}, ptr %b, i64 %i
  %po = getelementptr {kind}, ptr %out, i64 %i
  %x = load {kind}, ptr %pa
  %y = load {kind}, ptr %pb
  %q = {operation}
  store {kind} %q, ptr %po
  %j = add i64 %i, 1
  %is_more = icmp ult i64 %j, %n
  br i1 %is_more, label %next, label %end
end:
  ret void
}}
"""
OPERATIONS = {
    "quotient": "fdiv {kind} %x, %y",
    "tame_quotient": "fdiv contract {kind} %x, %y",
    "root": "call {kind} @llvm.sqrt.{mangled}({kind} %x)",
}


def _model(name: str, dtype: str) -> str:
    kind, native, word, mangled, lost = FORMATS[dtype]
    info = np.finfo(dtype)
    one = 1 << info.nmant
    root = (
        f"%z = call {kind} @llvm.sqrt.{mangled}({kind} %y)"
        if name == "rsqrt"
        else f"%z = fadd {kind} %y, -0.0"
    )
    return MODEL.format(
        kind=kind, native=native, word=word, name=name, root=root, read=-(1 << lost), smallest=one,
        no_sign=(1 << (info.bits - 1)) - 1, normal=(2 ** (info.bits - 1 - info.nmant) - 2) * one,
    )  # fmt: skip


@cache
def engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    texts = [arithmetic_functions()]
    loops = []
    for dtype, (kind, _, _, mangled, _) in FORMATS.items():
        for function, operation in OPERATIONS.items():
            operation = operation.format(kind=kind, mangled=mangled)
            loops.append(LOOP.format(function=function, dtype=dtype, kind=kind, operation=operation))
    text = with_own_arithmetic("".join(loops))
    assert "fdiv" not in text and "llvm.sqrt" not in text
    texts.append(re.sub(r"^declare .*tracejit.*\n?", "", text, flags=re.MULTILINE))
    texts += [_model(name, dtype) for name in ("rcp", "rsqrt") for dtype in FORMATS]
    joined = "\n".join(texts)
    joined = re.sub(r"^declare .*llvm\.nvvm.*\n", "", joined, flags=re.MULTILINE)
    joined = re.sub(r"@llvm\.nvvm\.(rcp|rsqrt)\.approx\.ftz\.([fd])", r'@"model.\1.\2"', joined)
    joined = joined.replace("@f_ulps = global i32 0\n", "", 1).replace("@d_ulps = global i64 0\n", "", 1)
    joined += "\ndeclare float @llvm.sqrt.f32(float)\ndeclare double @llvm.sqrt.f64(double)\n"
    module = llvm.parse_assembly(joined)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(module, builder)
    compiled = llvm.create_mcjit_compiler(module, machine)
    compiled.finalize_object()
    return compiled


def computed(function: str, x: np.ndarray, y: np.ndarray, ulps: int) -> np.ndarray:
    _, native, _, _, lost = FORMATS[x.dtype.name]
    word = (ctypes.c_int64 if x.dtype.itemsize == 8 else ctypes.c_int32).from_address(
        engine().get_global_value_address(f"{native}_ulps")
    )
    word.value = ulps << lost
    loop = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(
        engine().get_function_address(f"{function}_{x.dtype.name}")
    )
    out = np.empty_like(x)
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    loop(x.ctypes.data, y.ctypes.data, out.ctypes.data, x.size)
    return out


def numbers(dtype: str, size: int, seed: int) -> np.ndarray:
    """Return numbers of all sizes, and some near 1, of whose bits few or nearly all are ones."""
    rng = np.random.default_rng(seed)
    one = np.dtype(dtype).type(1)
    bits = np.frombuffer(rng.bytes(size * one.itemsize), dtype).copy()
    bits[: size // 2] = rng.uniform(0.5, 2, size // 2)
    steps = rng.integers(-20, 20, size // 8).astype(f"i{one.itemsize}")
    bits[: size // 8] = (one.view(steps.dtype) + steps).view(dtype)
    return bits


def ends(dtype: str) -> np.ndarray:
    """Return powers of two, their neighbours, and what is no number or not normal."""
    info = np.finfo(dtype)
    powers = np.ldexp(info.dtype.type(1), np.arange(info.minexp - info.nmant, info.maxexp, 13))
    bits = np.append(powers, [info.tiny, np.inf]).astype(dtype).view(f"i{info.bits // 8}")
    positive = np.concatenate([bits - 1, bits, bits + 1, [0, 1, 3]]).astype(bits.dtype).view(dtype)
    return np.concatenate([positive, -positive])


def differ(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Return where numbers differ, signs of zeros too; any NaN is as good as another."""
    word = f"i{got.dtype.itemsize}"
    return (got.view(word) != want.view(word)) & ~(np.isnan(got) & np.isnan(want))


@pytest.mark.parametrize("ulps", [-1, 0, 1])
@pytest.mark.parametrize("dtype", FORMATS)
def test_quotients(dtype: str, ulps: int) -> None:
    size, some = sweep(100_000, 3_000_000), ends(dtype)
    x = np.concatenate([numbers(dtype, size, 1), np.repeat(some, some.size)])
    y = np.concatenate([numbers(dtype, size, 2), np.tile(some, some.size)])
    with np.errstate(all="ignore"):
        want = x / y
    got = computed("quotient", x, y, ulps)
    differs = differ(got, want)
    word = f"i{x.itemsize}"
    are_all_ones = (y.view(word) + 1) & ((1 << np.finfo(dtype).nmant) - 1) == 0
    is_known = are_all_ones | (np.abs(want) <= np.finfo(dtype).tiny)
    if dtype == "float32":
        is_known |= (np.abs(x) < 1e-29) | (np.abs(want) < 1e-29)
    assert not (differs & ~is_known).any()
    assert np.abs(got[differs].view(word) - want[differs].view(word)).max(initial=0) <= 1
    for number in (x, y, want):
        with np.errstate(invalid="ignore"):
            is_known |= ~((np.abs(number) > 1e-8) & (np.abs(number) < 1e8))
    assert (~is_known).sum() > size // 10
    got = computed("tame_quotient", x[~is_known], y[~is_known], ulps)
    assert not differ(got, want[~is_known]).any()


@pytest.mark.parametrize("ulps", [-1, 0, 1])
@pytest.mark.parametrize("dtype", FORMATS)
def test_roots(dtype: str, ulps: int) -> None:
    x = np.concatenate([ends(dtype), np.abs(numbers(dtype, sweep(100_000, 3_000_000), 1))])
    with np.errstate(all="ignore"):
        want = np.sqrt(x)
    got = computed("root", x, x, ulps)
    differs = differ(got, want)
    word = f"i{x.itemsize}"
    # Of float32, the guess decides the last bit where a root lies as near as 2^-44 to the middle of two numbers.
    most = 1e-5 * x.size if dtype == "float32" and ulps else 0
    assert differs.sum() <= most
    assert np.abs(got[differs].view(word) - want[differs].view(word)).max(initial=0) <= 1
