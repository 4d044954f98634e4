"""Pages and questions in other languages than English: recognised, indexed in their own forms, found."""

# ruff: noqa: RUF001  (letters that look like Latin ones are what this is about)

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hyce_home import Home
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from word_embedder import WordEmbedder

from hyce.config import Config
from hyce.errors import ConfigError
from hyce.index import forms, lexical
from hyce.index.embedded import IndexReader, open_index, open_writer
from hyce.indexing import IndexReport, index_sources, passage_settings
from hyce.languages import NAMES, Recogniser, beside_english, code_of, english_only, of_question, unknown_to
from hyce.match import NOT_ENGLISH, Matcher
from hyce.parse import parse
from hyce.records import Chunk, Command, Document, Page
from hyce.vocabulary import field_terms

HERE = Path(__file__).parent
KESTREL = HERE.parent / "examples" / "kestrel"
PAGES: list[dict[str, Any]] = tomllib.loads((HERE / "data" / "languages.toml").read_text("utf-8"))["page"]
CODES = list(dict.fromkeys(page["language"] for page in PAGES))
RECOGNISER = Recogniser()
"""Loaded at the first page that isn't English."""
QUESTIONS = [(page["path"], question) for page in PAGES for question in page["questions"]]


def index_folder(folder: Path, index: Path, *sources: Path, languages: tuple[str, ...] = ()) -> IndexReport:
    """Bring the index up to date with the folder and the other sources."""
    config = Config()
    config = replace(config, index=replace(config.index, languages=languages, token_vectors=False))
    embedder = WordEmbedder()
    with open_writer(
        index,
        embedder=embedder.fingerprint,
        dimensions=embedder.dimensions,
        passages=passage_settings(config),
        token_vectors=False,
    ) as writer:
        named = [str(source) for source in (folder, *sources)]
        return index_sources(named, writer, embedder, config, lambda *_: None)


def found(reader: IndexReader, question: str, k: int = 5) -> list[str]:
    """Paths of the pages that its words find, best first."""
    passages = reader.passages([number for number, _ in reader.lexical(question, 4 * k)])
    return list(dict.fromkeys(passage.path for passage in passages))[:k]


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    for page in PAGES:
        file = folder / page["path"]
        file.parent.mkdir(exist_ok=True)
        file.write_text(page["text"], encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def mixed(docs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexReader]:
    """All languages and the English sample documentation in one index."""
    index = tmp_path_factory.mktemp("mixed")
    index_folder(docs, index, KESTREL)
    with open_index(index) as reader:
        yield reader


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexReader]:
    index = tmp_path_factory.mktemp("english")
    index_folder(KESTREL, index)
    with open_index(index) as reader:
        yield reader


# -- pages are found by words alone ----------------------------------------------------------------------


@pytest.mark.parametrize(("path", "question"), [each for each in QUESTIONS if not each[0].startswith("en/")])
def test_a_question_finds_its_page_by_its_words(mixed: IndexReader, path: str, question: str) -> None:
    assert path in found(mixed, question, 2)


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("Grafikkarte", "de/gpu.md"),  # Grafikkarten
        ("groessere Projekte", "de/speicher.md"),  # ein größeres Projekt
        ("GRÖSSERES", "de/speicher.md"),
        ("répertoire personnel", "fr/stockage.md"),
        ("repertoires", "fr/stockage.md"),
        ("aceleradora", "es/gpu.md"),
        ("sterownik", "pl/gpu.md"),
        ("显卡", "zh/gpu.md"),
        ("卡", "zh/gpu.md"),
        ("鍵", "ja/login.md"),
        ("ノートＰＣ", "ja/transfer.md"),
    ],
)
def test_forms_of_a_word_find_it(mixed: IndexReader, question: str, path: str) -> None:
    assert path in found(mixed, question)


COMMANDS = ["sbatch", "job.sh", "--gres=gpu:1", "cuda/12.4", "data.example.org", "rsync -av", "scancel"]


@pytest.mark.parametrize("code", CODES)
def test_code_is_found_in_every_language(docs: Path, tmp_path: Path, code: str) -> None:
    index_folder(docs / code, tmp_path / "index")
    with open_index(tmp_path / "index") as reader:
        for question in COMMANDS:
            assert question in reader.passages([reader.lexical(question, 5)[0][0]])[0].body


def test_long_variables_are_found_whatever_a_stemmer_does_to_them(tmp_path: Path) -> None:
    names = ["SLURM_CPUS_PER_TASK", "--mem-per-cpu", "SLURM_JOB_NODELIST", "OMP_NUM_THREADS", "python3.11"]
    with writer(tmp_path) as making:
        for code in NAMES:
            for name in names:
                put(making, f"{name}/{code}", f"x {name} y", code)
        making.publish()
    with open_index(tmp_path) as reader:
        for name in names:
            paths = found(reader, f"How is {name} used?", len(NAMES))
            assert sorted(paths) == sorted(f"{name}/{code}" for code in NAMES)


def test_what_is_shown_is_the_original(mixed: IndexReader) -> None:
    passage = mixed.passages([mixed.lexical("Grafikkarten anfordern", 1)[0][0]])[0]
    assert passage.title == "Grafikkarten"
    assert "Grafikkarten werden mit --gres=gpu:1 angefordert." in passage.body


# -- English stays as it is ------------------------------------------------------------------------------


def kestrel_questions() -> list[str]:
    lines = (HERE / "data" / "kestrel_questions.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["question"] for line in lines]


def test_english_rankings_and_scores_are_those_of_a_plain_english_index(english: IndexReader) -> None:
    import sqlite3

    plain = sqlite3.connect(":memory:")
    plain.execute(
        "CREATE VIRTUAL TABLE text USING fts5(title, heading, body, "
        "tokenize = 'porter unicode61 remove_diacritics 2')"
    )
    rows = english._database.execute("SELECT rowid, title, heading, body FROM text").fetchall()
    plain.executemany("INSERT INTO text(rowid, title, heading, body) VALUES (?, ?, ?, ?)", rows)
    for question in kestrel_questions():
        expression = " OR ".join(f'"{term.words}"' for term in lexical.terms(question))
        expected = plain.execute(
            "SELECT rowid, -rank FROM text WHERE text MATCH ? AND rank MATCH 'bm25(2.0, 2.0, 1.0)' "
            "ORDER BY rank LIMIT 50",
            (expression,),
        ).fetchall()
        assert english.lexical(question, 50) == expected
    plain.close()


def test_an_english_question_looks_up_no_other_forms() -> None:
    for question in kestrel_questions():
        assert {term.among for term in lexical.terms(question)} == {"all"}
        beside = beside_english({"en": 40, "de": 5, "fr": 5}, question)
        # Of keywords nobody can tell: "highmem usable memory".
        assert beside == (() if lexical.STOP_WORDS & set(question.lower().split()) else ("de", "fr"))
    assert beside_english({"en": 40, "de": 5}, "Wie groß ist meine Quota?") == ("de",)
    assert beside_english({"en": 40, "de": 5}, "Speicherplatz") == ("de",), "unclear: looked up all the same"
    assert beside_english({"de": 5}, "How big is my quota?") == ("de",), "no other pages could answer"
    assert beside_english({"en": 5}, "Wie groß ist meine Quota?") == ()


def test_an_english_question_prefers_english_pages(mixed: IndexReader) -> None:
    """`Partition` stands unstemmed in few pages: those in other languages."""
    best = mixed.passages([n for n, _ in mixed.lexical("What is the longest time in a partition?", 3)])
    assert all(not passage.path.startswith(("de/", "fr/", "es/", "pl/")) for passage in best)


# -- the language of a page ------------------------------------------------------------------------------


def page_of(text: str, media_type: str = "text/markdown") -> Page:
    return parse(Document("/docs", "page", media_type, text, ""))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page["path"])
def test_pages_are_recognised(page: dict[str, Any]) -> None:
    assert RECOGNISER.language(page_of(page["text"])) == page["language"]


CODE = """
```bash
#SBATCH --nodes=2 --ntasks-per-node=64 --time=02:00:00 --mem-per-cpu=2G
module load gcc/12.2 openmpi/4.1.4 python/3.11
srun --cpu-bind=cores ./a.out && sacct -j 4711 --format=JobID,State,Elapsed,MaxRSS
for file in *.dat; do echo "processing the file" && gzip -9 "$file"; done
export OMP_NUM_THREADS=4 OMP_PLACES=cores OMP_PROC_BIND=close SLURM_CPUS_PER_TASK=4
```
"""


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (f"# Beispiel\n\nSo sieht ein Skript für zwei Knoten aus:\n{CODE}\nPassen Sie die Zahlen an.", "de"),
        (f"# Exemple\n\nVoici un script pour deux nœuds :\n{CODE}\nAdaptez les nombres à vos besoins.", "fr"),
        (f"# Ejemplo\n\nEste es un guion para dos nodos:\n{CODE}\nAdapte los números a su caso.", "es"),
        (f"# 示例\n\n两个节点的脚本如下：\n{CODE}\n请修改数字。", "zh"),
        (f"# 例\n\nスクリプトの例です。\n{CODE}", "ja"),
        (f"# Example\n\nA script for two nodes:\n{CODE}\nChange the numbers.", "en"),
        (f"# sbatch\n{CODE}", "en"),
        ("# GPU\n\nsbatch", "en"),
        ("# 1\n\n2 3 4", "en"),
        ("# Quota\n\n50 GB", "en"),
        ("|a|b|\n|-|-|\n|gpu01|A100|", "en"),
    ],
)
def test_code_doesnt_decide_and_short_pages_are_english(text: str, language: str) -> None:
    assert RECOGNISER.language(page_of(text)) == language


def html(language: str, body: str) -> Page:
    return page_of(f'<html lang="{language}"><head></head><body>{body}</body></html>', "text/html")


@pytest.mark.parametrize(
    ("declared", "body", "language"),
    [
        ("de-AT", "<h1>GPU</h1><p>sbatch</p>", "de"),
        ("FR", "<h1>GPU</h1><p>sbatch</p>", "fr"),
        ("zh_CN", "<h1>GPU</h1><p>sbatch</p>", "zh"),
        ("nb", "<h1>GPU</h1><p>sbatch</p>", "no"),
        ("tlh", "<h1>GPU</h1><p>sbatch</p>", "en"),
        ("", "<h1>GPU</h1><p>sbatch</p>", "en"),
        # Site builders write lang="en" whatever the author writes.
        ("en", "<h1>Speicher</h1><p>Alle Verzeichnisse werden jede Nacht gesichert, auch Ihres.</p>", "de"),
        ("de", "<h1>Storage</h1><p>Each of the directories is saved every night, and so is yours.</p>", "en"),
    ],
)
def test_the_declared_language_counts_where_the_words_dont_tell(
    declared: str, body: str, language: str
) -> None:
    page = html(declared, body)
    assert page.language == declared
    assert RECOGNISER.language(page) == language


def test_a_fragment_declares_no_language() -> None:
    assert page_of("# Title\n\nText").language == ""
    assert page_of('<p lang="de">Text</p>', "text/html").language == ""


def test_the_setting_restricts_what_is_recognised() -> None:
    czech = page_of("# Úložiště\n\nDomovské adresáře se každou noc zálohují a soubory lze obnovit.")
    assert RECOGNISER.language(czech) == "cs"
    assert Recogniser(["en", "de"]).language(czech) in ("en", "de")
    assert Recogniser(["pl"]).language(czech) == "pl"
    assert Recogniser(["fr", "de"]).language(html("de", "<h1>GPU</h1><p>sbatch</p>")) == "de"
    assert Recogniser(["fr", "de"]).language(page_of("# GPU\n\nsbatch")) == "fr"
    for wrong in ("german", "", "DE", "tlh"):
        with pytest.raises(ConfigError, match=r"index.languages"):
            Recogniser([wrong])


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(max_size=200), st.text(max_size=8))
def test_any_text_has_a_language(text: str, declared: str) -> None:
    page = Page(text, (), None, declared)
    assert RECOGNISER.language(page) in NAMES
    assert of_question(text) in ("", *NAMES)
    assert code_of(declared) in ("", *NAMES)


def test_english_pages_need_no_recogniser() -> None:
    script = """
import sys
from hyce.languages import Recogniser
from hyce.records import Block, Page, Section
text = "The files of a project are kept for as long as it runs, and you can ask us for more space."
print(Recogniser().language(Page("Files", (Section(("Files",), "", (Block("paragraph", (text,)),)),))))
print("py3langid" in sys.modules)
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.split() == ["en", "False"]


# -- the language of a question --------------------------------------------------------------------------


@pytest.mark.parametrize("code", CODES)
def test_questions_are_recognised_or_left_open(code: str) -> None:
    told = [of_question(q) for page in PAGES if page["language"] == code for q in page["questions"]]
    assert (code == "en") or "en" not in told
    assert (code != "en") or set(told) <= {"en", ""}
    assert sum(bool(each) for each in told) >= 0.6 * len(told)


def test_no_english_question_is_taken_for_another_language() -> None:
    file = HERE.parent / "benchmarks" / "data" / "routing_held.jsonl"
    asked = [json.loads(line)["question"] for line in file.read_text("utf-8").splitlines()]
    wrong = [
        question for question in (*asked, *kestrel_questions()) if of_question(question) not in ("en", "")
    ]
    assert len(asked) > 500
    assert wrong == []


def test_a_symbol_is_no_language() -> None:
    assert of_question("How do I set α in GROMACS?") == "en"
    assert of_question("café list") == ""
    assert of_question("mac os") == ""


def test_the_fields_terms_are_added_to_english_questions_alone() -> None:
    assert "memory" in field_terms("Why did my job die?")
    assert field_terms("Wann die Wartung ist, weiß ich nicht, und wo sehe ich sie?") == []
    assert field_terms("graphics card") == ["GPU", "accelerator"]


# -- the index keeps count -------------------------------------------------------------------------------


def test_the_manifest_counts_pages_by_language(docs: Path, tmp_path: Path) -> None:
    first = index_folder(docs, tmp_path / "index")
    assert first.languages == dict.fromkeys(sorted(CODES), 5)
    (docs / "de").rename(tmp_path / "de")
    try:
        second = index_folder(docs, tmp_path / "index")
    finally:
        (tmp_path / "de").rename(docs / "de")
    assert second.languages == {code: 5 for code in sorted(CODES) if code != "de"}
    third = index_folder(docs, tmp_path / "index")
    assert third.languages == first.languages
    again = index_folder(docs, tmp_path / "index")
    assert (again.languages, again.embedded) == (first.languages, 0)
    with open_index(tmp_path / "index") as reader:
        assert reader.manifest.languages == first.languages


def test_a_page_can_change_its_language(tmp_path: Path) -> None:
    docs, index = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    file = docs / "page.md"
    english, german = (
        next(page["text"] for page in PAGES if page["path"] == path) for path in ("en/gpu.md", "de/gpu.md")
    )
    for text, code, question in (
        (german, "de", "vierte Karte"),
        (english, "en", "request cards"),
    ):
        file.write_text(text, encoding="utf-8")
        assert index_folder(docs, index).languages == {code: 1}
        with open_index(index) as reader:
            assert found(reader, question) == ["page.md"]
            stored = reader._database.execute("SELECT forms FROM text").fetchall()
            assert [bool(text) for (text,) in stored] == [code != "en"]


def test_another_setting_of_languages_builds_the_index_again(docs: Path, tmp_path: Path) -> None:
    index_folder(docs, tmp_path / "index")
    with pytest.raises(ConfigError):
        index_folder(docs, tmp_path / "index", languages=("klingon",))
    assert index_folder(docs, tmp_path / "index", languages=("de",)).languages == {"de": len(PAGES)}


# -- any text --------------------------------------------------------------------------------------------


def writer(folder: Path) -> Any:
    return open_writer(folder, embedder="words", dimensions=32, passages="x", token_vectors=False)


def put(making: Any, path: str, text: str, language: str) -> None:
    chunk = Chunk(("Titel",), "", text)
    document = Document("/docs", path, "text/markdown", "", path)
    making.put(document, "Titel", None, [chunk], WordEmbedder().embed([text]), language=language)


LETTERS = st.sampled_from(
    "abcdeghilmnorstuyABEKSU019äöüßéèçñãõøåæœłżźśćęąőűčřžşğıİﬁ½ΑΩλςбвгджийлЯאבגدخس作业显卡节点配额ジョブのをはカード한국어ไทยกขคក"
)
TEXTS = st.lists(
    st.text(LETTERS, min_size=1, max_size=9)
    | st.sampled_from(["--mem-per-cpu", "a.b", "x_y", "．", '"', "*"]),
    min_size=1,
    max_size=12,
).map(" ".join)


PASSAGES = st.lists(st.tuples(TEXTS, st.sampled_from(sorted(NAMES))), min_size=1, max_size=20)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(PASSAGES)
def test_a_word_that_stands_in_a_passage_finds_it(passages: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with writer(Path(folder)) as making:
            for number, (text, language) in enumerate(passages):
                put(making, str(number), text, language)
            making.publish()
        with open_index(Path(folder)) as reader:
            for number, (text, _) in enumerate(passages):
                for word in text.split():
                    if any(map(str.isalnum, word)):
                        assert str(number) in found(reader, word, len(passages)), (word, text)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.text(max_size=60), st.sampled_from(sorted(NAMES))), max_size=5), st.text())
def test_any_text_can_be_indexed_and_asked_for(passages: list[tuple[str, str]], question: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with writer(Path(folder)) as making:
            for number, (text, language) in enumerate(passages):
                put(making, str(number), text, language)
            making.publish()
        with open_index(Path(folder)) as reader:
            for asked in (question, *(text for text, _ in passages)):
                for rows in (10**6, 1):
                    assert len(reader.lexical(asked, 5, rows=rows)) <= len(passages)


def test_forms_as_they_are() -> None:
    assert forms.stored("Die Größe der Verzeichnisse", "de") == "die gross der verzeichnis"
    assert forms.stored("The size of directories", "en") == ""
    assert forms.stored("see 作业提交 now", "en") == "作业 业提 提交 交"
    assert forms.stored("用sbatch提交", "zh") == "用 sbatch 提交 交"
    assert forms.asked("如何提交作业", "zh") == ["何提", "提交", "交作", "作业"]
    assert forms.asked("どうですか", "ja") == ["どう", "うで", "です", "すか"], "nothing else would remain"
    assert forms.asked("mem per cpu", "de") == ["mem per cpu"]
    assert forms.stem("unknowns", "xx") == "unknowns"
    assert set(forms.SNOWBALL) <= set(NAMES)
    for code in forms.SNOWBALL:
        assert forms.stem("abc", code)


def test_the_cost_of_one_character_is_that_of_all_that_begin_with_it(tmp_path: Path) -> None:
    with writer(tmp_path) as making:
        for number in range(60):
            put(making, f"{number}.md", "卡片 显卡", "zh")
        making.publish()
    with open_index(tmp_path) as reader:
        wanted = lexical.terms("卡", ["zh"], mixed=True)
        assert lexical.affordable(reader._database, reader._stems, wanted, 60, 10**6).count("*") == 1
        few = lexical.affordable(reader._database, reader._stems, wanted, 60, 55)
        assert few == '({title heading body} : "卡" AND forms : "卡" *)', "too many for one of them alone"
        assert reader.lexical("卡", 3)


# -- models that know English alone ----------------------------------------------------------------------


def test_which_models_know_english_alone() -> None:
    assert english_only("all-MiniLM-L6-v2")
    assert english_only("sentence-transformers/all-MiniLM-L6-v2")
    assert english_only("multi-qa-MiniLM-L6-cos-v1")
    assert not english_only("multilingual-e5-small")
    assert not english_only("nvidia/llama-3.2-nv-embedqa-1b-v1")
    assert unknown_to("all-MiniLM-L6-v2", {"en": 5}) == ""
    assert unknown_to("multilingual-e5-small", {"en": 5, "de": 3}) == ""
    assert "German (3), French (2)" in unknown_to("all-MiniLM-L6-v2", {"en": 5, "de": 3, "fr": 2})


QUOTA = Command("storage.quota", "Shows your quota.", ("what is my quota",), (("true",),))


@pytest.mark.parametrize(
    ("question", "runs"),
    [("what is my quota", True), ("quota", True), ("Wie ist die Quota für mein Verzeichnis?", False)],
)
def test_a_question_the_model_doesnt_understand_runs_nothing(question: str, runs: bool) -> None:
    def match(english: bool) -> tuple[Sequence[str], tuple[str, ...]]:
        routing = Matcher([QUOTA], WordEmbedder(), threshold=-1.0, english_only=english).match(question)
        return [each.command.id for each in routing.commands], routing.notices

    assert match(english=False) == (["storage.quota"], ())
    assert match(english=True) == ((["storage.quota"], ()) if runs else ([], (NOT_ENGLISH,)))


def test_indexing_and_the_doctor_name_pages_that_the_model_doesnt_know(home: Home, docs: Path) -> None:
    run = home.hyce("index", str(docs / "de"))
    assert run.code == 0
    assert "German (5)" in run.err and 'preset = "multilingual"' in run.err
    doctor = home.hyce("doctor").out
    assert "pages in other languages: German (5); all-MiniLM-L6-v2 knows English alone" in doctor
