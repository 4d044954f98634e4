"""The least that a search by meaning takes: numpy, onnxruntime and tokenizers by hand, for cold_start.py.

floor_search.py FOLDER QUESTION: reads FOLDER/vectors.npy and FOLDER/passages.json, and the model's graph and
tokenizer by their names in FOLDER/model.json. No words, no fusing, no late interaction, no checks.
"""

import json
import sys

import numpy as np
import onnxruntime as ort
from tokenizers import Tokenizer

folder, question = sys.argv[1:]
with open(f"{folder}/model.json", encoding="utf-8") as stream:  # noqa: PTH123  (pathlib is an import more)
    model = json.load(stream)
with open(f"{folder}/passages.json", encoding="utf-8") as stream:  # noqa: PTH123
    passages = json.load(stream)
options = ort.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
session = ort.InferenceSession(model["graph"], options, providers=["CPUExecutionProvider"])
tokenizer = Tokenizer.from_file(model["tokenizer"])
tokenizer.no_padding()
ids = np.array([tokenizer.encode(question).ids], np.int32)
(vector,) = session.run(["vector"], {"ids": ids})
scores = np.load(f"{folder}/vectors.npy") @ vector[0]
for rank, best in enumerate(np.argsort(-scores)[:6], 1):
    print(rank, float(scores[best]), passages[best])
