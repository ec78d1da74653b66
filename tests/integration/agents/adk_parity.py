"""Runs agents by Google ADK's own evaluation and by the adapter of ci-eval, and prints both.

    PYTHON adk_parity.py WORKER < cases.json

PYTHON has google-adk; WORKER is `worker.py`.  The cases are `{folder: [{"messages",
"state"}, …]}`; for each, ADK's `Invocation` and the adapter's replies are printed as JSON.
"""

import asyncio
import importlib
import inspect
import json
import os
import runpy
import sys
import warnings

warnings.simplefilter("ignore")


def forget():
    """Forget the agent that was loaded before: all are called `agent`."""
    for name in [each for each in sys.modules if each.split(".")[0] == "agent"]:
        del sys.modules[name]


def content(message):
    return {"role": "user", "parts": [{"text": message}]}


def evaluation(folder, cases):
    """Return the service that ADK's command makes, and the request."""
    from google.adk.cli import cli_eval
    from google.adk.evaluation.base_eval_service import InferenceConfig, InferenceRequest
    from google.adk.evaluation.eval_case import EvalCase
    from google.adk.evaluation.in_memory_eval_sets_manager import InMemoryEvalSetsManager
    from google.adk.evaluation.local_eval_service import LocalEvalService

    given = {}
    if hasattr(cli_eval, "get_app_or_root_agent"):
        given["app"], root = asyncio.run(cli_eval.get_app_or_root_agent(folder))
    else:
        root = asyncio.run(as_awaitable(cli_eval.get_root_agent(folder)))
    manager = InMemoryEvalSetsManager()
    manager.create_eval_set(app_name="app", eval_set_id="set")
    for number, case in enumerate(cases):
        turns = [{"user_content": content(message)} for message in case["messages"]]
        session = {"app_name": "app", "user_id": "user", "state": case["state"]}
        found = EvalCase(eval_id=str(number), conversation=turns, session_input=session)
        manager.add_eval_case(app_name="app", eval_set_id="set", eval_case=found)
    config = InferenceConfig(parallelism=1)
    request = InferenceRequest(app_name="app", eval_set_id="set", inference_config=config)
    return LocalEvalService(root_agent=root, eval_sets_manager=manager, **given), request


async def as_awaitable(value):
    return await value if inspect.isawaitable(value) else value


def theirs(folder, cases):
    service, request = evaluation(folder, cases)

    async def infer():
        return [each async for each in service.perform_inference(inference_request=request)]

    # Many are inferred at once, in any order.
    found = sorted(asyncio.run(infer()), key=lambda each: int(each.eval_case_id))
    return [
        [turn.model_dump(mode="json", exclude_none=True) for turn in each.inferences]
        if each.inferences is not None
        else None
        for each in found
    ]


def ours(adapter, folder, cases):
    agent = adapter.adapted(folder, {}, None)

    async def hold(number, case):
        names = {"id": f"s{number}", "app_name": "app", "user_id": "user"}
        session = {**names, "state": case["state"]}
        return [await agent(content(each), session=session) for each in case["messages"]]

    async def hold_all():
        found = [await hold(number, case) for number, case in enumerate(cases)]
        await agent.end()
        return found

    return asyncio.run(hold_all())


def main():
    # Nothing but the result is for the reader.
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    runpy.run_path(sys.argv[1])  # makes a package of the files beside it
    adapter = importlib.import_module("_ci_eval_workers.adapters.adk_adapter")
    sys.path.insert(0, "")
    found = {}
    for folder, cases in json.load(sys.stdin).items():
        found[folder] = {}
        for name, run in (("theirs", theirs), ("ours", lambda *each: ours(adapter, *each))):
            forget()
            found[folder][name] = run(folder, cases)
    with output:
        json.dump(found, output)


if __name__ == "__main__":
    main()
