# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a page, and whether its data hold together."""

from html.parser import HTMLParser

from tracejit.view import data


class Parts(HTMLParser):
    """The elements of a page, and the texts of its scripts, styles and title."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, dict[str, str | None], str]] = []
        self._is_in = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._is_in = tag in ("script", "style", "title")
        if self._is_in:
            self.texts.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self._is_in = False

    def handle_data(self, data: str) -> None:
        if self._is_in:
            tag, attributes, before = self.texts[-1]
            self.texts[-1] = (tag, attributes, before + data)


def check(page: data.Page) -> None:
    """Check that all that a page refers to is there."""
    for file in page["files"]:
        shown = [number for first, lines in file["chunks"] for number in range(first, first + len(lines))]
        assert shown == sorted(set(shown))
        assert bool(shown) != bool(file["missing"])
    for each in page["programs"]:
        ops, launches = each["ops"], each["launches"]
        for number, op in enumerate(ops):
            assert all(used < number for used in op["inputs"])
            assert op["launch"] is None or 0 <= op["launch"] < len(launches)
            assert op["place"] is None or 0 <= op["place"][0] < len(page["files"])
        for launch in launches:
            assert 0 <= launch["kernel"] < len(each["kernels"])
            name = each["kernels"][launch["kernel"]]["name"]
            assert each["emitted"][launch["line"]].startswith(f"    {name}([")
            assert all(0 <= other < len(launches) for other, _, _ in launch["apart"])
            assert (launch["ns"] is not None) == each["is_timed"]
        for kernel in each["kernels"]:
            line = each["emitted"][kernel["line"]]
            assert line.startswith((f"def {kernel['name']}(args):", f"# {kernel['name']}: not on disk"))
        for line, *linked in each["links"]:
            assert 0 <= line < len(each["emitted"])
            assert linked and all(0 <= op < len(ops) for op in linked)
        for first, period, times in each["repeats"]:
            assert period >= 1 and times >= 3 and first + period * times <= len(launches)
        for held in each["arena"]["values"]:
            assert 0 <= held["first"] <= held["last"] < len(launches)
            assert held["offset"] + held["bytes"] <= each["arena"]["bytes"]
            assert held["op"] is None or ops[held["op"]]["kind"] == "op"
