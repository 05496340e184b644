# SPDX-License-Identifier: BSD-3-Clause
"""Pages of compiled functions, running and stored."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_parts import Parts, check
from viewed_step import FILE, LINE, page_of, stepped

from tracejit import cli, config, dlaccelerate, dlarray, tanh
from tracejit.cache import inspect
from tracejit.cache.program_text import ProgramText
from tracejit.errors import CacheError
from tracejit.store.programs import Programs
from tracejit.view import live, stored


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
    return tmp_path / "cache"


class TestRunning:
    def test_a_function_that_ran(self) -> None:
        page = page_of(stepped())
        check(page)
        assert page["title"] == "step"
        assert page["notes"] == []
        (made,) = page["programs"]
        assert made["title"] == "w: 3x2 float32, x: 5(B) x 3(C) float32"
        assert made["signature"] == ["w: 3x2 float32", "x: 5(B) x 3(C) float32"]
        assert [op["name"] for op in made["ops"]][:4] == ["w", "x", "matmul", "tanh"]
        assert made["is_timed"] and len(made["timing"]) == 3
        assert all(launch["ns"] >= 0 and launch["least_ns"] >= 0 for launch in made["launches"])  # type: ignore[operator]
        assert {launch["bound"] for launch in made["launches"]} <= {"memory", "arithmetic"}

    def test_the_reason_of_each_trace_is_kept(self) -> None:
        accelerated = stepped()
        for rows in (6, 7):
            accelerated(dlarray(np.ones((3, 2), np.float32)), dlarray(np.ones((rows, 3), np.float32), "BC"))
        page = page_of(accelerated)
        assert "x was 6(B) x 3(C) float32, is 7(B) x 3(C) float32" in page["history"][-1]["why"]
        # What has run stands first, then what was used last.
        assert [each["title"][-22:] for each in page["programs"]] == [
            f"x: {rows}(B) x 3(C) float32" for rows in (5, 7, 6)
        ]
        assert [each["is_timed"] for each in page["programs"]] == [True, False, False]
        assert [key["state"] for key in page["keys"] or ()] == [
            "replayed", "to be confirmed by another call", "to be confirmed by another call",
        ]  # fmt: skip
        accelerated.clear_cache()
        assert page_of(accelerated)["history"] == []


class TestStored:
    def test_it_agrees_with_the_page_of_the_running_function(self) -> None:
        accelerated = stepped()
        (running,) = page_of(accelerated)["programs"]
        page = stored.page([inspect.show("step")])
        check(page)
        (made,) = page["programs"]
        assert page["title"] == "step"
        assert made["signature"] == running["signature"]
        assert [{**op, "output": ""} for op in made["ops"]] == [{**op, "output": ""} for op in running["ops"]]
        assert (made["repeats"], made["arena"]) == (running["repeats"], running["arena"])
        assert [
            (launch["note"], launch["bytes"], launch["flops"], launch["apart"]) for launch in made["launches"]
        ] == [
            (launch["note"], launch["bytes"], launch["flops"], launch["apart"])
            for launch in running["launches"]
        ]
        assert (made["guards"], page["keys"], page["history"]) == (None, None, [])
        assert made["timing"][0].startswith("Not measured: a program in the cache is not run.")

    def test_arguments_that_differ_come_first(self) -> None:
        stepped()
        stepped(rows=6)
        page = stored.page([inspect.show(each.key) for each in inspect.listing("step")])
        assert [each["title"].partition(" ")[2] for each in page["programs"]] == [
            "x: 6(B) x 3(C) float32, w: 3x2 float32", "x: 5(B) x 3(C) float32, w: 3x2 float32",
        ]  # fmt: skip

    def test_a_note_says_what_is_left_out(self) -> None:
        accelerated = dlaccelerate(long)
        for _ in range(3):
            accelerated(np.ones((3, 3), np.float32))
        page = stored.page([inspect.show("long")])
        check(page)
        (note,) = page["notes"]
        assert "the cache has its first rows and the first row of each kernel; left out are" in note
        whole = len(accelerated._cache.last_trace.replay.program.rows)
        (made,) = page["programs"]
        assert made["kept"] == f"the first {len(made['launches'])} of {whole} launches"
        assert live.page(accelerated._running())["programs"][0]["kept"] == ""

    def test_invalid_descriptions(self) -> None:
        stepped()
        shown = inspect.show("step")
        changes: list[tuple[str, Any]] = [
            ("rows", None), ("rows", [{}]), ("ops", [{"number": 0}]), ("kernels", []), ("arena_bytes", float("nan")),
            ("memory", [{"kind": "arena"}]), ("signature", [["x"]]), ("left_out", None), ("inputs", 3),
        ]  # fmt: skip
        for name, value in changes:
            other = inspect.Shown("f" * 64, {**shown.program, name: value}, shown.kernels)
            with pytest.raises(CacheError) as raised:
                stored.page([other])
            text = "he description of the program ffffffffffff is not in tracejit's format"
            assert str(raised.value) == f"t{text}"
            page = stored.page([shown, other])
            check(page)
            assert page["notes"] == [f"T{text}; it is left out."]
            assert len(page["programs"]) == 1

    def test_incomplete_rows(self) -> None:
        def row(number: int, part: int, place: int) -> dict[str, Any]:
            return {"number": number, "kernel": 0, "operations": "add", "part": [part, 2, place]}

        # Two launches in two parts each, of the next two the second one, of the last ones the second part.
        numbers = [(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1), (5, 0, 1), (7, 1, 1), (11, 1, 1), (12, 0, 0)]
        found = stored._rows([row(*each) for each in numbers], ["k"])
        assert [(each.part, each.place) for each in found] == [
            (0, 0), (0, 1), (1, 0), (1, 1), (0, 0), (0, 0), (0, 0), (0, 0),
        ]  # fmt: skip

    def test_kernels_that_were_removed(self) -> None:
        stepped()
        shown = inspect.show("step")
        page = stored.page([inspect.Shown(shown.key, shown.program, {})])
        check(page)
        assert page["programs"][0]["emitted"][0].endswith(": not on disk any more")

    def test_the_command(self, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        stepped()
        stepped(rows=6)
        out = tmp_path / "page.html"
        assert cli.main(["view", "step", "--out", str(out)]) == 0
        said = f"step ({FILE}:{LINE})"
        assert capsys.readouterr() == (f"{out}\n", f"tracejit view: {said}, 2 programs\n")
        page = json.loads(
            next(text for tag, of, text in Parts(out.read_text()).texts if of.get("id") == "data")
        )
        assert len(page["programs"]) == 2
        key = inspect.listing("step")[0].key
        monkeypatch.chdir(tmp_path)
        assert cli.main(["view", key[:12], "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {
            "schema": 1, "command": "view", "result": {"file": "tracejit-cache-step.html", "keys": [key]},
            "note": f"{said}, 1 program",
        }  # fmt: skip
        assert Path(
            "tracejit-cache-step.html"
        ).exists()  # view() of the function itself writes tracejit-step.html

    def test_functions_of_different_files_are_not_mixed(
        self, tmp_path: Path, capsys: Any, folder: Path
    ) -> None:
        stepped()
        (mine,) = inspect.listing("step")
        other = inspect.show("step").program | {"defined": ["/home/me/train.py", 7]}
        Programs(str(folder)).keep(other, {"at": 1.0})
        (theirs,) = inspect.listing("step", file="train.py")
        out = tmp_path / "page.html"
        assert cli.main(["view", "step", "--out", str(out)]) == 1
        printed, said = capsys.readouterr()
        first, *lines = said.splitlines()
        assert first == "tracejit view: 'step' is in several files; choose one with --file, or give a key:"
        assert sorted(lines) == sorted([
            f"  step ({FILE}:{LINE}): {mine.key[:12]}", f"  step (/home/me/train.py:7): {theirs.key[:12]}",
        ])  # fmt: skip
        assert printed == "" and not out.exists()
        assert cli.main(["view", "step", "--file", "train.py", "--out", str(out)]) == 0
        assert capsys.readouterr().err == "tracejit view: step (/home/me/train.py:7), 1 program\n"
        assert cli.main(["view", "step", "--file", "x.py", "--out", str(out)]) == 1
        assert "no program in a file that matches 'x.py' has the key" in capsys.readouterr().err

    def test_the_command_fails(self, tmp_path: Path, capsys: Any) -> None:
        assert cli.main(["view", "nobody"]) == 1
        assert capsys.readouterr() == (
            "",
            "tracejit view: no program has the key or the function 'nobody'; `tracejit cache list` shows all\n",
        )
        stepped()
        assert cli.main(["view", "step", "--out", str(tmp_path)]) == 1
        assert capsys.readouterr() == ("", f"tracejit view: cannot write to {tmp_path}: Is a directory\n")

    def test_more_programs_than_fit(self, tmp_path: Path, capsys: Any) -> None:
        accelerated = dlaccelerate(tanh)
        for size in range(1, 15):
            for _ in range(3):
                accelerated(np.ones(size, np.float32))
        assert cli.main(["view", "tanh", "--out", str(tmp_path / "page.html")]) == 0
        assert re.fullmatch(
            r"tracejit view: tanh \(.*\.py:\d+\), 12 programs; 2 older programs left out\n",
            capsys.readouterr().err,
        )


def long(x: dlarray) -> dlarray:
    for _ in range(250):
        x = tanh(x @ x)
    return x


def scaled(p: dlarray, q: dlarray, factor: float) -> dlarray:
    p *= factor
    q[1:] += p[1:]
    return p.sum()


def test_arguments_that_are_written(folder: Path) -> None:
    accelerated = dlaccelerate(scaled)
    for _ in range(3):
        accelerated(np.ones(4), np.ones(4), 2.0)
    page = page_of(accelerated)
    check(page)
    (program,) = page["programs"]
    assert ("writes", "p, q") in program["facts"]
    assert all(launch["ns"] >= 0 for launch in program["launches"])  # type: ignore[operator]
    shown = inspect.show("scaled")
    assert shown.program["written"] == [0, 1]
    assert ("writes", "p, q") in stored.page([shown])["programs"][0]["facts"]
    lines = ProgramText(shown.key, shown.program, shown.kernels).head()
    assert lines.count("input     4 float64, written") == 2 and "input     4 float64" not in lines
