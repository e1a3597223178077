"""The cluster's components: what doesn't fit together is refused when it is built, and what isn't here is told."""

from typing import Any

import pytest
from pydantic import ValidationError

from t1x.campaign.campaign import Campaign
from t1x.campaign.runtime import InlineRuntime, RayRuntime
from t1x.campaign.start import CheckpointStart, ScratchStart
from t1x.config import load
from t1x.config.requirements import NotHere, missing, require
from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.sglang import SGLangEngine
from t1x.harness.terminus import Terminus2Harness
from t1x.model.qwen3_5_moe import Qwen3_5Moe
from t1x.model.router import ReplayRouting
from t1x.parallel.plan import MegatronPlan
from t1x.sandbox.daytona import DaytonaSandbox
from t1x.sandbox.local import BubblewrapSandbox
from t1x.tasks.folder import FolderPool
from t1x.text.huggingface import HuggingFaceTokenizer
from t1x.training.megatron import MegatronTrainer
from t1x.training.trainer import TorchTrainer

QUICKSTART = load("experiments/quickstart.gin").root
MODEL = Qwen3_5Moe(
    num_hidden_layers=48,
    num_attention_heads=32,
    hidden_size=3072,
    moe_intermediate_size=1024,
    shared_expert_intermediate_size=1024,
)
TRAINER = MegatronTrainer(plan=MegatronPlan(tensor=2, pipeline=4, context=4, data=2, expert=16))
ENGINE = SGLangEngine(replicas=8, tensor_parallel=8)
RUNTIME = RayRuntime()
VERSIONS = {"megatron-core": "0.16.1", "sglang": "0.5.12.post1", "ray": "2.55.1"}
"""As installed packages would say; two of them are the report's."""


def cluster(**changes: Any) -> Campaign:
    """The report's stack with changes; whatever it doesn't say is the quickstart's."""
    fields = {name: getattr(QUICKSTART, name) for name in Campaign.model_fields}
    fields |= {
        "model": MODEL,
        "start": ScratchStart(),
        "suites": (),
        "router": ReplayRouting(),
        "harness": Terminus2Harness(),
        "tokenizer": HuggingFaceTokenizer(path="checkpoint", vocab_size=248_320),
        "trainer": TRAINER,
        "engine": ENGINE,
        "runtime": RUNTIME,
        "sandbox": DaytonaSandbox(),
        "agent_deadline": 3600.0,
        "verifier_deadline": 900.0,
        "concurrency": 560,
    }
    return Campaign(**(fields | changes))


def refused(**changes: Any) -> str:
    with pytest.raises(ValidationError) as error:
        cluster(**changes)
    (detail,) = error.value.errors()
    return str(detail["msg"])


def test_the_stack_of_the_report_fits():
    """8 nodes that sample host 560 trials at 70 a node, the lower of the report's caps at batch 512."""
    assert cluster().training_devices == 64


def test_a_plan_has_to_fit_the_model():
    said = refused(trainer=MegatronTrainer(plan=MegatronPlan(pipeline=5)))
    assert "trainer MegatronTrainer and model Qwen3_5Moe: pipeline = 5 must divide its 48 layers" in said


def test_an_engine_has_to_fit_the_model():
    assert "tensor_parallel = 3 must divide its 32 query heads" in refused(engine=SGLangEngine(tensor_parallel=3))
    assert "engine EmbeddedEngine and model Qwen3_5Moe: it runs @Qwen3Moe() only" in refused(engine=EmbeddedEngine())


def test_replay_needs_an_engine_that_returns_experts():
    said = refused(engine=SGLangEngine(replicas=8, tensor_parallel=8, routed_experts=False))
    assert "engine SGLangEngine doesn't return them" in said


def test_replay_refuses_load_balancing():
    said = refused(trainer=TRAINER.model_copy(update={"load_balancing": 0.01}))
    assert "trainer MegatronTrainer has load_balancing = 0.01" in said
    assert "set load_balancing to 0" in said


def test_the_torch_trainer_has_no_load_balancing():
    with pytest.raises(ValidationError, match="less than or equal to 0"):
        TorchTrainer(load_balancing=0.01)


def test_one_process_runs_no_plan_of_many_devices():
    assert "it is one process, and the trainer's plan needs 64; use @RayRuntime()" in refused(runtime=InlineRuntime())


@pytest.mark.parametrize(
    ("runtime", "message"),
    [
        ({"inference_devices": 32, "training_devices": 64}, "the engine needs 64 GPUs, but inference_devices is 32"),
        ({"inference_devices": 64, "training_devices": 32}, "the trainer's plan needs 64 GPUs, but training_devices is 32"),
        (
            {"inference_devices": 64, "training_devices": 64, "trials_per_node": 69},
            "concurrency is 560, but 8 nodes that sample host 552 trials",
        ),
    ],
)
def test_a_runtime_has_what_its_parts_need(runtime, message):
    assert f"runtime RayRuntime: {message}" in refused(runtime=RayRuntime(**runtime))


def test_the_deadlines_of_a_trial_fit_the_remote_one():
    """Setup, agent (3600 s) and verifier (900 s) are the remote 5400 s of the report, to the second."""
    said = refused(sandbox=DaytonaSandbox(setup_deadline=901))
    assert "sandbox DaytonaSandbox and the trial's deadlines: setup_deadline (901 s)" in said
    assert "take 5401 s, but remote_deadline ends a trial after 5400 s" in said
    assert "5401" in refused(agent_deadline=3601.0)
    cluster(sandbox=DaytonaSandbox(setup_deadline=901, remote_deadline=5401))


def test_context_shards_need_transformer_engine():
    with pytest.raises(ValidationError, match=r"plan.context = 2 needs Transformer Engine's attention"):
        MegatronTrainer(plan=MegatronPlan(context=2), layer_spec="local")
    MegatronTrainer(layer_spec="local")


def test_all_that_the_cluster_lacks_here_is_told_at_once(monkeypatch):
    monkeypatch.delenv("DAYTONA_API_KEY", raising=False)
    monkeypatch.setattr("t1x.config.requirements.gpus_here", lambda: 0)
    with pytest.raises(NotHere) as refusal:
        require(cluster(start=CheckpointStart(path="nowhere")))
    said = str(refusal.value)
    for line in (
        "128 GPUs, 0 are here",
        "environment variable DAYTONA_API_KEY",
        "folder nowhere (CheckpointStart.path",
        "folder checkpoint (HuggingFaceTokenizer.path",
        "package megatron-core (pip install 'megatron-core>=0.16.0rc0,<0.17')",
        "package transformer-engine",
        "package sglang",
        "package ray",
        "package daytona-sdk",
        "Campaign.trainer: MegatronTrainer",
    ):
        assert line in said, line
    for name in ("Qwen3_5Moe", "Terminus2Harness", "MegatronTrainer", "SGLangEngine", "RayRuntime", "DaytonaSandbox"):
        assert f"worker of {name}: not built yet" in said


def test_what_is_here_is_not_told(monkeypatch, tmp_path):
    monkeypatch.setenv("DAYTONA_API_KEY", "key")
    monkeypatch.setattr("t1x.config.requirements.gpus_here", lambda: 128)
    monkeypatch.setattr("importlib.metadata.version", lambda name: VERSIONS[name])
    lines = [lack.line for lack in missing(cluster(trainer=MegatronTrainer(layer_spec="local"), sandbox=BubblewrapSandbox()))]
    assert not [line for line in lines if line.startswith(("128 GPUs", "environment", "package megatron", "package sglang"))]
    assert CheckpointStart(path=tmp_path).missing() == []
    assert FolderPool(path=tmp_path).missing() == []


@pytest.mark.parametrize(
    ("runtime", "count"),
    [
        ({}, 128),
        ({"inference_devices": 72, "training_devices": 64}, 136),
        ({"address": "auto"}, None),
    ],
)
def test_gpus_have_to_be_here_unless_a_cluster_has_them(monkeypatch, runtime, count):
    monkeypatch.setattr("t1x.config.requirements.gpus_here", lambda: 0)
    lines = [lack.line for lack in missing(cluster(runtime=RayRuntime(**runtime))) if "GPUs" in lack.line]
    assert lines == ([f"{count} GPUs, 0 are here"] if count else [])


def test_the_quickstart_lacks_nothing_here():
    """It runs on this machine, so whatever it was told to lack would be wrong."""
    assert missing(QUICKSTART) == []


def test_a_missing_sandbox_program_says_what_to_do(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    (line,) = BubblewrapSandbox().missing()
    assert line.startswith("program bwrap (apt-get install bubblewrap, or choose `@ProcessSandbox()`")
