# SPDX-License-Identifier: BSD-3-Clause
"""Byte code: the names, attributes and elements that a function can read."""

import types

import pytest

from tracejit.capture.bytecode import reads_of
from tracejit.capture.reads import Added, Constant, FreeVariable


def code_of(source, name="f"):
    """Return the code of a function in a piece of source, however deep."""

    def within(code):
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                if constant.co_name == name:
                    return constant
                found = within(constant)
                if found is not None:
                    return found
        return None

    return within(compile(source, "<test>", "exec"))


def written(path):
    steps = "".join(f".{name}" if kind == "attr" else f"[{name!r}]" for kind, name in path.steps)
    return f"{path.scope} {path.name}{steps}"


def found(body, head="def f(self, x, k=1):"):
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return reads_of(code_of(f"{head}\n{lines}\n"))


def uses(body, how="read", **options):
    return {written(use.path) for use in found(body, **options).uses if use.how == how}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return rate * x", {"global rate", "local x"}),
        ("return x * self.w", {"local x", "local self.w"}),
        ("return self.layers[0].w", {"local self.layers[0].w"}),
        ("return CONFIG['lr'], CONFIG[-1]", {"global CONFIG['lr']", "global CONFIG[-1]"}),
        ("return mod.sub.value", {"global mod.sub.value"}),
        ("w = self.w\nreturn w.data", {"local self.w.data"}),  # a variable that is assigned once
        ("w = self.a\nw = self.b\nreturn w.data", {"local self.a", "local self.b"}),
        ("return helper(self.model, x)", {"local self.model", "local x"}),
        ("return self.parts[k]", {"local self.parts", "local k"}),
        ("return [p.w for p in self.parts]", {"local self.parts"}),
        ("return self.a if k else self.b", {"local self.a", "local self.b", "local k"}),
        ("if self.flag:\n    return x", {"local self.flag", "local x"}),
        ("import a.b\nreturn a.b.c", {"module a.b.c"}),
        ("from a.b import c\nreturn c.d", {"module a.b.c.d"}),
        ("return f'{self.name}'", {"local self.name"}),
        ("return self.model(x, k=self.k)", {"local x", "local self.k"}),
        ("return f(*self.args, **self.kwargs)", {"local self.args", "local self.kwargs"}),
        (
            "try:\n    return self.a\nexcept KeyError:\n    return self.b",
            {"local self.a", "local self.b", "global KeyError"},
        ),
        ("with self.lock:\n    return self.a", {"local self.lock", "local self.a"}),
        ("for p in self.parts:\n    x = x * p\nreturn x", {"local self.parts", "local x"}),
    ],
)
def test_what_is_read(body, expected):
    assert uses(body) == expected


@pytest.mark.parametrize(
    ("body", "written_to"),
    [
        ("self.history.append(x)", "local self.history.append"),
        ("self.seen.add(x)", "local self.seen.add"),
        ("self.count += 1", "local self.count"),
        ("self.counts['n'] += 1", "local self.counts['n']"),
        ("global total\ntotal += x", "global total"),
        ("self.last = x", "local self.last"),
        ("self.log.update(x=x)", "local self.log.update"),
    ],
)
def test_what_is_only_written_to(body, written_to):
    assert uses(body, "write") | uses(body, "update") == {written_to}
    assert uses(body) <= {"local x"}


def test_a_store_into_a_container_reads_the_way_to_it():
    assert uses("self.log[k] = x", "touch") == {"local self.log"}
    assert uses("self.log[k] = x") == {"local x", "local k"}


def test_a_counter_that_is_used_is_read():
    assert "local self.count" in uses("self.count += 1\nreturn x * self.count")
    assert "global n" in uses("global n\nn += 1\nreturn x * n")


def test_the_result_of_a_method_is_read():
    assert uses("return self.items.pop()", "touch") == {"local self.items.pop"}
    assert uses("y = self.seen.add(x)\nreturn y", "write") == set()


def test_what_a_function_assigned_itself_is_not_read():
    assert uses("self.h = x\nreturn self.h.sum()") == {"local x"}
    assert uses("if k:\n    self.h = x\nreturn self.h") == {"local x", "local k", "local self.h"}
    assert uses("y = self.h\nself.h = x\nreturn self.h, y") == {"local x", "local self.h"}
    assert found("self.h = x\nreturn self.h.size").names == {"size"}


def test_comparison_with_none_reads_no_contents():
    assert uses("return 1 if self.mask is None else 2") == set()
    assert uses("return 1 if self.mask is None else 2", "touch") == {"local self.mask"}


def test_attributes_of_untracked_values():
    assert found("for layer in self.layers:\n    x = layer.w @ x + layer.b.data\nreturn x").names == {
        "w",
        "b",
        "data",
    }
    assert found("return helper(x).value").names == {"value"}


def test_attributes_by_constant_names():
    assert uses("return getattr(self, 'scale')") == {"local self.scale"}
    assert uses("return hasattr(self.a, 'scale')", how="probe") == {"local self.a.scale"}
    reads = found("for layer in self.layers:\n    x = x * getattr(layer, 'scale', 1.0)\nreturn x")
    assert "scale" in reads.probes and not reads.is_dynamic


def test_attributes_by_computed_names():
    for body in ("return getattr(self, k)", "return setattr(self, k, x)", "return dir(self)"):
        assert uses(body, how="ask") == {"local self"} and not found(body).is_dynamic  # the calls show them
    assert uses("return vars(self)['scale']") == uses("return self.__dict__['scale']")
    assert (
        found("for part in x:\n    part.__dict__\nreturn x").is_dynamic
        and not found("return vars(self)").is_dynamic
    )
    for body in ("return [*map(getattr, self, k)]", "return getattr(*self)", "return [vars]"):
        assert found(body).is_dynamic
    assert "scale" in found("return sum(vars(part)['scale'] for part in (self, 'scale'))").texts
    for body in (
        "return self.scale",
        "return x.copy()",
        "return '{0.k}'.format(x)",
        "return k.replace('a', 'b')",
    ):
        assert not found(body).is_dynamic
    assert "k" in found("return '{0.k}'.format(x)").names


def test_attributes_of_getters():
    reads = found("get = operator.attrgetter('a.b', 'c')\nreturn get(x), operator.methodcaller('d', 'e')(x)")
    assert {"a", "b", "c", "d"} <= reads.names and "e" not in reads.names and not reads.is_dynamic
    for made in ("attrgetter(*x)", "attrgetter(x.k)", "methodcaller(x)", "methodcaller(**x)", "attrgetter"):
        assert found(f"return [operator.{made}]").is_dynamic


def test_attributes_that_may_be_missing():
    body = "try:\n    return f(x).scale\nexcept {}:\n    return f(x).shift"
    assert found(body.format("AttributeError")).probes == {"scale", "shift"}
    assert not found(body.format("KeyError")).probes


def test_super():
    source = "class C(B):\n    def f(self, x):\n        return super().g(x) + super(C, self).k"
    first, second = reads_of(code_of(source)).supers
    assert (written(first.after), written(first.owner), first.name) == ("local __class__", "local self", "g")
    assert (written(second.after), written(second.owner), second.name) == ("global C", "local self", "k")


def test_the_body_of_a_class():
    source = "class C(B):\n    rate = RATE\n    double = rate * 2"
    assert {written(use.path) for use in reads_of(code_of(source, "C")).uses} == {"global RATE"}


def test_a_parameter_that_is_assigned_again():
    reads = found("x = self.convert(x)\nreturn x.size")
    assert "size" in reads.names


def test_names_of_enclosing_functions():
    source = """
def outer():
    rate, count, model, unused = 1, 0, None, 2
    def f(x):
        nonlocal count
        count += 1
        def inner():
            return model.w
        return x * rate + inner()
    return f
"""
    reads = reads_of(code_of(source))
    read = FreeVariable(is_read=True)
    assert reads.free == {
        "rate": read,
        "count": FreeVariable(additions=(Added("+=", Constant(1)),)),
        "model": read,
    }
    assert {written(use.path) for use in reads_of(code_of(source, "inner")).uses} == {"local model.w"}


def test_lines_are_those_of_the_source():
    (use,) = [use for use in found("y = 1\nreturn self.w").uses if use.how == "read"]
    assert use.line == 3
