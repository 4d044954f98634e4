# mypy: disable-error-code="import-not-found"
"""Writes minilm.json: what sentence-transformers says of a few texts.

Run with a Python that has sentence-transformers and torch: make_minilm.py FOLDER, the folder being that of
all-MiniLM-L6-v2 as sentence-transformers saves it.
"""

import json
import sys
from pathlib import Path

from sentence_transformers import SentenceTransformer

TEXTS = [
    "How do I see my running jobs?",
    "squeue --me lists the jobs of the user who calls it, with their state and the reason why they wait.",
    "Files in scratch are removed 60 days after they were last used.",
    "Die Warteschlange für GPU-Knoten heißt »gpu«; naïve façade, 東京.",
    "#!/bin/bash\n#SBATCH --time=01:00:00\n#SBATCH --mem=4G\nsrun ./solver < input.nml",
    "",
    "memory " * 400,
]

model = SentenceTransformer(sys.argv[1], device="cpu")
vectors = model.encode(TEXTS, batch_size=1, normalize_embeddings=True)
golden = {
    "made_with": "sentence-transformers/all-MiniLM-L6-v2, sentence-transformers, fp32",
    "texts": TEXTS,
    "first": [[round(float(value), 7) for value in vector[:8]] for vector in vectors],
    "cosines": [[round(float(value), 6) for value in row] for row in vectors @ vectors.T],
}
text = json.dumps(golden, indent=1, ensure_ascii=False) + "\n"
(Path(__file__).parent / "minilm.json").write_text(text, encoding="utf-8")
