"""A question leads to the entries that answer it, with the values it names, and to nothing otherwise."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hyce import catalogue
from hyce.embed import OnnxEmbedder
from hyce.match import Matcher, misrouted
from hyce.models import find as find_model
from hyce.records import Command, Embedding, Match, Parameter, Routing
from hyce.values import find, find_all


class BagOfWords:
    """A deterministic Embedder: each word adds to one dimension, texts that share words are near."""

    fingerprint = "bag-of-words"
    dimensions = 512

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str], *, tokens: bool = False) -> list[Embedding]:
        self.embedded += texts
        return [Embedding(self._vector(text), np.empty((0, self.dimensions), np.float32)) for text in texts]

    def length(self, text: str) -> int:
        return len(text.split())

    def _vector(self, text: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        vector = np.zeros(self.dimensions, np.float32)
        for word in re.findall(r"\w+", text.lower()):
            vector[int(hashlib.sha256(word.encode()).hexdigest(), 16) % self.dimensions] += 1
        length = float(np.linalg.norm(vector))
        return vector / length if length else vector


JOB_ID = Parameter("job_id", r"\d+(_\d+)?", "the job's number", find=(r"\b(\d{4,}(?:_\d+)?)\b",))
JOBS = Command(
    "slurm.my_jobs",
    "all my jobs in the queue",
    ("list my jobs", "jobs queued"),
    (("squeue",),),
    scheduler="slurm",
)
JOB = Command(
    "slurm.job",
    "one job by its number",
    ("state of job 1111", "what is job 2222 doing"),
    (("scontrol", "{job_id}"),),
    parameters=(JOB_ID,),
    scheduler="slurm",
)
PBS_JOBS = Command(
    "pbs.my_jobs", "all my jobs in the queue", ("list my jobs", "jobs queued"), (("qstat",),), scheduler="pbs"
)
QUOTA = Command("storage.quota", "disk quota and space", ("what is my disk quota",), (("quota",),))
COMMANDS = (JOBS, JOB, PBS_JOBS, QUOTA)


def matcher(embedder: BagOfWords | None = None, **settings: object) -> Matcher:
    fields = {"documentation": ("write a batch script for jobs",), **settings}
    return Matcher(COMMANDS, embedder or BagOfWords(), **fields)  # type: ignore[arg-type]


def ids(routing: Routing) -> list[str]:
    return [match.command.id for match in routing.commands]


# -- what is chosen --------------------------------------------------------------------------------------


def test_the_nearest_entry_is_chosen() -> None:
    routing = matcher().match("list my jobs", scheduler="slurm")
    assert ids(routing)[0] == "slurm.my_jobs"
    assert routing.commands[0].params == {}
    assert routing.refused is None
    assert 0.5 < routing.commands[0].score <= 1.0


def test_nothing_is_chosen_below_the_threshold() -> None:
    assert matcher().match("tell a joke about penguins") == Routing()
    assert matcher(threshold=0.99).match("jobs anyone") == Routing()


def test_what_documentation_answers_better_runs_nothing() -> None:
    assert matcher().match("a batch script for my jobs", scheduler="slurm") == Routing()
    assert ids(matcher(documentation=()).match("script for jobs queued", scheduler="slurm")) != []


def test_questions_about_how_and_meaning_need_a_nearer_entry() -> None:
    strict = matcher(threshold=0.75)
    assert ids(strict.match("list my jobs", scheduler="slurm"))
    assert strict.match("how to list my jobs explain meaning of queue", scheduler="slurm") == Routing()


def test_no_more_entries_than_allowed() -> None:
    assert len(matcher(most=1).match("list my jobs").commands) == 1
    assert sorted(ids(matcher(most=2).match("list my jobs"))) == ["pbs.my_jobs", "slurm.my_jobs"]


@pytest.mark.parametrize(("scheduler", "wanted"), [("slurm", "slurm.my_jobs"), ("pbs", "pbs.my_jobs")])
def test_entries_of_the_other_scheduler_are_not_offered(scheduler: str, wanted: str) -> None:
    assert ids(matcher().match("list my jobs", scheduler=scheduler)) == [wanted]
    assert ids(matcher(scheduler=scheduler).match("list my jobs")) == [wanted]


def test_entries_without_scheduler_are_offered_with_each() -> None:
    assert ids(matcher().match("what is my disk quota", scheduler="pbs")) == ["storage.quota"]


def test_entries_that_can_not_run_are_not_offered() -> None:
    only_pbs = matcher(offered=lambda command: command.id == "pbs.my_jobs")
    assert ids(only_pbs.match("list my jobs")) == ["pbs.my_jobs"]
    assert ids(only_pbs.match("what is my disk quota")) == []


def test_an_empty_catalogue_matches_nothing() -> None:
    assert Matcher([], BagOfWords()).match("list my jobs") == Routing()


@pytest.mark.parametrize(
    "question", ["cancel job 1234", "list my jobs; rm -rf ~", "show me the root password"]
)
def test_refused_questions_match_nothing_and_are_not_embedded(question: str) -> None:
    embedder = BagOfWords()
    routing = matcher(embedder).match(question)
    assert routing.commands == ()
    assert routing.refused
    assert embedder.embedded == []


# -- parameters ------------------------------------------------------------------------------------------


def test_the_value_is_taken_from_the_question() -> None:
    routing = matcher().match("state of job 48213_7", scheduler="slurm")
    assert routing.commands[0] == Match(JOB, {"job_id": "48213_7"}, routing.commands[0].score)


def test_an_entry_whose_value_is_missing_is_not_chosen() -> None:
    assert "slurm.job" not in ids(matcher(documentation=()).match("state of job", scheduler="slurm"))


def test_a_named_job_goes_before_all_jobs() -> None:
    assert ids(matcher().match("my job 4711", scheduler="slurm"))[0] == "slurm.job"


def test_defaults_are_not_values_of_the_question() -> None:
    parameter = Parameter("days", r"\d+", "days", find=(r"(\d+) days",), default="7")
    entry = Command("a.b", "usage", ("usage",), (("tool", "{days}"),), parameters=(parameter,))
    assert find_all(entry, "usage") == {}
    assert find_all(entry, "usage in 30 days") == {"days": "30"}


def test_a_value_that_would_be_refused_is_passed_over() -> None:
    parameter = Parameter("name", r"[a-z.]+", "a name", find=(r"on (\S+)",))
    entry = Command("a.b", "x", ("x",), (("tool", "{name}"),), parameters=(parameter,))
    assert find(entry, parameter, "on ../etc on --help on cn") == "cn"
    assert find(entry, parameter, "on --help") is None


def value(entry_id: str, question: str) -> str | None:
    entry = catalogue.load()[entry_id]
    return find(entry, entry.parameters[0], question)


@pytest.mark.parametrize(
    ("entry_id", "question", "wanted"),
    [
        ("slurm.job", "what about job 48213?", "48213"),
        ("slurm.job", "job #48213", "48213"),
        ("slurm.job", "#482 please", "482"),
        ("slurm.job", "48213_7 is slow", "48213_7"),
        ("slurm.job", "is 48213.", "48213"),
        ("slurm.job", "JobID=99120", "99120"),
        ("slurm.job", "job id 77", "77"),
        ("slurm.job", "job 90312_[1-5]", "90312_[1-5]"),
        ("slurm.job", "why does my job wait", None),
        ("slurm.job", "jobs since 2024", None),
        ("slurm.job", "I need 5000 cores", None),
        ("slurm.job", "a job with 256 cores", None),
        ("slurm.job", "my job 24 hours in", None),
        ("slurm.job", "error at 12:30:4711", None),
        ("pbs.job", "state of 1234.pbsserver", "1234.pbsserver"),
        ("pbs.job", "90312[14].katana hangs", "90312[14].katana"),
        ("pbs.job", "90312[] hangs", "90312[]"),
        ("pbs.job", "job 4711.", "4711"),
        ("pbs.job", "gcc 12.2.0", None),
        ("slurm.node", "what is node cn0213 doing", "cn0213"),
        ("slurm.node", "is gpu17 down", "gpu17"),
        ("slurm.node", "load on nid001245", "nid001245"),
        ("slurm.node", "are there a100 cards", None),
        ("slurm.node", "which nodes have v100", None),
        ("slurm.node", "is python3 there", None),
        ("pbs.queue_limits", "limits of the express queue", "express"),
        ("pbs.queue_limits", "walltime in queue workq", "workq"),
        ("pbs.queue_limits", "how long is the queue", None),
        ("pbs.queue_limits", "my jobs in the queue are waiting", None),
        ("modules.search", "is gromacs installed", "gromacs"),
        ("modules.search", "module spider foss", "foss"),
        ("modules.search", "which version of R", "R"),
        ("modules.search", "do you have any software", None),
        ("modules.show", "what does gcc/12.2 set", "gcc/12.2"),
        ("storage.lustre_quota", "quota on /scratch?", "/scratch"),
        ("storage.lustre_quota", "usage of /lustre/work.", "/lustre/work"),
        ("storage.lustre_quota", "what is my quota", None),
        ("storage.lustre_quota", "show /etc/passwd", None),
    ],
)
def test_values_that_builtin_entries_find(entry_id: str, question: str, wanted: str | None) -> None:
    assert value(entry_id, question) == wanted


# -- the cache -------------------------------------------------------------------------------------------


def test_vectors_are_kept(tmp_path: Path) -> None:
    first, second = BagOfWords(), BagOfWords()
    expected = matcher(first, cache=tmp_path / "c").match("list my jobs")
    assert "list my jobs" in first.embedded
    assert matcher(second, cache=tmp_path / "c").match("list my jobs") == expected
    assert second.embedded == ["list my jobs"]
    assert len(list((tmp_path / "c").iterdir())) == 1


def test_a_second_folder_is_only_read(tmp_path: Path) -> None:
    matcher(cache=tmp_path / "site").match("list my jobs")
    embedder = BagOfWords()
    matcher(embedder, cache=tmp_path / "own", caches=[tmp_path / "site"]).match("list my jobs")
    assert embedder.embedded == ["list my jobs"]
    matcher(caches=[tmp_path / "other"]).match("list my jobs")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("damage", [b"", b"garbage", b"\x93NUMPY\x01\x00", b"half"])
def test_a_damaged_cache_is_made_anew(damage: bytes, tmp_path: Path) -> None:
    expected = matcher(cache=tmp_path).match("list my jobs")
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] if damage == b"half" else damage)
    assert matcher(cache=tmp_path).match("list my jobs") == expected
    assert file.read_bytes() == whole


def test_another_model_or_catalogue_has_other_vectors(tmp_path: Path) -> None:
    matcher(cache=tmp_path).match("list my jobs")
    other = BagOfWords()
    other.fingerprint = "another"
    matcher(other, cache=tmp_path).match("list my jobs")
    assert len(other.embedded) > 1
    assert len(list(tmp_path.iterdir())) == 2


def test_a_folder_that_can_not_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert ids(matcher(cache=tmp_path / "file" / "c").match("list my jobs", scheduler="pbs")) == [
        "pbs.my_jobs"
    ]


# -- the real model --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Matcher:
    embedder = OnnxEmbedder(find_model("all-MiniLM-L6-v2", "int8", model_folder))
    return Matcher(
        list(catalogue.load().values()),
        embedder,
        cache=tmp_path_factory.mktemp("vectors"),
        documentation=catalogue.documentation_questions(),
    )


@pytest.mark.parametrize(
    ("scheduler", "question", "wanted"),
    [
        ("slurm", "has my stuff started running already?", "slurm.my_jobs"),
        ("slurm", "everything you know about 8213377", "slurm.job"),
        ("slurm", "which programs of mine run on this machine", "system.processes"),
        ("pbs", "how much may I still store", "storage.quota"),
        ("pbs", "any gpu free?", "pbs.gpus"),
        ("pbs", "my groups please", "system.groups"),
    ],
)
def test_builtin_entries_are_found(real: Matcher, scheduler: str, question: str, wanted: str) -> None:
    assert ids(real.match(question, scheduler=scheduler))[0] == wanted


@pytest.mark.parametrize("question", ["How do I submit a job?", "thanks, bye", "what is the capital of Peru"])
def test_other_questions_run_nothing(real: Matcher, question: str) -> None:
    assert real.match(question, scheduler="slurm") == Routing()


def test_the_builtin_examples_lead_to_their_entries(real: Matcher) -> None:
    assert list(misrouted(real, catalogue.load().values())) == []
