"""A process of its own that writes and reads memory, for the tests of processes. Prints what was acknowledged.

`python -m tests.memory.worker HOME NAME COUNT [mixed|vectors]`: a line `id word` after each write returned.
"""

import sys
from pathlib import Path

from afterwatch.memory import Draft, Memory
from afterwatch.memory.embedders import Loading
from tests.memory.support import AGENT, Letters, ids, word


def main(home: Path, number: int, count: int, mode: str) -> None:
    embedder = Loading.done(Letters() if mode == "vectors" else None)
    with Memory.open(home, embedder=embedder) as memory:
        for at in range(count):
            own = word(number * 5000 + at)
            text = f"Note {own} by writer {number} stays in the runbook"
            draft = Draft(text, conversation=f"shift {number}", position=at)
            if at % 5 == 4:
                draft = Draft(subject=f"pref.writer_{number}", value=f"{own} screen")
            outcome = memory.add_many(AGENT, [draft])[0]
            print(outcome.id, own, flush=True)  # noqa: T201
            if mode == "mixed":
                hits = ids(memory, own)
                assert hits[:1] == [outcome.id], f"{own}: {outcome.id} is not the first of {hits}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
