"""The output folder of a command, to which only one process writes at a time."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ci_eval.records.errors import UsageError
from ci_eval.run_files.file_names import LOCK_FILE, make_report_folder
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
    import fcntl

    is_new = not folder.is_dir()
    make_report_folder(folder)
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            message = f"another ci-eval process is writing to {folder}"
            hint = "wait until it ends, or name another folder with --out"
            raise UsageError(message, hint=hint) from exc
        except OSError:
            pass  # the file system has no locks
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)
            with suppress(OSError):  # an agent may have removed it
                if is_new and [each.name for each in folder.iterdir()] == [".gitignore"]:
                    shutil.rmtree(folder)
