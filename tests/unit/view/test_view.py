# SPDX-License-Identifier: BSD-3-Clause
"""The page that shows compiled steps: its data, its parts, and that no text escapes from its element."""

import base64
import hashlib
import json
import random
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
import view_pages
from effort import sweep
from graphs import random_case
from page_parts import Parts, check
from viewed_step import FILE, LINE, page_of, step, stepped

import tracejit as tj
from tracejit import config, dlaccelerate, dlarray, dlgradient, tanh
from tracejit.describe.program import describe
from tracejit.pipeline import stages
from tracejit.view import data
from tracejit.view.page import as_json, file_name, render
from tracejit.view.program import Built, Input, LaunchedRow, Measured, program
from tracejit.view.repeats import repeats
from tracejit.view.sources import Sources

PACKAGE = Path(tj.__file__).parent
NASTY = "</script><script>hacked()</script>\"'&amp;<!--]]>\u2028{{data}}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
    return tmp_path / "cache"


class TestRunning:
    def test_ops_lead_to_lines_and_back(self) -> None:
        page = page_of(stepped())
        (made,) = page["programs"]
        (file,) = page["files"]
        assert file["name"] == FILE
        lines = {first + i: text for first, part in file["chunks"] for i, text in enumerate(part)}
        by_name = {op["name"]: number for number, op in enumerate(made["ops"])}
        for name, offset, text in (
            ("matmul", 1, "x @ w"),
            ("tanh", 1, "tanh("),
            ("greater", 3, "if loss > 1e6"),
        ):
            place = made["ops"][by_name[name]]["place"]
            assert place == (0, LINE + offset)
            assert text in lines[LINE + offset]
        emitted = {
            op: [made["emitted"][line] for line, *ops in made["links"] if op in ops]
            for op in by_name.values()
        }
        assert any("= tanh_f32" in line for line in emitted[by_name["tanh"]])
        assert any(line.startswith("def product_") for line in emitted[by_name["matmul"]])
        assert any(line.startswith("    product_") for line in emitted[by_name["matmul"]])

    def test_results_and_reasons_between_launches(self) -> None:
        (made,) = page_of(stepped())["programs"]
        assert [op["output"] for op in made["ops"] if op["output"]] == [
            "result 1", "result 2", "whether the guards hold",
        ]  # fmt: skip
        words = {why for launch in made["launches"] for _, _, why in launch["apart"]}
        assert "matmul is a matrix product, which has a kernel of its own" in words

    def test_guards_and_history(self) -> None:
        page = page_of(stepped())
        (made,) = page["programs"]
        assert made["guards"] == [
            {"text": f"bool() at {FILE}:{LINE + 3} is False", "place": (0, LINE + 3)},
            {"text": "global rate is 0.5", "place": (0, LINE + 2)},
        ]
        assert [(event["call"], event["outcome"]) for event in page["history"]] == [
            (1, "a new trace"),
            (2, "confirmed"),
        ]
        assert page["history"][0]["why"].endswith("because there was none yet.")
        assert page["keys"] == [
            {
                "arguments": "w: 3x2 float32, x: 5(B) x 3(C) float32", "calls": 4, "traces": 1, "confirmations": 1,
                "audits": 0, "replaced": 0, "state": "replayed",
            }
        ]  # fmt: skip
        assert page["last"].startswith("step: hit.")

    def test_history_has_the_latest_calls(self) -> None:
        accelerated = dlaccelerate(tanh)
        for size in range(1, 61):
            accelerated(np.ones(size))
        assert [event["call"] for event in page_of(accelerated)["history"]] == list(range(11, 61))

    def test_variants_are_numbered(self) -> None:
        def branching(x: dlarray) -> dlarray:
            return x * 2 if x.sum() > 0 else -x

        accelerated = dlaccelerate(branching)
        for sign in (1, 1, 1, -1, -1, -1):
            accelerated(np.full(3, float(sign)))
        page = page_of(accelerated)
        check(page)
        assert [each["title"] for each in page["programs"]] == [
            f"x: 3 float64, trace {number}" for number in (2, 1)
        ]
        assert not any(each["is_timed"] for each in page["programs"])
        assert page["programs"][0]["timing"] == [
            "Not measured: the program has not run compiled in this process."
        ]

    def test_many_programs_are_cut(self) -> None:
        accelerated = dlaccelerate(tanh)
        for size in range(1, 15):
            accelerated(np.ones(size))
        page = page_of(accelerated)
        assert len(page["programs"]) == 12
        assert page["notes"] == ["2 more programs are left out."]

    def test_a_call_on_a_tape_has_two_programs(self) -> None:
        accelerated = dlaccelerate(lambda x: (tanh(x) * x).sum())
        x = dlarray(np.linspace(0, 1, 7, dtype=np.float32))
        for _ in range(4):
            tj.dlfeval(lambda x: dlgradient(accelerated(x), x), x)
        page = page_of(accelerated)
        check(page)
        assert [each["title"].partition("float32")[2] for each in page["programs"]] == [
            ", forward",
            ", adjoint",
        ]

    def test_captured_arrays_are_inputs(self) -> None:
        captured = dlarray(np.ones(4, np.float32))

        def scaled(x: dlarray) -> dlarray:
            return x * captured

        accelerated = dlaccelerate(scaled)
        for _ in range(3):
            accelerated(dlarray(np.ones(4, np.float32)))
        (made,) = page_of(accelerated)["programs"]
        assert made["signature"] == ["x: 4 float32", "closure captured: 4 float32"]

    def test_a_function_without_traces(self) -> None:
        page = page_of(dlaccelerate(step))
        check(page)
        assert page["programs"] == []
        assert page["notes"] == ["step has no trace to show. The table of traces below says what happened."]
        assert page["last"] == "step has not been called yet."

    def test_a_function_that_is_refused(self) -> None:
        accelerated = dlaccelerate(lambda x: float(np.random.default_rng().random()) * x)
        with pytest.warns(tj.NotAcceleratedWarning):
            for _ in range(4):
                accelerated(np.ones(2))
        page = page_of(accelerated)
        assert page["programs"] == []
        assert [key["state"].partition(":")[0] for key in page["keys"] or ()] == ["runs uncompiled"]
        assert page["history"][-1]["outcome"] == "runs uncompiled"

    def test_view_writes_a_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        accelerated = stepped()
        assert accelerated.view(tmp_path / "page.html") == tmp_path / "page.html"
        monkeypatch.chdir(tmp_path)
        assert accelerated.view() == Path("tracejit-step.html")
        for name in ("page.html", "tracejit-step.html"):
            assert "<title>step - tracejit</title>" in (tmp_path / name).read_text(encoding="utf-8")
        with pytest.raises(FileNotFoundError):
            accelerated.view(tmp_path / "none" / "page.html")


@pytest.mark.parametrize("seed", range(sweep(6, 20, sample=2)))
def test_pages_of_random_programs_are_consistent(seed: int) -> None:
    case = random_case(random.Random(seed))
    made = stages(case.graph)
    found = made.program
    from tracejit.codegen.emit import module_source

    sources = Sources()
    shown = program(
        Built(
            "random", [Input("", str(aval)) for aval in found.inputs], [], [str(c.dtype) for c in found.constants],
            [
                LaunchedRow(row.kernel.name, row.note, row.part, row.parts, place)
                for row, place in zip(found.rows, found.places, strict=True)
            ],
            module_source(found, "random").splitlines(), describe(made), found.arena_bytes, [],
        ),
        sources.place,
        Measured((), None, []),
    )  # fmt: skip
    page = view_pages.page(shown, files=sources.files())
    check(page)
    json.loads(as_json(page))


class TestRepeats:
    def test_runs(self) -> None:
        assert repeats("") == []
        assert repeats("abc") == []
        assert repeats("aa") == []
        assert repeats("aaa") == [(0, 1, 3)]
        assert repeats("x" + "abc" * 4 + "ab") == [(1, 3, 4)]

    def test_forward_and_adjoint_are_two_runs(self) -> None:
        assert repeats("start" + "fg" * 10 + "loss" + "bcd" * 10) == [(5, 2, 10), (29, 3, 10)]

    def test_the_longest_run_counts_and_of_those_the_shortest_part(self) -> None:
        assert repeats("aabaabaab") == [(0, 3, 3)]
        assert repeats("ab" * 12) == [(0, 2, 12)]

    @pytest.mark.slow
    def test_ten_thousand_launches(self) -> None:
        rng = random.Random(0)
        letters = [rng.randrange(3) for _ in range(10_000)]
        found = repeats(letters)
        ends = [first + period * times for first, period, times in found]
        assert all(end <= first for end, (first, _, _) in zip(ends, found[1:], strict=False))
        for first, period, times in found:
            part = letters[first : first + period]
            assert letters[first : first + period * times] == part * times
        assert repeats([0, 1, 2, 3] * 2500) == [(0, 4, 2500)]


class TestSources:
    def test_lines_around_those_of_ops(self, tmp_path: Path) -> None:
        file = tmp_path / "long.py"
        file.write_text("".join(f"line {i}\n" for i in range(1, 101)))
        sources = Sources()
        assert [sources.place((str(file), line)) for line in (20, 30, 90)] == [(0, 20), (0, 30), (0, 90)]
        assert sources.place(None) is None
        (found,) = sources.files()
        assert [(first, len(lines), lines[0], lines[-1]) for first, lines in found["chunks"]] == [
            (5, 41, "line 5", "line 45"), (75, 26, "line 75", "line 100"),
        ]  # fmt: skip

    def test_files_that_cannot_be_shown(self, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("a password\n")
        (tmp_path / "short.py").write_text("one line\n")
        sources = Sources(trusted=False)
        for name, line in (("secret", 1), ("gone.py", 1), ("short.py", 100)):
            sources.place((str(tmp_path / name), line))
        assert [(file["chunks"], file["missing"]) for file in sources.files()] == [
            ([], "not shown: not the name of a Python file"),
            ([], "the file cannot be read here"),
            ([], "the file is shorter now"),
        ]

    def test_code_of_this_process_is_shown_from_any_file(self) -> None:
        sources = Sources()
        sources.place(("<stdin of nobody>", 1))
        assert [file["missing"] for file in sources.files()] == ["the file cannot be read here"]


class TestPage:
    @pytest.fixture
    def nasty(self) -> data.Page:
        made = view_pages.page(view_pages.program(2, title=NASTY), title=NASTY, notes=[NASTY], last=NASTY)
        made["programs"][0]["ops"][2].update(name=NASTY, result=NASTY, detail=NASTY)
        made["programs"][0]["emitted"][0] = f"def f(args): {NASTY}"
        made["files"][0].update(name=f"{NASTY}.py", chunks=[(1, [NASTY])])
        return made

    def test_no_text_ends_its_element(self, nasty: data.Page) -> None:
        parts = Parts(render(nasty))
        scripts = [(of, text) for tag, of, text in parts.texts if tag == "script"]
        assert [of for of, _ in scripts] == [{"type": "application/json", "id": "data"}, {}]
        assert json.loads(scripts[0][1]) == json.loads(json.dumps(nasty))
        assert [tag for tag, _ in parts.elements].count("script") == 2
        titles = "".join(text for tag, _, text in parts.texts if tag == "title")
        assert titles == f"{NASTY} - tracejit"

    def test_the_policy_allows_only_the_scripts_and_styles_of_the_page(self, nasty: data.Page) -> None:
        parts = Parts(render(nasty))
        (policy,) = [
            of["content"] for _, of in parts.elements if of.get("http-equiv") == "Content-Security-Policy"
        ]

        def digest(tag: str) -> str:
            text = "".join(text for each, of, text in parts.texts if each == tag and "id" not in of)
            return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

        assert policy == (
            f"default-src 'none'; script-src {digest('script')}; style-src {digest('style')}; base-uri 'none'; "
            "form-action 'none'"
        )

    def test_nothing_is_loaded_and_nothing_is_styled_or_run_by_attributes(self) -> None:
        for tag, of in Parts(render(view_pages.page())).elements:
            assert tag not in ("link", "img", "iframe", "object", "embed")
            assert not {"src", "style", "action"} & set(of)
            assert not any(name.startswith("on") for name in of)
            assert of.get("href", "#").startswith("#")  # type: ignore[union-attr]

    def test_scripts_put_text_into_text_nodes_only(self) -> None:
        text = "".join(path.read_text() for path in (PACKAGE / "view").glob("*.js"))
        found = re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|fetch\(|XMLHttp|WebSocket|"
            r"localStorage|https?:",
            text,
        )
        assert found == []

    def test_ids_are_unique_and_labels_lead_to_elements(self) -> None:
        elements = Parts(render(view_pages.page())).elements
        ids = [of["id"] for _, of in elements if "id" in of]
        assert len(ids) == len(set(ids))
        for _, of in elements:
            for name in ("aria-labelledby", "aria-describedby", "for"):
                assert of.get(name, ids[0]) in ids
            if of.get("href") is not None:
                assert of["href"][1:] in ids  # type: ignore[index]

    def test_json_for_a_script(self) -> None:
        assert as_json(["<", ">", "&", "\u2028"]) == '["\\u003c","\\u003e","\\u0026","\\u2028"]'
        with pytest.raises(ValueError, match="JSON"):
            as_json(float("nan"))

    def test_names_of_files(self) -> None:
        assert file_name("../../<lambda>") == "....lambda"
        assert file_name("<>") == file_name("\ud800") == "function"
        assert file_name("é" * 300) == "é" * 100

    def test_a_name_that_cannot_be_encoded(self) -> None:
        text = render(view_pages.page(title="caf\udce9")).encode().decode()
        assert "<title>caf\\udce9 - tracejit</title>" in text

    def test_functions_whose_names_are_no_file_names(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        for name, file in (("caf\udce9", "tracejit-caf.html"), ("x" * 300, f"tracejit-{'x' * 200}.html")):

            def named(x: dlarray) -> dlarray:
                return x * 2

            named.__qualname__ = name
            function = dlaccelerate(named)
            for _ in range(3):
                function(np.ones(3))
            assert function.view() == Path(file)
            assert (tmp_path / file).stat().st_size


def test_a_wheel_has_the_files_of_the_page() -> None:
    settings = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]
    assert "tracejit" in settings["wheel"]["only-include"]  # with every file that git does not ignore
    assert settings["wheel"]["exclude"] == ["tracejit/kernels", "tracejit/examples"]
    names = {path.name for path in (PACKAGE / "view").iterdir() if path.is_file() and path.suffix != ".py"}
    assert {"page.html", "page.css", "main.js"} <= names
