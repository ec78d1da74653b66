"""However programs write a text down, it is found."""

import base64
import html
import json
import re
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ci_eval.text.encodings import Spellings, literally, readings, squeezed

WAYS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON with its letters": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON in JSON in JSON": lambda text: json.dumps(json.dumps(json.dumps(text)))[7:-7],
    "Python": lambda text: repr(text)[1:-1],
    "an address": lambda text: quote(text, safe=""),
    "an address in lower case": lambda text: _lower(quote(text, safe="")),
    "an address with slashes": quote,
    "a form": quote_plus,
    "an address in an address": lambda text: quote(quote(text, safe=""), safe=""),
    "HTML": html.escape,
    "ASCII": lambda text: ascii(text)[1:-1],
    "SQL": lambda text: text.replace("'", "''"),
    "CSV": lambda text: text.replace('"', '""'),
    "a shell": lambda text: text.replace("'", "'\"'\"'"),
    "hexadecimal digits": lambda text: text.encode().hex(),
    "hexadecimal digits in capitals": lambda text: text.encode().hex().upper(),
    "hexadecimal digits with colons": lambda text: text.encode().hex(":"),
    "hexadecimal digits with blanks": lambda text: text.encode().hex(" "),
    "hexadecimal digits with dashes": lambda text: text.encode().hex("-").upper(),
    "hexadecimal digits in fours": lambda text: text.encode().hex(":", 2),
    "hexadecimal digits in lines": lambda text: text.encode().hex("\n", 20),
    "several lines": lambda text: f"{text[:5]}\n    {text[5:]}",
    "colours": lambda text: f"{text[:5]}\x1b[0m\x1b[1;31m{text[5:]}",
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 without padding": lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
    "base64 in lines": lambda text: base64.encodebytes(text.encode()).decode().rstrip(),
    "base64 in an address": lambda text: quote(base64.b64encode(text.encode()).decode(), safe=""),
}


_SKIPPED = r"[\\\s]|%(?:20|0[9adAD]|5[cC])"
"""What is a slash or a blank, or looks like one in an address."""


def _is_rich(text: str) -> bool:
    """Return True if `text` has enough beside blanks and slashes, and none of these at an end."""
    at_an_end = re.search(rf"^(?:{_SKIPPED})|(?:{_SKIPPED})$", text)
    return not at_an_end and len(re.sub(_SKIPPED, "", text)) >= 8


SECRETS = st.text(
    st.one_of(
        st.sampled_from("abcXYZ0189"),
        st.sampled_from("+/=-_.~ !\"'\\%&<>#?:@{}[]\n\t"),
        st.sampled_from("äßé密😀"),
    ),
    min_size=8,
    max_size=120,
).filter(lambda text: text == text.strip() and not text.isalpha() and _is_rich(text))


def _lower(text: str) -> str:
    """Return an address with its hexadecimal digits in lower case."""
    first, *others = text.split("%")
    return "".join([first, *(f"%{each[:2].lower()}{each[2:]}" for each in others)])


def covered(secret: str, text: str) -> set[int]:
    """Return which places of `text` are found to hold `secret`."""
    found, held = Spellings(secret), squeezed(text)
    read = readings(text) if any(each in held for each in found.anchors) else []
    spans = (span for each in read for span in found.found_in(each))
    return {place for begin, end in spans for place in range(begin, end)}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@given(secret=SECRETS)
@example(secret='p"a\\s%s wörd&<1>')
@example(secret="-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ==\n-----END KEY-----")
@example(secret="密码密码密码密码")
@example(secret="!!!!????")
def test_a_text_is_found_whole_and_nothing_beside_it(way: str, secret: str) -> None:
    written = WAYS[way](secret)
    found = covered(secret, f"(( {written} ))")

    assert set(range(3, 3 + len(written))) <= found | _slashes_before(written)
    assert found <= set(range(2, 4 + len(written)))


def _slashes_before(written: str) -> set[int]:
    """Return where the slashes are that escape the first character; they may be left."""
    count = len(written) - len(written.lstrip("\\"))
    return set(range(3, 3 + count))


@pytest.mark.parametrize(
    "form", ["%{:02x}", "%{:02X}", "\\x{:02x}", "\\x{:02X}", "&#{};", "&#x{:x};", "\\u{:04X}"]
)
def test_a_text_is_found_where_every_letter_of_it_is_escaped(form: str) -> None:
    written = "".join(form.format(ord(each)) for each in "sk-Live/0+~=")

    assert covered("sk-Live/0+~=", f"(({written}))") == set(range(2, 2 + len(written)))


@pytest.mark.parametrize(
    ("before", "each", "between"),
    [
        ("0x", "{:02x}", ""),
        ("0x", "{:02X}", ""),
        ("0X", "{:02X}", ""),
        ("0x", "{:02x}", ", 0x"),
        ("0x", "{:02X}", ",0x"),
        ("0x", "{:02x}", " 0x"),
        ("0x", "{:02x}", ",\n  0x"),
        ("\\x", "{:02x}", ""),
        ("\\\\x", "{:02x}", ""),
        ("<Buffer ", "{:02x}", " "),
        ("", "{:02x}", ";"),
        ("", "{:02x}", ", "),
        ("", "{:02X}", "."),
        ("", "{:02X}", "_"),
    ],
)
@given(secret=SECRETS)
@example(secret="sk-Live/0+~=")
def test_a_text_is_found_in_hexadecimal_digits_whatever_stands_between_bytes(
    before: str, each: str, between: str, secret: str
) -> None:
    digits = between.join(each.format(byte) for byte in secret.encode())
    found = covered(secret, f"(({before}{digits}))")

    at = 2 + len(before)
    assert set(range(at, at + len(digits))) <= found
    assert found <= set(range(2, at + len(digits)))


def test_times_and_addresses_of_machines_are_no_secret_in_hexadecimal_digits() -> None:
    text = "12:30:45, 2001:0db8:85a3:0000:8a2e:0370:7334, 00-1A-2B-3C-4D-5E"
    assert covered("sk-12345678", text) == set()


@given(secret=SECRETS, before=st.binary(max_size=7), behind=st.binary(max_size=7))
def test_in_the_base64_of_a_longer_text_all_but_its_ends_is_found(
    secret: str, before: bytes, behind: bytes
) -> None:
    _assert_all_but_its_ends_is_found(secret, before, secret.encode(), behind)


@given(secret=SECRETS, before=st.binary(max_size=7), behind=st.binary(max_size=7))
def test_so_it_is_in_the_base64_of_json(secret: str, before: bytes, behind: bytes) -> None:
    data = json.dumps(secret)[1:-1].encode()
    _assert_all_but_its_ends_is_found(secret, before, data, behind)


def _assert_all_but_its_ends_is_found(
    secret: str, before: bytes, data: bytes, behind: bytes
) -> None:
    written = base64.b64encode(before + data + behind).decode()
    first = -(-8 * len(before) // 6)
    last = 8 * (len(before) + len(data)) // 6
    inner = set(range(first, last))

    assert inner - covered(secret, written) <= {first}


def test_the_login_of_a_header_leaves_the_name_that_stands_before_it() -> None:
    token = "ghs_0123456789abcdefghijABCDEFGHIJ012345"
    written = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    found = covered(token, f"AUTHORIZATION: basic {written}")

    at = 21 + len(base64.b64encode(b"x-access-token:"))
    assert found == set(range(at, 21 + len(written)))


@pytest.mark.parametrize("text", ["", "sk-1234", "SK-12345678", "sk-123-45678", "c2stMTIzNDU2Nw"])
def test_what_only_begins_alike_is_not_found(text: str) -> None:
    assert covered("sk-12345678", text) == set()


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("the password is", True),
        ("(password)", True),
        ("password_reset", False),
        ("a-password", False),
        ("passwords", False),
        ("pass word", False),
    ],
)
def test_a_word_is_found_where_it_stands_as_one(text: str, is_found: bool) -> None:
    assert bool(covered("password", text)) is is_found


def test_each_usual_way_is_written_out() -> None:
    assert literally('a"b/12') >= {'a"b/12', 'a\\"b/12', "a%22b%2F12", "YSJiLzEy"}


@pytest.mark.parametrize(
    "written",
    [
        "[115, 107, 45, 49, 50, 51, 52, 53, 54, 55, 56]",
        "\\163\\153\\55\\61\\62\\63\\64\\65\\66\\67\\70",
        base64.b32encode(b"sk-12345678").decode(),
        base64.b85encode(b"sk-12345678").decode(),
        base64.b64encode("sk-12345678".encode("utf-16-le")).decode(),
        "00000000: 736b 2d31 3233 3435  sk-12345\n00000008: 3637 38              678",
        "87654321-ks",
    ],
)
def test_the_security_policy_says_of_these_that_they_are_not_found(written: str) -> None:
    assert covered("sk-12345678", written) == set()
