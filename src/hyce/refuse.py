"""Questions for which nothing may run, whatever they resemble: hyce reads, and reads only for its user.

The rules look at one sentence at a time. An order ("cancel 123", "could you delete ...") is refused; a
question about the same thing ("how do I cancel a job?", "was it cancelled?") is one for the documentation.
They only spare the user a wrong answer: that nothing but catalogue entries runs, with checked parameters,
doesn't depend on them.
"""

from __future__ import annotations

import re

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
    if _SHELL.search(question):
        return SHELL
    if _ORDERS.search(question):
        return ORDERS
    for sentence in _SENTENCE.split(question):
        asks_how = bool(_ASKS_HOW.search(sentence))
        if not asks_how and _SECRETS.search(sentence):
            return SECRETS
        if not asks_how and _OTHERS.search(sentence):
            return OTHERS
        if _REQUEST.search(sentence) or _IMPERATIVE.search(sentence):
            return EFFECT
        if not asks_how and _WISH.search(sentence):
            return EFFECT
        if not _INFORMATIONAL.search(sentence) and _FURTHER_ORDER.search(sentence):
            return EFFECT
    return None


def _words(text: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    return re.compile(text, flags)


_SENTENCE = re.compile(r"(?<=[.!?;:])\s|\n|\s[-\u2013\u2014]{1,3}\s")

_LEAD = (
    r"^\W*(?:(?:hi|hello|hey|dear\s+\w+|ok(?:ay)?|so|now|then|and|also|well|thanks|hyce|assistant"
    r"|bot)\b[\s,:!]*){0,4}"
)
_ASKS_HOW = _words(
    r"\bhow\s+(?:do|can|could|should|would|to|may|might|must|does)\b|\bwhich\s+command\b"
    r"|\bwhat\s+(?:command|do\s+i)\b"
    r"|\bam\s+i\s+allowed|\bis\s+it\s+(?:possible|allowed|ok)|\b(?:can|could|may|should)\s+(?:i"
    r"|we)\b|\bhow\s+many\b"
)
_INFORMATIONAL = _words(
    _LEAD + r"(?:how|what|why|when|where|which|who|whose|is|are|was|were|did|does|do|has|have|had|"
    r"(?:can|could|may|should|must|shall|will|would)\s+(?!you\b))"
)

# Verbs that change something. Those that are also said of mere looking need an object that shows it.
_EFFECT = (
    r"(?:cancel|kill|terminate|abort|stop|end|delete|remove|erase|wipe|purge|rm|clear|clean\s+up"
    r"|empty|submit|resubmit|"
    r"re-?submit|launch|start|restart|rerun|re-?run|requeue|re-?queue|hold|release|suspend|resume"
    r"|pause|unhold|change|"
    r"modify|alter|edit|rewrite|overwrite|increase|extend|prolong|lengthen|raise|bump|boost|double"
    r"|lower|reduce|shorten|"
    r"set|reset|update|adjust|move|copy|rename|transfer|upload|chmod|chown|chgrp|reboot|shut\s+down"
    r"|power\s+off|drain|"
    r"undrain|create|make|mkdir|touch|(?:un)?install(?!\s+(?:folder|dir|path|location|prefix))|grant"
    r"|revoke|add|scancel|qdel|qsub|sbatch|qalter|qhold|qrls|"
    r"qmove|run|execute|put|take|kick|throw|drop|get\s+rid\s+of|free\s+up|reserve|book|allocate|send"
    r"|e-?mail|mail|post|"
    r"publish|share|append|unlock|lock|disable|enable|replace|swap|give|let|push|skip|bring)"
)
_OBJECT = (
    r"(?:(?:up|down|off|away|out)\s+)?(?:(?:all|both|every|each|any|these|those|this|that|the|my|our"
    r"|its|his|her|their|"
    r"some|a|an|one|two|three|another|old|everything|it|them|me|us|whatever|user|"
    r"jobs?|array|tasks?|files?|folders?|director(?:y|ies)|nodes?|script|walltime|partition|queue"
    r"|quota|priority)\b"
    r"|#?\d{2,}|[a-z]+-?\d{2,}|[~/.$*]\S|\S+\.(?:sh|sbatch|slurm|pbs|py|job|sub|txt)\b|-\w)"
)
_HARMLESS = (
    r"(?!run\s+(?:a\s+)?(?:squeue|qstat|sinfo|sacct|sshare|sprio|seff|quota|df|du|id|date|module)\b)"
    r"(?!(?:make|give|send|write|put|get|bring|take|let)\s+(?:me|us|it)?\s*(?:a|an|the|some|my|all)?\s*"
    r"(?:short\s+|quick\s+|full\s+|complete\s+|brief\s+)?"
    r"(?:list|overview|table|summary|details?|info\w*|status|output|report|breakdown|idea|hint|look|numbers?|"
    r"rundown|picture|sure|sense|know|see|everything|limits?|facts|reason|reasons|estimate|eta"
    r"|names?|versions?|"
    r"contents?|specs?|help)\b)"
    r"(?!(?:give|let|bring|take|get|send|put|make)\s+(?:me|us)\s+(?!(?:more|another|access|extra"
    r"|higher|a\s+(?:higher|larger|bigger)|root|sudo|permission|first|priority)\b))"
    r"(?!(?:update|changes?|start|end|release|copy)\s+(?:on|about|of|for|date|time)\b)"
    r"(?!(?:take|start|stop)\s+(?:a|one)\s+(?:look|moment|guess|bit)\b)"
)
_ORDER = _HARMLESS + _EFFECT + r"(?:\s+(?:also|now|then|immediately|quickly|just|please))?\s+" + _OBJECT
_SOFT = (
    r"(?:(?:please|pls|plz|kindly|just|also|quickly|now|then|go\s+ahead\s+and|simply|maybe|perhaps"
    r"|possibly|immediately|first|go)\b[\s,]{0,3}){0,4}"
)
_REQUEST = _words(
    r"\b(?:(?:can|could|would|will|can't|couldn't|won't)\s+(?:you|u|hyce|the\s+assistant|someone"
    r"|somebody|anyone)"
    r"|i\s+(?:want|need|would\s+like|order|ask|command)\s+(?:you|hyce)\s+to|i'd\s+like\s+you\s+to"
    r"|please|pls|plz|kindly"
    r"|go\s+ahead\s+and|you\s+(?:should|must|have\s+to|need\s+to|may|can)|make\s+sure\s+(?:to|you)"
    r"|don't\s+forget\s+to"
    r"|be\s+so\s+kind\s+(?:as\s+)?(?:to|and))\s*,?\s*"
    + _SOFT
    + _ORDER
    + r"|\bwould\s+you\s+mind\s+(?:cancel|kill|delet|remov|submit|hold|releas|stopp|chang|extend|rais"
    r"|mov|restart)\w*ing\b"
)
_IMPERATIVE = _words(_LEAD + _SOFT + _ORDER)
_FURTHER_ORDER = _words(r"(?:,|\band\b|\bthen\b)\s*" + _SOFT + _ORDER)
_DONE = (
    r"(?:cancell?ed|killed|deleted|removed|erased|stopped|held|released|requeued|resubmitted"
    r"|submitted|extended|"
    r"raised|increased|changed|moved|renamed|wiped|gone|restarted|installed|terminated)"
)
_WISH = _words(
    rf"\bi(?:'d|\s+would)?\s+(?:like|want"
    rf"|need)\s+(?:to\s+have\s+)?(?!to\b)(?:[\w'./#\[\]-]+\s+){{1,6}}(?:to\s+be\s+)?{_DONE}\b"
    r"|\b(?:cancel|kill|delete|hold|release|requeue|resubmit|terminate|stop)\s+(?:\S+\s+){1,6}for\s+me\b"
    r"|\b(?:run|execute|call|issue|do|type|use|try)\s+[`'\"]?(?:scancel|qdel|qsub|sbatch|qalter"
    r"|qhold|qrls|qmove|chmod|chown|rm|mv|mkdir)\b"
    r"|\bscontrol\s+(?:update|hold|release|requeue|suspend|resume|reboot|create|delete)\b"
    rf"|\bget\s+(?:\S+\s+){{1,5}}{_DONE}\s+(?:for\s+me|please|now)"
)

_SECRETS = _words(
    r"/etc/(?:shadow|gshadow|sudoers|munge|passwd-|ssl/private)|\bmunge\.key\b|\bid_(?:rsa|ed25519"
    r"|ecdsa|dsa)\b(?!\.pub)"
    r"|\.(?:netrc|pgpass|my\.cnf|aws/credentials|git-credentials|ssh/(?!config|known|authorized))"
    r"|\b(?:show|print|cat|read|display|dump|reveal|tell|give|send|list|get|copy|view|see|open"
    r"|what(?:'s|\s+is|\s+are)|find|fetch|output|echo)"
    r"\b[^.?!]{0,60}\b(?:passw(?:or)?ds?|passphrases?|private\s+keys?|ssh\s+keys|api[\s_-]?keys?"
    r"|access\s+tokens?|tokens|"
    r"credentials?|secrets?|secret\s+keys?|\w*_API_KEY|SLURM_JWT)\b(?!\s+(?:policy|rules?"
    r"|requirements?|reset))"
)

_PERSON = (
    r"(?:another|other|someone|somebody|someone\s+else|somebody\s+else|other\s+(?:people|users?"
    r"|members?)|(?:another|the\s+other|any\s+other|each|every|the|a)\s+"
    r"(?:user|person|student|member|researcher)|(?:my|our|his|her|their)\s+(?:\w+\s+)?(?:colleagues?"
    r"|supervisor|boss|advisor|professor|prof|pi|friend|coworker|"
    r"co-?worker|labmate|lab\s+mate|student|postdoc|flatmate|predecessor|rival|neighbou?r|teammate"
    r"|partner|wife|husband|girlfriend|boyfriend|competitors?)|all\s+(?:other\s+)?users"
    r"|everyone\s+else|everybody\s+else|anyone\s+else|everybody's|everyone's|"
    r"colleagues|root|user\s+(?!(?:name|account|group|guide|id|limit|can|may|has|is|of|in|on|with|at"
    r"|to|and|or|for|per|from)\b)[a-z][\w-]+)"
)
_BELONGINGS = (
    r"(?:jobs?|files?|scripts?|director(?:y|ies)|folders?|home|scratch|data|e?-?mails?|processes"
    r"|quota|results?|outputs?|history|"
    r"programs?|commands?|logs?|runs?|queue|space|usage|allocation|fair-?share|priority|simulations?"
    r"|calculations?|code|notebooks?|account)"
)
_OTHERS = _words(
    rf"\b{_PERSON}(?:'s|s'|')?\s+(?:\w+\s+){{0,2}}?{_BELONGINGS}\b(?<!\bother\sjobs)(?<!\bother\sfiles)"
    rf"(?<!another\s\bjob)(?<!other\sjob)(?<!another\squeue)(?<!other\squeue)(?<!another\sfolder)(?<!other\sfolder"
    rf")"
    rf"|\b{_BELONGINGS}\s+(?:\w+\s+)?(?:of|from|belonging\s+to|owned\s+by|submitted\s+by|by"
    rf"|for)\s+{_PERSON}\b"
    rf"|\b(?:show|list|print|read|see|what|which|display|look|give|cat"
    rf"|check)\b[^.?!]{{0,60}}?\b(?!(?:it|that|what|who|there|here|let|he|she|today|yesterday"
    rf"|tomorrow|week|month|"
    r"year|night|monday|friday|weekend|day|cluster|machine|node|job|queue|partition|system|slurm|pbs"
    r"|group|project|team|account|lab|module|"
    rf"site|home|how|where|morning|summer|folder|directory|everything|login|centre|center"
    rf"|institute)'s)[a-z]\w+'s\s+(?:\w+\s+)?{_BELONGINGS}\b"
    r"|\b(?:squeue|qstat|sacct|ps|sshare|sprio|quota)\s+(?:-\w\s+)*(?:-u|--user)[= ]\s*(?!me\b"
    r"|\$USER\b|<|my)[a-z]\w+"
    r"|\b(?:what|which)\s+(?:jobs\s+|programs\s+|commands\s+)?(?:is|are|does|has|have"
    r"|did)\s+(?:the\s+)?user\s+\w+|\bwhat\s+is\s+(?:my\s+\w+|everyone"
    r"|everybody)\s+(?:\w+\s+)?(?:running|computing|doing)\b"
    r"|(?<![\w.])~[a-z]\w+|\b(?:ls|cat|list|show|read|open|in|into|inside|at"
    r"|under)\s+(?:\w+\s+){0,3}/(?:home|root|users?)/?[\w.-]*"
    r"|(?:^|\b(?:show|tell|see|list|find\s+out|know"
    r"|check)\b[^.?!]{0,20})\bwho\s+(?:else\s+)?(?:is\s+)?(?:using|running|submitted|hogging|uses"
    r"|runs|occup)"
    r"|\b(?:his|her)\s+(?:\w+\s+)?(?:~|"
    + _BELONGINGS[3:-1]
    + r")|\btheir\s+(?:\w+\s+)?(?:~|home|files|folders?|data|scripts?|history)\b"
)

_PROGRAM = (
    r"(?:rm|cat|curl|wget|ba?sh|sh|ls|scancel|qdel|touch|echo|sudo|su|chmod|chown|mv|cp|dd|nc|ncat"
    r"|xargs|tee|mail|reboot|shutdown|"
    r"id|whoami|python3?|perl|eval|exec|kill|mkfs|env|printenv|sbatch|qsub|grep|awk|sed|sort|wc|head"
    r"|tail|less|more|sleep|yes|find|"
    r"ping|ssh|scp|passwd|crontab|at|history|date|uname|hostname|squeue|sinfo|scontrol|ps|true|false)"
)
_SHELL = _words(
    r"\$\(|\$\{|<\(|>\(|&&|\|\||:\(\)\s*\{|>>\s*\S|/dev/tcp|\x00"
    rf"|[;|&\n]\s*{_PROGRAM}\b(?:\s+[-/~.$*\w]|\s*$)(?!\s*(?:is|was|are|does|did|has)\b)"
    rf"|[;|]\s*{_PROGRAM}\s*(?:$|[;|&?.!])"
    rf"|\b(?:jobs?|node|host|queue|partition|module|user|mount|reservation|id|name)\s+[\"']?`"
    rf"|`[^`\n]*(?:[;|&<>$~*]|\b(?:rm|curl|wget|cat|reboot|whoami|id|sudo|sh|bash|touch|kill|echo"
    rf"|env)\b)[^`\n]*`"
    r"|(?<![-=<\w])>\s*[~/.$][\w~/.$-]*|\brm\s+-\w|\bsudo\s+\w|\bcurl\s+\S*:|(?:^|[\s/\"'=])\.\./"
    r"|/\.\.(?:/|\b|$)"
    r"|\b(?:job|jobs|node|host|queue|partition|module|user)\s+(?:called\s+|named\s+|id\s+"
    r"|number\s+)?[\"']?-{1,2}[a-z]"
    r"|\b(?:job|node|host|queue|partition|module)\s+[\"']?[\w.]+[;|&$`<>]\s*\S"
)

_ORDERS = _words(
    r"\b(?:ignore|disregard|forget|override|bypass|skip|drop|violate|break)\s+(?:\w+\s+){0,3}"
    r"(?:instructions?|rules?|guidelines?|restrictions?|prompts?|polic(?:y|ies)|safety|safeguards?"
    r"|limitations|filters?|checks|allow-?list|guardrails?)\b"
    r"|\b(?:system|developer|initial|hidden)\s+(?:prompt|message|instructions?)\b|\b(?:jailbreak"
    r"|dan\s+mode|developer\s+mode|god\s+mode|admin\s+mode)\b"
    r"|\byou\s+are\s+(?:now|no\s+longer)\s+|\bfrom\s+now\s+on,?\s+you\b|\bpretend\s+(?:to\s+be|that"
    r"|you)|\bact\s+as\s+(?:root|admin|an?\b|the\b|if\b)"
    r"|\bnew\s+instructions?\b|\b(?:run|execute|perform)\s+(?:the\s+|this\s+|these\s+|following\s+"
    r"|any\s+|exactly\s+|my\s+|some\s+|a\s+|arbitrary\s+)*(?:shell\s+|bash\s+)*(?:commands?|code"
    r"|payload|oneliner)\b(?!\s+(?:line\s+)?tool)"
    r"|\bas\s+(?:root|admin(?:istrator)?|superuser)\b|\bwithout\s+(?:any\s+)?(?:restrictions?|asking"
    r"|confirmation|checks?|limits\s+or)\b"
    r"|\b(?:to|dear|attention|note\s+for)\s+(?:the\s+|all\s+)?(?:ai\s+)?(?:assistants?|ai|bots?"
    r"|llms?|chatbots?|language\s+models?)\b"
    r"|\b(?:before|instead\s+of|when)\s+(?:replying|answering|responding)\b"
    r"|^\s*(?:system|assistant|developer)\s*:|<\|im_|\[/?INST\]|<<SYS>>|</?(?:system|assistant)>|\byour\s+(?:rules|instructions|restrictions|guidelines)\b",
    re.IGNORECASE | re.MULTILINE,
)
