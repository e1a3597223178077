"""A trial whose completions and whose shell are played."""

import asyncio
import dataclasses

import numpy as np

from t1x.engine.protocol import Decoding
from t1x.engine.scripted import ScriptedEngine
from t1x.sandbox.protocol import ExecResult
from t1x.tasks.task import Task
from t1x.text.bundled import BundledTokenizer

tokenizer = BundledTokenizer().build()
TASK = Task("task", "Write hi to a.txt.", (), (), ())


class Engine(ScriptedEngine):
    """Keeps what it was asked."""

    def __init__(self, turns, finish_reason=None):
        super().__init__({"s": turns})
        self.prompts, self.samplings, self.finish_reason = [], [], finish_reason

    async def generate(self, prompt_ids, sampling, session):
        self.prompts.append(prompt_ids)
        self.samplings.append(sampling)
        done = await super().generate(prompt_ids, sampling, session)
        return dataclasses.replace(done, finish_reason=self.finish_reason) if self.finish_reason else done


class Shell:
    """Answers every command with the same result."""

    id = "shell"

    def __init__(self, result=None):
        self.result, self.commands = result or ExecResult("out\n", 0), []

    async def exec(self, command, timeout):
        self.commands.append((command, timeout))
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


class Record:
    def __init__(self):
        self.turns, self.transcript = [], []

    def turn(self, turn):
        self.turns.append(turn)

    def message(self, role, text):
        self.transcript.append((role, text))


def said(*texts):
    stop = np.array(tokenizer.stop_ids[:1], np.int32)
    return [np.concatenate([tokenizer.encode(text), stop]) for text in texts]


def run(harness, turns, shell=None, engine=None, tokenizer=tokenizer):
    engine, shell, record = engine or Engine(turns), shell or Shell(), Record()
    ended = asyncio.run(
        harness.run(
            task=TASK,
            sandbox=shell,
            engine=engine,
            tokenizer=tokenizer,
            decoding=Decoding(0.7, 0.9, 5),
            seed_for=lambda turn: 100 + turn,
            session="s",
            sink=record,
        )
    )
    return ended, record, engine, shell
