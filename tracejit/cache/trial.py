# SPDX-License-Identifier: BSD-3-Clause
"""Object code that nobody trusts runs on random memory, in a process of its own, which may crash or hang.

Note [trials]
The process reads a line of JSON for each function: its object code and cases, which say what memory there is and what
the arguments are. It answers with a line: a hash over all memory after each case, what lies around it included.
"""

import base64
import ctypes
import hashlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

_AROUND = 4096  # bytes on both sides of memory
_ALIGNMENT = 64
_TIME_S = 60.0  # for all cases of a function
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Memory(NamedTuple):
    """`size` bytes of numbers of a dtype, the first of them `offset` bytes after a multiple of the alignment."""

    size: int
    offset: int
    dtype: str


class Case(NamedTuple):
    """One call of a function.

    memory      that there is
    arguments   integers, ["memory", number, offset in bytes], [dtype, number as text] or ["symbol", name]
    seed        of the numbers that memory holds
    """

    memory: Sequence[Memory]
    arguments: Sequence[Any]
    seed: int


class TrialError(Exception):
    """A trial gave no results; the message says what happened to the function."""


class Trials:
    """A process that runs functions; another one takes its place if it ends."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(self, symbol: str, code: bytes, needs: Sequence[str], cases: Sequence[Case]) -> list[str]:
        """Return a hash of the memory after each case.

        Raises:
            TrialError: if the function cannot be loaded, crashes or does not end.
        """
        process = self._started()
        asked = json.dumps([symbol, base64.b64encode(code).decode(), list(needs), cases])
        answer = _answer(process, asked)
        if answer is None:
            self.close()
            code_of = process.returncode
            raise TrialError("does not end" if code_of == -9 else f"ends the process ({code_of})")
        if isinstance(answer, str):
            raise TrialError(answer)
        return [str(found) for found in answer]

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from tracejit.cache.trial import serve; serve()"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                env=os.environ | {"TRACEJIT_CACHE": "off"},
            )  # fmt: skip
        return self._process


def _answer(process: subprocess.Popen[str], asked: str) -> Any:
    """Return what the process answers, or None if it ended or takes too long."""
    assert process.stdin is not None and process.stdout is not None
    answers: queue.SimpleQueue[str] = queue.SimpleQueue()
    # A pipe that nobody reads takes some thousand bytes only, so both ends are kept busy.
    reading = threading.Thread(target=lambda: answers.put(process.stdout.readline()), daemon=True)  # type: ignore[union-attr]
    reading.start()
    try:
        process.stdin.write(asked + "\n")
        process.stdin.flush()
        return json.loads(answers.get(timeout=_TIME_S))
    except (OSError, ValueError):
        process.wait()
    except queue.Empty:
        process.kill()
        process.wait()
    return None


def serve() -> None:
    """Run functions as they are asked for, until there is nobody left who asks."""
    from tracejit.compile import objects
    from tracejit.errors import CodegenError

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what runs here may print
    for line in sys.stdin:
        symbol, code, needs, cases = json.loads(line)
        try:
            address = objects.load(symbol, base64.b64decode(code), needs)
            found: Any = [_run(address, *case) for case in cases]
        except CodegenError as error:
            found = str(error)
        except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
            found = f"cannot be called ({type(error).__name__}: {error})"
        print(json.dumps(found), file=answers, flush=True)


def _run(address: int, memory: Sequence[Any], arguments: Sequence[Any], seed: int) -> str:
    """Run a case and return the hash of its memory."""
    rng = np.random.default_rng(seed)
    blocks = [_Block(Memory(*each), rng) for each in memory]
    words = np.array(list(_words(arguments, blocks)), np.intp)
    _KERNEL(address)(words.ctypes.data)
    found = hashlib.sha256()
    for block in blocks:
        found.update(block.bytes.tobytes())
    return found.hexdigest()


class _Block:
    """Memory of random numbers, with zeros around it."""

    def __init__(self, memory: Memory, rng: np.random.Generator) -> None:
        self._held = np.zeros(memory.size + 2 * _AROUND + 2 * _ALIGNMENT, np.uint8)
        base = -(-self._held.ctypes.data // _ALIGNMENT) * _ALIGNMENT
        self.address = base + _AROUND + memory.offset % _ALIGNMENT
        start = self.address - self._held.ctypes.data
        self.bytes = self._held[start - _AROUND : start + memory.size + _AROUND]
        dtype = np.dtype(memory.dtype)
        numbers = _numbers(dtype, memory.size // dtype.itemsize, rng)
        self.bytes[_AROUND : _AROUND + numbers.nbytes] = numbers.view(np.uint8)


def _numbers(dtype: np.dtype, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return random numbers. Those of integers are 0 and 1: they may be places along an axis."""
    if dtype.kind == "f":
        return rng.standard_normal(count).astype(dtype)
    return rng.integers(0, 2, count).astype(dtype)


def _words(arguments: Sequence[Any], blocks: Sequence[_Block]) -> Iterator[int]:
    for argument in arguments:
        if isinstance(argument, int):
            yield argument
        elif argument[0] == "memory":
            yield blocks[argument[1]].address + argument[2]
        elif argument[0] == "symbol":
            from tracejit.runtime import cpu

            yield cpu._symbol_address(argument[1])
        else:
            dtype, text = np.dtype(argument[0]), argument[1]
            value = text == "True" if dtype.kind == "b" else float(text) if dtype.kind == "f" else int(text)
            word = np.zeros(1, np.int64)
            word.view(dtype)[0] = value
            yield int(word[0])
