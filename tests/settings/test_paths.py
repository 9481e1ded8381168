"""Law: all of a user's data lies in one private folder, whose place one variable decides."""

import contextlib
import os
import stat
from pathlib import Path

import pytest

from afterwatch.errors import Unavailable, UserError
from afterwatch.settings import paths

posix = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")


def test_the_variable_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFTERWATCH_HOME", str(tmp_path / "a/../b"))
    assert paths.home() == tmp_path / "b"
    assert paths.cache_dir() == tmp_path / "b/cache"
    assert paths.spaces_dir() == tmp_path / "b/spaces"
    assert paths.config_file() == tmp_path / "b/config.toml"
    assert not paths.home().exists()


def test_without_the_variable_it_is_in_the_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AFTERWATCH_HOME")
    assert paths.home() == Path.home() / ".afterwatch"


def test_the_site_file_has_a_place_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AFTERWATCH_SITE_CONFIG", raising=False)
    assert paths.site_config_file() == Path("/etc/afterwatch/config.toml")
    monkeypatch.setenv("AFTERWATCH_SITE_CONFIG", "/srv/site.toml")
    assert paths.site_config_file() == Path("/srv/site.toml")


@posix
def test_the_home_is_made_private() -> None:
    old = os.umask(0)
    try:
        folder = paths.ensure_home()
    finally:
        os.umask(old)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    assert stat.S_IMODE(paths.ensure_home().stat().st_mode) == 0o700


def test_a_file_in_its_place_is_an_error() -> None:
    paths.home().parent.mkdir(parents=True, exist_ok=True)
    paths.home().write_text("x")
    with pytest.raises(UserError, match="not a folder") as caught:
        paths.ensure_home()
    assert caught.value.remedy


def test_a_place_that_cannot_be_made_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("AFTERWATCH_HOME", str(tmp_path / "file/home"))
    with pytest.raises(Unavailable) as caught:
        paths.ensure_home()
    assert "AFTERWATCH_HOME" in caught.value.remedy


def test_looking_makes_no_home() -> None:
    assert paths.usable_home() == paths.home()
    assert not paths.home().exists()


@posix
def test_a_home_that_is_closed_for_writing_stays_closed() -> None:
    folder = paths.ensure_home()
    folder.chmod(0o555)
    assert paths.usable_home() == folder
    assert stat.S_IMODE(folder.stat().st_mode) & 0o222 == 0
    with contextlib.suppress(Unavailable):  # root may write all the same
        paths.ensure_home()
    assert stat.S_IMODE(folder.stat().st_mode) & 0o222 == 0
    folder.chmod(0o755)
    paths.usable_home()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_looking_at_what_is_no_home_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("AFTERWATCH_HOME", str(tmp_path / "file"))
    with pytest.raises(UserError, match="not a folder"):
        paths.usable_home()
    monkeypatch.setenv("AFTERWATCH_HOME", str(tmp_path / "file/home"))
    with pytest.raises(Unavailable):
        paths.usable_home()
