"""Getting a model file: resumable, pinned by sha256, one download for all who want it. Only who asks for it downloads.

Whatever a server sends is a stranger's bytes until their sha256 is the pinned one; only then the file gets its name.
"""

import errno
import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from afterwatch.errors import AfterwatchError, Unavailable

if TYPE_CHECKING:
    from afterwatch.net.client import Client

SKIP = "AFTERWATCH_SKIP_MODEL_DOWNLOAD"
LEAST_BYTES = 1_000_000
"""No model is smaller: a shorter file is an error page or a piece."""
MOST_BYTES = 4_000_000_000
SPARE_BYTES = 50_000_000
"""Free space that a download leaves on the disk."""
INTERACTIVE = (1.0, 2.0)
"""Seconds before each further try when somebody waits: three tries."""
BACKGROUND = (60.0, 120.0, 240.0, 480.0, 960.0)
"""The same in the background: six tries. Doubled from a minute, at most half an hour."""
WAIT_FOR_OTHER = 3600.0
"""Seconds to wait for another process that downloads the same file."""
PERMANENT = range(400, 500)
BUSY = (408, 425, 429)
"""Answers of `PERMANENT` that do go away."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Pin:
    """A model file: its name here, where it is, the sha256 it must have, and domains that the server may send us to."""

    name: str
    url: str
    sha256: str
    redirects: tuple[str, ...] = ()
    least_bytes: int = LEAST_BYTES


QWEN = Pin(
    "qwen3-embedding-0.6b-q8_0.gguf",
    "https://huggingface.co/Qwen/Qwen3-Embedding-0.6B-GGUF/resolve/main/Qwen3-Embedding-0.6B-Q8_0.gguf",
    "06507c7b42688469c4e7298b0a1e16deff06caf291cf0a5b278c308249c3e439",
    ("hf.co", "huggingface.co"),
)
"""Qwen3-Embedding-0.6B, 8 bits a weight, about 640 MB, Apache-2.0; the sha256 trusts no mirror."""


@dataclass(frozen=True)
class Status:
    """How a download stands: `step` is idle, downloading, verifying, waiting_retry, ready or failed."""

    step: str = "idle"
    attempt: int = 0
    done: int = 0
    total: int = 0
    error: str = ""


@dataclass
class Means:
    """What a download needs of the world; tests put their own in."""

    connect: Callable[[Pin], "Client"]
    pause: Callable[[float], bool]
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free


def means() -> Means:
    """The guarded client, and pauses by the system's time."""
    return Means(_connect, lambda seconds: threading.Event().wait(seconds))


def _connect(pin: Pin) -> "Client":
    from afterwatch.net.client import Client
    from afterwatch.net.settings import net_settings

    return Client(pin.url, net_settings(), redirects=pin.redirects)


class Downloads:
    """Brings one model file into a folder. Threads that ask at once share one download; processes wait for each other.

    `status` may be read at any time.
    """

    def __init__(self, folder: Path, pin: Pin, world: Means | None = None) -> None:
        self.path = folder / pin.name
        self.status = Status()
        self._folder, self._pin, self._world = folder, pin, world or means()
        self._lock = threading.Lock()
        self._running: threading.Thread | None = None
        self._failure: AfterwatchError | None = None

    def start(self, waits: Sequence[float] = BACKGROUND, progress: Progress | None = None) -> threading.Thread:
        """Download in the background, or join the download that runs. A daemon: nothing waits for it at exit."""
        with self._lock:
            if self._running is None or not self._running.is_alive():
                self._failure = None
                self._running = threading.Thread(
                    target=self._run, args=(waits, progress), name="afterwatch-download", daemon=True
                )
                self._running.start()
            return self._running

    def ensure(self, waits: Sequence[float] = INTERACTIVE, progress: Progress | None = None) -> Path:
        """The file; downloaded first if it is missing.

        Raises:
            Unavailable, UserError: why it cannot be had; what was loaded so far is kept and resumed.
        """
        if self.path.is_file():
            self._note("ready")
            return self.path
        self.start(waits, progress).join()
        if self._failure is not None:
            raise self._failure
        return self.path

    def _note(self, step: str, **more: int | str) -> None:
        self.status = replace(self.status, step=step, **more)  # type: ignore[arg-type]

    def _run(self, waits: Sequence[float], progress: Progress | None) -> None:
        try:
            self._refuse_skipped()
            with self._alone():
                self._bring(waits, progress)
            self._note("ready", error="")
        except AfterwatchError as error:
            self._fail(error)
        except OSError as error:
            self._fail(_disk(error))
        # the end of a thread: whoever waits must learn that there is no file
        except Exception as error:  # noqa: BLE001
            self._fail(Unavailable(f"the download failed ({type(error).__name__})", code="no_embedder"))

    def _fail(self, error: AfterwatchError) -> None:
        self._failure = error
        self._note("failed", error=str(error))

    def _refuse_skipped(self) -> None:
        if self._world.environment.get(SKIP, "").strip().lower() not in ("", "0", "false", "no", "off"):
            raise Unavailable(f"{SKIP} is set: no model is downloaded", remedy=f"unset {SKIP}", code="skipped")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time downloads this file."""
        from filelock import FileLock, Timeout

        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with FileLock(self._folder / f".{self._pin.name}.lock", timeout=WAIT_FOR_OTHER, mode=0o600):
                yield
        except Timeout as error:
            raise Unavailable(
                "another process is still downloading the model", remedy="wait for it", code="busy"
            ) from error

    def _bring(self, waits: Sequence[float], progress: Progress | None) -> None:
        if self.path.is_file() or self._salvaged():
            return
        stage = self._stage()
        for attempt, wait in enumerate((*waits, None), 1):
            self._note("downloading", attempt=attempt)
            try:
                self._load(stage, progress)
                self._install(stage)
                return
            except AfterwatchError as error:
                if wait is None or _hopeless(error):
                    raise
                self._note("waiting_retry", error=str(error))
                self._world.pause(wait)

    def _stage(self) -> Path:
        """The staging file of this process; what one that died has left is taken over, the largest piece of it."""
        mine = self._folder / f".{self._pin.name}.{os.getpid()}.part"
        left = sorted(self._folder.glob(f".{self._pin.name}.*.part"), key=lambda path: path.stat().st_size)
        if left and left[-1] != mine:
            os.replace(left[-1], mine)
        for path in left[:-1]:
            if path != mine:
                path.unlink(missing_ok=True)
        return mine

    # -- one try ------------------------------------------------------------------------------------------------

    def _load(self, stage: Path, progress: Progress | None) -> None:
        have = stage.stat().st_size if stage.exists() else 0
        try:
            with self._world.connect(self._pin) as client, client.fetch(have) as body:
                whole = body.total or 0
                if body.start not in (0, have):
                    raise Unavailable("the server sent another part than was asked for", code="net_answer")
                if whole > MOST_BYTES:
                    raise Unavailable(
                        f"the file has {whole} bytes: no model has", remedy="check the address", code="too_large"
                    )
                if whole and self._world.free(self._folder) < whole - body.start + SPARE_BYTES:
                    raise _disk(OSError(errno.ENOSPC, "full"))
                self._receive(stage, body.chunks, body.start, whole, progress)
        except AfterwatchError as error:
            if error.code == "net_range":  # it has no such byte: then what is here is the whole, or worthless
                return
            raise

    def _receive(self, stage: Path, chunks: Iterator[bytes], start: int, whole: int, progress: Progress | None) -> None:
        """Write what comes, from its place on; a server that begins anew is taken at its word."""
        with stage.open("r+b" if stage.exists() else "xb") as file:
            file.truncate(start)
            file.seek(start)
            done = start
            for chunk in chunks:
                file.write(chunk)
                done += len(chunk)
                if done > MOST_BYTES:
                    raise Unavailable("the file does not come to an end", remedy="check the address", code="too_large")
                self._note("downloading", done=done, total=whole)
                if progress is not None:
                    progress(done, max(whole, done))
            file.flush()
            os.fsync(file.fileno())
        if whole and done < whole:
            raise Unavailable(f"the server sent {done} of {whole} bytes", remedy="try again", code="net_failed")

    def _install(self, stage: Path) -> None:
        self._note("verifying")
        size = stage.stat().st_size
        found = _sha256(stage)
        if found != self._pin.sha256 or size < self._pin.least_bytes:
            stage.unlink()
            raise Unavailable(
                f"the file that came is not the model we know (sha256 {found[:12]}…, {size} bytes)",
                remedy="try again; if it stays so, the address leads to another file",
                code="weights_changed",
            )
        os.replace(stage, self.path)

    # -- the same file from elsewhere ---------------------------------------------------------------------------

    def _salvaged(self) -> bool:
        """Whether an identical file of another program could be copied; whatever fails, it is downloaded."""
        stage = self._folder / f".{self._pin.name}.{os.getpid()}.copy"
        for source in self._blobs():
            try:
                self._note("verifying")
                shutil.copyfile(source, stage)
                if _sha256(stage) == self._pin.sha256:
                    os.replace(stage, self.path)
                    return True
            except OSError:
                continue
            finally:
                stage.unlink(missing_ok=True)
        return False

    def _blobs(self) -> Iterator[Path]:
        """Where programs keep files under their sha256, if one of ours is there."""
        environment, home = self._world.environment, Path("~")
        with suppress(RuntimeError):
            home = home.expanduser()
        ollama = Path(environment.get("OLLAMA_MODELS") or home / ".ollama/models")
        hub = Path(environment.get("HF_HOME") or home / ".cache/huggingface") / "hub"
        with suppress(OSError):
            found = [ollama / "blobs" / f"sha256-{self._pin.sha256}", *hub.glob(f"models--*/blobs/{self._pin.sha256}")]
            yield from (path for path in found if path.is_file())


def _hopeless(error: AfterwatchError) -> bool:
    """Whether trying again cannot help."""
    from afterwatch.net.client import NetStatusError

    if isinstance(error, NetStatusError):
        return error.status in PERMANENT and error.status not in BUSY
    return error.code in (
        "disk_full",
        "net_offline",
        "net_refused",
        "net_redirect",
        "net_url",
        "net_plain",
        "too_large",
    )


def _disk(error: OSError) -> Unavailable:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Unavailable("the disk is too full for the model", remedy="free space, then try again", code="disk_full")
    return Unavailable(f"the model cannot be kept: {error.strerror}", remedy="check the home folder", code="read_only")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
