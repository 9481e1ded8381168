"""Law: text of any script is found by its words, and no text, however odd, breaks a write or a search."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afterwatch.errors import UserError
from afterwatch.memory import Draft, Memory, Result, Scope, ScopeKind, View
from afterwatch.memory.embedders import Loading
from afterwatch.memory.model import ORIGINS
from afterwatch.memory.reading import Filter
from afterwatch.settings.clock import FixedClock
from tests.memory.support import AGENT, USER, Letters, ids, keywords_only, ticking

# what is remembered, what is asked
FOUND = [
    ("我家的猫叫小白，住在上海", "猫"),
    ("我家的猫叫小白，住在上海", "小白"),
    ("我们每个星期五下午部署支付服务", "部署"),
    ("我们每个星期五下午部署支付服务", "支付服务是什么时候部署的"),
    ("배포는 금요일 오후에 합니다, 담당자는 민수", "금요일"),
    ("데이터베이스는 서울에 있습니다", "데이터베이스"),
    ("ฐานข้อมูลอยู่ที่กรุงเทพมหานคร", "กรุงเทพ"),
    ("デプロイは金曜日の午後です", "金曜日"),
    ("デプロイは金曜日の午後です", "デプロイ"),
    ("База данных живёт в Новосибирске", "новосибирске"),
    ("База данных живёт в Новосибирске", "ЖИВЁТ"),
    ("قاعدة البيانات في القاهرة", "القاهرة"),
    ("الخَادِمُ يعمل في الليل", "الخادم"),
    ("השרת נמצא בתל אביב", "השרת"),
    ("डेटाबेस मुंबई में चलता है", "मुंबई"),
    ("The café server is in Zürich", "cafe server"),
    ("The cafe printer is in Zurich", "printer café Zürich"),
    ("Der Straßenplan liegt im Büro", "STRASSENPLAN"),
    ("Le déploiement est gelé à Noël", "deploiement"),
    ("İstanbul is where the replica lives", "istanbul"),
    ("Ship it with 🚀 on Mondays only", "🚀"),
    ("The ﬁle server uses ｆｕｌｌ width names", "file width"),
    ("The ﬁle server uses ｆｕｌｌ width names", "full"),
    ("Pods end in CrashLoopBackOff after the rollout", "crashloop"),
    ("Pods end in CrashLoopBackOff after the rollout", "crashloopbackoff"),
    ("Call getPodSpec before you patch anything", "podspec"),
    ("Call getPodSpec before you patch anything", "getPodSpec"),
    ("The gateway listens on 10.32.0.17 behind the proxy", "10.32.0.17"),
    ("The new node has fe80::1ff:fe23:4567:890a as address", "fe80::1ff:fe23:4567:890a"),
    ("We pinned the cluster to v1.29.3-eks and wait", "v1.29.3-eks"),
    ("We pinned the cluster to v1.29.3-eks and wait", "1.29"),
    ("The config is in /etc/nginx/conf.d/shop.conf today", "/etc/nginx/conf.d/shop.conf"),
    ("The config is in /etc/nginx/conf.d/shop.conf today", "shop.conf"),
    ("It failed with ORA-00942 and then with E1234", "ORA-00942"),
    ("It failed with exit code 137, error 0x80070005", "0x80070005"),
    ("The nodes were restarted by the kubelet", "restarting node"),
    ("Set MAX_OPEN_FILES before the start", "max open files"),
    ("Set MAX_OPEN_FILES before the start", "MAX_OPEN_FILES"),
    ("Issue INC-1042 was closed by Ines", "INC-1042"),
]


@pytest.fixture
def memory(home: Path) -> Iterator[Memory]:
    with keywords_only(home) as opened:
        opened.add_many(AGENT, [Draft(text) for text in dict.fromkeys(text for text, _ in FOUND)])
        yield opened


def test_words_of_every_script_are_found(memory: Memory) -> None:
    for text, question in FOUND:
        hits = memory.search(AGENT, question, limit=1).hits
        assert [hit.item.text for hit in hits] == [text], question


def test_other_words_find_nothing(memory: Memory) -> None:
    for question in ("犬", "부산", "москва", "zebra", "🔥", "v9.99.9"):
        assert memory.search(AGENT, question).hits == (), question


# --- questions that are no questions ----------------------------------------------------------------

ODD = [
    *("", " ", "\n\t", "\0", "\ud800", "\udfff\ud800 zebra", "\u202ezebra\u202c", "zebra\0crossing", "\ufffe"),
    *("NEAR(zebra crossing, 2)", '"', '"zebra', "zebra*", "*", "-", "-zebra", "+", "^zebra", "words:zebra", "col:"),
    *(
        "words_live MATCH 'x'",
        "zebra AND",
        "OR",
        "NOT zebra",
        "(zebra",
        ")",
        "{words} : zebra",
        "'",
        "';DROP TABLE items",
    ),
    *("%", "_", "\\", "a" * 1_000_000, "zebra " * 200_000, "猫" * 100_000, "🚀" * 1000, "\u0301" * 5000, "￿"),
    "e\u0301" * 3000,
]


def test_odd_questions_are_answered(home: Path) -> None:
    with Memory.open(home, clock=ticking(), embedder=Loading.done(Letters())) as memory:
        kept = memory.add(AGENT, "The zebra crossing is closed on Mondays")
        for question in ODD:
            found = memory.search(AGENT, question)
            assert {hit.item.id for hit in found.hits} <= {kept.id}
            memory.relevant(AGENT, question)
            if "zebra" in question and len(question) < 100:
                assert found.hits, question


@given(question=st.text(st.characters(exclude_categories=()), max_size=60))
def test_any_question_is_answered(question: str, shared: Memory) -> None:
    assert len(shared.search(AGENT, question).hits) <= 1
    shared.relevant(AGENT, question)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with keywords_only(tmp_path_factory.mktemp("shared")) as opened:
        opened.add(AGENT, "The zebra crossing is closed on Mondays")
        yield opened


# --- texts that are no texts ------------------------------------------------------------------------


@settings(max_examples=40)
@given(text=st.text(st.characters(exclude_categories=()), max_size=80))
def test_any_text_is_kept_or_refused(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    with keywords_only(tmp_path_factory.mktemp("any")) as memory:
        draft = Draft(text, tags=[text], aliases=[text], quote=text, source=text, source_run=text, conversation=text)
        outcome = memory.add_many(AGENT, [draft, Draft(subject="pref.any", value={text: [text]})])
        for one in outcome:
            assert one.stored or one.reason in ("text_length", "value_empty")
            if one.id:
                item = memory.get(AGENT, one.id)
                assert "\0" not in item.text
                item.text.encode()  # no lone surrogate is left
        assert memory.problems(AGENT) == {"local": []}


def test_marks_that_turn_text_around_are_dropped(home: Path) -> None:
    with keywords_only(home) as memory:
        kept = memory.add(AGENT, "\u202eThe zebra \u2066crossing\u2069 is\u200b open\0 today\ud800")
        assert memory.get(AGENT, kept.id or "").text == "The zebra crossing is open today"
        joined = memory.add(AGENT, "The family 👨\u200d👩\u200d👧 lives here now")
        assert "\u200d" in memory.get(AGENT, joined.id or "").text


def test_a_text_of_a_megabyte_is_refused_and_a_long_turn_is_kept(home: Path) -> None:
    with keywords_only(home) as memory:
        assert memory.add(AGENT, "zebra " * 170_000).reason == "text_length"
        assert memory.remember(AGENT, "pref.long", "zebra " * 170_000).reason == "value_size"
        long = ("quagga " * 2800)[:19_990]
        outcome = memory.add(AGENT, long, imported=True)
        assert outcome.result is Result.INSERTED
        assert ids(memory, "quagga") == [outcome.id]


SURROGATE = "\ud800"


def test_half_a_character_in_a_name_is_the_users_error(home: Path) -> None:
    with keywords_only(home) as memory:
        kept = memory.add(AGENT, "The zebra crossing is closed on Mondays").id or ""
        scoped = View(scopes=(Scope(ScopeKind.PROJECT, SURROGATE),))
        half = View(principal=SURROGATE)
        calls: list[Callable[[], object]] = [
            lambda: memory.get(AGENT, SURROGATE),
            lambda: memory.history(AGENT, SURROGATE),
            lambda: memory.events(AGENT, item_id=SURROGATE),
            lambda: memory.items(AGENT, Filter(tags=(SURROGATE,))),
            lambda: memory.search(AGENT, "zebra", where=Filter(statuses=(SURROGATE,))),
            lambda: memory.search(scoped, "zebra"),
            lambda: memory.add(scoped, "One more note of zebras"),
            lambda: memory.cool(AGENT, [SURROGATE]),
            lambda: memory.cool(half, [kept]),
            lambda: memory.confirm(USER, SURROGATE),
            lambda: memory.confirm(USER, "no such id, with blanks"),
            lambda: memory.rate(AGENT, kept, SURROGATE),
        ]
        for call in calls:
            with pytest.raises(UserError):
                call()
        assert memory.get(AGENT, kept).tier == "hot"
        assert memory.search(AGENT, "zebra", where=Filter(tags=("stripes",))).hits == ()


# --- time zones -------------------------------------------------------------------------------------


def test_two_time_zones_sort_by_moment_and_carry_their_own_day(home: Path) -> None:
    """Late evening in Honolulu is the next day in Auckland, and may be earlier or later."""
    late = datetime(2024, 3, 1, 23, 30, tzinfo=UTC)
    with keywords_only(home, FixedClock(late, offset=13 * 60)) as memory:
        auckland = memory.add(AGENT, "Written in Auckland after midnight")
    with keywords_only(home, FixedClock(late.replace(minute=45), offset=-10 * 60)) as memory:
        honolulu = memory.add(AGENT, "Written in Honolulu before dinner")
        passed = memory.add(AGENT, "Written by a host in Delhi", offset_minutes=330, valid_from=0)
        assert [(item.id, item.date) for item in memory.items(AGENT)] == [
            (passed.id, "1970-01-01"),
            (honolulu.id, "2024-03-01"),
            (auckland.id, "2024-03-02"),
        ]
        assert auckland.id == "mem-2024-03-02-001"
        assert honolulu.id == "mem-2024-03-01-001"
        assert memory.get(AGENT, auckland.id or "").offset_minutes == 780
        assert [hit.item.id for hit in memory.search(AGENT, "written").hits][-1] == passed.id


def test_ids_past_the_last_of_three_digits_sort_as_numbers(home: Path) -> None:
    with keywords_only(home) as memory:
        outcomes = memory.add_many(AGENT, [Draft(f"{at}", imported=True) for at in range(1002)])
        assert [outcome.id for outcome in outcomes][998:] == [
            *("mem-2024-03-01-999", "mem-2024-03-01-1000", "mem-2024-03-01-1001", "mem-2024-03-01-1002")
        ]
        assert [item.id for item in memory.items(AGENT, limit=2)] == ["mem-2024-03-01-1002", "mem-2024-03-01-1001"]


def test_every_channel_has_an_origin() -> None:
    assert len(ORIGINS) == len({channel.value for channel in ORIGINS}) == 13
