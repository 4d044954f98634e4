# mypy: disable-error-code="import-not-found"
"""Embeds passages with sentence-transformers on torch, for throughput.py. Runs in that stack's own Python.

stack_embed.py MODEL-FOLDER PASSAGES.json VECTORS.npy: loads the model once, says which versions it has, then
answers each line on stdin with the seconds that one run over all passages took.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import sentence_transformers
import torch

model = sentence_transformers.SentenceTransformer(sys.argv[1], device="cpu")
passages = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
model.encode(passages[:8], show_progress_bar=False)
print(
    json.dumps({"torch": torch.__version__, "sentence-transformers": sentence_transformers.__version__}),
    flush=True,
)
for _ in sys.stdin:
    start = time.perf_counter()
    vectors = model.encode(passages, show_progress_bar=False)
    seconds = time.perf_counter() - start
    np.save(sys.argv[3], vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    print(json.dumps(seconds), flush=True)
