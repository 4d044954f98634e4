"""Passages and commands -> questions with reference answers, filtered: `hyce evaluate generate`."""
