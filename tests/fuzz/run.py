"""Fuzz the readers of files, or replay what fuzzing has found.

    python tests/fuzz/run.py                      an hour, shared among all targets
    python tests/fuzz/run.py --seconds 600 run    ten minutes for one target
    python tests/fuzz/run.py --replay             the corpus once, without atheris
    python tests/fuzz/run.py --replay baseline FILE…   some files through one target

Needs atheris (`.ci/requirements-fuzz.txt`), but for `--replay`.  Each target runs in a process of
its own, in which an input may take 10 seconds and 500 MB.  What ends it is written to
`tests/fuzz/found/` and named; mend the product, move the file to `tests/fuzz/corpus/TARGET/`,
and it is replayed with the tests from then on.
"""

import argparse
import io
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]
CORPUS = HERE / "corpus"
FOUND = HERE / "found"
MAX_LENGTH = 50_000
"""The longest input, in bytes."""
TIMEOUT_S, RSS_LIMIT_MB = 10, 500
MOST_INPUTS = 3000
"""How many inputs one process takes: what atheris keeps of each counts as memory, too."""
_DONE = re.compile(r"^#(\d+)\s+DONE\s+cov: ", re.MULTILINE)
"""How libFuzzer ends if it saw which lines ran."""


def main() -> int:
    """Run what the arguments ask for, and return how it ended."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--seconds", type=int, default=3600, help="for all targets together")
    asked.add_argument("--jobs", type=int, default=1, help="so many targets at once")
    asked.add_argument("--seed", type=int, default=0, help="of chance; 0: another one each time")
    asked.add_argument("--replay", action="store_true", help="run the corpus once")
    asked.add_argument("targets", nargs="*", metavar="TARGET")
    options = asked.parse_args()
    # Importing the targets comes later: atheris has to watch.
    targets = sorted(each.name for each in CORPUS.iterdir())
    given = [Path(each) for each in options.targets if each not in targets]
    names = [each for each in options.targets if each in targets] or targets
    if options.replay:
        return _replay(names, given)
    if given:
        asked.error(f"no target is called {given[0]}: there are {', '.join(targets)}")
    seconds = max(1, options.seconds // len(names))
    failed = _fuzz(names, seconds, options.jobs, options.seed)
    print(f"{len(names)} targets, found something in: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def _replay(names: list[str], given: list[Path]) -> int:
    for name in names:
        files = given or sorted((CORPUS / name).iterdir())
        for file in files:
            replay(name, file.read_bytes())
        print(f"{name}: {len(files)} inputs")
    return 0


def replay(name: str, data: bytes) -> None:
    """Run one input through the target `name`."""
    from fuzz.targets import TARGETS, attempt, name_of

    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / name_of(name)
        path.write_bytes(data)
        attempt(TARGETS[name], path)


def _fuzz(names: list[str], seconds: int, jobs: int, seed: int) -> list[str]:
    """Fuzz targets, `jobs` at once and each for so long; return those where something was found.

    Every process is forked from this one, as importing with atheris takes longer than many a target
    is fuzzed for.
    """
    import atheris

    with redirect_stderr(io.StringIO()), atheris.instrument_imports(include=["ci_eval"]):
        import fuzz.targets  # noqa: F401 - forked processes use it
    waiting = [_Fuzzing(name, seconds, seed) for name in names]
    running: dict[int, _Fuzzing] = {}
    failed = []
    while waiting or running:
        while waiting and len(running) < jobs:
            begun = waiting.pop(0)
            running[begun.fork()] = begun
        child, status = os.wait()
        ended = running.pop(child)
        if not ended.is_good(os.waitstatus_to_exitcode(status)):
            failed.append(ended.name)
        elif ended.left:
            waiting.insert(0, ended)
        else:
            done = f"{ended.inputs:,} inputs in {seconds} s"
            print(f"{ended.name}: {done}, nothing found", flush=True)
    return failed


@dataclass
class _Fuzzing:
    """A target that is fuzzed in processes of its own, one after the other."""

    name: str
    seconds: int
    seed: int
    inputs: int = 0
    started: float | None = None
    said: IO[bytes] = field(default_factory=tempfile.TemporaryFile)

    @property
    def left(self) -> int:
        """The seconds that are left."""
        spent = time.monotonic() - self.started if self.started else 0
        return max(int(self.seconds - spent), 0)

    def fork(self) -> int:
        """Begin a process, and return its id."""
        self.started = self.started or time.monotonic()
        self.said.seek(0)
        self.said.truncate()
        child = os.fork()
        if not child:
            for descriptor in (1, 2):
                os.dup2(self.said.fileno(), descriptor)
            _fuzz_here(self.name, max(self.left, 1), self.seed)
            os._exit(0)  # libFuzzer ends the process itself: this is never reached
        return child

    def is_good(self, code: int) -> bool:
        """Count what a process did that ended with `code`; say whether nothing was found."""
        self.said.seek(0)
        said = self.said.read().decode(errors="replace")
        runs = _DONE.search(said)
        if code or not runs:
            took = time.monotonic() - (self.started or 0)
            print(f"{self.name}: exit code {code} after {took:.0f} s", flush=True)
            print(said[-6000:], flush=True)
            return False
        self.inputs += int(runs[1])
        self.seed = self.seed and self.seed + 1
        return True


def _fuzz_here(name: str, seconds: int, seed: int) -> None:
    import atheris
    from fuzz.mutating import Mutator
    from fuzz.targets import TARGETS, attempt, name_of

    target = TARGETS[name]

    # What `Mutate` is, is known once `Fuzz` was called.
    def bytewise(data: bytes, most: int) -> bytes:
        return atheris.Mutate(data, most)

    seeds = tuple(file.read_bytes() for file in sorted((CORPUS / name).iterdir()))
    mutator = Mutator(target.form, _words(name), bytewise, seeds)
    ram = "/dev/shm" if Path("/dev/shm").is_dir() else None
    FOUND.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=ram) as scratch:
        folder, learnt = Path(scratch) / "one", Path(scratch) / "learnt"
        learnt.mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = scratch

        def one(data: bytes) -> None:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            path = folder / name_of(name)
            path.write_bytes(data)
            try:
                attempt(target, path)
            except Exception:
                traceback.print_exc()
                raise

        arguments = [
            *(sys.argv[0], str(learnt), str(CORPUS / name)),
            *(f"-max_total_time={seconds}", f"-timeout={TIMEOUT_S}", f"-seed={seed}"),
            *(f"-runs={MOST_INPUTS}", f"-rss_limit_mb={RSS_LIMIT_MB}", f"-max_len={MAX_LENGTH}"),
            *(f"-artifact_prefix={FOUND}/{name}-", "-print_final_stats=1", "-len_control=0"),
        ]
        atheris.Setup(arguments, one, custom_mutator=mutator)
        atheris.Fuzz()


def _words(name: str) -> tuple[str, ...]:
    """Return the keys in the corpus of a target, and the fields of what is stored."""
    found: set[str] = set()
    for file in sorted((CORPUS / name).iterdir()):
        found.update(re.findall(r'"?([A-Za-z_][\w.]{1,40})"?:', file.read_text(errors="replace")))
    return tuple(sorted(found))


if __name__ == "__main__":
    sys.exit(main())
