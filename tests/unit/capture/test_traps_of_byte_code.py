# SPDX-License-Identifier: BSD-3-Clause
"""Traps: each builtin, each expression and each statement that can read an attribute which changes between calls."""

import collections
import functools
import itertools
import math
import operator

import numpy as np
import pytest
from state_traps import X, rates
from worlds import follow


class K:
    """Special methods that read an attribute."""

    def __init__(self, k=1.0):
        self.k = k

    def __abs__(self):
        return self.k

    def __bool__(self):
        return self.k > 1.5

    def __bytes__(self):
        return bytes([int(self.k)])

    def __complex__(self):
        return complex(self.k, 1)

    def __float__(self):
        return float(self.k)

    def __int__(self):
        return int(self.k)

    def __index__(self):
        return int(self.k)

    def __len__(self):
        return int(self.k)

    def __iter__(self):
        return iter([self.k, 2.0])

    def __reversed__(self):
        return iter([self.k, 3.0])

    def __contains__(self, v):
        return v == self.k

    def __getitem__(self, i):
        return self.k

    def __divmod__(self, o):
        return (self.k, 1.0)

    def __pow__(self, o, m=None):
        return self.k

    def __round__(self, n=0):
        return self.k

    def __format__(self, s):
        return str(self.k)

    def __str__(self):
        return str(self.k)

    def __repr__(self):
        return str(self.k)

    def __hash__(self):
        return int(self.k)

    def __eq__(self, o):
        return o == self.k

    def __lt__(self, o):
        return self.k < 1.5

    def __dir__(self):
        return [str(i) for i in range(int(self.k))]

    def __call__(self):
        return self.k

    def __enter__(self):
        return self.k

    def __exit__(self, *a):
        return False

    def __next__(self):
        return self.k

    def __neg__(self):
        return self.k

    def __trunc__(self):
        return int(self.k)

    def __ceil__(self):
        return int(self.k)

    def __floor__(self):
        return int(self.k)

    def __add__(self, o):
        return o * self.k

    def __radd__(self, o):
        return o * self.k

    def __matmul__(self, o):
        return o * self.k

    def __iadd__(self, o):
        return o * self.k

    def __missing__(self, o):
        return self.k

    def keys(self):
        return ["a"]

    def __fspath__(self):
        return "a" * int(self.k)

    def __length_hint__(self):
        return int(self.k)

    def __copy__(self):
        return K(self.k)

    def __sizeof__(self):
        return int(self.k)

    def __instancecheck__(self, o):
        return self.k > 1.5

    def __subclasscheck__(self, o):
        return self.k > 1.5

    def __await__(self):
        yield
        return self.k

    def __getattr__(self, name):
        if name == "computed":
            return self.__dict__["k"]
        raise AttributeError(name)


EXPRESSIONS = {
    "abs": "abs(o)",
    "all": "all([o])",
    "any": "any([o])",
    "ascii": "float(ascii(o))",
    "bin": "len(bin(o))",
    "bool": "bool(o)",
    "bytes": "bytes(o)[0]",
    "callable": "callable(o) + o()",
    "chr": "ord(chr(o))",
    "complex": "complex(o).real",
    "dict": "dict(o)['a']",
    "dir": "len(dir(o))",
    "divmod": "divmod(o, 2)[0]",
    "enumerate": "[v for _, v in enumerate(o)][0]",
    "eval": "eval('o.k')",
    "filter": "sum(filter(None, o))",
    "float": "float(o)",
    "format": "float(format(o))",
    "frozenset": "sum(frozenset(o))",
    "getattr": "getattr(o, 'k')",
    "hasattr": "hasattr(o, 'k') * o.k",
    "hash": "hash(o)",
    "hex": "len(hex(o)) + o.k",
    "int": "int(o)",
    "isinstance": "isinstance(3, o)",
    "issubclass": "issubclass(int, o)",
    "iter": "next(iter(o))",
    "len": "len(o)",
    "list": "list(o)[0]",
    "map": "sum(map(float, o))",
    "max": "max(o)",
    "min": "min(o)",
    "next": "next(o)",
    "oct": "len(oct(o)) + o.k",
    "pow": "pow(o, 2)",
    "range": "len(range(o))",
    "repr": "float(repr(o))",
    "reversed": "sum(reversed(o))",
    "round": "round(o)",
    "set": "sum(set(o))",
    "slice": "[1., 2., 3., 4., 5., 6.][slice(o, None)][0]",
    "sorted": "sorted([o, K(1.2)])[0].k",
    "str": "float(str(o))",
    "sum": "sum(o)",
    "tuple": "tuple(o)[0]",
    "vars": "vars(o)['k']",
    "zip": "sum(a for a, b in zip(o, o))",
    "math.floor": "math.floor(o)",
    "math.ceil": "math.ceil(o)",
    "math.trunc": "math.trunc(o)",
    "math.sqrt": "math.sqrt(o)",
    "operator.index": "operator.index(o)",
    "operator.length_hint": "operator.length_hint(o)",
    "f-string": "float(f'{o}')",
    "f-string repr": "float(f'{o!r}')",
    "percent": "float('%s' % o)",
    "str.format": "float('{}'.format(o))",
    "str.format attr": "float('{0.k}'.format(o))",
    "str.join": "float(''.join(map(str, [o])))",
    "in": "(1.0 in o)",
    "not in": "(1.0 not in o)",
    "subscript": "o[0]",
    "slice subscript": "o[1:2]",
    "index of list": "[1., 2., 3., 4., 5., 6.][o]",
    "unpack": "(lambda a, b: a)(*o)",
    "star list": "[*o][0]",
    "star set": "sum({*o})",
    "star star": "(lambda a: a)(**o)",
    "dict star star": "{**o}['a']",
    "neg": "-o",
    "not": "(not o)",
    "and": "(o and 3.0 or 2.0)",
    "ternary": "(3.0 if o else 2.0)",
    "compare": "(o < 1)",
    "eq": "(o == 1.0)",
    "ne": "(o != 1.0)",
    "computed attribute": "o.computed",
    "call": "o()",
    "np.array": "float(np.asarray(list(o))[0])",
    "np.float64": "np.float64(float(o))",
    "sum generator": "sum(v for v in o)",
    "comprehension": "[v for v in o][0]",
    "set comprehension": "sum({v for v in o})",
    "dict comprehension": "sum({v: v for v in o})",
    "functools.reduce": "functools.reduce(operator.add, o)",
    "itertools.chain": "sum(itertools.chain(o, o))",
    "itertools.islice": "sum(itertools.islice(o, 1))",
    "operator.attrgetter": "operator.attrgetter('k')(o)",
    "operator.methodcaller": "operator.methodcaller('__float__')(o)",
    "map attr": "sum(map(operator.attrgetter('k'), [o]))",
    "max key": "max([o, K(1.2)], key=lambda p: p.k).k",
    "max key getter": "max([o, K(1.2)], key=operator.attrgetter('k')).k",
    "getattr computed": "getattr(o, 'xk'[1:])",
    "collections.deque": "collections.deque(o)[0]",
    "collections.Counter": "len(collections.Counter([o]).keys()) + o.k",
    "type": "type(o)(o.k).k",
    "class attribute": "o.__class__.__name__.__len__() * o.k",
    "dunder dict": "o.__dict__['k']",
    "dunder float": "o.__float__()",
    "K float": "K.__float__(o)",
    "bound": "(lambda m: m())(o.__float__)",
    "lambda default": "(lambda a=o: a.k)()",
    "walrus": "(p := o).k",
    "chained": "(o if True else None).k",
    "list of": "[o][0].k",
    "dict of": "{'a': o}['a'].k",
    "tuple of": "(o, 1)[0].k",
    "conditional": "(o if x is not None else K()).k",
    "star args": "(lambda *a: a[0].k)(o)",
    "kwargs": "(lambda **a: a['p'].k)(p=o)",
}

STATEMENTS = {
    "unpack": "a, b = o\nreturn x * a",
    "unpack star": "a, *b = o\nreturn x * a + b[0]",
    "for": "for v in o:\n    x = x * v\nreturn x",
    "for else": "for v in o: pass\nelse: x = x * o.k\nreturn x",
    "while": "n = 0\nwhile n < len(o):\n    n += 1\nreturn x * n",
    "with": "with o as v:\n    return x * v",
    "iadd": "y = x\ny += o.k\nreturn y",
    "aug object": "p = o\np += x\nreturn p",
    "match class": "match o:\n    case K(k=1.0): return x\n    case K(k=v): return x * v",
    "match sequence": "match [*o]:\n    case [1.0, _]: return x\n    case [v, _]: return x * v",
    "match mapping": "match vars(o):\n    case {'k': v}: return x * v",
    "match value": "match o.k:\n    case 1.0: return x\n    case _: return x * 3",
    "match guard": "match o:\n    case _ if o.k > 1.5: return x * 2\n    case _: return x",
    "if": "if o: return x * 2\nreturn x",
    "try": "try:\n    if o.k > 1.5: raise ValueError\nexcept ValueError: return x * 2\nreturn x",
    "raise attr": "try:\n    raise KeyError(o.k)\nexcept KeyError as e: return x * e.args[0]",
    "assert": "try:\n    assert o.k < 1.5\nexcept AssertionError: return x * 2\nreturn x",
    "del": "p = [o, 1]\ndel p[1]\nreturn x * p[0].k",
    "nested function": "def f(): return o.k\nreturn x * f()",
    "generator": "def f():\n    yield o.k\nreturn x * next(f())",
    "yield from": "def f():\n    yield from o\nreturn x * next(f())",
    "coroutine": "async def f(): return o.k\ntry: f().send(None)\nexcept StopIteration as e: return x * e.value",
    "await": (
        "async def f(): return await g()\n"
        "async def g(): return o.k\n"
        "try: f().send(None)\n"
        "except StopIteration as e: return x * e.value"
    ),
    "async for": (
        "async def f():\n"
        "    async for v in g(): return v\n"
        "async def g():\n"
        "    yield o.k\n"
        "try: f().send(None)\n"
        "except StopIteration as e: return x * e.value"
    ),
    "class": "class C: v = o.k\nreturn x * C.v",
    "class base": "class C(type(o)): pass\nreturn x * C(o.k).k",
    "decorator": "def d(f): return lambda: f() * o.k\n@d\ndef f(): return 2.0\nreturn x * f()",
    "default": "def f(v=o.k): return v\nreturn x * f()",
    "kwdefault": "def f(*, v=o.k): return v\nreturn x * f()",
    "lambda": "return x * (lambda: o.k)()",
    "recursion": "def f(n): return o.k if n == 0 else f(n - 1)\nreturn x * f(2)",
    "local import": "import math\nreturn x * math.floor(o.k)",
    "global stmt": "global o\nreturn x * o.k",
    "list append": "l = []\nl.append(o)\nreturn x * l[0].k",
    "dict store": "d = {}\nd['a'] = o\nreturn x * d['a'].k",
    "object store": "p = K()\np.inner = o\nreturn x * p.inner.k",
    "closure chain": "def f():\n    def g(): return o.k\n    return g\nreturn x * f()()",
    "partial": "f = functools.partial(lambda p: p.k, o)\nreturn x * f()",
    "exec": "d = {}\nexec('v = o.k', globals(), d)\nreturn x * d['v']",
    "exception group": (
        "try:\n"
        "    raise ExceptionGroup('a', [ValueError(o.k)])\n"
        "except* ValueError as e: y = x * e.exceptions[0].args[0]\n"
        "return y"
    ),
    "star assign": "l = [*o, *o]\nreturn x * sum(l)",
    "finally": "try: v = o.k\nfinally: x = x * 2\nreturn x * v",
    "slots": "class S:\n    __slots__ = ('p',)\ns = S()\ns.p = o\nreturn x * s.p.k",
    "setattr": "p = K()\nsetattr(p, 'q', o.k)\nreturn x * p.q",
    "sorted": "return x * sorted([o, K(9.0)], key=lambda p: p.k)[0].k",
    "type call": "C = type('C', (), {'v': o.k})\nreturn x * C.v",
    "namedtuple": "P = collections.namedtuple('P', 'a')\nreturn x * P(o).a.k",
    "lru": "@functools.lru_cache\ndef f(): return o.k\nreturn x * f()",
}


def follow_source(body):
    """Follow a function of `x` that reads the global `o`, whose attribute changes, and which changes itself."""

    def world(accelerate):
        names = {module.__name__: module for module in (collections, functools, itertools, math, operator)}
        names |= {"K": K, "np": np, "__name__": "a_module_of_a_test"}
        exec("def fun(x):\n" + "\n".join(f"    {line}" for line in body.split("\n")), names)
        objects, accelerated = [K(1.0), K(1.0)], accelerate(names["fun"])

        def call(n):
            names["o"] = objects[n // 9 % 2]
            names["o"].k = rates(n)
            return accelerated(X.copy())

        return call

    follow(world, calls=30, audit=False)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_expressions(expression):
    follow_source(f"return x * float({expression})")


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("body", STATEMENTS.values(), ids=STATEMENTS)
def test_statements(body):
    follow_source(body)
