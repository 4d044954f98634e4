"""The words by which refuse.py knows orders, people and programs, as patterns."""

from __future__ import annotations


def any_of(words: str) -> str:
    """One of the words, as a pattern; `_` stands for a blank within one."""
    return "(?:" + "|".join(word.replace("_", r"\s+") for word in words.split()) + ")"


# Verbs that change something, as orders.
CHANGING_VERBS = any_of(
    r"""
    cancel kill terminate abort stop end delete remove erase wipe purge rm clear clean_up empty submit
    resubmit re-?submit launch start restart rerun re-?run requeue re-?queue hold release suspend resume
    pause unhold change modify alter edit rewrite overwrite increase extend prolong lengthen raise bump
    boost double lower reduce shorten set reset update adjust move copy rename transfer upload chmod chown
    chgrp reboot shut_down power_off drain undrain create make mkdir touch
    (?:un)?install(?!\s+(?:folder|dir|path|location|prefix)) grant revoke add scancel qdel qsub sbatch
    qalter qhold qrls qmove run execute put take kick throw drop get_rid_of free_up reserve book allocate
    send e-?mail mail post publish share append unlock lock disable enable replace swap give let push skip
    bring
    """
)
# What is changed: without one of these behind it, a verb is no order ("stop.", "end time").
CHANGED_THINGS = (
    r"(?:(?:up|down|off|away|out)\s+)?(?:"
    + any_of(
        r"""
        all both every each any these those this that the my our its his her their some a an one two three
        another old everything it them me us whatever user jobs? array tasks? files? folders?
        director(?:y|ies) nodes? script walltime partition queue quota priority
        """
    )
    + r"\b|#?\d{2,}|[a-z]+-?\d{2,}|[~/.$*]\S|\S+\.(?:sh|sbatch|slurm|pbs|py|job|sub|txt)\b|-\w)"
)
TOLD = any_of(
    r"""
    list overview table summary details? info\w* status output report breakdown idea hint look numbers?
    rundown picture sure sense know see everything limits? facts reasons? estimate eta names? versions?
    contents? specs? help example tip advice template
    """
)
# "Give me an overview", "run squeue", "start time": the same verbs, for mere looking.
HARMLESS = (
    r"(?!run\s+(?:a\s+(?:quick\s+)?)?"
    r"(?:squeue|qstat|sinfo|sacct|sshare|sprio|seff|quota|df|du|id|date|module|check|query|search)\b)"
    r"(?!(?:make|create|give|send|write|put|get|bring|take|let)\s+(?:me|us|it)?\s*(?:a|an|the|some|my|all)?\s*"
    rf"(?:(?:short|quick|full|complete|brief)\s+)?{TOLD}\b)"
    r"(?!(?:give|let|bring|take|get|send|put|make|drop|throw)\s+(?:me|us)\s+"
    r"(?!(?:more|another|access|extra|higher|a\s+(?:higher|larger|bigger)|root|sudo|permission|first|priority)\b))"
    r"(?!(?:update|changes?|start|end|release|copy)\s+(?:on|about|of|for|date|time)\b)"
    r"(?!(?:update|stop)\s+(?:me|us)\b)(?!add\s+up\b)(?!bring\s+up\s+(?:my|those|all\s+my|a\s+list)\b)"
    # "Take job 4711: what did it use?"
    r"(?!take\s+(?:job\s+)?#?\d[\w.\[\]]*\s?[:,.])"
    r"(?!hold\s+on\b)(?!empty\s+nodes?\b)(?!(?:take|start|stop)\s+(?:a|one)\s+(?:look|moment|guess|bit)\b)"
)
ORDER = (
    rf"{HARMLESS}{CHANGING_VERBS}(?:\s+(?:also|now|then|immediately|quickly|just|please))?\s+{CHANGED_THINGS}"
)
LEAD = (
    r"^\W{0,20}(?:(?:hi|hello|hey|dear\s+\w+|ok(?:ay)?|so|now|then|and|also|well|thanks|hyce|assistant|bot)\b"
    r"[\s,:!]{0,5}){0,4}"
)
POLITE = any_of(
    "please pls plz kindly just also quickly now then go_ahead_and simply maybe perhaps possibly immediately"
    " first go"
)
SOFT = rf"(?:{POLITE}\b[\s,]{{0,3}}){{0,4}}"
DONE = any_of(
    r"""
    cancell?ed killed deleted removed erased stopped held released requeued resubmitted submitted extended
    raised increased changed moved renamed wiped gone restarted installed terminated
    """
)
# Command lines that change something, as people paste them.
CHANGERS = any_of(
    "scancel qdel qsub sbatch srun qalter qhold qrls qmove chmod chown chgrp rm mv cp mkdir kill sudo touch"
)
PROGRAM_WORDS = "kill mail history date at find more less sort head tail sleep yes true false id env"
"""Programs whose names are English words as well."""
ENGLISH = any_of(PROGRAM_WORDS)
PROGRAM = any_of(
    PROGRAM_WORDS
    + """
    rm cat curl wget ba?sh sh ls scancel qdel touch echo sudo su chmod chown mv cp dd nc ncat xargs tee
    reboot shutdown whoami python3? perl eval exec mkfs printenv sbatch qsub grep awk sed wc ping ssh scp
    passwd crontab uname hostname squeue sinfo scontrol ps
    """
)
# What a parameter's value stands behind.
KIND = any_of("jobs? node host queue partition module user mount reservation id name")
PERSON_NOUN = any_of("user person student member researcher")
RELATION = any_of(
    r"""
    colleagues? supervisor boss advisor professor prof pi friend coworker co-?worker labmate lab_mate
    student postdoc flatmate predecessor rival neighbou?r teammate partner wife husband girlfriend boyfriend
    competitors?
    """
)
USER_WORD = any_of("name namespaces? account group guide id limit quota")
"""What "user" stands before without meaning a person: the user name, a user namespace."""
PERSON = (
    r"(?:someone(?:\s+else)?|somebody(?:\s+else)?|other\s+(?:people|users?|members?)"
    rf"|(?:another|the\s+other|any\s+other|each|every|the|a)\s+{PERSON_NOUN}s?"
    rf"|(?:my|our|his|her|their)\s+(?:\w+\s+)?{RELATION}|all\s+(?:other\s+)?users"
    r"|(?:everyone|everybody|anyone)\s+else|every(?:one|body)(?=')|colleagues|root"
    rf"|user\s+(?!{USER_WORD}s?\b)(?!(?:can|may|has|is|of|in|on|with|at|to|and|or|for|per|from)\b)[a-z][\w-]+)"
)
BELONGINGS = any_of(
    r"""
    jobs? files? scripts? director(?:y|ies) folders? home scratch data e?-?mails? processes quota results?
    outputs? history programs? commands? logs? runs? queue space usage allocation fair-?share priority
    simulations? calculations? code notebooks? account groups?
    """
)
_NO_NAME = any_of(
    """
    i we you me us my our your the a an this that these those each every any no one all some most both it
    they he she there jobs? slurm pbs node queue partition cluster system machine gpu account group project
    user module quota program still now currently everyone everybody already normally usually typically
    """
)
NAME = rf"(?!{_NO_NAME}\b)[a-z][a-z0-9_-]+"
"""A word that may be somebody's login name."""
# "Yesterday's job" is nobody's.
NOBODY = any_of(
    """
    it that what who there here let he she today yesterday tomorrow week month year night monday friday
    weekend day cluster machine node job queue partition system slurm pbs group project team account lab
    module site home how where morning summer folder directory everything login centre center institute
    """
)
