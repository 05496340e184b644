# SPDX-License-Identifier: BSD-3-Clause
"""Functions from generated text; functions of one text share its code."""

from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

_TEXTS = 256  # whose code is kept: retraces, and functions that differ in a detail, generate most texts again
_LONGEST = 20_000  # characters of a text whose code is kept, which is about as large


def _compiled(text: str) -> CodeType:
    module = compile(text, "<tracejit>", "exec", dont_inherit=True)
    (code,) = [constant for constant in module.co_consts if isinstance(constant, CodeType)]
    return code


_kept = lru_cache(_TEXTS)(_compiled)


def function(text: str, file: str, names: dict[str, Any]) -> Callable[..., Any]:
    """Return the function that a text of one definition without defaults defines.

    Args:
        text: the definition.
        file: the name of the file that tracebacks show.
        names: the globals of the function.

    >>> function("def double(x):\\n    return factor * x\\n", "<doubling>", {"factor": 2})(3)
    6
    """
    code = _kept(text) if len(text) <= _LONGEST else _compiled(text)
    return FunctionType(code.replace(co_filename=file), names)
