"""Law: a gate is fitted on two thirds of the shipped pairs and judged on the third that it never saw."""

import json
from pathlib import Path

import pytest

from afterwatch.memory import Memory, gates
from afterwatch.memory.calibrate import LANGUAGES, LENGTHS, WANTED, fit, groups, measure, observe, pairs, run
from afterwatch.memory.embedders import Loading
from afterwatch.memory.gate import CAUTIOUS, GATES, Gate, gate_for
from afterwatch.memory.words import TOKENIZER_VERSION
from tests.memory.support import AGENT, Letters, ticking


def test_the_pairs_are_many_of_every_kind_and_split_the_same_way_for_good() -> None:
    found = pairs()
    assert len(found) >= 400
    assert len({(pair.question, pair.note) for pair in found}) == len(found)
    held = [pair for pair in found if pair.held]
    assert 0.25 < len(held) / len(found) < 0.42
    assert not {pair.question for pair in held} & {pair.question for pair in found if not pair.held}
    for language in LANGUAGES:
        for length in LENGTHS:
            part = [pair for pair in found if (pair.language, pair.length) == (language, length)]
            assert len(part) >= 90
            assert 0 < sum(pair.held for pair in part) < len(part)
            notes = [len(pair.note) for pair in part]
            assert (min(notes) > 100) is (length == "long")
    assert sum(pair.held for pair in found) == 188, "the split may only change with the pairs"


def test_the_bundled_embedder_reaches_what_is_wanted(bundled: Loading) -> None:
    model = bundled.wait()
    assert model is not None
    steps: list[tuple[int, int]] = []
    gate, report = run(model, gate_for(model.id), lambda done, total: steps.append((done, total)))
    assert steps[-1][0] == steps[-1][1] == 288
    for name in ("in_force", "fitted"):
        for row in report[name]["figures"]:
            assert row["f1"] >= WANTED[row["language"]], (name, row)
            assert row["good"]
    assert report["fitted"]["gate"]["cosine"] == gate.cosine
    assert (report["pairs"], report["held_back"]) == (576, 188)


def test_fitting_never_sees_what_is_held_back() -> None:
    judged = observe(None)
    visible = [one for one in judged if not one.pair.held]
    assert fit(judged, CAUTIOUS, vectors=False) == fit(visible, CAUTIOUS, vectors=False)
    assert sum(len(part) for part in groups(judged, held=True).values()) == 188


def test_without_vectors_only_the_share_is_fitted() -> None:
    gate, report = run(None, gate_for(None))
    assert gate.cosine is None
    assert report["embedder"] is None
    assert all(row["precision"] >= 0.9 for row in report["fitted"]["figures"])


def test_a_poor_embedder_is_told_apart() -> None:
    """Letters know no meaning: the gate must then rely on words, and the figures say how far that goes."""
    judged = observe(Letters())
    gate = fit(judged, CAUTIOUS, vectors=True)
    loose = Gate(0.25, gate.share, gate.generic, gate.keep_up)
    held = [one for part in groups(judged, held=True).values() for one in part]
    assert measure(held, gate).f1 > measure(held, loose).f1


# -- what was fitted is kept ----------------------------------------------------------------------------------------


def test_a_kept_gate_is_the_one_in_force(tmp_path: Path) -> None:
    assert gates.origin_of("letters-1", gates.fitted(tmp_path)) == "cautious"
    gate = Gate(0.6, 0.35, 0.6, 0.5)
    gates.keep(tmp_path, "letters-1", gate)
    gates.keep(tmp_path, None, Gate(None, 0.2, 0.6, 0.7))
    kept = gates.fitted(tmp_path)
    assert gates.gate_of("letters-1", kept) == gate
    assert gates.origin_of("letters-1", kept) == "calibrated"
    assert gates.gate_of(None, kept).share == 0.2
    assert gates.gate_of("use-multilingual-3", kept) == GATES["use-multilingual-3", TOKENIZER_VERSION]


@pytest.mark.parametrize(
    "entry", [[0.5], [2, 0.3, 0.6, 0.5], [0.5, 0, 0.6, 0.5], ["a", 0.3, 0.6, 0.5], None, [0.5, True, 0.6, 0.5], {}]
)
def test_damaged_entries_are_left_out(tmp_path: Path, entry: object) -> None:
    good = [0.5, 0.3, 0.6, 0.5]
    content = {str(TOKENIZER_VERSION): {"bad": entry, "good": good}, "0": {"older": good}}
    (tmp_path / gates.FILE).write_text(json.dumps(content))
    assert dict(gates.fitted(tmp_path)) == {"good": Gate(0.5, 0.3, 0.6, 0.5)}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"1": 5}', "[" * 100_000])
def test_a_damaged_file_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / gates.FILE).write_text(text)
    assert gates.fitted(tmp_path) == {}


def test_recall_obeys_it(home: Path) -> None:
    question = "is the quagga stable open, and who has told the okapi keeper about it?"
    with Memory.open(home, clock=ticking(), embedder=Loading.done(None)) as memory:
        memory.add(AGENT, "The quagga stable opens on Mondays")
        memory.add(AGENT, "A cat sleeps on the warm server")
        assert memory.relevant(AGENT, question).hits
    gates.keep(home, None, Gate(None, 1.0, 0.6, 0.7))
    with Memory.open(home, clock=ticking(), embedder=Loading.done(None)) as memory:
        assert not memory.relevant(AGENT, question).hits
