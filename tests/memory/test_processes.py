"""Law: whatever was acknowledged is there, whoever else writes and whenever a process dies; nothing is half there."""

import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from afterwatch.memory import Memory
from afterwatch.memory.embedders import Loading
from afterwatch.memory.index import Stemmer
from tests.memory.support import AGENT, Letters, connect, everything, ids, index_problems, item_problems, keywords_only
from tests.memory.support import word as word_of

ROOT = Path(__file__).parents[2]


def start(home: Path, number: int, count: int, mode: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", "tests.memory.worker", str(home), str(number), str(count), mode]
    # one thread of BLAS: the writers are eight already
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    )


def acknowledged(lines: str) -> dict[str, str]:
    """id → word; a line that the kill cut off was not acknowledged."""
    whole = [line.split() for line in lines.splitlines(keepends=True) if line.endswith("\n")]
    found = {line[0]: line[1] for line in whole}
    assert len(found) == len(whole), "an id was given out twice"
    return found


def whole(home: Path, memory: Memory) -> None:
    assert memory.problems(AGENT) == {"local": []}
    assert item_problems(home) == []
    assert index_problems(home, memory) == []


def is_found(memory: Memory, own: str, item: str) -> bool:
    """Whether an item is found by its own word; turns around it, and near vectors, may stand before it."""
    return item in ids(memory, own, limit=1000)


def vectors_agree(home: Path) -> None:
    with closing(connect(home)) as connection:
        rows = "SELECT count(*), (SELECT count(*) FROM vectors) FROM items"
        items, vectors = connection.execute(rows).fetchone()
    assert items == vectors


# --- many at once -----------------------------------------------------------------------------------


def run_together(home: Path, processes: int, count: int) -> dict[str, str]:
    started = [start(home, number, count, "mixed") for number in range(processes)]
    done = [process.communicate(timeout=3000) for process in started]
    assert [process.returncode for process in started] == [0] * processes, [errors for _, errors in done]
    assert not [errors for _, errors in done if errors]
    found = acknowledged("".join(lines for lines, _ in done))
    assert len(found) == processes * count
    return found


def check_together(home: Path, processes: int, count: int) -> None:
    found = run_together(home, processes, count)
    with keywords_only(home) as memory:
        items = everything(memory)
        assert items.keys() == found.keys(), "lost or doubled"
        for item, own in found.items():
            assert own in items[item].text
            assert is_found(memory, own, item) is (items[item].status == "active")
        assert sum(item.subject is not None and item.status == "active" for item in items.values()) == processes
        whole(home, memory)


def test_eight_processes_write_and_read(home: Path) -> None:
    check_together(home, 8, 60)


@pytest.mark.soak
def test_eight_processes_write_and_read_for_long(home: Path) -> None:
    check_together(home, 8, 500)


def test_threads_of_one_memory_write_and_read(home: Path) -> None:
    """One object, four threads: texts, stems and vectors of one never get mixed with those of another."""
    found: dict[str, str] = {}

    def work(number: int) -> None:
        for at in range(25):
            own = word_of(number * 100 + at)
            outcome = memory.add(AGENT, f"Writer {number} noted {own}ing and running nodes")
            found[outcome.id or ""] = own
            assert outcome.id in ids(memory, f"{own}ed")

    with Memory.open(home, embedder=Loading.done(Letters())) as memory, ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
        assert len(found) == 100
        for item, own in found.items():
            assert item in ids(memory, f"{own}s")
        whole(home, memory)
        vectors_agree(home)


def test_threads_that_share_a_stemmer_learn_the_right_stems() -> None:
    """It asks SQLite through one scratch table: two threads in it at once would learn each other's words."""
    endings = ("ing", "ed", "s", "fulness", "ational")
    batches = [[f"{word_of(at * 5 + more)}{ending}" for more, ending in enumerate(endings)] for at in range(400)]
    alone, shared = Stemmer(), Stemmer()
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(shared, batches))
    assert found == [alone(batch) for batch in batches]


# --- killed -----------------------------------------------------------------------------------------


def kill_at_a_random_point(home: Path, number: int, chance: random.Random) -> str:
    """What a writer acknowledged before it was killed, somewhere inside a later write."""
    process = start(home, number, 5000, "vectors")
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(chance.randrange(1, 12))]
    sum(range(chance.randrange(1, 120_000)))
    process.kill()
    rest, errors = process.communicate()
    assert not errors
    return "".join(lines) + rest


def check_kills(home: Path, kills: int) -> None:
    chance = random.Random(20240301)
    found: dict[str, str] = {}
    for number in range(kills):
        fresh = acknowledged(kill_at_a_random_point(home, number, chance))
        assert not fresh.keys() & found.keys(), "an id was given out twice"
        found |= fresh
        with Memory.open(home, embedder=Loading.done(Letters())) as memory:
            items = everything(memory)
            assert found.keys() <= items.keys(), "an acknowledged write is lost"
            for item, own in fresh.items():
                assert is_found(memory, own, item) is (items[item].status == "active")
            whole(home, memory)
            vectors_agree(home)


def test_killed_writers_leave_nothing_half(home: Path) -> None:
    check_kills(home, 12)


@pytest.mark.soak
def test_two_hundred_killed_writers_leave_nothing_half(home: Path) -> None:
    check_kills(home, 200)
