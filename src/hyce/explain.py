"""The codes in commands' outputs -> what they mean: why a job waits, how it ended.

Outputs are text that others write into: a job may be named "(Priority)". A code counts only where the program
prints codes: in the column or field of the state, the reason, the exit code or the scheduler's comment.
Nothing of the output gets into the explanation but the code itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hyce import codes
from hyce.codes import Code
from hyce.columns import Row, rows
from hyce.findings import findings
from hyce.records import CommandOutput, Explanation

MOST = 4
"""More explanations than this hide the one that counts."""

_READS_JOBS = ("squeue", "sacct", "scontrol", "seff", "qstat")
_JOB_NUMBER = re.compile(r"\d+([_\[.].*)?")
_JOBS_HEADING = re.compile(r"\s*(?:JOBID|JobID|JobIDRaw|Job)\b(?=.*\b(?:STATE|State|ST)\b)")
_NODES_HEADING = re.compile(r"\s*\S.*\bSTATE", re.IGNORECASE)
_PBS_HEADING = re.compile(r"\s*Job ID\b(?=.*\sS\b)", re.IGNORECASE)
_SCONTROL = re.compile(r"^[ \t]*JobState=(\S+)(?:\s+Reason=(\S+))?", re.MULTILINE)
_SCONTROL_EXIT = re.compile(r"^[ \t]*(?:Requeue=.*\s)?ExitCode=(\d+:\d+)", re.MULTILINE)
_SEFF = re.compile(
    r"^(State|Step\s.*\))\s*:\s*([A-Z_]+)(?:.*\((?:exit code (\d+)|ended by signal (\d+)))?", re.MULTILINE
)
_NODE = re.compile(r"^[ \t]*State=(\S+)", re.MULTILINE)
_NODE_STATE = re.compile(r"[A-Za-z_]+|[*~#!%$@^-]$")
_PBS_FIELD = re.compile(r"^ {2,8}(job_state|comment|Exit_status) = (.*(?:\n\t.*)*)", re.MULTILINE)
_PBS_NOTE = re.compile(
    r"^[ \t]+((?:Not Running|Can Never Run|Job held|Held by|Job would|PBS Error)\b.*)", re.MULTILINE
)

_PBS_TELLING = ("comment", "Exit_status", "job_state")
"""Attributes of a job that hold codes, the most telling first."""
_KILLS_STEPS = ("TIMEOUT", "CANCELLED", "PREEMPTED", "NODE_FAIL", "DEADLINE")
"""Ends of a job that end its steps too: what the steps say then tells nothing."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A code and what is known about it."""

    shown: str
    code: Code


def explanations(outputs: Sequence[CommandOutput]) -> tuple[Explanation, ...]:
    """What the codes in the outputs mean, most telling first, each once; none for jobs that simply run or
    ended well. Where one job was asked for, the codes of the user's other jobs would mislead: they are left
    out, also when that job tells none.
    """
    one_job = [output for output in outputs if _about_one_job(output)]
    read = [output for output in one_job or outputs if output.status == "ok"]
    found = [(output, each) for output in read for each in _codes(output)]
    found.sort(key=lambda pair: pair[1].code.weak)
    first: dict[str, Explanation] = {}
    for output, each in found:
        # Codes with the same page are the same thing told in two columns.
        explained = Explanation(each.shown, each.code.meaning, output.id)
        first.setdefault(each.code.search or each.code.meaning, explained)
    return (*findings(outputs), *first.values())[:MOST]


def search_text(explained: Sequence[Explanation]) -> str | None:
    """What finds the site's own page about the most telling codes; None where there is nothing to look up."""
    entries = [(each.code, _entry(each)) for each in explained]
    texts = [f"{code} {entry.search}" for code, entry in entries if entry and entry.search]
    return " ".join(texts[:2]) or None


def _entry(explained: Explanation) -> Code | None:
    """The entry that it was made from; None for a finding."""
    shown = explained.code
    exit_status = int(shown) if re.fullmatch(r"-?\d+", shown) else 0
    entries = (
        codes.slurm_reason(shown),
        codes.slurm_state(shown),
        codes.slurm_node_state(shown),
        codes.slurm_exit(shown) if re.fullmatch(r"\d+:\d+", shown) else None,
        codes.pbs_exit(exit_status),
        codes.pbs_state(shown),
        codes.pbs_comment(shown),
    )
    return next((entry for entry in entries if entry and entry.meaning == explained.meaning), None)


def _about_one_job(output: CommandOutput) -> bool:
    """Whether a job's number was given to a program of the scheduler."""
    stages = [pipeline[0] for pipeline in (output.argv, *output.also)]
    return any(_JOB_NUMBER.fullmatch(word) for stage in stages if stage[0] in _READS_JOBS for word in stage)


def _codes(output: CommandOutput) -> Iterator[_Found]:
    """The codes in an output, by the program that printed it."""
    program, *words = output.argv[0]
    if program == "sinfo" or (program == "scontrol" and "node" in words):
        yield from _node_states(output.stdout)
    elif program == "qstat":
        yield from _pbs_jobs(output.stdout)
    elif program in _READS_JOBS:
        yield from _slurm_jobs(output.stdout)


# -- Slurm -----------------------------------------------------------------------------------------------


def _slurm_jobs(text: str) -> Iterator[_Found]:
    exits = _SCONTROL_EXIT.findall(text)
    for position, (state, reason) in enumerate(_SCONTROL.findall(text)):
        yield from _slurm_job(state, reason, exits[position] if len(exits) > position else "")
    job = ""
    for label, state, status, signal in _SEFF.findall(text):
        if label == "State":
            job = state
            yield from _slurm_job(state, "", f"{status or 0}:{signal or 0}")
        else:
            yield from _slurm_step(state, f"{status or 0}:{signal or 0}", job)
    for row in rows(text, _JOBS_HEADING):
        state = _state_in(row.cell("state", "st") or "")
        exit_code = row.cell("exitcode", "exit") or ""
        if "." in (row.cell("jobid", "jobidraw", "job") or ""):
            yield from _slurm_step(state, exit_code, job)
        else:
            job = state
            yield from _slurm_job(state, _reason_in(row), exit_code)


def _slurm_job(state: str, reason: str, exit_code: str) -> Iterator[_Found]:
    """The codes of one job; only the telling ones where there are any. None where it runs or ended well."""
    known = codes.slurm_state(state)
    if known is None:
        return
    waits = "PENDING" in known.codes
    if known.quiet and not waits:
        return
    found = [_Found(known.codes[known.codes.index(state)] if state in known.codes else known.codes[0], known)]
    because = codes.slurm_reason(reason) if reason else None
    if because and (waits or reason != "None"):
        found.append(_Found(_as_listed(reason.replace("_", " "), because), because))
    found += _exit(exit_code)
    told = [each for each in found if not each.code.quiet]
    # Of the weak ones, an exit code says more than that the job failed.
    yield from [each for each in told if not each.code.weak] or reversed(told)


def _slurm_step(state: str, exit_code: str, job: str) -> Iterator[_Found]:
    """What a step tells that the job's own state doesn't: a part that was killed, or ran out of memory."""
    known = codes.slurm_state(state)
    if job in _KILLS_STEPS or known is None or known.quiet:
        return
    if "OUT_OF_MEMORY" in known.codes:
        yield _Found(known.codes[0], known)
    else:
        yield from (each for each in _exit(exit_code) if not each.code.weak)


def _exit(text: str) -> Iterator[_Found]:
    found = re.search(r"\d+:\d+", text)
    code = codes.slurm_exit(found[0]) if found else None
    if found and code:
        yield _Found(found[0], code)


def _state_in(cell: str) -> str:
    """The state that a cell tells, in full: "CANCELLED by 1000", "OUT_OF_ME+"."""
    for word in reversed(re.findall(r"[A-Z_]+\+?", cell)):
        known = codes.slurm_state(word)
        if known:
            return word if word in known.codes else known.codes[0]
    return ""


def _reason_in(row: Row) -> str:
    """The reason in a row: squeue puts it into parentheses where it shares a column with the nodes."""
    shared = re.fullmatch(r"\((.*)\)", row.cell("nodelist(reason)") or "")
    return shared[1] if shared else row.cell("reason") or ""


def _node_states(text: str) -> Iterator[_Found]:
    states = [state for line in _NODE.findall(text) for state in line.split("+")]
    states += [row.cell("state", "statelong") or "" for row in rows(text, _NODES_HEADING)]
    for state in states:
        for word in _NODE_STATE.findall(state):
            code = codes.slurm_node_state(word)
            if code and not code.quiet:
                yield _Found(word.upper(), code)


# -- PBS -------------------------------------------------------------------------------------------------


def _pbs_jobs(text: str) -> Iterator[_Found]:
    said = list(_pbs_json(text)) if text.lstrip().startswith("{") else []
    said += [(name, value.replace("\n\t", "")) for name, value in _PBS_FIELD.findall(text)]
    said += [("comment", comment) for comment in _PBS_NOTE.findall(text)]
    said += [("job_state", row.cell("s") or "") for row in rows(text, _PBS_HEADING)]
    for wanted in _PBS_TELLING:
        for name, value in said:
            found = _pbs_field(name, value) if name == wanted else None
            if found and not found.code.quiet:
                yield found


def _pbs_json(text: str) -> Iterator[tuple[str, str]]:
    """Name and value of each job's attributes in qstat's JSON; none where it can't be read."""
    try:
        jobs = json.loads(text)["Jobs"].values()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
    for job in jobs:
        if isinstance(job, dict):
            yield from ((name, str(value)) for name, value in job.items())


def _pbs_field(name: str, value: str) -> _Found | None:
    """What a job's attribute says."""
    value = value.strip()
    code: Code | None = None
    if name == "comment":
        code = codes.pbs_comment(value)
        value = _as_listed(value, code) if code else ""
    elif name == "job_state":
        # hyce's view puts the meaning behind the letter.
        value = value[:1]
        code = codes.pbs_state(value)
    elif re.fullmatch(r"-?\d{1,5}", value):
        code = codes.pbs_exit(int(value))
    return _Found(value, code) if code else None


def _as_listed(said: str, code: Code) -> str:
    """The spelling in the table that the text holds: what else it says is left out."""
    fits = [each for each in code.codes if each.lower() in said.lower()]
    return max(fits, key=len) if fits else code.codes[0]
