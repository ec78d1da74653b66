"""An A2A agent, made with the a2a-sdk, that does as the first word of a message says.

Run by the Python that CI_EVAL_A2A_PYTHON names, with `PORT VERSION…`: the versions of the protocol
that its card offers. It prints a line when it listens.
"""

import sys

import uvicorn
from a2a.helpers.proto_helpers import (
    get_message_text,
    new_data_part,
    new_task_from_user_message,
    new_text_message,
    new_text_part,
)
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette


class Obedient(AgentExecutor):
    def __init__(self):
        self.heard = {}
        """What was said, by context."""

    async def execute(self, context, event_queue):
        text = get_message_text(context.message)
        word, _, rest = text.partition(" ")
        said = self.heard.setdefault(context.context_id, [])
        said.append(text)
        if word == "answer":
            await event_queue.enqueue_event(
                new_text_message(f"so be it: {rest}", context_id=context.context_id)
            )
            return
        task = context.current_task
        if not task:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await self.work(updater, word, rest, said)

    async def work(self, updater, word, rest, said):
        def note(text):
            return updater.new_agent_message([new_text_part(text)])

        await updater.start_work(note("I am at it"))
        if word == "ask":
            await updater.requires_input(note("Which day?"))
        elif word == "fail":
            await updater.failed(note("out of paper"))
        elif word == "reject":
            await updater.reject(note("not my job"))
        elif word == "log-in":
            await updater.requires_auth(note("who are you?"))
        elif word == "data":
            await updater.add_artifact([new_data_part({"day": 3})], name="form")
            await updater.complete()
        elif word == "say":
            await updater.complete(note(rest))
        elif word == "recall":
            await updater.add_artifact([new_text_part(" | ".join(said))])
            await updater.complete()
        elif word == "raise":
            raise RuntimeError("a bug in the agent")
        else:  # in two pieces
            await updater.add_artifact([new_text_part(f"{word} ")], artifact_id="a", append=False)
            await updater.add_artifact(
                [new_text_part(rest)], artifact_id="a", append=True, last_chunk=True
            )
            await updater.complete()

    async def cancel(self, context, event_queue):
        raise NotImplementedError


def app(port, versions, streaming):
    url = f"http://127.0.0.1:{port}/rpc"
    card = AgentCard(
        name="obedient",
        description="Does as it is told.",
        version="1",
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        capabilities=AgentCapabilities(streaming=streaming),
        skills=[AgentSkill(id="obey", name="obey", description="Obeys.", tags=["test"])],
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version=version)
            for version in versions
        ],
    )
    handler = DefaultRequestHandler(Obedient(), InMemoryTaskStore(), card)
    routes = create_agent_card_routes(card)
    routes += create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat="0.3" in versions)
    return Starlette(routes=routes)


if __name__ == "__main__":
    port, streaming, *versions = sys.argv[1:]
    uvicorn.run(
        app(int(port), versions, streaming == "streaming"),
        host="127.0.0.1",
        port=int(port),
        log_level="warning",
    )
