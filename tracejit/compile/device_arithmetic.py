# SPDX-License-Identifier: BSD-3-Clause
"""Divisions and square roots on a GPU.

Note [divisions of a GPU]
For a division rounded as in IEEE 754, NVIDIA's compiler writes 25 instructions with branches, one of them to a
function. Here float32 takes 15 without branches: with r close to 1 / d, from the instruction for that and a step of
Newton's method, the quotient is

    q = x r,  q + (x - q d) r

which is rounded right (Note [shared divisors] in kernels/intrinsics/polynomials.py, which also says why x and d are
first multiplied by a power of two). The exceptions are dividends and quotients below 1e-29, whose result may be the
neighbouring number. Where the formula gives 0 or NaN, x r with the first r is used: it has the right sign of zero, or
is infinite or NaN. Where the numbers are known to be far from all these cases (Term.over), the quotient alone takes 6
instructions. On an H100, tanh(x) sigmoid(x) of 67 million numbers was bound by these instructions.

The instruction for 1 / d of float64 has 20 bits, so that r takes two steps, and most GPUs have few units for float64.
So the formula stands alone where both numbers are between 2^-500 and 2^500, and in a branch for all others they are
first multiplied by powers of two. The exceptions are subnormal quotients.

Note [calls of a GPU]
NVIDIA's compiler divides, and takes roots, by a function where numbers are unusual. In the output of its linker
(nvJitLink 13) for capabilities below 9.0, a call keeps no more than about half of the registers, so that a kernel that
has a row in registers stores and loads the others around each call. And for what follows the call, the threads of a
group count as apart, so that their next exchange has one more call. The gradients of a layer normalisation, 16 elements
of float32 for each thread, took all 255 registers and 120 bytes of memory for the square root of one number; without
calls they take 179 registers. So divisions and square roots are instructions of our own:

    y close to 1 / sqrt(x),  s = x y,  s + (x - s s) y / 2
"""

import re
from collections.abc import Sequence

from tracejit.util.named_tuples import NamedTuple

_LANES = 4  # of vectors
_ANY, _TAME = "quotient", "tame_quotient"  # of numbers, and of those that Term.over divides
_ROOT = "root"


class _Format(NamedTuple):
    """A format of numbers: its name in LLVM, and in the names of LLVM's functions, and its functions as LLVM IR."""

    kind: str
    mangled: str
    text: str


# The step of Newton's method, and the quotient of %n and %d.
_CORRECTED_SINGLE = """
  %minus_d = fneg float %d
  %error = call float @llvm.fma.f32(float %minus_d, float %guess, float 1.0)
  %r = call float @llvm.fma.f32(float %error, float %guess, float %guess)
  %q = fmul float %n, %r
  %rest = call float @llvm.fma.f32(float %minus_d, float %q, float %n)
  %corrected = call float @llvm.fma.f32(float %rest, float %r, float %q)"""


def _power(exponent: int) -> str:
    """Return a power of two as LLVM writes it."""
    return f"0x{(1023 + exponent) << 52:016X}"


_FAR, _NEAR, _ROOT_NEAR = _power(64), _power(-64), _power(-32)
_INFINITY = "0x7FF0000000000000"


def _own_roots(kind: str, otherwise: str, result: str) -> str:
    """Return the lines that give a number itself if it is its own root, 0 or infinity, and another one otherwise."""
    return f"""
  %is_zero = fcmp oeq {kind} %x, 0.0
  %is_infinite = fcmp oeq {kind} %x, {_INFINITY}
  %is_own_root = or i1 %is_zero, %is_infinite
  %{result} = select i1 %is_own_root, {kind} %x, {kind} %{otherwise}"""


_SINGLE_TEXT = f"""
declare float @llvm.fabs.f32(float)
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.nvvm.rcp.approx.ftz.f(float)
declare float @llvm.nvvm.rsqrt.approx.ftz.f(float)
define float @"tracejit.{_ANY}.f32"(float %x, float %y) alwaysinline {{
  %size = call float @llvm.fabs.f32(float %y)
  %is_large = fcmp ogt float %size, {_FAR}
  %is_small = fcmp olt float %size, {_NEAR}
  %up = select i1 %is_small, float {_FAR}, float 1.0
  %scale = select i1 %is_large, float {_NEAR}, float %up
  %d = fmul float %y, %scale
  %n = fmul float %x, %scale
  %guess = call float @llvm.nvvm.rcp.approx.ftz.f(float %d){_CORRECTED_SINGLE}
  %far = call float @llvm.fabs.f32(float %corrected)
  %counts = fcmp ogt float %far, 0.0
  %simple = fmul float %n, %guess
  %result = select i1 %counts, float %corrected, float %simple
  ret float %result
}}
define float @"tracejit.{_TAME}.f32"(float %n, float %d) alwaysinline {{
  %guess = call float @llvm.nvvm.rcp.approx.ftz.f(float %d){_CORRECTED_SINGLE}
  ret float %corrected
}}
define float @"tracejit.{_ROOT}.f32"(float %x) alwaysinline {{
  %is_small = fcmp olt float %x, {_NEAR}
  %up = select i1 %is_small, float {_FAR}, float 1.0
  %down = select i1 %is_small, float {_ROOT_NEAR}, float 1.0
  %d = fmul float %x, %up
  %guess = call float @llvm.nvvm.rsqrt.approx.ftz.f(float %d)
  %s = fmul float %d, %guess
  %half = fmul float %guess, 0.5
  %minus_s = fneg float %s
  %rest = call float @llvm.fma.f32(float %minus_s, float %s, float %d)
  %corrected = call float @llvm.fma.f32(float %rest, float %half, float %s)
  %root = fmul float %corrected, %down{_own_roots("float", "root", "result")}
  ret float %result
}}
"""

# The first step from 20 bits has a term more, so that it gives 60. A guess that is not a number of few bits keeps the
# last step from a tie for divisors whose bits are all ones.
_CORRECTED_DOUBLE = """
  %few_bits = bitcast double %estimate to i64
  %more_bits = or i64 %few_bits, 1
  %guess = bitcast i64 %more_bits to double
  %minus_d = fneg double %d
  %error = call double @llvm.fma.f64(double %minus_d, double %guess, double 1.0)
  %errors = call double @llvm.fma.f64(double %error, double %error, double %error)
  %first = call double @llvm.fma.f64(double %errors, double %guess, double %guess)
  %last = call double @llvm.fma.f64(double %minus_d, double %first, double 1.0)
  %r = call double @llvm.fma.f64(double %last, double %first, double %first)
  %q = fmul double %n, %r
  %rest = call double @llvm.fma.f64(double %minus_d, double %q, double %n)
  %corrected = call double @llvm.fma.f64(double %rest, double %r, double %q)"""

_CORRECTED_ROOT = """
  %guess = call double @llvm.nvvm.rsqrt.approx.ftz.d(double %d)
  %square = fmul double %guess, %guess
  %minus_square = fneg double %square
  %error = call double @llvm.fma.f64(double %d, double %minus_square, double 1.0)
  %term = call double @llvm.fma.f64(double %error, double 0.375, double 0.5)
  %step = fmul double %guess, %error
  %y = call double @llvm.fma.f64(double %term, double %step, double %guess)
  %s = fmul double %d, %y
  %half = fmul double %y, 0.5
  %minus_s = fneg double %s
  %rest = call double @llvm.fma.f64(double %minus_s, double %s, double %d)
  %corrected = call double @llvm.fma.f64(double %rest, double %half, double %s)"""


_LEAST, _MOST = (1023 - 500) << 20, (1023 + 500) << 20  # upper halves of 2^-500 and 2^500
_BOUND, _STEP = 340, 342  # numbers beyond 2^340 come between 2^-400 and 2^400 by 2^(2 * 342)


def _is_usual(name: str, number: str) -> str:
    """Return the lines that say whether a float64 is between 2^-500 and 2^500."""
    return f"""
  %{name}_bits = bitcast double %{number} to i64
  %{name}_high = lshr i64 %{name}_bits, 32
  %{name}_word = trunc i64 %{name}_high to i32
  %{name}_size = and i32 %{name}_word, 2147483647
  %{name}_above = sub i32 %{name}_size, {_LEAST}
  %{name}_is_usual = icmp ult i32 %{name}_above, {_MOST - _LEAST}"""


def _scaled(name: str, number: str) -> str:
    """Return the lines that bring a float64 between 2^-400 and 2^400 by a power of two.

    `half` is its square root, and `back` one over that.
    """
    return f"""
  %{name}_abs = call double @llvm.fabs.f64(double %{number})
  %{name}_is_large = fcmp ogt double %{name}_abs, {_power(_BOUND)}
  %{name}_is_small = fcmp olt double %{name}_abs, {_power(-_BOUND)}
  %{name}_small_half = select i1 %{name}_is_small, double {_power(_STEP)}, double 1.0
  %{name}_half = select i1 %{name}_is_large, double {_power(-_STEP)}, double %{name}_small_half
  %{name}_small_back = select i1 %{name}_is_small, double {_power(-_STEP)}, double 1.0
  %{name}_back = select i1 %{name}_is_large, double {_power(_STEP)}, double %{name}_small_back
  %{name}_once = fmul double %{number}, %{name}_half
  %{name} = fmul double %{name}_once, %{name}_half"""


_ESTIMATE = "\n  %estimate = call double @llvm.nvvm.rcp.approx.ftz.d(double %d)"
_DOUBLE_TEXT = f"""
declare double @llvm.fabs.f64(double)
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.nvvm.rcp.approx.ftz.d(double)
declare double @llvm.nvvm.rsqrt.approx.ftz.d(double)
define double @"tracejit.{_ANY}.f64"(double %x, double %y) alwaysinline {{
entry:{_is_usual("of_x", "x")}{_is_usual("of_y", "y")}
  %are_usual = and i1 %of_x_is_usual, %of_y_is_usual
  br i1 %are_usual, label %usual, label %other
usual:
  %fast = call double @"tracejit.{_TAME}.f64"(double %x, double %y)
  br label %end
other:{_scaled("n", "x")}{_scaled("d", "y")}{_ESTIMATE}{_CORRECTED_DOUBLE}
  %far = call double @llvm.fabs.f64(double %corrected)
  %counts = fcmp ogt double %far, 0.0
  %simple = fmul double %n, %estimate
  %scaled = select i1 %counts, double %corrected, double %simple
  %factor = fmul double %n_back, %d_half
  %once = fmul double %scaled, %factor
  %slow = fmul double %once, %factor
  br label %end
end:
  %result = phi double [ %fast, %usual ], [ %slow, %other ]
  ret double %result
}}
define double @"tracejit.{_TAME}.f64"(double %n, double %d) alwaysinline {{{_ESTIMATE}{_CORRECTED_DOUBLE}
  ret double %corrected
}}
define double @"tracejit.usual_root"(double %d) alwaysinline {{{_CORRECTED_ROOT}
  ret double %corrected
}}
define double @"tracejit.{_ROOT}.f64"(double %x) alwaysinline {{
entry:{_is_usual("of_x", "x")}
  %is_positive = icmp sgt i32 %of_x_word, 0
  %is_usual = and i1 %of_x_is_usual, %is_positive
  br i1 %is_usual, label %usual, label %other
usual:
  %fast = call double @"tracejit.usual_root"(double %x)
  br label %end
other:{_scaled("d", "x")}
  %scaled = call double @"tracejit.usual_root"(double %d)
  %root = fmul double %scaled, %d_back{_own_roots("double", "root", "slow")}
  br label %end
end:
  %result = phi double [ %fast, %usual ], [ %slow, %other ]
  ret double %result
}}
"""

_FORMATS = {
    number.kind: number
    for number in (_Format("float", "f32", _SINGLE_TEXT), _Format("double", "f64", _DOUBLE_TEXT))
}
_KIND = rf"(?:<{_LANES} x )?({'|'.join(_FORMATS)})>?"
_DIVISION = re.compile(
    rf'^(\s*)(%"?[\w.$-]+"?) = fdiv((?: \w+)*?) ({_KIND}) ([^,\n]+), (%"?[\w.$-]+"?)$', re.MULTILINE
)
_SQUARE_ROOT = re.compile(rf'@"?llvm\.sqrt\.(v{_LANES})?(f32|f64)"?(?=\()')


def with_own_arithmetic(text: str) -> str:
    """Return LLVM IR whose divisions and square roots are calls of arithmetic_functions()."""
    used = set()

    def division(match: re.Match[str]) -> str:
        indent, name, flags, kind, number, x, y = match.groups()
        function = _name(_TAME if "contract" in flags else _ANY, _FORMATS[number].mangled, kind != number)
        used.add(f"declare {kind} {function}({kind}, {kind})")
        return f"{indent}{name} = call {kind} {function}({kind} {x}, {kind} {y})"

    def root(match: re.Match[str]) -> str:
        return _name(_ROOT, match[2], match[1] is not None)

    return "\n".join([_SQUARE_ROOT.sub(root, _DIVISION.sub(division, text)), *sorted(used)])


def arithmetic_functions() -> str:
    """Return the LLVM IR of the functions that replace divisions and square roots."""
    texts = []
    for number in _FORMATS.values():
        vectors = [_of_vectors(number, name, "xy") for name in (_ANY, _TAME)]
        texts += [number.text, *vectors, _of_vectors(number, _ROOT, "x")]
    return "".join(texts)


def _name(function: str, mangled: str, is_vector: bool) -> str:
    return f'@"tracejit.{function}.{mangled}{f".x{_LANES}" if is_vector else ""}"'


def _of_vectors(number: _Format, function: str, operands: Sequence[str]) -> str:
    """Return a function of vectors that calls one of numbers for each lane."""
    one, kind, lines, result = number.kind, f"<{_LANES} x {number.kind}>", [], "undef"
    for lane in range(_LANES):
        lines += [f"%{x}{lane} = extractelement {kind} %{x}, i32 {lane}" for x in operands]
        taken = ", ".join([f"{one} %{x}{lane}" for x in operands])
        lines.append(f"%q{lane} = call {one} {_name(function, number.mangled, False)}({taken})")
        lines.append(f"%v{lane} = insertelement {kind} {result}, {one} %q{lane}, i32 {lane}")
        result = f"%v{lane}"
    body = "".join(f"  {line}\n" for line in lines)
    taken = ", ".join([f"{kind} %{x}" for x in operands])
    head = f"define {kind} {_name(function, number.mangled, True)}({taken}) alwaysinline"
    return f"{head} {{\n{body}  ret {kind} {result}\n}}\n"
