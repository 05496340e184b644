# SPDX-License-Identifier: BSD-3-Clause
"""Divisions of float32 on a GPU.

Note [divisions of a GPU]
For a division rounded as in IEEE 754, NVIDIA's compiler writes 25 instructions with branches. Here it takes 15 without
branches: with r close to 1 / d, from the instruction for that and a step of Newton's method, the quotient is

    q = x r,  q + (x - q d) r

which is rounded right (Note [shared divisors] in kernels/intrinsics/polynomials.py, which also says why x and d are
first multiplied by a power of two). The exceptions are dividends below 1e-29 and subnormal quotients, whose result may
be the neighbouring number. Where the formula gives 0 or NaN, x r with the first r is used: it has the right sign of
zero, or is infinite or NaN. Where the numbers are known to be far from all these cases (Term.over), the quotient alone
takes 6 instructions. On an H100, tanh(x) sigmoid(x) of 67 million numbers was bound by these instructions.
"""

import re

_DIVISION = re.compile(
    r'^(\s*)(%"?[\w.$-]+"?) = fdiv((?: \w+)*?) (float|<4 x float>) ([^,\n]+), (%"?[\w.$-]+"?)$', re.MULTILINE
)
_FAR, _NEAR = "0x43F0000000000000", "0x3BF0000000000000"  # 2^64 and 2^-64
_ANY, _TAME = "tracejit.quotient", "tracejit.tame_quotient"  # of numbers, and of those that Term.over divides
_KINDS = {"float": "", "<4 x float>": ".x4"}  # operands, and how the names of functions end

_CORRECTED = """
  %minus_d = fneg float %d
  %error = call float @llvm.fma.f32(float %minus_d, float %guess, float 1.0)
  %r = call float @llvm.fma.f32(float %error, float %guess, float %guess)
  %q = fmul float %n, %r
  %rest = call float @llvm.fma.f32(float %minus_d, float %q, float %n)
  %corrected = call float @llvm.fma.f32(float %rest, float %r, float %q)"""

_TEXT = f"""
declare float @llvm.fabs.f32(float)
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.nvvm.rcp.approx.ftz.f(float)
define float @"{_ANY}"(float %x, float %y) alwaysinline {{
  %size = call float @llvm.fabs.f32(float %y)
  %is_large = fcmp ogt float %size, {_FAR}
  %is_small = fcmp olt float %size, {_NEAR}
  %up = select i1 %is_small, float {_FAR}, float 1.0
  %scale = select i1 %is_large, float {_NEAR}, float %up
  %d = fmul float %y, %scale
  %n = fmul float %x, %scale
  %guess = call float @llvm.nvvm.rcp.approx.ftz.f(float %d){_CORRECTED}
  %far = call float @llvm.fabs.f32(float %corrected)
  %counts = fcmp ogt float %far, 0.0
  %simple = fmul float %n, %guess
  %result = select i1 %counts, float %corrected, float %simple
  ret float %result
}}
define float @"{_TAME}"(float %n, float %d) alwaysinline {{
  %guess = call float @llvm.nvvm.rcp.approx.ftz.f(float %d){_CORRECTED}
  ret float %corrected
}}
"""


def with_short_divisions(text: str) -> str:
    """Return LLVM IR whose divisions of float32 are calls of quotient_functions() (Note [divisions of a GPU])."""
    used = set()

    def called(match: re.Match[str]) -> str:
        indent, name, flags, kind, x, y = match.groups()
        function = (_TAME if "contract" in flags else _ANY) + _KINDS[kind]
        used.add(f'declare {kind} @"{function}"({kind}, {kind})')
        return f'{indent}{name} = call {kind} @"{function}"({kind} {x}, {kind} {y})'

    return "\n".join([_DIVISION.sub(called, text), *sorted(used)])


def quotient_functions() -> str:
    """Return the LLVM IR of the functions that replace divisions."""
    return _TEXT + "".join(map(_of_vectors, (_ANY, _TAME)))


def _of_vectors(name: str) -> str:
    """Return a function of two vectors that calls one of two numbers for each pair."""
    kind, lines, result = "<4 x float>", [], "undef"
    for lane in range(4):
        lines += [f"%{x}{lane} = extractelement {kind} %{x}, i32 {lane}" for x in "xy"]
        lines.append(f'%q{lane} = call float @"{name}"(float %x{lane}, float %y{lane})')
        lines.append(f"%v{lane} = insertelement {kind} {result}, float %q{lane}, i32 {lane}")
        result = f"%v{lane}"
    body = "".join(f"  {line}\n" for line in lines)
    head = f'define {kind} @"{name}{_KINDS[kind]}"({kind} %x, {kind} %y) alwaysinline'
    return f"{head} {{\n{body}  ret {kind} {result}\n}}\n"
