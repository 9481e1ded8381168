"""The `endpoint` embedder: any server that speaks OpenAI's embeddings interface, through the guarded client.

Text leaves this process: it is redacted first, and only the server of `memory.endpoint_url` gets it. Nothing is asked
unless a user chose this embedder. When the server fails, search goes on by keywords and says so.
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from afterwatch.errors import Unavailable, UserError
from afterwatch.memory.embedders import clean
from afterwatch.memory.settings import MemorySettings

if TYPE_CHECKING:
    from afterwatch.net.client import Client

BATCH = 64
MOST_DIMENSIONS = 8192
PROBE = "The payments queue is drained by hand on Fridays."
"""Asked once at the start, to learn how many dimensions the model has."""


class Endpoint:
    """Vectors of a server; 64 texts a request.

    `encode` raises Unavailable when the server fails, and nothing else.
    """

    def __init__(self, client: "Client", host: str, model: str) -> None:
        """Ask for one vector.

        Raises:
            Unavailable, UserError: as the client; the answer holds no vector.
        """
        self._client = client
        self._model = model
        self.dimensions = 0
        self.dimensions = len(self._ask([PROBE])[0])
        self.id = f"endpoint:{host}/{model}@{self.dimensions}"

    @classmethod
    def chosen(cls, settings: MemorySettings) -> "Endpoint":
        """The one that the settings name.

        Raises:
            UserError: address or model are not set, or the variable of the key is empty.
            Unavailable: the server does not answer as it should.
        """
        from afterwatch.net.client import Client
        from afterwatch.net.settings import net_settings

        if not settings.endpoint_url or not settings.endpoint_model:
            raise UserError(
                "the embedder endpoint needs an address and a model",
                remedy="afterwatch memory embedder set endpoint --url https://host/v1 --model NAME",
                code="no_endpoint",
            )
        client = Client(settings.endpoint_url, net_settings(), key=_key(settings.endpoint_key))
        return cls(client, client.server.partition("://")[2], settings.endpoint_model)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of float32, shape (number of texts, `dimensions`).

        Raises:
            Unavailable: the server failed, or answered with something else.
        """
        out = np.empty((len(texts), self.dimensions), np.float32)
        for start in range(0, len(texts), BATCH):
            out[start : start + BATCH] = self._ask([clean(text) for text in texts[start : start + BATCH]])
        return out

    def _ask(self, texts: list[str]) -> NDArray[np.float32]:
        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        return self._read(self._client.post_json("/embeddings", body), len(texts))

    def _read(self, answer: Any, count: int) -> NDArray[np.float32]:
        """The vectors of an answer in the order asked, at length one."""
        try:
            rows = {int(row["index"]): row["embedding"] for row in answer["data"]}
            found = np.array([rows[at] for at in range(count)], np.float64)
        except (TypeError, KeyError, ValueError, AttributeError, OverflowError) as error:
            raise _odd("no list of vectors") from error
        if len(rows) != count or found.ndim != 2 or not 0 < found.shape[1] <= MOST_DIMENSIONS:
            raise _odd("vectors of an odd shape")
        if self.dimensions and found.shape[1] != self.dimensions:
            raise _odd(f"{found.shape[1]} dimensions instead of {self.dimensions}")
        norms = np.sqrt(np.einsum("ij,ij->i", found, found))
        if not np.isfinite(norms).all() or (norms == 0).any():
            raise _odd("vectors that are no numbers, or zero")
        return np.asarray(found / norms[:, None], np.float32)


def _odd(what: str) -> Unavailable:
    return Unavailable(
        f"the embeddings server answered with {what}", remedy="check memory.endpoint_model", code="bad_vectors"
    )


def _key(variable: str, environment: Mapping[str, str] | None = None) -> str:
    """The key in a variable; empty if none is named."""
    if not variable:
        return ""
    found = (os.environ if environment is None else environment).get(variable, "").strip()
    if not found or not found.isascii() or not found.isprintable():
        raise UserError(
            f"the environment variable {variable} holds no key",
            remedy=f"export {variable}=…, or name another with memory.endpoint_key",
            code="no_key",
        )
    return found
