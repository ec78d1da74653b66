"""The forms in which judges are asked to answer: JSON schemas that every provider takes."""

from ci_eval.records.model import Json

TEXT: Json = {"type": "string"}
TEXTS: Json = {"type": "array", "items": TEXT}
NUMBER: Json = {"type": "number"}


def one_of(*words: str) -> Json:
    """Return the schema of a text that is one of these."""
    return {"type": "string", "enum": list(words)}


def many(entry: Json) -> Json:
    """Return the schema of a list of such entries."""
    return {"type": "array", "items": entry}


def strict(**properties: Json) -> dict[str, Json]:
    """Return the schema of an object with these properties and no others.

    An answer is written in their order, so reasons come before what follows from them.
    """
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
