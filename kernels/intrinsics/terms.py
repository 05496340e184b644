# SPDX-License-Identifier: BSD-3-Clause
"""Terms: values within the code of a kernel under construction.

A function of terms returns a term: Python operators on terms append LLVM instructions, so a body reads like the formula
and needs no type inference when a kernel is compiled.
"""

from llvmlite import ir

INFINITY = float("inf")
NOT_A_NUMBER = float("nan")
_WIDTH_BITS = {"float": 32, "double": 64}


class _Splat(ir.Constant):  # type: ignore[misc]
    """A vector of one number in all lanes, as a short text: LLVM takes long to read long constants."""

    def __init__(self, kind: ir.Type, number: ir.Constant) -> None:
        super().__init__(kind, None)
        self._number = number

    def _get_reference(self) -> str:
        return f"splat ({self._number})"


class Term:
    """A float, an integer or a truth value within the code of a kernel under construction.

    Products may be contracted with sums into fused multiply-adds where the CPU has them; nothing else is
    reassociated. Numbers become constants of the other operand's type. Shifts to the right fill with zeros.
    """

    __slots__ = ("builder", "value")

    def __init__(self, builder: ir.IRBuilder, value: ir.Value) -> None:
        self.builder = builder
        self.value = value

    @property
    def lanes(self) -> int:
        """The number of lanes, 0 for a number."""
        return self.value.type.count if isinstance(self.value.type, ir.VectorType) else 0

    @property
    def element(self) -> ir.Type:
        return self.value.type.element if self.lanes else self.value.type

    def of(self, element: ir.Type) -> ir.Type:
        """Return the type with this element and the lanes of the term."""
        return ir.VectorType(element, self.lanes) if self.lanes else element

    @property
    def is_float(self) -> bool:
        return str(self.element) in _WIDTH_BITS

    @property
    def bits(self) -> int:
        """The width: 32 or 64 for a float."""
        return _WIDTH_BITS[str(self.element)] if self.is_float else self.element.width

    def like(self, value: ir.Value) -> "Term":
        return Term(self.builder, value)

    def constant(self, number: float) -> "Term":
        single = ir.Constant(self.element, float(number) if self.is_float else int(number))
        return self.like(_Splat(self.value.type, single) if self.lanes else single)

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

    def over(self, other: "Term") -> "Term":
        """Return the quotient, where neither it nor the divisor is near the ends of the range.

        A GPU divides such numbers by fewer instructions (compile/device_arithmetic.py). A flag that means nothing
        else for a division marks them.
        """
        return self.like(self.builder.fdiv(self.value, self._operand(other), flags=("contract",)))

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

    def __lshift__(self, other: int) -> "Term":
        return self.like(self.builder.shl(self.value, self._operand(other)))

    def __rshift__(self, other: int) -> "Term":
        return self.like(self.builder.lshr(self.value, self._operand(other)))

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
        return self.like(self.builder.bitcast(self.value, self.of(ir.IntType(self.bits))))

    def as_float(self) -> "Term":
        """Return the float that has these bits."""
        kind = ir.FloatType() if self.bits == 32 else ir.DoubleType()
        return self.like(self.builder.bitcast(self.value, self.of(kind)))

    def to_float(self, bits: int) -> "Term":
        """Return the float rounded to a width."""
        kind = self.of(ir.FloatType() if bits == 32 else ir.DoubleType())
        if self.bits == bits:
            return self
        return self.like((self.builder.fptrunc if bits < self.bits else self.builder.fpext)(self.value, kind))

    def intrinsic(self, name: str, *others: "Term | float") -> "Term":
        """Return the result of an intrinsic of LLVM that is defined for every float width."""
        kind = self.value.type
        vector = f"v{self.lanes}" if self.lanes else ""
        name = f"llvm.{name}.{vector}f{self.bits}"
        function = self.builder.module.globals.get(name)
        if function is None:
            function = ir.Function(
                self.builder.module, ir.FunctionType(kind, [kind] * (1 + len(others))), name
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

    def unless(self, rare: "Term", name: str, *arguments: "Term") -> "Term":
        """Return this term or, where the rare condition holds, a libm function, called in a branch."""
        builder, values = self.builder, [argument.value for argument in arguments]
        if self.lanes:
            variant = _masked_variant(self._wrapped(name, len(values))[0], self.lanes)
            return select(rare, self.like(builder.call(variant, [*values, rare.value])), self)
        before = builder.block
        with builder.if_then(rare.value, likely=False):
            called = builder.call(self._outlined(name, len(values)), values)
            branch = builder.block
        result = builder.phi(self.value.type)
        result.add_incoming(self.value, before)
        result.add_incoming(called, branch)
        return self.like(result)

    def _outlined(self, name: str, count: int) -> ir.Function:
        """Return a function of the C library in a wrapper that LLVM can call for vectors of its `count` operands.

        LLVM would not vectorise a loop with an unknown call, and would compute a known one such as sin for every
        element in order to avoid the branch. The wrapper has variants for vectors, which return at once if no element
        takes the branch.
        """
        function, is_new = self._wrapped(name, count)
        if is_new:
            widths = [register // self.bits for register in (128, 256, 512)]
            variants = [_masked_variant(function, lanes) for lanes in widths]
            names = ",".join(
                f"_ZGV_LLVM_M{lanes}{'v' * count}_{function.name}({variant.name})"
                for lanes, variant in zip(widths, variants, strict=True)
            )
            set.add(function.attributes, f'"vector-function-abi-variant"="{names}"')
            _keep(self.builder.module, variants)
        return function

    def _wrapped(self, name: str, count: int) -> tuple[ir.Function, bool]:
        """Return a private function that calls one of the C library, and whether it is new."""
        kind = self.element
        scalar = f"tracejit_{name}_{kind}"
        existing = self.builder.module.globals.get(scalar)
        if existing is not None:
            return existing, False
        function = _private_function(self.builder.module, scalar, kind, *[kind] * count)
        builder = ir.IRBuilder(function.append_basic_block())
        first, *others = [Term(builder, argument) for argument in function.args]
        builder.ret(first.libm(name, *others).value)
        return function, True


def _private_function(module: ir.Module, name: str, result: ir.Type, *operands: ir.Type) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(result, operands), name)
    function.linkage = "internal"
    for attribute in ("nounwind", "willreturn", "memory(none)", "noinline"):
        set.add(function.attributes, attribute)
    return function


def _masked_variant(scalar: ir.Function, lanes: int) -> ir.Function:
    """Return a function that calls a scalar function for each element, if a mask selects any."""
    name = f"{scalar.name}_{lanes}"
    existing = scalar.module.globals.get(name)
    if existing is not None:
        return existing
    kind = scalar.return_value.type
    vector = ir.VectorType(kind, lanes)
    mask_type = ir.VectorType(ir.IntType(1), lanes)
    function = _private_function(scalar.module, name, vector, *[vector] * len(scalar.args), mask_type)
    entry, body, last, done = (
        function.append_basic_block(label) for label in ("entry", "body", "last", "done")
    )
    builder = ir.IRBuilder(entry)
    *operands, mask = function.args
    bits_type = ir.IntType(lanes)
    bits = builder.bitcast(mask, bits_type)
    builder.cbranch(builder.icmp_unsigned("!=", bits, ir.Constant(bits_type, 0)), body, done)
    index_type = ir.IntType(32)
    builder.position_at_end(body)
    index, result = builder.phi(index_type), builder.phi(vector)
    element = builder.call(scalar, [builder.extract_element(operand, index) for operand in operands])
    following = builder.insert_element(result, element, index)
    next_index = builder.add(index, ir.Constant(index_type, 1))
    index.add_incoming(ir.Constant(index_type, 0), entry)
    index.add_incoming(next_index, body)
    result.add_incoming(operands[0], entry)
    result.add_incoming(following, body)
    builder.cbranch(builder.icmp_unsigned("<", next_index, ir.Constant(index_type, lanes)), body, last)
    builder.position_at_end(last)
    builder.ret(following)
    builder.position_at_end(done)
    builder.ret(operands[0])
    return function


def _keep(module: ir.Module, functions: list[ir.Function]) -> None:
    """Keep functions that nothing calls until LLVM has vectorised a loop."""
    pointer = ir.IntType(8).as_pointer()
    pointers = [function.bitcast(pointer) for function in functions]
    used = module.globals.get("llvm.compiler.used")
    if used is None:
        used = ir.GlobalVariable(module, ir.ArrayType(pointer, 0), "llvm.compiler.used")
        used.linkage, used.section = "appending", "llvm.metadata"
    else:
        pointers = [*used.initializer.constant, *pointers]
    used.value_type = ir.ArrayType(pointer, len(pointers))
    used.initializer = ir.Constant(used.value_type, pointers)


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


def at_most(x: Term, bound: float) -> Term:
    """Return the smaller one; NaN stays."""
    return select(x > bound, bound, x)


def at_least(x: Term, bound: float) -> Term:
    """Return the larger one; NaN stays."""
    return select(x < bound, bound, x)
