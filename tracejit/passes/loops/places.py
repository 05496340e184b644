# SPDX-License-Identifier: BSD-3-Clause
"""places: has writes at computed places check the places first, so that they can go to the memory of an input.

Note [writes at places]
A write at computed places (`buf[i] = x`) is a copy of its operand and a kernel that sets elements of the copy. As new
contents of an input they can be computed in the memory of the input, where the copy falls away (Note [written inputs]):
the write then takes time for the elements that it sets, not for the array. But nothing may be written where a place is
out of range, which the kernel finds out while it writes. So a kernel of its own checks the places before.
"""

from collections.abc import Container, Iterable, Sequence
from typing import TypeGuard

from tracejit.aval import Aval
from tracejit.ir import Value
from tracejit.ops.op import Layout, contiguous
from tracejit.passes.loops.launches import KernelLaunch, NestLaunch, Single, copied
from tracejit.passes.loops.nest import Access, copy_nest

_WRITES = frozenset({"put", "scatter_add", "add_along_axis"})


def check_first(launches: Sequence[Single], contents: Iterable[Value]) -> list[Single]:
    """Return launches that check places before they write at them (Note [writes at places]).

    Args:
        launches: in order.
        contents: new contents of inputs, whose writes at places are meant.
    """
    versions = versions_of(launches, contents)
    result: list[Single] = []
    for launch in launches:
        if writes_at_places(launch) and launch.pointers[-2].root in versions:
            result += _checked(launch, versions)
        else:
            result.append(launch)
    return result


def writes_at_places(launch: Single) -> TypeGuard[KernelLaunch]:
    """Return whether a launch sets elements at computed places."""
    return isinstance(launch, KernelLaunch) and launch.name in _WRITES


def versions_of(launches: Sequence[Single], contents: Iterable[Value]) -> set[Value]:
    """Return these contents, what they are a changed copy of, what that is a changed copy of, and so on."""
    sources = {
        root: source
        for launch in launches
        if (source := copied(launch)) is not None
        for root in launch.writes
    }
    versions = set[Value]()
    for root in contents:
        while root in sources and root not in versions:
            versions.add(root)
            root = sources[root]
        versions.add(root)
    return versions


def _checked(launch: KernelLaunch, versions: Container[Value]) -> list[Single]:
    """Return the launches of a write at places whose places are checked first.

    Places or values that are a part of a version are copied before: if all versions are in one memory, they are
    overwritten.
    """
    assert launch.node is not None
    *read, result, fault = launch.pointers
    copies: list[Single] = []
    sizes = [value.aval.size for value in launch.node.inputs[1:]]
    for number, (access, size) in enumerate(zip(read, sizes, strict=True)):
        if access.root in versions:
            own = Value(Aval((size,), None, access.dtype), None)
            source = Layout(access.offset, (size,), (1,))
            copies.append(NestLaunch(copy_nest((access.root, source), (own, contiguous((size,))))))
            read[number] = Access(own, 0, (), own.dtype)
    scratch = fault._replace(root=Value(fault.root.aval, None))  # there is nothing more to find
    check = KernelLaunch("check_places", (launch.numbers[1], sizes[0]), (read[0], fault), 1, launch.node)
    return [*copies, check, launch._replace(pointers=(*read, result, scratch))]
