"""What the agents of the shop can do: find an order, pay money back, and answer."""

ORDERS = {7: {"status": "delivered", "paid": 25}, 9: {"status": "on its way", "in": "Oslo"}}


def find_order(number):
    """Return the call of the tool that looks an order up; an empty result if there is none."""
    return {"name": "find_order", "args": {"order": number}, "result": ORDERS.get(number, {})}


def refund(number, amount):
    """Return the call of the tool that pays money back."""
    args = {"order": number, "amount": amount}
    return {"name": "refund", "args": args, "result": {"status": "ok"}}


def reply(text, *calls):
    """Return an answer, with the tools that were called for it and what it would have cost."""
    read, written = 200 + 100 * len(calls), len(text.split())
    usage = {"input_tokens": read, "output_tokens": written, "cost_usd": read * 1e-6}
    return {"response": text, "tool_calls": list(calls), "usage": usage}
