"""Law: figures are reproducible, say under what conditions they hold, and are compared only under equal ones."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from afterwatch.bench.scale import run
from afterwatch.cli.bench import START, numbers
from afterwatch.errors import UserError
from tests.conftest import Run


def conversation(number: int) -> dict[str, Any]:
    """One conversation in the form of LoCoMo."""
    said = [
        ("Ann", f"I moved to Lisbon in {2000 + number}."),
        ("Bob", "My dog is called Rex."),
        ("Ann", "I play the cello on Sundays."),
    ]
    turns = [{"speaker": who, "dia_id": f"D1:{at}", "text": text} for at, (who, text) in enumerate(said, 1)]
    asked = [("Where did Ann move?", "D1:1"), ("What is the dog called?", "D1:2")]
    return {
        "conversation": {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"},
        "qa": [{"question": text, "evidence": [place], "category": 1} for text, place in asked],
    }


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([conversation(number) for number in range(3)]), "utf-8")
    return str(path)


def bench(afterwatch: Run, *args: str, status: int = 0) -> dict[str, Any]:
    code, out, err = afterwatch("bench", *args, "--json")
    assert (code, err) == (status, ""), out + err
    found: dict[str, Any] = json.loads(out)
    return found


def test_retrieval_measures_the_conversations_that_were_chosen(afterwatch: Run, corpus: str) -> None:
    found = bench(afterwatch, "retrieval", corpus, "--no-vectors", "--conversations", "2-3", "--timeline", "anchored")
    assert (found["n"], found["embedder"]) == (4, "none")
    assert found["options"]["conversations"] == [2, 3]
    assert found["options"]["timeline"] == "anchored"
    assert bench(afterwatch, "retrieval", corpus, "--no-vectors", "--conversations", "9", status=2)["error"]["remedy"]
    assert bench(afterwatch, "retrieval", corpus, "--timeline", "never", status=2)["error"]["remedy"]


def test_two_reports_are_compared_only_under_equal_conditions(afterwatch: Run, corpus: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(json.dumps(bench(afterwatch, "retrieval", corpus, "--no-vectors")), "utf-8")
    same = bench(afterwatch, "retrieval", corpus, "--no-vectors", "--compare", str(report))
    assert same["difference"]["n"] == 0
    out = afterwatch("bench", "retrieval", corpus, "--no-vectors", "--compare", str(report)).stdout
    assert out.splitlines()[0].split() == ["figure", "value", "difference"]
    other = ("retrieval", corpus, "--no-vectors", "--timeline", "anchored", "--compare", str(report))
    assert "options" in bench(afterwatch, *other, status=2)["error"]["message"]
    report.write_text("no report", "utf-8")
    assert bench(afterwatch, *other, status=2)["error"]["remedy"]


def test_sameness_merges_nothing_that_differs(afterwatch: Run) -> None:
    found = bench(afterwatch, "sameness", "--no-vectors")
    assert (found["benchmark"], found["wrong_merges"]) == ("sameness", 0)
    assert "wrong_merges" in afterwatch("bench", "sameness", "--no-vectors").stdout


def test_what_cannot_be_read_is_named(afterwatch: Run, tmp_path: Path) -> None:
    assert bench(afterwatch, "retrieval", str(tmp_path / "none.json"), status=2)["error"]["remedy"]
    assert bench(afterwatch, "precision", str(tmp_path), status=2)["error"]["remedy"]
    (tmp_path / "id_rsa").write_text("x")
    assert bench(afterwatch, "retrieval", str(tmp_path / "id_rsa"), status=2)["error"]["code"] == "sensitive_path"
    assert bench(afterwatch, "scale", "--items", "5", status=2)["error"]["remedy"]


def test_numbers_of_conversations() -> None:
    assert numbers("") == ()
    assert numbers("6-10") == (6, 7, 8, 9, 10)
    assert numbers("1, 3,5-6,5") == (1, 3, 5, 6)
    for bad in ("x", "1-", "-3", "1-2-3", "1;2", "1-99999999"):
        with pytest.raises(UserError):
            numbers(bad)


def test_the_help_loads_no_benchmark(afterwatch: Run) -> None:
    probe = (
        "import sys; from afterwatch.cli import main; main(['bench', 'scale', '--help'])\n"
        "heavy = {'numpy', 'afterwatch.bench'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.soak
def test_a_cold_search_among_ten_thousand_items_takes_at_most_a_second_and_a_half() -> None:
    found = run(10_000, START)
    assert found["cold_search_s"] <= 1.5
