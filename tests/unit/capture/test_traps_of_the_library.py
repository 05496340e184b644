# SPDX-License-Identifier: BSD-3-Clause
"""Traps: objects of the standard library that change between calls."""

import argparse
import collections
import configparser
import contextvars
import copy
import inspect
import io
import json
import logging
import os
import pickle
import queue
import random
import secrets
import string
import threading
import types
import uuid

import numpy as np
import pytest
from state_traps import CHANGES, DRAWS, OWN_CHANGE, Obj, Traps, rates, setting, toggling
from worlds import pick

import tracejit as tj

TRAPS = Traps()
trap = TRAPS.trap


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


@trap
def io_stringio_value():
    s = types.SimpleNamespace(f=io.StringIO("1.0"))

    def change(n):
        s.f.seek(0)
        s.f.truncate()
        s.f.write(str(rates(n)))

    return lambda x: x * float(s.f.getvalue()), change


@trap
def io_stringio_position():
    f = io.StringIO("0123456789")
    return lambda x: x * f.tell(), lambda n: f.seek(int(rates(n)))


@trap(warns=OWN_CHANGE)
def io_stringio_read():
    f = io.StringIO("123456789")

    def fun(x):
        return x * float(f.read(1))  # here

    return (fun, lambda n: f.seek(int(rates(n))))


@trap(warns=OWN_CHANGE)
def io_stringio_read_const():
    f = io.StringIO("111122222222222222222222222222222222")
    return lambda x: x * float(f.read(1)), lambda n: None  # here


@trap
def io_stringio_seek_read():
    f = io.StringIO("1")

    def fun(x):
        f.seek(0)
        return x * float(f.read())

    def change(n):
        f.seek(0)
        f.truncate()
        f.write(str(rates(n)))

    return (fun, change)


@trap
def io_bytesio_value():
    f = io.BytesIO(b"1")

    def change(n):
        f.seek(0)
        f.truncate()
        f.write(str(rates(n)).encode())

    return lambda x: x * float(f.getvalue()), change


@trap
def io_bytesio_getbuffer():
    f = io.BytesIO(b"123")

    def change(n):
        f.seek(0)
        f.write(str(int(rates(n))).encode())

    return lambda x: x * f.getbuffer()[0], change


@trap
def io_bytesio_position():
    f = io.BytesIO(b"123456")
    return lambda x: x * f.tell(), lambda n: f.seek(int(rates(n)))


@trap
def io_bytesio_load():
    f = io.BytesIO()

    def change(n):
        f.seek(0)
        np.save(f, np.full(3, rates(n)))

    def fun(x):
        f.seek(0)
        return x * np.load(f)

    return (fun, change)


@trap(warns=CHANGES)
def io_closed():
    s = types.SimpleNamespace(f=io.StringIO("1.0"))

    def change(n):
        s.f = io.StringIO("a")
        if pick(n, 0, 1):
            s.f.close()

    return lambda x: x * (1.0 if s.f.closed else 2.0), change  # here


@trap
def io_iterate():
    f = io.StringIO("1\n2\n3\n")

    def fun(x):
        f.seek(0)
        return x * sum(float(own) for own in f)

    def change(n):
        f.seek(0)
        f.truncate()
        f.write(f"{rates(n)}\n2\n")

    return (fun, change)


@trap(warns=OWN_CHANGE)
def io_textwrapper():
    b = io.BytesIO(b"1.0")
    f = io.TextIOWrapper(b)

    def change(n):
        b.seek(0)
        b.truncate()
        b.write(str(rates(n)).encode())
        f.seek(0)

    return lambda x: x * float(f.read()), change  # here


@trap
def log_level():
    own = logging.getLogger("trap1")
    return lambda x: x * own.level, lambda n: own.setLevel(pick(n, 10, 20, 30))


@trap
def log_effective():
    own = logging.getLogger("trap2.child")
    p = logging.getLogger("trap2")
    return lambda x: x * own.getEffectiveLevel(), lambda n: p.setLevel(pick(n, 10, 20, 30))


@trap
def log_enabled_for():
    own = logging.getLogger("trap3")
    return lambda x: x * (1.0 if own.isEnabledFor(logging.DEBUG) else 2.0), lambda n: own.setLevel(
        pick(n, 10, 20, 30)
    )


@trap
def log_enabled_parent():
    own = logging.getLogger("trap4.child")
    p = logging.getLogger("trap4")
    return lambda x: x * (1.0 if own.isEnabledFor(logging.DEBUG) else 2.0), lambda n: p.setLevel(
        pick(n, 10, 20, 30)
    )


@trap
def log_get_logger_inside():
    own = logging.getLogger("trap5")
    return (
        lambda x: x * (1.0 if logging.getLogger("trap5").isEnabledFor(10) else 2.0),
        lambda n: own.setLevel(pick(n, 10, 20, 30)),
    )


@trap
def log_disable():
    own = logging.getLogger("trap6")
    own.setLevel(10)

    def change(n):
        logging.disable(pick(n, 0, 50))

    change.undo = lambda: logging.disable(0)
    return lambda x: x * (1.0 if own.isEnabledFor(10) else 2.0), change


@trap
def log_handlers():
    own = logging.getLogger("trap7")

    def change(n):
        own.handlers[:] = [logging.NullHandler()] * pick(n, 0, 1, 2)

    return lambda x: x * (1.0 + len(own.handlers)), change


@trap
def log_has_handlers():
    own = logging.getLogger("trap8")
    own.propagate = False

    def change(n):
        own.handlers[:] = [logging.NullHandler()] * pick(n, 0, 1)

    return lambda x: x * (1.0 + own.hasHandlers()), change


@trap
def log_debug_call_is_ok():
    own = logging.getLogger("trap9")
    own.setLevel(50)

    def fun(x):
        own.debug("hello %s", 1)
        return x * 2

    return (fun, lambda n: None)


@trap
def q_size():
    q = queue.Queue()

    def change(n):
        while not q.empty():
            q.get()
        for _ in range(int(rates(n))):
            q.put(1)

    return lambda x: x * q.qsize(), change


@trap
def q_empty():
    q = queue.Queue()

    def change(n):
        while not q.empty():
            q.get()
        for _ in range(pick(n, 0, 1)):
            q.put(1)

    return lambda x: x * (1.0 if q.empty() else 2.0), change


@trap
def q_simple_size():
    q = queue.SimpleQueue()

    def change(n):
        while not q.empty():
            q.get()
        for _ in range(int(rates(n))):
            q.put(1)

    return lambda x: x * q.qsize(), change


@trap(warns=OWN_CHANGE)
def q_get():
    q = queue.Queue()

    def change(n):
        q.put(rates(n))

    return lambda x: x * q.get(), change  # here


@trap(warns=OWN_CHANGE)
def q_get_same_value():
    q = queue.Queue()
    for i in range(40):
        q.put(1.0 if i < 10 else 2.0)
    return lambda x: x * q.get(), lambda n: None  # here


@trap(warns=OWN_CHANGE)
def q_simple_get_same_value():
    q = queue.SimpleQueue()
    for i in range(40):
        q.put(1.0 if i < 10 else 2.0)
    return lambda x: x * q.get(), lambda n: None  # here


@trap
def q_priority_peek():
    q = queue.PriorityQueue()

    def change(n):
        q.queue[:] = [rates(n)]

    return lambda x: x * q.queue[0], change


@trap
def q_lifo():
    q = queue.LifoQueue()

    def change(n):
        q.queue[:] = [rates(n)]

    return lambda x: x * q.queue[-1], change


@trap
def q_deque():
    d = collections.deque([1.0])
    return lambda x: x * d[0], lambda n: d.__setitem__(0, rates(n))


@trap(warns=OWN_CHANGE)
def q_deque_popleft_same():
    d = collections.deque([1.0] * 10 + [2.0] * 30)
    return lambda x: x * d.popleft(), lambda n: None  # here


@trap
def q_deque_maxlen():
    s = types.SimpleNamespace(d=collections.deque([1.0], 3))
    return lambda x: x * s.d.maxlen, lambda n: setattr(s, "d", collections.deque([1.0], int(rates(n))))


@trap(warns=OWN_CHANGE)
def q_generator_same():
    it = (v for v in [1.0] * 10 + [2.0] * 40)
    return lambda x: x * next(it), lambda n: None  # here


@trap
def q_heap():
    h = [1.0]
    return lambda x: x * h[0], lambda n: h.__setitem__(0, rates(n))


@trap
def cp_get():
    c = configparser.ConfigParser()
    c.read_dict({"a": {"k": "1.0"}})
    return lambda x: x * float(c["a"]["k"]), lambda n: c.set("a", "k", str(rates(n)))


@trap
def cp_getfloat():
    c = configparser.ConfigParser()
    c.read_dict({"a": {"k": "1.0"}})
    return lambda x: x * c.getfloat("a", "k"), lambda n: c.set("a", "k", str(rates(n)))


@trap
def cp_section_getfloat():
    c = configparser.ConfigParser()
    c.read_dict({"a": {"k": "1.0"}})
    return lambda x: x * c["a"].getfloat("k"), lambda n: c.set("a", "k", str(rates(n)))


@trap
def cp_section_held():
    c = configparser.ConfigParser()
    c.read_dict({"a": {"k": "1.0"}})
    s = c["a"]
    return lambda x: x * float(s["k"]), lambda n: c.set("a", "k", str(rates(n)))


@trap
def cp_has():
    c = configparser.ConfigParser()
    c.read_dict({"a": {"k": "1.0"}})

    def change(n):
        if pick(n, 0, 1):
            c.set("a", "z", "1")
        else:
            c.remove_option("a", "z")

    return lambda x: x * (1.0 + c.has_option("a", "z")), change


@trap
def cp_default():
    c = configparser.ConfigParser()
    c.read_dict({"DEFAULT": {"k": "1.0"}, "a": {}})
    return lambda x: x * c.getfloat("a", "k"), lambda n: c["DEFAULT"].__setitem__("k", str(rates(n)))


@trap
def cp_fallback():
    c = configparser.ConfigParser()
    c.read_dict({"a": {}})

    def change(n):
        if pick(n, 0, 1):
            c.set("a", "z", "5")
        else:
            c.remove_option("a", "z")

    return lambda x: x * c.getfloat("a", "z", fallback=2.0), change


@trap
def cp_sections():
    c = configparser.ConfigParser()

    def change(n):
        for i in range(5):
            c.remove_section(f"s{i}")
        for i in range(int(rates(n))):
            c.add_section(f"s{i}")

    return lambda x: x * len(c.sections()), change


@trap
def argparse_ns():
    a = argparse.Namespace(k=1.0)
    return lambda x: x * a.k, setting(a, "k")


@trap
def argparse_vars():
    a = argparse.Namespace(k=1.0)
    return lambda x: x * sum(vars(a).values()), setting(a, "k")


@trap
def argparse_in():
    a = argparse.Namespace(k=1.0)
    return lambda x: x * (1.0 + ("w" in a)), toggling(a)


@trap
def ns_eq():
    a = types.SimpleNamespace(k=1.0)
    return lambda x: x * (1.0 if a == types.SimpleNamespace(k=1.0) else 2.0), setting(a, "k")


@trap
def ns_repr():
    a = types.SimpleNamespace(k=1.0)
    return lambda x: x * len(repr(a)), lambda n: setattr(a, "k", 10 ** int(rates(n)))


@trap
def ns_copy():
    a = types.SimpleNamespace(k=1.0)
    return lambda x: x * copy.copy(a).k, setting(a, "k")


@trap
def ns_deepcopy():
    a = types.SimpleNamespace(b=types.SimpleNamespace(k=1.0))
    return lambda x: x * copy.deepcopy(a).b.k, setting(a.b, "k")


@trap
def obj_copy():
    a = Obj(1.0)
    return lambda x: x * copy.copy(a).k, setting(a, "k")


@trap
def obj_pickle():
    a = Obj(1.0)
    return lambda x: x * pickle.loads(pickle.dumps(a)).k, setting(a, "k")


@trap
def obj_json_dict():
    a = Obj(1.0)
    return lambda x: x * json.loads(json.dumps(a.__dict__))["k"], setting(a, "k")


@trap
def obj_format():
    a = Obj(1.0)
    return lambda x: x * float(f"{a.k}"), setting(a, "k")


@trap
def obj_percent():
    d = {"k": 1.0}
    return lambda x: x * float("{k}".format(**d)), lambda n: d.update(k=rates(n))


@trap
def obj_template():
    d = {"k": 1.0}
    t = string.Template("$k")
    return lambda x: x * float(t.substitute(d)), lambda n: d.update(k=rates(n))


@trap
def obj_str_dunder():

    class C:
        def __str__(self):
            return str(self.k)

    c = C()
    c.k = 1.0
    return lambda x: x * float(f"{c}"), setting(c, "k")


@trap
def obj_inspect_getmembers():
    a = Obj(1.0)
    return lambda x: x * dict(inspect.getmembers(a))["k"], setting(a, "k")


@trap
def obj_inspect_signature():

    def h(a=1.0):
        pass

    return lambda x: x * inspect.signature(h).parameters["a"].default, lambda n: setattr(
        h, "__defaults__", (rates(n),)
    )


@trap
def tl_attr():
    t = threading.local()
    t.k = 1.0
    return lambda x: x * t.k, setting(t, "k")


@trap
def tl_hasattr():
    t = threading.local()

    def change(n):
        if pick(n, 0, 1):
            t.w = 1
        elif hasattr(t, "w"):
            del t.w

    return lambda x: x * (1.0 + hasattr(t, "w")), change


@trap
def tl_getattr():
    t = threading.local()

    def change(n):
        if pick(n, 0, 1):
            t.w = 5.0
        elif hasattr(t, "w"):
            del t.w

    return lambda x: x * getattr(t, "w", 2.0), change


@trap(warns=CHANGES)
def tl_dict():
    t = threading.local()

    def change(n):
        t.__dict__.clear()
        t.__dict__.update({f"a{i}": 1 for i in range(int(rates(n)))})

    return lambda x: x * len(t.__dict__), change  # here


@trap
def tl_sub():

    class L(threading.local):
        k = 1.0

    t = L()
    return lambda x: x * t.k, setting(t, "k")


@trap
def tl_array():
    t = threading.local()
    t.k = np.ones(3)
    return lambda x: x * t.k, lambda n: setattr(t, "k", np.full(3, rates(n)))


@trap
def th_event():
    e = threading.Event()
    return lambda x: x * (1.0 + e.is_set()), lambda n: e.set() if pick(n, 0, 1) else e.clear()


@trap
def th_lock():
    e = threading.Lock()

    def change(n):
        if pick(n, 0, 1):
            e.acquire(blocking=False)
        elif e.locked():
            e.release()

    return lambda x: x * (1.0 + e.locked()), change


@trap
def ctx_get():
    v = contextvars.ContextVar("v", default=1.0)
    return lambda x: x * v.get(), lambda n: v.set(rates(n))


@trap
def ctx_get_default_arg():
    v = contextvars.ContextVar("v2")
    toks = []

    def change(n):
        if pick(n, 0, 1):
            toks.append(v.set(5.0))
        else:
            while toks:
                v.reset(toks.pop())

    return lambda x: x * v.get(2.0), change


@trap
def ctx_copy_context():
    v = contextvars.ContextVar("v3", default=1.0)
    return lambda x: x * contextvars.copy_context().get(v, 1.0), lambda n: v.set(rates(n))


@trap
def ctx_np_errstate():

    def change(n):
        np.seterr(divide=pick(n, "warn", "ignore"))

    change.undo = lambda: np.seterr(divide="warn")
    return lambda x: x * len(np.geterr()["divide"]), change


@trap
def r_getstate():
    return lambda x: x * (random.getstate()[1][0] % 7), lambda n: random.seed(int(rates(n)))


@trap
def r_np_state():
    return lambda x: x * (int(np.random.get_state()[1][0]) % 7), lambda n: np.random.seed(int(rates(n)))


@trap
def r_gen_state():
    g = np.random.default_rng(0)
    sts = {}
    for k in (1.0, 2.0, 5.0):
        sts[k] = np.random.default_rng(int(k)).bit_generator.state

    def change(n):
        g.bit_generator.state = sts[rates(n)]

    return lambda x: x * (g.bit_generator.state["state"]["state"] % 7), change


@trap()
def r_random_same():
    return lambda x: x * (1.0 if random.random() < 2 else 2.0), lambda n: None


@trap()
def r_instance_same():
    r = random.Random(0)
    return lambda x: x * (1.0 if r.random() < 2 else 2.0), lambda n: None


@trap(warns=DRAWS)
def r_sub_same():

    class R(random.Random):
        pass

    r = R(0)
    return lambda x: x * (1.0 if r.random() < 2 else 2.0), lambda n: None  # here


@trap()
def r_from_import():
    rnd = random.random
    return lambda x: x * (1.0 if rnd() < 2 else 2.0), lambda n: None


@pytest.mark.sampled
@pytest.mark.parametrize("name", TRAPS)
def test_is_seen(name):
    TRAPS.follow(name)


@pytest.mark.parametrize(
    "draw", [lambda: os.urandom(1), lambda: secrets.randbelow(9), uuid.uuid4, random.SystemRandom().random]
)
def test_numbers_that_are_never_the_same_are_not_replayed(draw):
    accelerated = tj.dlaccelerate(lambda x: x * len(str(type(draw()))))
    with pytest.warns(tj.NotAcceleratedWarning, match=DRAWS):
        for _ in range(3):
            accelerated(np.ones(3))
    assert accelerated.stats.hits == 0


def test_a_file_keeps_its_position(tmp_path):
    (tmp_path / "numbers").write_text("123456789")
    with open(tmp_path / "numbers") as file:
        accelerated = tj.dlaccelerate(lambda x: x * file.tell())
        for n in range(9):
            file.seek(n // 3)
            assert accelerated(np.ones(1)).item() == n // 3
        assert accelerated.stats.hits == 3


def test_what_is_only_written_is_not_compared():
    file, items, log = io.StringIO(), queue.Queue(), logging.getLogger("written")

    def fun(x):
        file.write("called")
        print("called", file=file)
        items.put(1.0)
        log.debug("called")
        return x * 2

    accelerated = tj.dlaccelerate(fun)
    with pytest.warns(
        tj.LostChangeWarning, match=r"fun calls write\(\) of a StringIO that it did not make at"
    ):
        for _ in range(4):
            accelerated(np.ones(3))
    assert accelerated.stats.hits == 2 and items.qsize() == 2
