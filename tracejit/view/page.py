# SPDX-License-Identifier: BSD-3-Clause
"""The page as one HTML file that needs nothing else, and asks for nothing.

Note [escaping]
What comes from the user's program reaches the page as JSON in an element that browsers do not run, with ``<``, ``>``
and ``&`` written as escapes, so that no text can end that element; the script puts it into text nodes only. The policy
in the page forbids all connections, and all scripts and styles but those two whose hashes it names.
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
    """Return the page that shows `page`."""
    style, script = _text("page.css"), _script()
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        # A name need not be text that can be written.
        "title": html.escape(page["title"].encode(errors="backslashreplace").decode()),
        "style": style,
        "script": script,
        "data": as_json(page),
    }
    # Taken apart first: what is filled in may hold anything that looks like a place to fill.
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
    """Return a function's name as part of a file's name, of which systems take 255 bytes.

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
