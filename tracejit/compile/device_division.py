# SPDX-License-Identifier: BSD-3-Clause
"""Divisions of float32 on a GPU.

Note [divisions of a GPU]
NVIDIA's compiler writes a division that is rounded as IEEE 754 says as 25 instructions with branches. Here it is 15
without: with r close to 1 / d, from the instruction for that and a step of Newton's method, the quotient is

    q = x r,  q + (x - q d) r

which is rounded right (Note [shared divisors] in kernels/intrinsics/polynomials.py, which also says why x and d are
first multiplied by a power of two), but for dividends below 1e-29 and subnormal quotients, which may be the next
number. Where that gives 0 or NaN, x r with the first r has the right sign of zero, is
infinite or NaN. On an H100, tanh(x) sigmoid(x) of 67 million numbers was bound by these instructions.
"""

import re

_DIVISION = re.compile(
    r'^(\s*)(%"?[\w.$-]+"?) = fdiv((?: \w+)*?) (float|<4 x float>) ([^,\n]+), (%"?[\w.$-]+"?)$', re.MULTILINE
)
_FAR, _NEAR = "0x43F0000000000000", "0x3BF0000000000000"  # 2^64 and 2^-64
_NUMBER, _VECTOR = "tracejit.quotient", "tracejit.quotients"

_TEXT = f"""
declare float @llvm.fabs.f32(float)
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.nvvm.rcp.approx.ftz.f(float)
define float @"{_NUMBER}"(float %x, float %y) alwaysinline {{
  %size = call float @llvm.fabs.f32(float %y)
  %is_large = fcmp ogt float %size, {_FAR}
  %is_small = fcmp olt float %size, {_NEAR}
  %up = select i1 %is_small, float {_FAR}, float 1.0
  %scale = select i1 %is_large, float {_NEAR}, float %up
  %d = fmul float %y, %scale
  %n = fmul float %x, %scale
  %guess = call float @llvm.nvvm.rcp.approx.ftz.f(float %d)
  %minus_d = fneg float %d
  %error = call float @llvm.fma.f32(float %minus_d, float %guess, float 1.0)
  %r = call float @llvm.fma.f32(float %error, float %guess, float %guess)
  %q = fmul float %n, %r
  %rest = call float @llvm.fma.f32(float %minus_d, float %q, float %n)
  %corrected = call float @llvm.fma.f32(float %rest, float %r, float %q)
  %far = call float @llvm.fabs.f32(float %corrected)
  %counts = fcmp ogt float %far, 0.0
  %simple = fmul float %n, %guess
  %result = select i1 %counts, float %corrected, float %simple
  ret float %result
}}
define <4 x float> @"{_VECTOR}"(<4 x float> %x, <4 x float> %y) alwaysinline {{
{
    "".join(
        f'''  %x{i} = extractelement <4 x float> %x, i32 {i}
  %y{i} = extractelement <4 x float> %y, i32 {i}
  %q{i} = call float @"{_NUMBER}"(float %x{i}, float %y{i})
  %v{i} = insertelement <4 x float> {f"%v{i - 1}" if i else "undef"}, float %q{i}, i32 {i}
'''
        for i in range(4)
    )
}  ret <4 x float> %v3
}}
"""


def with_short_divisions(text: str) -> str:
    """Return LLVM IR whose divisions of float32 are calls of quotient_functions() (Note [divisions of a GPU])."""

    def called(match: re.Match[str]) -> str:
        indent, name, _, kind, x, y = match.groups()
        function = _NUMBER if kind == "float" else _VECTOR
        return f'{indent}{name} = call {kind} @"{function}"({kind} {x}, {kind} {y})'

    replaced, count = _DIVISION.subn(called, text)
    if not count:
        return text
    declared = "".join(
        f'declare {kind} @"{name}"({kind}, {kind})\n'
        for name, kind in ((_NUMBER, "float"), (_VECTOR, "<4 x float>"))
        if f'@"{name}"' in replaced
    )
    return f"{replaced}\n{declared}"


def quotient_functions() -> str:
    """Return the LLVM IR of the functions that replace divisions."""
    return _TEXT
