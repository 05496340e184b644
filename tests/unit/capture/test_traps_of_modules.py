# SPDX-License-Identifier: BSD-3-Clause
"""Traps: modules found by name, and names of Python and NumPy that are patched between calls."""

import builtins
import collections
import functools
import importlib
import io
import itertools
import json
import math
import operator
import os
import sys
import time
import types

import numpy as np
import pytest
from state_traps import Traps, patching, rates, toggling
from worlds import pick

import tracejit as tj

TRAPS = Traps()
trap = TRAPS.trap


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


M = types.ModuleType("m_traps")
M2 = types.ModuleType("m_traps2")


@pytest.fixture(autouse=True)
def _modules(monkeypatch):
    for module in (M, M2):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    for name in ("m_opt", "m_rep"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "argv", ["program"])
    monkeypatch.setattr(np, "pi", np.pi)  # which a trap sets: it is put back
    for name in ("R_T", "R_T2"):
        monkeypatch.setenv(name, "1")


def set_rates(n):
    M.K = rates(n)
    M2.K = rates(n // 3)


def mysin(x):
    return np.cos(x) * 2


@trap
def mod_sys_modules():
    return lambda x: x * sys.modules["m_traps"].K, set_rates


@trap
def mod_sys_modules_get():
    return lambda x: x * sys.modules.get("m_traps").K, set_rates


@trap
def mod_sys_modules_name():
    name = "m_traps"
    return lambda x: x * sys.modules[name].K, set_rates


@trap
def mod_import_module():
    return lambda x: x * importlib.import_module("m_traps").K, set_rates


@trap
def mod_import_module_name():
    name = "m_" + "traps"
    return lambda x: x * importlib.import_module(name).K, set_rates


@trap
def mod_import_module_computed():
    return lambda x: x * importlib.import_module("".join(["m_", "traps"])).K, set_rates


@trap
def mod_import_alias():
    im = importlib.import_module
    return lambda x: x * im("m_traps").K, set_rates


@trap
def mod_dunder_import():
    return lambda x: x * __import__("m_traps").K, set_rates


@trap
def mod_import_stmt():

    def fun(x):
        import m_traps

        return x * m_traps.K

    return (fun, set_rates)


@trap
def mod_import_from():

    def fun(x):
        from m_traps import K

        return x * K

    return (fun, set_rates)


@trap
def mod_import_as():

    def fun(x):
        import m_traps as mm

        return x * mm.K

    return (fun, set_rates)


@trap
def mod_import_star_from_hasattr():

    def fun(x):
        import m_traps

        return x * (2.0 if hasattr(m_traps, "flag") else 1.0)

    return (fun, toggling(M, "flag"))


@trap
def mod_import_optional():

    def fun(x):
        try:
            import m_opt

            return x * 2 + 0 * len(m_opt.__name__)
        except ImportError:
            return x

    def change(n):
        if pick(n, 0, 1):
            sys.modules["m_opt"] = M
        else:
            sys.modules.pop("m_opt", None)

    return (fun, change)


@trap
def mod_import_from_optional():

    def fun(x):
        try:
            from m_traps import QQ

            return x * QQ
        except ImportError:
            return x

    return (fun, toggling(M, "QQ"))


@trap
def mod_in_sys_modules():

    def change(n):
        if pick(n, 0, 1):
            sys.modules["m_opt"] = M
        else:
            sys.modules.pop("m_opt", None)

    return lambda x: x * (2.0 if "m_opt" in sys.modules else 1.0), change


@trap
def mod_replaced():
    a, b = (types.ModuleType("a"), types.ModuleType("b"))
    a.K, b.K = (1.0, 2.0)

    def change(n):
        sys.modules["m_rep"] = pick(n, a, b)

    def fun(x):
        import m_rep

        return x * m_rep.K

    return (fun, change)


@trap
def mod_sys_argv():

    def change(n):
        sys.argv[1:] = [str(rates(n))]

    return lambda x: x * float(sys.argv[1]), change


@trap
def mod_sys_argv_replaced():

    def change(n):
        sys.argv = ["p", str(rates(n))]

    return lambda x: x * float(sys.argv[1]), change


@trap
def mod_sys_argv_len():

    def change(n):
        sys.argv = ["p"] * int(rates(n))

    return lambda x: x * len(sys.argv), change


@trap
def mod_sys_argv_imported():

    def change(n):
        sys.argv[1:] = [str(rates(n))]

    def fun(x):
        from sys import argv

        return x * float(argv[1])

    return (fun, change)


@trap
def mod_sys_attr():

    def change(n):
        sys.my_rate = rates(n)

    return lambda x: x * sys.my_rate, change


@trap
def mod_sys_getattr():
    return lambda x: x * getattr(sys, "my_rate2", 2.0), toggling(sys, "my_rate2")


@trap
def mod_env_get():

    def change(n):
        os.environ["R_T"] = str(rates(n))

    return lambda x: x * float(os.environ.get("R_T", "1")), change


@trap
def mod_env_in():

    def change(n):
        if pick(n, 0, 1):
            os.environ["R_T2"] = "1"
        else:
            os.environ.pop("R_T2", None)

    return lambda x: x * (2.0 if "R_T2" in os.environ else 1.0), change


@trap
def mod_env_missing():

    def change(n):
        if pick(n, 0, 1):
            os.environ["R_T2"] = "1"
        else:
            os.environ.pop("R_T2", None)

    return lambda x: x * (1.0 if os.getenv("R_T2") is None else 3.0), change


@trap
def mod_env_imported():

    def change(n):
        os.environ["R_T"] = str(rates(n))

    def fun(x):
        from os import environ

        return x * float(environ["R_T"])

    return (fun, change)


@trap
def mod_env_getenv_alias():
    g = os.getenv

    def change(n):
        os.environ["R_T"] = str(rates(n))

    return lambda x: x * float(g("R_T")), change


@trap
def mod_library_const():

    def change(n):
        math.my_k = rates(n)

    return lambda x: x * math.my_k, change


@trap
def mod_np_attr():

    def change(n):
        np.my_k = rates(n)

    return lambda x: x * np.my_k, change


@trap
def mod_np_pi():

    def change(n):
        np.pi = rates(n)

    return lambda x: x * np.pi, change


@trap
def pat_np_sin():
    return lambda x: np.sin(x), patching(np, "sin", mysin)


@trap
def pat_np_sin_lib():
    return lambda x: np.sin(x), patching(np, "sin", np.cos)


@trap
def pat_np_in_helper():

    def h(x):
        return np.sin(x) * 2

    return lambda x: h(x), patching(np, "sin", np.cos)


@trap
def pat_np_linalg():
    return lambda x: x / np.linalg.norm(np.ones(3)), patching(np.linalg, "norm", lambda v, *a: 7.0)


@trap
def pat_np_stateful():
    st = [1.0]

    def f(x):
        return x * st[0]

    c = patching(np, "sin", f)

    def change(n):
        c(3)
        st[0] = rates(n)

    change.undo = c.undo
    return lambda x: np.sin(x), change


@trap
def pat_np_imported():

    def fun(x):
        from numpy import sin

        return sin(x)

    return (fun, patching(np, "sin", np.cos))


@trap
def pat_np_getattr():
    return lambda x: np.sin(x), patching(np, "sin", np.cos)


@trap
def pat_math():
    return lambda x: x * math.sqrt(4.0), patching(math, "sqrt", lambda v: 7.0)


@trap
def pat_mock_time():

    def fun(x):
        return x * time.my_time()

    def change(n):
        time.my_time = pick(n, lambda: 1.0, lambda: 2.0)

    return (fun, change)


@trap
def pat_len():
    return lambda x: x * len([1, 2]), patching(
        builtins, "len", lambda v, old=len: 7 if type(v) is list and v == [1, 2] else old(v)
    )


@trap
def pat_sum():
    return lambda x: x * sum([1, 2]), patching(
        builtins, "sum", lambda v, *a, old=sum: 7 if v == [1, 2] else old(v, *a)
    )


@trap
def pat_float():
    return lambda x: x * max(2.0, 1.0), patching(
        builtins, "max", lambda *v, old=max, **k: 7.0 if v == (2.0, 1.0) else old(*v, **k)
    )


@trap
def pat_print():

    def fun(x):
        print("", end="", file=io.StringIO())
        return x * 2

    return (fun, patching(builtins, "print", lambda *a, **k: 7.0))


@trap
def pat_builtin_stateful():
    st = [1.0]
    c = patching(builtins, "abs", lambda v, old=abs: st[0] if v == -17 else old(v))

    def change(n):
        c(3)
        st[0] = rates(n)

    change.undo = c.undo
    return lambda x: x * abs(-17), change


@trap
def pat_builtin_shadow_global():
    ns = {"__name__": "q"}
    exec("def fun(x): return x * len([1, 2])", ns)

    def change(n):
        if pick(n, 0, 1):
            ns["len"] = lambda v: 9.0
        else:
            ns.pop("len", None)

    return (ns["fun"], change)


@trap
def pat_builtin_new_const():

    def change(n):
        builtins.NEW_K = rates(n)

    ns = {"__name__": "q"}
    exec("def fun(x): return x * NEW_K", ns)
    return (ns["fun"], change)


@trap
def pat_builtins_attr():
    return lambda x: x * builtins.abs(-17), patching(
        builtins, "abs", lambda v, old=abs: 5.0 if v == -17 else old(v)
    )


@trap
def pat_operator():
    return lambda x: operator.mul(x, 2), patching(operator, "mul", operator.add)


@trap
def pat_functools_reduce():
    return lambda x: functools.reduce(operator.mul, [x, 2.0]), patching(
        functools, "reduce", lambda f, a, *i: a[0]
    )


@trap
def pat_itertools():
    return lambda x: x * len(list(itertools.chain([1], [2]))), patching(
        itertools, "chain", lambda a=(), b=(): a
    )


@trap
def pat_os_path():
    return lambda x: x * len(os.path.join("a", "b")), patching(os.path, "join", lambda a, *b: a)


@trap
def pat_library_class():
    return lambda x: x * len(collections.Counter(a=1)), patching(
        collections, "Counter", lambda **k: [1, 2, 3]
    )


@trap
def pat_json():
    return lambda x: x * json.loads("2"), patching(json, "loads", lambda s: 5.0)


@trap
def pat_user_module_function():
    return lambda x: M.f(x), lambda n: setattr(M, "f", pick(n, np.sin, np.cos))


@trap
def mod_attribute_by_a_global_name():
    name = "K"
    return lambda x: x * getattr(M, name, 0.5), set_rates


@trap
def mod_attribute_by_a_computed_name():
    which = ["m"]
    return lambda x: x * getattr(M, which[0].upper().replace("M", "K")), set_rates


@trap
def mod_function_by_a_name():
    names = ["f"]
    return lambda x: getattr(M, names[0])(x), lambda n: setattr(M, "f", pick(n, np.sin, np.cos))


@trap
def mod_imported_by_a_text_with_an_attribute():
    spec = "m_traps:K"

    def load():
        module, _, name = spec.partition(":")
        return getattr(importlib.import_module(module), name)

    return lambda x: x * load(), set_rates


@trap
def mod_dict_get():
    return lambda x: x * M.__dict__.get("K", 1.0), set_rates


@pytest.mark.sampled
@pytest.mark.parametrize("name", TRAPS)
def test_is_seen(name):
    TRAPS.follow(name)


def test_the_dict_of_a_module_is_replayed():
    M.K = 2.0
    fun = tj.dlaccelerate(lambda x: x * M.__dict__.get("K", 1.0))
    for _ in range(4):
        fun(np.ones(1))
    assert fun.stats.hits == 2
