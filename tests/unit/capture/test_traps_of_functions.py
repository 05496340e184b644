# SPDX-License-Identifier: BSD-3-Clause
"""Traps: attributes, defaults and code of functions that change between calls."""

import functools

import numpy as np
import pytest
from state_traps import CHANGES, Obj, Traps, rates, setting
from worlds import pick

import tracejit as tj

TRAPS = Traps()
trap = TRAPS.trap


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


def scaled(x):
    return x * scaled.scale


scaled.scale = 1.0


@trap
def own_attribute():

    def fun(x):
        return x * fun.rate

    fun.rate = 1.0
    return fun, setting(fun, "rate")


@trap
def attribute_of_a_global_function():
    return scaled, setting(scaled, "scale")


@trap
def helper_attribute():

    def h(x):
        return x

    h.rate = 1.0
    return lambda x: h(x) * h.rate, setting(h, "rate")


@trap
def helper_array_attribute():

    def h(x):
        return x * h.w

    h.w = np.ones(3)
    return lambda x: h(x), lambda n: setattr(h, "w", np.full(3, rates(n)))


@trap
def attr_reads_itself():

    def h(x):
        return x * h.rate

    h.rate = 1.0
    return lambda x: h(x), setting(h, "rate")


@trap
def attr_dict_item():

    def h(x):
        return x

    h.table = {"a": 1.0}
    return lambda x: x * h.table["a"], lambda n: h.table.update(a=rates(n))


@trap
def dict_attr():

    def h(x):
        return x

    h.rate = 1.0
    return lambda x: x * h.__dict__["rate"], setting(h, "rate")


@trap
def hasattr_of_a_function():

    def h(x):
        return x

    def change(n):
        if pick(n, 0, 1):
            h.flag = 1
        elif hasattr(h, "flag"):
            del h.flag

    return lambda x: x * (2.0 if hasattr(h, "flag") else 1.0), change


@trap
def getattr_default():

    def h(x):
        return x

    def change(n):
        if pick(n, 0, 1):
            h.flag = 5.0
        elif hasattr(h, "flag"):
            del h.flag

    return lambda x: x * getattr(h, "flag", 2.0), change


@trap
def wraps_attr():

    def inner(x):
        return x * 2

    @functools.wraps(inner)
    def w(x):
        return inner(x) * w.rate

    w.rate = 1.0
    return lambda x: w(x), setting(w, "rate")


@trap
def wraps_wrapped_replaced():

    def inner(x):
        return x * 2

    @functools.wraps(inner)
    def w(x):
        return w.__wrapped__(x) + 1

    return lambda x: w(x), lambda n: setattr(w, "__wrapped__", pick(n, inner, lambda x: x * 7))


@trap
def accelerated_wraps_own():

    def inner(x):
        return x * 2

    @functools.wraps(inner)
    def w(x):
        return w.__wrapped__(x) * w.k

    w.k = 1.0
    return w, setting(w, "k")


@trap
def partial_attr():
    p = functools.partial(lambda a, x: x * a, 2.0)
    p.rate = 1.0
    return lambda x: p(x) * p.rate, setting(p, "rate")


@trap
def partial_keywords():
    p = functools.partial(lambda x, a: x * a, a=2.0)
    return lambda x: p(x), lambda n: p.keywords.__setitem__("a", rates(n))


@trap
def partial_setstate():
    f = lambda a, x: x * a
    p = functools.partial(f, 2.0)
    return lambda x: p(x), lambda n: p.__setstate__((f, (rates(n),), {}, {}))


@trap
def partial_func_attr():

    def f(a, x):
        return x * a

    f.k = 1.0
    p = functools.partial(f, 2.0)
    return lambda x: p(x) * p.func.k, setting(f, "k")


@trap
def partial_is_accelerated():

    def f(a, x):
        return x * a * f.k

    f.k = 1.0
    return (functools.partial(f, 2.0), setting(f, "k"))


@trap
def partialmethod():

    class C:
        def f(self, a, x):
            return x * a * self.k

        g = functools.partialmethod(f, 2.0)

    c = C()
    c.k = 1.0
    return lambda x: c.g(x), setting(c, "k")


@trap(warns=CHANGES)
def partialmethod_replaced():

    class C:
        def f(self, a, x):
            return x * a

        g = functools.partialmethod(f, 2.0)

    c = C()
    return lambda x: c.g(x), lambda n: setattr(C, "g", functools.partialmethod(C.f, rates(n)))  # here


@trap
def lru_attr():

    @functools.lru_cache
    def h(k):
        return k

    h.rate = 1.0
    return lambda x: x * h(1.0) * h.rate, setting(h, "rate")


@trap(warns=CHANGES)
def lru_cleared():
    st = [1.0]

    @functools.lru_cache
    def h(k):
        return k * st[0]

    def change(n):
        st[0] = rates(n)
        h.cache_clear()

    return lambda x: x * h(1.0), change  # here


@trap
def lru_wrapped_called():
    st = [1.0]

    @functools.lru_cache
    def h(k):
        return k * st[0]

    return lambda x: x * h.__wrapped__(1.0), lambda n: st.__setitem__(0, rates(n))


@trap(warns=CHANGES)
def lru_cache_info():

    @functools.lru_cache
    def h(k):
        return k

    def change(n):
        for i in range(pick(n, 1, 3)):
            h(i)

    return lambda x: x * h.cache_info().currsize, change  # here


@trap
def defaults_later():

    def h(x, a=1.0):
        return x * a

    return lambda x: h(x), lambda n: setattr(h, "__defaults__", (rates(n),))


@trap
def defaults_none_then_set():

    def h(x, a):
        return x * a

    def fun(x):
        try:
            return h(x)
        except TypeError:
            return -x

    return fun, lambda n: setattr(h, "__defaults__", pick(n, None, (2.0,), (3.0,)))


@trap
def kwdefaults_later():

    def h(x, *, a=1.0):
        return x * a

    return lambda x: h(x), lambda n: setattr(h, "__kwdefaults__", {"a": rates(n)})


@trap
def kwdefaults_mutated():

    def h(x, *, a=1.0):
        return x * a

    return lambda x: h(x), lambda n: h.__kwdefaults__.update(a=rates(n))


@trap
def defaults_read():

    def h(x, a=1.0):
        return x * a

    return lambda x: x * h.__defaults__[0], lambda n: setattr(h, "__defaults__", (rates(n),))


@trap
def own_defaults():

    def fun(x, a=1.0):
        return x * a

    return fun, lambda n: setattr(fun, "__defaults__", (rates(n),))


@trap
def own_kwdefaults():

    def fun(x, *, a=1.0):
        return x * a

    return fun, lambda n: setattr(fun, "__kwdefaults__", {"a": rates(n)})


@trap
def own_code():

    def fun(x):
        return x * 2

    cs = [fun.__code__, (lambda x: x * 3).__code__]
    return fun, lambda n: setattr(fun, "__code__", pick(n, *cs))


@trap(warns=CHANGES)
def helper_code_consts():

    def h(x):
        return x * 2.0

    c = h.__code__
    return lambda x: h(x), lambda n: setattr(  # here
        h, "__code__", c.replace(co_consts=tuple(rates(n) if k == 2.0 else k for k in c.co_consts))
    )


@trap
def doc():

    def h(x):
        """1.0"""
        return x

    return lambda x: x * float(h.__doc__), lambda n: setattr(h, "__doc__", str(rates(n)))


@trap
def name():

    def h(x):
        return x

    return lambda x: x * len(h.__name__), lambda n: setattr(h, "__name__", pick(n, "a", "abc"))


@trap
def annotations():

    def h(x: int):
        return x

    return lambda x: x * h.__annotations__["x"], lambda n: h.__annotations__.update(x=rates(n))


@trap
def method_function_attr():

    class C:
        def m(self, x):
            return x * self.m.k

    C.m.k = 1.0
    c = C()
    return lambda x: c.m(x), setting(C.m, "k")


@trap
def staticmethod_attr():

    class C:
        @staticmethod
        def m(x):
            return x * C.m.k

    C.m.k = 1.0
    return lambda x: C.m(x), setting(C.m, "k")


@trap
def classmethod_attr():

    class C:
        @classmethod
        def m(cls, x):
            return x * cls.m.__func__.k

    C.m.__func__.k = 1.0
    return lambda x: C.m(x), setting(C.m.__func__, "k")


@trap
def attr_counter():

    def h(x):
        return x * getattr(h, "calls", 0)

    return lambda x: h(x), lambda n: setattr(h, "calls", n // 3)


@trap
def closure_cell_attr():
    k = 1.0

    def h(x):
        return x * h.__closure__[0].cell_contents if False else x * k

    def change(n):
        nonlocal k
        k = rates(n)

    return lambda x: h(x), change


@trap
def globals_attr():
    ns = {"K": 1.0}
    exec("def h(x): return x", ns)
    h = ns["h"]
    return lambda x: x * h.__globals__["K"], lambda n: ns.update(K=rates(n))


@trap
def vars_of_function():

    def h(x):
        return x

    return lambda x: x * len(vars(h)), lambda n: setattr(h, f"a{n // 3}", 1)


@trap
def passed_as_argument_attr():

    def h(x):
        return x

    h.k = 1.0

    def use(f, x):
        return f(x) * f.k

    return lambda x: use(h, x), setting(h, "k")


@trap
def in_list_attr():

    def h(x):
        return x

    h.k = 1.0
    hs = [h]

    def fun(x):
        for f in hs:
            x = f(x) * f.k
        return x

    return fun, setting(h, "k")


@trap
def singledispatch_attr():

    @functools.singledispatch
    def h(k):
        return 1.0

    h.k = 1.0
    return lambda x: x * h(1) * h.k, setting(h, "k")


@trap
def cached_property_reset():
    st = [1.0]

    class C:
        @functools.cached_property
        def k(self):
            return st[0]

    c = C()

    def change(n):
        st[0] = rates(n)
        c.__dict__.pop("k", None)

    return lambda x: x * c.k, change  # here


@trap
def accelerated_inner_attr():

    @tj.dlaccelerate
    def h(x):
        return x * 2

    def body(x):
        return x * body.k

    body.k = 1.0
    acc = tj.dlaccelerate(body)
    return lambda x: acc(x), setting(body, "k")


@trap
def callable_instance_attr():

    class C:
        k = 1.0

        def __call__(self, x):
            return x * self.k

    c = C()
    return c, setting(c, "k")


@trap
def attribute_of_an_accelerated_function():
    def fun(x):
        return x * inner.rate + inner(x)

    def plain(x):
        return x * 2

    plain.rate = 1.0
    inner = tj.dlaccelerate(plain)
    return fun, setting(inner, "rate")


def weighted(*parts, scale=1.0):
    return scale * sum(10**place * part for place, part in enumerate(parts))


def spread_call(call):
    """Return a trap of a function that spreads a list, whose elements, length and identity change."""

    def make():
        holder = Obj([1.0, 2.0])

        def change(n):
            what = pick(n, "nothing", "element", "appended", "another", "order")
            if what == "element":
                holder.k[0] += 1.0
            elif what == "appended":
                holder.k.append(3.0)
            elif what == "another":
                holder.k = [4.0, 5.0]
            elif what == "order":
                holder.k.reverse()

        return call(holder), change

    return make


OPTIONS = {"scale": 2.0}
SPREAD = {
    "of_a_list": lambda o: lambda x: x * weighted(*o.k),
    "beside_a_keyword": lambda o: lambda x: x * weighted(*o.k, scale=2.0),
    "beside_a_dict": lambda o: lambda x: x * weighted(*o.k, **OPTIONS),
    "beside_another": lambda o: lambda x: x * weighted(0.5, *o.k),
    "through_a_wrapper": lambda o: lambda x: x * functools.wraps(weighted)(lambda *a: weighted(*a))(*o.k),
    "of_a_partial": lambda o: lambda x: x * functools.partial(weighted, scale=3.0)(*o.k),
    "of_a_variable": lambda o: lambda x: sum(x * weighted(*values) for values in (o.k,)),
}
for name, call in SPREAD.items():
    make = spread_call(call)
    make.__name__ = f"spread_{name}"
    trap(make)


@trap
def the_same_code_with_other_global_names():
    code = compile("def inner(x): return x * rate", "<template>", "exec")

    def with_rate(rate):
        names = {"rate": rate}
        exec(code, names)
        return names["inner"]

    holder = Obj(with_rate(1.0))
    functions = [holder.k, with_rate(2.0), with_rate(5.0)]
    return (lambda x: holder.k(x)), lambda n: setattr(holder, "k", pick(n, *functions))


@pytest.mark.sampled
@pytest.mark.parametrize("name", TRAPS)
def test_is_seen(name):
    TRAPS.follow(name)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("box.kept = box.static", "static"),
        ("box.kept = [box.static]", "static"),
        ("box.kept = box.static == first", "static"),
        ("box.kept = box.of_class == first", "of_class"),
        ("box.kept = box.own == first", "own"),
    ],
)
def test_a_method_that_is_read_and_not_called_is_compared(body, name):
    found = []
    for accelerated in (tj.dlaccelerate(audit=False), lambda fun: fun):
        names = {}
        exec(READ_METHODS.replace("BODY", body).replace("NAME", name), names)
        program = accelerated(names["program"])
        found.append([])
        for call in range(8):
            if call == 4:
                names["replace"]()
            program(np.ones(2))
            found[-1].append(names["shown"]())
    assert found[0] == found[1]
    assert found[0][3] != found[0][4]


READ_METHODS = """
class Box:
    def own(self): pass

    @staticmethod
    def static(): pass

    @classmethod
    def of_class(cls): pass


def replace():
    def other(*args): return 1
    Box.own, Box.static, Box.of_class = other, staticmethod(other), classmethod(other)


def shown():
    kept = box.kept[0] if type(box.kept) is list else box.kept
    return getattr(kept, "__name__", kept)


def program(x):
    BODY
    return x * 1


box = Box()
first = box.NAME
"""
