"""Law: the figures are those of the rules written in the module, on answers that came through the product's calls."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from afterwatch.bench.precision import FILES, Case, Slots, checks, expected_of, read, run
from afterwatch.errors import UserError


def belief(name: str, content: str, **more: Any) -> dict[str, Any]:
    return {
        "_id": f"x-{name}",
        "user_id": "test-user",
        "type": "entity",
        "canonical_name": name,
        "aliases": [],
        "content": content,
        "why_it_matters": "zebra",
        "scope": ["domain:shop"],
        "epistemic_status": "active",
        "confidence": 0.9,
        "pinned": False,
        "resolved_at": None,
        "superseded_by": None,
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-02-01T00:00:00Z",
        **more,
    }


BELIEFS = [
    belief("postgres", "Orders are kept in one cluster.", aliases=["pg"], participants=["x-bucket"], type="relation"),
    belief("mysql", "Orders were kept there before.", epistemic_status="superseded", superseded_by="x-postgres"),
    belief("bucket", "Photographs lie in Frankfurt."),
    belief("invoicing", "Letters go out on Mondays.", pinned=True, created_at="2026-01-02T00:00:00Z"),
    belief("parcels", "Which carrier takes them? Undecided.", type="open_question", pinned=True),
    belief("stamps", "Frank by hand?", type="open_question", pinned=True, resolved_at="2026-01-05T00:00:00Z"),
    belief("tone", "Answers should be terse.", scope=["user:universal"], type="preference"),
    belief("ferry", "Sails at noon.", scope=["domain:travel"]),
    belief("submarine", "Dives at dusk.", user_id="another-user"),
]
CASES: list[dict[str, Any]] = [
    {"query": "postgres?", "category": "right", "expect": {"relevantBeliefs": {"shouldOnlyInclude": ["x-postgres"]}}},
    {"query": "bucket?", "category": "wrong", "expect": {"relevantBeliefs": {"shouldOnlyInclude": []}}},
    {"query": "unicorn?", "category": "wrong", "expect": {"relevantBeliefs": {"mustInclude": ["x-bucket"]}}},
    {"query": "mysql", "category": "former", "expect": {"relevantBeliefs": {"shouldOnlyInclude": []}}},
    {
        "query": "submarine ferry",
        "category": "elsewhere",
        "expect": {"relevantBeliefs": {"mustExclude": ["x-submarine", "x-ferry"], "shouldOnlyInclude": []}},
    },
    {
        "query": "invoicing parcels stamps tone zebra",
        "category": "slots",
        "expect": {
            "relevantBeliefs": {"shouldOnlyInclude": []},
            "pinnedFacts": {"mustInclude": ["x-invoicing"], "mustExclude": ["x-parcels", "x-tone"]},
            "openQuestions": {"mustInclude": ["x-parcels"], "mustExclude": ["x-stamps"]},
            "personaPrelude": {"nonEmpty": True, "contains": ["terse"], "mustNotContain": ["Frankfurt"]},
        },
    },
    {
        "query": "bucket",
        "category": "budget",
        "budget": {"maxBeliefs": 1},
        "expect": {"pinnedFacts": {"mustInclude": ["x-invoicing"]}, "relevantBeliefs": {"shouldOnlyInclude": []}},
    },
    {
        "query": "bucket",
        "category": "stranger",
        "userId": "nobody",
        "expect": {"personaPrelude": {"isNull": True}, "relevantBeliefs": {"shouldOnlyInclude": []}},
    },
]
SESSIONS = [
    {
        "caseId": "s",
        "turns": [
            {
                "userMessage": "kiosk",
                "expect": {"relevantBeliefs": {"shouldOnlyInclude": []}},
                "createBeliefAtTurn": belief("kiosk", "Opens at nine."),
                "updateBeliefAtTurn": {"beliefId": "x-bucket", "addAliases": ["blobstore"]},
            },
            {"userMessage": "kiosk", "expect": {"relevantBeliefs": {"shouldOnlyInclude": ["x-kiosk"]}}},
            {
                "userMessage": "blobstore",
                "expect": {
                    "relevantBeliefs": {"shouldOnlyInclude": ["x-bucket"]},
                    "noiseCheck": {"mustNotSurface": ["x-kiosk"]},
                },
            },
        ],
    }
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    cases = [{"caseId": f"c{n}", "scope": ["domain:shop"], **case} for n, case in enumerate(CASES)]
    for session in SESSIONS:
        for number, turn in enumerate(session["turns"]):
            turn.update(turnIndex=number, scope=["domain:shop"])  # type: ignore[attr-defined]
    for name, content in zip(FILES, (BELIEFS, cases, SESSIONS), strict=True):
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    return tmp_path


def test_the_figures(folder: Path) -> None:
    done: list[tuple[int, int]] = []
    found = run(folder, None, lambda now, all_of_them: done.append((now, all_of_them)))
    assert done[-1] == (11, 11)
    # defined: c0 1, c1 0, c2 0, s#1 1, s#2 1; the other six are empty on both sides
    assert (found["n"], found["precision"], found["slot_precision"]) == (11, 0.6, round(9 / 11, 4))
    assert found["recall"] == 0.75  # of c0, c2 (missed), s#1 and s#2
    assert found["passed"] == 9
    assert found["embedder"] == "none"
    assert found["by_category"]["wrong"] == {"precision": 0.0, "recall": 0.0, "n": 2}
    assert found["by_category"]["former"] == {"precision": 1.0, "recall": 1.0, "n": 1}
    assert [failure["case"] for failure in found["failures"]] == ["c1", "c2"]
    assert found["failures"][0]["returned"] == ["x-bucket"]
    assert found["failures"][1] == {
        "case": "c2",
        "expected": ["x-bucket"],
        "returned": [],
        "broken": ["relevant: missing x-bucket"],
    }


def test_participants_are_a_figure_of_their_own(folder: Path) -> None:
    found = run(folder, None)
    # c0 returns x-postgres, whose participant x-bucket was not expected
    assert found["with_participants"] == {"precision": 0.5, "recall": 0.75, "n": 11}


def test_two_runs_are_equal(folder: Path) -> None:
    assert run(folder, None) == run(folder, None)


@pytest.mark.parametrize("content", ["", "[1]", '[{"caseId": "a"}]', '{"a": 1}'])
def test_another_format_is_refused(folder: Path, content: str) -> None:
    (folder / FILES[1]).write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match="no PrecisionMemBench"):
        read(folder)


@pytest.mark.parametrize("content", ["[]", "[1]", "[{}]", '[{"_id": "a"}]'])
def test_beliefs_of_another_format_are_refused(folder: Path, content: str) -> None:
    (folder / FILES[0]).write_text(content, encoding="utf-8")
    with pytest.raises(UserError):
        read(folder)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        run(tmp_path, None)


def case(expect: Mapping[str, Any]) -> Case:
    return Case("c", "k", "u", ("domain:shop",), "q", {"maxBeliefs": 9}, expect)


def test_pinned_beliefs_are_not_expected_in_the_relevant_slot() -> None:
    wanted = case({"relevantBeliefs": {"mustInclude": ["a", "b"]}})
    assert expected_of(wanted, {"b"}) == {"a"}
    assert expected_of(case({}), set()) == set()


@pytest.mark.parametrize(
    ("expect", "broken"),
    [
        ({"relevantBeliefs": {"mustInclude": ["p"], "mustExclude": ["r"]}}, ["relevant: forbidden r"]),
        ({"relevantBeliefs": {"shouldInclude": ["z"]}}, ["relevant: missing z"]),
        ({"relevantBeliefs": {"shouldOnlyInclude": ["r", "z"]}}, ["relevant: unexpected s", "relevant: missing z"]),
        ({"relevantBeliefs": {"maxCount": 1}}, ["relevant: more than 1"]),
        ({"relevantBeliefs": {"minCount": 3}}, ["relevant: fewer than 3"]),
        ({"relevantBeliefs": {"orderedBefore": [["r", "s"]]}}, []),
        ({"relevantBeliefs": {"orderedBefore": [["s", "r"]]}}, ["relevant: s not before r"]),
        ({"relevantBeliefs": {"orderedBefore": [["r", "z"]]}}, ["relevant: r not before z"]),
        ({"noiseCheck": {"mustNotSurface": ["p", "z"]}}, ["relevant: noise p"]),
        ({"pinnedFacts": {"mustInclude": ["r"]}}, ["pinned: missing r"]),
        ({"openQuestions": {"mustExclude": ["q"]}}, ["questions: forbidden q"]),
        ({"personaPrelude": {"isNull": True}}, ["persona: not empty"]),
        ({"personaPrelude": {"contains": ["loud"]}}, ["persona: without 'loud'"]),
        ({"personaPrelude": {"mustNotContain": ["quiet"]}}, ["persona: with 'quiet'"]),
    ],
)
def test_each_check_can_fail(expect: Mapping[str, Any], broken: list[str]) -> None:
    assert list(checks(case(expect), Slots(["p"], ["r", "s"], ["q"], "quiet"))) == broken
