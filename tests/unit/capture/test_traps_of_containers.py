# SPDX-License-Identifier: BSD-3-Clause
"""Traps: containers, weak references and values that are equal but not the same."""

import array
import collections
import contextlib
import csv
import datetime
import decimal
import enum
import fractions
import hashlib
import math
import mmap
import operator
import pathlib
import re
import shelve
import sqlite3
import statistics
import struct
import types
import weakref

import numpy as np
import pytest
from state_traps import CHANGES, OWN_CHANGE, Obj, Traps, rates, setting
from worlds import pick

import tracejit as tj

DATABASES = []
TRAPS = Traps()
trap = TRAPS.trap


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


@trap
def u_list():
    u = collections.UserList([1.0])
    return lambda x: x * u[0], lambda n: u.__setitem__(0, rates(n))


@trap
def u_list_len():
    u = collections.UserList([1.0])
    return lambda x: x * len(u), lambda n: setattr(u, "data", [1.0] * int(rates(n)))


@trap
def u_list_iter():
    u = collections.UserList([1.0])
    return lambda x: x * sum(u), lambda n: u.__setitem__(0, rates(n))


@trap
def u_dict():
    u = collections.UserDict(a=1.0)
    return lambda x: x * u["a"], lambda n: u.__setitem__("a", rates(n))


@trap
def u_dict_get():
    u = collections.UserDict()

    def change(n):
        if pick(n, 0, 1):
            u["a"] = 5.0
        else:
            u.data.clear()

    return lambda x: x * u.get("a", 2.0), change


@trap
def u_string():
    s = types.SimpleNamespace(u=collections.UserString("1"))
    return lambda x: x * float(str(s.u)), lambda n: setattr(s.u, "data", str(rates(n)))


@trap
def u_string_len():
    u = collections.UserString("1")
    return lambda x: x * len(u), lambda n: setattr(u, "data", "a" * int(rates(n)))


@trap
def u_dict_sub():

    class D(collections.UserDict):
        pass

    u = D(a=1.0)
    return lambda x: x * u["a"], lambda n: u.__setitem__("a", rates(n))


@trap
def u_chainmap():
    a, b = ({}, {"k": 1.0})
    c = collections.ChainMap(a, b)

    def change(n):
        if pick(n, 0, 1):
            a["k"] = 5.0
        else:
            a.clear()

    return lambda x: x * c["k"], change


@trap
def u_counter():
    c = collections.Counter(a=1)
    return lambda x: x * c["a"] + c["zz"], lambda n: c.__setitem__("a", int(rates(n)))


@trap
def u_counter_most():
    c = collections.Counter(a=1, b=3)
    return lambda x: x * c.most_common(1)[0][1], lambda n: c.__setitem__("a", int(rates(n)))


@trap
def u_counter_total():
    c = collections.Counter(a=1, b=3)
    return lambda x: x * c.total(), lambda n: c.__setitem__("a", int(rates(n)))


@trap
def u_defaultdict():
    d = collections.defaultdict(lambda: 2.0)

    def change(n):
        d.clear()
        if pick(n, 0, 1):
            d["a"] = 5.0

    return lambda x: x * d.get("a", 1.0), change


@trap
def u_defaultdict_factory():
    d = collections.defaultdict(lambda: 2.0)

    def change(n):
        d.clear()
        d.default_factory = pick(n, lambda: 2.0, lambda: 3.0)

    return lambda x: x * d.default_factory(), change


@trap(warns=OWN_CHANGE)
def u_defaultdict_missing():
    d = collections.defaultdict(lambda: 2.0)

    def change(n):
        d.clear()
        d.default_factory = pick(n, lambda: 2.0, lambda: 3.0)

    return lambda x: x * d["zzz"], change  # here


@trap
def u_ordereddict_order():
    d = collections.OrderedDict(a=1.0, b=2.0)
    return lambda x: x * next(iter(d.values())), lambda n: d.move_to_end(pick(n, "a", "b"))


@trap
def u_namedtuple():
    P = collections.namedtuple("P", "a b")
    s = types.SimpleNamespace(p=P(1.0, 2.0))
    return lambda x: x * s.p.a, lambda n: setattr(s, "p", P(rates(n), 2.0))


@trap
def w_ref():
    o = Obj(1.0)
    r = weakref.ref(o)
    return lambda x: x * r().k, setting(o, "k")


@trap(warns=CHANGES)
def w_ref_dead():
    s = types.SimpleNamespace(o=Obj(1.0), r=None)

    def change(n):
        s.o = Obj(1.0)
        s.r = weakref.ref(s.o)
        if pick(n, 0, 1):
            s.o = None

    return lambda x: x * (1.0 if s.r() is None else 2.0), change  # here


@trap(warns=CHANGES)
def w_set_len():
    ws = weakref.WeakSet()
    keep = []

    def change(n):
        keep[:] = [Obj(1.0) for _ in range(int(rates(n)))]
        ws.clear()
        for k in keep:
            ws.add(k)

    return lambda x: x * len(ws), change  # here


@trap
def w_set_attr():
    o = Obj(1.0)
    ws = weakref.WeakSet([o])
    return lambda x: x * sum(p.k for p in ws), setting(o, "k")


@trap
def w_set_dies():
    o = [Obj(1.0), Obj(2.0)]
    ws = weakref.WeakSet(o)

    def change(n):
        if n == 12:
            o.pop()

    return lambda x: x * len(ws), change


@trap
def w_set_in():
    o = Obj(1.0)
    ws = weakref.WeakSet()

    def change(n):
        (ws.add if pick(n, 0, 1) else ws.discard)(o)

    return lambda x: x * (1.0 if o in ws else 2.0), change


@trap
def w_valuedict():
    o = Obj(1.0)
    d = weakref.WeakValueDictionary(a=o)
    return lambda x: x * d["a"].k, setting(o, "k")


@trap
def w_keydict():
    o = Obj(1.0)
    d = weakref.WeakKeyDictionary({o: 1.0})
    return lambda x: x * d[o], lambda n: d.__setitem__(o, rates(n))


@trap
def w_keydict_iter():
    o = Obj(1.0)
    d = weakref.WeakKeyDictionary({o: 1.0})
    return lambda x: x * sum(p.k for p in d), setting(o, "k")


@trap
def w_proxy():
    o = Obj(1.0)
    p = weakref.proxy(o)
    return lambda x: x * p.k, setting(o, "k")


@trap
def w_method():

    class C:
        k = 1.0

        def m(self, x):
            return x * self.k

    c = C()
    r = weakref.WeakMethod(c.m)
    return lambda x: r()(x), setting(c, "k")


@trap
def w_finalize():
    o = Obj(1.0)
    f = weakref.finalize(o, print)
    types.SimpleNamespace(o=o, f=f)

    def change(n):
        if n == 12:
            f.detach()

    return lambda x: x * (1.0 if f.alive else 2.0), change


@trap
def set_of_objects():
    o = Obj(1.0)
    s = {o}
    return lambda x: x * sum(p.k for p in s), setting(o, "k")


@trap
def frozenset_of_objects():
    o = Obj(1.0)
    s = frozenset({o, Obj(2.0)})
    return lambda x: x * sum(p.k for p in s), setting(o, "k")


@trap
def dict_of_object_keys():
    o = Obj(1.0)
    s = {o: 1.0}
    return lambda x: x * sum(p.k for p in s), setting(o, "k")


@trap(warns=CHANGES)
def dict_object_keys_equal():

    class K:
        def __init__(self, k):
            self.k = k

        def __eq__(self, o):
            return True

        def __hash__(self):
            return 1

    s = {K(1.0): 1.0}

    def change(n):
        s.clear()
        s[K(rates(n))] = 1.0

    return lambda x: x * sum(p.k for p in s), change  # here


@trap(warns=CHANGES)
def set_objects_equal():

    class K:
        def __init__(self, k):
            self.k = k

        def __eq__(self, o):
            return True

        def __hash__(self):
            return 1

    s = {K(1.0)}

    def change(n):
        s.clear()
        s.add(K(rates(n)))

    return lambda x: x * sum(p.k for p in s), change  # here


@trap
def set_1_true():
    s = {1}

    def change(n):
        s.clear()
        s.add(pick(n, 1, True, 1.0))

    return lambda x: x * len(str(next(iter(s)))), change


@trap
def dict_key_1_true():
    s = {1: 2.0}

    def change(n):
        s.clear()
        s[pick(n, 1, True, 1.0)] = 2.0

    return lambda x: x * len(str(next(iter(s)))), change


@trap
def range_equal():
    s = types.SimpleNamespace(r=range(0, 1, 1))
    return lambda x: x * s.r.step, lambda n: setattr(s, "r", range(0, 1, int(rates(n))))


@trap(warns=CHANGES)
def decimal_state():
    s = types.SimpleNamespace(d=decimal.Decimal("1"))
    return lambda x: x * len(str(s.d)), lambda n: setattr(  # here
        s, "d", decimal.Decimal(pick(n, "1", "1.0", "1.00"))
    )


@trap(warns=CHANGES)
def datetime_fold():
    s = types.SimpleNamespace(d=datetime.datetime(2020, 1, 1))
    return lambda x: x * (1.0 + s.d.fold), lambda n: setattr(  # here
        s, "d", datetime.datetime(2020, 1, 1, fold=pick(n, 0, 1))
    )


@trap(warns=CHANGES)
def fraction_state():
    s = types.SimpleNamespace(d=fractions.Fraction(1, 2))
    return lambda x: x * float(s.d), lambda n: setattr(s, "d", fractions.Fraction(1, int(rates(n))))  # here


@trap
def neg_zero_in_set():
    s = {0.0}

    def change(n):
        s.clear()
        s.add(pick(n, 0.0, -0.0))

    return lambda x: x * math.copysign(1.0, next(iter(s))), change


@trap
def m_array_array():
    a = array.array("d", [1.0])
    return lambda x: x * a[0], lambda n: a.__setitem__(0, rates(n))


@trap
def m_array_len():
    a = array.array("d", [1.0])

    def change(n):
        del a[:]
        a.extend([1.0] * int(rates(n)))

    return lambda x: x * len(a), change


@trap
def m_bytearray_len():
    a = bytearray(b"a")

    def change(n):
        a[:] = b"a" * int(rates(n))

    return lambda x: x * len(a), change


@trap
def m_memoryview():
    b = bytearray(b"\x01\x02")
    a = memoryview(b)
    return lambda x: x * a[0], lambda n: b.__setitem__(0, int(rates(n)))


@trap
def m_mmap():
    mm = mmap.mmap(-1, 16)
    return lambda x: x * mm[0], lambda n: mm.__setitem__(0, int(rates(n)))


@trap
def m_mmap_tell():
    mm = mmap.mmap(-1, 16)
    return lambda x: x * mm.tell(), lambda n: mm.seek(int(rates(n)))


@trap(warns=CHANGES)
def m_hashlib():
    s = types.SimpleNamespace(h=hashlib.md5())

    def change(n):
        s.h = hashlib.md5(str(rates(n)).encode())

    return lambda x: x * s.h.digest()[0], change  # here


@trap
def m_hashlib_update():
    h = hashlib.md5()

    def change(n):
        if n % 6 == 3:
            h.update(b"a")

    return lambda x: x * h.digest()[0], change


@trap
def m_enum_by_name():

    class E(enum.Enum):
        A = 1.0
        B = 2.0

    s = types.SimpleNamespace(n="A")
    return lambda x: x * E[s.n].value, lambda n: setattr(s, "n", pick(n, "A", "B"))


@trap
def m_enum_by_value():

    class E(enum.Enum):
        A = 1.0
        B = 2.0

    s = types.SimpleNamespace(n=1.0)
    return lambda x: x * (1.0 if E(s.n) is E.A else 3.0), lambda n: setattr(s, "n", pick(n, 1.0, 2.0))


class Wrapped:
    def __init__(self, elements):
        self.elements = elements

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.elements, dtype)


@trap
def ar_asarray_of_a_wrapper():
    u = Wrapped([1.0, 2.0, 3.0])
    return lambda x: x * np.asarray(u), lambda n: u.elements.__setitem__(0, rates(n))


@trap
def ar_array_of_a_wrapper():
    u = Wrapped([1.0, 2.0, 3.0])
    return lambda x: x * np.array(u), setting(u, "elements", [1.0, 2.0, 3.0], [4.0, 2.0, 3.0])


@trap
def ar_a_wrapper_as_an_operand():
    u = Wrapped([1.0, 2.0, 3.0])
    return lambda x: np.multiply(x, u), lambda n: u.elements.__setitem__(0, rates(n))


def named_tuple():
    class Pair(collections.namedtuple("Pair", "a b")):
        k = 3.0

        def total(self):
            return self.a * self.k

        @property
        def half(self):
            return self.a / 2

    return Pair(1.0, 2.0)


@trap
def nt_method():
    pair = named_tuple()
    return lambda x: x * pair.total(), lambda n: setattr(
        type(pair), "total", pick(n, lambda self: self.b, lambda self: 5.0)
    )


@trap
def nt_property():
    pair = named_tuple()
    return lambda x: x * pair.half, lambda n: setattr(
        type(pair), "half", pick(n, property(lambda self: self.b), property(lambda self: 5.0))
    )


@trap
def nt_attribute_of_the_class():
    pair = named_tuple()
    return lambda x: x * pair.total(), lambda n: setattr(type(pair), "k", rates(n))


@trap
def nt_attribute_of_the_class_of_an_element():
    pairs = [named_tuple()]
    return lambda x: x * sum(pair.k for pair in pairs), lambda n: setattr(type(pairs[0]), "k", rates(n))


@trap
def nt_own_attribute():
    pair = named_tuple()
    pair.k = 3.0
    return lambda x: x * pair.k, lambda n: setattr(pair, "k", rates(n))


@trap
def m_enum_mutable_value():

    class E(enum.Enum):
        A = (1.0, [2.0])

    member = E.A
    return lambda x: x * member.value[0] + member.value[1][0], lambda n: member.value[1].__setitem__(
        0, rates(n)
    )


@trap
def u_deque_of_arrays_with_maxlen():
    u = collections.deque([np.ones(3), np.ones(3)], maxlen=3)
    return lambda x: x * u[0] * u.maxlen, lambda n: u.__setitem__(0, np.full(3, rates(n)))


@trap
def m_enum_member_attr():

    class E(enum.Enum):
        A = 1.0

    E.A.k = 1.0
    return lambda x: x * E.A.k, setting(E.A, "k")


@trap
def m_enum_iter():

    class E(enum.Enum):
        A = 1.0
        B = 2.0

    for e in E:
        e.k = 1.0
    return lambda x: x * sum(e.k for e in E), setting(E.B, "k")


@trap
def m_enum_members():

    class E(enum.Enum):
        A = 1.0
        B = 2.0

    for e in E:
        e.k = 1.0
    return lambda x: x * sum(e.k for e in E.__members__.values()), setting(E.B, "k")


@trap
def m_intenum_equal():

    class E(enum.IntEnum):
        A = 1

    class F(enum.IntEnum):
        A = 1

    E.A.k = 1.0
    F.A.k = 3.0
    s = types.SimpleNamespace(e=E.A)
    return lambda x: x * s.e.k, lambda n: setattr(s, "e", pick(n, E.A, F.A))


@trap(warns=CHANGES)
def m_path():
    s = types.SimpleNamespace(p=pathlib.Path("a"))
    return lambda x: x * len(str(s.p)), lambda n: setattr(s, "p", pathlib.Path(pick(n, "a", "bbb")))  # here


@trap
def m_statistics():
    own = [1.0, 2.0]
    return lambda x: x * statistics.mean(own), lambda n: own.__setitem__(0, rates(n))


@trap(warns=CHANGES)
def m_future():
    import concurrent.futures

    s = types.SimpleNamespace(f=None)

    def change(n):
        s.f = concurrent.futures.Future()
        s.f.set_result(rates(n))

    return lambda x: x * s.f.result(), change  # here


@trap
def m_shelve_dict():
    d = {}
    s = shelve.Shelf(d)

    def change(n):
        s["k"] = rates(n)

    return lambda x: x * s["k"], change


@trap
def m_csv_reader():
    rows = ["1,2", "3,4"]

    def change(n):
        rows[0] = f"{rates(n)},2"

    return lambda x: x * float(next(csv.reader(rows))[0]), change


@trap
def m_re_pattern():
    s = types.SimpleNamespace(p=re.compile("a"))

    def change(n):
        s.p = re.compile(pick(n, "a", "b"))

    return lambda x: x * (1.0 if s.p.match("a") else 2.0), change


@trap(warns=CHANGES)
def m_struct():
    s = types.SimpleNamespace(p=struct.Struct("d"))

    def change(n):
        s.p = struct.Struct(pick(n, "d", "i"))

    return lambda x: x * s.p.size, change  # here


@trap(warns=CHANGES)
def m_sqlite():
    c = sqlite3.connect(":memory:")
    DATABASES.append(c)  # which would warn where they are collected
    c.execute("create table t(k)")
    c.execute("insert into t values (1.0)")

    def change(n):
        c.execute("update t set k = ?", (rates(n),))

    return lambda x: x * c.execute("select k from t").fetchone()[0], change  # here


@trap
def m_zip_iter():
    a = [1.0, 2.0]
    b = [3.0, 4.0]
    return lambda x: x * sum((p * q for p, q in zip(a, b, strict=False))), lambda n: a.__setitem__(
        0, rates(n)
    )


@trap
def m_mappingproxy():
    d = {"k": 1.0}
    p = types.MappingProxyType(d)
    return lambda x: x * p["k"], lambda n: d.update(k=rates(n))


@trap
def m_dict_view_keys():
    d = {"k": 1.0}
    p = d.keys()

    def change(n):
        d.clear()
        d.update({str(i): 1 for i in range(int(rates(n)))})

    return lambda x: x * len(p), change


@trap
def m_slice_attr():
    s = types.SimpleNamespace(s=slice(0, 1))
    return lambda x: x * s.s.stop, lambda n: setattr(s, "s", slice(0, int(rates(n))))


@trap
def m_complex():
    s = types.SimpleNamespace(s=1 + 2j)
    return lambda x: x * s.s.real, lambda n: setattr(s, "s", complex(rates(n), 2))


@trap(warns=CHANGES)
def m_generic_alias():
    s = types.SimpleNamespace(s=list[int])
    return lambda x: x * (1.0 if s.s.__args__[0] is int else 2.0), lambda n: setattr(  # here
        s, "s", pick(n, list[int], list[str])
    )


@trap
def m_cell_contents():
    k = 1.0

    def h():
        return k

    def change(n):
        nonlocal k
        k = rates(n)

    return lambda x: x * h.__closure__[0].cell_contents, change


@trap
def m_frame_locals():

    def fun(x):
        rate = 2.0
        return x * locals()["rate"]

    return (fun, lambda n: None)


@trap
def m_globals_get():
    ns = {"__name__": "q"}
    exec("def fun(x): return x * globals().get('KK', 2.0)", ns)

    def change(n):
        if pick(n, 0, 1):
            ns["KK"] = 5.0
        else:
            ns.pop("KK", None)

    return (ns["fun"], change)


@trap
def m_operator_methods():
    d = {"k": 1.0}
    return lambda x: x * operator.getitem(d, "k"), lambda n: d.update(k=rates(n))


@trap
def m_setdefault():
    d = {}

    def change(n):
        d.clear()
        d["k"] = rates(n)

    return lambda x: x * d.setdefault("k", 3.0), change


@trap
def m_dict_pop_default():
    d = {}

    def change(n):
        d.clear()
        if pick(n, 0, 1):
            d["k"] = 5.0

    return lambda x: x * d.pop("k", 3.0), change


@trap
def m_list_index():
    own = [1.0, 2.0]
    return lambda x: x * own.index(2.0), lambda n: own.__setitem__(
        slice(None), pick(n, [1.0, 2.0], [2.0, 1.0])
    )


@trap
def m_list_neg_index_grow():
    own = [1.0]

    def change(n):
        own.append(float(n // 6))

    return lambda x: x * own[-1], change


@trap
def m_tuple_id():
    a, b = ([1.0], [1.0])
    s = types.SimpleNamespace(u=a, v=a)
    return lambda x: x * (1.0 if s.u is s.v else 2.0), lambda n: setattr(s, "v", pick(n, a, b))


@trap
def m_id_same_objects():
    a, b = (Obj(1.0), Obj(1.0))
    s = types.SimpleNamespace(u=a, v=a)
    return lambda x: x * (1.0 if s.u is s.v else 2.0), lambda n: setattr(s, "v", pick(n, a, b))


@trap
def m_id_sep_objects():
    a, b = (Obj(1.0), Obj(1.0))
    s = types.SimpleNamespace(u=a, v=b)
    return lambda x: x * (1.0 if s.u is s.v else 2.0), lambda n: setattr(s, "v", pick(n, b, a))


@trap
def m_id_arrays():
    a, b = (np.ones(3), np.ones(3))
    s = types.SimpleNamespace(u=a, v=b)
    return lambda x: x * (1.0 if s.u is s.v else 2.0), lambda n: setattr(s, "v", pick(n, b, a))


@trap
def m_eq_user_class():

    class K:
        __hash__ = None

        def __init__(self, k):
            self.k = k

        def __eq__(self, o):
            return self.k == o.k

    a, b = (K(1.0), K(1.0))
    return lambda x: x * (1.0 if a == b else 2.0), setting(a, "k")


@trap
def m_hash_user():

    class K:
        def __hash__(self):
            return int(self.k)

    a = K()
    a.k = 1.0
    return lambda x: x * hash(a), setting(a, "k")


@trap
def m_contextmanager_state():
    st = []

    @contextlib.contextmanager
    def scaled(k):
        st.append(k)
        try:
            yield
        finally:
            st.pop()

    def h(x):
        return x * (st[-1] if st else 1.0)  # here

    def fun(x):
        with scaled(2.0):
            y = h(x)
        return y + h(x)

    return (fun, lambda n: st.__setitem__(slice(None), [rates(n)] if n % 7 > 2 else []))


@trap
def m_exitstack():
    k = [1.0]

    def fun(x):
        with contextlib.ExitStack():
            return x * k[0]

    return (fun, lambda n: k.__setitem__(0, rates(n)))


@pytest.mark.sampled
@pytest.mark.parametrize("name", TRAPS)
def test_is_seen(name):
    TRAPS.follow(name)


def test_a_deque_of_arrays_is_replayed():
    made = collections.deque([np.ones(2), np.ones(2)], maxlen=3)
    fun = tj.dlaccelerate(lambda x: x * made[0] + made.maxlen)
    for _ in range(4):
        fun(np.ones(2))
    assert fun.stats.hits == 2


def test_an_attribute_of_the_class_of_a_named_tuple_that_is_an_argument():
    pair = named_tuple()
    fun = tj.dlaccelerate(lambda x, pair: x * pair.total())
    for n in range(8):
        type(pair).k = 1.0 + n // 3
        assert fun(np.ones(2), pair).tolist() == [1.0 + n // 3] * 2
    assert fun.stats.uncompiled == 0
