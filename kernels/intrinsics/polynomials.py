# SPDX-License-Identifier: BSD-3-Clause
"""Mathematical functions of floats as straight-line code that LLVM can vectorise.

A function here takes terms and returns a term: Python operators on terms append LLVM instructions, so a body
reads like the formula and costs no type inference when a kernel is compiled.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir

_WIDTH_BITS = {"float": 32, "double": 64}


class _Splat(ir.Constant):  # type: ignore[misc]
    """A vector of one number in all lanes, written in a few characters: long constants take long to read."""

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
        """How many numbers the term stands for: 0 if it is no vector."""
        return self.value.type.count if isinstance(self.value.type, ir.VectorType) else 0

    @property
    def element(self) -> ir.Type:
        return self.value.type.element if self.lanes else self.value.type

    def of(self, element: ir.Type) -> ir.Type:
        """Return the type of as many elements as the term has."""
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
        """Return the float as one of a width, rounded."""
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

    def unless(self, rare: "Term", name: str, argument: "Term") -> "Term":
        """Return this term or, where the rare condition holds, a libm function, called in a branch."""
        builder = self.builder
        if self.lanes:
            variant = _masked_variant(argument._wrapped(name)[0], self.lanes)
            return select(rare, self.like(builder.call(variant, [argument.value, rare.value])), self)
        before = builder.block
        with builder.if_then(rare.value, likely=False):
            called = builder.call(argument._outlined(name), [argument.value])
            branch = builder.block
        result = builder.phi(self.value.type)
        result.add_incoming(self.value, before)
        result.add_incoming(called, branch)
        return self.like(result)

    def _outlined(self, name: str) -> ir.Function:
        """Return a function of the C library in a wrapper that LLVM can call for a vector of operands.

        LLVM would not vectorise a loop with an unknown call, and would compute a known one such as sin for
        every element in order to avoid the branch. Of the wrapper it knows variants for vectors, which return
        at once if the branch is taken for no element.
        """
        function, is_new = self._wrapped(name)
        if is_new:
            widths = [register // self.bits for register in (128, 256, 512)]
            variants = [_masked_variant(function, lanes) for lanes in widths]
            names = ",".join(
                f"_ZGV_LLVM_M{lanes}v_{function.name}({variant.name})"
                for lanes, variant in zip(widths, variants, strict=True)
            )
            set.add(function.attributes, f'"vector-function-abi-variant"="{names}"')
            _keep(self.builder.module, variants)
        return function

    def _wrapped(self, name: str) -> tuple[ir.Function, bool]:
        """Return a private function that calls one of the C library, and whether it was made now."""
        kind = self.element
        scalar = f"tracejit_{name}_{kind}"
        known = self.builder.module.globals.get(scalar)
        if known is not None:
            return known, False
        function = _private_function(self.builder.module, scalar, kind, kind)
        inner = Term(ir.IRBuilder(function.append_basic_block()), function.args[0])
        inner.builder.ret(inner.libm(name).value)
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
    known = scalar.module.globals.get(name)
    if known is not None:
        return known
    kind = scalar.return_value.type
    vector = ir.VectorType(kind, lanes)
    mask_type = ir.VectorType(ir.IntType(1), lanes)
    function = _private_function(scalar.module, name, vector, vector, mask_type)
    entry, body, last, done = (
        function.append_basic_block(label) for label in ("entry", "body", "last", "done")
    )
    builder = ir.IRBuilder(entry)
    operand, mask = function.args
    bits_type = ir.IntType(lanes)
    bits = builder.bitcast(mask, bits_type)
    builder.cbranch(builder.icmp_unsigned("!=", bits, ir.Constant(bits_type, 0)), body, done)
    index_type = ir.IntType(32)
    builder.position_at_end(body)
    index, result = builder.phi(index_type), builder.phi(vector)
    element = builder.call(scalar, [builder.extract_element(operand, index)])
    following = builder.insert_element(result, element, index)
    next_index = builder.add(index, ir.Constant(index_type, 1))
    index.add_incoming(ir.Constant(index_type, 0), entry)
    index.add_incoming(next_index, body)
    result.add_incoming(operand, entry)
    result.add_incoming(following, body)
    builder.cbranch(builder.icmp_unsigned("<", next_index, ir.Constant(index_type, lanes)), body, last)
    builder.position_at_end(last)
    builder.ret(following)
    builder.position_at_end(done)
    builder.ret(operand)
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


class _Format(NamedTuple):
    """What a function needs to know about a float format: layout, split constants, minimax coefficients.

    The coefficients minimise the largest relative error of the function named by the field over its reduced
    range; a comment gives that error. A constant in several parts is their sum: the first parts have so few
    bits that their products with the integers that occur are exact.
    """

    mantissa: int  # stored bits
    bias: int  # of the exponent
    shifter: float  # 1.5 * 2**mantissa: adding it rounds to an integer, which the low bits then hold
    counter: int  # bits of 2**mantissa: "or" puts an integer >= 0 into the low bits of this float
    smallest_normal: float
    sqrt_half: int  # bits of the square root of 1/2
    log_2: tuple[float, float]
    log10_2: tuple[float, float]
    half_pi: tuple[float, float]
    exp_low: float  # below, exp is 0
    exp_high: float  # above, exp is infinite
    expm1_low: float  # below, expm1 is -1
    sinh_high: float  # above, sinh is infinite
    tanh_high: float  # above, tanh is 1
    erf_high: float  # above, erf is 1
    square_high: float  # above, x**2 + 1 is x**2
    angle_high: float  # above, arctan2 scales its operands, so that their sum stays finite
    cbrt_scale: float  # its cube, a power of two, brings subnormal numbers into the normal range
    exp: tuple[float, ...]  # (e**r - 1 - r) / r**2, |r| <= log(2) / 2
    log: tuple[float, ...]  # ((log(1 + s) - log(1 - s)) / s - 2) / z, z = s**2, |s| <= 0.1716
    sin: tuple[float, ...]  # (sin(r) / r - 1) / z, z = r**2, |r| <= pi / 4
    cos: tuple[float, ...]  # (cos(r) - 1 + z / 2) / z**2
    arctan: tuple[float, ...]  # (arctan(t) / t - 1) / z, z = t**2, |t| <= tan(pi / 8)
    arcsin: tuple[float, ...]  # (arcsin(t) / t - 1) / z, z = t**2, |t| <= 1/2
    erf: tuple[float, ...]  # erf(x) / x - 1, of x**2, |x| <= 1
    log_erfc: tuple[float, ...]  # log(1 - erf(x)), of x, 1 <= x <= erf_high
    cbrt: tuple[float, ...]  # (1 + d)**(-1/3), |d| <= 0.11


_F32 = _Format(
    mantissa=23,
    bias=127,
    shifter=12582912.0,
    counter=0x4B000000,
    smallest_normal=2.0**-126,
    sqrt_half=0x3F3504F3,
    log_2=(0.693145751953125, 1.428606765330187e-06),
    log10_2=(0.301025390625, 4.605039066518657e-06),
    half_pi=(1.5707963705062866, -4.371138828673793e-08),
    exp_low=-104.0,
    exp_high=89.0,
    expm1_low=-20.0,
    sinh_high=89.5,
    tanh_high=10.0,
    erf_high=4.0,
    square_high=2.0**13,
    angle_high=2.0**100,
    cbrt_scale=2.0**8,
    exp=(0.49999997, 0.166665435, 0.0416675173, 0.00836654287, 0.00138631929),  # 2**-26
    log=(0.666666627, 0.400009722, 0.284987807, 0.242794067),  # 2**-35
    sin=(-0.166666552, 0.00833218824, -0.000195180721),  # 2**-28
    cos=(0.0416666456, -0.00138873106, 2.44325383e-05),  # 2**-33
    arctan=(-0.333333164, 0.19998531, -0.142444685, 0.10599798, -0.0609167665),  # 2**-30
    arcsin=(0.166667536, 0.0749525279, 0.0454757996, 0.0241538882, 0.0422079861),  # 2**-27
    erf=(
        0.128379166, -0.37612626, 0.11283581, -0.0268535465, 0.00518774055, -0.000800463313, 7.8346995e-05,
    ),  # 2**-29
    log_erfc=(
        0.000189537939, -1.12958503, -0.633207679, -0.108430855, 0.0252154954, -0.00420706393,
        0.000441805809, -2.17237448e-05,
    ),  # 2**-35
    cbrt=(0.999997318, -0.333326787, 0.223982051, -0.174828336),  # 2**-18
)  # fmt: skip

_F64 = _Format(
    mantissa=52,
    bias=1023,
    shifter=6755399441055744.0,
    counter=0x4330000000000000,
    smallest_normal=2.0**-1022,
    sqrt_half=0x3FE6A09E667F3BCD,
    log_2=(0.6931471806019545, -4.2009150726810846e-11),
    log10_2=(0.3010299956658855, -1.9043128467164274e-12),
    half_pi=(1.5707963267948966, 6.123233995736766e-17),
    exp_low=-746.0,
    exp_high=710.0,
    expm1_low=-40.0,
    sinh_high=710.5,
    tanh_high=20.0,
    erf_high=6.0,
    square_high=2.0**28,
    angle_high=2.0**1000,
    cbrt_scale=2.0**18,
    exp=(
        0.5, 0.16666666666666677, 0.04166666666666651, 0.008333333333321653, 0.001388888888896203,
        0.0001984126988607621, 2.4801587173366375e-05, 2.755724425224002e-06, 2.755740181360789e-07,
        2.5109024938410886e-08, 2.0875622570800565e-09,
    ),  # 2**-60
    log=(
        0.6666666666666735, 0.3999999999941281, 0.285714287428342, 0.22222198524083267, 0.1818356704506868,
        0.1531397682758349, 0.14796727792968162,
    ),  # 2**-58
    sin=(
        -0.1666666666666663, 0.008333333333322005, -0.00019841269829496327, 2.7557313587962467e-06,
        -2.5050742365840903e-08, 1.5895908213297248e-10,
    ),  # 2**-56
    cos=(
        0.041666666666666595, -0.001388888888887288, 2.480158728874017e-05, -2.7557314146624726e-07,
        2.087569633442576e-09, -1.1358299551199918e-11,
    ),  # 2**-59
    arctan=(
        -0.333333333333332, 0.1999999999995382, -0.14285714280221662, 0.11111110784766355,
        -0.09090897796182842, 0.07692060906682122, -0.06663111927170795, 0.058479463165110095,
        -0.050395588648330186, 0.03807092691084393, -0.01791406540132948,
    ),  # 2**-59
    arcsin=(
        0.16666666666666763, 0.07499999999970303, 0.044642857175078925, 0.03038194268570802,
        0.022372215599838433, 0.017351601197206742, 0.01398094804215507, 0.011397886570917514,
        0.010785906116691666, 0.0036854019329970547, 0.021757748891223064, -0.021069152205116452,
        0.0326718020489611,
    ),  # 2**-58
    erf=(
        0.1283791670955126, -0.3761263890318375, 0.11283791670954857, -0.026866170645072886,
        0.00522397762478079, -0.0008548326978737888, 0.00012055331036744905, -1.4925593503236107e-05,
        1.6460972759425727e-06, -1.6350024622884217e-07, 1.465787588172751e-08, -1.13656509388007e-09,
        5.945236818271655e-11,
    ),  # 2**-56
    log_erfc=(
        -1.7797586529676376e-07, -1.1283773452884986, -0.6366284161257622, -0.10274745687754507,
        0.01907855451490026, 0.0002799155296028991, -0.001768371997727977, 0.0006406345107628069,
        -4.4458028496453597e-05, -7.056324859019049e-05, 4.512208117346439e-05, -1.65430148846683e-05,
        4.3349369280866234e-06, -8.522471355796339e-07, 1.2597549249165043e-07, -1.3658919415000293e-08,
        1.0283605111253746e-09, -4.809621597653405e-11, 1.0528515923364875e-12,
    ),  # 2**-56
    cbrt=(
        1.0000000062533576, -0.33333335625239435, 0.22221293888982374, -0.1728253986160461,
        0.14607073307714682, -0.12704997706708968,
    ),  # 2**-27
)  # fmt: skip

_LOG2_E = 1.4426950408889634
_LOG10_E = 0.4342944819032518
_TWO_OVER_PI = 0.6366197723675814
_TAN_EIGHTH_PI = 0.41421356237309503

# In three parts of 33, 33 and 53 bits: n times the first two is exact for |n| < 2**20.
_HALF_PI_PARTS = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
_REDUCIBLE = {32: 1.0e5, 64: 1.0e6}

# log2 of a float32 to 2**-45 and 2**r to 2**-29, so that x**y is right to float32 for every y.
_LOG2_OF_F32 = (
    2.8853900817778495, 0.9617966941143484, 0.5770779420722443, 0.4122092820591592, 0.3199044723170384,
    0.2829177857076467,
)  # fmt: skip
_EXP2_TO_F32 = (
    1.000000000558863, 0.6931472057722493, 0.2402264685113115, 0.05550328705586042, 0.009618493075800955,
    0.0013399959017780074, 0.0001534477300619212,
)  # fmt: skip

# For x**y of float64: 2 / (3 log 2) in two parts, and (3 arctanh(s) / s - 3 - z) / z**2, z = s**2, to 2**-50.
_TWO_THIRDS_LOG2_E = (0.9617962837219238, 4.102040517767816e-07)
_POW_REST = (
    0.6000000000000004, 0.42857142857007, 0.3333333340693966, 0.27272712329864446, 0.23078364964909523,
    0.19928849925602274, 0.19371438774976288,
)  # fmt: skip

_INF = float("inf")
_NAN = float("nan")


def _format(x: Term) -> _Format:
    return _F32 if x.bits == 32 else _F64


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


def sign(x: Term) -> Term:
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, select(x.is_nan(), x, 0.0)))


def reciprocal(x: Term) -> Term:
    return 1.0 / x


def isinf(x: Term) -> Term:
    return absolute(x).equals(_INF)


def isfinite(x: Term) -> Term:
    return absolute(x) < _INF


# Note [powers of two]
# Adding the shifter to a number below 2**(mantissa - 1) leaves the nearest integer n in the low bits of the
# sum. With the bias of the exponent added to the shifter beforehand, the bits of 2**n are those bits shifted
# to the left; the shift drops the rest of the shifter. So floats become integers without a conversion: AVX2
# has none for 64 bits.


def _nearest(x: Term, offset: float = 0.0) -> tuple[Term, Term]:
    """Return the nearest integer n as a float, and bits of which the low ones hold n + offset."""
    shifter = _format(x).shifter + offset
    shifted = x + shifter
    return shifted - shifter, shifted.as_int()


def _power_of_two(raw: Term) -> Term:
    """Return 2**n, a normal number, from the bits of n + bias as in Note [powers of two]."""
    return (raw << (_F32 if raw.bits == 32 else _F64).mantissa).as_float()


def _times_power_of_two(x: Term, raw: Term) -> Term:
    """Return x * 2**n from the bits of n + 2 bias, in two steps: 2**n itself may be no normal number."""
    half = raw >> 1
    return x * _power_of_two(half) * _power_of_two(raw - half)


def _split_exponent(x: Term, offset: int) -> tuple[Term, Term]:
    """Return r and bits of n + offset, where x = r + n log 2."""
    high, low = _format(x).log_2
    n, raw = _nearest(x * _LOG2_E, offset)
    return x - n * high - n * low, raw


def _exp_reduced(r: Term) -> Term:
    return polynomial(r, (1.0, 1.0, *_format(r).exp))


def _expm1_reduced(r: Term) -> Term:
    return r + r * r * polynomial(r, _format(r).exp)


def exp(x: Term) -> Term:
    form = _format(x)
    r, raw = _split_exponent(at_least(at_most(x, form.exp_high), form.exp_low), 2 * form.bias)
    return _times_power_of_two(_exp_reduced(r), raw)


def exp2(x: Term) -> Term:
    form = _format(x)
    x = at_least(at_most(x, form.bias + 1.0), -1.0 - form.bias - form.mantissa)
    n, raw = _nearest(x, 2 * form.bias)
    return _times_power_of_two(_exp_reduced((x - n) * sum(form.log_2)), raw)


def _quarter_expm1(x: Term) -> Term:
    """Return (e**x - 1) / 4: in quarters nothing is infinite that is finite in the end."""
    r, raw = _split_exponent(x, _format(x).bias - 2)
    scale = _power_of_two(raw)
    return scale * _expm1_reduced(r) + (scale - 0.25)


def _or_itself_if_tiny(x: Term, result: Term) -> Term:
    """Return x where a quarter of it would be subnormal, else the result."""
    return select(absolute(x) < _format(x).smallest_normal * 4.0, x, result)


def expm1(x: Term) -> Term:
    form = _format(x)
    quarter = _quarter_expm1(at_least(at_most(x, form.sinh_high), form.expm1_low))
    return with_sign_of(_or_itself_if_tiny(x, quarter * 4.0), x)


def tanh(x: Term) -> Term:
    form = _format(x)
    quarter = _quarter_expm1(at_most(absolute(x), form.tanh_high) * 2.0)
    return with_sign_of(_or_itself_if_tiny(x, quarter / (quarter + 0.5)), x)


def sinh(x: Term) -> Term:
    form = _format(x)
    quarter = _quarter_expm1(at_most(absolute(x), form.sinh_high))
    return with_sign_of(_or_itself_if_tiny(x, quarter * 2.0 + quarter / (quarter * 2.0 + 0.5)), x)


def cosh(x: Term) -> Term:
    form = _format(x)
    r, raw = _split_exponent(at_most(absolute(x), form.sinh_high), form.bias - 2)
    quarter = _power_of_two(raw) * _exp_reduced(r)
    return quarter * 2.0 + 0.125 / quarter


def _split_logarithm(x: Term) -> tuple[Term, Term]:
    """Return m - 1 and n with x = m * 2**n and m between the square roots of 1/2 and 2, for normal x > 0."""
    form = _format(x)
    shifted = x.as_int() - form.sqrt_half
    exponent = (shifted + (form.bias << form.mantissa)) >> form.mantissa
    n = (exponent | form.counter).as_float() - (2.0**form.mantissa + form.bias)
    return ((shifted & ((1 << form.mantissa) - 1)) + form.sqrt_half).as_float() - 1.0, n


def _split_any_logarithm(x: Term) -> tuple[Term, Term]:
    """Return what `_split_logarithm` returns, for subnormal x as well."""
    form = _format(x)
    subnormal = x < form.smallest_normal
    fraction, n = _split_logarithm(select(subnormal, x * 2.0**form.mantissa, x))
    return fraction, select(subnormal, n - float(form.mantissa), n)


def _logarithm_of_mantissa(f: Term, addend: Term | float = 0.0) -> Term:
    """Return log(1 + f) + addend, where the addend is small."""
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    # log(1 + f) = 2 s + s z P(z), rewritten around f, which is exact.
    return f - (half_square - (s * (half_square + z * polynomial(z, _format(f).log)) + addend))


def _logarithm_or_limit(result: Term, x: Term) -> Term:
    """Return the result where it is defined, else infinity or NaN, as for log(x)."""
    return select(x > 0.0, select(x < _INF, result, _INF), select(x.equals(0.0), -_INF, x.constant(_NAN)))


def log(x: Term) -> Term:
    high, low = _format(x).log_2
    f, n = _split_any_logarithm(x)
    return _logarithm_or_limit(n * high + _logarithm_of_mantissa(f, n * low), x)


def log2(x: Term) -> Term:
    f, n = _split_any_logarithm(x)
    return _logarithm_or_limit(n + _logarithm_of_mantissa(f) * _LOG2_E, x)


def log10(x: Term) -> Term:
    high, low = _format(x).log10_2
    f, n = _split_any_logarithm(x)
    return _logarithm_or_limit(n * high + (n * low + _logarithm_of_mantissa(f) * _LOG10_E), x)


def log1p(x: Term) -> Term:
    high, low = _format(x).log_2
    total = x + 1.0
    f, n = _split_logarithm(total)
    # What the sum 1 + x lost is added to the logarithm to first order.
    lost = select(n > 0.0, 1.0 - (total - x), x - (total - 1.0)) / total
    near_one = n.equals(0.0)
    f, lost = select(near_one, x, f), select(near_one, 0.0, lost)
    return with_sign_of(_logarithm_or_limit(n * high + _logarithm_of_mantissa(f, n * low + lost), total), x)


def arcsinh(x: Term) -> Term:
    form = _format(x)
    size = absolute(x)
    large = size > form.square_high
    square = size * size
    inner = select(large, size - 1.0, size + square / (sqrt(square + 1.0) + 1.0))
    return with_sign_of(log1p(inner) + select(large, size.constant(sum(form.log_2)), 0.0), x)


def arccosh(x: Term) -> Term:
    form = _format(x)
    large = x > form.square_high
    over = x - 1.0
    inner = select(large, over, over + sqrt(over * over + over * 2.0))
    result = log1p(inner) + select(large, x.constant(sum(form.log_2)), 0.0)
    return select(x >= 1.0, result, _NAN)


def arctanh(x: Term) -> Term:
    size = absolute(x)
    return with_sign_of(log1p(size * 2.0 / (1.0 - size)) * 0.5, x)


def _quarter_turns(x: Term) -> tuple[Term, Term]:
    """Return r and raw bits of n with x = r + n pi/2 and r in [-pi/4, pi/4], for x that is not huge."""
    nearest, raw = _nearest(x * _TWO_OVER_PI)
    n, r = nearest.to_float(64), x.to_float(64)
    # A float32 leaves room in a float64 for a shorter sum.
    first, second, third = _HALF_PI_PARTS
    r = r - n * first
    if x.bits == 32:
        r = r - n * (second + third)
    else:
        rounded = r - n * second
        lost = (r - rounded) - n * second
        r = rounded - (n * third - lost)
    return r.to_float(x.bits), raw


def _sine_and_cosine(r: Term) -> tuple[Term, Term]:
    form = _format(r)
    z = r * r
    half = z * 0.5
    rounded = 1.0 - half
    lost = (1.0 - rounded) - half
    sine = with_sign_of(r + r * (z * polynomial(z, form.sin)), r)
    return sine, rounded + (z * z * polynomial(z, form.cos) + lost)


def _unless_huge(name: str, x: Term, result: Term) -> Term:
    """Return the result, or that of the C library for arguments that need hundreds of digits of pi."""
    return result.unless(absolute(x) > _REDUCIBLE[x.bits], name, x)


def _circular(x: Term, quarter: int) -> Term:
    r, raw = _quarter_turns(x)
    sine, cosine = _sine_and_cosine(r)
    raw = raw + quarter
    result = select((raw & 1).differs(0), cosine, sine)
    return (result.as_int() ^ ((raw & 2) << (x.bits - 2))).as_float()


def sin(x: Term) -> Term:
    return _unless_huge("sin", x, _circular(x, 0))


def cos(x: Term) -> Term:
    return _unless_huge("cos", x, _circular(x, 1))


def tan(x: Term) -> Term:
    r, raw = _quarter_turns(x)
    sine, cosine = _sine_and_cosine(r)
    odd = (raw & 1).differs(0)
    return _unless_huge("tan", x, select(odd, cosine, sine) / select(odd, -sine, cosine))


def _angle(small: Term, large: Term) -> Term:
    """Return arctan(small / large) for 0 <= small <= large with one division."""
    form = _format(small)
    wide = small > large * _TAN_EIGHTH_PI
    t = select(wide, small - large, small) / select(wide, small + large, large)
    z = t * t
    high, low = form.half_pi
    correction = t * (z * polynomial(z, form.arctan)) + select(wide, t.constant(low / 2.0), 0.0)
    return select(wide, t.constant(high / 2.0), 0.0) + (t + correction)


def _from(constant: tuple[float, float], x: Term) -> Term:
    """Return the constant minus x."""
    return constant[0] - (x - constant[1])


def arctan(x: Term) -> Term:
    size = absolute(x)
    steep = size > 1.0
    angle = _angle(select(steep, 1.0, size), select(steep, size, 1.0))
    return with_sign_of(select(steep, _from(_format(x).half_pi, angle), angle), x)


def arctan2(y: Term, x: Term) -> Term:
    form = _format(x)
    rise, run = absolute(y), absolute(x)
    steep = rise > run
    small, large = select(steep, run, rise), select(steep, rise, run)
    huge = large > form.angle_high
    scale = select(huge, x.constant(1.0 / form.angle_high), 1.0)
    small, large = small * scale, large * scale
    # Two infinities count as equal numbers, and 0 / 0 as 0.
    infinite = small.equals(_INF)
    small, large = select(infinite, 1.0, small), select(infinite | large.equals(0.0), 1.0, large)
    angle = _angle(small, large)
    angle = select(steep, _from(form.half_pi, angle), angle)
    pi = (2.0 * form.half_pi[0], 2.0 * form.half_pi[1])
    negative = with_sign_of(x.constant(1.0), x) < 0.0
    angle = select(negative, _from(pi, angle), angle)
    return select(x.is_nan() | y.is_nan(), x + y, with_sign_of(angle, y))


def _arcsine_parts(x: Term) -> tuple[Term, Term, Term]:
    """Return whether |x| > 1/2, t and arcsin(t) - t, where t = |x|, or sqrt((1 - |x|) / 2) if so."""
    size = absolute(x)
    large = size > 0.5
    z = select(large, 0.5 - size * 0.5, size * size)
    t = select(large, sqrt(z), size)
    return large, t, t * (z * polynomial(z, _format(x).arcsin))


def arcsin(x: Term) -> Term:
    large, t, rest = _arcsine_parts(x)
    high, low = _format(x).half_pi
    return with_sign_of(select(large, high - (2.0 * t + (2.0 * rest - low)), t + rest), x)


def arccos(x: Term) -> Term:
    large, t, rest = _arcsine_parts(x)
    high, low = _format(x).half_pi
    near_one = 2.0 * (t + rest)
    near_minus_one = 2.0 * high - (2.0 * t + (2.0 * rest - 2.0 * low))
    negative = x < 0.0
    beside_zero = select(negative, high + (t + (rest + low)), high - (t + (rest - low)))
    return select(large, select(negative, near_minus_one, near_one), beside_zero)


def erf(x: Term) -> Term:
    form = _format(x)
    size = absolute(x)
    near = size + size * polynomial(size * size, form.erf)
    r, raw = _split_exponent(polynomial(at_most(size, form.erf_high), form.log_erfc), form.bias)
    far = 1.0 - _exp_reduced(r) * _power_of_two(raw)
    return with_sign_of(select(size < 1.0, near, far), x)


def cbrt(x: Term) -> Term:
    form = _format(x)
    size = absolute(x)
    subnormal = size < form.smallest_normal
    number = select(subnormal, size * form.cbrt_scale**3, size)
    # A third of the bits, read as an integer, is nearly the logarithm of the root; 0.033 centres the error.
    bits = number.as_int()
    fraction = ((bits & ((1 << form.mantissa) - 1)) | (form.bias << form.mantissa)).as_float()
    exponent = ((bits >> form.mantissa) | form.counter).as_float() - (2.0**form.mantissa + 1.0)
    kept = form.mantissa - (12 if x.bits == 32 else 20)
    third = (exponent + fraction) * (1.0 / 3.0) + (form.bias * 2.0 / 3.0 - 0.033)
    root = ((third + 1.5 * 2.0**kept).as_int() << kept).as_float()
    # Better by a polynomial; then with half the bits, whose square is exact, by a step of third order.
    root = root * polynomial(root * root * (root / number) - 1.0, form.cbrt)
    root = (root.as_int() & -(1 << (form.mantissa // 2 + 1))).as_float()
    ratio = number / (root * root)
    root = root + root * ((ratio - root) / (root + root + ratio))
    root = select(subnormal, root * (1.0 / form.cbrt_scale), root)
    return with_sign_of(select((size > 0.0) & (size < _INF), root, size), x)


def _pow_f32(size: Term, y: Term) -> Term:
    """Return size**y of float32 by way of float64."""
    size, y = size.to_float(64), y.to_float(64)
    f, exponent = _split_logarithm(size)
    s = f / (f + 2.0)
    logarithm = exponent + s * polynomial(s * s, _LOG2_OF_F32)
    logarithm = select(size.equals(0.0), -_INF, select(size < _INF, logarithm, size))
    power = at_least(at_most(y * logarithm, 130.0), -160.0)
    n, raw = _nearest(power, _F64.bias)
    return (polynomial(power - n, _EXP2_TO_F32) * _power_of_two(raw)).to_float(32)


def _upper(x: Term) -> Term:
    """Return a float64 without the lower half of its bits: products of two such numbers are exact."""
    return (x.as_int() & -(1 << 32)).as_float()


def _log2_in_two_parts(x: Term) -> tuple[Term, Term]:
    """Return log2(x) of a finite float64 x > 0 to about 2**-62, as the sum of a short and a small number."""
    f, exponent = _split_any_logarithm(x)
    total = f + 2.0
    inverse = 1.0 / total
    s = f * inverse
    # s = upper + lower, where total = total_upper + total_lower exactly.
    upper, total_upper = _upper(s), _upper(total)
    lower = inverse * ((f - upper * total_upper) - upper * (f - (total_upper - 2.0)))
    # log(1 + f) = 2/3 s (3 + s**2 + rest)
    z = s * s
    square = upper * upper
    rest = z * z * polynomial(z, _POW_REST) + lower * (upper + s)
    factor_upper = _upper(3.0 + square + rest)
    factor_lower = rest - ((factor_upper - 3.0) - square)
    product = upper * factor_upper
    correction = lower * factor_upper + factor_lower * s
    product_upper = _upper(product + correction)
    product_lower = correction - (product_upper - product)
    high, low = _TWO_THIRDS_LOG2_E
    scaled = product_upper * high
    scaled_lower = product_upper * low + product_lower * (high + low)
    result = _upper(scaled + scaled_lower + exponent)
    return result, scaled_lower - ((result - exponent) - scaled)


def _pow_f64(size: Term, y: Term) -> Term:
    """Return size**y of float64."""
    log_upper, log_lower = _log2_in_two_parts(size)
    # Beyond 2**64 every power but that of 1 is 0 or infinite already.
    factor = at_least(at_most(y, 2.0**64), -(2.0**64))
    factor_upper = _upper(factor)
    regular = (size > 0.0) & (size < _INF)
    high = select(regular, factor_upper * log_upper, y * select(size.equals(0.0), -_INF, size))
    low = (factor - factor_upper) * log_upper + factor * log_lower
    low = select(regular & (absolute(high) < 1100.0), low, 0.0)
    high = at_least(at_most(high, 1100.0), -1100.0)
    n, raw = _nearest(high, 2 * _F64.bias)
    return _times_power_of_two(_exp_reduced(((high - n) + low) * sum(_F64.log_2)), raw)


def pow(x: Term, y: Term) -> Term:
    size = absolute(x)
    result = (_pow_f32 if x.bits == 32 else _pow_f64)(size, y)
    whole = trunc(y).equals(y)
    odd = whole & trunc(y * 0.5).differs(y * 0.5)
    result = select(odd, with_sign_of(result, x), result)
    result = select((x < 0.0) & (x > -_INF) & trunc(y).differs(y), _NAN, result)
    minus_one_to_inf = x.equals(-1.0) & absolute(y).equals(_INF)
    return select(y.equals(0.0) | x.equals(1.0) | minus_one_to_inf, 1.0, result)


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


# Note [shared divisors]
# A vector division takes as long as 10 multiplications. Where a whole loop divides by the same number, the reciprocal r
# of the divisor d is computed once, and each quotient by
#
#     q = x r,  q + (x - q d) r
#
# The remainder x - q d is exact in a fused multiply-add, so that this is the quotient as it is rounded by a division,
# but for divisors whose bits are all ones, where it may be the next number (P. W. Markstein, Computation of elementary
# functions on the IBM RISC System/6000 processor, IBM Journal of Research and Development 34, 1990). The correction is
# left out where it gives 0 or no number: so signed zeros, infinities and NaN are those of the division. Both x
# and d are multiplied by a power of two before, or r would be infinite or 0 for a divisor near the ends of the range.


def divisor_scale(d: Term) -> Term:
    """Return what a divisor and all that is divided by it are multiplied with."""
    far = 2.0 ** (64 if d.bits == 32 else 512)
    size = absolute(d)
    return select(size > far, 1.0 / far, select(size < 1.0 / far, d.constant(far), d.constant(1.0)))


def divided(x: Term, d: Term, r: Term) -> Term:
    """Return x / d, given r = 1 / d (Note [shared divisors])."""
    q = x * r
    corrected = (-q).intrinsic("fma", d, x).intrinsic("fma", r, q)
    return select((corrected < 0.0) | (corrected > 0.0), corrected, q)


UNARY: dict[str, Callable[..., Term]] = {
    function.__name__: function
    for function in (
        arccos, arccosh, arcsin, arcsinh, arctan, arctanh, cbrt, ceil, cos, cosh, erf, exp, exp2, expm1,
        floor, isfinite, isinf, log, log10, log1p, log2, reciprocal, rint, sign, sin, sinh, sqrt, tan,
        tanh, trunc,
    )
}  # fmt: skip
BINARY: dict[str, Callable[..., Term]] = {
    function.__name__: function for function in (arctan2, floordiv, mod, pow)
}
SHARED: dict[int, dict[str, Callable[..., Term]]] = {
    1: {"divisor_scale": divisor_scale},
    3: {"divided": divided},
}
"""By the number of operands: what emitted source divides with if a loop has one divisor."""
PREDICATES = frozenset({"isinf", "isfinite"})


def emit(name: str, builder: Any, values: Any) -> Any:
    """Append a function of floats to the code of a kernel; returns the LLVM value of its result."""
    terms = [Term(builder, value) for value in values]
    for known in (UNARY, BINARY, *SHARED.values()):
        if name in known:
            return known[name](*terms).value
    raise KeyError(name)
