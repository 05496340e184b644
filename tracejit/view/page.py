# SPDX-License-Identifier: BSD-3-Clause
"""The page as one self-contained HTML file, which makes no requests.

Note [escaping]
Text of the user's program reaches the page as JSON in an element that browsers do not run, with ``<``, ``>`` and ``&``
escaped, so that no text can end that element. The script puts it into text nodes only. The policy in the page forbids
all connections, and all scripts and styles except the two whose hashes it names.
"""

import base64
import hashlib
import html
import json
import re
from functools import cache
from importlib.resources import files

from tracejit.view.data import Page

_NAME_BYTES = 200
_SCRIPTS = ("base.js", "layout.js", "graph.js", "lists.js", "charts.js", "sections.js", "main.js")


def render(page: Page) -> str:
    """Return the HTML text of a page."""
    style, script = _text("page.css"), _script()
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        # A name may hold surrogates, which cannot be encoded.
        "title": html.escape(page["title"].encode(errors="backslashreplace").decode()),
        "style": style,
        "script": script,
        "data": as_json(page),
    }
    # Split before filling in: the values may hold text that looks like a placeholder.
    first, *rest = _text("page.html").split("{{")
    filled = [first]
    for piece in rest:
        name, _, text = piece.partition("}}")
        filled += (parts[name], text)
    return "".join(filled)


def as_json(value: object) -> str:
    """Return a value as JSON that can stand in a script element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def file_name(function: str) -> str:
    """Return a function's name as part of a file name, which systems limit to 255 bytes.

    >>> file_name("Model.<locals>.step")
    'Model.locals.step'
    """
    name = re.sub(r"[^\w.-]", "", function).encode(errors="ignore")
    return name[:_NAME_BYTES].decode(errors="ignore") or "function"


@cache
def _text(name: str) -> str:
    return (files("tracejit.view") / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    body = "\n".join(map(_text, _SCRIPTS))
    return f'"use strict";\n{{\n{body}}}\n'


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
