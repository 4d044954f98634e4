"""HTML -> sections: the page's own text, in blocks that stay together. Used by parse.py."""
