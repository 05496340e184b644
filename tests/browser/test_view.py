# SPDX-License-Identifier: BSD-3-Clause
"""The page in a browser: what it draws and links, by pointer and keyboard, light and dark, narrow and wide."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import view_pages
from browser import Browser, installed

from tracejit import dlaccelerate, dlarray, dlgradient, tanh
from tracejit.view.data import Page
from tracejit.view.page import render

PROGRAM = installed()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")

NASTY = "</script><img src=x onerror=hacked=1><b>\"'&amp;`${hacked=1}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert PROGRAM is not None
    browser = Browser(PROGRAM)
    yield browser
    browser.close()


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    """Show a page; after the test, nothing was complained of and nothing was asked for."""

    def shown(page: Page, width: int = 1280, height: int = 900, scheme: str = "light") -> Browser:
        file = tmp_path / "page.html"
        file.write_text(render(page), encoding="utf-8")
        browser.open(file, width, height, scheme)
        return browser

    yield shown
    assert browser.complaints == []
    assert browser.requests == []


def chosen(browser: Browser) -> list[int]:
    return browser.run("[...tracejit.selected.ops]")  # type: ignore[no-any-return]


def marked(browser: Browser, lines: str) -> list[int]:
    """Return the numbers of the lines that are marked, from 1 on."""
    return browser.run(
        f"[...tracejit.{lines}.on.keys()].sort((a, b) => a - b).map((i) => tracejit.{lines}.rows[i].number ?? i + 1)"
    )  # type: ignore[no-any-return]


def at_op(browser: Browser, op: int) -> tuple[float, float]:
    """Return where the middle of an op is drawn, in the window."""
    browser.run("document.querySelector('#graph').scrollIntoView({block: 'start', behavior: 'instant'})")
    return tuple(
        browser.run(
            f"(() => {{ const g = tracejit.graph, b = g.boxes[g.boxOf[{op}]], r = g.canvas.getBoundingClientRect(); "
            "return [r.x + (b.x + 74) * g.view.scale + g.view.x, r.y + (b.y + 18) * g.view.scale + g.view.y]; })()"
        )
    )


def rectangle(browser: Browser, selector: str) -> list[float]:
    """Scroll to an element, and return where it is in the window, and how large."""
    return browser.run(  # type: ignore[no-any-return]
        f"(() => {{ const e = document.querySelector('{selector}'); "
        "e.scrollIntoView({block: 'center', behavior: 'instant'}); "
        "const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()"
    )


def select(browser: Browser, name: str, value: object) -> None:
    """Choose a value of a select element."""
    element = f"document.getElementById('{name}')"
    browser.run(f"{element}.value = '{value}'; {element}.dispatchEvent(new Event('change'))")


class TestLinks:
    def test_from_an_op_to_both_sources(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)))
        browser.click(*at_op(browser, 3))
        assert chosen(browser) == [3]
        assert marked(browser, "sourceLines") == [13]
        assert marked(browser, "emittedLines") == [31, 43]
        assert browser.run("document.getElementById('detail').innerText").startswith("add 128x64 float32")
        assert browser.run("document.getElementById('said').textContent") == (
            "add, 128x64 float32, launch 2, kernel add_tanh_b5dc16ee29a6, step.py:13"
        )

    def test_from_your_line_to_its_ops(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)))
        browser.click_on("#source-lines [data-row='13']")
        assert chosen(browser) == [3, 4, 6, 7]
        assert marked(browser, "emittedLines") == [31, 32, 43, 47]

    def test_from_an_emitted_line_to_your_line(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)))
        browser.click_on("#emitted-lines [data-row='10']")
        assert chosen(browser) == [2, 5]
        assert marked(browser, "sourceLines") == [12]

    def test_lines_without_ops_choose_nothing(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)))
        browser.click_on("#source-lines [data-row='3']")
        assert chosen(browser) == []

    def test_neighbours_and_launches_of_an_op_are_links(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)))
        browser.click(*at_op(browser, 4))
        browser.click_on("#detail .chips button")  # it is fused with add
        assert chosen(browser) == [3]
        # and not fused with the product before it.
        browser.run(
            "[...document.querySelectorAll('#detail button')].find((b) => b.innerText === 'launch 1').click()"
        )
        assert chosen(browser) == [2]

    def test_a_guard_leads_to_its_line(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)))
        browser.click_on("#guards button")
        assert marked(browser, "sourceLines") == [4]

    def test_the_list_of_ops(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)))
        browser.click_on("#as-list")
        browser.click_on("#op-list [data-row='2']")
        assert chosen(browser) == [2]
        assert marked(browser, "sourceLines") == [12]
        browser.click_on("#as-graph")
        assert browser.run("getComputedStyle(document.getElementById('op-list')).display") == "none"

    def test_time_and_memory_choose_ops(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)))
        for section, op in (("time", [2]), ("memory", [2])):
            x, y, width, height = browser.run(
                f"(() => {{ const c = document.querySelector('#{section} canvas'); "
                "c.scrollIntoView({block: 'center', behavior: 'instant'}); "
                "const r = c.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()"
            )
            browser.click(x + width * 0.01, y + height * 0.7)
            assert chosen(browser) == op
            browser.press("Escape")
            browser.hover(x + width * 0.01, y + height * 0.7)
            assert browser.run("document.getElementById('tip').innerText") != ""

    def test_choosing_a_different_program(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2), view_pages.program(5, title="the other")))
        assert browser.run("tracejit.model.ops.length") == 8
        select(browser, "program", 1)
        assert browser.run("tracejit.model.ops.length") == 17
        assert "15 ops, 10 launches of 2 kernels" in browser.run(
            "document.getElementById('subtitle').textContent"
        )


class TestKeyboard:
    def test_arrows_walk_through_the_graph(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)))
        browser.run("document.getElementById('graph-canvas').focus()")
        walked = []
        for key in ("Home", "ArrowDown", "ArrowDown", "ArrowUp", "End", "Home", "ArrowLeft"):
            browser.press(key)
            walked.append(chosen(browser)[0])
        assert walked == [0, 2, 3, 2, 7, 0, 1]

    def test_pages_walk_through_launches(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)))
        browser.run("document.getElementById('graph-canvas').focus()")
        walked = []
        for key in ("PageDown", "PageDown", "PageDown", "PageUp"):
            browser.press(key)
            walked.append(chosen(browser))
        assert walked == [[2], [3, 4], [5], [3, 4]]

    def test_zoom(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)))
        browser.run("document.getElementById('graph-canvas').focus()")
        before = browser.run("tracejit.graph.view.scale")
        browser.press("+")
        assert browser.run("tracejit.graph.view.scale") == pytest.approx(1.25 * before)
        browser.press("-")
        assert browser.run("tracejit.graph.view.scale") == pytest.approx(before)

    def test_arrows_walk_through_lines_that_have_ops(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)))
        browser.run("document.getElementById('source-lines').focus()")
        browser.press("Home")
        assert marked(browser, "sourceLines") == [12]
        browser.press("ArrowDown")
        assert marked(browser, "sourceLines") == [13]
        assert browser.run(
            "document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).innerText"
        ).startswith("13")
        browser.press("ArrowDown")
        assert marked(browser, "sourceLines") == [13]

    def test_search_and_escape(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)))
        browser.press("/")
        assert browser.run("document.activeElement.id") == "search"
        browser.write("tanh")
        assert (
            browser.run("document.getElementById('found').textContent") == "4 found"
        )  # add is on such a line
        found = []
        for shift in (False, False, True):
            browser.press("Enter", shift)
            found.append((chosen(browser)[0], browser.run("document.getElementById('found').textContent")))
        assert found == [(3, "1 of 4"), (4, "2 of 4"), (3, "1 of 4")]
        browser.write("x")
        assert browser.run("document.getElementById('found').textContent") == "nothing"
        browser.press("Escape")
        assert chosen(browser) == []
        assert browser.run("[document.getElementById('search').value, document.activeElement.id]") == [
            "",
            "graph-canvas",
        ]

    def test_tab_reaches_everything_in_the_order_of_the_page(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2), view_pages.program(1)))
        browser.run("document.activeElement.blur()")
        met = []
        for _ in range(60):
            browser.press("Tab")
            met.append(browser.run("document.activeElement.id || document.activeElement.closest('[id]')?.id"))
        order = [name for name, _ in itertools.groupby(met)]
        wanted = [
            "program", "search", "theme", "as-graph", "as-list", "zoom-out", "zoom-in", "zoom-fit", "graph-canvas",
            "legend", "source-lines", "emitted-lines", "time", "memory", "guards", "traces",
        ]  # fmt: skip
        assert [name for name in order if name in wanted][: len(wanted)] == wanted

    def test_the_focus_is_visible(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)))
        for _ in range(12):
            browser.press("Tab")
            style = browser.run("getComputedStyle(document.activeElement).outline")
            assert "solid 2px" in style


class TestPointer:
    def test_dragging_moves_the_graph_and_chooses_nothing(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)))
        x, y = at_op(browser, 3)
        before = browser.run("[tracejit.graph.view.x, tracejit.graph.view.y]")
        browser.drag(x, y, 40, -30)
        after = browser.run("[tracejit.graph.view.x, tracejit.graph.view.y]")
        assert after == [before[0] + 40, before[1] - 30]
        assert chosen(browser) == []

    def test_the_wheel_scrolls_the_graph_and_then_the_page(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(60)))
        browser.click_on("#collapse")
        x, y = at_op(browser, 2)
        browser.wheel(x, y + 100, 500)
        assert browser.run("tracejit.graph.view.y") == 20 - 500
        for _ in range(60):
            browser.wheel(x, y + 100, 500)
        last = browser.run("tracejit.graph.view.y")
        browser.wheel(x, y + 100, 500)
        assert browser.run("tracejit.graph.view.y") == last
        browser.run("new Promise((done) => setTimeout(done, 300))")
        assert browser.run("scrollY") > 0

    def test_control_and_the_wheel_zoom_where_the_pointer_is(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)))
        x, y = at_op(browser, 3)
        scale = browser.run("tracejit.graph.view.scale")
        browser.wheel(x, y, -100, control=True)
        assert browser.run("tracejit.graph.view.scale") > scale
        assert at_op(browser, 3) == (pytest.approx(x, abs=1), pytest.approx(y, abs=1))

    def test_the_strip_leads_to_any_part_of_a_long_graph(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(500)))
        browser.click_on("#collapse")
        x, y, width, height = rectangle(browser, "#graph-canvas")
        browser.click(x + width - 5, y + height - 2)
        tall, scale, at = browser.run(
            "[tracejit.graph.placed.height, tracejit.graph.view.scale, tracejit.graph.view.y]"
        )
        assert -at / scale > 0.95 * tall - height / scale
        assert chosen(browser) == []

    def test_a_double_click_unfolds(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(10)))
        x, y = at_op(browser, 20)
        browser.click(x, y)
        browser.click(x, y, times=2)
        assert browser.run("tracejit.graph.boxes.length") == 32

    def test_a_chart_zooms_and_moves(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(50)))
        browser.click_on("#time button[aria-label^='Zoom in']")
        span = "tracejit.timeline.to - tracejit.timeline.from"
        assert browser.run(span) == browser.run("tracejit.timeline.extent") / 2
        x, y, width, _ = rectangle(browser, "#time canvas")
        before = browser.run("tracejit.timeline.from")
        browser.drag(x + width / 2, y + 20, 60, 0)
        assert browser.run("tracejit.timeline.from") < before
        browser.run("document.querySelector('#time canvas').focus()")
        browser.press("0")
        assert browser.run(span) == browser.run("tracejit.timeline.extent")
        browser.press("End")
        assert chosen(browser) == [150, 151]
        browser.press("ArrowLeft")
        assert chosen(browser) == [149]


class TestRepeats:
    def test_repeats_are_folded_and_unfold(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(100)))
        assert browser.run("tracejit.graph.boxes.length") == 2 + 3 + 1
        browser.run("document.getElementById('graph-canvas').focus()")
        browser.press("End")
        assert len(chosen(browser)) == 297
        browser.press("Enter")
        assert browser.run("tracejit.graph.boxes.length") == 302
        assert browser.run("document.getElementById('collapse').checked") is False
        browser.click_on("#collapse")
        assert browser.run("tracejit.graph.boxes.length") == 6

    def test_ten_thousand_ops(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(3334)))
        assert browser.run("tracejit.model.count") == 10_002
        browser.click_on("#collapse")
        assert browser.run("tracejit.graph.boxes.length") == 10_004
        browser.settle()
        assert 0 < browser.run("tracejit.graph.drawnCount") < 30
        browser.run("document.getElementById('graph-canvas').focus()")
        browser.press("End")
        assert chosen(browser) == [10_003]
        # Lists hold the rows that are seen, no others.
        assert browser.run("document.querySelectorAll('#emitted-lines [data-row]').length") < 100
        assert browser.run("document.querySelectorAll('#source-lines [data-row]').length") < 100
        assert marked(browser, "emittedLines") == [32, 13375]

    def test_each_op_lies_below_what_it_uses_and_no_two_overlap(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(40)))
        browser.click_on("#collapse")
        assert browser.run(
            "tracejit.graph.boxes.every((b) => b.inputs.every((i) => tracejit.graph.boxes[i].y < b.y))"
        )
        assert browser.run(
            "tracejit.graph.placed.rows.every((row) => row.boxes.every((i, at) => at === 0 "
            "|| tracejit.graph.boxes[i].x >= tracejit.graph.boxes[row.boxes[at - 1]].x + 148))"
        )

    def test_ops_stand_beside_what_uses_them(self, show: Any) -> None:
        made = view_pages.program(20)
        made["ops"].append(view_pages.op("b", [], None, 0, kind="argument", place=None))
        made["ops"].append(view_pages.op("decay", [len(made["ops"]) - 1], 38, 12))
        made["ops"].append(view_pages.op("update", [61, len(made["ops"]) - 1], 39, 13))
        browser = show(view_pages.page(made))
        browser.click_on("#collapse")
        row = "tracejit.graph.boxes[tracejit.graph.boxOf[{}]].row"
        rows = [browser.run(row.format(op)) for op in (61, 62, 63, 64)]
        assert rows == [rows[0], rows[0] - 1, rows[0], rows[0] + 1]

    def test_a_long_signature_is_cut_in_the_heading(self, show: Any) -> None:
        made = view_pages.program(1)
        made["signature"] = [f"x{i}: scalar float32" for i in range(9)]
        made["kept"] = "the first 2 of 3 launches"
        browser = show(view_pages.page(made))
        assert browser.run("document.getElementById('subtitle').textContent") == (
            ", ".join(made["signature"][:6])
            + ", and 3 more arguments; 3 ops, 2 launches of 2 kernels; the first 2 of 3 launches"
        )


class TestLooks:
    @pytest.mark.parametrize("width", [400, 768, 1080, 1920])
    def test_nothing_is_wider_than_the_window(self, show: Any, width: int) -> None:
        long = "a_function_with_quite_a_long_name_" * 6
        page = view_pages.page(view_pages.program(3, title=long), title=long, notes=[long], last=long)
        page["history"].append({"call": 3, "outcome": "a new trace", "why": long})
        browser = show(page, width)
        browser.click(*at_op(browser, 3))
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run(
            "[...document.querySelectorAll('section, header, .bar, #detail')].filter((e) => e.offsetParent "
            f"&& e.getBoundingClientRect().right > {width} + 1).map((e) => e.id || e.className)"
        ) == []  # fmt: skip

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_text_stands_out(self, show: Any, scheme: str) -> None:
        """The contrast of text is at least 4.5, that of what is drawn at least 3 (WCAG 2.2 AA)."""
        browser = show(view_pages.page(view_pages.program(2)), scheme=scheme)
        assert browser.run("tracejit.theme.dark") is (scheme == "dark")
        found = browser.run(CONTRASTS)
        assert {name: value for name, value in found["text"].items() if value < 4.5} == {}
        assert {name: value for name, value in found["drawn"].items() if value < 3} == {}

    def test_the_switch_wins_over_the_system(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)), scheme="dark")
        colours = []
        for name in ("system", "light", "dark"):
            select(browser, "theme", name)
            colours.append(browser.run("getComputedStyle(document.body).backgroundColor"))
        assert colours[0] == colours[2] != colours[1]

    def test_the_page_follows_the_system(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(2)))
        browser.scheme("dark")
        browser.settle()
        assert browser.run("tracejit.theme.dark") is True

    def test_everything_has_a_name(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(3), view_pages.program(1)))
        browser.click(*at_op(browser, 3))
        nameless = browser.run(
            "[...document.querySelectorAll('button, input, select, canvas, [role]')].filter((e) => !(e.hidden "
            "|| e.ariaLabel || e.labels?.length || e.textContent.trim() || e.hasAttribute('aria-labelledby') "
            "|| ['presentation', 'status', 'tooltip'].includes(e.role))).map((e) => e.outerHTML.slice(0, 80))"
        )
        assert nameless == []


CONTRASTS = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const luminance = (colour) => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((c) => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const { theme, colours } = tracejit, text = {}, drawn = {};
  const probe = document.createElement("i");
  document.body.append(probe);
  const value = (name) => { probe.style.color = `var(--${name})`; return getComputedStyle(probe).color; };
  for (const name of ["text", "quiet", "accent", "word", "string", "number"]) {
    for (const back of ["back", "pane"]) text[`${name} on ${back}`] = contrast(value(name), value(back));
  }
  for (const name of ["text", "word", "string", "number"]) {
    text[`${name} on mark`] = contrast(value(name), value("mark"));
  }
  text["text on marked"] = contrast(theme.text, theme.marked);
  text["button"] = contrast(theme.back, theme.text);
  for (let kernel = 0; kernel < 40; kernel++) {
    const { fill, edge } = colours(kernel);
    text[`text on kernel ${kernel}`] = contrast(theme.text, fill);
    drawn[`edge of kernel ${kernel}`] = contrast(edge, theme.back);
  }
  drawn.edges = contrast(theme.edge, theme.back);
  drawn.focus = contrast(theme.accent, theme.back);
  probe.remove();
  return { text, drawn };
})()"""


class TestEmpty:
    def test_a_program_without_ops(self, show: Any) -> None:
        browser = show(view_pages.page(view_pages.program(0)))
        text = browser.run("document.body.innerText")
        for words in ("This program launches nothing", "No arena", "There is no emitted source"):
            assert words in text
        browser.run("document.getElementById('graph-canvas').focus()")
        for key in ("ArrowDown", "PageDown", "Enter", "End", "+", "0"):
            browser.press(key)

    def test_a_page_without_programs(self, show: Any) -> None:
        browser = show(view_pages.page(notes=["step has no trace to show."], history=[]))
        text = browser.run("document.body.innerText")
        assert "step has no trace to show." in text
        assert "No call has been recorded" in text
        links = (
            "[...document.querySelectorAll('nav a')].filter((a) => a.offsetParent).map((a) => a.textContent)"
        )
        assert browser.run(links) == ["Traces", "About"]

    def test_a_page_of_the_cache(self, show: Any) -> None:
        made = view_pages.program(2, timed=False)
        made["guards"] = None
        browser = show(view_pages.page(made, keys=None, history=[], last=""))
        text = browser.run("document.body.innerText")
        assert "Guards belong to a running function" in text
        assert "Traces belong to a running function" in text
        assert browser.run("document.querySelector('#time canvas')") is None


def test_nothing_breaks_out_of_the_page(show: Any) -> None:
    made = view_pages.program(2, title=NASTY)
    for op in made["ops"]:
        op.update(name=NASTY, result=NASTY, detail=NASTY, output=NASTY)
    for launch in made["launches"]:
        launch.update(note=NASTY, bound=NASTY, apart=[(0, NASTY, NASTY)])
    made["kernels"] = [{"name": NASTY, "line": 0}, {"name": NASTY, "line": 1}]
    made["emitted"] = [NASTY] * len(made["emitted"])
    made["signature"] = made["timing"] = [NASTY]
    made["facts"] = [(NASTY, NASTY)]
    made["guards"] = [{"text": NASTY, "place": None}]
    for value in made["arena"]["values"]:
        value["what"] = NASTY
    page = view_pages.page(
        made,
        view_pages.program(1, title=NASTY),
        title=NASTY,
        notes=[NASTY],
        last=NASTY,
        history=[{"call": 1, "outcome": NASTY, "why": NASTY}],
        files=[{"name": NASTY, "chunks": [(1, [NASTY] * 14)], "missing": ""}],
    )
    browser = show(page)
    browser.click(*at_op(browser, 3))
    browser.click_on("#memory summary")
    browser.hover(*at_op(browser, 3))
    assert browser.run("typeof hacked") == "undefined"
    assert browser.run("document.querySelectorAll('main img, header img, #tip img, dd > b').length") == 0
    assert browser.run("document.querySelectorAll('script').length") == 2
    assert browser.run("document.querySelector('h1').textContent") == NASTY
    assert browser.run("document.title") == f"{NASTY} - tracejit"
    assert NASTY in browser.run("document.getElementById('detail').textContent")


def test_a_function_that_ran(browser: Browser, tmp_path: Path) -> None:
    @dlaccelerate
    def step(w: dlarray, x: dlarray) -> tuple[dlarray, dlarray]:
        loss = (tanh(x @ w) ** 2).sum()
        return loss, dlgradient(loss, w)

    for _ in range(4):
        step(dlarray(np.ones((8, 4), np.float32)), dlarray(np.ones((16, 8), np.float32), "BC"))
    browser.open(step.view(tmp_path / "page.html"))
    browser.press("/")
    browser.write("matmul")
    browser.press("Enter")
    line = step.function.__code__.co_firstlineno + 2
    assert marked(browser, "sourceLines") == [line]
    assert "Not measured" not in browser.run("document.getElementById('time').innerText")
    assert browser.run("document.querySelectorAll('#time canvas').length") == 1
    assert browser.complaints == []
    assert browser.requests == []
