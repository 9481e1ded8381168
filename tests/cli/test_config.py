"""Law: a person sees every setting and where it comes from, and a change is checked before it is written."""

import json
import os
from pathlib import Path

import pytest

from afterwatch.cli.sections import RULES, SECTIONS
from afterwatch.cli.security import audit_log
from afterwatch.memory.intake import Checked, check
from afterwatch.memory.model import USER, Draft
from afterwatch.memory.settings import MemorySettings
from afterwatch.settings.fields import MismatchError, fields_of
from afterwatch.settings.paths import config_file
from tests.cli.terminal import at_terminal
from tests.conftest import Run


def test_list_shows_every_setting(afterwatch: Run) -> None:
    code, out, err = afterwatch("config", "list")
    assert (code, err) == (0, "")
    assert all(key in out for key in fields_of(SECTIONS))
    document = json.loads(afterwatch("config", "list", "--json").stdout)
    assert {one["key"] for one in document["settings"]} == set(fields_of(SECTIONS))
    assert all(one["help"] and one["origin"] == "default" for one in document["settings"])


def test_set_get_and_origin_agree(afterwatch: Run) -> None:
    assert afterwatch("config", "set", "memory.search_limit", "21").code == 0
    assert afterwatch("config", "get", "memory.search_limit").stdout == "21\n"
    line = next(line for line in afterwatch("config", "list", "--origin").stdout.splitlines() if "search" in line)
    assert "user file" in line
    assert str(config_file()) in line
    env = {"AFTERWATCH_MEMORY_SEARCH_LIMIT": "22"}
    document = json.loads(afterwatch("config", "get", "memory.search_limit", "--json", env=env).stdout)
    assert (document["value"], document["origin"]) == (22, "environment")
    result = afterwatch("config", "set", "memory.search_limit", "23", env=env)
    assert (result.code, result.stdout) == (0, "memory.search_limit = 23\n")
    assert "environment" in result.stderr


def test_a_wrong_value_is_refused_in_one_line(afterwatch: Run) -> None:
    code, out, err = afterwatch("config", "set", "memory.search_limit", "many")
    assert (code, out) == (2, "")
    assert "a whole number from 1 to 1000" in err
    assert not config_file().exists()


def test_an_enforced_key_is_not_set(afterwatch: Run, tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text("[enforce.memory]\nsearch_limit = 5\n")
    env = {"AFTERWATCH_SITE_CONFIG": str(tmp_path / "site.toml")}
    assert afterwatch("config", "get", "memory.search_limit", env=env).stdout == "5\n"
    code, _, err = afterwatch("config", "set", "memory.search_limit", "6", env=env)
    assert code == 2
    assert "enforced" in err


def test_a_broken_file_is_named(afterwatch: Run) -> None:
    afterwatch("config", "set", "memory.search_limit", "7")
    config_file().write_text("[memory]\nserch_limit = 7\n")
    code, _, err = afterwatch("config", "list")
    assert code == 2
    assert str(config_file()) in err
    assert "memory.search_limit" in err


BAD = [
    ("memory.space", "nowhere"),
    ("memory.space", "team:../x"),
    ("memory.space", ""),
    ("memory.scope", "shop"),
    ("memory.scope", "project:"),
    ("memory.scope", "planet:earth"),
    ("memory.embedder", "imagined"),
    ("memory.embedder", ""),
    ("memory.extra_prefixes", "Deploy"),
    ("memory.extra_prefixes", "deploy."),
    ("memory.extra_prefixes", "ok,a b"),
    ("memory.extra_prefixes", "9x"),
]


@pytest.mark.parametrize(("key", "value"), BAD)
def test_what_cannot_exist_is_refused_wherever_it_stands(afterwatch: Run, key: str, value: str) -> None:
    code, out, err = afterwatch("config", "set", key, value)
    assert (code, out) == (2, "")
    assert key in err
    assert not config_file().exists()
    variable = f"AFTERWATCH_{key.replace('.', '_').upper()}"
    for words in (("config", "list"), ("memory", "list")):
        code, out, err = afterwatch(*words, env={variable: value})
        assert (code, out) == (2, "")
        assert err.startswith(f"error: {variable}: {key} does not fit: expected ")
    config_file().parent.mkdir()
    written = json.dumps(value.split(",") if key == "memory.extra_prefixes" else value)
    config_file().write_text(f"[memory]\n{key.partition('.')[2]} = {written}\n")
    code, _, err = afterwatch("memory", "list")
    assert code == 2
    assert err.startswith(f"error: {config_file()}: {key} does not fit: expected ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("memory.space", "team:ops"),
        ("memory.scope", "environment:prod/web"),
        ("memory.scope", ""),
        ("memory.embedder", "none"),
        ("memory.extra_prefixes", "deploy,on_call2"),
        ("memory.extra_prefixes", ""),
    ],
)
def test_what_can_exist_is_set(afterwatch: Run, key: str, value: str) -> None:
    assert afterwatch("config", "set", key, value).code == 0
    assert afterwatch("config", "get", key).stdout == f"{value}\n"


@pytest.mark.parametrize(
    "prefix", ["a", "deploy", "on_call2", "Deploy", "deploy.", "9x", "a-b", "a b", "é", "", "x" * 98]
)
def test_a_prefix_is_allowed_exactly_if_a_key_may_begin_with_it(prefix: str) -> None:
    settings = MemorySettings(extra_prefixes=(prefix,))
    admitted = isinstance(check(Draft(subject=f"{prefix}.x", value="v"), USER, settings), Checked)
    fits = True
    try:
        fields_of(SECTIONS, RULES)["memory.extra_prefixes"].check([prefix])
    except MismatchError:
        fits = False
    assert fits is admitted


SECRET = "AKIA" + "QYLPMN5HFIQR7XYA"


@pytest.mark.parametrize(
    "args",
    [
        *(("config", "set", key, SECRET) for key in fields_of(SECTIONS)),
        ("config", "get", SECRET),
        ("config", "set", SECRET, "x"),
        ("memory", "list", "--space", SECRET),
        ("memory", "list", "--scope", SECRET),
        ("memory", "list", "--layer", SECRET),
        ("memory", "list", "--as-of", SECRET),
        ("memory", "show", SECRET),
        ("memory", SECRET),
        (SECRET,),
    ],
)
def test_an_error_quotes_no_secret(afterwatch: Run, args: tuple[str, ...]) -> None:
    for more in ((), ("--json",)):
        code, out, err = afterwatch(*args, *more)
        assert code in (2, 3)
        assert SECRET not in out + err
        assert out + err


def test_a_wrong_secret_in_a_variable_or_file_is_not_quoted(afterwatch: Run) -> None:
    for key, setting in fields_of(SECTIONS, RULES).items():
        variable = f"AFTERWATCH_{key.replace('.', '_').upper()}"
        code, out, err = afterwatch("config", "list", env={variable: SECRET})
        assert code == 2, setting
        assert variable in err
        assert SECRET not in out + err
    config_file().parent.mkdir()
    for text in (f"[memory]\n{SECRET} = 1\n", f"[{SECRET}]\n", f"[memory]\nspace = '{SECRET}'\n", f"x = {SECRET}\n"):
        config_file().write_text(text)
        code, out, err = afterwatch("config", "list")
        assert code == 2
        assert str(config_file()) in err
        assert SECRET not in out + err


@pytest.mark.skipif(os.name != "posix", reason="arguments are bytes on POSIX")
@pytest.mark.parametrize(
    "words",
    [
        ("config", "set", "memory.space", "?"),
        ("config", "set", "memory.scope", "project:?"),
        ("config", "set", "memory.extra_prefixes", "?"),
        ("config", "get", "?"),
        ("security", "events", "--kind", "?"),
        ("security", "verify", "--anchor", "?"),
        ("memory", "list", "--scope", "project:?"),
        ("memory", "list", "--tag", "?"),
        ("memory", "show", "?"),
        ("memory", "search", "?", "--scope", "project:?"),
        ("memory", "restore", "?"),
        ("learn", "remove", "?"),
        ("?",),
    ],
)
def test_half_a_character_is_an_error_and_no_defect(afterwatch: Run, words: tuple[str, ...]) -> None:
    afterwatch("memory", "add", "The payments queue is drained by hand.", env={"AFTERWATCH_MEMORY_EMBEDDER": "none"})
    audit_log().append("memory.confirm", "local")
    for more in ((), ("--json",)):
        code, out, err = afterwatch(*(word.replace("?", "x\udcff\udced") for word in words), *more)
        assert code in (2, 3), out + err
        assert out + err
        assert "Traceback" not in err


def test_half_a_character_in_a_variable_is_named(afterwatch: Run) -> None:
    code, _, err = afterwatch("config", "list", env={"AFTERWATCH_MEMORY_SCOPE": "project:\udcff"})
    assert code == 2
    assert "AFTERWATCH_MEMORY_SCOPE" in err


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("memory.endpoint_url", "https://elsewhere.example/v1"),
        ("memory.embedder", "endpoint"),
        ("net.private_hosts", "models.corp.example"),
        ("net.offline", "false"),
    ],
)
def test_where_text_goes_is_the_users_choice(afterwatch: Run, key: str, value: str) -> None:
    refused = afterwatch("config", "set", key, value)
    assert refused.code == 3
    assert "only the user" in refused.stderr
    shown = at_terminal("config", "set", key, value)
    assert shown.code == 0
