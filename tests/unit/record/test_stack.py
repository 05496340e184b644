# SPDX-License-Identifier: BSD-3-Clause
"""Operands of calls that Python 3.12 and later report, in code of all sorts."""

import asyncio
import contextlib
import ctypes
import functools
import sys

import pytest

from tracejit.record import monitor, stack

reports = pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.11 notes the depth of the stack")


def plain(a, b):
    return divmod(max(a, b, min(a, 2)), pow(b, 2, 7)), "a".join(["b", str(a)]).split("b", maxsplit=1)


def nested_in_itself(a, b):
    return pow(a, pow(b, pow(a, 2), 7), pow(5, pow(2, 1, 9), 9))


def generators(a, b):
    def counted():
        yield abs(a)
        yield from map(abs, [b])
        return int(b)

    return list(counted()), [abs(v) for v in (a, b) if divmod(v, 2)], {abs(v): str(v) for v in (a, b)}


def handlers(a, b):
    try:
        with contextlib.suppress(KeyError), contextlib.nullcontext(a) as c:
            dict.fromkeys([abs(c)])["none"]
        for v in range(a):
            try:
                int("x", v + 2)
            except ValueError as error:
                str(error)
                continue
            finally:
                abs(v)
    except* TypeError:
        abs(a)
    while True:
        if divmod(a, 2)[0] > abs(b):
            break
        a += abs(b)
    return a


def stars(a, b):
    both = (a, b)
    named = {"key": abs}
    return (
        max(*both, **named),
        max(*[a, b]),
        max(a, *both, *[b], key=abs),
        max(*iter(both)),
        max(*both if a else [b], **named),
        functools.partial(max, a)(*both),
    )


class Thing:
    def __init__(self, a):
        self.a = abs(a)

    def method(self, *rest, **named):
        return [super().__repr__(), *map(abs, rest), sorted(named)]


def methods(a, b):
    thing = Thing(a)
    match thing:
        case Thing(a=int(v)):
            v = abs(v)
    return (
        thing.method(b, v, key=abs(b))[1:],
        [[abs(i + j) for i in range(a)] for j in (b, 1)],
    )


def of_coroutines(a, b):
    @contextlib.asynccontextmanager
    async def scope():
        await asyncio.sleep(0)
        yield abs(a)

    async def numbers():
        for v in (a, b):
            yield abs(v)

    async def main():
        async with scope() as c:
            return [abs(v) + c async for v in numbers()] + await asyncio.gather(asyncio.sleep(0, abs(b)))

    return asyncio.run(main())


def many_constants(a, b):
    """Code whose numbers take more than a byte."""
    text = "v = 0\n" + "\n".join(f"v = max(v, {i}.5, n{i % 300} := a)" for i in range(400))
    names = {"a": a}
    exec(text.replace("n", "name_"), names)
    return names["v"]


PROGRAMS = [plain, nested_in_itself, generators, handlers, stars, methods, of_coroutines, many_constants]


@reports
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_operands_of_each_call_are_found(program):
    wrong, count = [], 0

    def called(frame, at, function):
        nonlocal count
        file = frame.f_code.co_filename
        if stack.code_of(frame.f_code)[at] in stack.CALLS and file in (__file__, "<string>"):
            count += 1
            operands = stack.reported(frame, at, function)
            if operands is None or not callable(operands[0]) or function not in (None, operands[0]):
                wrong.append((frame.f_lineno, operands, function))

    with monitor.CallWatch(called):
        program(3, -2)
    assert wrong == [] and count > 5


def of_python(*args, **named):
    return ""


@reports
@pytest.mark.parametrize("f", ["".format, of_python, functools.partial(of_python, 1), Thing])
def test_operands_of_calls_with_stars(f):
    """What has the star is seen as it is, before a tuple is made of it."""
    taken = []

    def called(frame, at, function):
        if frame.f_code is run.__code__:
            operands = stack.reported(frame, at, function)
            assert function is None or operands[0] is function
            taken.append(operands)

    def run(both):
        with contextlib.suppress(TypeError):
            f(*both, 1)
        with contextlib.suppress(TypeError):
            f(*(both, f), key=len)
        with contextlib.suppress(TypeError):
            f(*both)
        with contextlib.suppress(TypeError):
            f(*[1, f])
        with contextlib.suppress(TypeError):
            f(*both.copy(), **{"k" + str(v): v for v in (1, 2)})
        with contextlib.suppress(TypeError):
            f(**dict.fromkeys(["k"], 2))

    both = [4, 5]
    with monitor.CallWatch(called):
        run(both)
    assert [operands[1:] for operands in taken if operands[0] is f] == [
        [(4, 5, 1)], [(both, f), {"key": len}], [both], [[1, f]], [both, {"k1": 1, "k2": 2}], [(), {"k": 2}],
    ]  # fmt: skip
    f(*both) if f is not Thing else f(1)  # nothing is reported after the block
    assert len([operands for operands in taken if operands[0] is f]) == 6


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="later versions of Python do not note the depth of the stack"
)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_depth_before_each_instruction_is_the_one_that_python_notes(program):
    wrong, seen = [], set()

    def traced(frame, event, arg):
        code, at = frame.f_code, frame.f_lasti
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode" and (code, at) not in seen:
            seen.add((code, at))
            top = ctypes.c_int.from_address(stack._values(frame) - stack._VALUES + stack._TOP).value
            variables = (
                len(code.co_varnames) + len({*code.co_cellvars} - {*code.co_varnames}) + len(code.co_freevars)
            )
            call = stack._calls(code).get(at)
            depth = stack._depths_of(code).get(at) if call is None else call.depth
            if depth != top - variables:
                wrong.append((code.co_qualname, at, depth, top - variables))
        return traced

    outer = sys.gettrace()
    sys.settrace(traced)
    try:
        program(3, -2)
    finally:
        sys.settrace(outer)
    assert wrong == [] and len(seen) > 20
