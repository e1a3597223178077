"""The rules of stitching, token by token over Python lists: slow, obvious, and sharing nothing with the library's stitchers but its
records and errors."""

from worlds import row_of

from t1x.trajectory.stitcher import RoutingRecordError, StitchingError, TokenFidelityError

SUFFIX, DROPPED = 96, 16
"""Most ids that may be gone from a prompt's end, and from an answer's (Case 7)."""


class SlowStitcher:
    """Chunks are dicts of lists. `ids` and `rows` are what the engine consumed and captured in the latest turn; `place` is where
    the stream's last id stands in it (None: nowhere). `gone` are ids at the end of an answer that prompts have left out since,
    while nothing was put behind it."""

    def __init__(self, chat, layout):
        self.chat, self.layout, self.chunks = chat, layout, []
        self.prompt, self.answer, self.rows, self.place, self.rendered, self.gone = [], [], [], None, None, []

    def add(self, turn):
        done, prompt, answer = turn.completion, turn.prompt_ids.tolist(), turn.completion.ids.tolist()
        self.check(turn, prompt, answer)
        case, skipped, place, gone = self.relation(turn, prompt) if self.chunks else ("first", 0, None, [])
        if case in ("exact", "edge", "retokenized") and (again := self.again(self.gone, prompt[skipped:])):
            skipped, place = skipped + again, skipped + again - 1
        rows = self.captured(turn, prompt)
        if case == "first":
            self.open(turn, prompt, [])
        else:
            if case == "restart":
                self.open(turn, prompt, ["restart"])
            else:
                if self.chunks[-1]["temperature"] != turn.temperature:
                    raise StitchingError("another temperature")
                self.before_last(case, prompt[skipped:], answer, rows, place)
        chunk = self.chunks[-1]
        for at in range(skipped, len(prompt)):
            chunk["ids"].append(prompt[at])
            chunk["mask"].append(False)
            chunk["logprobs"].append(0.0)
            chunk["versions"].append(None)
        for id_, logprob in zip(answer, done.logprobs.tolist(), strict=True):
            chunk["ids"].append(id_)
            chunk["mask"].append(True)
            chunk["logprobs"].append(logprob)
            chunk["versions"].append(done.version)
        whole = prompt + answer
        for at in range(skipped, len(whole) - 1):
            chunk["rows"].append(rows[at])
        self.place = len(whole) - 1 if len(whole) > skipped else place
        grown = len(whole) > skipped or self.place is not None
        self.gone = [] if grown else gone if self.answer else self.gone
        self.prompt, self.answer, self.rows, self.rendered = prompt, answer, rows, turn.rendered

    def open(self, turn, prompt, boundaries):
        self.chunks.append(
            {
                "ids": [],
                "mask": [],
                "logprobs": [],
                "versions": [],
                "rows": [],
                "boundaries": boundaries,
                "substituted": [],
                "temperature": turn.temperature,
            }
        )

    def before_last(self, case, context, answer, rows, place):
        """The row of the stream's last id, which no turn had captured yet."""
        chunk = self.chunks[-1]
        last = len(chunk["ids"]) - 1
        if context or answer:
            if place is not None:
                row = rows[place]
            elif context and last > 0:
                row = chunk["rows"][last - 1]
                chunk["substituted"].append(last)
            else:
                error = RoutingRecordError if self.layout else TokenFidelityError
                raise error("Eq. 14: a loss position has no row; where models have none, nothing follows what the prompt lacks")
            chunk["rows"].append(row)
        chunk["boundaries"].append(case)

    def check(self, turn, prompt, answer):
        done = turn.completion
        if turn.index != sum(len(chunk["boundaries"]) for chunk in self.chunks) + (len(self.chunks) > 0):
            raise StitchingError("a turn out of order")
        if not prompt:
            raise StitchingError("an empty prompt")
        if any(type(id_) is not int or not 0 <= id_ < self.chat.tokenizer.vocab_size for id_ in prompt + answer):
            raise StitchingError("not ids of the vocabulary")
        logprobs = done.logprobs.tolist()
        if len(logprobs) != len(answer) or any(not -float("inf") < value <= 1e-4 for value in logprobs):
            raise StitchingError("log-probabilities")
        if not 0 <= turn.temperature < float("inf") or done.version < 0:
            raise StitchingError("temperature or version")
        if not 0 <= done.cached_tokens <= len(prompt) or not 0 <= turn.placeholder_tokens <= len(prompt):
            raise StitchingError("counts beyond the prompt")
        layers, k, dtype = row_of(self.layout)
        if done.routing.ndim != 3 or done.routing.shape[1:] != (layers, k) or done.routing.dtype != dtype:
            raise RoutingRecordError("shape or type")
        if done.routing_start < 0 or done.routing_start + len(done.routing) != len(prompt) + len(answer) - 1:
            raise RoutingRecordError("rho = |p| + |a| - 1")
        for row in done.routing.tolist():
            for experts in row:
                if len(set(experts)) != k or any(not 0 <= expert < self.layout.experts for expert in experts):
                    raise RoutingRecordError("not k distinct experts")

    def captured(self, turn, prompt):
        """A row for every position of the turn; those that it left out are the turn's before, where the ids are the same."""
        start, routing = turn.completion.routing_start, turn.completion.routing.tolist()
        consumed = self.prompt + self.answer
        if start and (len(self.rows) < start or consumed[:start] != prompt[:start]):
            raise RoutingRecordError("rows that nobody has")
        for at in range(start, min(turn.completion.cached_tokens, len(self.rows), len(prompt))):
            if consumed[: at + 1] == prompt[: at + 1] and routing[at - start] != self.rows[at]:
                raise RoutingRecordError("a row from the cache differs from the earlier one")
        return self.rows[:start] + routing

    def relation(self, turn, prompt):
        """(case, how many of the prompt's ids the stream doesn't get, where its last id stands in the prompt, ids at the answer's
        end that the prompt lacks)"""
        p, a = self.prompt, self.answer
        if prompt[: len(p) + len(a)] == p + a:
            return "exact", len(p) + len(a), self.place, []
        if turn.restarted:
            return "restart", 0, None, []
        part = 0
        while part < min(len(p), len(prompt)) and p[part] == prompt[part]:
            part += 1
        most, known = self.suffix()
        blank = self.blank(a)
        for s in range(min(most, len(p) - 1) + 1):
            for u in range(min(DROPPED, len(a)) + 1):
                begin, dropped = len(p) - s, a[len(a) - u :]
                kept = p[:begin] + a[: len(a) - u]
                if prompt[: len(kept)] != kept or not all(self.blank(dropped)):
                    continue
                n = max(n for n in range(u + 1) if prompt[len(kept) : len(kept) + n] == dropped[u - n :])
                if turn.rendered and turn.rendered.answer:
                    starts = [*turn.rendered.encoded.starts.tolist(), len(turn.rendered.encoded.text)]
                    if starts.index(turn.rendered.answer[0]) != begin if turn.rendered.answer[0] in starts else True:
                        continue
                    if u and starts[len(kept) + n] < min(turn.rendered.answer[1], starts[-1]):
                        return self.by_text(turn, prompt)
                elif all(blank):
                    if begin != part or (s and not known):
                        continue
                elif all(blank[at - begin] for at in range(part, len(kept))):
                    continue
                skipped = len(kept) + (n or self.closed(dropped, prompt[len(kept) :]))
                return "edge", skipped, skipped - 1 if a and (u == 0 or skipped > len(kept)) else None, dropped
        return self.by_text(turn, prompt)

    def suffix(self):
        """How many ids at the prompt's end may be the template's, and whether it ends as all of the template's do: the ids of that
        end, or else all behind the last one that ends a message."""
        text, end = self.chat.text(self.prompt), self.chat.style.render([])[0]
        if text.endswith(end):
            ids = next(n for n in range(len(self.prompt) + 1) if self.chat.text(self.prompt[len(self.prompt) - n :]) == end)
            return min(SUFFIX, ids), True
        stops = [at for at, id_ in enumerate(self.prompt) if id_ in self.chat.tokenizer.stop_ids]
        return min([SUFFIX, len(self.prompt), *(len(self.prompt) - 1 - at for at in stops)]), False

    def blank(self, ids):
        """For each id, whether it is a stop id, or of ids that are white space together."""
        found = [id_ in self.chat.tokenizer.stop_ids for id_ in ids]
        texts = [self.chat.text(ids[:n]) for n in range(len(ids) + 1)]
        whole = [texts[-1].startswith(text) for text in texts]
        for first in range(len(ids)):
            for behind in range(first + 1, min(first + 4, len(ids)) + 1):
                if whole[first] and whole[behind] and not texts[behind][len(texts[first]) :].strip():
                    found[first:behind] = [True] * (behind - first)
        return found

    def again(self, gone, rest):
        """How many ids that the stream ends with already stand there again."""
        return max(n for n in range(len(gone) + 1) if rest[:n] == gone[len(gone) - n :]) or self.closed(gone, rest)

    def closed(self, dropped, rest):
        """How many ids, white space and the stop id that was dropped, close the answer again."""
        for at, id_ in enumerate(rest):
            if dropped and dropped[-1] in self.chat.tokenizer.stop_ids and id_ == dropped[-1] and all(self.blank(rest[:at])):
                return at + 1
        return 0

    def by_text(self, turn, prompt):
        """Case 8, by the answer's span."""
        at = self.behind_answer(turn)
        if at is not None:
            again = self.closed(self.answer[-1:], prompt[at:])
            stops = [id_ for id_ in self.answer[-1:] if id_ in self.chat.tokenizer.stop_ids]
            return "retokenized", at + again, at + again - 1 if again else None, stops
        raise TokenFidelityError("no relation, and no restart announced")

    def behind_answer(self, turn):
        """The first id behind the answer's span, if text agrees and no id straddles its end."""
        if self.rendered is None or turn.rendered is None or turn.rendered.answer is None:
            return None
        (begin, end), encoded = turn.rendered.answer, turn.rendered.encoded
        history = self.rendered.encoded
        suffix, _ = self.suffix()
        kept = history.starts[len(history.ids) - suffix] if suffix else len(history.text)
        if encoded.text[:begin] not in [history.text[:cut] for cut in range(kept, len(history.text) + 1)]:
            return None
        said = self.answer
        while said and said[-1] in self.chat.tokenizer.stop_ids:
            said = said[:-1]
        text, shown = self.chat.text(said), encoded.text[begin:end]
        if not text.startswith(shown) or text[len(shown) :].strip():
            return None
        starts = [*encoded.starts.tolist(), len(encoded.text)]
        return starts.index(end) if end in starts else None
