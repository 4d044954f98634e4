"""Text that others wrote, made harmless: for a terminal, inside a prompt, and before it leaves the site."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

# -- for a terminal --------------------------------------------------------------------------------------

# CSI (colours, cursor), OSC/DCS/APC/PM/SOS strings up to their terminator (or the line's end: an open one
# must not swallow the rest), two-character escapes; each with its 7-bit and its 8-bit introducer.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
_SHOWN = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: "\u2421"}
_BIDI = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x061C, 0x200E, 0x200F], "\ufffd")
_ZERO_WIDTH = [0x00AD, 0x034F, 0x180E, 0x200B, 0x200C, 0x200D, 0xFEFF, 0xFFF9, 0xFFFA, 0xFFFB]
_INVISIBLE = dict.fromkeys([*_ZERO_WIDTH, *range(0x2060, 0x2066), *range(0x206A, 0x2070)])
# Tag characters: letters that no one sees and that some models read.
_TAGS = dict.fromkeys(range(0xE0000, 0xE0080))
_C1 = dict.fromkeys(range(0x80, 0xA0), "\ufffd")
_LINE_ENDS = {0x2028: "\n", 0x2029: "\n", 0x0085: "\n"}
_SURROGATES = re.compile("[\ud800-\udfff]")
_HARMLESS = {**_SHOWN, **_C1, **_BIDI, **_INVISIBLE, **_TAGS, **_LINE_ENDS}


def neutral(text: str) -> str:
    """The text without anything that moves a terminal's cursor, colours it, fills the clipboard, or makes
    characters appear elsewhere than they stand. Newlines and tabs stay; other control characters become
    their visible pictures."""
    text = _ESCAPE.sub("", text.replace("\r\n", "\n"))
    return _SURROGATES.sub("\ufffd", text.translate(_HARMLESS))


# -- inside a prompt -------------------------------------------------------------------------------------

_MARKER = re.compile(r"<<<|>>>")
_ROLE_TAG = re.compile(
    r"<\|[^|<>\n]{0,40}\|>|<\|(?:im_|end|start|eot)|\[/?INST\]|<</?SYS>>|</?s>|</?(?:system|assistant)>"
    r"|<(?:start|end)_of_turn>|<\uff5c[^\uff5c\n]{0,40}\uff5c>",
    re.IGNORECASE,
)
_WIDE = str.maketrans("<>[]|", "\uff1c\uff1e\uff3b\uff3d\uff5c")


def fence(kind: str, number: int, label: str, text: str) -> str:
    """`text` between an opening and a closing line that it can't contain.

    kind: "documentation" or "command output"; number: by which an answer cites it; label: its title.
    The lines carry a tag made of the whole content, so that no text can hold its own, and every `<<<`
    and `>>>` inside is widened, as are the role tags of chat templates: some tokenizers would turn them
    into real ones.
    """
    body, title = _defused(text), " ".join(_defused(label).split())
    tag = hashlib.sha256(f"{kind}\0{number}\0{title}\0{body}".encode()).hexdigest()[:12]
    return f"<<<source [{number}] {tag} ({kind}): {title}\n{body}\nend of source [{number}] {tag}>>>"


def _defused(text: str) -> str:
    def widen(found: re.Match[str]) -> str:
        return found[0].translate(_WIDE)

    return _ROLE_TAG.sub(widen, _MARKER.sub(widen, neutral(text)))


# -- before it leaves the site ---------------------------------------------------------------------------

_TELLING_NAME = (
    r"[\w.-]{0,40}(?:api[_-]?key|apikey|access[_-]?key|secret(?:[_-]?key)?|auth[_-]?token|token|passwd|password"
    r"|passphrase|private[_-]?key|credentials?|slurm_jwt"
    r"|(?:mysql|redis|db|pg)_?pwd)"
)


def _keep_first(name: str) -> Callable[[re.Match[str]], str]:
    return lambda found: f"{found[1]}[redacted {name}]"


def _whole(name: str) -> Callable[[re.Match[str]], str]:
    return lambda _: f"[redacted {name}]"


_SECRETS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
            r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
            re.DOTALL,
        ),
        _whole("private key"),
    ),
    (
        re.compile(r"(?i)\b([a-z][a-z0-9+.-]{1,20}://)[^\s/@:]{1,100}:[^\s/@]{1,200}(?=@)"),
        _keep_first("login"),
    ),
    (re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), _whole("token")),
    # One long part tells a key from a name such as sk-learn-of-many-words.
    (re.compile(r"\b(?:sk|pk|rk)-(?=[\w-]{0,200}\w{16})[\w-]{16,}|\bAGE-SECRET-KEY-\w+"), _whole("key")),
    (re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,})"), _whole("token")),
    (
        re.compile(
            r"\b(?:hf_[A-Za-z0-9]{16,}|nvapi-[\w-]{16,}|xox[abprs]-[\w-]{10,}|npm_\w{20,}|pypi-\w{20,})"
        ),
        _whole("token"),
    ),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{30,}"), _whole("key")),
    (
        re.compile(r"(?i)(\bauthorization\s*[:=]\s*\w+\s+|\bbearer\s+(?=\S*\d))[\w.~+/-]{8,}=*"),
        _keep_first("token"),
    ),
    (
        re.compile(
            rf"(?i)(?<![\w.-])({_TELLING_NAME}[\"']?\s*[=:]\s*)(?:\"[^\"\n]+\"|'[^'\n]+'|(?!\[redacted)[^\s,;\"']+)"
        ),
        _keep_first("secret"),
    ),
    (
        re.compile(
            r"(?i)((?<![\w-])--?(?:[a-z]{1,20}[_-]){0,3}(?:password|passwd|token|(?:api|access|secret|auth|wandb)"
            r"[_-]?key|secret)[ =]|\bsshpass\s+-p\s?)(?!\[redacted)[^\s\"']+"
        ),
        _keep_first("secret"),
    ),
    (
        re.compile(r"((?<!\w)(?:-u|--user)[ =])(?!\[redacted)[^\s:]{1,100}:[^\s/][^\s\"']*"),
        _keep_first("login"),
    ),
    (
        re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24}\b"),
        _whole("e-mail address"),
    ),
)


def redact(text: str) -> str:
    """The text with keys, tokens, passwords, private keys and e-mail addresses replaced by
    `[redacted ...]`. What has no telling shape or name, such as a bare random word, stays."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text
