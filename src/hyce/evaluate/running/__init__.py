"""Variants of the settings x questions -> answers with verdicts: `hyce evaluate run`."""
