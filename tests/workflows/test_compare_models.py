"""Two models compared head by head: captures, targets, stored maps."""

import numpy as np
import pytest
import torch
import transformers

import neural
from neural.interpret.foreign_models import TargetError
from neural.runs.run import Run
from neural.workflows.compare_models import compare_captures, compare_models, compare_snapshots
from neural.workflows.watch_models import record_captures, save_record, watch_models
from tests.hugging_face_folders import TEXTS, WIDTH, build_gpt2, save_folder, train_tokenizer
from tests.written_runs import CHARACTERS, write_run

TEXT = " ".join(TEXTS)


def widen(model, seed, size=8.0):
    """Larger projections of queries and keys, so that heads differ."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for block in model.transformer.h:
            block.attn.c_attn.weight.normal_(std=0.02 * size)
        model.transformer.wte.weight.normal_(std=0.3)
    return model


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A base model of 3 × 2 heads, one with a changed head, and one of another seed."""
    root, tokenizer = tmp_path_factory.mktemp("hf"), train_tokenizer()
    base = widen(build_gpt2(tokenizer, layers=3), seed=1)
    save_folder(root / "base", base, tokenizer)
    with torch.no_grad():
        queries = base.transformer.h[1].attn.c_attn.weight[:, WIDTH // 2 : WIDTH]
        queries += 0.1 * torch.randn(WIDTH, 2) @ torch.randn(2, WIDTH // 2)
    save_folder(root / "tuned", base, tokenizer)
    other = widen(build_gpt2(tokenizer, layers=3), seed=2)
    save_folder(root / "other", other, tokenizer)
    return root


def test_the_changed_head_of_a_tuned_model_is_first(folders):
    comparison = compare_models(str(folders / "base"), str(folders / "tuned"), texts=[TEXT])
    assert comparison.changes[0].head == (1, 1)
    assert all(pair.first == pair.second for pair in comparison.pairs)
    verdicts = {pair.first: pair.verdict for pair in comparison.pairs}
    assert {verdicts[0, 0], verdicts[0, 1], verdicts[1, 0]} == {"same head"}
    data = comparison.to_dict()
    assert data["changes"][0]["head"] == 1 and data["tokens"] == [TEXT.split()]
    assert len(data["pairs"]) == 6 and data["models"][1]["name"] == "tuned"


def test_another_seed_has_no_head_in_common(folders):
    comparison = compare_models(str(folders / "base"), str(folders / "other"), texts=[TEXT])
    assert "same head" not in {pair.verdict for pair in comparison.pairs}
    assert comparison.index_p > 0.05


def test_targets_keep_their_order_whatever_their_numbers(folders, tmp_path):
    (tmp_path / "model-2").symlink_to(folders / "base")
    (tmp_path / "model-1").symlink_to(folders / "tuned")
    comparison = compare_models(str(tmp_path / "model-2"), str(tmp_path / "model-1"), texts=[TEXT])
    # `watch` would sort them by number
    assert [comparison.first.name, comparison.second.name] == ["model-2", "model-1"]


def test_padding_is_not_compared(folders):
    """A longer neighbour in the batch must not change the divergences of the rows of a text."""
    base, tuned = str(folders / "base"), str(folders / "tuned")
    alone = compare_models(base, tuned, texts=[TEXTS[2], TEXTS[2]])
    padded = compare_models(base, tuned, texts=[TEXTS[2], TEXTS[2], "a cat"])
    first, second = (comparison.matchings[0].compared_rows for comparison in (alone, padded))
    # "a cat" has one row in which a query sees two keys
    assert first == 2 * (len(TEXTS[2].split()) - 1) and second == first + 1


def test_different_tokens_are_refused_with_the_first_difference(folders, tmp_path):
    tokenizer = train_tokenizer(pair_template=True)  # adds [CLS] and [SEP]
    save_folder(tmp_path / "cls", widen(build_gpt2(tokenizer), seed=3), tokenizer)
    with pytest.raises(TargetError, match=r"13 and 15, and position 0 is 'the' and '\[CLS\]'"):
        compare_models(str(folders / "base"), str(tmp_path / "cls"), texts=[TEXTS[0]])


def test_stored_maps_give_the_same_pairs(folders, tmp_path):
    paths = []
    for name in ("base", "tuned"):
        captures = list(watch_models([str(folders / name)], texts=[TEXT]))
        paths.append(save_record(record_captures(captures), tmp_path))
    with Run.open(paths[0]) as first, Run.open(paths[1]) as second:
        stored = compare_snapshots(first, second)
    exact = compare_models(str(folders / "base"), str(folders / "tuned"), texts=[TEXT])
    assert stored.changes[0].head == (1, 1)
    assert [pair[:2] for pair in stored.pairs] == [pair[:2] for pair in exact.pairs]
    for a, b in zip(stored.pairs, exact.pairs, strict=True):
        assert a.divergence == pytest.approx(b.divergence, abs=2e-3)


def test_stored_maps_of_other_probes_and_runs_without_maps_are_refused(folders, tmp_path):
    paths = []
    for text in TEXTS[:2]:
        captures = list(watch_models([str(folders / "base")], texts=[text]))
        paths.append(save_record(record_captures(captures), tmp_path))
    empty = Run.create(tmp_path, "empty", settings={"task": "watched"}, program=None)
    empty.finish("finished")
    with Run.open(paths[0]) as first, Run.open(paths[1]) as second, Run.open(empty.path) as third:
        with pytest.raises(TargetError, match="read different tokens"):
            compare_snapshots(first, second)
        with pytest.raises(TargetError, match=r"has no maps.*--probe"):
            compare_snapshots(first, third)


def test_runs_with_a_checkpoint_read_the_probe(tmp_path):
    paths = [str(write_run(tmp_path, name, vocabulary=list(CHARACTERS))) for name in ("one", "two")]
    comparison = compare_models(*paths, texts=["abcabcabc"])
    assert all(change.divergence == 0 for change in comparison.changes)  # the same weights
    assert comparison.first.tokens == [list("abcabcabc")]


def test_token_ids_for_a_run_are_refused_not_ignored(tmp_path):
    path = str(write_run(tmp_path, "one", vocabulary=list(CHARACTERS)))
    with pytest.raises(TargetError, match="is a run, which --ids does not apply to"):
        compare_models(path, path, ids=["1 2 3"])


def test_encoder_decoder_models_are_compared_by_kind_of_attention():
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=30, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=4
    )
    model = transformers.T5ForConditionalGeneration(config).eval()
    inputs = {
        "input_ids": torch.tensor([[5, 6, 7, 5, 6, 8, 9, 10]]),
        "decoder_input_ids": torch.tensor([[0, 5, 6, 7, 5, 6]]),
    }
    capture = neural.watch(model, inputs)
    comparison = compare_captures(capture, capture)
    assert len(comparison.matchings) == 3 and len(comparison.pairs) == 24
    names = capture.layer_names()
    for pair in comparison.pairs:
        assert pair.divergence < 1e-6
        kinds = [names[layer].rpartition(".")[2] for layer, _ in (pair.first, pair.second)]
        assert kinds[0] == kinds[1]


def test_models_of_other_sizes_are_compared(folders, tmp_path):
    tokenizer = train_tokenizer()
    small = widen(build_gpt2(tokenizer, layers=2), seed=4)
    save_folder(tmp_path / "small", small, tokenizer)
    comparison = compare_models(str(folders / "base"), str(tmp_path / "small"), texts=[TEXT])
    assert len(comparison.pairs) == 4 and not comparison.changes
    assert np.isnan(comparison.index_p) and comparison.to_dict()["index_p"] is None


def test_learned_sinks_are_part_of_the_distribution():
    torch.manual_seed(0)
    attention = torch.nn.MultiheadAttention(16, 4, add_zero_attn=True, batch_first=True).eval()
    x = torch.randn(1, 12, 16)
    first = neural.watch(attention, x, x, x)
    with torch.no_grad():
        attention.in_proj_weight[:32] *= 1.5
    second = neural.watch(attention, x, x, x)
    comparison = compare_captures(first, second)
    maps = [capture[0].maps()[0] for capture in (first, second)]
    assert all((weights.sum(axis=-1) < 0.999).any() for weights in maps)
    complete = [
        np.concatenate([weights, 1 - weights.sum(axis=-1, keepdims=True)], axis=-1).astype(float)
        for weights in maps
    ]
    means = (complete[0] + complete[1]) / 2
    terms = [
        (weights * np.log2(weights / means)).sum(axis=-1).mean(axis=-1) for weights in complete
    ]
    expected = (terms[0] + terms[1]) / 2
    own = {change.head[1]: change.divergence for change in comparison.changes}
    assert [own[head] for head in range(4)] == pytest.approx(expected.tolist(), rel=1e-3)
