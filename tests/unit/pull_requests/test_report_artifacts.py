"""What an artifact of a stranger may hold, and that it never does more than take up room."""

import io
import json
import struct
import warnings
import zipfile
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from servers.github import zipped
from support.report_language import make_report

from ci_eval.pull_requests import report_artifacts
from ci_eval.pull_requests.report_artifacts import (
    LIMITS,
    MAX_GROUPS,
    MAX_JOB,
    MAX_MEMBERS,
    MAX_WORST,
    read,
)
from ci_eval.records.errors import UsageError
from ci_eval.reporters.markdown import Markdown
from ci_eval.run_files.report_file import report_in

REPORT = make_report("greets pass 0.9 / refunds fail 0.2 was 0.9")
TEXT = REPORT.model_dump_json().encode()
WHOLE = zipped({"report.json": TEXT})


def refused(archive: bytes) -> str:
    """Return why an archive is refused."""
    with pytest.raises(UsageError) as caught:
        read(archive, "artifact")
    return str(caught.value)


def changed(**more: Any) -> Any:
    return {**json.loads(TEXT), **more}


def packed(value: Any) -> bytes:
    return zipped({"report.json": json.dumps(value).encode()})


def test_a_report_is_read_and_nothing_else(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    others = {
        "../evil": b"x",
        "/etc/cron.d/evil": b"x",
        "..\\report.json": b"x",
        "deep/report.json": b"x",
        "comment.md": b"<img src=x>",
    }
    assert read(zipped({**others, "report.json": TEXT}), "artifact") == REPORT
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["../report.json", "/report.json", "a/report.json", "report.json/"]
)
def test_a_report_lies_at_the_top(name: str) -> None:
    assert "expected one report.json at its top level, found 0" in refused(zipped({name: TEXT}))


def test_two_reports_are_none() -> None:
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w") as archive:
        warnings.simplefilter("ignore", UserWarning)
        archive.writestr("report.json", TEXT)
        archive.writestr("report.json", TEXT)
    assert "found 2" in refused(file.getvalue())


def test_a_bomb_is_not_unpacked_beyond_the_limit() -> None:
    bomb = zipped({"report.json": b" " * (LIMITS.text + 1)})
    assert len(bomb) < LIMITS.text / 500
    assert "is larger than 16 MiB" in refused(bomb)


def test_a_size_that_is_claimed_is_not_believed() -> None:
    # The size in the directory, and in the head of the file.
    size = struct.pack("<I", len(TEXT))
    assert WHOLE.count(size) >= 2
    assert "is larger than 16 MiB" in refused(WHOLE.replace(size, struct.pack("<I", 1 << 30)))
    assert "is no" in refused(WHOLE.replace(size, struct.pack("<I", 100)))


@pytest.mark.slow
def test_a_size_that_is_claimed_is_not_unfolded_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sizes lie: 64 MiB call themselves one KiB."""
    asked: list[int] = []
    take = zipfile.ZipExtFile.read

    def reading(file: zipfile.ZipExtFile, most: int | None = -1) -> bytes:
        asked.append(most or -1)
        return take(file, most)

    monkeypatch.setattr(zipfile.ZipExtFile, "read", reading)
    bomb = zipped({"report.json": b" " * (1 << 26)})
    lying = bomb.replace(struct.pack("<I", 1 << 26), struct.pack("<I", 1024))
    assert "is no" in refused(lying)
    assert asked == [LIMITS.text + 1]


def test_an_archive_of_very_many_files_is_refused_before_it_is_listed() -> None:
    many = {f"{number}": b"" for number in range(MAX_MEMBERS)}
    assert "contains more than 1,000 files" in refused(zipped({**many, "report.json": TEXT}))


def test_what_is_encrypted_or_packed_otherwise_is_refused() -> None:
    at = WHOLE.rindex(b"PK\1\2")
    encrypted = WHOLE[: at + 8] + b"\1\0" + WHOLE[at + 10 :]
    assert "uses a compression or encryption that GitHub never uses" in refused(encrypted)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("report.json", TEXT)
    assert "uses a compression or encryption that GitHub never uses" in refused(file.getvalue())


@given(st.binary(max_size=300))
def test_no_bytes_are_a_bug(data: bytes) -> None:
    refused(data)


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
def test_no_changed_byte_is_a_bug(at: int, byte: int) -> None:
    with suppress(UsageError):
        read(WHOLE[:at] + bytes([byte]) + WHOLE[at + 1 :], "artifact")


# --- Reports ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"\xff", "byte 0xff is not UTF-8"),
        (b"{", "is not JSON"),
        (b"[]", "is not a report of ci-eval"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"verdict": NaN}', "NaN is not a number"),
        (b'{"verdict": {}}', "has schema version"),
    ],
)
def test_what_is_no_report_is_refused_with_its_place(text: bytes, said: str) -> None:
    found = refused(zipped({"report.json": text}))
    assert found.startswith("artifact/report.json")
    assert said in found


def test_a_report_of_a_newer_version_is_refused() -> None:
    assert "this version of ci-eval reads 1" in refused(packed(changed(schema_version=2)))


def test_what_is_missing_is_named() -> None:
    value = changed()
    del value["meta"]["suite"], value["totals"]
    said = refused(packed(value))
    assert "'suite' is missing" in said
    assert "'totals' is missing" in said


@pytest.mark.slow
def test_too_many_groups_are_refused() -> None:
    group = changed()["groups"][0]
    assert f"groups: is longer than {MAX_GROUPS:,}" in refused(
        packed(changed(groups=[group] * 10_000))
    )


@pytest.mark.parametrize(("where", "most"), [("meta.job", MAX_JOB), ("worst", MAX_WORST)])
def test_what_would_fill_a_comment_with_noise_is_refused(where: str, most: int) -> None:
    value = changed()
    value["meta"]["job"] = "x" * most if where == "meta.job" else ""
    value["worst"] = [value["worst"][0]] * (most if where == "worst" else 0)
    read(packed(value), "artifact")
    if where == "worst":
        value["worst"] += value["worst"][:1]
    else:
        value["meta"]["job"] += "x"
    assert f"{where}: is longer than {most}" in refused(packed(value))


@pytest.mark.slow
def test_more_entries_or_values_than_any_report_has_are_refused() -> None:
    assert "has 20,001 entries" in refused(packed(changed(history=[1] * 20_001)))
    lists = [[1] * 200] * 2_600
    assert "contains more than 500,000 values" in refused(packed(changed(more=lists)))


@pytest.mark.parametrize("name", ["", "x" * 101])
def test_a_suite_has_a_name_as_in_a_configuration(name: str) -> None:
    value = changed()
    value["meta"]["suite"] = name
    assert "expected 1 to 100 characters" in refused(packed(value))


def test_a_number_beyond_all_measure_is_refused() -> None:
    value = changed()
    value["totals"]["passed"] = 10**200
    assert "totals.passed: the number is out of range" in refused(packed(value))


@pytest.mark.parametrize(
    ("totals", "reasons"),
    [
        ({"cases": 0, "passed": 0}, []),
        ({"cases": 1, "passed": 0, "skipped": 1}, []),
        ({"cases": 1, "passed": 2}, []),
        ({"cases": 1, "passed": 1}, [{"severity": "blocks", "message": "got worse"}]),
        ({"cases": 1, "passed": 1}, [{"severity": "incomplete", "message": "is missing"}]),
    ],
)
def test_a_verdict_that_no_gate_comes_to_is_refused(totals: Any, reasons: Any) -> None:
    value = changed(
        totals=totals, verdict={"outcome": "passed", "mode": "threshold", "reasons": reasons}
    )
    assert "is inconsistent and cannot be shown" in refused(packed(value))


def test_a_count_below_nothing_is_refused() -> None:
    value = changed(totals={"cases": 1, "passed": 2, "failed": -1})
    assert "totals.failed: must be at least 0, found -1" in refused(packed(value))


def test_a_gate_may_let_failures_and_accepted_drops_pass() -> None:
    warned = [{"severity": "warns", "message": "got worse"}]
    verdict = {"outcome": "passed", "mode": "threshold", "reasons": warned}
    for totals in ({"cases": 2, "failed": 2}, {"cases": 1, "skipped": 1, "accepted": 1}):
        found = read(packed(changed(totals=totals, verdict=verdict)), "artifact")
        assert found.verdict.outcome == "passed"


def test_a_cost_below_nothing_is_refused() -> None:
    value = changed(judging={"calls": 1, "cost_usd": -1.0})
    assert "judging.cost_usd: must be at least 0, found -1.0" in refused(packed(value))


def test_a_report_that_cannot_be_shown_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def body(*_: object) -> str:
        raise LookupError("a criterion that is not described")

    monkeypatch.setattr(Markdown, "body", body)
    assert "is inconsistent and cannot be shown" in refused(packed(changed()))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
)


@given(st.data())
def test_a_report_with_any_other_value_anywhere_is_shown_or_refused(data: st.DataObject) -> None:
    value: Any = changed()
    at = value
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = data.draw(st.sampled_from(keys))
        if not (isinstance(at[key], dict | list) and at[key] and data.draw(st.booleans())):
            at[key] = data.draw(VALUES)
            break
        at = at[key]
    with suppress(UsageError):
        report_artifacts.checked(report_in(json.dumps(value), shown="r", limits=LIMITS), "r")
