# mypy: disable-error-code="import-not-found"
"""A search with sentence-transformers, torch and faiss, for cold_start.py. Runs in that stack's own Python.

stack_search.py FOLDER MODEL-FOLDER QUESTION: reads FOLDER/passages.json and FOLDER/vectors.faiss. With
--prepare for the question it writes the latter from FOLDER/vectors.npy, and says which versions it has.
"""

import json
import sys
from pathlib import Path

import faiss
import numpy as np
import sentence_transformers
import torch

folder, model_folder, question = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
index_file = str(folder / "vectors.faiss")
if question == "--prepare":
    vectors = np.load(folder / "vectors.npy")
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    faiss.write_index(index, index_file)
    packages = {"torch": torch, "sentence-transformers": sentence_transformers, "faiss": faiss}
    print(json.dumps({name: package.__version__ for name, package in packages.items()}))
else:
    passages = json.loads((folder / "passages.json").read_text(encoding="utf-8"))
    model = sentence_transformers.SentenceTransformer(model_folder, device="cpu")
    scores, found = faiss.read_index(index_file).search(model.encode([question]), 6)
    for rank, (score, best) in enumerate(zip(scores[0], found[0], strict=True), 1):
        print(rank, float(score), passages[best])
