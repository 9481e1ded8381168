"""Weights that came inside an installed package: where they lie, and whether they are the ones we know."""

import hashlib
import importlib.util
from pathlib import Path

from afterwatch.errors import Unavailable


def package_folder(package: str, remedy: str) -> Path:
    """The folder of an installed package; nothing of it is imported.

    Raises:
        Unavailable: it is not installed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable(f"the weights package {package} is not installed", remedy=remedy, code="no_embedder")
    return Path(next(iter(spec.submodule_search_locations)))


def check_sha256(path: Path, known: str) -> None:
    """Compare a file with what we know.

    Raises:
        Unavailable: it cannot be read, or it is another file.
    """
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise Unavailable(f"cannot read the weights {path.name}: {error.strerror}", code="no_embedder") from error
    if found != known:
        raise Unavailable(
            f"{path.name} is not the file we know (sha256 {found[:12]}…)",
            remedy="reinstall the weights package in the locked version",
            code="weights_changed",
        )
