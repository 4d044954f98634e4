"""What bad input gets: one clear line or a listed skip, the right exit code, nothing lost, no traceback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hyce_home import Home, fails
from scripted_llm import ScriptedLlm, Step, hangs_up, says, sends, stays_silent
from scripted_llm import fails as llm_fails

GOOD = "# Quota\n\n## Home\n\nYour home directory holds 50 GB and is backed up every night."


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "good.md").write_text(GOOD, encoding="utf-8")
    return folder


@pytest.fixture
def indexed(home: Home, docs: Path) -> Home:
    assert home.hyce("index", str(docs)).code == 0
    return home


def found(home: Home, question: str = "home directory") -> set[str]:
    return {hit["path"] for hit in home.hyce("search", question, "-k", "60", "--json").json["hits"]}


def without_rights() -> list[str]:
    """What starts a program to which a file's permissions apply even when root starts it."""
    if os.getuid() != 0:
        return []
    lost = "-dac_override,-dac_read_search"
    before = ["setpriv", f"--bounding-set={lost}", f"--inh-caps={lost}"]
    if not shutil.which("setpriv") or subprocess.run([*before, "true"], check=False).returncode:
        pytest.skip("root's rights can't be dropped here")
    return before


# -- sources ---------------------------------------------------------------------------------------------


def test_a_source_that_is_not_there(home: Home, docs: Path) -> None:
    missing = str(docs / "nowhere")
    fails(home.hyce("index", missing), missing, "no such folder")
    fails(home.hyce("search", "q"), "no index")
    assert home.hyce("index", str(docs)).code == 0
    both = home.hyce("index", str(docs), missing)
    assert (both.code, both.err.count(missing)) == (1, 1)
    assert "1 pages unchanged" in both.out and "1 failed" in both.out
    fails(home.hyce("index", str(docs / "good.pdf")), "good.pdf")
    (docs / "data.csv").write_text("1,2", encoding="utf-8")
    fails(home.hyce("index", str(docs / "data.csv")), "hyce reads .md")
    assert found(home) == {"good.md"}


def test_a_known_source_that_is_gone_loses_nothing(indexed: Home, docs: Path) -> None:
    docs.rename(docs.with_name("away"))
    fails(indexed.hyce("index"), str(docs))
    assert found(indexed) == {"good.md"}
    assert indexed.hyce("index", "--remove", str(docs), "--json").json["removed"] == 1
    assert found(indexed) == set()


def test_an_empty_folder_is_no_failure(home: Home, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = home.hyce("index", str(tmp_path / "empty"), "--json")
    assert (done.code, done.json["documents"], done.json["chunks"]) == (0, 0, 0)
    assert home.hyce("search", "q", "--json").json["hits"] == []
    assert "No passage was found" in home.hyce("search", "q").out
    assert home.hyce("ask", "what is the quota of my project").code == 0


# -- pages -----------------------------------------------------------------------------------------------


def test_pages_that_cannot_be_read_are_listed_and_stop_nothing(
    home: Home, docs: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("# Secret\n\nOnly for me.", encoding="utf-8")
    (docs / "binary.md").write_bytes(bytes(range(256)) * 40)
    (docs / "empty.md").write_bytes(b"")
    (docs / "blank.rst").write_text(" \n\t\n", encoding="utf-8")
    (docs / "markup-only.html").write_text("<html><body><div></div></body></html>", encoding="utf-8")
    (docs / "out.md").symlink_to(secret)
    (docs / "out").symlink_to(tmp_path)
    (docs / "nowhere.md").symlink_to(docs / "missing.md")
    (docs / "loop.md").symlink_to(docs / "loop.md")
    os.mkfifo(docs / "pipe.md")
    with (docs / "huge.md").open("wb") as file:
        for _ in range(50):
            file.write(b"All work and no play. " * 45455)
    done = home.spawn("index", str(docs), "--json")
    assert done.code == 1
    failures = {row["path"]: row["reason"] for row in done.json["failures"]}
    reasons = {
        "binary.md": "no text",
        "empty.md": "empty",
        "blank.rst": "empty",
        "markup-only.html": "no text",
        "out.md": "leads out of the folder",
        "out": "leads out of the folder",
        "nowhere.md": "leads nowhere",
        "loop.md": "leads nowhere",
        "pipe.md": "not a regular file",
        "huge.md": "too large (50.0 MB",
    }
    assert set(failures) == set(reasons)
    for path, reason in reasons.items():
        assert reason in failures[path], path
    assert done.json["failed"] == len(reasons)
    lines = [line for line in done.err.splitlines() if line.startswith("hyce: ")]
    assert len(lines) == len(reasons)
    assert found(home) == {"good.md"}
    assert "Only for me" not in home.hyce("search", "secret", "--json").out


def test_files_without_permission(home: Home, docs: Path) -> None:
    before = without_rights()
    (docs / "closed.md").write_text("# Closed\n\nAbout closed things.", encoding="utf-8")
    (docs / "folder").mkdir()
    (docs / "folder" / "inner.md").write_text("# Inner\n\nAbout inner things.", encoding="utf-8")
    assert home.spawn("index", str(docs), before=before).code == 0
    (docs / "closed.md").chmod(0)
    (docs / "folder").chmod(0)
    try:
        done = home.spawn("index", str(docs), "--json", before=before)
        assert done.code == 1
        assert {row["path"] for row in done.json["failures"]} == {"closed.md", "folder"}
        assert all("check its permissions" in row["reason"] for row in done.json["failures"])
        # They are there, only unreadable just now: what the index has of them stays.
        assert found(home, "closed inner home") == {"good.md", "closed.md", "folder/inner.md"}
        docs.chmod(0)
        fails(home.spawn("index", str(docs), before=before), "check its permissions")
    finally:
        docs.chmod(0o755)
        (docs / "folder").chmod(0o755)


def test_an_index_folder_without_permission(home: Home, docs: Path, tmp_path: Path) -> None:
    before = without_rights()
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    there = str(closed / "index")
    fails(home.spawn("index", str(docs), "--index", there, before=before), "Permission denied", str(closed))
    fails(home.spawn("search", "q", "--index", there, before=before), "no index")
    assert home.hyce("index", str(docs)).code == 0
    home.index.chmod(0)
    try:
        fails(home.spawn("search", "q", before=before), "Permission denied")
        fails(home.spawn("index", before=before), "Permission denied")
    finally:
        home.index.chmod(0o755)


def test_encodings(home: Home, docs: Path) -> None:
    text = "# Straße\n\nGröße der Fläche für Zoë: größer."
    for name, encoding in {
        "utf8": "utf-8",
        "bom": "utf-8-sig",
        "utf16": "utf-16",
        "utf16le": "utf-16-le",
        "latin": "latin-1",
        "utf32": "utf-32",
    }.items():
        (docs / f"{name}.md").write_bytes((text + name).encode(encoding))
    (docs / "cyrillic.html").write_bytes(
        '<html><head><meta charset="koi8-r"></head><body><h1>Квота</h1><p>Диск полон.</p>'.encode("koi8-r")
    )
    (docs / "liar.html").write_bytes(
        '<html><head><meta charset="no-such"></head><body><h1>A</h1><p>größer als'.encode()
    )
    (docs / "torn.md").write_bytes(b"# Torn\n\nbefore \xff\xfe\x80 after")
    done = home.hyce("index", str(docs), "--json")
    assert {row["path"] for row in done.json["failures"]} == {"utf16le.md"}
    assert done.code == 1
    hits = home.hyce("search", "Größe der Fläche Квота", "-k", "60", "--json").json["hits"]
    by_path = {hit["path"]: hit["text"] for hit in hits}
    for name in ("utf8", "bom", "utf16", "latin", "utf32"):
        assert "Größe der Fläche für Zoë" in by_path[f"{name}.md"], name
    assert "Диск полон" in by_path["cyrillic.html"]
    assert "größer als" in by_path["liar.html"]
    assert "before" in by_path["torn.md"]


BROKEN = {
    "fence.md": "# Fence\n\n```bash\nsbatch job.sh\n\nnever closed\n\n## Inside",
    "table.md": "# Table\n\n| a | b\n|---|\n| 1 | 2 | 3 |\n| \n",
    "box.md": '# Box\n\n!!! note\n\n??? "x\n    a\n!!!\n\n=== "Tab\n    b',
    "html.md": "# Html\n\n<div><table><tr><td>cell <b>bold\n\n</p></div></span>\n<script>alert(1)",
    "front.md": "---\ntitle: [unclosed\n  : {\n---\n# Front\n\nText.",
    "links.md": "# Links\n\n[a](b ![c](d [e]: f\n\n[^1]: x [^1] [^2]",
    "snippet.md": '# Snippet\n\n--8<-- "/etc/passwd"\n--8<-- "missing.md"\nText.',
    "deep.md": "# Deep\n\n" + "".join("  " * i + "- item\n" for i in range(100)) + "> " * 100 + "quoted",
    "deep.html": "<h1>Deep</h1>" + "<div>" * 5000 + "text" + "</div>" * 5000,
    "spans.html": "<h1>Spans</h1><table>"
    + '<tr><td rowspan="65534" colspan="1000">x</td></tr>' * 3
    + "</table>",
    "comment.html": "<h1>Comment</h1><p>Before.</p><!-- never closed <p>Stale.</p>",
    "bytes.html": "<h1>A\x01\x02</h1><p>text &#0; &#xD800; &bogus; &#x110000;</p>",
    "title.rst": "Title\n==\n\nToo short.\n\nOther\n~~~~~\n\nTwo\n====\n",
    "table.rst": "Table\n=====\n\n+--+--+\n| a | b\n+--+\n\n=== ==\na b c\n===\n",
    "role.rst": "Role\n====\n\n:no:`such` :ref:`<` |sub| `link_ ``literal\n\n.. bogus:: x\n   :opt\n\n   B.",
    "include.rst": "Include\n=======\n\nText.\n\n.. include:: /etc/passwd\n"
    ".. literalinclude:: ../../../etc/passwd\n"
    ".. raw:: html\n   :file: /etc/passwd\n.. csv-table::\n   :file: /etc/passwd\n   :url: http://example.org/\n",
    "loop.rst": "Loop\n====\n\nText.\n\n.. include:: loop.rst\n",
    "yaml.slurm": "#SBATCH\n#SBATCH --\n" + "x" * 100_000,
}


def test_broken_markup_is_read_as_far_as_it_goes(home: Home, docs: Path) -> None:
    for name, text in BROKEN.items():
        (docs / name).write_text(text, encoding="utf-8")
    (docs / "mkdocs.yml").write_text(
        "site_name: [\n!!python/object/apply:os.system ['touch x']", encoding="utf-8"
    )
    done = home.spawn("index", str(docs), "--json")
    report = done.json
    assert (done.code, report["failures"], report["documents"]) == (0, [], len(BROKEN) + 1)
    for question in ("root:x:0:0", "alert(1)"):
        hits = home.hyce("search", question, "-k", "60", "--json").json["hits"]
        assert not any(question in hit["text"] for hit in hits)


def test_names_that_are_no_utf_8_or_hold_control_characters(home: Home, docs: Path) -> None:
    for number, name in enumerate((b"caf\xe9.md", b"new\nline.md", b"esc\x1b[2J.md", b'a b\'s "c".md')):
        path = os.fsencode(docs) + b"/" + name
        Path(os.fsdecode(path)).write_text(f"# Page {number}\n\nAbout number {number}.", encoding="utf-8")
    done = home.spawn("index", str(docs), "--json")
    assert (done.code, done.json["documents"]) == (0, 5)
    assert home.hyce("index", "--json").json["unchanged"] == 5
    shown = home.spawn("search", "about number", "-k", "9")
    assert shown.code == 0
    assert "\x1b" not in shown.out


# -- the disk and the index ------------------------------------------------------------------------------


def many(docs: Path, pages: int) -> None:
    for number in range(pages):
        sections = "\n\n".join(f"## Part {part}\n\nWord{number} about part {part}." for part in range(8))
        (docs / f"page{number}.md").write_text(f"# Page {number}\n\n{sections}", encoding="utf-8")


@pytest.mark.skipif(not shutil.which("prlimit"), reason="needs prlimit")
@pytest.mark.parametrize("limit", [100_000, 700_000])
def test_a_full_disk_keeps_the_index_and_the_next_run_goes_on(indexed: Home, docs: Path, limit: int) -> None:
    many(docs, 60)
    full = indexed.spawn("index", before=["prlimit", f"--fsize={limit}", "--"])
    fails(full, "disk or your quota may be full", "free some space")
    assert found(indexed) == {"good.md"}
    done = indexed.hyce("index", "--json")
    assert (done.code, done.json["documents"]) == (0, 61)
    assert len(found(indexed, "Word7 about part 3")) > 10


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("can't mount a small file system here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_too_small(home: Home, docs: Path, small_disk: Path) -> None:
    there = str(small_disk / "index")
    assert home.hyce("index", str(docs), "--index", there).code == 0
    many(docs, 60)
    fails(home.hyce("index", "--index", there), "disk or your quota may be full")
    many(docs, 1200)
    fails(home.hyce("index", "--index", there), "MB are needed", "--index")
    assert {hit["path"] for hit in home.hyce("search", "home", "--index", there, "--json").json["hits"]} == {
        "good.md"
    }


def test_output_that_cannot_be_written(kestrel: Home) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    for arguments in (["search", "quota"], ["run", "system.date", "--json"]):
        with open("/dev/full", "wb") as full:  # noqa: PTH123
            process = kestrel.start(*arguments, stdout=full)
            _, err = process.communicate(timeout=60)
        assert process.returncode == 1
        assert err.decode().startswith("hyce: ")
        assert len(err.splitlines()) == 1


def test_a_cache_that_cannot_be_written_costs_time_only(kestrel: Home, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    for cache in (tmp_path / "file", Path("/proc")):
        done = kestrel.spawn(
            "match", "how much memory is free", "--json", environ={"XDG_CACHE_HOME": str(cache)}
        )
        assert done.code == 0
        assert done.json["commands"][0]["id"] == "system.memory"


def test_a_damaged_cache_is_made_again(home: Home) -> None:
    question = ("match", "how much memory is free", "--json")
    before = home.hyce(*question).json
    files = [path for path in (home.folder / "cache").rglob("*") if path.is_file()]
    assert files
    for damage in (b"garbage", files[0].read_bytes()[:5000]):
        for file in files:
            file.write_bytes(damage)
        done = home.hyce(*question)
        assert (done.code, done.json) == (0, before)


def test_an_index_of_another_model(indexed: Home) -> None:
    other = {"model.precision": "fp32"}
    for command in ("search", "ask"):
        fails(indexed.hyce(command, "home directory", settings=other), "hyce index", "made with the model")
    assert indexed.hyce("doctor", settings=other).code == 1
    done = indexed.hyce("index", "--json", settings=other)
    assert (done.code, done.json["documents"]) == (0, 1)
    assert "built again" in done.err
    assert indexed.hyce("search", "home", "--json", settings=other).json["hits"]
    fails(indexed.hyce("search", "home"), "made with the model")


def test_an_index_of_another_format(indexed: Home, docs: Path) -> None:
    current = indexed.index / "current"
    manifest = json.loads(current.read_text(encoding="utf-8"))

    def write(number: Any) -> None:
        current.write_text(json.dumps(manifest | {"format": number}), encoding="utf-8")

    write(manifest["format"] + 1)
    fails(indexed.hyce("search", "home"), "newer hyce")
    fails(indexed.hyce("index"), "newer hyce")
    write(manifest["format"] - 1)
    fails(indexed.hyce("search", "home"), "older hyce", "hyce index")
    nameless = indexed.hyce("index")
    assert (nameless.code, nameless.out) == (2, "")
    assert "name them all: `hyce index FOLDER" in nameless.err
    done = indexed.hyce("index", str(docs), "--json")
    assert (done.code, done.json["documents"]) == (0, 1)
    assert found(indexed) == {"good.md"}


@pytest.mark.parametrize("content", [b"", b"{", b"\0\xff", b"[]", b'{"format": "one"}', b'{"format": 1}'])
def test_a_damaged_index_is_named_and_built_again(indexed: Home, docs: Path, content: bytes) -> None:
    (indexed.index / "current").write_bytes(content)
    fails(indexed.hyce("search", "home"), str(indexed.index), "hyce index")
    done = indexed.hyce("index", str(docs), "--json")
    assert (done.code, done.json["documents"]) == (0, 1)
    assert found(indexed) == {"good.md"}


def test_an_index_that_is_a_file(home: Home, docs: Path) -> None:
    there = str(docs / "good.md")
    fails(home.hyce("search", "q", "--index", there), there)
    fails(home.hyce("index", str(docs), "--index", there), there)
    assert (docs / "good.md").read_text(encoding="utf-8") == GOOD


@pytest.mark.parametrize("name", ["model.json", "tokenizer.json", "int8.onnx", "int8.data"])
@pytest.mark.parametrize("damage", ["garbage", "truncated", "missing"])
def test_damaged_model_files(kestrel: Home, tmp_path: Path, name: str, damage: str) -> None:
    models = tmp_path / "models"
    shutil.copytree(kestrel.models, models, ignore=shutil.ignore_patterns("fp32.*"), copy_function=os.link)
    (file,) = models.rglob(name)
    data = file.read_bytes()
    file.unlink()
    if damage != "missing":
        file.write_bytes(b"\0garbage" * 10 if damage == "garbage" else data[: len(data) // 2])
    done = kestrel.spawn("search", "quota", settings={"model.folder": str(models)})
    fails(done, "hyce models pull")


# -- settings and catalogue ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[llm", "not valid TOML"),
        ("\0", "not valid TOML"),
        (b"\xff\xfe", "not valid TOML"),
        ("model = 3", "outside a section"),
        ("[llm]\nmodle = 'x'", "did you mean llm.model"),
        ("[nonsense]\nx = 1", "no such setting"),
        ("[retrieval]\npassages = 'six'", "a whole number"),
        ("[retrieval]\npassages = 0", "at least 1"),
        ("[retrieval]\nrerank = 'best'", "one of late, cross-encoder"),
        ("[policy]\ncatalogue = '/x'", "a list of texts"),
        ("[index]\nmax_page_mb = true", "a number"),
    ],
)
def test_a_broken_settings_file(home: Home, text: str | bytes, word: str) -> None:
    file = home.folder / "broken.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    file.chmod(0o600)
    for command in (["search", "q"], ["commands", "list"], ["doctor"]):
        fails(home.hyce(*command, "--config", str(file)), str(file), word)


def test_settings_that_others_can_write_or_that_are_no_file(home: Home, docs: Path) -> None:
    file = home.folder / "open.toml"
    file.write_text("", encoding="utf-8")
    file.chmod(0o666)
    fails(home.hyce("commands", "list", "--config", str(file)), str(file), "chmod go-w")
    file.chmod(0o600)
    home.folder.chmod(0o777)
    fails(home.hyce("commands", "list", "--config", str(file)), str(home.folder), "chmod go-w")
    home.folder.chmod(0o700)
    fails(home.hyce("commands", "list", "--config", str(docs)), str(docs))
    fails(home.hyce("commands", "list", "--config", "/nope.toml"), "/nope.toml", "hyce init")
    fails(home.hyce("commands", "list", environ={"HYCE_LLM_MODLE": "x"}), "HYCE_LLM_MODEL")
    fails(home.hyce("commands", "list", environ={"HYCE_MODEL_THREADS": "two"}), "model.threads")


ENTRY = "own.entry:\n  description: Own.\n  questions: [own?]\n  command: [date]\n"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("own.entry: [", "not valid YAML"),
        ("\0", "not valid YAML"),
        ("- a", "mapping"),
        (ENTRY + "  timout: 3\n", "did you mean timeout"),
        (ENTRY + ENTRY, "stands twice"),
        (ENTRY.replace("date", "bash"), "bash can run anything"),
        (ENTRY.replace("date", "date, '{x}'"), "{x}"),
        (ENTRY.replace("[date]", "date; rm -rf /"), "command"),
        ("own.entry: !!python/object/apply:os.system ['true']", "not valid YAML"),
        ("a: &a [x]\nb: &b [*a, *a]\nown.entry: *b", "own.yaml"),
    ],
)
def test_a_broken_catalogue(kestrel: Home, tmp_path: Path, text: str, word: str) -> None:
    folder = tmp_path / "catalogue"
    folder.mkdir(mode=0o700)
    (folder / "own.yaml").write_text(text, encoding="utf-8")
    (folder / "own.yaml").chmod(0o600)
    settings = {"policy.catalogue": [str(folder)]}
    for command in (["match", "date?"], ["commands", "check"], ["run", "system.date"], ["ask", "date?"]):
        fails(kestrel.hyce(*command, settings=settings), "own.yaml", word)
    assert kestrel.hyce("search", "quota", settings=settings).code == 0


def test_a_catalogue_that_is_missing_or_that_others_can_write(kestrel: Home, tmp_path: Path) -> None:
    folder = tmp_path / "catalogue"
    settings = {"policy.catalogue": [str(folder)]}
    fails(kestrel.hyce("commands", "list", settings=settings), str(folder), "doesn't exist")
    folder.mkdir()
    folder.chmod(0o777)
    fails(kestrel.hyce("commands", "list", settings=settings), str(folder), "chmod go-w")
    folder.chmod(0o755)
    (folder / "own.yaml").write_text(ENTRY, encoding="utf-8")
    (folder / "own.yaml").chmod(0o664)
    fails(kestrel.hyce("run", "own.entry", settings=settings), "own.yaml", "chmod go-w")
    (folder / "own.yaml").chmod(0o644)
    assert kestrel.hyce("run", "own.entry", settings=settings).code == 0


# -- the language model ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "word"),
    [
        (stays_silent, "llm.timeout"),
        (hangs_up, "connection"),
        (llm_fails(429, "slow down"), "429"),
        (llm_fails(500, "out of memory"), "500"),
        (llm_fails(401, "bad key"), "401"),
        (llm_fails(404, "no such model"), "404"),
        (sends(200, "<html>Login</html>", "text/html"), ""),
        (sends(200, "\0\1\2garbage"), ""),
        (sends(200, "{}"), ""),
        (sends(200, "[]"), ""),
        (sends(200, 'data: {"choices": 3}\n\n', "text/event-stream"), ""),
        (sends(200, "data: {not json}\n\n", "text/event-stream"), ""),
        (sends(200, "", "text/event-stream"), ""),
        (says(""), ""),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_an_endpoint_that_fails_leaves_what_was_found(
    kestrel: Home, step: Step, word: str, stream: bool
) -> None:
    settings: dict[str, Any] = {"llm.model": "tiny", "llm.location": "onsite", "llm.retries": 0}
    settings |= {"llm.timeout": 0.5, "llm.stream": stream}
    with ScriptedLlm(step) as server:
        done = kestrel.hyce("ask", "GPU limits on Merlin", settings=settings | {"llm.base_url": server.url})
        assert len(server.requests) >= 1
    assert done.code == 1, done
    (line,) = [line for line in done.err.splitlines() if line.startswith("hyce: ")]
    assert f"{server.url}, model tiny: " in line
    assert word in line
    assert "16 GPUs per person" in done.out


# -- questions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["search", "match", "ask"])
@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("", "empty"),
        (" \n\t ", "empty"),
        ("x" * 100_000, "100000 bytes"),
        ("\udcff\udcfe", "binary"),
        ("a\x1b]52;c;AA\x07", "binary"),
    ],
)
def test_what_is_no_question(kestrel: Home, command: str, question: str, word: str) -> None:
    fails(kestrel.hyce(command, question), word, code=2)


@pytest.mark.parametrize(
    "question",
    ["?", "..", "a" * 19_000, "\U0001f4a9" * 500, "\u202eabc", '"*" AND NEAR(', "-", "' OR 1=1 --", "%s{}"],
)
def test_odd_questions_are_questions(kestrel: Home, question: str) -> None:
    if question == "-":
        question = " - "
    for command in ("search", "match"):
        done = kestrel.hyce(command, "--json", "--", question)
        assert done.code == 0, done.err
        assert done.json["question"] == question.strip()


def test_a_question_of_bytes(kestrel: Home) -> None:
    done = kestrel.spawn("search", os.fsdecode(b"caf\xe9 \xff"))
    fails(done, "binary data", code=2)
