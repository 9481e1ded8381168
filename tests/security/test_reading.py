"""Law: a path somebody else named never leads to a secret, a pipe, a device, or something huge."""

import os
import threading
from pathlib import Path

import pytest

from afterwatch.errors import AfterwatchError, UserError
from afterwatch.security.reading import safe_read, sensitive_kind
from afterwatch.settings.paths import ensure_home

SECRET = "do-not-show-me"

SENSITIVE = [
    "~/.aws/credentials",
    "~/.ssh/config",
    "~/.gnupg/trustdb.gpg",
    "~/.gpg/x",
    "~/.config/gcloud/credentials.db",
    "~/.azure/accessTokens.json",
    "~/.docker/config.json",
    "~/.kube/config",
    "~/.npmrc",
    "~/.pypirc",
    "~/.netrc",
    "~/.git-credentials",
    "$HOME/.ssh/id_ed25519",
    "${HOME}/.SSH/known_hosts",
    "/home/bob/.ssh/authorized_keys",
    "x/../~/../.env",
    "deploy/.env.production",
    "deploy/prod.env",
    "id_rsa",
    "backup/id_ecdsa_old",
    "tls/server.pem",
    "tls/Server.KEY",
    "store.p12",
    "/etc/shadow",
    "/etc/shadow-",
    "/proc/self/environ",
    "/proc/1/environ",
    "/proc/1/root/etc/../../self/environ",
    "/run/secrets/kubernetes.io/serviceaccount/token",
    "/etc/kubernetes/admin.conf",
    "$AFTERWATCH_HOME/audit.db",
    "$AFTERWATCH_HOME/audit.db-wal",
    "$AFTERWATCH_HOME/keys/one",
    "$AFTERWATCH_HOME/credentials.json",
]
ORDINARY = [
    "README.md",
    "~/notes.txt",
    "src/environment.py",
    ".env.example",
    "id_rsa.pub",
    "keyboard.txt",
    "/etc/hosts",
    "/proc/meminfo",
    "docs/ssh.md",
    "monkey.md",
    "$AFTERWATCH_HOME/memory.md",
]


@pytest.mark.parametrize("path", SENSITIVE)
def test_a_path_to_a_secret_is_known_and_refused(path: str) -> None:
    assert sensitive_kind(path)
    with pytest.raises(UserError) as caught:
        safe_read(path, max_bytes=10)
    assert caught.value.code == "sensitive_path"
    assert caught.value.remedy


@pytest.mark.parametrize("path", ORDINARY)
def test_an_ordinary_path_is_let_through(path: str) -> None:
    assert sensitive_kind(path) is None


def test_text_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ünï\n" * 1000, encoding="utf-8")
    size = (tmp_path / "a.txt").stat().st_size
    assert safe_read(tmp_path / "a.txt", max_bytes=size) == "ünï\n" * 1000
    with pytest.raises(UserError, match="larger"):
        safe_read(tmp_path / "a.txt", max_bytes=size - 1)
    assert safe_read(str(tmp_path / "a.txt"), max_bytes=size, encoding="latin-1").startswith("Ã")


def test_a_link_is_judged_by_both_ends(tmp_path: Path) -> None:
    home = Path(os.environ["HOME"])
    (home / ".ssh").mkdir()
    (home / ".ssh/config").write_text(SECRET)
    (tmp_path / "notes.md").symlink_to(home / ".ssh/config")
    (tmp_path / "folder").symlink_to(home / ".ssh")
    (tmp_path / "plain.md").write_text("fine")
    (tmp_path / ".env").symlink_to(tmp_path / "plain.md")
    for path in ("notes.md", "folder/config", ".env"):
        with pytest.raises(UserError) as caught:
            safe_read(tmp_path / path, max_bytes=100)
        assert SECRET not in f"{caught.value}{caught.value.remedy}"


def test_a_link_to_an_ordinary_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("fine")
    (tmp_path / "b.md").symlink_to("a.md")
    assert safe_read(tmp_path / "b.md", max_bytes=100) == "fine"


def test_our_own_home_is_known_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (ensure_home() / "audit.db").write_text(SECRET)
    (tmp_path / "link").symlink_to(ensure_home())
    monkeypatch.setenv("AFTERWATCH_HOME", str(tmp_path / "link"))
    assert sensitive_kind(tmp_path / "link/audit.db") == "audit log"
    assert sensitive_kind((tmp_path / "link").resolve() / "audit.db") == "audit log"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_what_is_no_plain_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(UserError, match="regular"):
            safe_read(path, max_bytes=10)


def test_a_missing_or_binary_file_is_an_error_without_content(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"\xff" + SECRET.encode())
    for path in (tmp_path / "nope", tmp_path / "b", "nul\0byte"):
        with pytest.raises(UserError) as caught:
            safe_read(path, max_bytes=100)
        assert SECRET not in str(caught.value)


def test_a_swap_between_check_and_open_never_wins(tmp_path: Path) -> None:
    """A folder that turns into a link to a key folder again and again while it is read."""
    home = Path(os.environ["HOME"])
    (home / ".ssh").mkdir()
    (home / ".ssh/notes.md").write_text(SECRET)
    (tmp_path / "real").mkdir()
    (tmp_path / "real/notes.md").write_text("fine")
    stop = threading.Event()
    place = tmp_path / "place"
    place.symlink_to(tmp_path / "real")

    def swap() -> None:
        while not stop.is_set():
            for target in (home / ".ssh", tmp_path / "real"):
                (tmp_path / "next").symlink_to(target)
                os.replace(tmp_path / "next", place)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = set()
        for _ in range(1500):
            try:
                seen.add(safe_read(place / "notes.md", max_bytes=100))
            except AfterwatchError as error:
                seen.add(type(error).__name__)
    finally:
        stop.set()
        thread.join()
    assert SECRET not in seen
    assert "fine" in seen
