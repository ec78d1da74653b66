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
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]
CORPUS = HERE / "corpus"
FOUND = HERE / "found"
MAX_LENGTH = 50_000
"""The longest input, in bytes."""
TIMEOUT_S, RSS_LIMIT_MB = 10, 500
MOST_INPUTS = 3000
"""How many inputs one process takes: what atheris keeps of each counts as memory, too."""
_DONE = re.compile(r"^Done (\d+) ", re.MULTILINE)


def main() -> int:
    """Run what the arguments ask for, and return how it ended."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--seconds", type=int, default=3600, help="for all targets together")
    asked.add_argument("--jobs", type=int, default=1, help="so many targets at once")
    asked.add_argument("--seed", type=int, default=0, help="of chance; 0: another one each time")
    asked.add_argument("--replay", action="store_true", help="run the corpus once")
    asked.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    asked.add_argument("targets", nargs="*", metavar="TARGET")
    options = asked.parse_args()
    if options.one:
        return _fuzz_here(*options.targets, options.seconds, options.seed)
    from fuzz.targets import TARGETS

    given = [Path(each) for each in options.targets if each not in TARGETS]
    names = [each for each in options.targets if each in TARGETS] or list(TARGETS)
    if options.replay:
        return _replay(names, given)
    if given:
        asked.error(f"no target is called {given[0]}: there are {', '.join(TARGETS)}")
    seconds = max(1, options.seconds // len(names))
    with ThreadPoolExecutor(options.jobs) as jobs:
        ended = jobs.map(lambda name: _fuzz(name, seconds, options.seed), names)
        failed = [name for name, is_good in zip(names, ended, strict=True) if not is_good]
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


def _fuzz(name: str, seconds: int, seed: int) -> bool:
    """Fuzz a target in processes of its own, one after the other; say whether nothing was found."""
    started, inputs = time.monotonic(), 0
    while (left := int(started + seconds - time.monotonic())) > 0 or not inputs:
        limits = ("--seconds", str(max(left, 1)), "--seed", str(seed))
        # libFuzzer ends itself, also where an input hangs.
        command = [sys.executable, __file__, "--one", *limits, name]
        ended = subprocess.run(command, capture_output=True, check=False)
        lines = ended.stderr.decode(errors="replace").splitlines()
        said = "\n".join(line for line in lines if not line.startswith("INFO: Instr"))
        runs = _DONE.search(said)
        if ended.returncode or not runs:
            took = time.monotonic() - started
            print(f"{name}: exit code {ended.returncode} after {took:.0f} s", flush=True)
            print(said[-6000:], flush=True)
            return False
        inputs += int(runs[1])
        seed = seed and seed + 1
    print(f"{name}: {inputs:,} inputs in {seconds} s, nothing found", flush=True)
    return True


def _fuzz_here(name: str, seconds: int, seed: int) -> int:
    import atheris

    with atheris.instrument_imports(include=["ci_eval"]):
        from fuzz.targets import TARGETS, attempt, name_of
    from fuzz.mutating import Mutator

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
    return 0


def _words(name: str) -> tuple[str, ...]:
    """Return the keys in the corpus of a target, and the fields of what is stored."""
    found: set[str] = set()
    for file in sorted((CORPUS / name).iterdir()):
        found.update(re.findall(r'"?([A-Za-z_][\w.]{1,40})"?:', file.read_text(errors="replace")))
    return tuple(sorted(found))


if __name__ == "__main__":
    sys.exit(main())
