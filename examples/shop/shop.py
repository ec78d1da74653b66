"""The agent of a shop, without a framework or a model: it finds orders, and refunds them."""

import re

from tools import find_order, refund, reply


def answer(message):
    """Return the response, and the tool calls that it took."""
    found = re.search(r"order (\d+)", message)
    if not found:
        return reply("Hello! How can I help?")
    number = int(found[1])
    looked = find_order(number)
    order = looked["result"]
    if not order:
        return reply(f"There is no order {number}.", looked)
    if "refund" not in message:
        return reply(f"Order {number} is {order['status']}.", looked)
    if order["status"] != "delivered":
        return reply(f"Order {number} is not there yet, so it cannot be refunded.", looked)
    paid = order["paid"]
    return reply(f"Order {number} is refunded: {paid} EUR.", looked, refund(number, paid))
