"""A fake Gemini on this machine that answers after a delay, in a separate process.

python benchmarks/loopback_gemini.py DELAY_S AGREE FAIL

Prints its port, serves until its input ends, and prints the questions it got. The verdict on an
invocation is "valid", which each sample gives with probability AGREE. FAIL is the share of calls
that fail, each in one of the ways in which real providers fail. The answer to a call depends on its
text and on how often this text was sent, so two runs get the same answers.
"""

# ruff: noqa: S311  # random draws depend on the question, and need not be secret

import asyncio
import json
import sys
import time
from collections import Counter
from contextlib import suppress
from random import Random  # noqa: TID251  # seeded with the question

from aiohttp import web

WAYS = ("429", "500", "hang", "cut", "html")


class Server:
    """The received questions, with their times."""

    def __init__(self, delay_s: float, agree: float, fail: float) -> None:
        self.delay_s = delay_s
        self.agree = agree
        self.fail = fail
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.first = self.last = 0.0
        self.now = self.most = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one call, or fail."""
        self.first = self.first or time.perf_counter()
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            words = (await request.json())["contents"][0]["parts"][0]["text"]
            self.asked[words] += 1
            await asyncio.sleep(self.delay_s)
            if Random(f"{words} {self.asked[words]}").random() < self.fail:
                return await self._failure(request, Random(f"{self.asked[words]} {words}"))
            self.answered[words] += 1
            agrees = Random(f"vote {words} {self.answered[words]}").random() < self.agree
            return web.json_response(_response("valid" if agrees else "invalid"))
        finally:
            self.now -= 1
            self.last = time.perf_counter()

    async def _failure(self, request: web.Request, random: Random) -> web.StreamResponse:
        way = random.choice(WAYS)
        if way in ("429", "500"):
            status = {"429": "RESOURCE_EXHAUSTED", "500": "INTERNAL"}[way]
            error = {"code": int(way), "message": "Not now.", "status": status}
            return web.json_response({"error": error}, status=int(way))
        if way == "html":
            return web.Response(text="<html>Bad gateway</html>", content_type="text/html")
        if way == "hang":
            await asyncio.sleep(60)
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        with suppress(ConnectionError):  # the waiting client may have gone
            await response.prepare(request)
            await response.write(b'{"candidates": [{"con')
        if request.transport:
            request.transport.abort()
        return response


def _response(label: str) -> dict[str, object]:
    verdict = {"reasoning": "It says so.", "is_the_agent_response_valid": label}
    content = {"role": "model", "parts": [{"text": json.dumps(verdict)}]}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 300, "candidatesTokenCount": 20},
        "modelVersion": "loopback",
    }


async def main() -> None:
    """Serve until the input ends."""
    server = Server(*map(float, sys.argv[1:]))
    app = web.Application()
    app.router.add_post("/{version}/models/{call}", server.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    calls = server.asked.total()
    print(json.dumps({"calls": calls, "took_s": server.last - server.first, "most": server.most}))


if __name__ == "__main__":
    asyncio.run(main())
