# SPDX-License-Identifier: BSD-3-Clause
"""The text of a call path, and the function of it."""

import linecache
import weakref
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from tracejit.record.generator_draws import GeneratorDraws
from tracejit.util import generated
from tracejit.util.named_tuples import NamedTuple

_ENDED: list[str] = []  # files of functions that are there no more
_numbers = count()  # of call paths


class PathText(NamedTuple):
    """The statements of a call path.

    before  those that stand before the reads
    reads   those that read captured state and compare it
    after   those after the reads; the names that these bind are used here
    names   the globals
    draws   the captured state, if the first statement after the reads draws from generators
    """

    before: Sequence[str]
    reads: Sequence[str]
    after: Sequence[str]
    names: dict[str, Any]
    draws: GeneratorDraws | None = None


class GeneratedPath(NamedTuple):
    """A call path.

    run     the function
    text    its statements, from which one function for several traces can be made; None if there can be none
    """

    run: Callable[[Any], Any]
    text: PathText | None


def path_function(lines: Sequence[str], names: dict[str, Any]) -> Callable[[Any], Any]:
    """Return the function of the statements of a call path, whose text can be seen as long as it lives."""
    text = "def replay(args):\n" + "".join(f"    {line}\n" for line in lines)
    file = f"<tracejit call path {next(_numbers)}>"
    while _ENDED:  # not when they end, which may be within linecache.checkcache()
        linecache.cache.pop(_ENDED.pop(), None)
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    replay: Callable[[Any], Any] = generated.function(text, file, names)
    weakref.finalize(replay, _end, file).atexit = False
    return replay


def _end(file: str) -> None:
    """Forget the text of a function, whose name stays in linecache until the next one comes."""
    linecache.cache[file] = (0, None, [], file)
    _ENDED.append(file)
