"""The JSON Schema holds for what `to_mapping` writes, and for nothing else."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from test_config_dump import runs
from toy_components import ToyCount, ToyLacquer, ToyRun, ToySweep

from t1x.config import Component, Root, discover, load
from t1x.config.mapping import to_mapping
from t1x.config.names import members
from t1x.config.schema import schema

ROOT = Path(__file__).parents[2]
EXPERIMENTS = sorted(path.relative_to(ROOT) for path in (ROOT / "experiments").rglob("*.gin"))
RUN = to_mapping(ToyRun(steps=1, prize=ToyCount()))


def errors(instance: Any, name: str | None = None) -> list[str]:
    validator = jsonschema.Draft202012Validator(schema(name))
    validator.check_schema(validator.schema)
    return [error.message for error in validator.iter_errors(instance)]


@pytest.mark.parametrize("path", EXPERIMENTS, ids=str)
def test_every_shipped_experiment_is_valid(path, monkeypatch):
    monkeypatch.chdir(ROOT)
    root = load(path, site="laptop").root
    assert errors(to_mapping(root)) == []
    assert errors(to_mapping(root), type(root).__name__) == []


@given(runs)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_tree_is_valid(root):
    plain = root.model_copy(
        update={"paints": tuple(paint.model_copy(update={"raw": b"", "anything": None}) for paint in root.paints)}
    )
    mapping = to_mapping(plain)
    for paint in mapping["paints"]:
        paint["raw"] = ""
    assert errors(mapping, "ToyRun") == []


@pytest.mark.parametrize(
    "broken",
    [
        {"steps": "ten"},
        {"steps": 1.5},
        {"prize": {"class": "ToyCount", "divisor": 0}},
        {"prize": {"class": "ToyShelf", "size": 1}},
        {"prize": {"class": "ToyCount", "divisor": 1, "more": 1}},
        {"prize": {"class": "ToyCount"}},
        {"prize": {"divisor": 1}},
        {"prize": None},
        {"paints": [to_mapping(ToyLacquer()) | {"shine": "dull"}]},
        {"paints": [to_mapping(ToyLacquer()) | {"colour": "green"}]},
        {"class": "ToyWalk"},
        {"stepz": 1},
    ],
    ids=str,
)
def test_a_broken_tree_is_not_valid(broken):
    assert errors(RUN, "ToyRun") == []
    assert errors(RUN | broken, "ToyRun")


def test_without_a_name_every_root_is_described():
    described = schema()
    assert described["$defs"]["Root"]["anyOf"] == [{"$ref": f"#/$defs/{name}"} for name in members(Root)]
    assert errors(RUN) == []
    assert errors(to_mapping(ToyCount())) != []
    assert errors(to_mapping(ToySweep(base=ToyRun(steps=1, prize=ToyCount())))) == []


def test_a_field_has_its_docs_role_and_default():
    described = schema("ToyCount")
    assert described["$defs"]["ToyCount"] == {
        "description": "A count of things.",
        "type": "object",
        "properties": {
            "class": {"const": "ToyCount"},
            "divisor": {
                "description": "What the count is divided by.",
                "type": "integer",
                "minimum": 1,
                "maximum": 1000,
                "default": 20,
                "x-role": "scale",
            },
        },
        "required": ["class", "divisor"],
        "additionalProperties": False,
        "x-kind": "ToyPrize",
    }
    assert schema("ToyPrize")["$defs"]["ToyPrize"]["anyOf"] == [{"$ref": "#/$defs/ToyCount"}, {"$ref": "#/$defs/ToyPenalty"}]


def test_every_field_of_every_component_is_described():
    discover()
    for name, component in Component.registry.items():
        if component.__module__.startswith("t1x."):
            for field, described in schema(name)["$defs"][name]["properties"].items():
                assert field == "class" or (described["description"] and described["x-role"]), (name, field)


def test_a_component_that_others_derive_from_may_be_any_of_them():
    discover()
    names = members(Component.registry["Experiment"])
    assert {"Campaign", "Evaluation"} <= set(names)
    assert schema("Experiment")["anyOf"] == [{"$ref": f"#/$defs/{name}"} for name in names]


def test_a_name_that_nothing_has():
    with pytest.raises(ValueError, match=r"no kind or component is called ToyCuont; did you mean 'ToyCount'\?"):
        schema("ToyCuont")
