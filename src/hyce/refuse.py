"""Questions for which nothing may run, whatever they resemble: hyce reads, and reads only for its user.

An order ("cancel 123", "could you delete ...") is refused; a question about the same thing ("how do I
cancel a job?", "was it cancelled?") is one for the documentation. So it goes:

    1. What the user only reports is left out: pasted error lines, `quoted commands`, "I ran ...".
    2. The rest as a whole is searched for shell syntax, and for orders about the assistant's rules.
    3. Each sentence by itself is searched for secrets, other people's things, and orders to change something.

The rules only spare the user a wrong answer: that nothing but catalogue entries runs, with checked
parameters, doesn't depend on them.
"""

from __future__ import annotations

import re

from hyce.refuse_words import (
    BELONGINGS,
    CHANGERS,
    DONE,
    ENGLISH,
    KIND,
    LEAD,
    NAME,
    NOBODY,
    ORDER,
    PERSON,
    PROGRAM,
    RELATION,
    SOFT,
    USER_WORD,
    any_of,
)

EFFECT = (
    "hyce only looks things up: it never submits, cancels, changes or deletes anything. "
    "The documentation says how you do that yourself."
)
OTHERS = "hyce runs commands for your own account only: it doesn't look into other people's jobs or files."
SECRETS = "hyce doesn't show passwords, keys or tokens, nor the files that hold them."
SHELL = (
    "The question holds shell syntax or options. hyce runs no text as a command; ask in plain words instead."
)
ORDERS = "The question gives the assistant orders about its rules. hyce answers questions; nothing was run."


def why_refused(question: str) -> str | None:
    """The reason, fit to be shown, or None when commands may answer."""
    # Long runs of blanks mean nothing, and would make the patterns below slow.
    text = re.sub(r"\s*\n\s*", "\n", re.sub(r"[^\S\n]+", " ", question)).strip()
    if _ORDERS.search(text):
        return ORDERS
    text = _without_reports(text)
    if _SHELL.search(text):
        return SHELL
    for sentence in _SENTENCE.split(text):
        reason = _why_sentence_refused(sentence)
        if reason:
            return reason
    return None


def _why_sentence_refused(sentence: str) -> str | None:
    asks_how = bool(_ASKS_HOW.search(sentence))
    informational = bool(_INFORMATIONAL.search(sentence))
    if not asks_how and _SECRETS.search(sentence):
        return SECRETS
    if not asks_how and not _COMPARES.search(sentence) and _OTHERS.search(sentence):
        return OTHERS
    if not asks_how and _RUN_TEXT.search(sentence):
        return ORDERS
    if not informational and _AS_ROOT.search(sentence):
        return ORDERS
    if _REQUEST.search(sentence):
        return EFFECT
    if _IMPERATIVE.search(sentence) and not _ASKS_AT_ITS_END.search(sentence):
        return EFFECT
    if not asks_how and _WISH.search(sentence):
        return EFFECT
    if not informational and _FURTHER_ORDER.search(sentence):
        return EFFECT
    return None


def _without_reports(text: str) -> str:
    """The text without what it only tells of: error messages, a session's transcript, quoted commands."""
    if _DO_IT.search(text):
        return text
    if "\n" in text:
        text = _TRANSCRIPT.sub(" ", text)
    text = _ERROR_LINE.sub(" ", text)
    text = _I_RAN.sub("I ran it", text)
    text = _COMMAND_FAILED.sub("it ", text)
    alone = not re.search(r"\w", _QUOTED.sub("", text))
    pieces, end = [], 0
    for quoted in _QUOTED.finditer(text):
        before = text[max(0, quoted.start() - 200) : quoted.start()]
        asked = _ASKS_TO_RUN.search(before) and not _TELLS_OF_IT.search(before)
        kept = asked or alone or _VALUE_FOLLOWS.search(before)
        told = quoted[2] if _PATH.fullmatch(quoted[2]) else "it"
        pieces += [text[end : quoted.start()], quoted[0] if kept else told]
        end = quoted.end()
    return "".join([*pieces, text[end:]])


def _pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | flags)


# -- how a sentence is meant -----------------------------------------------------------------------------

_SENTENCE = re.compile(r"(?<=[.!?;:])\s|\n|\s[-\u2013\u2014]{1,3}\s(?!how\b|is\b|which\b)")
_ASKS_HOW = _pattern(
    r"\bhow\s+(?:do|can|could|should|would|to|may|might|must|does|many)\b|\bwhich\s+command\b"
    r"|\bwhat\s+(?:command|do\s+i)\b|\bam\s+i\s+allowed|\bis\s+it\s+(?:possible|allowed|ok)"
    r"|\b(?:can|could|may|should)\s+(?:i|we)\b"
)
_ASKS_AT_ITS_END = _pattern(
    r"[\s,\u2013\u2014-](?:how|is\s+(?:it|that|this)\s+(?:possible|allowed|ok)|(?:which|what)\s+command"
    r"|automatically)\s*\?"
)
_INFORMATIONAL = _pattern(
    rf"{LEAD}(?:how|what|why|when|where|which|who|whose|is|are|was|were|did|does|do|has|have|had"
    r"|(?:can|could|may|should|must|shall|will|would)\s+(?!you\b))"
)
_COMPARES = _pattern(
    r"\b(?:before|ahead\s+of|than|instead\s+of)\s+(?:me|mine|my|us|ours?)\b|\bslow|\bblock|\bdisturb|\baffect|\bbusy\s+with\b"
)

# -- what is only told of --------------------------------------------------------------------------------

_ERROR_LINE = _pattern(
    r"(?:^|(?<=\s))(?:[\w./-]{1,40}:\s){1,2}(?:\*{3}|(?:error|fatal|warning|cannot|can't|could\s+not|unable|line\s+\d"
    r"|permission|no\s+such|command\s+not\s+found|requested|unauthorized)\b|\S+:\s+cannot\b)(?:(?![.!?;]\s)[^\n])*"
)
_TRANSCRIPT = re.compile(r"^(?:[\w@.:~-]{0,60}[$%]|>>>) \S.*$", re.MULTILINE)
_I_RAN = _pattern(
    r"\bI(?:'ve|\s+have)?\s+(?:just\s+|already\s+)?(?:ran|typed|tried|entered)\s+(?!to\b)[^,.?!\n]{0,120}?"
    r"(?=\s(?:and|but|then|it|on|which)\b|[,.?!\n]\s|[.?!]?$)"
)
_COMMAND_FAILED = _pattern(
    rf"(?:^\W{{0,5}}|(?<=; )){CHANGERS}"
    r"(?:\s(?!(?:my|all|it|this|that|because|and|for|me)\b)[^\s,;|&]+){0,5}?"
    r"\s(?=(?:says?|said|fails?|failed|complains|hangs|(?:do|did|does|is|was)(?:n't|\snot))\b)",
    re.MULTILINE,
)
_DO_IT = _pattern(
    r"\b(?:do|run|execute|repeat)\s+(?:this|these|that|it|them|so)\s+for\s+me\b"
    r"|\bplease\s+(?:do|run)\s+(?:this|these|that|it|them)\b"
)
_PATH = re.compile(r"[/~.$]\S*")
_QUOTED = re.compile(r"(`{1,3})(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
# What stands before a quoted command that is to be looked up or run, and before one that is only told of.
_VALUE_FOLLOWS = _pattern(rf"\b{KIND}[\s\"':]*$")
_ASKS_TO_RUN = _pattern(
    r"\b(?:run|execute|call|issue|do|use|try|perform|start|launch|type|look\s+up|show|please|then)"
    r"(?:\s+(?:the\s+)?(?:following|command|line))*[\s\"':]*$"
)
_TELLS_OF_IT = _pattern(
    r"(?:\b(?:how|when|if|after|why|what)\b|\b(?:I|we)(?:\s+\w+)?(?=\s(?:run|execute|call|do|use|try|start|type)))"
    r"[^`.?!\n]*$"
)

# -- what is refused -------------------------------------------------------------------------------------

_REQUEST = _pattern(
    r"\b(?:(?:can|could|would|will|can't|couldn't|won't)\s+(?:you|u|hyce|the\s+assistant)"
    r"|you\s+(?:could|would|might)|i\s+(?:want|need|would\s+like|order|ask|command)\s+(?:you|hyce)\s+to|i'd\s+like\s+you\s+to"
    r"|please|pls|plz|kindly|go\s+ahead\s+and|you\s+(?:should|must|have\s+to|need\s+to|may|can)"
    r"|make\s+sure\s+(?:to|you)|don't\s+forget\s+to|be\s+so\s+kind\s+(?:as\s+)?(?:to|and))\s*,?\s*"
    + SOFT
    + ORDER
    + r"|\bwould\s+you\s+mind\s+(?:cancel|kill|delet|remov|submit|hold|releas|stopp|chang|extend|rais|mov"
    r"|restart)\w*ing\b"
)
_IMPERATIVE = _pattern(
    LEAD + SOFT + rf"(?:{ORDER}"
    # Orders whose object may be any name: "install numpy for us", "add xy123 to our group".
    r"|(?:(?:pip|conda|mamba|spack)\s+)?(?:un)?install\s+\S+\s+(?:\S+\s+)?(?:(?:for|in|into|on)\s+"
    r"(?:me|us|my|our|all|every\w+|the)|please|now)\b"
    r"|restart\s+(?:the\s+)?\w+(?:d|service|daemon|server)\b"
    r"|add\s+[\w.-]+\s+to\b|remove\s+[\w.-]+\s+from\b|(?:un)?load\s+the\s+module\b"
    r"|module\s+(?:purge|load|unload|swap)\b[^?]*\b(?:now|then|for\s+me)\b)"
)
_FURTHER_ORDER = _pattern(r"(?:,|\band\b|\bthen\b)\s*" + SOFT + ORDER)
_WISH = _pattern(
    r"\bi(?:'d|\s+would)?\s+(?:like|want|need)\s+(?:to\s+have\s+)?(?!to\b)(?:[\w'./#\[\]-]+\s+){1,6}(?:to\s+be\s+)?"
    rf"{DONE}\b"
    r"|\b(?:cancel|kill|delete|hold|release|requeue|resubmit|terminate|stop)\s+(?:\S+\s+){1,6}for\s+me\b"
    r"|\b(?:run|execute|call|issue|do|type|use|try)\s+[`'\"]?"
    r"(?:scancel|qdel|qsub|sbatch|qalter|qhold|qrls|qmove|chmod|chown|rm|mv|mkdir)\b"
    r"|\bscontrol\s+(?:update|hold|release|requeue|suspend|resume|reboot|create|delete)\b"
    rf"|\bget\s+(?:\S+\s+){{1,5}}{DONE}\s+(?:for\s+me|please|now)"
)
_SECRETS = _pattern(
    r"/etc/(?:shadow|gshadow|sudoers|munge|passwd-|ssl/private)|\bmunge\.key\b"
    r"|\bid_(?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub)"
    r"|\.(?:netrc|pgpass|my\.cnf|aws/credentials|git-credentials|ssh/(?!config|known|authorized))"
    r"|\b(?:show|print|cat|read|display|dump|reveal|tell|give|send|list|get|copy|view|see|open|find|fetch|output|echo"
    r"|what(?:'s|\s+is|\s+are))\b[^.?!]{0,60}\b(?:passw(?:or)?ds?|passphrases?|private\s+keys?|ssh\s+keys"
    r"|api[\s_-]?keys?|access\s+tokens?|tokens|credentials?|secrets?|secret\s+keys?|\w*_API_KEY|SLURM_JWT)\b"
    r"(?!\s+(?:polic(?:y|ies)|rules?|requirements?|reset|limits?|expir\w+|length|format|manager))"
)
_OTHERS = _pattern(
    rf"\b{PERSON}(?:'s|s'|')\s+(?:\w+\s+){{0,2}}?{BELONGINGS}\b|\b{PERSON}\s+{BELONGINGS}\b"
    rf"|\b{BELONGINGS}\s+(?:\w+\s+)?(?:of|from|belonging\s+to|owned\s+by|submitted\s+by|by|for)\s+{PERSON}\b"
    r"|\b(?:show|list|print|read|see|what|which|display|look|give|cat|check)\b[^.?!]{0,60}?"
    rf"\b(?!{NOBODY}'s)[a-z]\w+'s\s+(?:\w+\s+)?{BELONGINGS}\b"
    r"|\b(?:squeue|qstat|sacct|ps|sshare|sprio|quota)\s+(?:-\w\s+)*(?:-u|--user)[= ]\s*"
    r"(?!me\b|\$USER\b|<|my)[a-z]\w+"
    r"|\b(?:what|which)\s+(?:jobs\s+|programs\s+|commands\s+)?(?:is|are|does|has|have|did)\s+(?:the\s+)?"
    rf"user\s+(?!{USER_WORD}s?\b)\w+"
    rf"|\bwhat\s+is\s+(?:my\s+{RELATION}|everyone|everybody)\s+(?:\w+\s+)?(?:running|computing|doing)\b"
    # A person by the name alone: "what is alice running", "which groups does xy123 belong to".
    rf"|\bwhat(?:\s+jobs?)?\s+(?:is|does|has)\s+{NAME}\s+(?:running|run|submitted|computing|up\s+to)\b"
    rf"|\b{BELONGINGS}\s+(?:does|has|did)\s+(?:user\s+)?(?:{PERSON}|{NAME})\s+(?:\w+\s+)?"
    r"(?:have|own|belong|run|submit(?:ted)?|use[ds]?|got|left)\b"
    rf"|\b(?:{BELONGINGS}|left|used|free)\s+(?:for|of|by|is|has|does)\s+(?:the\s+)?user\s+(?!{USER_WORD}s?\b){NAME}"
    r"|(?<![\w.])~[a-z]\w+"
    r"|\b(?:ls|cat|list|show|read|open|in|into|inside|at|under)\s+(?:\w+\s+){0,3}/(?:home|root|users?)/?[\w.-]*"
    r"|(?:^|\b(?:show|tell|see|list|find\s+out|know|check)\b[^.?!]{0,20})\bwho\s+(?:else\s+)?(?:is\s+)?"
    r"(?:using|running|submitted|hogging|uses|runs|occup)"
    rf"|\b(?:his|her)\s+(?:\w+\s+)?(?:~|{BELONGINGS})"
    r"|\btheir\s+(?:\w+\s+)?(?:~|home|files|folders?|data|scripts?|history)\b"
)
_SHELL = _pattern(
    # Substitution, lists, redirection.
    r"\$\(|\$\{|<\(|>\(|&&|\|\||:\(\)\s*\{|(?<![=>])>>\s*\S|/dev/tcp|\x00|(?<![-=<\w])>\s*[~/.$][\w~/.$-]*"
    # A second command behind ; | & or on a line of its own.
    rf"|[;|&\n]\s?(?!{ENGLISH}\s\w){PROGRAM}\b(?:\s+[-/~.$*\w]|\s*$)(?!\s*(?:is|was|are|does|did|has)\b)"
    rf"|[|&]\s?{ENGLISH}\s\w|[;|]\s?{PROGRAM}\s*(?:$|[;|&?.!])"
    # Quoted command lines that are to be run, or stand for a value.
    rf"|`[^`\n]*[;|&<>$~*][^`\n]*`|`\s*{PROGRAM}\b[^`\n]*`"
    rf"|\brm\s+-\w|(?:{LEAD}|\b(?:run|please(?:\s+use)?)\s+)sudo\s+\w|\bcurl\s+\S*:"
    # Options, paths upwards and shell characters in place of a value.
    rf"|\b{KIND}\s+[\"']?\S{{0,40}}\.\./|\.\./(?:\S*/)?(?:etc|root|home)\b"
    rf"|(?<!what\sdoes\s)\b{KIND}\s+(?:called\s+|named\s+|id\s+|number\s+)?[\"']?-{{1,2}}[a-z]"
    r"|\b(?:job|node|host|queue|partition|module)\s+[\"']?[\w.]+[;|&$`<>]\s*\S"
)
_RULES = any_of(
    "instructions? rules? guidelines? restrictions? prompts? polic(?:y|ies) safety safeguards? limitations"
    " filters? checks allow-?list guardrails?"
)
_ORDERS = _pattern(
    rf"\b(?:ignore|disregard|forget|override|bypass|skip|drop|violate|break)\s+(?:\w+\s+){{0,3}}{_RULES}\b"
    r"|\b(?:system|developer|initial|hidden)\s+(?:prompt|instructions?)\b|\b(?:your|hidden)\s+system\s+message\b"
    r"|\b(?:jailbreak|(?:dan|developer|god|admin)\s+mode)\b"
    r"|\byou\s+are\s+(?:now|no\s+longer)\s+|\bfrom\s+now\s+on,?\s+you\b|\bpretend\s+(?:to\s+be|that|you)"
    r"|\bact\s+as\s+(?:root|admin|an?\b|the\b|if\b)|\bnew\s+instructions?\b"
    r"|\bwithout\s+(?:any\s+)?(?:restrictions?|asking(?!\s+for)|confirmation|checks?|limits\s+or)\b"
    r"|\b(?:to|dear|attention|note\s+for)\s+(?:the\s+|all\s+)?(?:ai\s+)?"
    r"(?:assistants?|ai|bots?|llms?|chatbots?|language\s+models?)\b"
    r"|\b(?:before|instead\s+of|when)\s+(?:replying|answering|responding)\b"
    r"|^\s?(?:system|assistant|developer)\s*:|<\|im_|\[/?INST\]|<<SYS>>|</?(?:system|assistant)>"
    r"|\byour\s+(?:rules|instructions|restrictions|guidelines)\b",
    re.MULTILINE,
)
_RUN_TEXT = _pattern(
    r"(?<!\bI\s)(?<!\bwe\s)(?<!\bnot\s)(?<!n't\s)(?<!cannot\s)\b(?:run|execute|perform)\s+"
    r"(?:(?:the|this|these|following|any|exactly|my|some|a|arbitrary)\s+)*(?:shell\s+|bash\s+)*"
    r"(?:commands?|code|payload|oneliner)\b(?!\s+(?:line\s+)?tool)"
)
_AS_ROOT = _pattern(r"\bas\s+(?:root|admin(?:istrator)?|superuser)\b")
