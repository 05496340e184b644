# SPDX-License-Identifier: BSD-3-Clause
"""LaunchBuilder: the launches of a program in order, and the copies that kernels need of their operands."""

from tracejit.aval import Aval, part_dtype
from tracejit.ir import Value
from tracejit.ops.op import Layout, contiguous, in_parts
from tracejit.passes.fusion.fuse import Fused
from tracejit.passes.loops import products
from tracejit.passes.loops.launches import KernelLaunch, NestLaunch, Single
from tracejit.passes.loops.nest import Access, Literal, Nest, copy_nest
from tracejit.passes.loops.products import Matrices


class LaunchBuilder:
    """Appends launches, for the CPU or for a device; each copy of an operand is made once."""

    def __init__(self, fused: Fused, for_device: bool = False) -> None:
        self.fused = fused
        self.for_device = for_device
        self.launches: list[Single] = []
        self._contiguous: dict[Value, Value] = {}
        self._by_rows: dict[tuple[Matrices, int, int, int], Value] = {}

    def add(self, launch: Single) -> None:
        self.launches.append(launch)

    def add_nest(self, nest: Nest) -> None:
        """Append the launch of a nest."""
        if any(access.root.aval.size for access in nest.writes):
            # Otherwise a number that all elements have in common would be read although there is none.
            self.add(NestLaunch(nest))

    def copy(self, source: tuple[Value, Layout] | Literal, target: tuple[Value, Layout]) -> None:
        """Append the copy of an array, or of a number, to a layout of another array."""
        if 0 not in target[1].shape:
            self.add_nest(copy_nest(source, target))

    def copy_whole(self, source: tuple[Value, Layout], target: tuple[Value, Layout]) -> None:
        """Append the copy of an array, of whole numbers where it is complex, to a layout of another array."""
        is_complex = source[0].dtype.kind == "c"
        self.copy(*[(root, in_parts(layout) if is_complex else layout) for root, layout in (source, target)])

    def contiguous(self, value: Value) -> Access:
        """Return access to `value` where it is contiguous, otherwise to a contiguous copy."""
        root, layout = self.fused.view(value)
        is_complex = value.dtype.kind == "c"
        if layout.strides == contiguous(value.shape).strides or value.aval.size <= 1:
            return Access(root, layout.offset * (2 if is_complex else 1), (), part_dtype(value.dtype))
        copy = self._contiguous.get(value)
        if copy is None:
            copy = self._contiguous[value] = Value(value.aval, None)
            make = self.copy_whole if is_complex else self.copy
            make((root, layout), (copy, contiguous(value.shape)))
        return Access(copy, 0, (), part_dtype(value.dtype))

    def matrices(self, value: Value, batch: tuple[int, ...]) -> Matrices:
        """Return how the matrices of `value`, broadcast to batch axes, lie in memory."""
        root, layout = self.fused.views[value]
        strides = products.strides(layout, batch)
        if strides is not None:
            return Matrices(Access(root, layout.offset, (), value.dtype), *strides)
        value = self.broadcast(value, batch)
        access = self.contiguous(value)
        strides = products.strides(contiguous(value.shape), batch)
        assert strides is not None
        return Matrices(access, *strides)

    def broadcast(self, value: Value, batch: tuple[int, ...]) -> Value:
        """Return a value whose view is `value` broadcast to the batch axes."""
        return self._broadcast_to(value, (*batch, *value.shape[-2:]))

    def expanded(self, value: Value, shape: tuple[int, ...]) -> Value:
        """Return a value whose view is `value` broadcast to a shape, or the value itself if it is a single element."""
        return value if value.aval.size == 1 else self._broadcast_to(value, shape)

    def _broadcast_to(self, value: Value, shape: tuple[int, ...]) -> Value:
        if shape == value.shape:
            return value
        root, layout = self.fused.view(value)
        result = Value(Aval(shape, None, value.dtype), None)
        added = len(shape) - value.ndim
        strides = [0] * added + [
            0 if extent == 1 else stride for extent, stride in zip(layout.shape, layout.strides, strict=True)
        ]
        self.fused.views[result] = (root, Layout(layout.offset, shape, tuple(strides)))
        return result

    def by_rows(self, matrices: Matrices, count: int, rows: int, columns: int) -> Matrices:
        """Return copies of matrices that lie by rows."""
        count = count if matrices.batch else 1
        key = (matrices, count, rows, columns)
        copy = self._by_rows.get(key)
        if copy is None:
            source, row, column, batch = matrices
            copy = self._by_rows[key] = Value(Aval((count, rows, columns), None, source.dtype), None)
            if row == 1:
                target = Access(copy, 0, (), source.dtype)
                numbers = (count, columns, rows, column, batch)
                self.add(KernelLaunch("transpose", numbers, (source, target), 1, None))
            else:
                layout = Layout(source.offset, copy.shape, (batch, row, column))
                self.copy((source.root, layout), (copy, contiguous(copy.shape)))
        access = Access(copy, 0, (), copy.dtype)
        return Matrices(access, columns, 1, rows * columns if matrices.batch else 0)
