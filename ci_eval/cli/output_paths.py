"""Output paths: folders that one process writes to at a time, and files of one kind."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ci_eval.records.errors import UsageError
from ci_eval.run_files.file_names import LOCK_FILE, make_report_folder
from ci_eval.run_files.journal import is_recording
from ci_eval.run_files.shard_files import read_plan
from ci_eval.runtime.path_checks import refuse_file, refuse_links_out


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Create an output folder, and keep other processes from writing to it.

    A new folder is removed again if nothing was written.  The system releases the lock of a
    killed process.  On Windows nothing is locked.

    Raises:
        UsageError: the path is invalid, or another process is writing to it.

    """
    lock = folder / LOCK_FILE
    refuse_links_out(str(folder), str(lock))
    refuse_file(str(folder))
    if sys.platform == "win32":
        yield
        return
    is_new = not folder.is_dir()
    make_report_folder(folder)
    try:
        file = _locked(lock)
    except BlockingIOError as exc:
        message = f"another ci-eval process is writing to {folder}"
        hint = "wait until it ends, or name another folder with --out"
        raise UsageError(message, hint=hint) from exc
    with file:
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)
            with suppress(OSError):  # an agent may have removed it
                if is_new and [each.name for each in folder.iterdir()] == [".gitignore"]:
                    shutil.rmtree(folder)


def _locked(path: Path) -> IO[str]:
    """Open a lock file, with the lock held.

    Raises:
        BlockingIOError: another process holds it.

    """
    if sys.platform == "win32":
        return path.open("a")
    import fcntl

    while True:
        file = path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise
        except OSError:
            return file  # the file system has no locks
        # Another process may have removed the file before it released the lock.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()


def refuse_recording(given: str | None) -> None:
    """Reject an output path for traces that is redirected, or holds something else.

    Raises:
        UsageError: it leads out of the repository, or the file there is no recording.

    """
    refuse_links_out(given)
    if given:
        refuse_links_out(str(Path(given).resolve()))  # the target of a link is written
    if given and _has_content(given) and not is_recording(Path(given)):
        raise _refusal(given, "recording")


def refuse_plan(given: str | None) -> None:
    """Reject an output path for a plan that is redirected, or holds something else.

    Raises:
        UsageError: it leads out of the repository, or the file there is no plan.

    """
    refuse_links_out(given)
    if given and _has_content(given):
        try:
            read_plan(Path(given), shown=given)
        except UsageError as exc:
            raise _refusal(given, "plan of shards") from exc


def _has_content(given: str) -> bool:
    """Return True if there is a file that is not empty.

    Raises:
        UsageError: it is a folder, or a device or a pipe, which a file would replace.

    """
    path = Path(given)
    if path.exists() and not path.is_file():
        raise UsageError("is not a file", file=given, hint="name another file")
    return path.is_file() and path.stat().st_size > 0


def _refusal(given: str, kind: str) -> UsageError:
    message = f"exists, but is not a {kind}, so it is not overwritten"
    return UsageError(message, file=given, hint="name another file, or remove this one")
