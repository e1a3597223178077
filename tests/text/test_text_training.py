import json
import subprocess
import sys
from importlib import resources

import tokenizers
from tokenizers import pre_tokenizers

from t1x.tasks.corpus import task_texts
from t1x.tasks.synthetic import SyntheticPool
from t1x.text.train_tokenizer import SPECIAL_TOKENS, SPLIT, VOCABULARY


def test_same_data_gives_the_same_file(tmp_path):
    pool = SyntheticPool(split="demo", size=60).build()
    texts = [text for i in range(60) for text in task_texts(pool[i])]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, texts)))
    made = []
    for hash_seed in ("1", "2"):
        target = tmp_path / f"{hash_seed}.json"
        argv = [sys.executable, "-m", "t1x.text.train_tokenizer", tmp_path / "corpus.jsonl", target]
        subprocess.run(argv, env={"PYTHONHASHSEED": hash_seed}, check=True)
        made.append(target.read_bytes())
    assert made[0] == made[1]


def test_shipped_tokenizer_is_of_this_trainer():
    shipped = json.loads((resources.files("t1x.text") / "data" / "tokenizer.json").read_text())
    assert len(shipped["model"]["vocab"]) == VOCABULARY == 700
    assert [token["content"] for token in shipped["added_tokens"]] == SPECIAL_TOKENS
    assert shipped["pre_tokenizer"]["pretokenizers"][0]["pattern"] == {"Regex": SPLIT}
    assert set(pre_tokenizers.ByteLevel.alphabet()) <= set(shipped["model"]["vocab"])


def test_tokens_are_few():
    """A small model sees short sequences: most words of the pool are one token."""
    tokenizer = tokenizers.Tokenizer.from_str((resources.files("t1x.text") / "data" / "tokenizer.json").read_text())
    pool = SyntheticPool(split="held_out", size=200).build()
    commands = [command for i in range(200) for goal in pool[i].solution for command in goal.commands]
    assert sum(len(tokenizer.encode(command).ids) for command in commands) / len(commands) < 7
