"""The command-line contract, with the real model: JSON forms, exit codes, and what goes to stderr alone."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hyce_home import KESTREL, Home, fails
from scripted_llm import ScriptedLlm, says
from scripted_llm import fails as llm_fails

MEMORY = "how much memory does this machine have and how much is free"
HIT = {"rank", "source", "path", "url", "title", "heading", "text", "score"}
OUTPUT = {
    *("id", "argv", "status", "exit_code", "stdout", "stderr"),
    *("truncated", "seconds", "layers"),
}
COMMANDS = (
    *("ask", "chat", "match", "index", "search", "run", "commands list", "commands show"),
    *("commands check", "init", "models list", "models pull", "doctor"),
)


def llm(server: ScriptedLlm, **settings: Any) -> dict[str, Any]:
    values = {"base_url": server.url, "model": "tiny", "location": "onsite", "retries": 0} | settings
    return {f"llm.{name}": value for name, value in values.items()}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in {
        "gpus.md": "# GPUs\n\n## Asking\n\nUse `--gres=gpu:1` for one GPU.",
        "quota.md": "# Quota\n\nYour home directory holds 50 GB.",
        "login.md": "# Logging in\n\nUse ssh with a key.",
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


# -- usage -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_the_common_options(
    home: Home, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        home.hyce(*command.split(), "--help")
    assert left.value.code == 0


def test_the_help_names_every_command_and_option(home: Home) -> None:
    shown = home.spawn("--help", "--version")
    assert shown.code == 0
    for command in {name.split()[0] for name in COMMANDS}:
        assert f"\n    {command} " in shown.out
    shown = home.spawn("search", "--help")
    for option in ("--config FILE", "--index DIR", "--json", "--quiet", "--verbose", "-k N"):
        assert option in shown.out


def test_the_installed_program_tells_its_version() -> None:
    program = Path(sys.executable).with_name("hyce")
    if not program.exists():
        pytest.skip("hyce isn't installed beside this Python")
    shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("hyce ")
    assert shown.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bogus"], "bogus"),
        (["search"], "QUESTION"),
        (["search", "why", "is", "this"], "put the question in quotes"),
        (["search", "q", "--bogus"], "hyce search --help"),
        (["search", "q", "-k", "0"], "'0' is no number from 1"),
        (["search", "q", "-k", "two"], "'two' is no number from 1"),
        (["match", "q", "--scheduler", "lsf"], "lsf"),
        (["commands"], "ACTION"),
        (["commands", "show"], "ID"),
        (["commands", "show", "slurm.jbo"], "did you mean slurm.job?"),
        (["run"], "ID"),
        (["run", "no.such"], "hyce commands list"),
        (["run", "system.date", "date"], "name=value"),
        (["run", "system.date", "=x"], "name=value"),
        (["index", "a", "--", "b"], "unexpected"),
    ],
)
def test_wrong_usage_is_one_line_and_exits_with_2(kestrel: Home, arguments: list[str], words: str) -> None:
    fails(kestrel.hyce(*arguments), words, code=2)


def test_without_a_command_the_help_is_shown(home: Home) -> None:
    shown = home.hyce()
    assert shown.code == 2
    assert shown.out == ""
    assert "hyce init" in shown.err


NO_BATCH = {"site.scheduler": "none"}
"""As on a machine without a batch system, whatever is installed where the tests run."""


def test_options_may_stand_anywhere(home: Home, docs: Path) -> None:
    (first, second), config = (str(docs / name) for name in ("gpus.md", "quota.md")), str(home.settings())
    made = home.hyce("index", first, "--json", second, "--config", config)
    assert made.json["documents"] == 2
    ran = home.hyce("run", "slurm.node", "--json", "node=c12", "--config", config)
    assert ran.json["argv"] == [["scontrol", "show", "node", "c12"]]
    assert home.hyce("search", "--config", config, "--", "-n").code == 0


# -- index -----------------------------------------------------------------------------------------------


def test_index_adds_updates_and_removes(home: Home, docs: Path) -> None:
    def index(*arguments: str) -> dict[str, Any]:
        done = home.hyce("index", *arguments, "--json")
        assert done.code == 0, done.err
        report = done.json
        assert report["seconds"] >= 0
        assert set(report) >= {
            *("documents", "chunks", "embedded", "unchanged", "removed", "failed", "seconds"),
        }
        names = ("documents", "chunks", "embedded", "unchanged", "removed", "failed")
        return {name: report[name] for name in names}

    nothing = {"unchanged": 0, "removed": 0, "failed": 0}
    first = index(str(docs))
    chunks = first["chunks"]
    assert first == {"documents": 3, "chunks": chunks, "embedded": chunks} | nothing
    assert index(str(docs)) == first | {"embedded": 0, "unchanged": 3}
    (docs / "quota.md").write_text("# Quota\n\nYour home directory holds 80 GB.", encoding="utf-8")
    (docs / "login.md").unlink()
    refreshed = index()
    assert refreshed == {
        "documents": 2,
        "chunks": chunks - 1,
        "embedded": 1,
        "unchanged": 1,
        "removed": 1,
        "failed": 0,
    }
    other = docs.parent / "other.md"
    other.write_text("# Other\n\nA source of its own.", encoding="utf-8")
    assert index(str(other))["chunks"] == chunks
    assert index()["documents"] == 3
    gone = index("--remove", str(other))
    assert (gone["removed"], gone["chunks"]) == (1, chunks - 1)
    found = home.hyce("search", "home directory", "--json").json["hits"]
    assert {hit["path"] for hit in found} == {"gpus.md", "quota.md"}
    assert "80 GB" in found[0]["text"]


def test_index_for_a_person(home: Home, docs: Path) -> None:
    (docs / "broken.md").write_bytes(b"\0\1")
    done = home.hyce("index", str(docs))
    assert done.code == 1
    assert done.out.startswith("3 pages, ")
    assert "1 failed" in done.out
    assert "hyce: broken.md: " in done.err
    assert "takes about" in done.err
    quiet = home.hyce("index", str(docs), "--quiet")
    assert quiet.err.splitlines() == [line for line in done.err.splitlines() if "broken.md" in line]


def test_pages_that_are_left_out_on_purpose_are_listed_with_verbose_only(home: Home, docs: Path) -> None:
    (docs / "hidden.md").write_text("---\nsearch:\n  exclude: true\n---\n# Hidden\n\nText.", encoding="utf-8")
    done = home.hyce("index", str(docs))
    assert (done.code, "hidden.md" in done.err) == (0, False)
    again = home.hyce("index", str(docs), "--verbose", "--json")
    assert "left out: hidden.md: " in again.err
    assert again.json["failed"] == 0


def test_index_of_nothing_known_names_the_remedy(home: Home, docs: Path) -> None:
    fails(home.hyce("index"), "hyce index SOURCE", code=2)
    assert home.hyce("index", str(docs)).code == 0
    fails(home.hyce("index", "--remove", "/nope"), "/nope", str(docs), code=2)


def test_an_index_elsewhere(home: Home, docs: Path, tmp_path: Path) -> None:
    there = str(tmp_path / "there")
    assert home.hyce("index", str(docs), "--index", there).code == 0
    assert home.hyce("search", "gpu", "--index", there, "--json").json["hits"]
    assert home.hyce("search", "gpu", "--json", environ={"HYCE_INDEX_PATH": there}).json["hits"]
    fails(home.hyce("search", "gpu"), "no index", "hyce index")


# -- search ----------------------------------------------------------------------------------------------


def test_search(kestrel: Home) -> None:
    question = "how many GPUs may one person use on Merlin"
    found = kestrel.hyce("search", question, "-k", "3", "--json")
    assert (found.code, found.err) == (0, "")
    assert set(found.json) == {"question", "hits"}
    assert found.json["question"] == question
    hits = found.json["hits"]
    assert [hit["rank"] for hit in hits] == [1, 2, 3]
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    for hit in hits:
        assert set(hit) >= HIT
        assert hit["source"] == str(KESTREL)
        assert (KESTREL / hit["path"]).is_file()
        assert hit["text"].startswith(hit["heading"])
    assert hits[0]["path"] == "docs/merlin/gpus.md"
    assert "16 GPUs per person" in hits[0]["text"]
    assert hits[0]["url"].startswith("https://docs.kestrel.example/merlin/gpus/#")


def test_search_for_a_person(kestrel: Home) -> None:
    found = kestrel.hyce("search", "GPU limits on Merlin", "-k", "1")
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith("[1] GPUs on Merlin > ")
    assert "https://docs.kestrel.example/merlin/gpus/#" in found.out
    assert "[2]" not in found.out


def test_search_reads_json_lines(kestrel: Home) -> None:
    lines = [
        json.dumps({"question": "quota of my home directory", "id": 7, "site": "katana"}).encode(),
        b"not json",
        b'{"question": 3}',
        b"",
        b'{"question": "  "}',
        b'{"question": "caf\xe9"}',
        b'["question"]',
        json.dumps({"question": "x" * 100_000}).encode(),
        json.dumps({"question": "a\0b"}).encode(),
        json.dumps({"question": "\ud800"}).encode(),
        json.dumps({"question": " modules? "}).encode(),
    ]
    found = kestrel.hyce("search", "-", "-k", "2", "--json", stdin=b"\n".join(lines))
    assert found.code == 1
    rows = found.rows
    assert len(rows) == len(lines) - 1
    good = (rows[0], rows[-1])
    assert [row["question"] for row in good] == ["quota of my home directory", " modules? "]
    for row in good:
        assert set(row) == {"question", "hits"}
        assert len(row["hits"]) == 2
    for row in rows[1:-1]:
        assert set(row) == {"question", "error", "hits"}
        assert row["hits"] == []
        assert row["error"]
    assert len(found.err.splitlines()) == len(lines) - 3
    assert kestrel.hyce("search", "-", stdin=lines[0]).code == 0
    assert kestrel.hyce("search", "-").rows == []


def test_a_reader_that_leaves_early_is_no_error_message(kestrel: Home) -> None:
    process = kestrel.start("commands", "list")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 1
    process.stderr.close()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_is_not_utf_8_gets_what_it_can_show(kestrel: Home, encoding: str) -> None:
    question = "who is Łukasz Wren and how do I reach the people"
    found = kestrel.spawn("search", question, environ={"PYTHONIOENCODING": encoding})
    assert found.code == 0
    assert "ukasz Wren" in found.out


# -- match -----------------------------------------------------------------------------------------------


def test_match(kestrel: Home) -> None:
    found = kestrel.hyce("match", MEMORY, "--json")
    assert found.code == 0
    assert set(found.json) == {"question", "commands", "supporting", "refused", "ask_back", "notices"}
    (best, *_) = found.json["commands"]
    assert set(best) == {"id", "params", "score"}
    assert (best["id"], best["params"], found.json["refused"]) == ("system.memory", {}, None)
    assert "system.memory" in kestrel.hyce("match", MEMORY).out


@pytest.mark.parametrize("scheduler", ["slurm", "pbs"])
def test_match_as_on_a_cluster_of_this_kind(kestrel: Home, scheduler: str) -> None:
    arguments = ("--assume-available", "--scheduler", scheduler, "--json")
    found = kestrel.hyce("match", "when will my job 48213 start?", *arguments).json
    (best, *_) = found["commands"]
    assert best["id"].startswith(f"{scheduler}.")
    assert best["params"] == {"job_id": "48213"}
    mine = kestrel.hyce("match", "which of my jobs are running", *arguments).json["commands"][0]
    assert mine == {"id": f"{scheduler}.my_jobs", "params": {}, "score": mine["score"]}


def test_match_offers_what_is_installed_only(kestrel: Home) -> None:
    installed = {"slurm": shutil.which("squeue"), "pbs": shutil.which("qstat")}
    found = kestrel.hyce("match", "which of my jobs are running", "--json").json["commands"]
    for scheduler, program in installed.items():
        assert program or not any(row["id"].startswith(scheduler) for row in found)


def test_match_says_where_nothing_would_run(kestrel: Home) -> None:
    off = {"commands.enabled": False}
    found = kestrel.hyce("match", "how many nodes are free?", "--assume-available", "--json", settings=off)
    assert found.json["commands"]
    assert "switched off" in found.err
    assert kestrel.hyce("match", "how many nodes are free?", "--json").err == ""


def test_match_refuses_with_a_reason(kestrel: Home) -> None:
    found = kestrel.hyce("match", "cancel all my jobs", "--assume-available", "--json")
    assert (found.code, found.json["commands"], found.json["supporting"]) == (0, [], [])
    assert "never submits, cancels" in found.json["refused"]
    assert "never submits, cancels" in kestrel.hyce("match", "cancel all my jobs").out


def test_match_reads_json_lines_and_the_site_names_the_scheduler(kestrel: Home) -> None:
    rows = [
        {"question": "which of my jobs are running", "site": "slurm"},
        {"question": "which of my jobs are running", "site": "pbs", "expected": ["x"]},
        {"question": "\u0007"},
        {"question": "delete my files"},
    ]
    stdin = "\n".join(json.dumps(row) for row in rows)
    found = kestrel.hyce("match", "-", "--assume-available", "--json", stdin=stdin)
    assert found.code == 1
    slurm, pbs, broken, refused = found.rows
    assert [row["commands"][0]["id"] for row in (slurm, pbs)] == ["slurm.my_jobs", "pbs.my_jobs"]
    assert set(broken) == {"question", "error", "commands"}
    assert broken["commands"] == []
    assert refused["refused"]
    assert len(found.err.splitlines()) == 1


# -- run and commands ------------------------------------------------------------------------------------


def test_run(home: Home) -> None:
    ran = home.hyce("run", "system.date", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert set(ran.json) >= OUTPUT
    output = ran.json
    assert (output["id"], output["status"], output["exit_code"]) == ("system.date", "ok", 0)
    assert output["argv"][0][0] == "date"
    assert output["stdout"].strip()
    assert (output["stderr"], output["truncated"]) == ("", False)
    assert "scrubbed environment" in output["layers"]
    shown = home.hyce("run", "system.whoami")
    assert shown.out.startswith("$ id\n")
    assert "(ok, exit code 0, " in shown.out


def catalogue(folder: Path, text: str) -> dict[str, Any]:
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    (folder / "own.yaml").write_text(text, encoding="utf-8")
    (folder / "own.yaml").chmod(0o644)
    return {"policy.catalogue": [str(folder)]}


def test_a_program_that_fails_is_no_failure_of_hyce(home: Home, tmp_path: Path) -> None:
    settings = catalogue(
        tmp_path / "catalogue",
        "test.fails:\n  description: Fails.\n  questions: [does it fail]\n  command: [ls, /nonexistent/x]\n"
        "test.hangs:\n  description: Hangs.\n  questions: [does it hang]\n  command: [sleep, '60']\n"
        "  timeout: 0.2\n",
    )
    ran = home.hyce("run", "test.fails", "--json", settings=settings)
    assert (ran.code, ran.err) == (0, "")
    assert (ran.json["status"], ran.json["exit_code"]) == ("failed", 2)
    assert "/nonexistent/x" in ran.json["stderr"]
    shown = home.hyce("run", "test.fails", settings=settings)
    assert "stderr:\n" in shown.out
    assert "ls: cannot access '/nonexistent/x'" in shown.out
    assert "failed, exit code 2" in shown.out
    hung = home.hyce("run", "test.hangs", "--json", settings=settings)
    assert (hung.code, hung.json["status"]) == (1, "timeout")
    assert "had not ended after 0.2 seconds" in hung.err


@pytest.mark.parametrize("value", ["12;id", "$(id)", "-p", "../12", "12\n13"])
def test_run_refuses_what_is_no_plain_value(home: Home, value: str) -> None:
    ran = home.hyce("run", "slurm.job", f"job_id={value}", "--json")
    assert (ran.code, ran.json["status"], ran.json["exit_code"]) == (1, "refused", None)
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith("hyce: slurm.job: refused: ")


def test_run_says_what_is_not_installed(home: Home, tmp_path: Path) -> None:
    settings = catalogue(
        tmp_path / "catalogue",
        "test.missing:\n  description: Is missing.\n  questions: [is it there]\n"
        "  command: [no-such-program-here]\n",
    )
    ran = home.hyce("run", "test.missing", "--json", settings=settings)
    assert (ran.code, ran.json["status"]) == (1, "unavailable")
    assert "no-such-program-here is not installed" in ran.err
    listed = {row["id"]: row for row in home.hyce("commands", "list", "--json", settings=settings).json}
    assert listed["test.missing"]["available"] is False
    assert "not installed" in listed["test.missing"]["reason"]
    assert listed["system.date"]["available"] is True
    shown = home.hyce("commands", "list", settings=settings).out
    assert "[unavailable: no-such-program-here is not installed" in shown


@pytest.mark.skipif(os.getuid() != 0, reason="is about root")
def test_nothing_runs_as_root_unless_the_policy_allows_it(home: Home) -> None:
    ran = home.hyce("run", "system.date", "--json", settings={"policy.root": False})
    assert (ran.code, ran.json["status"]) == (1, "refused")
    assert "policy.root = true" in ran.err


def test_the_sites_policy_holds_and_says_so(home: Home, tmp_path: Path) -> None:
    site_file = tmp_path / "site.toml"
    site_file.write_text('[policy]\ncommands = false\n[site]\nhelp = "the desk"\n', encoding="utf-8")
    site_file.chmod(0o644)
    governed = Home(home.folder, home.models, site_file)
    ran = governed.hyce("run", "system.date", "--json", settings={"policy.commands": True})
    assert (ran.code, ran.json["status"]) == (1, "refused")
    assert "switched commands off" in ran.err
    assert "policy.commands in" in ran.err
    assert "has no effect" in ran.err


def test_commands_show(home: Home) -> None:
    entry = home.hyce("commands", "show", "slurm.node", "--json").json
    assert (entry["id"], entry["argv"][0][:3]) == ("slurm.node", ["scontrol", "show", "node"])
    assert entry["parameters"][0]["name"] == "node"
    shown = home.hyce("commands", "show", "slurm.node").out
    for words in ("scontrol show node", "node: ", "slurm.yaml"):
        assert words in shown


def test_commands_check_finds_a_question_that_leads_elsewhere(home: Home, tmp_path: Path) -> None:
    settings = catalogue(
        tmp_path / "catalogue",
        "test.weather:\n  description: Tells the weather.\n  command: [date]\n"
        "  questions: [is it raining outside, cancel my job]\n",
    )
    done = home.hyce("commands", "check", "--json", settings=settings)
    assert done.code == 1
    found = [row for row in done.json["findings"] if row["entry"] == "test.weather" and row["must_mend"]]
    assert any("'cancel my job'" in row["text"] and row["kind"] == "question" for row in found)
    assert "test.weather" in done.err
    assert done.json["entries"] > 40


# -- ask and chat ----------------------------------------------------------------------------------------

ANSWER = {"question", "answer", "citations", "commands", "passages", "timings_ms", "model"}


def test_ask(kestrel: Home) -> None:
    question = "How many GPUs may one person use at the same time on Merlin?"
    with ScriptedLlm(says("At most 16 GPUs [1], not more [9].")) as server:
        settings = llm(server) | NO_BATCH | {"site.help": "the desk"}
        done = kestrel.hyce("ask", question, "--json", settings=settings)
        (request,) = server.requests
    assert (done.code, done.err) == (0, "")
    answer = done.json
    assert set(answer) >= ANSWER
    assert (answer["question"], answer["model"]) == (question, "scripted")
    assert answer["answer"] == "At most 16 GPUs [1], not more."
    assert "16 GPUs per person" in request.prompt
    (cited,) = [citation for citation in answer["citations"] if citation["used"]]
    assert (cited["number"], cited["kind"]) == (1, "passage")
    assert cited["location"].startswith("https://docs.kestrel.example/")
    assert all(set(hit) >= HIT for hit in answer["passages"])
    assert answer["passages"][0]["path"] == "docs/merlin/gpus.md"
    assert {"retrieve", "match", "run", "model", "total"} <= set(answer["timings_ms"])
    assert len(answer["notices"]) == 1
    assert answer["help"] == "the desk"


def test_ask_for_a_person_with_a_command(kestrel: Home) -> None:
    with ScriptedLlm(says("There is enough [1].")) as server:
        settings = llm(server) | {"site.help": "the desk"}
        done = kestrel.hyce("ask", MEMORY, "--trace", settings=settings)
        (request,) = server.requests
    assert (done.code, done.err) == (0, "")
    assert "Mem:" in request.prompt
    text, _, rest = done.out.partition("Sources\n")
    assert text.strip() == "There is enough [1]."
    assert "[1] free -h" in rest
    assert "exit code 0" in rest
    assert "Help from people: the desk" in rest
    assert "retrieve " in rest
    assert "total " in rest


def test_ask_without_a_model(kestrel: Home) -> None:
    with ScriptedLlm(says("x")) as server:
        done = kestrel.hyce("ask", MEMORY, "--no-llm", "--json", settings=llm(server))
        shown = kestrel.hyce("ask", MEMORY, "--no-llm", settings=llm(server))
        assert server.requests == []
    answer = done.json
    assert (done.code, answer["answer"], answer["model"], answer["citations"]) == (0, None, None, [])
    assert [output["id"] for output in answer["commands"]] == ["system.memory"]
    assert set(answer["commands"][0]) >= OUTPUT
    assert answer["passages"]
    assert "$ free -h" in shown.out
    assert "[1] " in shown.out
    assert "No language model was asked" in shown.out
    assert "No language model is configured" in kestrel.hyce("ask", MEMORY).out


def test_a_preview_sends_nothing(kestrel: Home) -> None:
    with ScriptedLlm(says("x")) as server:
        done = kestrel.hyce("ask", MEMORY, "--preview", "--json", settings=llm(server))
        shown = kestrel.hyce("ask", MEMORY, "--preview", settings=llm(server))
        rows = kestrel.hyce(
            "ask", "-", "--preview", settings=llm(server), stdin=json.dumps({"question": MEMORY}).encode()
        )
        assert server.requests == []
        assert [set(row) for row in rows.rows] == [{"question", "messages"}]
        kestrel.hyce("ask", MEMORY, settings=llm(server))
        (request,) = server.requests
    system, *_ = done.json["messages"]
    assert system["role"] == "system"
    assert system["content"] in shown.out
    assert "Mem:" in shown.out
    assert shown.err == "Nothing was sent.\n"
    # What a model is sent is what the preview shows, but for the numbers that have changed meanwhile.
    assert [m["role"] for m in request.body["messages"]] == [m["role"] for m in done.json["messages"]]
    assert request.body["messages"][0] == system


def test_a_preview_of_what_no_model_is_asked_says_so(kestrel: Home) -> None:
    shown = kestrel.hyce("ask", "cancel job 4711", "--preview")
    assert (shown.code, shown.out) == (0, "")
    assert "No model would be asked" in shown.err


def test_output_that_may_not_leave_the_site_is_shown_beside_the_answer(kestrel: Home) -> None:
    with ScriptedLlm(says("See above.")) as server:
        settings = llm(server, location="outside") | {"policy.outside_endpoints": [server.url]}
        shown = kestrel.hyce("ask", "which processes do I have running on this machine?", settings=settings)
        (request,) = server.requests
    assert "PID" in shown.out
    assert "python" in shown.out
    assert "  PID " not in request.prompt


def test_an_outside_endpoint_without_consent_is_refused_before_anything_is_sent(kestrel: Home) -> None:
    settings = {"llm.base_url": "https://llm.example.org/v1", "llm.model": "big"}
    fails(kestrel.hyce("ask", MEMORY, settings=settings), "llm.example.org")


def test_a_refused_question_runs_nothing(kestrel: Home) -> None:
    with ScriptedLlm(says("x")) as server:
        done = kestrel.hyce("ask", "delete all files in my scratch", "--json", settings=llm(server))
        assert server.requests == []
    assert (done.code, done.json["answer"], done.json["commands"]) == (0, None, [])
    assert "never submits" in done.json["refused"]


def test_an_endpoint_that_is_down_leaves_what_was_found(kestrel: Home) -> None:
    with ScriptedLlm(says("x")) as server:
        settings = llm(server)
    done = kestrel.hyce("ask", MEMORY, settings=settings)
    assert done.code == 1
    assert "$ free -h" in done.out
    assert "[1] " in done.out
    (line,) = [line for line in done.err.splitlines() if line.startswith("hyce: ")]
    assert "127.0.0.1" in line
    assert "check llm.base_url" in line
    as_json = kestrel.hyce("ask", MEMORY, "--json", settings=settings)
    assert (as_json.code, as_json.json["answer"]) == (1, None)
    assert as_json.json["passages"]
    assert as_json.json["commands"]
    assert as_json.err.startswith("hyce: ")


def test_ask_reads_json_lines(kestrel: Home) -> None:
    lines = ['{"question": "GPU limits"}', "{", '{"question": "quota"}']
    with ScriptedLlm(says("Some [1]."), llm_fails(500, "broken")) as server:
        done = kestrel.hyce("ask", "-", "--json", settings=llm(server), stdin="\n".join(lines))
    first, broken, failed = done.rows
    assert done.code == 1
    assert first["answer"] == "Some [1]."
    assert set(broken) == {"question", "error", "hits", "commands"}
    assert (failed["answer"], bool(failed["passages"])) == (None, True)
    assert failed["error"]
    assert len(done.err.splitlines()) == 2


def test_chat_over_a_pipe(kestrel: Home) -> None:
    with ScriptedLlm(says("First [1]."), says("Second [1].")) as server:
        done = kestrel.spawn("chat", settings=llm(server), stdin=b"GPU limits on Merlin?\n\nand Osprey?\n")
        _, second = server.requests
    assert (done.code, done.err) == (0, "")
    assert done.out.index("First [1].") < done.out.index("Second [1].")
    assert "GPU limits on Merlin?" in second.prompt
    assert "First" in second.prompt


def test_chat_goes_on_after_a_question_that_fails(kestrel: Home) -> None:
    done = kestrel.hyce("chat", "--no-llm", "--json", stdin=b"a\0b\nGPU limits\n")
    assert done.code == 1
    assert [row["question"] for row in done.rows] == ["GPU limits"]
    assert "binary data" in done.err
    assert kestrel.hyce("chat").code == 0


# -- init, models, doctor --------------------------------------------------------------------------------


def test_init_writes_settings_that_load_and_never_overwrites(home: Home) -> None:
    file = home.folder / "config" / "hyce" / "hyce.toml"
    mask = os.umask(0)
    try:
        done = home.hyce("init", "--config", str(file))
    finally:
        os.umask(mask)
    assert done.code == 0, done.err
    assert str(file) in done.out
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text(encoding="utf-8")
    assert "# base_url = " in text
    file.write_text(text + "# mine\n", encoding="utf-8")
    fails(home.hyce("init", "--config", str(file)), str(file), "exists already")
    assert file.read_text(encoding="utf-8").endswith("# mine\n")
    assert home.hyce("commands", "list", "--config", str(file), "--json").code == 0
    # With every # removed that hides a setting, it loads just as well.
    lines = [line[2:] if " = " in line and line.startswith("# ") else line for line in text.splitlines()]
    settings = [line for line in lines if line.startswith("[") or (line[:1].islower() and " = " in line)]
    whole = home.folder / "whole.toml"
    whole.write_text("\n".join(settings), encoding="utf-8")
    whole.chmod(0o600)
    assert home.hyce("commands", "list", "--config", str(whole)).code == 0


def test_init_in_the_usual_place_and_as_json(home: Home) -> None:
    usual = home.folder / "config" / "hyce" / "hyce.toml"
    done = home.spawn("init", "--json", "--config", str(usual))
    assert done.json["file"] == str(usual)
    assert done.json["scheduler"] in ("slurm", "pbs", "none")
    fails(home.hyce("init", "--config", "/dev/null/hyce.toml"), "/dev/null: no folder")


def test_models_list(home: Home, tmp_path: Path) -> None:
    found = home.hyce("models", "list", "--json").json
    assert {(model["name"], model["precision"]) for model in found} >= {("all-MiniLM-L6-v2", "int8")}
    assert "all-MiniLM-L6-v2  bi-encoder  int8  384 dimensions" in home.hyce("models", "list").out
    empty = {"model.folder": str(tmp_path / "none")}
    assert home.hyce("models", "list", "--json", settings=empty).json == []
    assert "hyce models pull" in home.hyce("models", "list", settings=empty).out
    fails(home.hyce("search", "q", settings=empty), "hyce models pull")
    fails(home.hyce("match", "q", settings=empty), "hyce models pull")
    fails(home.hyce("models", "pull", "nonesuch", settings=empty), "nonesuch")


def states(home: Home, **settings: Any) -> tuple[int, dict[str, str]]:
    done = home.hyce("doctor", "--json", settings=settings)
    worst: dict[str, str] = {}
    for row in done.json:
        assert set(row) == {"state", "subject", "text", "remedy"}
        assert row["state"] == "ok" or row["remedy"] or row["subject"] == "settings"
        worst[row["subject"]] = max(
            row["state"], worst.get(row["subject"], ""), key=["", "ok", "note", "fail"].index
        )
    return done.code, worst


def test_doctor(kestrel: Home, home: Home, tmp_path: Path) -> None:
    code, worst = states(kestrel, **{"site.help": "the desk"})
    assert (code, worst["embedding model"], worst["index"]) == (0, "ok", "ok")
    assert worst["language model"] == "note"
    code, worst = states(home)
    assert (code, worst["embedding model"], worst["index"]) == (1, "ok", "fail")
    code, worst = states(kestrel, **{"model.folder": str(tmp_path)})
    assert (code, worst["embedding model"], worst["index"]) == (1, "fail", "fail")
    with ScriptedLlm(says("yes")) as server:
        code, worst = states(kestrel, **llm(server))
        settings = llm(server)
        assert (code, worst["language model"]) == (0, "ok")
    code, worst = states(kestrel, **settings)
    assert (code, worst["language model"]) == (1, "fail")
    shown = kestrel.hyce("doctor", settings=settings)
    assert "fail  language model: " in shown.out
    assert "      check llm.base_url" in shown.out
