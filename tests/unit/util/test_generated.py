# SPDX-License-Identifier: BSD-3-Clause
"""Functions from generated text: names and files of their own, also where they share code."""

import traceback

import pytest

from tracejit.util import generated

TEXT = "def divide(x):\n    return x / by\n"


def test_functions_of_one_text_have_names_of_their_own():
    names = {"by": 4}
    first, second = generated.function(TEXT, "<a>", names), generated.function(TEXT, "<b>", {"by": 2})
    assert (first(8), second(8)) == (2, 4)
    names["by"] = 8
    assert (first(8), second(8)) == (1, 4)
    assert first.__name__ == "divide"


@pytest.mark.parametrize("comment", ["", "    # long\n" * 10_000])
def test_a_traceback_names_the_file_and_the_line(comment):
    text = f"{TEXT.splitlines(True)[0]}{comment}    return x / by\n"
    for file in ("<one>", "<other>"):
        with pytest.raises(ZeroDivisionError) as caught:
            generated.function(text, file, {"by": 0})(1)
        last = traceback.extract_tb(caught.value.__traceback__)[-1]
        assert (last.filename, last.lineno) == (file, text.count("\n"))
