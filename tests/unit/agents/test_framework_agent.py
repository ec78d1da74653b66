"""Objects of users are named as `module:name`."""

import pytest
from pydantic import TypeAdapter, ValidationError

from ci_eval.agents._framework_agent import ObjectName

NAME: TypeAdapter[str] = TypeAdapter(ObjectName)


@pytest.mark.parametrize("name", ["app:graph", "app.agents:team.lead", "größe:größe"])
def test_a_module_and_what_stands_in_it(name: str) -> None:
    assert NAME.validate_python(name) == name


@pytest.mark.parametrize("name", ["app", "app:", ":graph", "app.py:graph()", "a-b:c", "a:b:c", ""])
def test_anything_else_is_refused_with_an_example(name: str) -> None:
    with pytest.raises(ValidationError) as caught:
        NAME.validate_python(name)
    assert f"expected 'module:name', such as 'app.agents:support', found {name!r}" in str(
        caught.value
    )
