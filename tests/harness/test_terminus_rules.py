"""The compaction budget of Terminus-2 fits its context (report, section 9.2: where it didn't, 98.3 % of summaries failed)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from t1x.harness.terminus import Terminus2Harness


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"summary_tokens": 3001}, "a summary takes 4001 tokens.* only unwound_free_tokens \\(4000\\) are sure to be free"),
        ({"summary_prompt_tokens": 1001}, "a summary takes 4001 tokens"),
        ({"unwound_free_tokens": 8001}, "exceeds compaction_free_tokens \\(8000\\)"),
        ({"context_tokens": 19_192}, "are 11192 tokens, but the next one is at 11192"),
        ({"kept_tokens": 76_808}, "are 88000 tokens, but the next one is at 88000"),
        ({"max_output_tokens": 96_000}, "leaves no room for a prompt in 96000 context_tokens"),
        ({"max_output_tokens": 96_000, "compaction": False}, "leaves no room for a prompt"),
    ],
)
def test_a_budget_that_does_not_fit_is_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        Terminus2Harness(**fields)


@pytest.mark.parametrize(
    "fields", [{}, {"context_tokens": 19_193}, {"kept_tokens": 76_807}, {"compaction": False, "summary_tokens": 10**6}]
)
def test_a_budget_that_fits_is_taken(fields):
    harness = Terminus2Harness(**fields)
    assert {name: getattr(harness, name) for name in fields} == fields


SIZES = st.integers(1, 20_000)


@given(SIZES, SIZES, SIZES, SIZES, SIZES, SIZES)
def test_a_summary_always_fits_and_is_never_followed_by_another_at_once(context, output, prompt, summary, unwound, free):
    """What the rules promise, said without them."""
    fields = {
        "context_tokens": context + 1,
        "max_output_tokens": output,
        "summary_prompt_tokens": prompt,
        "summary_tokens": summary,
        "unwound_free_tokens": unwound,
        "compaction_free_tokens": free,
    }
    try:
        harness = Terminus2Harness(**fields)
    except ValidationError:
        return
    used = harness.context_tokens - harness.unwound_free_tokens
    assert used + harness.summary_prompt_tokens + harness.summary_tokens <= harness.context_tokens
    assert harness.context_tokens - (harness.summary_tokens + harness.max_output_tokens) > harness.compaction_free_tokens
