"""Models made of their originals: ready ONNX graphs, prompts, what is checked and what is refused."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tiny_model
from onnx import TensorProto, helper
from safetensors.numpy import load_file, save_file

from hyce import models
from hyce.conversion import graph, verify
from hyce.conversion.weights import read_weights
from hyce.cross_encoder import OnnxCrossEncoder
from hyce.embed import OnnxEmbedder
from hyce.errors import ModelError

TEXTS = ["", "job", "the queue is full", "disk node wait time " * 10]


def change(path: Path, **values: Any) -> None:
    """Change values of a JSON file."""
    said = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(said | values), encoding="utf-8")


def exported(folder: Path, *, output: str, kind: str = "bi-encoder") -> Path:
    """A folder with a graph as exporters write it and no other weights; what it computes is BERT's."""
    cross = kind == "cross-encoder"
    (tiny_model.write_cross_encoder if cross else tiny_model.write)(folder)
    tensors = dict(tiny_model.weights())
    if cross:
        inner = graph.build_cross_encoder(
            tiny_model.CONFIG, read_weights(folder / "model.safetensors"), "fp32"
        ).graph
    else:
        inner = graph.build(tiny_model.CONFIG, tensors, "fp32").graph
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if cross else [])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in names]
    first = [helper.make_node("Cast", ["input_ids"], ["ids"], to=TensorProto.INT32)]
    if cross:
        first.append(helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.INT32))
    # The mask counts: zeros in it would make the result another.
    first.append(helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT))
    first.append(helper.make_node("ReduceMean", ["mask"], ["share"], keepdims=0))
    made = {"last_hidden_state": "hidden", "sentence_embedding": "vector", "logits": "classifier"}.get(
        output, "hidden"
    )
    last = [helper.make_node("Mul", [made, "share"], [output])]
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
    whole = helper.make_graph([*first, *inner.node, *last], "export", inputs, outputs, inner.initializer)
    imports = [helper.make_opsetid("", 18), helper.make_opsetid(graph.MICROSOFT, 1)]
    (folder / "onnx").mkdir()
    onnx.save(helper.make_model(whole, opset_imports=imports, ir_version=8), folder / "onnx" / "model.onnx")
    (folder / "model.safetensors").unlink()
    change(folder / "config.json", model_type="mpnet", max_position_embeddings=tiny_model.POSITIONS + 2)
    return folder


def vectors(embedder: OnnxEmbedder) -> Any:
    return np.array([each.vector for each in embedder.embed(TEXTS)])


# -- ready ONNX graphs -----------------------------------------------------------------------------------


def test_an_export_gives_the_vectors_of_its_weights(tmp_path: Path) -> None:
    same = models.pull("same", tmp_path / "models", source=tiny_model.write(tmp_path / "built"))
    made = models.pull(
        "made", tmp_path / "models", source=exported(tmp_path / "given", output="last_hidden_state")
    )
    assert [files.precision for files in made] == list(models.PRECISIONS)
    assert made[1].token_vectors and made[1].dimensions == tiny_model.HIDDEN
    ours, true = OnnxEmbedder(made[1]), OnnxEmbedder(same[1])
    np.testing.assert_allclose(vectors(ours), vectors(true), atol=1e-5)
    for one, other in zip(ours.embed(TEXTS, tokens=True), true.embed(TEXTS, tokens=True), strict=True):
        np.testing.assert_allclose(one.tokens, other.tokens, atol=1e-5)
        assert one.token_ids == other.token_ids
    assert (vectors(OnnxEmbedder(made[0])) * vectors(true)).sum(1).mean() > 0.98
    assert made[1].fingerprint != same[1].fingerprint


def test_an_export_that_pools_itself_has_no_token_vectors(tmp_path: Path) -> None:
    same = models.pull("same", tmp_path / "models", source=tiny_model.write(tmp_path / "built"))
    source = exported(tmp_path / "given", output="sentence_embedding")
    made = models.pull("made", tmp_path / "models", source=source)
    assert not made[1].token_vectors
    np.testing.assert_allclose(vectors(OnnxEmbedder(made[1])), vectors(OnnxEmbedder(same[1])), atol=1e-5)
    (found,) = OnnxEmbedder(made[1]).embed(["job"], tokens=True)
    assert found.tokens.shape == (0, tiny_model.HIDDEN) and found.token_ids == ()


def test_an_exported_cross_encoder_gives_the_scores_of_its_weights(tmp_path: Path) -> None:
    built = tiny_model.write_cross_encoder(tmp_path / "built")
    same = models.pull("same", tmp_path / "models", source=built)
    source = exported(tmp_path / "given", output="logits", kind="cross-encoder")
    made = models.pull("made", tmp_path / "models", source=source)
    assert made[1].kind == "cross-encoder"
    scores = OnnxCrossEncoder(made[1]).score("queue full", TEXTS)
    np.testing.assert_allclose(scores, OnnxCrossEncoder(same[1]).score("queue full", TEXTS), atol=1e-4)


def test_an_export_with_other_inputs_or_outputs_is_refused(tmp_path: Path) -> None:
    source = exported(tmp_path / "given", output="something")
    with pytest.raises(ModelError, match="gives something and not sentence_embedding or last_hidden_state"):
        models.pull("made", tmp_path / "models", source=source)
    path = exported(tmp_path / "positions", output="last_hidden_state") / "onnx" / "model.onnx"
    model = onnx.load(path)
    model.graph.input.append(helper.make_tensor_value_info("position_ids", TensorProto.INT64, [1, "length"]))
    onnx.save(model, path)
    with pytest.raises(ModelError, match="wants 'position_ids'; use `hyce models convert`"):
        models.pull("made", tmp_path / "models", source=tmp_path / "positions")
    path.write_bytes(b"\xff" * 100)
    with pytest.raises(ModelError, match="not a readable ONNX file"):
        models.pull("made", tmp_path / "models", source=tmp_path / "positions")
    assert {file.name for file in (tmp_path / "models").iterdir()} == {".lock"}


# -- prompts ---------------------------------------------------------------------------------------------


def prompted(folder: Path, name: str = "tiny", **prompts: str) -> OnnxEmbedder:
    source = tiny_model.write(folder / "source")
    change(source / "config_sentence_transformers.json", prompts=prompts)
    return OnnxEmbedder(models.pull(name, folder / "models", source=source)[1])


def test_a_prompt_stands_before_the_text_and_is_no_part_of_it(tmp_path: Path) -> None:
    ours = prompted(tmp_path, query="wait time ", document="node ")
    plain = OnnxEmbedder(
        models.pull("plain", tmp_path, source=tiny_model.write(tmp_path / "plain-source"))[1]
    )
    (question,) = ours.embed(["job queue"], tokens=True, query=True)
    (passage,) = ours.embed(["job queue"], tokens=True)
    (whole,) = plain.embed(["wait time job queue"], tokens=True)
    assert np.array_equal(question.vector, whole.vector)
    assert not np.array_equal(question.vector, passage.vector)
    assert question.token_ids == passage.token_ids == (4, 5)
    assert np.array_equal(question.tokens, whole.tokens[2:])
    assert ours.length("job queue") == 2
    (long,) = ours.embed(["job " * 50], tokens=True, query=True)
    assert len(long.tokens) == len(long.token_ids) == ours.files.max_tokens - 2 - 2
    assert ours.fingerprint != plain.fingerprint


@pytest.mark.parametrize(
    ("name", "query", "passage"),
    [
        ("multilingual-e5-small", "query: ", "passage: "),
        ("e5-base-v2", "query: ", "passage: "),
        ("e5-mistral-7b-instruct", "", ""),
        ("bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("all-MiniLM-L6-v2-copy", "", ""),
    ],
)
def test_models_that_want_prompts_are_known_by_name(
    tmp_path: Path, name: str, query: str, passage: str
) -> None:
    files = prompted(tmp_path, name).files
    assert (files.query_prompt, files.passage_prompt) == (query, passage)


def test_the_folders_own_prompts_win(tmp_path: Path) -> None:
    files = prompted(tmp_path, "e5-base-v2", query="job ", passage="").files
    assert (files.query_prompt, files.passage_prompt) == ("job ", "")


def test_a_description_without_kind_and_prompts_is_an_older_one(tmp_path: Path) -> None:
    models.pull("tiny", tmp_path, source=tiny_model.write(tmp_path / "source"))
    path = tmp_path / "tiny" / "model.json"
    before = models.find("tiny", "int8", tmp_path)
    said = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({key: said[key] for key in said if key not in ("kind", "measured")}))
    assert models.find("tiny", "int8", tmp_path) == before
    assert before.kind == "bi-encoder" and before.token_vectors


# -- what is checked -------------------------------------------------------------------------------------


def test_what_was_measured_is_said_and_kept(tmp_path: Path) -> None:
    said: list[str] = []
    models.convert(
        str(tiny_model.write(tmp_path / "source")), tmp_path / "models", name="mine", report=said.append
    )
    measured = json.loads((tmp_path / "models" / "mine" / "model.json").read_text("utf-8"))["measured"]
    assert f"mine fp32: {measured['fp32']}" in said
    assert "cosine to the original 1.0000000 on average" in measured["fp32"]
    assert "tokens equal on 13 texts" in measured["int8"]


def test_a_model_unlike_its_original_is_told(tmp_path: Path) -> None:
    files = models.pull("tiny", tmp_path, source=tiny_model.write(tmp_path / "source"))[1]
    embedder = OnnxEmbedder(files)
    ids = [embedder.given(text)[0] for text in (*verify.TEXTS, *verify.QUESTIONS)]
    made = embedder.embed([*verify.TEXTS, *verify.QUESTIONS])
    values = np.array([each.vector for each in made], np.float64)
    assert verify.compare(files, verify.Reference(ids, values)).good
    turned = np.roll(values, 1, axis=1)
    assert not verify.compare(files, verify.Reference(ids, turned)).good
    assert not verify.compare(files, verify.Reference(ids, values[:, :-1])).good
    other = verify.compare(files, verify.Reference([*ids[:-1], [*ids[-1], 3]], values))
    assert not other.good and other.text == "1 of 13 texts have other tokens"


def test_a_model_whose_tokens_differ_is_not_installed(tmp_path: Path) -> None:
    source = tiny_model.write(tmp_path / "source")
    before = models.convert(str(source), tmp_path / "models")
    said = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    template = said["post_processor"]["single"]
    said["post_processor"]["single"] = [template[0], template[2], template[1]]  # both ends before the text
    (source / "tokenizer.json").write_text(json.dumps(said), encoding="utf-8")
    with pytest.raises(ModelError, match=r"differs from the original .* have other tokens.; not installed"):
        models.convert(str(source), tmp_path / "models")
    assert models.installed(tmp_path / "models") == before


def test_int8_is_left_out_where_it_is_too_far_from_the_original(tmp_path: Path) -> None:
    source = tiny_model.write_cross_encoder(tmp_path / "source", seed=1)
    tensors = load_file(source / "model.safetensors")
    # So large that attention is all or nothing: rounding then decides which.
    sharp = {name: tensor * 6 if "attention.self" in name else tensor for name, tensor in tensors.items()}
    save_file(sharp, source / "model.safetensors")
    said: list[str] = []
    (made,) = models.convert(str(source), tmp_path / "models", report=said.append)
    assert made.precision == "fp32"
    assert "source: int8 is too far from the original and left out; use precision fp32" in said
    with pytest.raises(ModelError, match=r"is here at fp32 only; set reranker\.precision to it"):
        models.find("source", "int8", tmp_path / "models")


# -- torch -----------------------------------------------------------------------------------------------


def with_a_dense_module(folder: Path) -> Path:
    """A model that ends in a matrix of its own, which takes vectors to half of their dimensions."""
    tiny_model.write(folder)
    types = ["Transformer", "Pooling", "Dense"]
    modules = [
        {
            "idx": n,
            "name": str(n),
            "path": f"{n}_{kind}" if n else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for n, kind in enumerate(types)
    ]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    change(folder / "1_Pooling" / "config.json", word_embedding_dimension=tiny_model.HIDDEN)
    sizes = {"in_features": tiny_model.HIDDEN, "out_features": tiny_model.HIDDEN // 2, "bias": True}
    change(
        folder / "2_Dense" / "config.json", **sizes, activation_function="torch.nn.modules.activation.Tanh"
    )
    random = np.random.default_rng(7)
    shapes = {
        "linear.weight": (tiny_model.HIDDEN // 2, tiny_model.HIDDEN),
        "linear.bias": (tiny_model.HIDDEN // 2,),
    }
    tensors = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    save_file(tensors, folder / "2_Dense" / "model.safetensors")
    change(folder / "config.json", vocab_size=len(tiny_model.WORDS), intermediate_size=tiny_model.INNER)
    change(
        folder / "tokenizer_config.json",
        tokenizer_class="PreTrainedTokenizerFast",
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        unk_token="[UNK]",
        model_max_length=12,
    )
    return folder


def test_a_further_module_needs_torch(tmp_path: Path) -> None:
    source = with_a_dense_module(tmp_path / "source")
    with pytest.raises(ModelError, match=r"without torch .it has a module Dense.*use `hyce models convert`"):
        models.pull("dense", tmp_path / "models", source=source)


def test_a_python_without_torch_is_told(tmp_path: Path) -> None:
    source = with_a_dense_module(tmp_path / "source")
    with pytest.raises(
        ModelError, match=r"torch could not export it: .*No module named 'torch'; it needs torch"
    ):
        models.convert(str(source), tmp_path / "models", python=Path(sys.executable))
    with pytest.raises(ModelError, match=r"nowhere: can't be started"):
        models.convert(str(source), tmp_path / "models", python=tmp_path / "nowhere")
    assert {file.name for file in (tmp_path / "models").iterdir()} == {".lock"}


@pytest.mark.skipif("TORCH_PYTHON" not in os.environ, reason="TORCH_PYTHON names no Python with torch")
def test_torch_exports_what_no_graph_can_be_built_of(tmp_path: Path) -> None:
    source = with_a_dense_module(tmp_path / "source")
    (source / "pytorch_model.bin").write_bytes(b"not looked at")
    said: list[str] = []
    python = Path(os.environ["TORCH_PYTHON"])
    made = models.convert(str(source), tmp_path / "models", name="dense", python=python, report=said.append)
    assert said[0] == "dense: needs torch (it has a module Dense)"
    assert [files.precision for files in made] == list(models.PRECISIONS)
    assert made[1].dimensions == tiny_model.HIDDEN // 2 and not made[1].token_vectors
    assert vectors(OnnxEmbedder(made[1])).shape == (len(TEXTS), tiny_model.HIDDEN // 2)
    assert any("dense fp32: cosine to the original 1.0000000" in line for line in said)


# -- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), r"config\.json: missing; the folder must be one"),
        (lambda folder: (folder / "tokenizer.json").unlink(), r"tokenizer\.json: missing"),
        (lambda folder: (folder / "model.safetensors").unlink(), r"model\.safetensors: missing.*not read"),
        (lambda folder: (folder / "config.json").write_text("[]"), r"config\.json: no JSON object"),
        (lambda folder: (folder / "modules.json").write_text("[1]"), r"modules\.json: no list"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), r"tokenizer\.json: broken"),
        (lambda folder: change(folder / "sentence_bert_config.json", max_seq_length="x"), "is no number"),
        (lambda folder: change(folder / "sentence_bert_config.json", max_seq_length=2), "of 2 tokens only"),
    ],
    ids=["config", "tokenizer", "weights", "list", "modules", "broken tokenizer", "words", "short"],
)
def test_what_is_no_model_folder(tmp_path: Path, spoil: Callable[[Path], Any], message: str) -> None:
    source = tiny_model.write(tmp_path / "source")
    spoil(source)
    with pytest.raises(ModelError, match=message) as caught:
        models.convert(str(source), tmp_path / "models")
    assert "\n" not in str(caught.value)
    assert {file.name for file in (tmp_path / "models").iterdir()} == {".lock"}


@pytest.mark.parametrize("name", ["nothing", "./nothing/at-all", "/nothing/at-all", "~/nothing"])
def test_what_is_neither_folder_nor_repository(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match="neither a folder nor organisation/name of the model hub; name one"):
        models.convert(name, tmp_path)


def test_an_interrupted_conversion_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(text: str) -> None:
        if "fp32" in text:
            raise KeyboardInterrupt

    source = tiny_model.write(tmp_path / "source")
    with pytest.raises(KeyboardInterrupt):
        models.convert(str(source), tmp_path / "models", report=interrupt)
    assert {file.name for file in (tmp_path / "models").iterdir()} == {".lock"}
