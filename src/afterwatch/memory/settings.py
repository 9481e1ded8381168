"""The settings of this room. Standard library only."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class MemorySettings:
    """Section `[memory]` of the configuration."""

    space: str = field(default="local", metadata={"help": "Space that is read and written when none is named."})
    scope: str = field(
        default="",
        metadata={"help": "Scope of this folder, e.g. project:shop; empty: all.", "project": "set"},
    )
    embedder: str = field(
        default="bundled", metadata={"help": "bundled, minilm, gguf, endpoint (text leaves), or none (keywords only)."}
    )
    endpoint_url: str = field(default="", metadata={"help": "Embeddings server, such as https://host/v1."})
    endpoint_model: str = field(default="", metadata={"help": "Model that the embeddings server is asked for."})
    endpoint_key: str = field(default="", metadata={"help": "Name of the environment variable that holds its key."})
    gguf_file: str = field(default="", metadata={"help": "Your own GGUF model; empty: the one that is downloaded."})
    gguf_url: str = field(default="", metadata={"help": "Mirror of the model that is downloaded; its sha256 is fixed."})
    extra_prefixes: tuple[str, ...] = field(
        default=(), metadata={"help": "Key prefixes allowed beside pref, project and user."}
    )
    confidence: float = field(
        default=0.8,
        metadata={"help": "Least confidence of state and lessons that no user gave.", "ge": 0.0, "le": 1.0},
    )
    cap: int = field(
        default=10_000,
        metadata={
            "help": "Items a layer of a space may hold before the least important are cooled; 0: no cap.",
            "ge": 0,
            "project": "lower",
        },
    )
    search_limit: int = field(default=10, metadata={"help": "Results of a search.", "ge": 1, "le": 1000})
    context_limit: int = field(
        default=8,
        metadata={"help": "Items admitted to a context block.", "ge": 0, "le": 100, "project": "lower"},
    )
