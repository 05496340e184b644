# SPDX-License-Identifier: BSD-3-Clause
"""Traps: classes, their bases and metaclasses that change between calls."""

import dataclasses
import enum
import operator
import types
import typing

import numpy as np
import pytest
from state_traps import CHANGES, Traps, rates, setting, toggling
from worlds import follow, pick

import tracejit as tj

TRAPS = Traps()
trap = TRAPS.trap


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


_ns = {}
exec(
    """
K = 1.0
def fun(x):
    class C:
        k = K
    return x * C.k
def fun2(x):
    class C:
        k = [K * i for i in range(3)]
        def m(self, x): return x * sum(self.k)
    return C().m(x)
def fun3(x):
    K2 = 2.0
    class C:
        k = K2 * K
    return x * C.k
def fun4(x):
    class C(BASE):
        pass
    return x * C.k
def fun5(x):
    class C:
        k = OBJ.k
        class D:
            v = K
    return x * C.k * C.D.v
def fun6(x):
    class C:
        w = W
    return x * C.w
def fun7(x):
    class C:
        def m(self, y, k=K): return y * k
    return C().m(x)
def fun8(x):
    class C:
        @DECO
        def m(self, y): return y
    return C().m(x)
def fun9(x):
    class C(metaclass=META): pass
    return x * C.k
def fun10(x):
    import dataclasses
    @dataclasses.dataclass
    class C:
        k: float = K
    return x * C().k
class BASE: k = 1.0
class OBJ: k = 1.0
class META(type): k = 1.0
def DECO(f): return f
W = None
""",
    _ns,
)
_ns["W"] = np.ones(3)


@trap
def super_attr():

    class B:
        k = 1.0

    class C(B):
        k = 9.0

        def m(self, x):
            return x * super().k

    c = C()
    return lambda x: c.m(x), setting(B, "k")


@trap
def super_attr_missing():

    class B:
        pass

    class C(B):
        k = 9.0

        def m(self, x):
            return x * getattr(super(), "k", 2.0)

    c = C()
    return lambda x: c.m(x), toggling(B, "k", 1.0)


@trap
def super_two_args():

    class B:
        k = 1.0

    class C(B):
        k = 9.0

    c = C()
    return lambda x: x * super(C, c).k, setting(B, "k")


@trap
def super_property():
    st = [1.0]

    class B:
        @property
        def k(self):
            return st[0]

    class C(B):
        @property
        def k(self):
            return super().k * 2

    c = C()
    return lambda x: x * c.k, lambda n: st.__setitem__(0, rates(n))


@trap
def super_property_replaced():

    class B:
        @property
        def k(self):
            return 1.0

    class C(B):
        @property
        def k(self):
            return super().k * 2

    c = C()
    ps = [property(lambda s: 1.0), property(lambda s: 3.0)]
    return lambda x: x * c.k, lambda n: setattr(B, "k", pick(n, *ps))


@trap
def super_method_replaced():

    class B:
        def m(self, x):
            return x

    class C(B):
        def m(self, x):
            return super().m(x) * 2

    c = C()
    ps = [lambda s, x: x, lambda s, x: x * 5]
    return lambda x: c.m(x), lambda n: setattr(B, "m", pick(n, *ps))


@trap
def super_classmethod():

    class B:
        k = 1.0

        @classmethod
        def m(cls, x):
            return x * cls.k

    class C(B):
        @classmethod
        def m(cls, x):
            return super().m(x) * 2

    return lambda x: C.m(x), setting(B, "k")


@trap
def super_middle_method_added():

    class A:
        def m(self, x):
            return x

    class B(A):
        pass

    class C(B):
        def m(self, x):
            return super().m(x) * 2

    c = C()
    f = lambda s, x: x * 9
    return lambda x: c.m(x), toggling(B, "m", f)


@trap
def method_added_in_subclass():

    class A:
        def m(self, x):
            return x

    class C(A):
        pass

    c = C()
    f = lambda s, x: x * 9
    return lambda x: c.m(x), toggling(C, "m", f)


@trap
def attr_added_in_subclass():

    class A:
        k = 1.0

    class C(A):
        pass

    c = C()
    return lambda x: x * c.k, toggling(C, "k", 7.0)


@trap
def instance_made_inside():

    class A:
        k = 1.0

    class C(A):
        def m(self, x):
            return x * self.k

    return lambda x: C().m(x), setting(A, "k")


@trap
def instance_made_inside_direct():

    class A:
        k = 1.0

    class C(A):
        pass

    return lambda x: x * C().k, setting(A, "k")


@trap
def instance_made_inside_own_class():

    class C:
        k = 1.0

    return lambda x: x * C().k, setting(C, "k")


@trap
def instance_made_by_helper():

    class A:
        k = 1.0

    class C(A):
        pass

    def make():
        return C()

    return lambda x: x * make().k, setting(A, "k")


@trap
def instance_made_in_helper_from_type():

    class A:
        k = 1.0

    class C(A):
        pass

    c = C()
    return lambda x: x * type(c)().k, setting(A, "k")


@trap
def instance_made_getattr():

    class A:
        pass

    class C(A):
        pass

    return lambda x: x * getattr(C(), "k", 2.0), toggling(A, "k", 1.0)


@trap
def dataclass_made_inside():

    @dataclasses.dataclass
    class P:
        a: float = 1.0

        def m(self, x):
            return x * self.a * self.k

    P.k = 1.0
    return lambda x: P().m(x), setting(P, "k")


@trap
def dataclass_default_changed():

    @dataclasses.dataclass
    class P:
        a: float = 1.0

    return lambda x: x * P().a, lambda n: setattr(P.__init__, "__defaults__", (rates(n),))


@trap
def dataclass_fields_iter():

    @dataclasses.dataclass
    class P:
        a: float = 1.0
        b: float = 2.0

    p = P()
    return lambda x: x * sum(getattr(p, f.name) for f in dataclasses.fields(p)), setting(p, "a")


@trap
def dataclass_asdict():

    @dataclasses.dataclass
    class P:
        a: float = 1.0

    p = P()
    return lambda x: x * dataclasses.asdict(p)["a"], setting(p, "a")


@trap
def dataclass_replace():

    @dataclasses.dataclass
    class P:
        a: float = 1.0
        b: float = 1.0

    p = P()
    return lambda x: x * dataclasses.replace(p, b=2.0).a, setting(p, "a")


@trap
def meta_attr():

    class M(type):
        k = 1.0

    class C(metaclass=M):
        pass

    return lambda x: x * C.k, setting(M, "k")


@trap
def meta_property():
    st = [1.0]

    class M(type):
        @property
        def k(cls):
            return st[0]

    class C(metaclass=M):
        pass

    return lambda x: x * C.k, lambda n: st.__setitem__(0, rates(n))


@trap
def meta_property_replaced():

    class M(type):
        @property
        def k(cls):
            return 1.0

    class C(metaclass=M):
        pass

    ps = [property(lambda s: 1.0), property(lambda s: 3.0)]
    return lambda x: x * C.k, lambda n: setattr(M, "k", pick(n, *ps))


@trap
def meta_method():

    class M(type):
        def m(cls, x):
            return x * cls.k

    class C(metaclass=M):
        k = 1.0

    return lambda x: C.m(x), setting(C, "k")


@trap
def meta_method_replaced():

    class M(type):
        def m(cls, x):
            return x

    class C(metaclass=M):
        pass

    fs = [lambda c, x: x, lambda c, x: x * 3]
    return lambda x: C.m(x), lambda n: setattr(M, "m", pick(n, *fs))


@trap
def meta_call():

    class M(type):
        def __call__(cls, x):
            return x * cls.k

    class C(metaclass=M):
        k = 1.0

    return lambda x: C(x), setting(C, "k")


@trap
def meta_getattr():
    st = [1.0]

    class M(type):
        def __getattr__(cls, name):
            return st[0]

    class C(metaclass=M):
        pass

    return lambda x: x * C.zzz, lambda n: st.__setitem__(0, rates(n))


@trap
def meta_iter():

    class M(type):
        def __iter__(cls):
            return iter(cls.items)

    class C(metaclass=M):
        items: typing.ClassVar = [1.0]

    return lambda x: x * sum(C), lambda n: setattr(C, "items", [rates(n)])


@trap
def meta_len():

    class M(type):
        def __len__(cls):
            return cls.n

    class C(metaclass=M):
        n = 1

    return lambda x: x * len(C), lambda n: setattr(C, "n", int(rates(n)))


@trap(warns=CHANGES)
def mro_len():

    class A:
        pass

    class B:
        pass

    class C(A):
        pass

    return lambda x: x * len(C.__mro__), lambda n: setattr(C, "__bases__", pick(n, (A,), (A, B)))  # here


@trap
def bases_changed():

    class A:
        k = 1.0

    class B:
        k = 2.0

    class C(A):
        pass

    c = C()
    return lambda x: x * c.k, lambda n: setattr(C, "__bases__", pick(n, (A,), (B,)))


@trap(warns=CHANGES)
def bases_changed_isinstance():

    class A:
        k = 1.0

    class B:
        k = 2.0

    class C(A):
        pass

    c = C()
    return lambda x: x * (1.0 if isinstance(c, A) else 3.0), lambda n: setattr(  # here
        C, "__bases__", pick(n, (A,), (B,))
    )


@trap(warns=CHANGES)
def bases_changed_issubclass():

    class A:
        k = 1.0

    class B:
        k = 2.0

    class C(A):
        pass

    return lambda x: x * (1.0 if issubclass(C, A) else 3.0), lambda n: setattr(  # here
        C, "__bases__", pick(n, (A,), (B,))
    )


@trap
def subclasses():

    class A:
        pass

    keep = []

    def change(n):
        while len(keep) > n // 6:
            keep.pop()
        while len(keep) < n // 6:
            keep.append(type("S", (A,), {}))

    return lambda x: x * (1.0 + len(A.__subclasses__())), change


@trap
def type_attr():

    class A:
        k = 1.0

    c = A()
    return lambda x: x * type(c).k, setting(A, "k")


@trap
def type_attr_inherited():

    class A:
        k = 1.0

    class B(A):
        pass

    c = B()
    return lambda x: x * type(c).k, setting(A, "k")


@trap
def property_attr():

    class C:
        @property
        def k(self):
            return self._k

    c = C()
    c._k = 1.0
    return lambda x: x * c.k, setting(c, "_k")


@trap
def property_getter_builtin():

    class C:
        k = property(operator.attrgetter("_k"))

    c = C()
    c._k = 1.0
    return lambda x: x * c.k, setting(c, "_k")


@trap
def property_fget_called():

    class C:
        @property
        def k(self):
            return self._k

    c = C()
    c._k = 1.0
    return lambda x: x * C.k.fget(c), setting(c, "_k")


@trap
def property_added_over_attr():

    class C:
        pass

    c = C()
    c.k = 1.0
    p = property(lambda s: 9.0)

    def change(n):
        if pick(n, 0, 1):
            C.k = p
        elif "k" in C.__dict__:
            del C.k

    return lambda x: x * c.k, change


@trap
def descriptor_nondata():

    class D:
        def __get__(self, o, t):
            return self.v

    d = D()
    d.v = 1.0

    class C:
        k = d

    c = C()
    return lambda x: x * c.k, setting(d, "v")


@trap
def descriptor_data():

    class D:
        def __get__(self, o, t):
            return o._v * self.s

        def __set__(self, o, v):
            o._v = v

    d = D()
    d.s = 1.0

    class C:
        k = d

    c = C()
    c.k = 1.0

    def change(n):
        c.k = rates(n)
        d.s = rates(n // 3)

    return lambda x: x * c.k, change


@trap
def descriptor_on_class():

    class D:
        def __get__(self, o, t):
            return self.v

    d = D()
    d.v = 1.0

    class C:
        k = d

    return lambda x: x * C.k, setting(d, "v")


@trap
def descriptor_get_added():

    class D:
        pass

    d = D()

    class C:
        k = d

    d.v = 1.0
    c = C()
    g = lambda self, o, t: types.SimpleNamespace(v=5.0)

    def change(n):
        if pick(n, 0, 1):
            D.__get__ = g
        elif "__get__" in D.__dict__:
            del D.__get__

    return lambda x: x * c.k.v, change


@trap
def descriptor_replaced():

    class D:
        def __init__(self, v):
            self.v = v

        def __get__(self, o, t):
            return self.v

    class C:
        k = D(1.0)

    c = C()
    return lambda x: x * c.k, lambda n: setattr(C, "k", D(rates(n)))


@trap
def classattr_replaced_by_instance_descr():

    class C:
        k = 1.0

    c = C()
    return lambda x: x * c.k, lambda n: setattr(C, "k", pick(n, 1.0, property(lambda s: 4.0)))


@trap
def cb_global():
    return _ns["fun"], lambda n: _ns.update(K=rates(n))


@trap
def cb_global_comp():
    return _ns["fun2"], lambda n: _ns.update(K=rates(n))


@trap
def cb_global_mixed():
    return _ns["fun3"], lambda n: _ns.update(K=rates(n))


@trap
def cb_base():
    return _ns["fun4"], lambda n: setattr(_ns["BASE"], "k", rates(n))


@trap
def cb_nested():
    return _ns["fun5"], lambda n: (_ns.update(K=rates(n)), setattr(_ns["OBJ"], "k", rates(n // 3)))


@trap
def cb_array():
    return _ns["fun6"], lambda n: _ns["W"].__setitem__(slice(None), rates(n))


@trap
def cb_array_replaced():
    return _ns["fun6"], lambda n: _ns.__setitem__("W", np.full(3, rates(n)))


@trap
def cb_default():
    return _ns["fun7"], lambda n: _ns.update(K=rates(n))


@trap
def cb_deco():
    fs = [lambda f: f, lambda f: lambda s, y: y * 5]
    return _ns["fun8"], lambda n: _ns.update(DECO=pick(n, *fs))


@trap
def cb_meta():
    return _ns["fun9"], lambda n: setattr(_ns["META"], "k", rates(n))


@trap
def cb_dataclass():
    return _ns["fun10"], lambda n: _ns.update(K=rates(n))


@trap
def cb_closure():
    k = 1.0

    def fun(x):

        class C:
            v = k

        return x * C.v

    def change(n):
        nonlocal k
        k = rates(n)

    return fun, change


@trap
def cb_closure_attr():
    k = types.SimpleNamespace(v=1.0)

    def fun(x):

        class C:
            v = k.v

        return x * C.v

    return fun, setting(k, "v")


@trap
def cb_call():
    st = [1.0]

    def h():
        return st[0]

    def fun(x):

        class C:
            v = h()

        return x * C.v

    return fun, lambda n: st.__setitem__(0, rates(n))


def _of_dict(made):
    thing = made(a=2.0)
    return {
        "__getitem__": lambda x: x * thing["a"],
        "__len__": lambda x: x * len(thing),
        "__missing__": lambda x: x * _found(thing, "b"),
        "__contains__": lambda x: x * ("a" in thing),
        "get": lambda x: x * thing.get("b", 3.0),
    }


def _of_list(made):
    thing = made([2.0])

    def looped(x):
        for value in thing:
            x = x * value
        return x

    return {"__iter__": looped, "__getitem__": lambda x: x * thing[0]}


def _of_float(made):
    thing = made(2.0)
    return {"__add__": lambda x: x * (thing + 1.0)}


def _of_object(made):
    thing, other = made(), made()
    return {
        "__bool__": lambda x: x * 2.0 if thing else x * 3.0,
        "__eq__": lambda x: x * 2.0 if thing == other else x * 3.0,
        "__str__": lambda x: x * 2.0 if str(thing)[0] == "Z" else x * 3.0,
        "__hash__": lambda x: x * 2.0 if hash(thing) == 5 else x * 3.0,
        "__init__": lambda x: x * getattr(made(), "k", 3.0),
    }


def _of_type(made):
    kind = made("Kind", (), {"k": 2.0})
    return {
        "__call__": lambda x: x * kind().k,
        "__instancecheck__": lambda x: x * 2.0 if isinstance(thing, kind) else x * 3.0,
        "late": lambda x: x * getattr(kind, "late", 3.0),
    }


thing = 3.0
LATER = {
    "__getitem__": lambda own, key: 5.0, "__len__": lambda own: 5, "__missing__": lambda own, key: 5.0,
    "__contains__": lambda own, key: False, "get": lambda own, key, default: 5.0, "__iter__": lambda own: iter([5.0]),
    "__add__": lambda own, other: 5.0, "__bool__": lambda own: False, "__eq__": lambda own, other: True,
    "__str__": lambda own: "Z", "__hash__": lambda own: 5, "__init__": lambda own: setattr(own, "k", 5.0),
    "__call__": lambda kind: types.SimpleNamespace(k=5.0), "__instancecheck__": lambda kind, value: True, "late": 5.0,
}  # fmt: skip
MADE = {dict: _of_dict, list: _of_list, float: _of_float, object: _of_object, type: _of_type}


def _found(mapping, key):
    try:
        return mapping[key]
    except KeyError:
        return 3.0


@pytest.mark.whole("each is another way in which Python finds a method")
@pytest.mark.parametrize(
    ("base", "name"), [(base, name) for base, make in MADE.items() for name in make(type("D", (base,), {}))]
)
def test_a_method_that_python_looks_for_is_seen_when_a_class_gets_it_later(base, name):
    def world(accelerate):
        made = type("Made", (base,), {"__module__": __name__})
        fun = accelerate(MADE[base](made)[name])

        def call(n):
            if n == 4:
                setattr(made, name, LATER[name])
            if n == 8:
                delattr(made, name)
            return fun(np.array([1.0, -2.0]))

        return call

    follow(world, audit=False)


@pytest.mark.parametrize("name", ["value", "name"])
@pytest.mark.parametrize("way", ["path", "loop", "call"])
def test_what_members_of_enumerations_stand_for_is_seen(way, name):
    def world(accelerate):
        class Kind(enum.Enum):
            A = 2.0

        kinds = [Kind.A]

        def of_path(x):
            return x * Kind.A.value if name == "value" else x * len(Kind.A.name)

        def of_loop(x):
            for kind in kinds:
                x = x * kind.value if name == "value" else x * len(kind.name)
            return x

        def of_call(x):
            kind = Kind(2.0)
            return x * kind.value if name == "value" else x * len(kind.name)

        fun = accelerate({"path": of_path, "loop": of_loop, "call": of_call}[way])

        def call(n):
            if n == 4:
                Kind.A._value_, Kind.A._name_ = 5.0, "longer"
            return fun(np.array([1.0, -2.0]))

        return call

    follow(world, audit=False)


@pytest.mark.sampled
@pytest.mark.parametrize("name", TRAPS)
def test_is_seen(name):
    TRAPS.follow(name)
