"""An adapter of no framework: it calls a coroutine function with the text and the session."""


def adapted(target, options, load):
    found = load(target)

    class Adapted:
        async def __call__(self, message, *, session):
            text = message["parts"][0]["text"]
            response = {"role": "model", "parts": [{"text": await found(text, session)}]}
            return {"invocation": {"final_response": response}}

        def close(self, session):
            with open("closed", "a") as file:  # noqa: PTH123  # as agents do it
                file.write("x")

    return Adapted()
