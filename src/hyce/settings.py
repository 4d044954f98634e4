"""The settings by section: each field with its default and its description.

`docs/settings.md` and the file that `hyce init` writes are generated from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


def setting(default: Any, doc: str) -> Any:
    """A dataclass field with its description."""
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True, slots=True)
class Site:
    """The centre and the machine."""

    name: str = setting("", "The centre's name, as the language model is told it.")
    cluster: str = setting("", "The cluster that this machine belongs to; its pages are preferred.")
    clusters: tuple[str, ...] = setting(
        (), "All clusters of the centre by name, so that pages of the others are recognised."
    )
    scheduler: Literal["auto", "slurm", "pbs", "none"] = setting(
        "auto",
        "Whose commands are offered. auto: any batch system's that is installed here; none: no one's.",
    )
    help: str = setting("", "Where to get help from people; every answer ends with it.")
    gpu_nodes: tuple[str, ...] = setting(
        (),
        'For PBS: which Unix group may use which GPU nodes, as "group=pattern of node names", such as '
        '"physics=k09*"; the group * is everybody. Empty: everybody may use all.',
    )


@dataclass(frozen=True, slots=True)
class Index:
    """Where the index is and what it holds."""

    path: str = setting(
        "",
        "Folder of the index. Default: $XDG_DATA_HOME/hyce/index; without an index there, share/hyce/index "
        "of the environment that the program is installed in.",
    )
    token_vectors: bool = setting(
        True, "Store token vectors for late interaction (about 40 kB a passage on disk)."
    )
    max_page_mb: float = setting(10.0, "Larger pages are left out, and listed.")
    languages: tuple[str, ...] = setting(
        (), 'Languages of the documentation, as ["en", "de"]. Empty: recognised page by page.'
    )


@dataclass(frozen=True, slots=True)
class Web:
    """How web sites are read. robots.txt is always obeyed."""

    rate: float = setting(4.0, "Requests to one site within a second, at most; robots.txt may ask for less.")
    at_once: int = setting(4, "Requests to one site at the same time, at most.")
    pages: int = setting(5000, "Pages of one site, at most; what is beyond is left out, and listed.")
    exclude: tuple[str, ...] = setting(
        (), 'Parts of a site to leave out, as patterns of paths such as "/news/*".'
    )
    timeout: float = setting(20.0, "Seconds without a sign of life before a request is given up.")
    retries: int = setting(3, "Further tries after a failed connection, a 429 or a 5xx, with back-off.")
    proxy: str = setting("", "Address of the proxy that leads out of the site, such as http://proxy:3128.")


@dataclass(frozen=True, slots=True)
class Passages:
    """How pages are cut into passages."""

    kind: Literal["structure", "paragraph", "llm"] = setting(
        "structure",
        "structure: along headings, lists, tables and code. paragraph: the text of <p> elements only, "
        "as the published HyCE code does, for comparison. llm: where the language model says.",
    )
    size: int = setting(160, "Most tokens in a passage, heading path included.")


@dataclass(frozen=True, slots=True)
class Model:
    """The embedding model: on this machine, or served by an endpoint."""

    kind: Literal["onnx", "openai", "tei"] = setting(
        "onnx",
        "onnx: on this machine's processor. openai: an endpoint of the form /v1/embeddings. "
        "tei: Text Embeddings Inference.",
    )
    name: str = setting(
        "all-MiniLM-L6-v2", "Name of a pulled model, or the name by which the endpoint knows it."
    )
    precision: Literal["int8", "fp32"] = setting(
        "int8", "int8 is faster and a quarter of the size; fp32 is exact."
    )
    folder: str = setting(
        "",
        "Folder of the model files. Default: $XDG_DATA_HOME/hyce/models; for a model that isn't there, "
        "share/hyce/models of the environment that the program is installed in.",
    )
    threads: int = setting(0, "Processor threads; 0 means as many as this process may use, at most 4.")
    late_chunking: bool = setting(
        False, "Embed a page as a whole and pool by passage, so that a passage knows what stands around it."
    )
    base_url: str = setting("", "Address of the endpoint, such as http://localhost:8080/v1.")
    location: Literal["onsite", "outside"] = setting("outside", "As llm.location, for this endpoint.")
    api_key_env: str = setting("", "Name of the environment variable that holds the endpoint's key.")
    api_key_file: str = setting("", "File that holds the key; only its owner may be able to read it.")
    timeout: float = setting(30.0, "Seconds without a sign of life before a request is given up.")
    retries: int = setting(3, "Further tries after a failed connection, a 429 or a 5xx, with back-off.")
    batch: int = setting(32, "Texts sent to the endpoint in one request, at most.")
    input_type: bool = setting(
        False,
        "Tell the endpoint questions from passages. openai: by input_type, as NVIDIA's models want it, and "
        'truncate for what is too long. tei: by the model\'s prompt named "query".',
    )
    max_tokens: int = setting(512, "Longest text that the served model takes, in tokens.")
    tokenizer: str = setting(
        "", "Path of the served model's tokenizer.json, to measure tokens instead of estimating them."
    )


@dataclass(frozen=True, slots=True)
class Reranker:
    """The model that orders passages anew, where retrieval.rerank asks for one."""

    name: str = setting(
        "ms-marco-MiniLM-L-12-v2",
        "Name of a pulled cross-encoder, or the name by which the endpoint knows it.",
    )
    precision: Literal["int8", "fp32"] = setting(
        "int8", "int8 is faster and a quarter of the size; fp32 is exact."
    )
    form: Literal["nim", "tei", "cohere"] = setting(
        "tei",
        "What the endpoint speaks. nim: NVIDIA NIM's ranking. tei: Text Embeddings Inference. "
        "cohere: the form that Cohere, Jina, vLLM and others share.",
    )
    base_url: str = setting("", "Address of the endpoint, such as http://localhost:8081.")
    location: Literal["onsite", "outside"] = setting("outside", "As llm.location, for this endpoint.")
    api_key_env: str = setting("", "Name of the environment variable that holds the endpoint's key.")
    api_key_file: str = setting("", "File that holds the key; only its owner may be able to read it.")
    timeout: float = setting(30.0, "Seconds without a sign of life before a request is given up.")
    retries: int = setting(3, "Further tries after a failed connection, a 429 or a 5xx, with back-off.")
    batch: int = setting(32, "Passages sent to the endpoint in one request, at most.")


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How passages are found."""

    dense: bool = setting(True, "Search by the meaning of the whole question.")
    lexical: bool = setting(True, "Search by its words (BM25).")
    vocabulary: bool = setting(
        True, 'Search also with the field\'s terms for what newcomers say ("graphics card": GPU).'
    )
    rerank: Literal["late", "cross-encoder", "endpoint", "none"] = setting(
        "late",
        "What orders the candidates. late: late interaction over token vectors. cross-encoder, endpoint: the "
        "model of [reranker], on this machine or served. none: they keep the fused order.",
    )
    candidates: int = setting(100, "Passages taken from each search before they are fused.")
    join: bool = setting(True, "Show passages that are both found and follow each other as one.")
    clusters: bool = setting(True, "Rank pages about other clusters of the centre lower.")
    transform: Literal["none", "hyde", "fusion", "interleaved"] = setting(
        "none",
        "What the language model makes of a question before it is searched for. hyde: a passage that could "
        "answer it. fusion: other wordings, their rankings fused. interleaved: search and reasoning in turn.",
    )
    wordings: int = setting(4, "Wordings searched for by fusion, the question's own counted.")
    rounds: int = setting(3, "Searches that interleaved makes, at most.")
    decide: bool = setting(
        False, "Ask the language model first whether a question needs documentation at all (Self-RAG)."
    )
    passages: int = setting(6, "Passages given to the model or shown.")


@dataclass(frozen=True, slots=True)
class Commands:
    """Which commands may answer."""

    enabled: bool = setting(True, "Run commands to answer questions.")
    run: bool = setting(
        True,
        "Run the commands that are found. false: the model is given their descriptions as they stand, and "
        "nothing runs, for comparison.",
    )
    matching: Literal["routed", "joint", "llm"] = setting(
        "routed",
        "routed: own ranking, with a decision to run none, one or several. joint: descriptions compete with "
        "passages for the places of retrieval.passages, as the published HyCE code has it. llm: the language "
        "model chooses among the nearest entries.",
    )
    most: int = setting(2, "Commands run for one question, at most.")
    threshold: float = setting(0.15, "Score from which a command is taken to answer a question, 0 to 1.")


@dataclass(frozen=True, slots=True)
class Llm:
    """The language model. Without base_url and model, answers are passages and command output."""

    base_url: str = setting("", "Address of an OpenAI-compatible endpoint, such as http://localhost:8000/v1.")
    model: str = setting("", "Model name as the endpoint knows it.")
    location: Literal["onsite", "outside"] = setting(
        "outside",
        "Whether the endpoint is the site's own. This machine's own addresses always are; an outside one "
        "needs the site's consent in [policy].",
    )
    api_key_env: str = setting("", "Name of the environment variable that holds the key.")
    api_key_file: str = setting("", "File that holds the key; only its owner may be able to read it.")
    timeout: float = setting(60.0, "Seconds without a sign of life before a request is given up.")
    retries: int = setting(3, "Further tries after a failed connection, a 429 or a 5xx, with back-off.")
    stream: bool = setting(True, "Show the answer while it is written.")
    chain_of_thought: bool = setting(False, "Ask for reasons first, as JSON; the answer alone is shown.")
    context_tokens: int = setting(8192, "The model's context limit; passages are cut to fit.")
    max_output_tokens: int = setting(4096, "Longest answer.")
    output_limit: Literal["max_tokens", "max_completion_tokens"] = setting(
        "max_tokens", "Name under which the endpoint takes the longest answer; newer models want the latter."
    )
    prompt: Literal["cited", "plain"] = setting(
        "cited",
        "What the model is asked for. cited: each statement with its source. plain: an answer from the "
        "context, without citations, for comparison.",
    )
    temperature: float = setting(
        0.0, "0 for answers that can be repeated; -1 leaves it out, for endpoints that refuse it."
    )
    seed: int = setting(0, "Seed sent with each request; -1 leaves it out, for endpoints that refuse it.")
    tokenizer: str = setting(
        "", "Path of the model's tokenizer.json, to measure tokens instead of estimating them."
    )


@dataclass(frozen=True, slots=True)
class Role:
    """Empty or 0: as in [llm]. With an address of its own, a role has also its own location and key."""

    base_url: str = setting("", "Address of this role's own endpoint.")
    model: str = setting("", "Model name as the endpoint knows it.")
    location: Literal["onsite", "outside"] = setting("outside", "As llm.location, for base_url.")
    api_key_env: str = setting("", "Name of the environment variable that holds the key for base_url.")
    api_key_file: str = setting("", "File that holds the key for base_url.")
    timeout: float = setting(0.0, "Seconds without a sign of life before a request is given up.")
    context_tokens: int = setting(0, "The model's context limit.")
    max_output_tokens: int = setting(0, "Longest reply.")


ROLES = {
    "answer": "writes the answers",
    "commands": "chooses commands (commands.matching = llm) and drafts entries (hyce commands describe)",
    "queries": "transforms questions (retrieval.transform, retrieval.decide)",
    "passages": "cuts pages into passages (passages.kind = llm)",
    "generation": "writes questions from the documentation and from commands (hyce evaluate generate)",
    "filter": "decides which of them are good questions",
    "judge": "judges answers (hyce evaluate run)",
    "second_judge": "judges them too, to compare; asked only where this section says something",
}
"""What language models do, each of which may have a model of its own, as [llm.answer]."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the site allows. Read from /etc/hyce/hyce.toml alone when that exists."""

    commands: bool = setting(True, "The off switch: false, and no command runs for anybody.")
    root: bool = setting(False, "Whether commands may run when hyce is started as root.")
    sandbox: Literal["auto", "require", "off"] = setting(
        "auto",
        "bubblewrap around each command. auto: where it works here; require: nothing runs where it doesn't; "
        "off: never.",
    )
    rate_limit: int = setting(30, "Commands that one user may start within a minute; 0: no limit.")
    syslog: bool = setting(False, "Send each run to syslog too, without the question.")
    slurm_conf: str = setting("", "SLURM_CONF for Slurm's commands; the user's own variable never counts.")
    program_folders: tuple[str, ...] = setting(
        (), "Further folders that programs may come from, changeable by root only; searched first."
    )
    outside_endpoints: tuple[str, ...] = setting(
        (), "Consent: addresses of endpoints outside the site that questions and passages may be sent to."
    )
    onsite_endpoints: tuple[str, ...] = setting(
        (), "Addresses of the site's own endpoints. Where set, only these and this machine's own are onsite."
    )
    catalogue: tuple[str, ...] = setting(
        (), "Folders with the site's own command entries (YAML), writable by their owner only."
    )
