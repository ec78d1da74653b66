"""Addresses of objects, and patterns for several."""

import re
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.records.errors import UsageError
from ci_eval.runtime.storage.gs_uri import Place, fits_object, has_pattern, is_place, literal


def test_an_address_is_a_bucket_and_a_name():
    place = Place.parse("gs://my-bucket.eu/shop/evals/a b.json")

    assert place == ("my-bucket.eu", "shop/evals/a b.json")
    assert str(place) == "gs://my-bucket.eu/shop/evals/a b.json"
    assert Place.parse("gs://bucket") == Place.parse("gs://bucket/") == ("bucket", "")


@pytest.mark.parametrize(
    "text", ["gs://", "gs:///a", "gs://Bucket/a", "gs://a_b-/x", "s3://b/a", "gs:/b/a", "b/a"]
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(UsageError, match=f"^{re.escape(text)}: is not an address of Cloud Storage"):
        Place.parse(text)


@pytest.mark.parametrize("name", ["a\nb", "a\x00", "\x1b[2J", "x" * 1025, "é" * 513])
def test_names_that_no_object_has_are_refused(name):
    with pytest.raises(UsageError, match="is not a valid object name"):
        Place.parse(f"gs://bucket/{name}")


def test_a_path_of_this_machine_is_no_address():
    assert is_place("gs://b/a")
    assert not is_place("gs/b/a.json")


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("shop/smoke.evalset.json", "smoke.evalset.json"),
        ("a/..", "object"),
        ("a/.hidden", "hidden"),
        ("a/", "object"),
        ("a\\b:c.json", "a_b_c.json"),
        ("é ü.yaml", "é_ü.yaml"),
        ("y" * 300 + ".jsonl", "y" * 144 + ".jsonl"),
    ],
)
def test_a_copy_has_a_harmless_name_with_the_same_suffix(name, called):
    assert Place("b", name).file_name == called


@pytest.mark.parametrize(
    ("name", "pattern", "fitting"),
    [
        ("shop/a.json", "shop/*.json", True),
        ("shop/deep/a.json", "shop/*.json", False),
        ("shop/deep/a.json", "shop/**/*.json", True),
        ("shop/a.json", "shop/**/*.json", True),
        ("shop/a.json", "**", True),
        ("a/b/c/d", "a/**/d", True),
        ("a/b/c/d", "a/**/c", False),
        ("shop", "shop/**", True),
        ("shop/a.json", "shop/[ab].json", True),
        ("shop/c.json", "shop/[ab].json", False),
        ("shop/c.json", "sho?/?.json", True),
        ("Shop/c.json", "shop/*", False),
    ],
)
def test_a_star_stays_within_a_folder_and_two_do_not(name, pattern, fitting):
    assert fits_object(name, pattern) is fitting


PARTS = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=4)


@given(PARTS, st.lists(st.sampled_from(["a", "b", "*", "a*", "?", "**"]), min_size=1, max_size=4))
def test_a_pattern_fits_what_it_fits_part_by_part(parts, steps):
    def fitting(left: list[str], wanted: list[str]) -> bool:
        if not wanted:
            return not left
        if wanted[0] == "**":
            return fitting(left, wanted[1:]) or bool(left and fitting(left[1:], wanted))
        return bool(left) and fnmatchcase(left[0], wanted[0]) and fitting(left[1:], wanted[1:])

    assert fits_object("/".join(parts), "/".join(steps)) is fitting(parts, steps)


@given(PARTS, PARTS)
def test_what_fits_begins_with_what_is_literal(parts, steps):
    name, pattern = "/".join(parts), "/".join([*steps, "*"])

    assert has_pattern(pattern)
    assert not has_pattern(name)
    assert literal(pattern) == "/".join([*steps, ""])
    assert not fits_object(name, pattern) or name.startswith(literal(pattern))


def test_many_stars_take_no_time():
    assert not fits_object("/".join("a" * 300), "/".join(["**"] * 300 + ["b"]))
