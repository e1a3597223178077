"""Small tokenizers with random merges and templates with quirks. Rendering, encoding and decoding stand here a second time, in
plain Python, so that the library's are checked by them."""

import functools
import itertools
import random
from dataclasses import dataclass

import numpy as np
import tokenizers
from hypothesis import strategies as st
from promises import promise
from tokenizers import decoders, models, pre_tokenizers

from t1x.text.chat import TemplatedTokenizer
from t1x.text.tokenizer import EncodedText, RenderedPrompt

SPECIAL = ("<|pad|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>")
STOP = SPECIAL.index("<|end|>")
LETTERS = "ab \n.é\u00a0"
THINK = "<think>\n\n</think>\n\n"


@dataclass(frozen=True)
class Style:
    """What a chat template does besides listing messages."""

    header: str = ""
    """Behind a role's token."""
    before_stop: str = ""
    """Between an answer and its stop token."""
    behind_stop: str = ""
    think: bool = False
    """Whether the generation prompt has an empty think block."""
    kept: str = "all"
    """Which answers of the history have that block before them: `all`, `last` or `none`."""
    trims: bool = False
    """Whether answers lose white space at their ends."""
    prunes: bool = False
    """Whether all answers but the last lose what stands before `</think>`."""

    def render(self, messages, generation_prompt=True):
        """The text, and [b, e) of the last answer in it (None where there is none)."""
        text, answer = "", None
        last = max((i for i, (role, _) in enumerate(messages) if role == "assistant"), default=None)
        for i, (role, content) in enumerate(messages):
            text += f"<|{role}|>{self.header}"
            if role == "assistant":
                if self.think and (self.kept == "all" or (self.kept == "last" and i == last)):
                    text += THINK
                if self.prunes and i != last:
                    content = content.split("</think>")[-1]
                if self.trims:
                    content = content.rstrip()
                answer = (len(text), len(text) + len(content))
                text += content + self.before_stop
            else:
                text += content
            text += "<|end|>" + self.behind_stop
        if generation_prompt:
            text += "<|assistant|>" + self.header + (THINK if self.think else "")
        return text, answer

    @property
    def jinja(self):
        content = "message.content.split('</think>')[-1]" if self.prunes else "message.content"
        trim = ".rstrip()" if self.trims else ""
        kept = {"all": "true", "last": "loop.index0 == found.last", "none": "false"}[self.kept] if self.think else "false"
        block = THINK if self.think else ""
        return (
            "{% set found = namespace(last=-1) %}{% for message in messages %}{% if message.role == 'assistant' %}"
            "{% set found.last = loop.index0 %}{% endif %}{% endfor %}"
            f"{{% for message in messages %}}{{{{ '<|' ~ message.role ~ '|>' ~ {self.header!r} }}}}"
            f"{{% if message.role == 'assistant' %}}{{% if {kept} %}}{{{{ {THINK!r} }}}}{{% endif %}}"
            f"{{% if loop.index0 != found.last %}}{{{{ ({content}){trim} }}}}"
            f"{{% else %}}{{{{ message.content{trim} }}}}{{% endif %}}"
            f"{{{{ {self.before_stop!r} }}}}{{% else %}}{{{{ message.content }}}}{{% endif %}}"
            f"{{{{ '<|end|>' ~ {self.behind_stop!r} }}}}{{% endfor %}}"
            f"{{% if add_generation_prompt %}}{{{{ '<|assistant|>' ~ {self.header!r} ~ {block!r} }}}}{{% endif %}}"
        )


class SmallChat:
    """A tokenizer and a style: `tokenizer` is the library's, everything else this file's."""

    def __init__(self, spaces, seed, style):
        self.style = style
        self._plain, self.pieces = _bpe(spaces, seed)
        """`pieces` [id]: the bytes that an id stands for."""
        self.tokenizer = TemplatedTokenizer(_bpe(spaces, seed)[0], style.jinja, stop_token="<|end|>")
        self.leads = spaces == "always"
        """Whether a space stands in front of every text."""
        names = self._plain.get_vocab()
        self._byte_tokens = set() if spaces == "bytes" else {names[f"<0x{value:02X}>"] for value in range(256)}
        self._by_first = {}
        for id_, piece in enumerate(self.pieces[len(SPECIAL) :], len(SPECIAL)):
            self._by_first.setdefault(piece[:1], []).append((id_, piece))

    def text(self, ids, specials=True):
        """What ids stand for. A space in front of a text is the tokenizer's, where it puts one there. What isn't UTF-8 reads as
        U+FFFD: by the standard's rule among byte-level tokens, each byte of a run of byte tokens among characters."""
        raw, fresh = b"", True
        for is_byte, run in itertools.groupby((i for i in ids if specials or i >= len(SPECIAL)), self._byte_tokens.__contains__):
            parts, whole = [], b""
            for i in run:
                parts.append(self.pieces[i].removeprefix(b" ") if fresh and self.leads else self.pieces[i])
                whole += self.pieces[i]
                fresh = i < len(SPECIAL)
            raw += b"".join(parts) if not is_byte or _is_utf8(whole) else "\ufffd".encode() * len(whole)
        return raw.decode("utf-8", "replace")

    def encode(self, text):
        """The canonical ids of plain text."""
        return self._plain.encode(text, add_special_tokens=False).ids if text else []

    def spans(self, text):
        """A rendered text's ids and the character at which each begins."""
        ids, starts, plain, at = [], [], "", 0
        while at <= len(text):
            special = next((name for name in SPECIAL if text.startswith(name, at)), None)
            if special is None and at < len(text):
                plain += text[at]
                at += 1
                continue
            raw = plain.encode()
            offset = -int(self.leads and not plain.startswith(" "))  # of the space that the tokenizer puts in front
            for id_ in self.encode(plain):
                ids.append(id_)
                starts.append(at - len(plain) + len(raw[: max(0, offset)].decode("utf-8", "ignore")))
                offset += len(self.pieces[id_])
            assert not plain or offset == len(raw), "ids spell the text"
            if special is None:
                break
            ids.append(SPECIAL.index(special))
            starts.append(at)
            plain = ""
            at += len(special)
        return EncodedText(text, np.array(ids, np.int32), np.array(starts, np.int32))

    def prompt(self, messages):
        text, answer = self.style.render(messages)
        return RenderedPrompt(self.spans(text), answer)

    def split(self, text, rng):
        """Ids that spell a text, cut at random: mostly not as the tokenizer would."""
        raw, ids, at = (" " * (self.leads and rng.random() < 0.5) + text).encode(), [], 0
        while at < len(raw):
            fits = [(id_, piece) for id_, piece in self._by_first[raw[at : at + 1]] if raw.startswith(piece, at)]
            id_, piece = rng.choice(fits)
            ids.append(id_)
            at += len(piece)
        return ids


@functools.cache
def small_chat(spaces, seed, style):
    return SmallChat(spaces, seed, style)


OPTIONS = {
    "spaces": ["bytes", "never", "always"],
    "seed": range(6),
    "header": ["", "\n"],
    "before_stop": ["", "\n"],
    "behind_stop": ["", "\n"],
    "think": [False, True],
    "kept": ["all", "last", "none"],
    "trims": [False, True],
    "prunes": [False, True],
}
"""The simplest first."""
ALL = [dict(zip(OPTIONS, values, strict=True)) for values in itertools.product(*OPTIONS.values())]
MADE = sorted(random.Random(0).sample(range(len(ALL)), k=min(len(ALL), promise.max_examples // 2)))
"""Which of them are made, since to make one takes longest: every test has the same."""


def chat_of(number):
    options = dict(ALL[number])
    return small_chat(options.pop("spaces"), options.pop("seed"), Style(**options))


chats = st.builds(chat_of, st.sampled_from(MADE))


def _bpe(spaces, seed):
    """A byte-level BPE, or one of characters whose spaces are written `▁` with bytes as a last resort, which puts a space in front
    of a text `always` or `never`. Merges are random, longer ones rarer, and cross every border between words."""
    rng = random.Random(f"{spaces} {seed}")
    if spaces == "bytes":
        byte = _bytes_to_letters()
        symbols = {letter: bytes([value]) for value, letter in byte.items()}
        alphabet = [byte[value] for value in LETTERS.encode()] + list("<>think/")
    else:
        symbols = {f"<0x{value:02X}>": bytes([value]) for value in range(256)}
        alphabet = ["▁" if letter == " " else letter for letter in LETTERS if letter not in "\n\u00a0"] + list("<>think/")
        symbols |= {letter: letter.replace("▁", " ").encode() for letter in alphabet}
    merges, known = [], [*alphabet]
    for _ in range(40):
        left, right = rng.choice(known), rng.choice(alphabet if rng.random() < 0.6 else known)
        if len(left + right) <= 5 and left + right not in symbols:
            symbols[left + right] = symbols[left] + symbols[right]
            merges.append((left, right))
            known.append(left + right)
    vocabulary = {name: i for i, name in enumerate([*SPECIAL, *symbols])}
    if spaces == "bytes":
        bpe = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
        bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        bpe.decoder = decoders.ByteLevel()
    else:
        bpe = tokenizers.Tokenizer(models.BPE(vocabulary, merges, byte_fallback=True))
        bpe.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=spaces, split=False)
        strip = [decoders.Strip(" ", 1, 0)] if spaces == "always" else []
        bpe.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *strip])
    bpe.add_special_tokens([tokenizers.AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    bpe.encode_special_tokens = True
    return bpe, [name.encode() for name in SPECIAL] + list(symbols.values())


def _bytes_to_letters():
    """GPT-2's table: a visible letter for every byte, as the library's byte-level alphabet has them."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [value for value in range(256) if value not in visible]
    table = {value: chr(value) for value in visible} | {value: chr(256 + i) for i, value in enumerate(hidden)}
    assert set(table.values()) == set(pre_tokenizers.ByteLevel.alphabet())
    return table


def _is_utf8(raw):
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
