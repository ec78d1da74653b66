"""JSON schemas of judges' answers, in the subset that every provider supports."""

from ci_eval.records.cases import Json

TEXT: Json = {"type": "string"}
TEXTS: Json = {"type": "array", "items": TEXT}
NUMBER: Json = {"type": "number"}


def one_of(*words: str) -> Json:
    """Return the schema of a string with these values."""
    return {"type": "string", "enum": list(words)}


def many(entry: Json) -> Json:
    """Return the schema of a list of `entry`."""
    return {"type": "array", "items": entry}


def strict(**properties: Json) -> dict[str, Json]:
    """Return the schema of an object with exactly these properties.

    Models write them in this order, so reasons come before conclusions.
    """
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
