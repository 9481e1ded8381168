"""A server of embeddings for tests: answers like OpenAI's interface, with vectors of `Letters`."""

import json
from collections.abc import Callable
from typing import Any

from tests.memory.support import Letters
from tests.net.server import Answer, Call


def embeddings(model: Letters | None = None, shape: Callable[[Any], Any] = lambda answer: answer) -> Answer:
    """Answers with vectors, five times as long as they should be; `shape` spoils the document."""
    letters = model or Letters()

    def answer(call: Call) -> None:
        texts = json.loads(call.body)["input"]
        rows = [
            {"index": at, "object": "embedding", "embedding": [round(5 * float(value), 6) for value in vector]}
            for at, vector in enumerate(letters.encode(texts))
        ]
        call.reply(200, json.dumps(shape({"object": "list", "data": rows[::-1], "model": "letters"})).encode())

    return answer
