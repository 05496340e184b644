# SPDX-License-Identifier: BSD-3-Clause
"""Sorting the lanes of some vectors by a network, whose comparisons do not depend on the numbers.

Note [networks across registers]
The network is K. E. Batcher's (Sorting networks and their applications, 1968): each number is compared with the one
whose place differs in one bit. Where this is a bit of the register's number, two registers give the smaller and the
larger numbers by two instructions. Where it is a bit of the lane, it first changes places with the bit of the
register's number that is needed last, by a shuffle of two registers; the place of each bit is known when the kernel is
written. Runs in descending order are sorted as ascending runs of the negated numbers. So 128 numbers of 32 bits take 50
instructions for each of 8 registers, instead of 94 when each lane gets its partner's number.
"""

from collections.abc import Iterator
from typing import Any

from llvmlite import ir

from .vectors import call, shuffle_mask

_REGISTER_BITS = 512  # of the CPUs that sort in vectors


def steps(lanes: int) -> Iterator[tuple[int, int]]:
    """Give the steps of the network: how long the runs become, and how far apart numbers are compared."""
    run = 2
    while run <= lanes:
        apart = run // 2
        while apart:
            yield run, apart
            apart //= 2
        run *= 2


class SortingNetwork:
    """The registers of a network that sorts.

    Args:
        builder: of instructions.
        vector: what is sorted: numbers that are not NaN.
    """

    def __init__(self, builder: Any, vector: Any) -> None:
        kind = vector.type
        self.builder = builder
        self.is_float = isinstance(kind.element, ir.FloatType | ir.DoubleType)
        self.element_bits = {"float": 32, "double": 64}.get(str(kind.element)) or kind.element.width
        count = max(1, kind.count * self.element_bits // _REGISTER_BITS)
        self.width = kind.count // count
        self.registers = [
            self.shuffled(vector, vector, range(at, at + self.width))
            for at in range(0, kind.count, self.width)
        ]
        # The bits of places that the bits of a register's number, and those of a lane's, stand for.
        self.outer = list(range(count.bit_length() - 1))
        self.inner = list(range(len(self.outer), kind.count.bit_length() - 1))

    def shuffled(self, one: Any, other: Any, lanes: Any) -> Any:
        """Return lanes of two vectors."""
        return self.builder.shuffle_vector(one, other, shuffle_mask(tuple(lanes)))

    def sorted(self) -> Any:
        """Return the numbers in ascending order."""
        pending = [(run, apart.bit_length() - 1) for run, apart in steps(self.width * len(self.registers))]
        descending = 0  # the bit of places whose numbers are opposite ones, 0 for none
        for number, (run, bit) in enumerate(pending):
            if run != descending:
                self.turn(descending, run)
                descending = run
            if bit in self.inner and self.outer:
                later = [later for _, later in pending[number:]]
                last = max(self.outer, key=lambda own: later.index(own) if own in later else len(later))
                self.exchange(self.outer.index(last), self.inner.index(bit))
            self.compare(bit)
        return self.in_memory_order()

    def places(self, register: int) -> list[int]:
        """Return the places of the numbers in a register."""

        def of_bits(number: int, bits: list[int]) -> int:
            return sum(1 << bit for i, bit in enumerate(bits) if number >> i & 1)

        return [of_bits(register, self.outer) | of_bits(lane, self.inner) for lane in range(self.width)]

    def turn(self, before: int, now: int) -> None:
        """Make numbers opposite ones where places have the bit `now`, and not any more where they have `before`."""
        for register, vector in enumerate(self.registers):
            signs = [bool(place & before) != bool(place & now) for place in self.places(register)]
            if not any(signs):
                continue
            kind = ir.VectorType(ir.IntType(self.element_bits), self.width)
            one = -(1 << (self.element_bits - 1)) if self.is_float else -1
            bits = self.builder.bitcast(vector, kind)
            flipped = self.builder.xor(bits, kind([one if sign else 0 for sign in signs]))
            self.registers[register] = self.builder.bitcast(flipped, vector.type)

    def exchange(self, outer: int, inner: int) -> None:
        """Let a bit of the registers' numbers and one of the lanes' change places."""
        far = 1 << inner
        for low in range(len(self.registers)):
            high = low | 1 << outer
            if low == high:
                continue
            one, other = self.registers[low], self.registers[high]
            lanes = range(self.width)
            self.registers[low] = self.shuffled(
                one, other, [self.width + lane - far if lane & far else lane for lane in lanes]
            )
            self.registers[high] = self.shuffled(
                one, other, [self.width + lane if lane & far else lane + far for lane in lanes]
            )
        self.outer[outer], self.inner[inner] = self.inner[inner], self.outer[outer]

    def compare(self, bit: int) -> None:
        """Move the smaller of two numbers, whose places differ in a bit, to the first place.

        Of equal numbers, such as -0.0 and 0.0, each place gets one, so that none is lost.
        """
        if bit in self.outer:
            for low in range(len(self.registers)):
                high = low | 1 << self.outer.index(bit)
                if low != high:
                    one, other = self.registers[low], self.registers[high]
                    self.registers[low] = self.extremum("min", one, other)
                    self.registers[high] = self.extremum("max", other, one)
            return
        far = 1 << self.inner.index(bit)
        first = ir.Constant(
            ir.VectorType(ir.IntType(1), self.width), [not lane & far for lane in range(self.width)]
        )
        for register, vector in enumerate(self.registers):
            other = self.shuffled(vector, vector, [lane ^ far for lane in range(self.width)])
            smaller, larger = [self.extremum(name, vector, other) for name in ("min", "max")]
            self.registers[register] = self.builder.select(first, smaller, larger)

    def extremum(self, name: str, one: Any, other: Any) -> Any:
        """Return the smaller or larger numbers of two vectors, "min" or "max", those of the other where both are equal.

        An instruction does that, which LLVM does not find where both extrema of two vectors are computed.
        """
        if self.is_float and self.width * self.element_bits == _REGISTER_BITS:
            letter = "ps" if self.element_bits == 32 else "pd"
            rounding = ir.IntType(32)(4)  # as the CPU rounds otherwise; nothing is rounded here
            function = f"llvm.x86.avx512.{name}.{letter}.512"
            return call(self.builder, function, one.type, [one, other, rounding])
        compare = self.builder.fcmp_ordered if self.is_float else self.builder.icmp_signed
        return self.builder.select(compare("<" if name == "min" else ">", one, other), one, other)

    def in_memory_order(self) -> Any:
        """Return all numbers as one vector, in the order of their places."""
        lane_bits = len(self.inner)
        for outer, bit in enumerate(self.outer):
            if bit < lane_bits:
                self.exchange(outer, next(i for i, own in enumerate(self.inner) if own >= lane_bits))
        found = {}
        for register, vector in enumerate(self.registers):
            places = self.places(register)
            first = min(places)
            lanes = {place - first: lane for lane, place in enumerate(places)}
            found[first] = self.shuffled(vector, vector, [lanes[lane] for lane in range(self.width)])
        vectors = [found[first] for first in sorted(found)]
        while len(vectors) > 1:
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [self.shuffled(one, other, range(2 * one.type.count)) for one, other in pairs]
        return vectors[0]


def keys(builder: Any, vector: Any) -> Any:
    """Return integers of 64 bits in the order of numbers, and of their lanes where numbers are equal.

    The lane is in the lowest bits, which of the numbers only those of 64 bits need: where these differ in no other bit
    they are in the order of their lanes. NaN comes after all numbers.
    """
    count, element = vector.type.count, vector.type.element
    bits = {"float": 32, "double": 64}.get(str(element)) or element.width
    kind = ir.VectorType(ir.IntType(bits), count)
    key = builder.bitcast(vector, kind)
    if isinstance(element, ir.FloatType | ir.DoubleType):
        lowest, highest = kind([-(1 << (bits - 1))] * count), kind([(1 << (bits - 1)) - 1] * count)
        is_minus_zero = builder.icmp_signed("==", key, lowest)
        negative = builder.ashr(key, kind([bits - 1] * count))
        key = builder.xor(key, builder.and_(negative, highest))
        key = builder.select(is_minus_zero, kind([0] * count), key)
        key = builder.select(builder.fcmp_unordered("uno", vector, vector), highest, key)
    wide = ir.VectorType(ir.IntType(64), count)
    if bits < 64:
        key = builder.shl(builder.sext(key, wide), wide([64 - bits] * count))
    else:
        key = builder.and_(key, wide([-count] * count))
    return builder.or_(key, wide(list(range(count))))
