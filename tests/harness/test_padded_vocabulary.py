"""A checkpoint whose model has more ids than its tokenizer, sampled untrained at T = 1: a third of what it says stands for nothing,
and all of it is what was sampled."""

import asyncio
import dataclasses
import io

import numpy as np
import pytest
import torch
from own_checkpoint import write
from played import TASK, Record, Shell
from rich.console import Console

from t1x.cli.trajectory_page import trial_page
from t1x.cli.trajectory_text import trial_text
from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Decoding
from t1x.harness.shell import ShellHarness
from t1x.harness.text_shell import TextShellHarness
from t1x.model.checkpoint import to_hf
from t1x.model.qwen3_moe import Qwen3Moe
from t1x.text.canonical import noncanonical
from t1x.text.huggingface import HuggingFaceTokenizer
from t1x.trajectory.audit import audit
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Boundary
from t1x.trajectory.shown import shown
from t1x.trajectory.stitcher import RetokenizingStitcher, StitchingError, TokenStitcher
from t1x.trajectory.storage_reader import read_trials
from t1x.trajectory.storage_writer import TrialWriter
from t1x.trajectory.stored import StoredTrial

torch.set_num_threads(1)
OWN, PADDED = 320, 150
MODEL = Qwen3Moe(
    vocab_size=OWN + PADDED,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=1,
    num_key_value_heads=1,
    head_dim=16,
    num_experts=4,
    num_experts_per_tok=2,
    moe_intermediate_size=8,
    max_position_embeddings=512,
)


@pytest.fixture(scope="module")
def chat(tmp_path_factory):
    return HuggingFaceTokenizer(path=write(tmp_path_factory.mktemp("padded")), vocab_size=MODEL.vocab_size).build()


@pytest.fixture(scope="module")
def played(chat):
    """The turns of four trials in each harness."""

    async def main():
        engine = EmbeddedEngine().build(MODEL, to_hf(MODEL.build(seed=0)), version=0, deterministic=False)
        try:
            return {harness: [await trial(engine, harness, number) for number in range(4)] for harness in HARNESSES}
        finally:
            await engine.close()

    async def trial(engine, harness, number):
        record = Record()
        limits = {"max_turns": 6, "context_tokens": 300, "max_command_tokens": 12}
        ended = await (ShellHarness if harness == "ids" else TextShellHarness)(**limits).run(
            task=TASK,
            sandbox=Shell(),
            engine=engine,
            tokenizer=chat,
            decoding=Decoding(1.0),
            seed_for=lambda turn: 100 * number + turn,
            session=f"{harness}{number}",
            sink=record,
        )
        assert ended in (EndedBy.TURN_LIMIT, EndedBy.CONTEXT)
        return record.turns

    return asyncio.run(main())


HARNESSES = ("ids", "text")


def padded(ids):
    return ids >= OWN


@pytest.mark.parametrize("harness", HARNESSES)
def test_what_was_sampled_is_trained_on_whatever_it_stands_for(chat, played, harness):
    cases = set()
    for number, turns in enumerate(played[harness]):
        sampled = np.concatenate([turn.completion.ids for turn in turns])
        assert padded(sampled).any()
        streams = TokenStitcher().stitch(f"t{number}", turns, chat, MODEL.routing_layout)
        assert np.concatenate([stream.token_ids[stream.loss_mask] for stream in streams]).tolist() == sampled.tolist()
        found = audit(turns, streams)
        assert (found.violations, found.loss_tokens) == (0, len(sampled))
        cases |= set(found.boundaries)
        assert harness == "ids" or not any(padded(turn.prompt_ids).any() for turn in turns), "no text has them"
        assert noncanonical(chat, sampled)[padded(sampled)].all()
    assert cases == {Boundary.EXACT} if harness == "ids" else Boundary.RETOKENIZED in cases


@pytest.mark.parametrize("harness", HARNESSES)
def test_encoded_anew_they_are_gone_and_the_text_is_the_same(chat, played, harness):
    for number, turns in enumerate(played[harness]):
        streams = [
            each(f"t{number}", turns, chat, MODEL.routing_layout)
            for each in (TokenStitcher().stitch, RetokenizingStitcher().stitch)
        ]
        for old, new in zip(*streams, strict=True):
            assert padded(old.token_ids).any()
            assert not padded(new.token_ids).any()
            assert chat.decode_spans(old.token_ids).text == chat.decode_spans(new.token_ids).text
            assert new.loss_mask.any()


@pytest.mark.parametrize("harness", HARNESSES)
def test_they_are_stored_and_shown(chat, played, harness, tmp_path):
    turns = played[harness][0]
    streams = TokenStitcher().stitch("t", turns, chat, MODEL.routing_layout)
    trial = StoredTrial("t", "task", EndedBy.TURN_LIMIT, 0.0, False, tuple(turns), tuple(streams))
    with TrialWriter(tmp_path / "trials.parquet", {"run": "r", "step": "1"}) as writer:
        writer.add(trial)
    (read,) = read_trials(tmp_path / "trials.parquet")
    assert [turn.completion.ids.tolist() for turn in read.turns] == [turn.completion.ids.tolist() for turn in turns]
    seen = shown(read, chat)
    for turn in seen.turns:
        for id_, text, data in zip(turn.sampled.ids, turn.sampled.texts, turn.sampled.bytes, strict=True):
            assert not padded(id_) or (text, data) == (f"⟨{id_}⟩", b"")
    page = "".join(trial_page(seen, "step 1"))
    console = Console(file=io.StringIO(), width=200)
    console.print(trial_text(seen, "step 1", everything=True))
    for id_ in turns[0].completion.ids[padded(turns[0].completion.ids)]:
        assert f"⟨{id_}⟩" in page
        assert f"⟨{id_}⟩" in console.file.getvalue()


def test_ids_that_the_model_has_not_are_refused(chat, played):
    turn = played["ids"][0][0]
    beyond = np.full_like(turn.completion.ids, MODEL.vocab_size)
    wrong = dataclasses.replace(turn, completion=dataclasses.replace(turn.completion, ids=beyond))
    with pytest.raises(
        StitchingError, match=f"has the id {MODEL.vocab_size}, and the vocabulary has ids from 0 to {MODEL.vocab_size - 1}"
    ):
        TokenStitcher().stitch("t", [wrong], chat, MODEL.routing_layout)
