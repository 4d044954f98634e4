"""What the letters of PBS mean."""

from __future__ import annotations

JOB_STATES = {
    "B": "array job with tasks that have begun",
    "E": "exiting, it has ended and is being cleaned up",
    "F": "finished",
    "H": "held, it waits until its hold is released",
    "M": "moved to another server",
    "Q": "queued, it waits until the scheduler starts it",
    "R": "running",
    "S": "suspended",
    "T": "in transit to another queue or server",
    "U": "suspended because its workstation is in use",
    "W": "waiting for the start time that was asked for, or for its files",
    "X": "task of an array that has ended",
}

HOLDS = {"u": "by its user", "o": "by an operator", "s": "by the system", "p": "for a bad password"}


def job_state(letter: str) -> str:
    """The letter with its meaning."""
    return f"{letter}: {JOB_STATES[letter]}" if letter in JOB_STATES else letter
