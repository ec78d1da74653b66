"""User-defined Python callables, and the interpreter that runs them."""

import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from hashlib import sha256

from pydantic import Field, ValidationInfo, field_validator

from ci_eval.records.cases import Json, Record
from ci_eval.records.errors import BadAnswerError, TrialError
from ci_eval.runtime import environments, isolation, python_modules
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.path_checks import similar_path
from ci_eval.runtime.processes import Launch
from ci_eval.runtime.workers.imported_modules import code_of
from ci_eval.runtime.workers.setup_commands import Command, Setup
from ci_eval.runtime.workers.worker_pool import ONE, WORKER, Adapter, Pool, Size
from ci_eval.runtime.workers.worker_wire import encode

TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
"""A callable in a module: `module:callable`."""


class UnderPython(Record):
    """Code that runs in worker processes under a chosen Python interpreter."""

    interpreter: str | None = None
    """The Python that has the callable's dependencies: a path relative to the folder of the
    configuration, such as `.venv/bin/python`, or a name on the PATH. Default: the Python of
    ci-eval; in the action, the one in its image, which has only the standard library."""
    setup: tuple[Command, ...] = ()
    """Commands to run once before the agent starts, such as `uv sync`, in the folder of the
    configuration and with the agent's environment. Each is a text, split like a shell command line
    but run without a shell, or a list. They run again only after a change of these commands, of
    `interpreter`, of the folder's lock files, requirements or project files, or of files that the
    commands name; `.ci-eval/setup` records this. The timeout for all commands is 30 minutes."""
    env: environments.Declared = Field(default_factory=dict)
    """Additional environment variables: a list of names or patterns to pass on, or names with
    values."""

    def check(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield the errors in the interpreter and the environment variables."""
        for message in environments.refused(self.env):
            yield "env", message
        if self.interpreter and not self.setup and not self._find_interpreter(context):
            similar = similar_path(context.root, self.interpreter)
            yield "interpreter", f"there is no program {self.interpreter!r}{similar}"

    def absent(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield the fields whose module or name cannot exist or be read, with the reason."""
        for field, target in () if self.setup else self.targets():
            top = target.partition(":")[0].partition(".")[0]
            installed = self._installed(top, context)
            message = python_modules.target_error(
                target,
                context.root,
                installed=installed,
                is_ours=self._find_interpreter(context) == sys.executable,
            )
            if message:
                yield field, message

    def targets(self) -> Iterator[tuple[str, str]]:
        """Yield the fields with a `module` or `module:name`, and their values."""
        yield from ()

    def _installed(self, top: str, context: RunContext) -> bool | None:
        """Return True if the interpreter has the module `top`; `None` if unknown."""
        interpreter = self._find_interpreter(context)
        if "PYTHONPATH" in environments.agent_environment(context, self.env) or not interpreter:
            return None
        if interpreter == sys.executable:
            return python_modules.installed_for_us(top)
        return python_modules.installed_for(interpreter, top)

    def missing(self, env: Mapping[str, str]) -> str:
        """Return the declared variables that are not set, as text."""
        return environments.unset(self.env, env)

    @asynccontextmanager
    async def pool_of(
        self,
        target: str,
        context: RunContext,
        *,
        adapter: Adapter | None = None,
        size: Size = ONE,
        check: Callable[[], None] | None = None,
    ) -> AsyncIterator[Pool]:
        """Provide workers for `target` until the context is left.

        The target is a `module:callable`, or whatever `adapter` expects.  `check` is called before
        each start of a worker, after the `setup`; it may raise a `TrialError`.
        """
        setup = Setup(self.setup, self.interpreter, self.env, context)

        async def prepare() -> Launch:
            if self.setup:
                await setup.done()
            if check:
                check()
            # If it was removed after the check, the start fails with the system's error.
            interpreter = self._find_interpreter(context) or str(self.interpreter)
            root = context.root.resolve()
            adapted = (str(adapter.path), encode(adapter.options)) if adapter else ()
            argv = (interpreter, WORKER, str(root), target, *adapted)
            env = {**environments.agent_environment(context, self.env), **size.variables()}
            return Launch(argv, env, root, context.agent_account)

        async with setup.in_use():
            pool = Pool(prepare, workers=size.workers, threads=size.threads)
            try:
                yield pool
            finally:
                await pool.stop()

    def code_check(self, module: str, context: RunContext) -> Callable[[], None]:
        """Return a `check` that the code of a module is as it was before any agent ran.

        If there is a `setup`, which may write code, it is as it was after that.
        """
        searched = environments.agent_environment(context, self.env).get("PYTHONPATH", "")
        folders = [context.root, *map(context.root.joinpath, searched.split(os.pathsep))]
        before = None if self.setup else code_of(module, folders)

        def check() -> None:
            nonlocal before
            now = code_of(module, folders)
            before = now if before is None else before
            if now != before:
                message = f"the code of {module!r} changed during the run"
                raise TrialError("start", f"{message}; agents must not write modules")

        return check

    async def ask_once(
        self, target: str, context: RunContext, *, adapter: Adapter, message: Json = None
    ) -> Json:
        """Return the reply of `target`, run by `adapter` in a worker, to `message`.

        Raises:
            TrialError: it cannot be started, or fails.

        """
        async with self.pool_of(target, context, adapter=adapter) as pool:
            try:
                return await pool.ask_once(message)
            except BadAnswerError as exc:
                raise TrialError("protocol", f"{target!r} {exc}") from exc

    def _find_interpreter(self, context: RunContext) -> str | None:
        if self.interpreter is None:
            return isolation.interpreter(context.env)
        return environments.find_agent_program(self.interpreter, context, self.env)


class _Named(Record):
    """The name of a callable."""

    python: str
    """The module and the callable in it, such as `agents.weather:answer`; modules are imported
    from the folder of the configuration, which is also the working directory."""

    @field_validator("python")
    @classmethod
    def _names_a_callable(cls, value: str, info: ValidationInfo) -> str:
        without_ending = value.replace(".py:", ":")
        if not TARGET.fullmatch(value) or value != without_ending:
            root = (info.context or {}).get("root")
            example = python_modules.example_target(root, value) if root else ""
            example = without_ending if TARGET.fullmatch(without_ending) else example
            message = f"expected 'module:callable', such as {example or 'agents.weather:answer'!r}"
            raise ValueError(f"{message}, found {value!r}")
        return value


class PythonTarget(UnderPython, _Named):
    """A callable, `module:callable`, that runs in its own worker processes."""

    def targets(self) -> Iterator[tuple[str, str]]:
        """Yield the callable."""
        yield "python", self.python

    def pool(self, context: RunContext, size: Size = ONE) -> AbstractAsyncContextManager[Pool]:
        """Provide workers for the callable until the context is left."""
        return self.pool_of(self.python, context, size=size)


def digest_of(module: str, context: RunContext) -> str | None:
    """Return a digest of the source of `module`; `None` if it is not in the repository."""
    path = context.root.joinpath(*module.split("."))
    for each in (path.with_suffix(".py"), path / "__init__.py"):
        if each.is_file():
            return sha256(each.read_bytes()).hexdigest()
    return None
