"""A stand-in for Vertex AI's evaluation service, as its reference describes `evaluateInstances`.

https://cloud.google.com/vertex-ai/docs/reference/rest/v1beta1/projects.locations/evaluateInstances
and, for the one metric whose definition is kept in Cloud Storage,
https://cloud.google.com/storage/docs/json_api/v1/objects/get
"""

import re
from typing import Any

from servers.gemini import error
from servers.loopback import Loopback, Reply, Request, as_json

TOKEN = "the-right-token-of-this-test"
_PATH = re.compile(r"/v1beta1/projects/shop-1/locations/us-central1/?:evaluateInstances")
_OBJECT = re.compile(r"(/download)?/storage/v1/b/[\w-]+/o/metrics%2Fcoherence%2Fv1\.yaml")
COHERENCE = """
name: coherence
prompt_template: "Rate how coherent this is, from 1 to 5: {prompt} {response}"
"""


def measured(score: float | None, explanation: str = "", *verdicts: Any) -> dict[str, Any]:
    """Return an `EvaluateInstancesResponse` of one metric; a verdict that is no is left out."""
    found: dict[str, Any] = {"score": score, "explanation": explanation}
    if verdicts:
        found["rubricVerdicts"] = list(verdicts)
    return {"metricResults": [{key: value for key, value in found.items() if value is not None}]}


def rubric(name: str, description: str | None = None, **more: Any) -> dict[str, Any]:
    content = {"content": {"property": {"description": description}}} if description else {}
    return {"evaluatedRubric": {"rubricId": name, **content}, **more}


def unmeasured(code: int, message: str) -> dict[str, Any]:
    """Return a response whose metric has an error, as google.rpc.Status."""
    return {"metricResults": [{"error": {"code": code, "message": message}}]}


class FakeVertex(Loopback):
    """Measures 0.5, and 4 of what is coherent."""

    @property
    def bodies(self) -> list[Any]:
        """What was to be measured."""
        return [each.body for each in self.requests if _PATH.fullmatch(each.path)]

    def reply(self, request: Request) -> Reply:
        if found := _OBJECT.fullmatch(request.path):
            if not found[1] and request.query.get("alt") != ["media"]:
                return as_json({"name": "metrics/coherence/v1.yaml"})
            return Reply(COHERENCE.encode(), content_type="text/yaml")
        if not _PATH.fullmatch(request.path):
            return error(404, "NOT_FOUND", f"no such thing: {request.path}")
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            said = "Request had invalid authentication credentials."
            return error(401, "UNAUTHENTICATED", said)
        (metric,) = request.body["metrics"]
        return as_json(measured(0.5 if "predefined_metric_spec" in metric else 4.0, "Well."))
