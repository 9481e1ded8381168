"""Law: only the user replaces what a space holds, over whatever door the call comes."""

from pathlib import Path

import pytest

from afterwatch.errors import ToolRefused
from afterwatch.memory import Channel, View
from tests.memory.support import USER, everything, keywords_only

FACT = "The zebra crossing is closed on Mondays"


@pytest.mark.parametrize("channel", [one for one in Channel if not View(channel=one).is_user])
def test_nobody_but_the_user_restores(home: Path, tmp_path: Path, channel: Channel) -> None:
    with keywords_only(home) as memory:
        memory.add(USER, FACT)
        memory.backup(USER, tmp_path / "old.db")
        memory.add(USER, "The quagga stable opens on Tuesdays")
        before = sorted(path.name for path in (home / "spaces/local").iterdir())
        with pytest.raises(ToolRefused) as caught:
            memory.restore(View(principal="user_explicit", channel=channel), tmp_path / "old.db")
        assert caught.value.code == "needs_user"
        assert "terminal" in caught.value.remedy
        assert len(everything(memory)) == 2
        assert sorted(path.name for path in (home / "spaces/local").iterdir()) == before
        assert memory.restore(USER, tmp_path / "old.db").is_file()
        assert [item.text for item in everything(memory).values()] == [FACT]
