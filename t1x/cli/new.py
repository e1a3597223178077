"""What `t1x new` writes: an experiment to start from, each line with what it sets."""

import re
import shlex
from pathlib import Path

from t1x.config import Component, Resolved, discover, load
from t1x.config.docs import described
from t1x.config.dump import dump
from t1x.config.names import with_article

COMMON = """
# --- commonly changed
Campaign.seed = 0
Campaign.steps = 10
Campaign.batch = 64
Campaign.reward = @TestCountReward()
TestCountReward.scale = 20
Campaign.scheduler = @Oversample()
Campaign.router = @ReplayRouting()
Campaign.critic_warmup = 2

# --- how it learns
Campaign.algorithm = @PPO()
PPO.actor_optimizer = @actor/Adam()
PPO.critic_optimizer = @critic/Adam()
actor/Adam.lr = {actor_lr}
critic/Adam.lr = {critic_lr}

# --- the tasks that it trains on: `t1x list Pool` shows other pools, @FolderPool() reads tasks of your own
Campaign.pool = @train/SyntheticPool()
train/SyntheticPool.split = 'train'
train/SyntheticPool.size = 2000

# --- the tasks that it is evaluated on
Campaign.suites = [@held_out/PoolSuite()]
held_out/PoolSuite.name = 'held_out'
held_out/PoolSuite.pool = @held_out/SyntheticPool()
held_out/PoolSuite.greedy = 100
held_out/SyntheticPool.split = 'held_out'
held_out/SyntheticPool.size = 100
"""

TINY = """
# --- the policy and its first weights
Campaign.model = @Qwen3Moe()
Campaign.start = @SupervisedStart()
SupervisedStart.pool = @demo/SyntheticPool()
SupervisedStart.demonstrations = @MixedDemonstrations()
SupervisedStart.fine_tuning = @Supervised()
demo/SyntheticPool.split = 'demo'
demo/SyntheticPool.size = 8000
Supervised.steps = 600
Supervised.batch = 32
Supervised.optimizer = @sft/Adam()
sft/Adam.lr = 3e-3
"""

PRETRAINED = """
# --- the policy and its first weights: sizes as in {folder}/config.json
Campaign.model = @Qwen3Moe()
{sizes}
Campaign.tokenizer = @HuggingFaceTokenizer()
HuggingFaceTokenizer.path = {folder!r}
HuggingFaceTokenizer.vocab_size = {vocabulary}
Campaign.start = @CheckpointStart()
CheckpointStart.path = {folder!r}

# --- how long its dialogues are, tokens and turns
Campaign.harness = @ShellHarness()
ShellHarness.context_tokens = {context}
ShellHarness.max_turns = 16
ShellHarness.max_command_tokens = {command}
ShellHarness.observation_tokens = {observation}
ShellHarness.observation_tail = {tail}
"""

CHANGED_OFTEN = ("seed", "steps", "epochs", "batch", "reward", "scheduler", "router", "critic_warmup", "temperature")
"""Fields of a root that an experiment which includes another is offered."""
LONGEST_CONTEXT = 4096
"""Tokens of a dialogue that a pretrained model is given to begin with."""


def write_experiment(file: Path, base: str | None, checkpoint: Path | None) -> None:
    """Writes a new file that loads. Raises `FileExistsError` for one that is there, `ValueError` where its name or `base` is wrong
    or `checkpoint` holds no model that t1x knows."""
    for name in (str(file), base or "", str(checkpoint or "")):
        if not name.isprintable():
            raise ValueError(f"{name!r} has a character that can't be printed; choose another name")
    if file.exists():
        raise FileExistsError(f"{file} is there already; choose another name")
    if base is not None and checkpoint is not None:
        raise ValueError("--from and --checkpoint exclude each other: an experiment has its own start")
    discover()
    body = _from(load(base, site="auto"), base) if base else _pretrained(checkpoint) if checkpoint else _tiny()
    file.write_text(f"{_head(file)}\n{body.strip()}\n", encoding="utf-8")


def _head(file: Path) -> str:
    name = shlex.quote(str(file))
    return f"# {file.stem}: say here what it studies.\n#\n#   t1x run {name} --smoke     one tiny step\n#   t1x run {name}\n"


def _tiny() -> str:
    rest = COMMON.format(actor_lr="2e-4", critic_lr="5e-4")
    return "include 'registry/models/tiny_moe.gin'\n\n" + commented(rest + TINY)


def _pretrained(folder: Path) -> str:
    from t1x.model.checkpoint import from_hf_config, read_config

    model = from_hf_config(read_config(folder))
    sizes = "\n".join(
        f"Qwen3Moe.{name} = {getattr(model, name)!r}" for name in type(model).model_fields if name not in model.initial
    )
    context = min(LONGEST_CONTEXT, model.max_position_embeddings)
    observation = min(512, context // 4)
    lengths = {"context": context, "command": min(256, context // 8), "observation": observation, "tail": observation // 2}
    text = PRETRAINED.format(folder=str(folder), sizes=sizes, vocabulary=model.vocab_size, **lengths)
    return commented(COMMON.format(actor_lr="1e-6", critic_lr="1.5e-5") + text)


def _from(resolved: Resolved, base: str) -> str:
    """Includes an experiment and offers what it has, as comments, to be changed."""
    root = type(resolved.root).__name__
    current = dict(line.split(" = ", 1) for line in dump(resolved.root).splitlines() if " = " in line)
    named = {name: current.get(f"{root}.{name}") for name in CHANGED_OFTEN}
    lines = [f"{root}.{name} = {value}" for name, value in named.items() if value and not _is_scoped(value)]
    if not lines:
        raise ValueError(f"{base} describes {with_article(root)}; a new experiment is made from a campaign or an evaluation")
    offered = "\n".join(f"# {line}" for line in commented("\n".join(lines)).splitlines())
    about = f"# --- commonly changed: take away the # before what you change; `t1x show {shlex.quote(base)}` has the rest"
    return f"include {base!r}\n\n{about}\n{offered}"


def _is_scoped(value: str) -> bool:
    """Whether a dumped value refers to a scope, which is the dump's own: the experiment that is included doesn't have it."""
    return value.startswith("@") and "/" in value


def commented(text: str) -> str:
    """The same Gin text with what each field is behind its binding, aligned in each paragraph."""
    return "\n\n".join(_aligned(paragraph.splitlines()) for paragraph in text.strip().split("\n\n"))


def _aligned(lines: list[str]) -> str:
    width = max(len(line) for line in lines if not line.startswith("#"))
    return "\n".join(line if not (about := _about(line)) else f"{line:<{width}}  # {about}" for line in lines)


def _about(binding: str) -> str:
    """What the field of a binding is, in a clause."""
    found = re.match(r"(?:[\w/]+/)?(\w+)\.(\w+) = ", binding)
    if found is None:
        return ""
    about = described(Component.registry[found[1]], found[2])
    return re.split(r"\.\s|\.$|;|(?<=\w\w\w): | \(|,? e\.g\. ", about)[0]
