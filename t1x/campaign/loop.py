"""The loop of a campaign: evaluate, start, evaluate, warm the critic up, train, evaluate."""

from collections.abc import Mapping
from pathlib import Path

from t1x.campaign.assembly import TrainingAssembly
from t1x.campaign.evaluate import evaluate_all
from t1x.campaign.outcome import Outcome
from t1x.campaign.training import TrainingStep
from t1x.engine.protocol import EngineWorker
from t1x.model.checkpoint import save_pretrained, to_hf
from t1x.model.value import ValueModel
from t1x.rollout.streams import stream


async def run_loop(assembly: TrainingAssembly, folder: Path, outcome: Outcome) -> None:
    """Runs the whole campaign. Raises what stops it; `outcome` then holds what there was."""
    campaign = assembly.experiment
    engine = campaign.engine.build(campaign.model, to_hf(assembly.policy), deterministic=campaign.deterministic)
    try:
        await _evaluate(assembly, engine, outcome, None)
        await campaign.start.prepare(assembly)
        await engine.publish(0, to_hf(assembly.policy))
        critic = None
        if campaign.algorithm.critic is not None:
            critic = campaign.model.build_value(stream(campaign.seed, "critic") >> 1)
            if campaign.critic_start is None:
                critic.start_from(assembly.policy)
            else:
                campaign.critic_start.prepare_critic(critic, assembly)
        _checkpoint(assembly, critic, folder / "checkpoints" / "start", outcome)
        await _evaluate(assembly, engine, outcome, 0)
        if assembly.steps:
            training = TrainingStep(assembly, engine, campaign.trainer.build(assembly.policy, critic, campaign.algorithm))
            await _warm_up(assembly, training)
            await _train(assembly, training, engine, outcome)
            _checkpoint(assembly, critic, folder / "checkpoints" / "final", outcome)
    finally:
        await engine.close()


async def _warm_up(assembly: TrainingAssembly, training: TrainingStep) -> None:
    batches = assembly.experiment.critic_warmup
    for index in range(batches):
        metrics = await training.warm_up_critic(index)
        assembly.tracked.metrics({f"warmup/{name}": value for name, value in metrics.items()}, index)
        assembly.progress.say(f"critic warm-up {index + 1}/{batches}: {_told(metrics)}")


async def _train(assembly: TrainingAssembly, training: TrainingStep, engine: EngineWorker, outcome: Outcome) -> None:
    with assembly.progress.phase("training", assembly.steps) as phase:
        for step in range(1, assembly.steps + 1):
            metrics, rolled = await training.train(step)
            assembly.tracked.metrics(metrics, step)
            outcome.steps[step] = metrics
            outcome.transcripts, outcome.transcripts_of = list(rolled.admitted), f"the batch of step {step}"
            assembly.progress.say(f"step {step}/{assembly.steps}: {_told(metrics)}")
            phase.advance(note=_told(metrics))
            await _evaluate(assembly, engine, outcome, step)


async def _evaluate(assembly: TrainingAssembly, engine: EngineWorker, outcome: Outcome, step: int | None) -> None:
    """Runs the suites that are due; `step` as in `Score`."""
    due = [suite for suite in assembly.experiment.suites if suite.due(step or 0, assembly.steps)]
    await evaluate_all(assembly, engine, outcome, step, due)


def _checkpoint(assembly: TrainingAssembly, critic: ValueModel | None, folder: Path, outcome: Outcome) -> None:
    """Weights only, of the networks that are to be kept."""
    networks = {"policy": assembly.policy, "critic": critic}
    for name in assembly.experiment.kept:
        if (network := networks[name]) is not None:
            save_pretrained(network, folder / name)
            outcome.checkpoint = folder


def _told(metrics: Mapping[str, float]) -> str:
    """A step in a line; what a step doesn't have is left out."""
    shown = {
        "rollout/reward_mean": "reward {:.3f}",
        "rollout/resolved_rate": "resolved {:.2f}",
        "rollout/turns_mean": "turns {:.1f}",
        "critic/explained_variance": "EV {:+.2f}",
        "actor/entropy": "entropy {:.2f}",
        "time/step": "{:.1f} s",
    }
    return ", ".join(text.format(metrics[name]) for name, text in shown.items() if name in metrics)
