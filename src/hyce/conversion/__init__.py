"""How model files get here: fetched, converted to our graphs, checked against the original, put into place.

`hyce models pull` and `hyce models convert`; nothing that answers a question imports it.
"""
