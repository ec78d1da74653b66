"""Invent texts, tool calls and turns for `make_adk_vectors.py` to have ADK evaluate.

Everything is drawn from the generator that is passed in, and is the same for the same one.
"""

# The texts are there for their characters, and the generators that come in are seeded.
# ruff: noqa: RUF001  # texts in many scripts are what it is made of

import json
import random
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Final

Json = dict[str, Any]

# --- texts ---------------------------------------------------------------------------------

SENTENCES: Final = (
    "Your refund of 42.50 USD was issued on Monday and arrives within 3 days.",
    "I could not find any flights, but two trains are running tomorrow morning.",
    "The meeting's been moved; nobody's answering, so don't wait for us!",
    "Skies are clearing: the innings continued, and the dying wind succeeded nothing.",
    "Order #A-1029 (status: SHIPPED) is on its way to 12 Baker Street.",
    "Generally speaking, relational databases are carefully organized collections.",
    "Die Straße zum Bahnhof ist wegen Überschwemmung gesperrt.",
    "Où est passée ma commande ? Elle était déjà payée, c’est étrange.",
    "El niño pidió un café con leche y una piña pequeña.",
    "Zażółć gęślą jaźń, a potem wyślij paczkę do Łodzi.",
    "İstanbul'da hava ılık, IŞIK açık ve trafik yoğun.",
    "Hôm nay trời đẹp, chúng tôi đã đặt hai vé tàu.",
    "Příliš žluťoučký kůň čeká na zpoždění vlaku.",
    "Ваш заказ отправлен вчера и прибудет в среду.",
    "Η παραγγελία σας έφτασε στην Αθήνα σήμερα.",
    "تم إرسال طلبك أمس وسيصل يوم الأربعاء.",
    "ההזמנה שלך נשלחה אתמול ותגיע מחר.",
    "आपका ऑर्डर कल भेजा गया था और बुधवार को पहुँचेगा।",
    "உங்கள் பொருள் நாளை வந்து சேரும்.",
    "東京の天気は晴れ、気温は20度です。",
    "カード・ローンの申し込みはキャンセルされました。",
    "您的订单已于昨天发货，预计星期三送达。",
    "주문하신 상품은 어제 발송되었고 내일 도착합니다.",
    "พัสดุของคุณถูกส่งแล้วเมื่อวานนี้ ราคา ฿๒๕๐",
    "ສິນຄ້າຂອງທ່ານມາຮອດແລ້ວ",
    "ទំនិញរបស់អ្នកនឹងមកដល់ថ្ងៃស្អែក",
    "သင့်ပစ္စည်း မနက်ဖြန် ရောက်ပါမည်",
)

SCRAPS: Final = (
    *("", " ", "\n", "\t", "?!", "…", "---", "_", "__init__", "a_b", "x-y", "O'Neil", "it’s"),
    *("👍", "👩‍🚀", "🇫🇷", "1️⃣", "\u200b", "\u00ad", "\ufeff", "\u3000", "\u2028", "\x1c"),
    *("½", "①", "Ⅷ", "ﬁne", "ﬀ", "ｆｕｌｌ　ｗｉｄｔｈ", "㈱", "㍿", "ℌ", "K", "Å", "İ", "ß", "ŉ"),
    *(
        "e\u0301",
        "\u0301",
        "ก\u0301",
        "aกb",
        "ก1",
        "中a",
        "a中",
        "・",
        "〜",
        "々",
        "〇",
        "〆",
        "豈",
    ),
    *("\U00020000", "\U0001d400", "ཀ", "ᠮ", "ꯀ", "\u0e3f", "๏", "ໆ", "។", "\u1040", "\ud7b0"),
    *("3.14", "1,000", "10%", "$5", "x²", "H₂O", "http://a.example/b?c=1", "**bold**", "`code`"),
)

SUFFIXES: Final = (
    *("s", "es", "ed", "ing", "ly", "ies", "ied", "y", "er", "ers", "ational", "ization", "ness"),
    *("fulness", "ity", "ive", "able", "ment", "ement", "ion", "alli", "logy", "fully", "e", "ll"),
)


def _inflected(rng: random.Random, text: str) -> str:
    """Give some words another English ending."""
    words = [
        word.rstrip(".,!s") + rng.choice(SUFFIXES) if rng.random() < 0.4 else word
        for word in text.split()
    ]
    return " ".join(words)


def _mixed_up(rng: random.Random, text: str) -> str:
    """Shuffle, drop and repeat words."""
    words = text.split(" ")
    rng.shuffle(words)
    return " ".join(word for word in words for _ in range(rng.choice((0, 1, 1, 1, 2))))


def _sprinkled(rng: random.Random, text: str) -> str:
    """Insert scraps anywhere, inside words as well."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice(SCRAPS) + text[at:]
    return text


def _cut(rng: random.Random, text: str) -> str:
    """Keep a part that begins and ends anywhere, even within a cluster of marks."""
    start, end = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
    return text[start:end]


def _wide(_: random.Random, text: str) -> str:
    """Write ASCII letters in their full-width forms."""
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


CHANGES: Final[Mapping[str, Callable[[random.Random, str], str]]] = {
    "same": lambda _, text: text,
    "upper": lambda _, text: text.upper(),
    "lower": lambda _, text: text.lower(),
    "decomposed": lambda _, text: unicodedata.normalize("NFD", text),
    "compatible": lambda _, text: unicodedata.normalize("NFKD", text),
    "spaceless": lambda _, text: "".join(text.split()),
    "markdown": lambda _, text: f"## **{text}**\n\n* `{text[:9]}`",
    "other": lambda rng, _: rng.choice(SENTENCES),
    "longer": lambda rng, text: f"{text} {rng.choice(SENTENCES)}",
    "long": lambda rng, text: " ".join([text] * rng.randint(4, 9)),
    "random": lambda rng, _: "".join(_any_char(rng) for _ in range(rng.randint(1, 24))),
    "scraps": lambda rng, _: " ".join(rng.choices(SCRAPS, k=rng.randint(1, 6))),
    "empty": lambda rng, _: rng.choice(("", " ", "\n\n", ".", "👍")),
    "inflected": _inflected,
    "mixed_up": _mixed_up,
    "sprinkled": _sprinkled,
    "cut": _cut,
    "wide": _wide,
}


def _any_char(rng: random.Random) -> str:
    """Pick a character: often a near one, sometimes any that UTF-8 can carry."""
    code = rng.choice((rng.randrange(0x20, 0x3100), rng.randrange(0x20, 0x100)))
    if rng.random() < 0.1:
        code = rng.choice((rng.randrange(0x3100, 0xD800), rng.randrange(0xE000, 0x110000)))
    # Characters that are younger are letters to some versions of Python and nothing to others.
    known = unicodedata.ucd_3_2_0.category(chr(code)) != "Cn"
    return chr(code) if known else "?"


def text_pair(rng: random.Random, change: str) -> tuple[str, str]:
    """Make a candidate and its reference, either of which may be the changed one."""
    text = rng.choice(SENTENCES)
    if rng.random() < 0.2:
        text = f"{text} {rng.choice(SENTENCES)}"
    changed = CHANGES[change](rng, text)
    if rng.random() < 0.15:
        changed = CHANGES[rng.choice(sorted(CHANGES))](rng, changed)
    return (changed, text) if rng.random() < 0.7 else (text, changed)


# --- tool calls ----------------------------------------------------------------------------

TOOLS: Final = ("find_train", "book_seat", "refund", "weather_at", "Weather_At", "notify", "søg")

NO_ARGS: Final = "no args key"

# Values in one row are equal or nearly so: to Python, to JSON, or to the eye.
VALUES: Final[tuple[tuple[Any, ...], ...]] = (
    (1, 1.0, True, "1", "1.0", [1], 2),
    (0, 0.0, -0.0, False, None, "", [], {}),
    (0.3, 0.1 + 0.2, "0.3"),
    (2**70, float(2**70), 2**70 + 1, 1e22, 10**22),
    ("Łódź", "Lodz", "łódź", unicodedata.normalize("NFD", "Łódź"), "Łódź "),
    ([1, 2], [2, 1], [1.0, 2.0], [1, 2, 2], {"0": 1, "1": 2}),
    ({"a": 1, "b": {"c": [None]}}, {"b": {"c": [None]}, "a": 1.0}, {"b": {"c": []}, "a": 1}),
    ({"x": None}, {}, {"x": False}),
    ("2026-01-31", "2026-1-31", "31.01.2026"),
)


def _args(rng: random.Random) -> Any:
    """Make the arguments of a call: absent, null, empty or some."""
    if rng.random() < 0.3:
        return rng.choice((NO_ARGS, None, {}, {}))
    keys = rng.sample(("city", "count", "when", "opts", "userContent"), rng.randint(1, 3))
    return {key: rng.choice(rng.choice(VALUES)) for key in keys}


def tool_call(rng: random.Random) -> Json:
    """Make a tool call."""
    call: Json = {"name": rng.choice(TOOLS)}
    if rng.random() < 0.03:
        del call["name"]
    if rng.random() < 0.2:
        call["id"] = f"fc-{rng.randint(1, 99)}"
    args = _args(rng)
    if args != NO_ARGS:
        call["args"] = args
    return call


def _near(rng: random.Random, call: Json) -> Json:
    """Change one thing of a call, often to something that Python holds equal."""
    call = json.loads(json.dumps(call))
    args = call.get("args")
    kind = rng.choice(("value", "value", "value", "order", "none", "key", "name", "id"))
    if kind == "name":
        call["name"] = rng.choice(TOOLS)
    elif kind == "id":
        call["id"] = f"other-{rng.randint(1, 99)}"
    elif kind == "none" or not args:
        call.pop("args", None)
        other: Any = rng.choice((NO_ARGS, None, {}))
        call |= {} if other == NO_ARGS else {"args": other}
    elif kind == "order":
        call["args"] = dict(reversed(args.items()))
    elif kind == "key":
        args[rng.choice(("extra", *args))] = None
    else:
        key = rng.choice(list(args))
        row = next((row for row in VALUES if args[key] in row), VALUES[0])
        args[key] = rng.choice(row)
    return call


def changed_calls(rng: random.Random, calls: list[Json], change: str) -> list[Json]:
    """Make the actual calls from the expected ones."""
    actual = list(calls)
    at = rng.randint(0, len(actual))
    if change == "reversed":
        actual.reverse()
    elif change == "shuffled":
        rng.shuffle(actual)
    elif change == "extra":
        actual[at:at] = [tool_call(rng) for _ in range(rng.randint(1, 2))]
    elif change == "repeated":
        actual[at:at] = actual[at - 1 : at]
    elif change == "missing":
        del actual[at : at + rng.randint(1, 2)]
    elif change == "none":
        actual = []
    elif change == "other":
        actual = [tool_call(rng) for _ in range(rng.randint(0, 3))]
    elif change == "near" and actual:
        at = min(at, len(actual) - 1)
        actual[at] = _near(rng, actual[at])
    return actual


CALL_CHANGES: Final = (
    *("same", "reversed", "shuffled", "extra", "repeated", "missing", "none", "other"),
    *("near", "near", "near", "near"),
)

# --- invocations ---------------------------------------------------------------------------

# What must keep its keys as they are: it belongs to the tools, not to ADK.
OPAQUE: Final = ("args", "response")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def spelled(rng: random.Random, value: Any, camel: float) -> Any:
    """Write keys in camelCase, each with the chance given."""
    if isinstance(value, list):
        return [spelled(rng, item, camel) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        _camel(key) if rng.random() < camel else key: (
            item if key in OPAQUE else spelled(rng, item, camel)
        )
        for key, item in value.items()
    }


def _events(rng: random.Random, calls: list[Json]) -> list[Json]:
    """Spread calls over events, among texts, results and events without content."""
    events: list[Json] = []
    rest = list(calls)
    while rest or rng.random() < 0.3:
        count = rng.choice((0, 1, 1, 2))
        parts: list[Json] = [{"function_call": call} for call in rest[:count]]
        rest = rest[count:]
        if rng.random() < 0.3:
            parts.insert(rng.randint(0, len(parts)), {"text": rng.choice(SCRAPS)})
        if rng.random() < 0.2:
            parts.append({"function_response": {"name": "refund", "response": {"is_ok": True}}})
        content: Json | None = {"role": "model", "parts": parts}
        if not parts:
            content = rng.choice((None, {"role": "model"}, {"parts": []}))
        events.append({"author": rng.choice(("root", "helper", "user")), "content": content})
    return events


def _content(rng: random.Random, text: str) -> Json | None:
    """Make a final response whose text is wholly or partly the one given."""
    kind = rng.choice(("one",) * 5 + ("two", "thought", "call", "no parts", "null"))
    parts: list[Json] = [{"text": text}]
    if kind == "two":
        at = rng.randint(0, len(text))
        parts = [{"text": text[:at]}, {"text": ""}, {"text": text[at:]}]
    elif kind == "thought":
        parts.insert(0, {"text": "Let me think about refunds.", "thought": True})
    elif kind == "call":
        parts.append({"function_call": {"name": "notify", "args": {}}})
    elif kind == "null":
        return None
    return {"role": "model"} if kind == "no parts" else {"role": "model", "parts": parts}


def invocation(rng: random.Random, calls: list[Json], text: str | None) -> Json:
    """Make an invocation around tool calls and a final text, or none."""
    turn: Json = {"user_content": {"parts": [{"text": "Hi"}]}}
    if text is not None:
        turn["final_response"] = _content(rng, text)
    if rng.random() < 0.5:
        turn["intermediate_data"] = {"invocation_events": _events(rng, calls)}
    elif calls:
        turn["intermediate_data"] = {"tool_uses": calls}
    elif rng.random() < 0.7:
        turn["intermediate_data"] = rng.choice(({}, None, {"tool_uses": []}))
    if rng.random() < 0.2:
        turn["invocation_id"] = f"turn-{rng.randint(1, 9)}"
    spelling: Json = spelled(rng, turn, rng.choice((0.0, 0.0, 1.0, 1.0, 0.5)))
    return spelling


USAGE: Final = (
    *("prompt_token_count", "candidates_token_count", "thoughts_token_count"),
    *("cached_content_token_count", "tool_use_prompt_token_count", "total_token_count"),
)


def measured_invocation(rng: random.Random) -> Json:
    """Make a turn that carries token counts, model versions and durations, or only some."""
    calls = [tool_call(rng) for _ in range(rng.randint(0, 3))]
    turn: Json = {"user_content": {"parts": [{"text": "Hi"}]}}
    if rng.random() < 0.75:
        events = _events(rng, calls)
        for event in events:
            if rng.random() < 0.6:
                counts = rng.sample(USAGE, rng.randint(0, len(USAGE)))
                event["usage_metadata"] = {key: rng.choice((0, 7, 130, 2048)) for key in counts}
            if rng.random() < 0.4:
                event["model_version"] = rng.choice(("model-a", "", None))
        turn["intermediate_data"] = {"invocation_events": events}
    elif rng.random() < 0.6:
        turn["intermediate_data"] = {"tool_uses": calls}
    for key, most in (("duration", 9.0), ("model_duration", 5.0), ("tool_duration", 5.0)):
        if rng.random() < 0.75:
            turn[key] = rng.choice((0.0, 1, rng.uniform(0.0, most)))
    spelling: Json = spelled(rng, turn, rng.choice((0.0, 1.0, 0.5)))
    return spelling
