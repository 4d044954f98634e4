"""Sphinx configuration of the Osprey guide."""

project = "Osprey user guide"
author = "Kestrel Research Computing"
copyright = "2026, University of Northmoor"

extensions = ["sphinx_design"]

html_baseurl = "https://docs.kestrel.example/osprey/"
html_title = "Osprey user guide"
html_theme = "alabaster"
html_static_path = ["_static"]

exclude_patterns = ["_build", "drafts", "Thumbs.db", ".DS_Store"]

language = "en"
root_doc = "index"
