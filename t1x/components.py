"""Imports every module that declares components, so that the registry knows them. Imports nothing heavy."""

# ruff: noqa: F401
import t1x.campaign.campaign
import t1x.campaign.checkpointing
import t1x.campaign.evaluation
import t1x.campaign.grid
import t1x.campaign.guards
import t1x.campaign.runtime
import t1x.campaign.start
import t1x.campaign.suite
import t1x.engine.embedded
import t1x.engine.sglang
import t1x.grading.reward
import t1x.harness.shell
import t1x.harness.terminus
import t1x.model.qwen3_5_moe
import t1x.model.qwen3_moe
import t1x.model.router
import t1x.parallel.plan
import t1x.rollout.scheduler
import t1x.sandbox.daytona
import t1x.sandbox.local
import t1x.tasks.demonstrations
import t1x.tasks.folder
import t1x.tasks.named
import t1x.tasks.synthetic
import t1x.text.bundled
import t1x.text.huggingface
import t1x.tracking.mlflow_tracking
import t1x.training.algorithm
import t1x.training.fine_tuning
import t1x.training.megatron
import t1x.training.objective
import t1x.training.optimizer
import t1x.training.trainer
import t1x.trajectory.stitcher
