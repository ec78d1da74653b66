"""What is fetched is bounded, unpacked as it comes, and gone with who asked for it."""

import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.records.errors import UsageError
from ci_eval.runtime.storage import downloads
from ci_eval.runtime.storage.downloads import Bounded, Copy
from ci_eval.runtime.storage.gs_uri import Place


def written(data: bytes, encoding: str, size: int) -> bytes:
    """Return the stored part of `data`, which arrives in pieces."""
    kept = io.BytesIO()
    bounded = Bounded(kept, encoding, "gs://b/x")
    for start in range(0, len(data), size):
        assert bounded.write(data[start : start + size]) == len(data[start : start + size])
    return kept.getvalue()


@given(st.binary(max_size=500), st.integers(0, 900), st.integers(5, 70), st.integers(9, 50))
def test_whatever_comes_in_pieces_is_whole(data, many, size, chunk):
    data += b"x" * many
    twice = gzip.compress(data) + gzip.compress(data)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(downloads, "_CHUNK", chunk)

        assert written(data, "", size) == data
        assert written(gzip.compress(data), "gzip", size) == data
        assert written(twice, "gzip", size) == data + data


@given(st.integers(0, 3000))
def test_the_bound_holds_for_what_is_unpacked(size):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(downloads, "MAX_OBJECT", 1000)
        for data, encoding in ((b"x" * size, ""), (gzip.compress(b"x" * size), "gzip")):
            if size <= 1000:
                assert len(written(data, encoding, 100)) == size
            else:
                with pytest.raises(UsageError, match=r"^gs://b/x: is larger than"):
                    written(data, encoding, 100)


def test_a_copy_of_nothing_has_a_name_and_no_file():
    copy = Copy(Place("b", "shop/new.evalset.json"), 0)

    assert copy.path.name == "new.evalset.json"
    assert not copy.path.exists()
    assert copy.path.parent.is_dir()


def test_two_copies_of_one_name_do_not_meet():
    one, other = (Copy(Place("b", f"{folder}/x.json"), 1) for folder in "ab")
    one.path.write_text("1")

    assert not other.path.exists()
    folder = Path(one.path.parent)
    del one
    assert not folder.exists()
