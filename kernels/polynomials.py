# SPDX-License-Identifier: BSD-3-Clause
"""Mathematical functions of floats as straight-line code that LLVM can vectorise.

A function here takes terms and returns a term: Python operators on terms append LLVM instructions, so a body
reads like the formula and costs no type inference when a kernel is compiled.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir

_WIDTH_BITS = {"float": 32, "double": 64}


class Term:
    """A float, an integer or a truth value within the code of a kernel under construction.

    Products may be contracted with sums into fused multiply-adds where the CPU has them; nothing else is
    reassociated. Numbers become constants of the other operand's type. Shifts to the right keep the sign.
    """

    __slots__ = ("builder", "value")

    def __init__(self, builder: ir.IRBuilder, value: ir.Value) -> None:
        self.builder = builder
        self.value = value

    @property
    def is_float(self) -> bool:
        return str(self.value.type) in _WIDTH_BITS

    @property
    def bits(self) -> int:
        """The width: 32 or 64 for a float."""
        return _WIDTH_BITS[str(self.value.type)] if self.is_float else self.value.type.width

    def like(self, value: ir.Value) -> "Term":
        return Term(self.builder, value)

    def constant(self, number: float) -> "Term":
        return self.like(ir.Constant(self.value.type, float(number) if self.is_float else int(number)))

    def _operand(self, other: "Term | float") -> ir.Value:
        return other.value if isinstance(other, Term) else self.constant(other).value

    def _arithmetic(self, name: str, left: ir.Value, right: ir.Value) -> "Term":
        if self.is_float:
            return self.like(getattr(self.builder, "f" + name)(left, right, flags=("contract",)))
        return self.like(getattr(self.builder, name)(left, right))

    def __add__(self, other: "Term | float") -> "Term":
        return self._arithmetic("add", self.value, self._operand(other))

    def __radd__(self, other: float) -> "Term":
        return self._arithmetic("add", self._operand(other), self.value)

    def __sub__(self, other: "Term | float") -> "Term":
        return self._arithmetic("sub", self.value, self._operand(other))

    def __rsub__(self, other: float) -> "Term":
        return self._arithmetic("sub", self._operand(other), self.value)

    def __mul__(self, other: "Term | float") -> "Term":
        return self._arithmetic("mul", self.value, self._operand(other))

    def __rmul__(self, other: float) -> "Term":
        return self._arithmetic("mul", self._operand(other), self.value)

    def __truediv__(self, other: "Term | float") -> "Term":
        return self.like(self.builder.fdiv(self.value, self._operand(other)))

    def __rtruediv__(self, other: float) -> "Term":
        return self.like(self.builder.fdiv(self._operand(other), self.value))

    def __neg__(self) -> "Term":
        return self.like((self.builder.fneg if self.is_float else self.builder.neg)(self.value))

    def __and__(self, other: "Term | int") -> "Term":
        return self.like(self.builder.and_(self.value, self._operand(other)))

    def __or__(self, other: "Term | int") -> "Term":
        return self.like(self.builder.or_(self.value, self._operand(other)))

    def __xor__(self, other: "Term | int") -> "Term":
        return self.like(self.builder.xor(self.value, self._operand(other)))

    def __invert__(self) -> "Term":
        return self.like(self.builder.not_(self.value))

    def __lshift__(self, other: int) -> "Term":
        return self.like(self.builder.shl(self.value, self._operand(other)))

    def __rshift__(self, other: int) -> "Term":
        return self.like(self.builder.ashr(self.value, self._operand(other)))

    def _compare(self, symbol: str, other: "Term | float") -> "Term":
        compare = self.builder.fcmp_ordered if self.is_float else self.builder.icmp_signed
        return self.like(compare(symbol, self.value, self._operand(other)))

    def __lt__(self, other: "Term | float") -> "Term":
        return self._compare("<", other)

    def __le__(self, other: "Term | float") -> "Term":
        return self._compare("<=", other)

    def __gt__(self, other: "Term | float") -> "Term":
        return self._compare(">", other)

    def __ge__(self, other: "Term | float") -> "Term":
        return self._compare(">=", other)

    def equals(self, other: "Term | float") -> "Term":
        return self._compare("==", other)

    def differs(self, other: "Term | float") -> "Term":
        """Return whether the two differ; true if one is NaN."""
        compare = self.builder.fcmp_unordered if self.is_float else self.builder.icmp_signed
        return self.like(compare("!=", self.value, self._operand(other)))

    def is_nan(self) -> "Term":
        return self.differs(self)

    def as_int(self) -> "Term":
        """Return the bits of a float as an integer of the same width."""
        return self.like(self.builder.bitcast(self.value, ir.IntType(self.bits)))

    def as_float(self) -> "Term":
        """Return the float that has these bits."""
        return self.like(self.builder.bitcast(self.value, ir.FloatType() if self.bits == 32 else ir.DoubleType()))

    def to_float(self, bits: int) -> "Term":
        """Return the number as a float of a width, rounded."""
        kind = ir.FloatType() if bits == 32 else ir.DoubleType()
        if not self.is_float:
            return self.like(self.builder.sitofp(self.value, kind))
        if self.bits == bits:
            return self
        return self.like((self.builder.fptrunc if bits < self.bits else self.builder.fpext)(self.value, kind))

    def intrinsic(self, name: str, *others: "Term | float") -> "Term":
        """Return the result of an intrinsic of LLVM that is defined for every float width."""
        kind = self.value.type
        function = self.builder.module.declare_intrinsic(
            "llvm." + name, [kind], ir.FunctionType(kind, [kind] * (1 + len(others)))
        )
        return self.like(self.builder.call(function, [self.value, *map(self._operand, others)]))

    def libm(self, name: str, *others: "Term | float") -> "Term":
        """Return the result of a function of the C library, named as for doubles."""
        kind = self.value.type
        name += "f" if self.bits == 32 else ""
        module = self.builder.module
        function = module.globals.get(name)
        if function is None:
            function = ir.Function(module, ir.FunctionType(kind, [kind] * (1 + len(others))), name)
            # Without errno the function only depends on its operands, so that LLVM may move and drop calls.
            for attribute in ("nounwind", "willreturn", "memory(none)"):
                set.add(function.attributes, attribute)  # llvmlite's own list lacks memory(none)
        return self.like(self.builder.call(function, [self.value, *map(self._operand, others)]))


def select(condition: Term, yes: Term | float, no: Term | float) -> Term:
    """Return one of two terms without a branch; both are computed."""
    if not isinstance(yes, Term):
        assert isinstance(no, Term)
        yes = no.constant(yes)
    return yes.like(condition.builder.select(condition.value, yes.value, yes._operand(no)))


def polynomial(x: Term, coefficients: tuple[float, ...]) -> Term:
    """Return c[0] + c[1] x + c[2] x**2 + ... by Horner's rule."""
    result = x.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


def absolute(x: Term) -> Term:
    return x.intrinsic("fabs")


def with_sign_of(x: Term, sign: Term) -> Term:
    return x.intrinsic("copysign", sign)


def sqrt(x: Term) -> Term:
    return x.intrinsic("sqrt")


def floor(x: Term) -> Term:
    return x.intrinsic("floor")


def ceil(x: Term) -> Term:
    return x.intrinsic("ceil")


def trunc(x: Term) -> Term:
    return x.intrinsic("trunc")


def rint(x: Term) -> Term:
    return x.intrinsic("rint")


def sign(x: Term) -> Term:
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, select(x.is_nan(), x, 0.0)))


def reciprocal(x: Term) -> Term:
    return 1.0 / x


def isinf(x: Term) -> Term:
    return absolute(x).equals(float("inf"))


def isfinite(x: Term) -> Term:
    return absolute(x) < float("inf")


def _floored(x: Term, y: Term) -> tuple[Term, Term]:
    """Return the quotient rounded down and the remainder with the sign of y, for y != 0."""
    remainder = x.libm("fmod", y)
    quotient = (x - remainder) / y
    other_sign = remainder.differs(0.0) & ((remainder < 0.0) ^ (y < 0.0))
    # fmod is exact; quotient is not, and is rounded to the integer that it stands for.
    quotient = select(other_sign, quotient - 1.0, quotient)
    remainder = select(other_sign, remainder + y, remainder)
    whole = floor(quotient)
    whole = select(quotient - whole > 0.5, whole + 1.0, whole)
    whole = select(quotient.equals(0.0), with_sign_of(x.constant(0.0), x / y), whole)
    return whole, select(remainder.equals(0.0), with_sign_of(remainder, y), remainder)


def mod(x: Term, y: Term) -> Term:
    return _floored(x, y)[1]


def floordiv(x: Term, y: Term) -> Term:
    return select(y.equals(0.0), x / y, _floored(x, y)[0])


def pow(x: Term, y: Term) -> Term:
    return x.libm("pow", y)


def arctan2(y: Term, x: Term) -> Term:
    return y.libm("atan2", x)


def _from_libm(name: str) -> Callable[[Term], Term]:
    return lambda x: x.libm(name)


_LIBM = {
    "exp": "exp", "expm1": "expm1", "exp2": "exp2", "log": "log", "log2": "log2", "log10": "log10",
    "log1p": "log1p", "cbrt": "cbrt", "sin": "sin", "cos": "cos", "tan": "tan", "arcsin": "asin",
    "arccos": "acos", "arctan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "erf": "erf",
}  # fmt: skip

UNARY: dict[str, Callable[[Term], Term]] = {
    **{name: _from_libm(libm) for name, libm in _LIBM.items()},
    "sqrt": sqrt, "floor": floor, "ceil": ceil, "trunc": trunc, "rint": rint, "sign": sign,
    "reciprocal": reciprocal, "isinf": isinf, "isfinite": isfinite,
}  # fmt: skip
BINARY: dict[str, Callable[[Term, Term], Term]] = {
    "arctan2": arctan2, "pow": pow, "mod": mod, "floordiv": floordiv,
}  # fmt: skip
PREDICATES = frozenset({"isinf", "isfinite"})


def emit(name: str, builder: Any, values: Any) -> Any:
    """Append a function of floats to the code of a kernel; returns the LLVM value of its result."""
    terms = [Term(builder, value) for value in values]
    return {**UNARY, **BINARY}[name](*terms).value
