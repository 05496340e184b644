# SPDX-License-Identifier: BSD-3-Clause
"""Traps: attributes that are looked for by name, and that come and go between calls."""

import contextlib
import operator
import types

import numpy as np
import pytest
from state_traps import CHANGES, Thing, Traps, rates, setting, toggling
from worlds import pick

import tracejit as tj

TRAPS = Traps()
trap = TRAPS.trap


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


class Sub(np.ndarray):
    pass


class Counting(type):
    def __getattr__(cls, name):
        return float(len(name))


@trap
def ga_computed_until_the_class_has_it():

    class C:
        def __getattr__(self, name):
            return float(len(name))

    c = C()
    return lambda x: x * c.w, toggling(C)


@trap
def ga_computed_by_a_metaclass_until_the_class_has_it():

    class C(metaclass=Counting):
        pass

    return lambda x: x * C.w, toggling(C)


@trap
def ga_computed_until_the_module_has_it():
    m = types.ModuleType("m_ga")
    m.__getattr__ = lambda name: float(len(name))
    return lambda x: x * m.w, toggling(m)


@trap
def ha_instance():
    b = Thing()
    return lambda x: x * (2.0 if hasattr(b, "w") else 1.0), toggling(b)


@trap
def ha_class():

    class C:
        pass

    c = C()
    return lambda x: x * (2.0 if hasattr(c, "w") else 1.0), toggling(C, "w", 1)


@trap
def ha_class_itself():

    class C:
        pass

    return lambda x: x * (2.0 if hasattr(C, "w") else 1.0), toggling(C, "w", 1)


@trap
def ha_module():
    m = types.ModuleType("m_ha")
    return lambda x: x * (2.0 if hasattr(m, "w") else 1.0), toggling(m)


@trap
def ha_simplenamespace():
    m = types.SimpleNamespace()
    return lambda x: x * (2.0 if hasattr(m, "w") else 1.0), toggling(m)


@trap
def ha_name_in_variable():
    b = Thing()
    name = "w"
    return lambda x: x * (2.0 if hasattr(b, name) else 1.0), toggling(b)


@trap
def ha_name_computed():
    b = Thing()
    return lambda x: x * (2.0 if hasattr(b, "".join(["w", "1"])) else 1.0), toggling(b, "w1")


@trap
def ha_in_helper():
    b = Thing()

    def has(o, name):
        return hasattr(o, name)

    return lambda x: x * (2.0 if has(b, "w") else 1.0), toggling(b)


@trap
def ha_in_dict_of_objects():
    b = Thing()
    d = {"b": b}

    def fun(x):
        for o in d.values():
            if hasattr(o, "w"):
                x = x * 2
        return x

    return fun, toggling(b)


@trap
def ga_default():
    b = Thing()
    return lambda x: x * getattr(b, "w", 2.0), toggling(b)


@trap
def ga_default_array():
    b = Thing()
    return lambda x: x * getattr(b, "w", 2.0), toggling(b, value=np.array([1.0, 2.0, 3.0]))


@trap
def ga_default_alias():
    b = Thing()
    g = getattr
    return lambda x: x * g(b, "w", 2.0), toggling(b)


@trap
def ga_default_module():
    m = types.ModuleType("m_ga")
    return lambda x: x * getattr(m, "w", 2.0), toggling(m)


@trap
def ga_default_class():

    class C:
        pass

    return lambda x: x * getattr(C, "w", 2.0), toggling(C, "w", 1.0)


@trap
def ga_default_base_class():

    class B:
        pass

    class C(B):
        pass

    c = C()
    return lambda x: x * getattr(c, "w", 2.0), toggling(B, "w", 1.0)


@trap
def ga_slots():

    class C:
        __slots__ = ("w",)

    c = C()

    def change(n):
        if pick(n, 0, 1):
            c.w = 5.0
        else:
            with contextlib.suppress(AttributeError):
                del c.w

    return lambda x: x * getattr(c, "w", 2.0), change


@trap
def ga_try_except():
    b = Thing()

    def fun(x):
        try:
            return x * b.w
        except AttributeError:
            return -x

    return fun, toggling(b)


@trap
def ga_try_except_class():

    class C:
        pass

    def fun(x):
        try:
            return x * C.w
        except AttributeError:
            return -x

    return fun, toggling(C, "w", 5.0)


@trap
def ga_try_except_fn():

    def h(x):
        return x

    def fun(x):
        try:
            return x * h.w
        except AttributeError:
            return -x

    return fun, toggling(h)


@trap
def ga_try_except_nested():
    b = Thing()
    b.inner = Thing()

    def fun(x):
        try:
            return x * b.inner.w
        except AttributeError:
            return -x

    return fun, toggling(b.inner)


@trap
def ga_dunder_getattribute():
    b = Thing()
    b.w = 1.0
    return lambda x: x * object.__getattribute__(b, "w"), setting(b, "w")


@trap
def ga_dunder_getattribute_bound():
    b = Thing()
    b.w = 1.0
    return lambda x: x * b.__getattribute__("w"), setting(b, "w")


@trap(warns=CHANGES)
def ga_overridden_getattribute():

    class C:
        def __getattribute__(self, name):
            return (
                object.__getattribute__(self, "_d")[name]
                if not name.startswith("_")
                else object.__getattribute__(self, name)
            )

    c = C()
    object.__setattr__(c, "_d", {"w": 1.0})
    return lambda x: x * c.w, lambda n: object.__getattribute__(c, "_d").update(w=rates(n))  # here


@trap(warns=CHANGES)
def ga_getattribute_shadow():
    st = [1.0]

    class C:
        w = 3.0

        def __getattribute__(self, name):
            if name == "w":
                return st[0]
            return super().__getattribute__(name)

    c = C()
    return lambda x: x * c.w, lambda n: st.__setitem__(0, rates(n))  # here


@trap
def ga_getattribute_added():

    class C:
        w = 3.0

    c = C()
    ga = lambda self, name: 7.0 if name == "w" else object.__getattribute__(self, name)

    def change(n):
        if pick(n, 0, 1):
            C.__getattribute__ = ga
        elif "__getattribute__" in C.__dict__:
            del C.__getattribute__

    return lambda x: x * c.w, change


@trap
def ga_getattr_added():

    class C:
        pass

    c = C()
    ga = lambda self, name: 7.0 if name == "w" else 0

    def change(n):
        if pick(n, 0, 1):
            C.__getattr__ = ga
        elif "__getattr__" in C.__dict__:
            del C.__getattr__

    return lambda x: x * getattr(c, "w", 2.0), change


@trap
def ga_module_getattr_added():
    m = types.ModuleType("m_gx")

    def change(n):
        if pick(n, 0, 1):
            m.__getattr__ = lambda name: 7.0
        elif "__getattr__" in m.__dict__:
            del m.__getattr__

    return lambda x: x * getattr(m, "w", 2.0), change


@trap
def ga_type_getattribute():

    class C:
        w = 1.0

    return lambda x: x * type.__getattribute__(C, "w"), setting(C, "w")


@trap
def dir_len():
    b = Thing()
    return lambda x: x * float("w" in dir(b)), toggling(b)


@trap
def dir_class():

    class C:
        pass

    return lambda x: x * float("w" in dir(C)), toggling(C, "w", 1.0)


@trap
def dir_module():
    m = types.ModuleType("m_d")
    return lambda x: x * float("w" in dir(m)), toggling(m)


@trap
def vars_len():
    b = Thing()
    return lambda x: x * (1.0 + len(vars(b))), toggling(b)


@trap
def vars_in():
    b = Thing()
    return lambda x: x * (1.0 + ("w" in vars(b))), toggling(b)


@trap
def vars_item():
    b = Thing()
    b.w = 1.0
    return lambda x: x * vars(b)["w"], setting(b, "w")


@trap
def vars_values():
    b = Thing()
    b.w = 1.0

    def change(n):
        b.__dict__.clear()
        b.__dict__[pick(n, "a", "b")] = 1.0
        b.__dict__[f"c{n // 6}"] = 2.0

    return lambda x: x * sum(vars(b).values()) + len("".join(vars(b))), change


@trap
def vars_get():
    b = Thing()
    return lambda x: x * vars(b).get("w", 2.0), toggling(b)


@trap
def names_that_code_cannot_spell():
    b = Thing()
    for name in ("0.w", "lambda", "\u00b5", "", "a b"):
        setattr(b, name, 1.0)

    return lambda x: x * sum(vars(b).values()) + getattr(b, "0.w") - getattr(b, "lambda"), setting(b, "0.w")


@trap
def arrays_by_names_that_code_cannot_spell():
    b = Thing()
    setattr(b, "0.w", np.ones(3))

    def fun(x):
        for value in vars(b).values():
            x = x * value
        return x + getattr(b, "0.w")

    return fun, lambda n: setattr(b, "0.w", np.full(3, float(n)))


@trap
def super_of_a_name_that_code_cannot_spell():

    class Base:
        pass

    class C(Base):
        def f(self, x):
            return x * getattr(super(), "0.w")

    setattr(Base, "0.w", 1.0)
    return C().f, setting(Base, "0.w")


@trap
def vars_beside_an_accelerated_method():

    class Model:
        def __init__(self):
            self.w = 1.0

        @tj.dlaccelerate
        def __call__(self, x):
            return x * sum(value for name, value in vars(self).items() if name == "w")

    model = Model()
    return lambda x: model(x), setting(model, "w")


@trap
def dunder_dict_in():
    b = Thing()
    return lambda x: x * (1.0 + ("w" in b.__dict__)), toggling(b)


@trap
def dunder_dict_len():
    b = Thing()
    return lambda x: x * (1.0 + len(b.__dict__)), toggling(b)


@trap
def dunder_dict_get_alias():
    b = Thing()
    d = b.__dict__
    return lambda x: x * d.get("w", 2.0), toggling(b)


@trap
def vars_class():

    class C:
        w = 1.0

    return lambda x: x * vars(C)["w"], setting(C, "w")


@trap
def vars_class_in():

    class C:
        pass

    return lambda x: x * float("w" in vars(C)), toggling(C, "w", 1.0)


@trap
def class_dict():

    class C:
        w = 1.0

    return lambda x: x * C.__dict__["w"], setting(C, "w")


@trap
def vars_module():
    m = types.ModuleType("m_v")
    m.w = 1.0
    return lambda x: x * vars(m)["w"], setting(m, "w")


@trap
def vars_module_len():
    m = types.ModuleType("m_v2")
    return lambda x: x * len(vars(m)), toggling(m)


@trap
def attrgetter_default_name():
    b = Thing()
    b.w = 1.0
    return lambda x: x * operator.attrgetter("w")(b), setting(b, "w")


@trap
def attrgetter_computed():
    b = Thing()
    b.w1 = 1.0
    return lambda x: x * operator.attrgetter("w" + str(1))(b), setting(b, "w1")


@trap
def itemgetter():
    d = {"w": 1.0}
    g = operator.itemgetter("w")
    return lambda x: x * g(d), lambda n: d.update(w=rates(n))


@trap(warns=CHANGES)
def itemgetter_replaced():
    d = {"w": 1.0, "v": 2.0}
    s = types.SimpleNamespace(g=operator.itemgetter("w"))
    return lambda x: x * s.g(d), lambda n: setattr(s, "g", operator.itemgetter(pick(n, "w", "v")))  # here


@trap
def methodcaller():

    class C:
        k = 1.0

        def m(self, a):
            return self.k * a

    c = C()
    g = operator.methodcaller("m", 2.0)
    return lambda x: x * g(c), setting(c, "k")


@trap
def attrgetter_missing():
    b = Thing()
    g = operator.attrgetter("w")

    def fun(x):
        try:
            return x * g(b)
        except AttributeError:
            return -x

    return fun, toggling(b)


@trap
def map_attrgetter():
    bs = [Thing(), Thing()]
    for b in bs:
        b.w = 1.0
    return lambda x: x * sum(map(operator.attrgetter("w"), bs)), lambda n: setattr(bs[0], "w", rates(n))


@trap
def sorted_key_attr():
    bs = [Thing(), Thing()]
    bs[0].w, bs[1].w, bs[0].v, bs[1].v = (1.0, 2.0, 10.0, 20.0)
    return lambda x: x * sorted(bs, key=lambda b: b.w)[0].v, lambda n: setattr(bs[0], "w", pick(n, 1.0, 3.0))


@trap
def sorted_key_attrgetter():
    bs = [Thing(), Thing()]
    bs[0].w, bs[1].w, bs[0].v, bs[1].v = (1.0, 2.0, 10.0, 20.0)
    return lambda x: x * max(bs, key=operator.attrgetter("w")).v, lambda n: setattr(
        bs[0], "w", pick(n, 1.0, 3.0)
    )


@trap
def class_instancecheck():

    class M(type):
        def __instancecheck__(cls, o):
            return cls.yes

    class C(metaclass=M):
        yes = True

    return lambda x: x * (1.0 if isinstance(3, C) else 2.0), lambda n: setattr(C, "yes", pick(n, True, False))


@trap
def class_of_instance_changed():

    class A:
        k = 1.0

    class B:
        k = 2.0

    c = A()
    return lambda x: x * c.k, lambda n: setattr(c, "__class__", pick(n, A, B))


@trap
def class_of_instance_dunder():

    class A:
        k = 1.0

    class B:
        k = 2.0

    c = A()
    return lambda x: x * c.__class__.k * type(c).k, lambda n: setattr(c, "__class__", pick(n, A, B))


@trap
def slots_attr():

    class C:
        __slots__ = ("w",)

    c = C()
    c.w = 1.0
    return lambda x: x * c.w, setting(c, "w")


@trap
def slots_names():

    class C:
        __slots__ = ("v", "w")

    c = C()
    c.w = c.v = 1.0
    return lambda x: x * sum(getattr(c, s) for s in c.__slots__), setting(c, "w")


@trap
def later_hides_class_attr():

    class C:
        k = 1.0

    c = C()
    return lambda x: x * c.k, toggling(c, "k")


@trap
def later_global():
    ns = {}
    exec("def fun(x):\n try: return x * K\n except NameError: return -x", ns)

    def change(n):
        if pick(n, 0, 1):
            ns["K"] = 3.0
        else:
            ns.pop("K", None)

    return ns["fun"], change


@trap
def later_dict_key():
    d = {}

    def change(n):
        if pick(n, 0, 1):
            d["w"] = 5.0
        else:
            d.pop("w", None)

    return lambda x: x * d.get("w", 2.0), change


@trap
def later_dict_key_in():
    d = {}

    def change(n):
        if pick(n, 0, 1):
            d["w"] = 5.0
        else:
            d.pop("w", None)

    return lambda x: x * (2.0 if "w" in d else 1.0), change


@trap
def later_method():

    class C:
        pass

    c = C()
    f = lambda self, x: x * 5

    def change(n):
        if pick(n, 0, 1):
            C.m = f
        elif "m" in C.__dict__:
            del C.m

    return lambda x: c.m(x) if hasattr(c, "m") else x, change


@trap
def dunder_bool_changed():

    class C:
        def __bool__(self):
            return self.b

    c = C()
    c.b = True
    return lambda x: x * (1.0 if c else 2.0), lambda n: setattr(c, "b", pick(n, True, False))


@trap
def dunder_mul_replaced():

    class C:
        def __mul__(self, o):
            return o * 2

    c = C()
    fs = [lambda s, o: o * 2, lambda s, o: o * 5]
    return lambda x: c * x, lambda n: setattr(C, "__mul__", pick(n, *fs))


@trap
def nds_attr():
    a = np.ones(3).view(Sub)
    a.k = 1.0
    return lambda x: x * a.k, setting(a, "k")


@trap
def nds_attr_array():
    a = np.ones(3).view(Sub)
    a.k = np.ones(3)
    return lambda x: x * a.k, lambda n: setattr(a, "k", np.full(3, rates(n)))


@trap
def nds_attr_and_value():
    a = np.ones(3).view(Sub)
    a.k = 1.0
    return lambda x: x * np.asarray(a) * a.k, lambda n: (
        setattr(a, "k", rates(n)),
        a.__setitem__(slice(None), rates(n // 3)),
    )


@trap
def nds_method():

    class S2(np.ndarray):
        def m(self):
            return self.k

    a = np.ones(3).view(S2)
    a.k = 1.0
    return lambda x: x * a.m(), setting(a, "k")


@trap
def nds_class_attr():

    class S2(np.ndarray):
        k = 1.0

    a = np.ones(3).view(S2)
    return lambda x: x * a.k, setting(S2, "k")


@trap
def nds_hasattr():
    a = np.ones(3).view(Sub)
    return lambda x: x * (1.0 + hasattr(a, "w")), toggling(a)


@trap
def nds_values():
    a = np.ones(3).view(Sub)
    return lambda x: x * float(a.sum()), lambda n: a.__setitem__(slice(None), rates(n))


@trap(warns=CHANGES)
def nds_replaced():
    s = types.SimpleNamespace(a=np.ones(3).view(Sub))

    def change(n):
        s.a = np.full(3, rates(n)).view(Sub)

    return lambda x: x * s.a, change  # here


@trap
def nds_masked():
    a = np.ma.array([1.0, 2.0, 3.0], mask=[0, 0, 1])
    return lambda x: x * float(a.sum()), lambda n: a.mask.__setitem__(1, pick(n, False, True))


@trap(warns=CHANGES)
def nds_matrix_recarray():
    a = np.rec.array([(1.0, 2.0)], dtype=[("a", float), ("b", float)])
    return lambda x: x * float(a.a[0]), lambda n: a.a.__setitem__(0, rates(n))  # here


@trap
def structured():
    a = np.array([(1.0, 2.0)], dtype=[("a", float), ("b", float)])
    return lambda x: x * float(a["a"][0]), lambda n: a["a"].__setitem__(0, rates(n))


@trap
def dtype_metadata():
    s = types.SimpleNamespace(d=np.dtype(float, metadata={"k": 1.0}))
    return lambda x: x * s.d.metadata["k"], lambda n: setattr(
        s, "d", np.dtype(float, metadata={"k": rates(n)})
    )


@trap
def dlarray_attr_error():
    a = tj.dlarray(np.ones(3), "C")
    s = types.SimpleNamespace(a=a)
    return lambda x: x * (2.0 if s.a.format == "C" else 1.0), lambda n: setattr(
        s, "a", tj.dlarray(np.ones(3), pick(n, "C", "B"))
    )


@pytest.mark.sampled
@pytest.mark.parametrize("name", TRAPS)
def test_is_seen(name):
    TRAPS.follow(name)
