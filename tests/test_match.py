"""A question leads to the entries that answer it, with the values it names, and to nothing otherwise."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hyce import catalogue
from hyce.embed import OnnxEmbedder
from hyce.match import Matcher, misrouted
from hyce.models import find as find_model
from hyce.records import Command, Embedding, Match, Parameter, Routing
from hyce.values import find, find_all, generalised


class BagOfWords:
    """A deterministic Embedder: each word adds to one dimension, texts that share words are near."""

    fingerprint = "bag-of-words"
    token_vectors = True
    dimensions = 512

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str], *, tokens: bool = False, query: bool = False) -> list[Embedding]:
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


INSTEAD = replace(JOB, parameters=(replace(JOB_ID, instead="slurm.my_jobs"),))


def test_another_entry_answers_where_the_value_is_missing() -> None:
    routing = Matcher((JOBS, INSTEAD, QUOTA), BagOfWords()).match("what is job doing")
    assert [(match.command.id, match.params) for match in routing.commands] == [("slurm.my_jobs", {})]
    assert routing.ask_back is None


@pytest.mark.parametrize("entries", [(JOBS, JOB, QUOTA), (INSTEAD, QUOTA)], ids=["none named", "not there"])
def test_the_value_is_asked_for_where_no_other_entry_answers(entries: tuple[Command, ...]) -> None:
    routing = Matcher(entries, BagOfWords()).match("what is job doing")
    assert routing.commands == ()
    assert routing.ask_back == "Please ask again and name: the job's number"


def test_only_the_value_that_is_missing_is_asked_for() -> None:
    node = Parameter("node", "[a-z]+", "the node's name", find=("on node ([a-z]+)",))
    both = replace(JOB, parameters=(JOB_ID, node))
    routing = Matcher((both, QUOTA), BagOfWords()).match("what is job 2222 doing")
    assert routing.ask_back == "Please ask again and name: the node's name"


def test_a_value_is_not_replaced_within_other_words() -> None:
    assert generalised("job 12 on node c12", {"job_id": "12"}) == "job 1234 on node c12"


def test_an_entry_that_can_not_run_does_not_answer_instead() -> None:
    entries = (JOBS, INSTEAD, QUOTA)
    routing = Matcher(entries, BagOfWords(), offered=lambda command: command is not JOBS).match(
        "what is job doing"
    )
    assert (routing.commands, bool(routing.ask_back)) == ((), True)


def test_a_few_entries_are_not_drowned_by_many_questions_for_documentation() -> None:
    many = [f"how do I use program number {number} with jobs" for number in range(300)]
    assert ids(matcher(documentation=many).match("show my disk quota", scheduler="slurm")) == [
        "storage.quota"
    ]
    assert ids(matcher(documentation=many).match("how do I use it with jobs", scheduler="slurm")) == []


def test_entries_without_questions_are_found_by_their_description() -> None:
    bare = replace(QUOTA, questions=())
    assert ids(Matcher((JOBS, bare), BagOfWords()).match("disk space and quota")) == ["storage.quota"]


def test_the_nearest_entries_are_listed_also_without_their_values() -> None:
    nearest = matcher().nearest("what is job doing", 2, scheduler="slurm")
    assert nearest[0].command.id == "slurm.job"
    assert (len(nearest), nearest[0].params) == (2, {})


def test_descriptions_alone_are_compared() -> None:
    matches = matcher().by_description("disk quota and space", scheduler="slurm")
    assert [match.command.id for match in matches] == ["storage.quota", "slurm.my_jobs"]
    assert matches[0].score == pytest.approx(1.0)


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
        ("slurm.job", "job id: 48213", "48213"),
        ("slurm.job", "why did job 9 fail?", "9"),
        ("slurm.job", "and job 7_[2-4%1]?", "7_[2-4%1]"),
        ("slurm.job", "a job 9 hours long", None),
        ("slurm.job", "is a job 2x faster", None),
        ("slurm.job", "jobid=48213", "48213"),
        ("slurm.job", "my job from 14:30 with 64000 MB", None),
        ("slurm.job", "call me on 030-1234567", None),
        ("slurm.job", "gcc 12.2.0 since 2023", None),
        ("slurm.job", "64000mb for 5000 hours", None),
        ("pbs.job", "1234.pbsserver", "1234.pbsserver"),
        ("pbs.job", "is 90312[14].katana done", "90312[14].katana"),
        ("pbs.job", "all of 90312[].katana", "90312[].katana"),
        ("pbs.job", "job #5512", "5512"),
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
        ("slurm.node", "how busy is tux213?", "tux213"),
        ("slurm.node", "free memory of wn-0581", "wn-0581"),
        ("slurm.node", "what's wrong with lynx-h19c2n3", "lynx-h19c2n3"),
        ("slurm.node", "state of node-0066.hpc.example.org", "node-0066.hpc.example.org"),
        ("slurm.node", "gpu-a-11 has which cards", "gpu-a-11"),
        ("slurm.node", "is c418n22 drained", "c418n22"),
        ("slurm.node", "does user ab12 exist", None),
        ("slurm.node", "is there avx512 or cuda12, and X11", None),
        ("slurm.node", "are there a100 cards", None),
        ("slurm.node", "which nodes have v100", None),
        ("slurm.node", "is python3 there", None),
        ("pbs.queue_limits", "limits of the express queue", "express"),
        ("pbs.queue_limits", "walltime in queue workq", "workq"),
        ("pbs.queue_limits", "hours in the queue long?", "long"),
        ("pbs.queue_limits", "qsub -q gpu-a100 is refused", "gpu-a100"),
        ("pbs.queue_limits", "why does the debug queue refuse it", "debug"),
        ("pbs.queue_limits", "the queue refuses my job", None),
        ("pbs.queue_limits", "job violates queue limits", None),
        ("pbs.queue_limits", "how long is the queue", None),
        ("pbs.queue_limits", "my jobs in the queue are waiting", None),
        ("modules.search", "is gromacs installed", "gromacs"),
        ("modules.search", "module spider foss", "foss"),
        ("modules.search", "which version of R", "R"),
        ("modules.search", "R/4.3.1?", "R/4.3.1"),
        ("modules.search", "find the trinity module", "trinity"),
        ("modules.search", "we need Kraken2 here", "Kraken2"),
        ("modules.search", "do you have GPUs", None),
        ("modules.search", "does the cluster have H100s?", None),
        ("modules.search", "is l40s available", None),
        ("modules.search", "do you have t-coffee", "t-coffee"),
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
    expected = matcher(first, cache=tmp_path / "c").match("list all my jobs")
    assert "list all my jobs" in first.embedded
    assert matcher(second, cache=tmp_path / "c").match("list all my jobs") == expected
    assert second.embedded == ["list all my jobs"]
    assert sorted(file.name.partition("-")[0] for file in (tmp_path / "c").iterdir()) == [
        "commands",
        "scores",
    ]


def test_a_second_folder_is_only_read(tmp_path: Path) -> None:
    matcher(cache=tmp_path / "site").match("list all my jobs")
    embedder = BagOfWords()
    matcher(embedder, cache=tmp_path / "own", caches=[tmp_path / "site"]).match("list all my jobs")
    assert embedder.embedded == ["list all my jobs"]
    matcher(caches=[tmp_path / "other"]).match("list all my jobs")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("damage", [b"", b"garbage", b"\x93NUMPY\x01\x00", b"half"])
def test_a_damaged_cache_is_made_anew(damage: bytes, tmp_path: Path) -> None:
    expected = matcher(cache=tmp_path).match("list all my jobs")
    for file in sorted(tmp_path.iterdir()):
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 2] if damage == b"half" else damage)
        assert matcher(cache=tmp_path).match("list all my jobs") == expected
        assert file.read_bytes() == whole


def test_another_model_or_catalogue_has_other_vectors(tmp_path: Path) -> None:
    matcher(cache=tmp_path).match("list all my jobs")
    other = BagOfWords()
    other.fingerprint = "another"
    matcher(other, cache=tmp_path).match("list all my jobs")
    assert len(other.embedded) > 1
    assert len(list(tmp_path.glob("commands-*.npy"))) == len(list(tmp_path.glob("scores-*.npy"))) == 2


def test_only_new_texts_are_embedded(tmp_path: Path) -> None:
    first, second = BagOfWords(), BagOfWords()
    Matcher(COMMANDS[:2], first, cache=tmp_path).match("list all my jobs")
    matcher(second, cache=tmp_path).match("list all my jobs")
    assert len(second.embedded) > 1
    assert not {COMMANDS[0].description, COMMANDS[1].description} & set(second.embedded)


def test_what_is_kept_for_readers_replaces_what_was(tmp_path: Path) -> None:
    embedder = BagOfWords()
    Matcher(COMMANDS[:2], embedder).keep(tmp_path)
    matcher(embedder).keep(tmp_path)
    kept = sorted(file.name for file in tmp_path.iterdir())
    matcher(embedder).keep(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == kept
    assert [name.partition("-")[0] for name in kept] == ["commands", "scores"]
    embedder.embedded.clear()
    assert ids(matcher(embedder, caches=[tmp_path]).match("list all my jobs"))
    assert embedder.embedded == ["list all my jobs"]


def test_a_folder_that_can_not_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert ids(matcher(cache=tmp_path / "file" / "c").match("list all my jobs", scheduler="pbs")) == [
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
