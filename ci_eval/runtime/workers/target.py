"""A Python callable of the user's and the interpreter that it needs."""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256

from pydantic import Field, field_validator

from ci_eval.records.model import Record
from ci_eval.runtime import isolation
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import Declared, agent_environment, find_program, refused, unset
from ci_eval.runtime.processes import Launch
from ci_eval.runtime.workers.pool import Adapter, Pool, launch
from ci_eval.runtime.workers.setup import Command, SetUp

_TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


class UnderPython(Record):
    """Code that runs in worker processes under a Python of the user's choice."""

    interpreter: str | None = None
    """The Python that has what the callable imports, such as `.venv/bin/python`, from the folder
    of the configuration, or a name to be found on the PATH; left out, the one of ci-eval, and in
    the action that of its image, which has the standard library alone."""
    setup: tuple[Command, ...] = ()
    """What is run once before, such as `uv sync`, in the folder of the configuration and with the
    environment of the agent: commands, each a text that is split as a shell would (and that no
    shell reads), or a list. They are not run again while these commands, `interpreter`, the lock
    files, requirements and project files of the folder, and the files that the commands name are
    as they were; `.ci-eval/setup` keeps note. All of them together may take half an hour."""
    env: Declared = Field(default_factory=dict)
    """Environment variables it gets beside the usual ones: a list of names or patterns to pass
    on, or names with values."""

    def check(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the interpreter and the environment."""
        for message in refused(self.env):
            yield "env", message
        if self.interpreter and not self.setup and not self._find_interpreter(context):
            yield "interpreter", f"there is no program {self.interpreter!r}"

    def missing(self, env: Mapping[str, str]) -> str:
        """Say which variables it is to get are not set."""
        return unset(self.env, env)

    @asynccontextmanager
    async def pool_of(
        self,
        target: str,
        context: RunContext,
        *,
        adapter: Adapter | None = None,
        workers: int = 1,
        threads: int | None = None,
    ) -> AsyncIterator[Pool]:
        """Keep workers for `target`, which `launch` explains; leaving the context ends them."""
        setup = SetUp(self.setup, self.interpreter, self.env, context)

        async def prepare() -> Launch:
            if self.setup:
                await setup.done()
            # One that vanished after the check fails in the words of the system.
            interpreter = self._find_interpreter(context) or str(self.interpreter)
            return launch(interpreter, target, context, self.env, adapter=adapter)

        async with setup.kept():
            pool = Pool(prepare, workers=workers, threads=threads)
            try:
                yield pool
            finally:
                await pool.stop()

    def _find_interpreter(self, context: RunContext) -> str | None:
        if self.interpreter is None:
            return isolation.interpreter(context.env)
        env = agent_environment(context.env, self.env)
        return find_program(self.interpreter, root=context.root, env=env)


class _Named(Record):
    """A callable by its name."""

    python: str
    """The module and the callable in it, such as `agents.weather:answer`; modules are found
    from the folder of the configuration, which is the working directory, too."""

    @field_validator("python")
    @classmethod
    def _names_a_callable(cls, value: str) -> str:
        if not _TARGET.fullmatch(value):
            message = "expected 'module:callable', such as 'agents.weather:answer'"
            raise ValueError(f"{message}, found {value!r}")
        return value


class PythonTarget(UnderPython, _Named):
    """A callable, `module:callable`, that runs in worker processes of its own."""

    @asynccontextmanager
    async def pool(
        self, context: RunContext, *, workers: int = 1, threads: int | None = None
    ) -> AsyncIterator[Pool]:
        """Keep workers for the callable; leaving the context ends them."""
        async with self.pool_of(self.python, context, workers=workers, threads=threads) as pool:
            yield pool


def digest_of(module: str, context: RunContext) -> str | None:
    """Return a digest of the source of `module`, where that is one of the repository's."""
    path = context.root.joinpath(*module.split("."))
    for each in (path.with_suffix(".py"), path / "__init__.py"):
        if each.is_file():
            return sha256(each.read_bytes()).hexdigest()
    return None
