"""Comparison of JSON values by JSON's rules: `true` is not 1, and 1 is 1.0."""

from ci_eval.records.cases import Json


def equal(expected: Json, actual: Json) -> bool:
    """Return True if two values are equal."""
    match expected, actual:
        case dict(), dict():
            return expected.keys() == actual.keys() and all(
                equal(value, actual[key]) for key, value in expected.items()
            )
        case list(), list():
            return len(expected) == len(actual) and all(map(equal, expected, actual))
        case (bool(), _) | (_, bool()):
            return expected is actual
        case _:
            return bool(expected == actual)


def within(expected: Json, actual: Json) -> bool:
    """Return True if `actual` contains `expected`.

    An object contains another if it has all the other's keys, each with a value that contains the
    other's value; a list contains another if each element of the other is contained in one of its
    own.
    """
    match expected, actual:
        case dict(), dict():
            return all(
                key in actual and within(value, actual[key]) for key, value in expected.items()
            )
        case list(), list():
            return all(any(within(each, other) for other in actual) for each in expected)
        case _:
            return equal(expected, actual)
