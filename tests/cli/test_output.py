"""Law: remembered text cannot steer a terminal, and a document is the same document in every locale."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterwatch.cli import output


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\x1b]0;title\x07b", "a\\x1b]0;title\\x07b"),
        ("a\x9b31mb", "a\\x9b31mb"),
        ("over\rwritten", "over\\x0dwritten"),
        ("back\x08\x7f", "back\\x08\\x7f"),
        ("right\u202eto left\u2066", "right\\u202eto left\\u2066"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("half \ud800", "half \\ud800"),
        ("two\nlines\tand 日本", "two\nlines\tand 日本"),
    ],
)
def test_controls_are_shown_not_obeyed(text: str, shown: str) -> None:
    assert output.clean(text) == shown


def test_a_cell_is_one_line() -> None:
    assert output.clean("a\nb\tc", one_line=True) == "a b c"


@given(st.text(st.characters(exclude_categories=())))
def test_no_control_passes(text: str) -> None:
    shown = output.clean(text)
    assert not {letter for letter in shown if ord(letter) < 32 or 127 <= ord(letter) < 160} - {"\n", "\t"}
    shown.encode("utf-8")


@pytest.mark.parametrize("value", ["plain", "日本 é", "\ud800", "\x1b[2J\x9b\u202e", "\U000e0041"])
def test_a_document_carries_any_text(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"b": value, "a": [1]})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"b": value, "a": [1]}
    assert printed.index('"b"') < printed.index('"a"')
    assert not {"\x1b", "\x9b", "\u202e"} & set(printed)


def test_a_table_is_aligned_and_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["name", "value"], [("日本", 1), ("x" * 200, "[bold]\x1b[1m")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name" + " " * 198 + "value"
    assert lines[1] == "日本" + " " * 198 + "1"
    assert lines[2] == "x" * 200 + "  [bold]\\x1b[1m"


def test_a_table_without_rows_has_its_head(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["a", "b"], [])
    assert capsys.readouterr().out == "a  b\n"
