# mypy: disable-error-code="import-not-found"
"""Models with random weights, and what sentence-transformers gives for texts, for cross_encoder.py.

Runs in that stack's own Python:

    stack_models.py make FOLDER MINILM < texts.json    a folder for each of MODELS, MINILM: all-MiniLM-L6-v2;
                                                       prints the versions used
    stack_models.py run MODEL < pairs.json             its vectors or scores as JSON, and the seconds
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import sentence_transformers
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    BertConfig,
    DistilBertConfig,
    ModernBertConfig,
    MPNetConfig,
    PreTrainedTokenizerFast,
    XLMRobertaConfig,
)

SMALL = {"num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
DISTIL = {"n_layers": 3, "dim": 64, "n_heads": 4, "hidden_dim": 128}

MODELS: dict[str, tuple[str, type, dict[str, Any], str]] = {
    "bert-mean": ("mean", BertConfig, SMALL, "wordpiece"),
    "bert-cls": ("cls", BertConfig, SMALL, "wordpiece"),
    "bert-unigram": ("mean", BertConfig, SMALL, "unigram"),
    "bert-cross": ("cross", BertConfig, SMALL, "wordpiece"),
    "xlm-roberta": ("mean", XLMRobertaConfig, SMALL, "unigram"),
    "xlm-roberta-cross": ("cross", XLMRobertaConfig, SMALL, "unigram"),
    "distilbert": ("mean", DistilBertConfig, DISTIL, "wordpiece"),
    "mpnet": ("mean", MPNetConfig, SMALL, "wordpiece"),
    "modernbert": ("cls", ModernBertConfig, SMALL, "bytes"),
    "distilbert-cross": ("cross", DistilBertConfig, DISTIL, "wordpiece"),
}
"""Name: kind or pooling, configuration, sizes, tokenizer."""

SPECIAL = {"cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
BERT = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]"}


def tokenizer(kind: str, texts: list[str]) -> PreTrainedTokenizerFast:
    """A tokenizer trained on the texts, with the special tokens of its family."""
    special = BERT if kind == "wordpiece" else SPECIAL
    words = [special[name] for name in ("pad_token", "unk_token", "cls_token", "sep_token")]
    if kind == "wordpiece":
        made = Tokenizer(models.WordPiece(unk_token=words[1]))
        made.normalizer = normalizers.BertNormalizer()
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer: Any = trainers.WordPieceTrainer(vocab_size=2000, special_tokens=words)
    elif kind == "unigram":
        made = Tokenizer(models.Unigram())
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        made.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=2000, special_tokens=words, unk_token=words[1])
    else:
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(
            vocab_size=2000, special_tokens=words, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
        )
    made.train_from_iterator(texts, trainer)
    first, last = words[2], words[3]
    pair = (
        f"{first} $A {last} $B:1 {last}:1" if kind == "wordpiece" else f"{first} $A {last} {last} $B {last}"
    )
    ids = [(word, made.token_to_id(word)) for word in (first, last)]
    made.post_processor = processors.TemplateProcessing(f"{first} $A {last}", pair, ids)
    names = ["input_ids", *(["token_type_ids"] if kind == "wordpiece" else []), "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=made, model_max_length=128, model_input_names=names, **special
    )


def make(folder: Path, minilm: str, texts: list[str]) -> None:
    """A folder for each of MODELS, as sentence-transformers saves it, and one with real weights.

    That is a cross-encoder of all-MiniLM-L6-v2's layers and a random classifier: as fast as a trained one,
    and int8 meets values such as training makes.
    """
    torch.manual_seed(0)
    real = CrossEncoder(minilm, num_labels=1, device="cpu")
    torch.nn.init.normal_(real.model.classifier.weight, std=0.3)
    real.save_pretrained(str(folder / "minilm-cross"))
    for name, (kind, configuration, sizes, words) in MODELS.items():
        tokens = tokenizer(words, texts)
        if configuration in (DistilBertConfig, MPNetConfig, ModernBertConfig):
            tokens.model_input_names = ["input_ids", "attention_mask"]
        given = dict(sizes, vocab_size=2000, pad_token_id=0, max_position_embeddings=514)
        given |= {"bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
        # Larger than usual, so that scores of different pairs lie apart.
        config = configuration(**given, num_labels=1, initializer_range=0.15)
        bare = folder / "bare" / name
        model = AutoModelForSequenceClassification if kind == "cross" else AutoModel
        model.from_config(config).save_pretrained(bare)
        tokens.save_pretrained(bare)
        if kind == "cross":
            CrossEncoder(str(bare), device="cpu").save_pretrained(str(folder / name))
            continue
        saved = SentenceTransformer(str(bare), device="cpu")
        saved[1].pooling_mode = kind
        saved.prompts = {"query": "question: ", "document": "text: "} if name == "xlm-roberta" else {}
        saved.save_pretrained(str(folder / name))


def run(folder: str, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Scores of the pairs, or vectors of their texts and then of their questions; and the seconds it took."""
    torch.set_num_threads(2)
    if "cross" in Path(folder).name:
        model = CrossEncoder(folder, device="cpu")
        model.predict(pairs[:2], activation_fn=torch.nn.Identity())
        start = time.perf_counter()
        values = model.predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False)
        return {"values": values.tolist(), "seconds": time.perf_counter() - start}
    embedder = SentenceTransformer(folder, device="cpu")
    questions, texts = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    start = time.perf_counter()
    vectors = embedder.encode_document(texts, normalize_embeddings=True).tolist()
    vectors += embedder.encode_query(questions, normalize_embeddings=True).tolist()
    return {"values": vectors, "seconds": time.perf_counter() - start}


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), sys.argv[3], json.load(sys.stdin))
        versions = {"torch": torch.__version__, "sentence-transformers": sentence_transformers.__version__}
        print(json.dumps(versions))
    else:
        print(json.dumps(run(sys.argv[2], [tuple(pair) for pair in json.load(sys.stdin)])))
