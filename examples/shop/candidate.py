"""The agent of the shop after a change that made it worse: it refunds without looking."""

import re

from tools import ORDERS, find_order, refund, reply


def answer(message):
    """Return the response, and the tool calls that it took."""
    found = re.search(r"order (\d+)", message)
    if not found:
        return reply("Hello! How can I help?")
    number = int(found[1])
    if "refund" in message:
        return reply(f"Order {number} is refunded: 25 EUR.", refund(number, 25))
    return reply(f"Order {number} is {ORDERS[number]['status']}.", find_order(number))
