"""What an SGLang server can't be started with is refused when the component is built."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from t1x.engine.sglang import OWNED, SGLangEngine


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tensor_parallel": 4, "expert_parallel": 3}, "expert_parallel \\(3\\) must divide tensor_parallel \\(4\\)"),
        (
            {"tensor_parallel": 4, "expert_parallel": 2, "dispatcher": "deepep"},
            "needs expert_parallel \\(2\\) to be tensor_parallel",
        ),
        ({"publication": "disk"}, "needs a publication_folder"),
        ({"extra_args": ("--log-level", "info", "--tp=4")}, "--tp=4, which the field tensor_parallel sets"),
        ({"pause": "retract"}, "'drain' or 'abort'"),
    ],
)
def test_what_a_server_cannot_do_is_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        SGLangEngine(**fields)


def test_what_it_can_do_is_taken():
    spread = SGLangEngine(tensor_parallel=4, expert_parallel=4, dispatcher="deepep", extra_args=("--log-level", "info"))
    assert spread.devices == 4
    assert SGLangEngine(publication="disk", publication_folder="weights").publication_folder == Path("weights")


def test_owned_options_belong_to_fields():
    assert set(OWNED.values()) <= set(SGLangEngine.model_fields)


def test_devices_are_those_of_all_replicas():
    assert SGLangEngine(replicas=3, tensor_parallel=8).devices == 24
    assert SGLangEngine(replicas=3, device="cpu").devices == 0


def test_an_environment_of_its_own_is_looked_for_where_it_is_said_to_be(tmp_path):
    assert SGLangEngine().missing()[0].startswith("package sglang")
    there = tmp_path / "python"
    assert SGLangEngine(python=there).missing()[0].startswith(f"program {there} ")
    there.write_text("#!/bin/sh\n")
    there.chmod(0o755)
    assert SGLangEngine(python=there).missing() == ["worker of SGLangEngine: not built yet"]
