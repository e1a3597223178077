"""Sampling with SGLang's servers, as a component."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from t1x.config import Role
from t1x.config.requirements import package, program, worker
from t1x.engine.protocol import Engine
from t1x.model.qwen3_moe import Model

OWNED = {
    "--attention-backend": "attention_backend",
    "--context-length": "context_length",
    "--device": "device",
    "--dtype": "dtype",
    "--enable-return-routed-experts": "routed_experts",
    "--ep": "expert_parallel",
    "--ep-size": "expert_parallel",
    "--expert-parallel-size": "expert_parallel",
    "--max-running-requests": "max_running_requests",
    "--mem-fraction-static": "mem_fraction_static",
    "--moe-a2a-backend": "dispatcher",
    "--port": "port",
    "--tensor-parallel-size": "tensor_parallel",
    "--tp": "tensor_parallel",
    "--tp-size": "tensor_parallel",
}
"""Options of `sglang.launch_server` that a field sets."""


class SGLangEngine(Engine):
    """Replicas of an SGLang server (report, section 6.1: 0.5.12.post1), each on devices of its own. Every completion is of one
    policy version: publication waits until nothing is being sampled (section 7.5)."""

    replicas: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 1
    """Servers (report, section 7.5: an earlier configuration went from 1 to 3)."""
    tensor_parallel: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 1
    """Devices of a replica (not stated in the report)."""
    expert_parallel: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 1
    """Shards of a layer's experts on them (not stated in the report)."""
    dispatcher: Annotated[Literal["none", "deepep"], Role.PLACEMENT] = "none"
    """How tokens reach experts on other devices: by all-reduce, or by DeepEP (report, section 6.1: 1.2.1)."""
    device: Annotated[Literal["cuda", "cpu"], Role.PLACEMENT] = "cuda"
    """What a server computes on."""
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    """Of weights and activations (not stated in the report)."""
    attention_backend: Annotated[str | None, Role.PLACEMENT] = None
    """SGLang's `--attention-backend`, e.g. `torch_native` on a CPU; its own choice where None."""
    mem_fraction_static: Annotated[float, Role.PLACEMENT, Field(gt=0, lt=1)] = 0.85
    """Share of a device's memory for weights and key-value cache (not stated in the report)."""
    max_running_requests: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 128
    """Requests that a replica samples at a time; others wait in it (not stated in the report)."""
    routed_experts: bool = True
    """Whether completions carry the experts that were used (report, section 4.3); replay needs them."""
    publication: Annotated[Literal["distributed", "disk"], Role.PLACEMENT] = "distributed"
    """How new weights reach the replicas: broadcast in a process group of trainer and replicas (report, section 7.5), or through a
    folder that both see."""
    publication_folder: Annotated[Path | None, Role.PLACEMENT] = None
    """That folder, where `publication` is `disk`."""
    pause: Literal["drain", "abort"] = "drain"
    """What publication does with requests that are being sampled: it waits for their end, or ends them, which makes their trials
    invalid. SGLang's other modes continue them with other weights, so that a completion would be of two versions."""
    probe_grace: Annotated[float, Role.PLACEMENT, Field(ge=0)] = 600.0
    """Seconds from a server's start to its first probe, for loading and compiling (report, section 7.3)."""
    probe_period: Annotated[float, Role.PLACEMENT, Field(gt=0)] = 30.0
    """Seconds from probe to probe (report, section 7.3)."""
    probe_deadline: Annotated[float, Role.PLACEMENT, Field(gt=0)] = 120.0
    """Seconds without an answer after which a replica counts as dead (report, section 7.3); it is started anew at the next
    publication and serves only with the newest weights."""
    python: Annotated[Path | None, Role.PLACEMENT] = None
    """Interpreter of the environment that SGLang is installed in, since it needs one of its own; this one where None."""
    port: Annotated[int, Role.PLACEMENT, Field(ge=1024, le=65535)] = 30_000
    """Of the first replica; the others have the next ones."""
    extra_args: Annotated[tuple[str, ...], Role.PLACEMENT] = ()
    """Further words for `python -m sglang.launch_server`."""

    @model_validator(mode="after")
    def _server_can(self) -> Self:
        if self.tensor_parallel % self.expert_parallel:
            raise ValueError(f"expert_parallel ({self.expert_parallel}) must divide tensor_parallel ({self.tensor_parallel})")
        if self.dispatcher == "deepep" and self.expert_parallel != self.tensor_parallel:
            raise ValueError(
                f"dispatcher 'deepep' needs expert_parallel ({self.expert_parallel}) to be tensor_parallel ({self.tensor_parallel})"
            )
        if self.publication == "disk" and self.publication_folder is None:
            raise ValueError("publication 'disk' needs a publication_folder that trainer and replicas see")
        for word in self.extra_args:
            if owner := OWNED.get(word.partition("=")[0]):
                raise ValueError(f"extra_args has {word}, which the field {owner} sets; set that instead")
        return self

    @property
    def returns_routing(self) -> bool:
        return self.routed_experts

    @property
    def devices(self) -> int:
        return self.replicas * self.tensor_parallel if self.device == "cuda" else 0

    def objection(self, model: Model) -> str:
        if model.num_attention_heads % self.tensor_parallel:
            return f"tensor_parallel = {self.tensor_parallel} must divide its {model.num_attention_heads} query heads"
        if not model.experts and self.expert_parallel > 1:
            return f"expert_parallel = {self.expert_parallel} must be 1, it has no experts"
        if model.experts % self.expert_parallel:
            return f"expert_parallel = {self.expert_parallel} must divide its {model.experts} experts a layer"
        return ""

    def missing(self) -> list[str]:
        if self.python is None:
            server = package("sglang", ">=0.5.12")
        else:
            server = program(str(self.python), "make an environment for SGLang: pip install 'sglang>=0.5.12'")
        return [*server, *worker(self)]
