"""Faults of the kinds that token and routing fidelity suffers from, each as one edit of the library and the tests that find it."""

from typing import NamedTuple


class Fault(NamedTuple):
    """`old` stands in `file` (below `t1x/`) exactly once; with `new` in its place each of `tests` fails."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


STREAMS = "tests/fidelity/test_fidelity_streams.py::test_streams_are_those_of_the_slow_stitcher"
RULES = "tests/fidelity/test_fidelity_rules.py::test_every_rule_holds"
PATH = "tests/fidelity/test_fidelity_path.py::"
BOUNDARY = "tests/trajectory/test_boundary.py::"
PADDING = "tests/trajectory/test_routing.py::test_padding_rows_hold_distinct_experts_and_overload_none"
CORRUPTIONS = "tests/fidelity/test_fidelity_corruptions.py::test_what_is_corrupted_is_refused_and_loses_nothing"

FAULTS = (
    Fault(
        "off-by-one row",
        "trajectory/chunk.py",
        "self._rows.extend(rows)",
        "self._rows.extend(np.roll(rows, 1, axis=0))",
        (STREAMS, RULES),
    ),
    Fault(
        "shifted mask",
        "trajectory/chunk.py",
        "self._loss_mask.extend(np.ones(len(done.ids), np.bool_))",
        "self._loss_mask.extend(np.arange(len(done.ids)) > 0)",
        (STREAMS, RULES),
    ),
    Fault(
        "log-probability kept at context",
        "trajectory/chunk.py",
        "self._logprobs.extend(np.zeros(len(context), np.float32))",
        "self._logprobs.extend(np.full(len(context), -1, np.float32))",
        (STREAMS, RULES),
    ),
    Fault(
        "version span shifted",
        "trajectory/chunk.py",
        "VersionSpan(start, len(self._ids), done.version)",
        "VersionSpan(start - 1, len(self._ids) - 1, done.version)",
        (STREAMS, RULES),
    ),
    Fault(
        "wrong version's row",
        "trajectory/stitching.py",
        "self._captures.resume(turn.completion.routing_start, turn.completion.routing)",
        "start = max(turn.completion.routing_start, len(self._captures) if edit.boundary is Boundary.EXACT else 0)\n"
        "        self._captures.resume(start, turn.completion.routing[start - turn.completion.routing_start :])",
        (STREAMS,),
    ),
    Fault(
        "wrong version's weights",
        "training/torch_trainer.py",
        "actor = self.actor if version == self.version else self._retained.restored(version)",
        "actor = self.actor",
        (
            "tests/training/test_training_torch_trainer.py::"
            "test_behaviour_logprobs_are_of_the_version_that_sampled_and_the_actor_is_left_alone",
        ),
    ),
    Fault(
        "text-level cut of the glue",
        "text/chat.py",
        "return self._encoded(found[1], veil, first=False).ids",
        "return self._encoded(found[1], veil).ids",
        ("tests/text/test_increments.py::test_an_increment_is_what_the_whole_conversation_has_behind_the_answer",),
    ),
    Fault(
        "doubled stop token",
        "trajectory/boundary.py",
        "skipped = repetition(stops, rest, tokenizer)",
        "skipped = 0",
        (STREAMS, RULES),
    ),
    Fault(
        "doubled stop token behind white space",
        "trajectory/boundary.py",
        "skipped = skipped or closed_again(dropped, prompt[follow:], tokenizer)",
        "pass",
        (STREAMS, BOUNDARY + "test_an_edge_leaves_out_the_templates_suffix_and_what_says_nothing"),
    ),
    Fault(
        "doubled stop token behind an aborted retry",
        "trajectory/stitching.py",
        "edit = self._once(self._related(turn), turn.prompt_ids)",
        "edit = self._related(turn)",
        (
            "tests/trajectory/test_stitching_cases.py::"
            "test_what_stands_in_the_stream_is_not_repeated_behind_turns_that_added_nothing",
        ),
    ),
    Fault(
        "an auditor that takes any edge",
        "trajectory/audit_relation.py",
        """return f"its prompt doesn't repeat turn {before.index} id by id\"""",
        'return ""',
        (
            RULES,
            "tests/trajectory/test_audit_relation.py::test_a_label_is_the_relation_of_the_ids_where_texts_were_rendered",
        ),
    ),
    Fault(
        "context that isn't audited behind a turn that sampled nothing",
        "trajectory/audit_relation.py",
        "at = turn.rendered.encoded.id_at(answer[label is Boundary.RETOKENIZED])",
        "at = None",
        (
            "tests/trajectory/test_audit_relation.py::"
            "test_around_a_turn_that_sampled_nothing_and_comes_back_in_other_ids_context_is_audited",
        ),
    ),
    Fault(
        "an edge that is called the same text in other ids",
        "trajectory/boundary.py",
        "return Edit(Boundary.EDGE, follow + skipped",
        "return Edit(Boundary.RETOKENIZED, follow + skipped",
        (STREAMS, RULES),
    ),
    Fault(
        "the same text in other ids that is called an edge",
        "trajectory/boundary.py",
        "return Edit(Boundary.RETOKENIZED, follow + skipped",
        "return Edit(Boundary.EDGE, follow + skipped",
        (STREAMS, RULES),
    ),
    Fault(
        "largest s",
        "trajectory/boundary.py",
        "for begin in places:",
        "for begin in sorted(places):",
        (BOUNDARY + "test_an_edge_leaves_out_the_templates_suffix_and_what_says_nothing",),
    ),
    Fault(
        "a suffix that reaches into the turns before",
        "trajectory/boundary_ids.py",
        "return len(end) - 1 - int(stops[-1]) if len(stops) else len(end)",
        "return len(end)",
        (BOUNDARY + "test_retokenized_by_place_not_by_searching",),
    ),
    Fault(
        "another turn's answer",
        "trajectory/boundary.py",
        "places = [first] if least <= first <= part else []",
        "pass",
        (BOUNDARY + "test_an_edge_begins_at_the_answer_as_it_was_rendered",),
    ),
    Fault(
        "an answer that stands in its own prompt",
        "trajectory/boundary.py",
        "if not certain and blank(answer, tokenizer, part - begin, follow - begin):",
        "if False:",
        (BOUNDARY + "test_what_leaves_out_more_or_could_stand_elsewhere_is_no_edge",),
    ),
    Fault(
        "rewrite behind an answer of white space",
        "trajectory/boundary.py",
        "(known and begin == part)",
        "begin == part",
        (BOUNDARY + "test_what_leaves_out_more_or_could_stand_elsewhere_is_no_edge",),
    ),
    Fault(
        "an edge that leaves out the answer's end",
        "trajectory/boundary.py",
        "if len(dropped) and follow + skipped < behind:",
        "if False:",
        (BOUNDARY + "test_an_edge_ends_behind_the_answer_as_it_was_rendered",),
    ),
    Fault(
        "an id that says something is dropped",
        "trajectory/boundary.py",
        "if len(dropped) > bounds.dropped_ids or not blank(dropped, tokenizer):",
        "if len(dropped) > bounds.dropped_ids:",
        (STREAMS,),
    ),
    Fault(
        "rewrite that nobody announced",
        "trajectory/stitching.py",
        "raise _fidelity_error(before, turn, self._tokenizer, why)",
        "return restart",
        (STREAMS, CORRUPTIONS),
    ),
    Fault(
        "announced restart that fits by coincidence",
        "trajectory/stitching.py",
        "if turn.restarted:",
        "if turn.restarted and isinstance(inexact(before, turn, self._tokenizer, self._bounds), str):",
        (STREAMS, "tests/trajectory/test_stitching_cases.py"),
    ),
    Fault(
        "answer encoded again",
        "trajectory/stitcher.py",
        "return TokenTrialStitcher(tokenizer, layout, Bounds(self.suffix_ids, self.dropped_ids))",
        "from t1x.trajectory.retokenizing import RetokenizingTrialStitcher\n\n"
        "        found = TokenTrialStitcher(tokenizer, layout, Bounds(self.suffix_ids, self.dropped_ids))\n"
        "        return RetokenizingTrialStitcher(found, tokenizer) if type(self) is TokenStitcher else found",
        (STREAMS, RULES),
    ),
    Fault(
        "substitution in the loss",
        "trajectory/routing.py",
        "if predicts_loss or not len(rows):",
        "if not len(rows):",
        ("tests/trajectory/test_routing.py::test_a_row_is_put_in_only_where_no_loss_token_depends_on_it",),
    ),
    Fault(
        "dropped sample where routing is absent",
        "rollout/trial.py",
        "stitch(record.turns)",
        "stitch([turn for turn in record.turns if len(turn.completion.routing)])",
        ("tests/rollout/test_trial.py::test_what_is_unexpected_is_raised_after_the_clean_up",),
    ),
    Fault(
        "padding of one repeated id",
        "trajectory/routing.py",
        "(starts[:, None] + np.arange(layout.k)) % layout.experts",
        "starts[:, None] % layout.experts + np.zeros(layout.k, np.int64)",
        (PADDING,),
    ),
    Fault(
        "padding of -1",
        "trajectory/routing.py",
        "(starts[:, None] + np.arange(layout.k)) % layout.experts",
        "np.full((rows, layout.k), -1)",
        (PADDING, "tests/parallel/test_sharding.py::test_padding_rows_overload_no_expert_over_all_ranks"),
    ),
    Fault(
        "slice that isn't interleaved",
        "parallel/sharding.py",
        "np.concatenate([halves[: self.plan.context], halves[: self.plan.context - 1 : -1]], axis=1)",
        "halves.reshape(self.plan.context, -1)",
        ("tests/parallel/test_sharding.py::test_shards_are_those_of_the_step_by_step_reference",),
    ),
    Fault(
        "routing packed in another order",
        "training/microbatch.py",
        "routing=np.concatenate([sample.routed_experts for sample in samples])",
        "routing=np.concatenate([sample.routed_experts for sample in samples[::-1]])",
        (PATH + "test_a_pack_holds_every_position_with_its_own_row_and_target",),
    ),
    Fault(
        "swapped experts",
        "model/replay.py",
        "Place(layer, self._experts[layer][start : start + rows])",
        "Place(layer, self._experts[layer][start : start + rows].flip(-1))",
        (PATH + "test_a_replayed_pass_goes_through_the_experts_that_sampled_each_loss_token",),
    ),
    Fault(
        "stale cursor",
        "model/replay.py",
        "self._experts[layer][start : start + rows])",
        "self._experts[layer][:rows])",
        ("tests/model/test_model_replay_passes.py::test_a_layer_may_take_its_rows_in_parts",),
    ),
    Fault(
        "another micro-batch's rows",
        "model/replayable_router.py",
        "return ChosenBy(first), ChosenBy(again)",
        "return ChosenBy(first), nullcontext()",
        ("tests/model/test_model_replay_passes.py::test_each_pass_in_flight_has_the_gradient_that_it_has_alone",),
    ),
    Fault(
        "router without gradient",
        "model/replayable_router.py",
        "said = self.wrapped(x)",
        "said = self.wrapped(x).detach()",
        ("tests/model/test_model_replay.py::test_forced_experts_output_and_gradients",),
    ),
    Fault(
        "mean of micro-batches",
        "training/mismatch.py",
        "float(np.abs(c - q).mean())",
        "float(np.mean([part.mean() for part in np.split(np.abs(c - q), [1]) if len(part)]))",
        ("tests/training/test_training_mismatch.py",),
    ),
)

QUICK = ("shifted mask", "doubled stop token", "rewrite that nobody announced", "swapped experts", "mean of micro-batches")
"""Those that CI plants."""
