"""Law: one value a key, from the strongest place that names it; what is wrong is named with its place."""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from afterwatch.errors import AfterwatchError, UserError
from afterwatch.settings.config import Config
from afterwatch.settings.fields import Rule
from afterwatch.settings.paths import config_file, ensure_home


@dataclass(frozen=True)
class Sample:
    limit: int = field(default=10, metadata={"help": "a cap", "ge": 1, "le": 50, "project": "lower"})
    rate: float = field(default=0.5, metadata={"help": "a share", "ge": 0.0, "le": 1.0})
    scope: str = field(default="", metadata={"help": "a scope", "project": "set"})
    loud: bool = field(default=False, metadata={"help": "a switch"})
    words: tuple[str, ...] = field(default=(), metadata={"help": "a list", "project": "set"})
    mode: Literal["fast", "whole"] = field(default="fast", metadata={"help": "a choice"})
    place: Path | None = field(default=None, metadata={"help": "a path"})


SECTIONS = {"sample": Sample}


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "site.toml"
    monkeypatch.setenv("AFTERWATCH_SITE_CONFIG", str(path))
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/deep/er").mkdir(parents=True)
    return tmp_path / "repo"


def user(text: str) -> None:
    ensure_home()
    config_file().write_text(text, encoding="utf-8")


def load(cwd: Path | None = None, **more: Any) -> Config:
    return Config.load(SECTIONS, env=more.pop("env", {}), cwd=cwd or config_file().parent, **more)


def refused(**more: Any) -> AfterwatchError:
    with pytest.raises(AfterwatchError) as caught:
        load(**more)
    return caught.value


def test_defaults_need_nothing() -> None:
    config = load()
    assert config.section(Sample) == Sample()
    assert config.origin("sample.limit") == "default"


def test_each_place_is_stronger_than_the_next(site: Path) -> None:
    """site < user < environment < flag < enforced."""
    site.write_text("[sample]\nlimit = 11\n")
    assert (load().origin("sample.limit"), load().value("sample.limit")) == ("site file", 11)
    user("[sample]\nlimit = 12\n")
    assert (load().origin("sample.limit"), load().value("sample.limit")) == ("user file", 12)
    env = {"AFTERWATCH_SAMPLE_LIMIT": "13"}
    flags = {"sample.limit": "14", "sample.rate": None}
    plain, flagged = load(env=env), load(env=env, flags=flags)
    site.write_text("[enforce.sample]\nlimit = 15\n")
    configs = [plain, flagged, load(env=env, flags=flags)]
    steps = [(config.origin("sample.limit"), config.value("sample.limit")) for config in configs]
    assert steps == [("environment", 13), ("flag", 14), ("enforced by site", 15)]


def test_every_type_is_read_from_text_and_from_toml() -> None:
    env = {
        "AFTERWATCH_SAMPLE_RATE": "1",
        "AFTERWATCH_SAMPLE_LOUD": "Yes",
        "AFTERWATCH_SAMPLE_WORDS": "a, b",
        "AFTERWATCH_SAMPLE_MODE": "whole",
        "AFTERWATCH_SAMPLE_PLACE": "/x",
    }
    text = '[sample]\nrate = 1\nloud = true\nwords = ["a", "b"]\nmode = "whole"\nplace = "/x"\n'
    expected = Sample(rate=1.0, loud=True, words=("a", "b"), mode="whole", place=Path("/x"))
    assert load(env=env).section(Sample) == expected
    user(text)
    assert load().section(Sample) == expected
    assert load(env={"AFTERWATCH_SAMPLE_WORDS": '["a,b"]'}).value("sample.words") == ("a,b",)
    assert load(env={"AFTERWATCH_SAMPLE_PLACE": ""}).value("sample.place") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[sample]\nlimit = 'x'\n", "whole number from 1 to 50"),
        ("[sample]\nlimit = 51\n", "whole number from 1 to 50"),
        ("[sample]\nlimit = true\n", "whole number"),
        ("[sample]\nrate = nan\n", "a number from 0.0 to 1.0"),
        ("[sample]\nloud = 'yes'\n", "true or false"),
        ("[sample]\nmode = 'slow'\n", "one of fast, whole"),
        ("[sample]\nwords = [1]\n", "text"),
        ("[sample]\nlimt = 3\n", "sample.limit"),
        ("[sampel]\nlimit = 3\n", "sample"),
        ("sample = 3\n", "[sample]"),
        ("[enforce.sample]\nlimit = 3\n", "site file"),
        ("[sample\n", "TOML"),
    ],
)
def test_a_wrong_user_file_is_named_with_what_is_expected(text: str, said: str) -> None:
    user(text)
    error = refused()
    assert isinstance(error, UserError)
    assert str(config_file()) in str(error)
    assert said in f"{error} {error.remedy}"


def test_a_file_that_is_no_text_or_no_file_is_an_error() -> None:
    ensure_home()
    config_file().write_bytes(b"\xff\xfe")
    assert "UTF-8" in str(refused())
    config_file().unlink()
    config_file().mkdir()
    assert "regular file" in str(refused())


def test_a_wrong_variable_or_flag_is_named() -> None:
    assert "AFTERWATCH_SAMPLE_LIMIT" in str(refused(env={"AFTERWATCH_SAMPLE_LIMIT": "many"}))
    error = refused(env={"AFTERWATCH_SAMPLE_LIMTI": "1"})
    assert "AFTERWATCH_SAMPLE_LIMIT?" in error.remedy
    assert "--limit" in str(refused(flags={"sample.limit": 0}))
    assert "sample.limit?" in refused(flags={"sample.limits": 1}).remedy
    assert load(env={"AFTERWATCH_OTHER": "x", "SAMPLE_LIMIT": "x"}).value("sample.limit") == 10


def test_a_wrong_enforced_key_is_an_error(site: Path) -> None:
    site.write_text("[enforce.sample]\nlimits = 1\n")
    assert "enforce.sample.limits" in str(refused())
    site.write_text("enforce = 3\n")
    assert "must be a table" in str(refused())


def test_a_project_may_set_and_lower_what_is_allowed(project: Path) -> None:
    (project / ".afterwatch.toml").write_text('[sample]\nscope = "project:shop"\nlimit = 5\n')
    config = load(cwd=project / "deep/er")
    assert (config.value("sample.scope"), config.value("sample.limit")) == ("project:shop", 5)
    assert config.origin("sample.limit") == "project file"
    user("[sample]\nlimit = 3\nscope = 'mine'\n")
    config = load(cwd=project)
    assert (config.value("sample.limit"), config.origin("sample.limit")) == (3, "user file")
    assert config.value("sample.scope") == "project:shop"
    assert load(cwd=project, env={"AFTERWATCH_SAMPLE_SCOPE": "env"}).value("sample.scope") == "env"


def test_a_project_may_set_nothing_else(project: Path) -> None:
    (project / ".afterwatch.toml").write_text("[sample]\nloud = true\n")
    error = refused(cwd=project)
    assert str(project / ".afterwatch.toml") in str(error)
    assert error.code == "not_for_projects"


def test_a_project_file_above_the_git_root_or_outside_git_is_not_read(project: Path, tmp_path: Path) -> None:
    (project.parent / ".afterwatch.toml").write_text("[sample]\nscope = 'x'\n")
    assert load(cwd=project / "deep").value("sample.scope") == ""
    (tmp_path / "loose/deep").mkdir(parents=True)
    (tmp_path / "loose/.afterwatch.toml").write_text("[sample]\nscope = 'x'\n")
    assert load(cwd=tmp_path / "loose/deep").value("sample.scope") == ""
    assert load(cwd=tmp_path / "loose").value("sample.scope") == "x"


def test_a_reader_of_one_section_may_leave_the_others_alone() -> None:
    user("[other]\nx = 1\n[sample]\nlimit = 2\n")
    assert refused().code == "unknown_section"
    assert load(complete=False).value("sample.limit") == 2
    user("[sample]\nnope = 2\n")
    assert refused(complete=False).code == "unknown_key"


def test_setting_a_value_keeps_comments_and_the_file_private() -> None:
    user("# mine\n[sample]\nlimit = 3 # few\n\n# end\n")
    assert load().set_value("sample.limit", "7") == 7
    load().set_value("sample.words", "a,b")
    text = config_file().read_text(encoding="utf-8")
    assert "# mine" in text
    assert "limit = 7 # few" in text
    assert load().section(Sample) == Sample(limit=7, words=("a", "b"))
    if os.name == "posix":
        assert stat.S_IMODE(config_file().stat().st_mode) == 0o600
    assert not list(config_file().parent.glob(".config-*"))


def test_setting_makes_the_first_file_and_an_empty_text_unsets() -> None:
    load().set_value("sample.place", "/x")
    assert load().value("sample.place") == Path("/x")
    load().set_value("sample.place", "")
    assert load().origin("sample.place") == "default"


def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    ensure_home()
    (tmp_path / "dots.toml").write_text("# dots\n")
    config_file().symlink_to(tmp_path / "dots.toml")
    load().set_value("sample.limit", "4")
    assert config_file().is_symlink()
    assert "limit = 4" in (tmp_path / "dots.toml").read_text()


def test_a_bad_or_enforced_value_is_not_written(site: Path) -> None:
    with pytest.raises(UserError, match=r"sample\.limit"):
        load().set_value("sample.limit", "999")
    with pytest.raises(UserError, match="unknown setting"):
        load().set_value("sample.limits", "9")
    site.write_text("[enforce.sample]\nlimit = 2\n")
    with pytest.raises(UserError, match="enforced") as caught:
        load().set_value("sample.limit", "9")
    assert str(site) in str(caught.value)
    assert not config_file().exists()


EVEN = {"sample.limit": Rule("an even number", lambda value: value % 2 == 0)}


def test_a_rule_holds_wherever_a_value_comes_from(site: Path) -> None:
    """Its words say what is expected; the value is not quoted."""
    error = refused(rules=EVEN, env={"AFTERWATCH_SAMPLE_LIMIT": "7"})
    assert str(error) == "AFTERWATCH_SAMPLE_LIMIT: sample.limit does not fit: expected an even number"
    assert "an even number" in error.remedy
    assert "--limit" in str(refused(rules=EVEN, flags={"sample.limit": 7}))
    site.write_text("[enforce.sample]\nlimit = 7\n")
    assert str(site) in str(refused(rules=EVEN))
    site.unlink()
    user("[sample]\nlimit = 7\n")
    assert str(config_file()) in str(refused(rules=EVEN))
    user("[sample]\nlimit = 8\n")
    config = load(rules=EVEN)
    assert config.value("sample.limit") == 8
    with pytest.raises(UserError, match="even"):
        config.set_value("sample.limit", "9")
    assert "limit = 8" in config_file().read_text()


def test_half_a_character_fits_no_text() -> None:
    for env in ({"AFTERWATCH_SAMPLE_SCOPE": "\udcff"}, {"AFTERWATCH_SAMPLE_WORDS": "a,\udcff"}):
        assert next(iter(env)) in str(refused(env=env))
    with pytest.raises(UserError):
        load().set_value("sample.scope", "\ud800")
    assert not config_file().exists()
