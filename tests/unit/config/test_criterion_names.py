"""What a name means: with a prefix always the same, without one what the dialect says."""

import pytest

from ci_eval.config.criterion_names import (
    AMBIGUOUS,
    DIALECTS,
    bare_names,
    belongs_to,
    resolve,
    surprising,
)
from ci_eval.criteria import (
    adk_final_response_match_v2,
    adk_hallucinations_v1,
    adk_rubric_based,
    adk_vertex,
    agentflow_responses,
)
from ci_eval.criteria.adk_efficiency import ToolCallCount
from ci_eval.criteria.adk_matches import (
    ResponseMatch,
    ResponseMatch23,
    ToolTrajectory,
    ToolTrajectory23,
)
from ci_eval.criteria.agentflow_sequences import NodeOrderMatch
from ci_eval.criteria.agentflow_sequences import ToolTrajectory as AgentFlowTrajectory
from ci_eval.criteria.agentflow_texts import RougeMatch
from ci_eval.plugins import points
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.records.errors import UnknownPluginError

KNOWN = sorted(set(bare_names()))
UNKNOWN = f"unknown criterion; known: {', '.join(KNOWN[:20])} and {len(KNOWN) - 20} more"


@pytest.mark.parametrize(
    ("name", "in_adk", "in_agentflow"),
    [
        ("response_match_score", ResponseMatch, agentflow_responses.ResponseMatch),
        ("tool_trajectory_avg_score", ToolTrajectory, AgentFlowTrajectory),
        (
            "hallucinations_v1",
            adk_hallucinations_v1.Hallucinations,
            agentflow_responses.Hallucinations,
        ),
        ("safety_v1", adk_vertex.Safety, agentflow_responses.Safety),
        (
            "final_response_match_v2",
            adk_final_response_match_v2.FinalResponseMatch,
            agentflow_responses.Quality,
        ),
        (
            "rubric_based_final_response_quality_v1",
            adk_rubric_based.RubricResponse,
            agentflow_responses.RubricBased,
        ),
    ],
)
def test_a_bare_name_means_what_its_dialect_says(
    name: str, in_adk: type[AnyCriterion], in_agentflow: type[AnyCriterion]
) -> None:
    assert resolve(name, "adk") is in_adk
    assert resolve(name, "agentflow") is in_agentflow


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("adk/response_match_score", ResponseMatch),
        ("adk@2.3/response_match_score", ResponseMatch23),
        ("agentflow/response_match_score", agentflow_responses.ResponseMatch),
        ("adk/tool_call_count_v1", ToolCallCount),
        ("agentflow/safety_score", agentflow_responses.Safety),
        ("rouge_match", RougeMatch),
        ("response_match", agentflow_responses.ResponseMatch),
        ("trajectory", AgentFlowTrajectory),
        ("trajectory_match", AgentFlowTrajectory),
        ("node_order", NodeOrderMatch),
        ("node_order_score", NodeOrderMatch),
        ("node_order_match_score", NodeOrderMatch),
    ],
)
def test_a_name_with_a_prefix_or_of_one_system_means_the_same_everywhere(
    dialect: str, name: str, meant: type[AnyCriterion]
) -> None:
    assert resolve(name, dialect) is meant


def test_a_short_name_that_means_a_model_is_remarked_on_where_a_like_one_asks_none() -> None:
    model = resolve("response_match", "adk")
    said = "means 'agentflow/response_match_score', which calls a model; "
    assert (
        surprising("response_match", model, "adk") == f"{said}'adk/response_match_score' does not"
    )
    assert surprising("response_match", model, "agentflow") == ""
    assert surprising("response_match_score", resolve("response_match_score", "adk"), "adk") == ""
    assert surprising("hallucination", resolve("hallucination", "adk"), "adk") == ""


def test_an_older_adk_has_its_own_rules_and_lacks_what_came_later() -> None:
    assert resolve("response_match_score", "adk@2.3") is ResponseMatch23
    assert resolve("tool_trajectory_avg_score", "adk@2.3") is ToolTrajectory23
    with pytest.raises(UnknownPluginError) as caught:
        resolve("tool_call_count_v1", "adk@2.3")
    assert str(caught.value) == "dialect 'adk@2.3' does not have this criterion"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("respnse_match_score", "unknown criterion. Did you mean 'response_match_score'?"),
        ("adk/respnse_match", "unknown criterion. Did you mean 'adk/response_match_score'?"),
        ("nice", UNKNOWN),
        ("", UNKNOWN),
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_name_that_means_nothing_is_refused(name: str, dialect: str, message: str) -> None:
    with pytest.raises(UnknownPluginError) as caught:
        resolve(name, dialect)
    assert str(caught.value) == message


def test_a_prefix_without_its_criterion_is_not_looked_for_elsewhere() -> None:
    with pytest.raises(UnknownPluginError):
        resolve("adk/rouge_match", "agentflow")
    with pytest.raises(UnknownPluginError):
        resolve("/rouge_match", "agentflow")


def test_exactly_four_names_of_criteria_are_those_of_both_systems() -> None:
    own = {
        system: {name.partition("/")[2] for name in points.criterion if name.startswith(system)}
        for system in ("adk/", "agentflow/")
    }
    assert own["adk/"] & own["agentflow/"] == AMBIGUOUS
    assert len(AMBIGUOUS) == 4


def test_no_two_criteria_of_a_system_share_a_name_or_an_alias() -> None:
    seen: dict[tuple[str, str], str] = {}
    for qualified in points.criterion:
        prefix, _, short = qualified.rpartition("/")
        for name in (short, *points.criterion[qualified].aliases):
            assert seen.setdefault((prefix, name), qualified) == qualified


@pytest.mark.parametrize(
    ("name", "adk", "agentflow"),
    [
        ("safety_v1", True, True),
        ("safety", False, True),
        ("response_evaluation_score", True, False),
        ("final_response_match_v2", True, True),
        ("ci/regex", False, False),
        ("adk/safety_v1", False, False),
    ],
)
def test_a_bare_name_belongs_to_one_system_or_to_both(
    name: str, adk: bool, agentflow: bool
) -> None:
    assert (belongs_to(name, "adk"), belongs_to(name, "agentflow")) == (adk, agentflow)


def test_every_criterion_can_be_named_without_its_prefix() -> None:
    for qualified in points.criterion:
        prefix, _, short = qualified.rpartition("/")
        dialect = prefix if prefix in DIALECTS else "adk"
        if prefix != "ci" or not (belongs_to(short, "adk") or belongs_to(short, "agentflow")):
            assert resolve(short, dialect) is points.criterion[qualified]
