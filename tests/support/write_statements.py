# SPDX-License-Identifier: BSD-3-Clause
"""A writer of random programs that write: each statement is run with NumPy as soon as it is written.

So the writer knows the sizes of all arrays, and drops statements that NumPy refuses or that make large numbers. A few
programs end in a statement that NumPy refuses.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from write_programs import MODULE, Argument, Program, arguments_of

NUMBERS = ["2.0", "0.5", "-1.5", "3", "-1", "1", "0", "np.float64(0.75)", "0.25", "np.float32(0.5)", "True"]


def bounded(values: Any) -> bool:
    """Whether all numbers are finite and small."""
    for value in values:
        if isinstance(value, (np.ndarray, np.generic)):
            if (
                value.dtype.kind not in "fiub"
                or not np.all(np.isfinite(value))
                or np.any(np.abs(value) > 500)
            ):
                return False
        elif isinstance(value, float) and not abs(value) < 500:
            return False
    return True


class Writer:
    """Writes a random program, statement by statement."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.statements: list[str] = []
        self.parameters: dict[str, Any] = {}
        self.count = 0
        self.env: dict[str, Any] = {}

    # What there is

    def start(self) -> None:
        """Bring the live program to the end of its statements."""
        self.env = {}
        exec(MODULE, self.env)
        self.env.update(arguments_of(self.parameters, self.seed, 0)[0])
        with np.errstate(all="ignore"):
            for statement in self.statements:
                exec(statement, self.env)

    def variables(self) -> Iterator[tuple[str, Any]]:
        """All values that have a name, an attribute or a place in a container."""

        def parts(text: str, value: Any) -> Iterator[tuple[str, Any]]:
            yield text, value
            if isinstance(value, dict):
                for key, part in value.items():
                    yield from parts(f"{text}[{key!r}]", part)
            elif isinstance(value, (list, tuple)):
                for i, part in enumerate(value):
                    yield from parts(f"{text}[{i}]", part)
            elif type(value).__name__ == "Box":
                for key, part in vars(value).items():
                    yield from parts(f"{text}.{key}", part)

        for name, value in self.env.items():
            if (name in self.parameters or name[0] == "v") and not callable(value):
                yield from parts(name, value)

    def arrays(self, accept: Callable[[np.ndarray], bool] = lambda x: True) -> list[str]:
        """The texts of all arrays that are accepted; later ones and arguments occur more often."""
        found = [text for text, value in self.variables() if isinstance(value, np.ndarray) and accept(value)]
        return found + found[-3:]

    def array(self, accept: Callable[[np.ndarray], bool] = lambda x: True) -> str:
        """The text of an array, or of a view of one; LookupError if none is accepted."""
        return self.rng.choice(self.arrays(accept))

    def value(self, text: str) -> Any:
        """What an expression gives; evaluating it writes nothing."""
        return eval(text, self.env)

    def new(self) -> str:
        """A name that is not used, or now and then one that is."""
        if self.count and self.rng.random() < 0.15:
            return f"v{self.rng.randrange(self.count)}"
        self.count += 1
        return f"v{self.count - 1}"

    def number(self) -> str:
        return self.rng.choice(NUMBERS)

    # Keys and expressions

    def part(self, size: int) -> str:
        """A slice of an axis."""
        at = self.rng.randrange(max(size, 1))
        return self.rng.choice(
            [":", f"{at}:", f":{at + 1}", ":-1", "1:", "::2", "::-1", "::-2", f"{at}::2", f"{at}::-1", "1:-1"]
        )

    def basic_key(self, shape: tuple[int, ...]) -> str:
        """A key of integers, slices, None and an ellipsis."""
        entries = []
        for size in shape[: self.rng.randint(1, max(len(shape), 1))]:
            if size and self.rng.random() < 0.35:
                entries.append(str(self.rng.randrange(-size, size)))
            else:
                entries.append(self.part(size))
        if not shape:
            entries = ["..."]
        elif self.rng.random() < 0.15:
            entries.insert(self.rng.randint(0, len(entries)), self.rng.choice(["None", "..."]))
        return ", ".join(entries)

    def index(self, size: int) -> str:
        """An index array for an axis."""
        places = [self.rng.randrange(-size, size) for _ in range(self.rng.randint(1, 3))]
        return str(places) if self.rng.random() < 0.5 else f"np.array({places})"

    def key(self, text: str) -> str:
        """A key for writing into an array."""
        array = self.value(text)
        choice = self.rng.random()
        if choice < 0.6 or not array.ndim or 0 in array.shape:
            return self.basic_key(array.shape)
        if choice < 0.8 and array.dtype != bool:
            return f"{text} {self.rng.choice(['>', '<'])} {self.rng.choice(['0', '0.5', '-0.5'])}"
        if choice < 0.85 and array.ndim > 1:
            return f"{self.index(array.shape[0])}, {self.rng.choice([self.part(array.shape[1]), '0'])}"
        return self.index(array.shape[0])

    def view(self, accept: Callable[[np.ndarray], bool] = lambda x: True) -> str:
        """An array, or a part of one that NumPy takes by a basic key or a transpose."""
        text = self.array(accept)
        array, choice = self.value(text), self.rng.random()
        if choice < 0.45 and array.ndim and 0 not in array.shape:
            return f"{text}[{self.basic_key(array.shape)}]"
        if choice < 0.55 and array.ndim > 1:
            return f"{text}.T"
        return text

    def fitting(self, shape: tuple[int, ...], kinds: str = "fiub") -> str:
        """An expression of existing arrays that broadcasts to a size, or a number."""
        for _ in range(10):
            text = self.view(lambda x: x.dtype.kind in kinds)
            try:
                if np.broadcast_shapes(np.shape(self.value(text)), shape) == shape:
                    return text
            except (ValueError, IndexError):
                pass
        return (
            self.number() if "f" in kinds else self.rng.choice(["1", "2", "3"] if "i" in kinds else ["True"])
        )

    def source(self, shape: tuple[int, ...], kinds: str = "fiub") -> str:
        """An expression that broadcasts to a size."""
        x, choice = self.fitting(shape, kinds), self.rng.randrange(14)
        if "f" not in kinds:
            if "i" not in kinds:
                return self.rng.choice([x, f"~np.array({x})" if x == "True" else f"~{x}", "False"])
            return self.rng.choice([x, f"{x} + 1", f"{x} * 2", "2"])
        if choice == 0 and shape and shape[-1] < 7:
            return str([round(self.rng.uniform(-2, 2), 2) for _ in range(shape[-1])])
        if choice == 1 and shape:
            return f"np.array({[round(self.rng.uniform(-2, 2), 2) for _ in range(shape[-1])]})"
        if choice == 2:
            y = self.view()
            return f"{y}.{self.rng.choice(['sum', 'mean', 'max'])}()" if np.size(self.value(y)) else x
        if np.asarray(self.value(x)).dtype == bool:  # whose functions NumPy computes in float16
            return self.rng.choice(
                [x, f"{x} * {self.number()}", f"1 - {x}", f"{x} + {self.fitting(shape, kinds)}"]
            )
        forms = [
            f"{x}", f"{x}", f"{x} * {self.number()}", f"np.tanh({x})", f"np.sin({x}) * {self.number()}",
            f"{x} + {self.fitting(shape, kinds)}", f"{x} * {self.fitting(shape, kinds)}",
            f"np.maximum({x}, {self.number()})", f"1 - {x}", f"0.5 * {x} + {self.number()}", self.number(),
        ]  # fmt: skip
        return self.rng.choice(forms)

    def target(self, accept: Callable[[np.ndarray], bool] = lambda x: True) -> tuple[str, np.ndarray]:
        """The text of something that an in-place operator can be applied to, and its value."""
        text = self.array(accept)
        if self.rng.random() < 0.6:
            text = f"{text}[{self.key(text)}]"
        return text, np.asarray(self.value(text))

    # Statements: one method for each kind

    def bind_view(self) -> str:
        x = self.view()
        if isinstance(self.value(x), np.generic):  # a number, of which NumPy makes arrays unseen
            return f"{self.new()} = {x}"
        array, name = self.value(x), self.new()
        shape = array.shape
        forms = [x, f"{x}.ravel()", f"np.ravel({x})", f"{x}.flatten()", f"{x}.reshape(-1)", f"{x}.copy()",
                 f"np.expand_dims({x}, 0)", f"{x}.squeeze()", f"np.squeeze({x})", f"{x}[None]",
            f"{x}[..., None]",
                 f"np.atleast_1d({x})", f"np.broadcast_to({x}, {(2, *shape)})", f"{x}[...]", f"np.array({x})",
                 f"{x}[()]", f"{x}.astype(np.float64)", f"{x}[...]",
                 f"np.atleast_2d({x})"]  # fmt: skip
        if array.ndim:
            forms += [
                f"{x}[{self.key(x)}]",
                f"{x}[1:]",
                f"np.flip({x}, 0)",
                f"{x}[::-1]",
                f"{x}.reshape({shape[::-1]})",
            ]
            forms += [f"{x}[{self.basic_key(shape)}]"] * 6
        if array.ndim > 1:
            forms += [
                f"{x}.swapaxes(0, 1)",
                f"np.swapaxes({x}, 0, -1)",
                f"np.transpose({x})",
                f"np.moveaxis({x}, 0, -1)",
            ]
            forms += [
                f"{x}.T",
                f"{x}.transpose()",
                f"{x}.T.ravel()",
                f"{x}.T.reshape(-1)",
                f"{x}.T.reshape({shape})",
            ]
        return f"{name} = {self.rng.choice(forms)}"

    def alias(self) -> str:
        x, name = self.array(), self.new()
        form = self.rng.randrange(5)
        if form == 0:
            return f"{name} = [{x}, {self.view()}, {self.view()}]"
        if form == 1:
            return f"{name} = {{'u': {x}, 'w': {self.view()}}}"
        if form == 2 and not x.startswith(name):
            return f"{name} = Box()\n{name}.u = {x}\n{name}.w = {x}[...]"
        if form in (2, 3):
            return f"{name} = ({self.view()}, [{x}])"
        return f"{name} = {self.new()} = {x}"

    def unpack(self) -> str:
        x = self.view(lambda x: x.ndim > 0 and len(x) > 1)
        size = len(self.value(x))
        if self.rng.random() < 0.4:
            at = self.rng.randint(1, max(size - 1, 1))
            return f"{self.new()}, {self.new()} = {x}[:{at}], {x}[{at}:]"
        if self.rng.random() < 0.2:
            return f"{self.new()}, *{self.new()} = {x}"
        return f"{', '.join(self.new() for _ in range(max(size, 1)))} = {x}"

    def in_place(self) -> str:
        text, array = self.target()
        kind = array.dtype.kind
        operators = {"b": "&= |= ^=", "i": "+= -= *= //= %= &= |= ^="}
        operator = self.rng.choice(operators.get(kind, "+= += -= -= *= *= /= //= %= **=").split())
        if operator == "**=":
            return f"{text} **= {self.rng.choice(['2', '3', '2.0', '1'])}"
        if operator in ("/=", "//=", "%="):
            return f"{text} {operator} {self.rng.choice(['2', '3', '4.0', '2.5'][: 4 if kind == 'f' else 2])}"
        return f"{text} {operator} {self.source(array.shape, {'b': 'b', 'i': 'ib'}.get(kind, 'fiub'))}"

    def assign(self) -> str:
        text = self.array()
        text = f"{text}[{self.key(text)}]"
        array = np.asarray(self.value(text))
        if self.rng.random() < 0.15:
            other = self.array(lambda x: x.ndim > 0)
            key = self.basic_key(self.value(other).shape)
            return f"{text} = {other}[{key}] = {self.rng.choice([self.number(), self.view()])}"
        if "<" in text or ">" in text:
            return f"{text} = {self.number()}"
        return f"{text} = {self.source(array.shape)}"

    def swap(self) -> str:
        x = self.array(lambda x: x.ndim > 0 and len(x) > 1)
        i, j = self.rng.sample(range(len(self.value(x))), 2)
        y = self.array(lambda x: x.ndim > 0 and len(x) > 1)
        return self.rng.choice([
            f"{x}[{i}], {x}[{j}] = {x}[{j}], {x}[{i}]",
            f"{x}[[{i}, {j}]] = {x}[[{j}, {i}]]",
            f"{x}[{i}], {x}[{j}] = {x}[{j}].copy(), {x}[{i}].copy()",
            f"swapped({x}, {i}, {j})",
            f"{x}[{i}], {y}[0] = {y}[0], {x}[{i}]",
            f"{x}, {y} = {y}, {x}" if x.isidentifier() and y.isidentifier() else f"{x}[{i}] = {x}[{j}]",
        ])  # fmt: skip

    def overlap(self) -> str:
        x = self.array(lambda x: x.ndim > 0 and len(x) > 1)
        return self.rng.choice([
            f"{x}[1:] = {x}[:-1]", f"{x}[:-1] = {x}[1:]", f"{x}[::-1] = {x}", f"{x}[1:] += {x}[:-1]",
            f"{x}[:-1] -= {x}[1:]", f"{x} += {x}[::-1]", f"{x}[...] = {x}.T", f"{x} -= {x}[0]",
            f"{x} *= {x}[-1]",
            f"{x}[1:-1] = 0.5 * ({x}[2:] + {x}[:-2])", f"{x}[0] += {x}.sum()", f"{x} += {x}",
        ])  # fmt: skip

    def call(self) -> str:
        x = self.view(lambda x: x.ndim > 0 and len(x) > 1)
        if self.rng.random() < 0.4:
            x = self.array(lambda x: x.ndim > 0 and len(x) > 1)
        y = self.fitting(np.shape(self.value(x)))
        call = self.rng.choice([
            f"scaled({x}, {self.number()})", f"with_first({x}, {self.number()})",
            f"added([{x}, {self.view()}], {self.number()})",
            f"shifted({x})", f"relaxed({x}, {y})", f"summed({x}, {self.view()})", f"rebound({x})",
            f"flat_written({x})",
            f"with_first({x}[1:], {x}[0])", f"scaled(scaled({x}, 0.5), 2.0)",
        ])  # fmt: skip
        if self.rng.random() < 0.2:
            return f"{self.new()}, {self.new()} = halves({x})"
        return call if self.rng.random() < 0.3 else f"{self.new()} = {call}"

    def loop(self) -> str:
        x = self.array(lambda x: x.ndim > 0 and len(x) > 1)
        array = self.value(x)
        size, row = len(array), array.shape[1:]
        value, start = self.source(row), self.rng.choice(["", "1, "])
        y = self.view(lambda y: y.ndim > 0)
        return self.rng.choice([
            f"for i in range({size}):\n    {x}[i] = {value}",
            f"for i in range(1, {size}):\n    {x}[i] = 0.5 * {x}[i - 1] + {value}",
            f"for i in range({start}{size}):\n    {x}[i] += i * {x}[i - 1]",
            f"for row in {x}:\n    row += {value}",
            f"for row in {x}:\n    row = row + 1",
            f"for i, row in enumerate({x}):\n    row *= 0.5\n    {x}[i] = row + i",
            f"for row, other in zip({x}, {y}):\n    row -= 0.25 * other",
            f"for i in range(3):\n    {x} += 0.1 * {value}\n    {x}[0] = {x}[-1]",
            f"for i in range({size}):\n    if i % 2:\n        {x}[i] = {x}[i - 1]\n    else:\n        {x}[i] *= 0.5",
            f"for row in reversed({x}):\n    row[...] = {value}" if row else f"{x}[:] = {value}",
            f"i = 0\nwhile i < {size}:\n    {x}[i] -= {x}[0]\n    i += 2",
            f"{self.new()} = [row * 2 for row in {x}]",
        ])  # fmt: skip

    def function(self) -> str:
        def accept(x: np.ndarray) -> bool:
            return x.ndim > 0 and x.size > 0 and x.dtype.kind == "f" and x.flags.writeable

        x = self.view(accept)
        shape = np.shape(self.value(x))
        if not shape or 0 in shape:
            x = self.array(accept)
            shape = self.value(x).shape
        value, number = self.source(shape), self.number()
        first = [self.rng.randrange(shape[0]) for _ in range(3)]
        along = [[self.rng.randrange(shape[0]) for _ in range(shape[1])]] if len(shape) == 2 else [0]
        kept = f"{self.new()} = " if self.rng.random() < 0.3 else ""
        plain = [
            f"np.add.at({x}, {first}, {number})", f"np.copyto({x}, {value})", f"{x}.fill({number})",
            f"np.copyto({x}, {value}, where={x} > 0)", f"np.put({x}, {first}, {number})",
            f"np.putmask({x}, {x} > 0.5, {number})", f"np.place({x}, {x} < 0, [{number}])",
            f"np.put_along_axis({x}, np.array({along}), {number}, 0)",
            f"np.subtract.at({x}, {first[0]}, {value})",
        ]  # fmt: skip
        if len(shape) > 1 and len(set(shape)) in (1, 2) and (len(shape) == 2 or len(set(shape)) == 1):
            plain += [f"np.fill_diagonal({x}, {number})"] * 2
        out = [
            f"np.add({x}, {value}, out={x})", f"np.multiply({x}, {number}, out={x})",
            f"np.tanh({self.fitting(shape, 'f')}, out={x})",
            f"np.clip({x}, -1, 1, out={x})", f"np.maximum({x}, {number}, out={x})", f"np.negative({x}, {x})",
            f"np.subtract({x}[::-1], {value}, out={x})", f"np.add({x}, 1, out={x}, where={x} > 0)",
        ]  # fmt: skip
        return self.rng.choice([self.rng.choice(plain), kept + self.rng.choice(out)])

    def buffer(self) -> str:
        self.count += 1
        name, x = f"v{self.count - 1}", self.view(lambda x: x.size > 0)
        shape = self.rng.choice(
            [np.shape(self.value(x)), (self.rng.randint(1, 4),), (2, 3), (self.rng.randint(1, 3), 2)]
        )
        dtype = self.rng.choice(
            ["", "", "", "", ", np.float32", ", dtype=np.int64", ", dtype=bool", ", float"]
        )
        like = self.rng.choice([
            f"np.zeros({shape}{dtype})", f"np.ones({shape}{dtype})", f"np.full({shape}, {self.number()})",
            f"np.zeros_like({x})", f"np.ones_like({x})", f"np.full_like({x}, 0.5)", f"np.array({x})",
            f"np.eye({self.rng.randint(1, 3)})", "np.array([0.0, 1.0, 2.0, 3.0])", "np.array([0.0, 0.5])",
            f"np.empty_like({x})",
            f"np.empty({shape})",
        ])  # fmt: skip
        if "empty" in like:
            return f"{name} = {like}\n{name}[...] = {self.source(np.shape(self.value(like)))}"
        filled = np.asarray(self.value(like))
        if filled.ndim and len(filled) and self.rng.random() < 0.7:
            row = self.source(filled.shape[1:], "fiub" if filled.dtype.kind == "f" else "ib")
            how = self.rng.randrange(3)
            if how == 0:
                return f"{name} = {like}\nfor i in range({len(filled)}):\n    {name}[i] = {row}"
            return f"{name} = {like}\n{name}[{self.basic_key(filled.shape)}] {self.rng.choice(['=', '+='])} {row}"
        return f"{name} = {like}"

    def elements(self) -> str:
        name, flat = self.new(), self.array(lambda x: x.ndim == 1 and x.size > 0 and x.dtype.kind == "f")
        size = len(self.value(flat))
        p, q = (f"{flat}[{self.rng.randrange(size)}]" for _ in "pq")
        row = [round(self.rng.uniform(-1, 1), 2) for _ in range(size)]
        return self.rng.choice([
            f"{name} = np.array([{p}, -{q}])", f"{name} = np.array([[{p}, -{q}], [{q}, {p}]])",
            f"c, s = np.cos({p}), np.sin({q})\n{name} = np.array([[c, -s], [s, c]])",
            f"{name} = np.array([{p}, 2.0, {q} * 3])", f"{name} = np.stack([{flat}, {row}])",
            f"{name} = np.concatenate([{flat}, [0.5], {flat}[1:]])", f"{name} = np.array([{flat}, {flat} * 2])",
            f"{name} = np.stack([{p}, {q}])", f"{name} = np.hstack([{flat}, {p}])",
            f"{name} = np.vstack([{flat}, {row}])",
            f"{name} = np.array([x * 2 for x in {flat}])", f"{name} = np.array([[{p}], [1]])",
        ])  # fmt: skip

    def scalar(self) -> str:
        x, name = self.view(lambda x: x.size > 0), self.new()
        whole = (
            f"{x}.sum()"
            if self.rng.random() < 0.5 or np.ndim(self.value(x)) != 1 or not np.size(self.value(x))
            else f"{x}[0]"
        )
        return self.rng.choice([
            f"{name} = {whole}\n{self.new()} = {name}\n{name} += 1", f"{name} = {whole}",
            f"{name} = {whole}\n{name} *= 0.5",
            f"{name} = {whole}\nif {name} > 0:\n    {self.array()}[...] = 1", f"for x in {x}:\n    x *= 2",
        ])  # fmt: skip

    def compute(self) -> str:
        x = self.array()
        name = self.rng.choice([self.new(), self.new(), x if x.isidentifier() else self.new()])
        square = self.arrays(lambda x: x.ndim == 2 and x.shape[0] == x.shape[1] and x.dtype.kind == "f")
        if square and self.rng.random() < 0.3:
            m = self.rng.choice(square)
            return self.rng.choice(
                [f"{m} @= 0.5 * {m}", f"{name} = {m} @ {m}.T", f"{m}[...] = 0.5 * {m} @ {m}"]
            )
        return f"{name} = {self.source(np.shape(self.value(x)))}"

    def branch(self) -> str:
        x = self.array(lambda x: x.size > 0)
        first = f"{x}[{', '.join('0' * self.value(x).ndim)}]" if self.value(x).ndim else x
        return f"if {first} > 0:\n    {self.rng.choice([self.in_place, self.assign])()}\nelse:\n    {self.in_place()}"

    def nested(self) -> str:
        x, name = self.array(lambda x: x.ndim > 0 and len(x) > 0), self.new()
        value = self.source(self.value(x).shape[1:])
        return self.rng.choice([
            f"def {name}_f(i, x=None):\n    {x}[i] += {value}\n    return {x}[i:]\n{name} = {name}_f(0)",
            f"def {name}_f():\n    for row in {x}:\n        yield row\nfor row in {name}_f():\n    row -= 1",
            f"{name} = (lambda x: x.__iadd__({value}))({x})",
            f"{name} = [np.add(row, 1, out=row) for row in {x}]" if self.value(x).ndim > 1 else f"{x}[-1] += 1",
            f"{name} = list({x})\n{name}[0] += 1",
            f"{name} = {{i: {x}[i:] for i in range(2)}}\n{name}[1] *= 2",
            f"{name} = [*{x}][-1]\n{name} += 1",
            f"{name} = list(map(lambda row: 2 * row, {x}))[0]\n{name} -= 1",
        ])  # fmt: skip

    def tried(self) -> str:
        wrong = self.refused().replace("\n", "\n    ")
        return f"try:\n    {wrong}\nexcept (TypeError, ValueError, IndexError):\n    {self.in_place()}"

    def refused(self) -> str:
        """A statement that NumPy is likely to refuse."""
        x = self.array(lambda x: x.ndim > 0)
        return self.rng.choice([
            f"{x}[{len(self.value(x))}] = 1", f"{x} += np.ones(7)", f"{x}[0] = np.ones(9)",
            f"np.add({x}, 1, out=np.zeros(7))",
            f"{x}[1:] = {x}", f"np.broadcast_to({x}, {(2, *self.value(x).shape)})[0] = 1", "v = np.zeros(3)\nv &= True",
            f"{x} @= np.ones(8)",
            f"v = np.zeros(3, int)\nv += {x}.sum()", "v = np.zeros(3, int)\nv /= 2", f"{x} += {x}[None, None]",
            f"v, w, *u = {x}[:1]", f"{x}[...] = [1.0] * 9", f"v = np.zeros(2, bool)\nv -= {x} > 0",
            f"{x}[0, 0, 0, 0, 0] = 1",
            f"v = np.broadcast_to({x}, {(2, *self.value(x).shape)})\nv += 1",
            "np.copyto(np.zeros(3), np.ones(9))", f"{x}[0] = np.ones((5, 5, 5))",
            "v = np.arange(3)\nv[1:] *= 0.5", f"v = np.arange(3)\nnp.multiply(v, {x}.sum(), out=v)",
            f"{x}[[0, 99]] = 1",
            "v = np.arange(3)\nv **= -1", f"{x}.reshape(7, 11)[0] = 1", f"np.copyto(np.arange(3), {x}.sum())",
        ])  # fmt: skip


KINDS_OF_STATEMENTS: list[tuple[int, str]] = [
    (5, "bind_view"), (2, "alias"), (2, "unpack"), (8, "in_place"), (6, "assign"), (2, "swap"), (3, "overlap"),
    (3, "call"), (3, "loop"), (4, "function"), (3, "buffer"), (2, "elements"), (2, "scalar"),
    (2, "compute"), (1, "branch"),
    (2, "nested"), (1, "tried"),
]  # fmt: skip
_KINDS = [name for weight, name in KINDS_OF_STATEMENTS for _ in range(weight)]
_REFUSALS = (ValueError, TypeError, IndexError, ZeroDivisionError, OverflowError)


def parameters_of(rng: random.Random) -> dict[str, Any]:
    """Return random parameters: arrays of up to three axes, containers of them, and an array that is passed twice."""
    extents = [1, 2, 2, 3, 3, 4]

    def argument() -> Argument:
        dtype = rng.choice(["float64"] * 8 + ["float32", "int64", "bool"])
        layout = rng.choice(["whole"] * 8 + ["step", "fortran", "locked"])
        return Argument(
            tuple(rng.choice(extents) for _ in range(rng.choice([0, 1, 1, 2, 2, 2, 3]))), dtype, layout
        )

    size = rng.randint(2, 3)
    parameters: dict[str, Any] = {"a": Argument((size, rng.choice([2, 3, size])), "float64", "whole")}
    parameters["b"] = Argument((rng.randint(2, 4),), "float64", "whole") if rng.random() < 0.7 else argument()
    kind = rng.random()
    if kind < 0.15:
        parameters["c"] = rng.choice(["a", "b", "a", "b", "a[1:]", "a.T", "a[0]", "b[...]", "a[:, 0]"])
    elif kind < 0.4:
        parameters["c"] = argument()
    elif kind < 0.5:
        parameters["c"] = {"w": argument(), "parts": [argument(), (argument(),)]}
    elif kind < 0.6:
        parameters["c"] = [argument(), argument()]
    elif kind < 0.65:
        parameters["c"] = 0.5
    if rng.random() < 0.12:
        parameters["g"] = argument()
    return parameters


def program_of(seed: int) -> Program:
    """Return a random program, which NumPy runs to its end or to its last statement."""
    writer = Writer(seed)
    rng = writer.rng
    writer.parameters = parameters_of(rng)
    writer.start()
    wanted = rng.randint(2, 9)
    for _ in range(4 * wanted):
        if len(writer.statements) >= wanted:
            break
        try:
            with np.errstate(all="ignore"):
                statement = getattr(writer, rng.choice(_KINDS))()
        except (LookupError, *_REFUSALS):
            continue
        add(writer, statement)
    kept = dict(writer.variables())
    names = [
        name
        for name in kept
        if name.isidentifier() and type(kept[name]).__name__ not in ("Box", "builtin_function")
    ]
    result = rng.sample(names, min(len(names), rng.randint(1, 4)))
    if rng.random() < 0.08:
        with_error(writer)
    text = (
        "{" + ", ".join(f"{name!r}: {name}" for name in result) + "}"
        if rng.random() < 0.3
        else f"({', '.join(result)},)"
    )
    return Program(seed, writer.parameters, tuple(writer.statements), text)


def add(writer: Writer, statement: str) -> None:
    """Keep a statement if NumPy runs it and its numbers stay small."""
    try:
        with np.errstate(all="ignore"):
            exec(statement, writer.env)
        kept = bounded(value for _, value in writer.variables())
    except _REFUSALS:
        kept = False
    if kept:
        writer.statements.append(statement)
    else:
        writer.start()


def with_error(writer: Writer) -> None:
    """End a program with a statement that NumPy refuses."""
    for _ in range(5):
        try:
            statement = writer.refused()
        except LookupError:
            continue
        try:
            with np.errstate(all="ignore"):
                exec(statement, writer.env)
        except _REFUSALS:
            writer.statements.append(statement)
            return
        writer.start()
