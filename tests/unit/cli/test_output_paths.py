"""Folders that one process writes to at a time."""

import fcntl

import pytest

from ci_eval.cli.output_paths import only_writer, refuse_recording
from ci_eval.records.errors import UsageError
from ci_eval.runtime import path_checks


def test_a_lock_file_that_its_holder_removed_is_no_lock(tmp_path, monkeypatch):
    folder = tmp_path / "out"
    real, waited = fcntl.flock, []

    def flock(file, flags):
        # Between opening the file and locking it, its holder removes it and ends.
        if not waited:
            waited.append((folder / ".lock").unlink())
        real(file, flags)

    monkeypatch.setattr(fcntl, "flock", flock)
    refused = pytest.raises(UsageError, match="another ci-eval process is writing to")
    with only_writer(folder), refused, only_writer(folder):
        pass
    assert waited


def test_the_target_of_a_link_is_checked_like_any_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(path_checks, "belongs_to_agents", lambda path: path.name == "theirs")
    (tmp_path / "tape.jsonl").symlink_to("theirs/tape.jsonl")

    with pytest.raises(UsageError, match="is in a folder created by an agent"):
        refuse_recording("tape.jsonl")
