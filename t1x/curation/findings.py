"""What is wrong with a task, judged from what its runs came to. Pure functions."""

from collections.abc import Sequence

from t1x.curation.assertless import assertless
from t1x.curation.attempt import Attempt
from t1x.grading.report import VerifierReport
from t1x.tasks.manifest import Entry, Fault, Finding, Seconds
from t1x.tasks.task import Task

NEAR = 0.5
"""Share of the verifier's deadline above which it is near it: in training many verifiers run side by side."""
NAMED = 5
"""Assertions that a finding names; of more it tells how many."""


def judge(task: Task, digest: str, untouched: Attempt, solved: Sequence[Attempt]) -> Entry:
    """The entry of a task, but for its likeness to others. `solved` are the runs of the reference solution; none where there is no
    solution, or where no run was worth its time."""
    attempts = [untouched, *solved]
    named = next((each.report for each in (*solved, untouched) if each.report.cause is None and each.report.assertions), None)
    assertions = tuple(plain(name) for name, _ in named.assertions) if named else None
    before = tuple(plain(name) for name, passed in untouched.report.assertions if passed)
    known = untouched.report.cause is None and bool(untouched.report.assertions) and set(before) <= set(assertions or ())
    findings = [
        *_verifier(task, untouched, solved),
        *_untouched(task, untouched.report),
        *_solution(task, solved),
        *_time(task, attempts),
    ]
    return Entry(
        sha256=digest,
        assertions=assertions,
        baseline=before if known else None,
        seconds=Seconds(
            environment=round(max(each.creating for each in attempts), 3),
            solution=round(max(each.acting for each in solved), 3) if solved else None,
            verifier=round(max(each.report.seconds for each in attempts), 3),
        ),
        findings=tuple(findings),
    )


def plain(text: str) -> str:
    """The text without what UTF-8 can't say."""
    return text.encode("utf-8", "backslashreplace").decode()


def _verifier(task: Task, untouched: Attempt, solved: Sequence[Attempt]) -> list[Finding]:
    """Runs of which nothing attests how they came out; told once for each cause."""
    when = [("on the untouched environment", untouched)]
    when += [(f"in run {number} of {len(solved)} of the solution", each) for number, each in enumerate(solved, 1)]
    told: dict[str, Finding] = {}
    for where, each in when:
        cause = each.report.cause
        if cause is not None and cause not in told and each.report.terminal is None:
            told[cause] = Finding(fault=_fault(each.report), detail=plain(f"{cause}, {where}: {each.report.detail}"))
    return list(told.values())


def _fault(report: VerifierReport) -> Fault:
    if report.cause == "test_set_mismatch" and report.expected is None:
        return "asserts_nothing"  # nobody has said how many there are, so the only wrong number is none
    return "in_process" if report.cause == "in_process" else "verifier_unusable"


def _untouched(task: Task, report: VerifierReport) -> list[Finding]:
    idle = assertless(task)
    if idle:
        return [Finding(fault="asserts_nothing", detail=f"nothing in {listed(idle)} can fail")]
    if not report.resolved:
        return []
    if not report.assertions:
        return [Finding(fault="passes_untouched", detail="the verifier is content before anything was done")]
    detail = f"every assertion ({report.total}) holds before anything was done"
    return [Finding(fault="passes_untouched", detail=detail)]


def _solution(task: Task, solved: Sequence[Attempt]) -> list[Finding]:
    if not task.solution:
        return [Finding(fault="no_solution", detail="there is no solution/solve.sh, so nothing shows that it can be solved")]
    if late := next((each for each in solved if each.overran), None):
        return [Finding(fault="solution_fails", detail=plain(late.trouble))]
    usable = [each for each in solved if each.report.terminal is not None]
    if not usable:
        return []
    records = [dict(each.report.assertions) for each in usable if each.report.cause is None]
    names = list(dict.fromkeys(name for record in records for name in record))
    outcomes = [each.report.resolved for each in usable]
    common = set(names).intersection(*records)
    renamed = [name for name in names if name not in common]
    wavering = [name for name in names if name in common and len({record[name] for record in records}) > 1]
    failing = [name for name in names if name in common and not any(record[name] for record in records)]
    findings = []
    if wavering or renamed or len(set(outcomes)) > 1:
        told = [f"the same solution passed in {sum(outcomes)} of {len(outcomes)} runs{': ' * bool(wavering)}{listed(wavering)}"]
        if renamed:
            told.append(f"names of assertions differ from run to run, and should be the same in each: {listed(renamed)}")
        findings.append(Finding(fault="flaky", detail=plain("; ".join(told))))
    if failing or not (any(outcomes) or wavering):
        rejected = ": ".join(filter(None, ["the verifier rejects it", usable[-1].report.detail]))
        what = f"{len(failing)} of {len(names)} assertions fail: {listed(failing)}" if failing else rejected
        detail = f"{what}; {usable[-1].trouble or 'each command exited with 0'}"
        findings.append(Finding(fault="solution_fails", detail=plain(detail)))
    return findings


def _time(task: Task, attempts: Sequence[Attempt]) -> list[Finding]:
    slowest = max(each.report.seconds for each in attempts)
    if any(each.report.cause == "timeout" for each in attempts) or slowest <= NEAR * task.verifier_timeout:
        return []
    detail = f"the verifier took {slowest:.1f} s of its {task.verifier_timeout:g} s; beside other work it may not make it"
    return [Finding(fault="near_deadline", detail=detail)]


def listed(names: Sequence[str]) -> str:
    """The first few of them."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
