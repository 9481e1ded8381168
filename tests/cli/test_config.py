"""Law: a person sees every setting and where it comes from, and a change is checked before it is written."""

import json
from pathlib import Path

from afterwatch.cli.sections import SECTIONS
from afterwatch.settings.fields import fields_of
from afterwatch.settings.paths import config_file
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
