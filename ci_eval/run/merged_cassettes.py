"""Merging of what shards recorded into the cassettes of agents and judges."""

from collections.abc import Iterator

from ci_eval.config.validated_config import Config
from ci_eval.llm.cassette import Cassette
from ci_eval.llm.gateway.gateway_clients import gateway_options
from ci_eval.llm.gateway.model_cassette import ModelCassette
from ci_eval.llm.line_file import shard_file_name
from ci_eval.run.merged_shards import MergedShards
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.path_checks import contained
from ci_eval.text.templates import counted


def merge_cassettes(config: Config, context: RunContext, shards: MergedShards) -> Iterator[str]:
    """Add the recordings of shards to each cassette, and yield a line about it.

    Raises:
        UsageError: a file of a shard is not a cassette, or two shards have calls of one trial.
        OSError: a cassette cannot be written.

    """
    found = map(gateway_options, config.agents.values())
    for given in dict.fromkeys(each.cassette for each in found if each):
        if parts := shards.recorded(shard_file_name(given)):
            path, shown = contained(context.root, given, written=True), context.shown(given)
            ModelCassette(path, shown=shown, secrets=context.secrets).absorb(parts)
            yield f"added the recordings of {counted(len(parts), 'shard')} to {shown}"
    given = config.judging.options.cassette
    if parts := shards.recorded(shard_file_name(given)):
        path, shown = contained(context.root, given, written=True), context.shown(given)
        differing = Cassette(path, shown=shown, secrets=context.secrets).absorb(parts.values())
        yield f"added the recordings of {counted(len(parts), 'shard')} to {shown}"
        if differing:
            questions = counted(differing, "question")
            yield f"warning: shards got different answers to {questions}; the first was kept"
