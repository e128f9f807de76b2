"""Head similarity from sketches of the attention weights."""

import pytest
import torch

from neural.nn.attention.localized import Localized
from neural.nn.attention.self import Self
from neural.nn.head_similarity import measure_head_similarity, sketch_similarity
from neural.nn.mask import Mask
from neural.nn.multi_head_attention import MultiHeadAttentionModule


def build_attention(num_heads=2, mechanism=None, seed=0):
    torch.manual_seed(seed)
    return MultiHeadAttentionModule(8, num_heads, 8 // num_heads, mechanism or Self())


def exact_similarity(weights, row_mask):
    """Mean w·w′ of different build_attention, divided by the mean w·w of a head with itself."""
    weights = weights * row_mask[:, None, :, None]
    products = torch.einsum("bhqk,bgqk->hg", weights, weights)
    count = len(products)
    return (products.sum() - products.trace()) / (count - 1) / products.trace()


def test_equal_heads_have_similarity_one():
    attention = build_attention()
    with torch.no_grad():
        for projection in (attention.query, attention.key):
            projection.weight[4:] = projection.weight[:4]
            projection.bias[4:] = projection.bias[:4]
    with measure_head_similarity(attention) as similarity:
        attention(torch.randn(2, 7, 8))
    torch.testing.assert_close(similarity.mean(), torch.tensor(1.0))


def test_heads_without_common_keys_have_similarity_zero():
    sketch = torch.zeros(1, 2, 3, 4)
    sketch[0, 0, :, :2], sketch[0, 1, :, 2:] = 1.0, -1.0
    assert sketch_similarity(sketch).item() == 0


def test_rows_of_padding_do_not_count():
    sketch = torch.tensor([[[[1.0], [5.0]], [[1.0], [-5.0]]]])
    assert sketch_similarity(sketch).item() < 0
    assert sketch_similarity(sketch, torch.tensor([[True, False]])).item() == 1


@pytest.mark.parametrize("mechanism", [Self(), Localized(window=5)], ids=repr)
def test_the_mean_is_the_similarity_of_the_exact_weights(mechanism):
    attention = build_attention(4, mechanism)
    with torch.no_grad():
        attention.query.weight.mul_(6)
    x, mask = torch.randn(2, 12, 8), torch.arange(12) < torch.tensor([[12], [9]])
    q, k = attention.split_heads(attention.query(x)), attention.split_heads(attention.key(x))
    expected = exact_similarity(mechanism.weights(q, k, Mask(keys=mask)), mask).item()
    with torch.no_grad(), measure_head_similarity(attention) as similarity:
        for _ in range(150):
            attention(x, mask)
    assert similarity.mean().item() == pytest.approx(expected, abs=0.03)
    assert expected < 0.9


def test_gradient_descent_makes_heads_different():
    attention = build_attention()
    x = torch.randn(2, 9, 8)
    optimizer = torch.optim.Adam(attention.parameters(), lr=0.05)
    similarities = []
    for _ in range(40):
        with measure_head_similarity(attention) as similarity:
            attention(x)
        optimizer.zero_grad()
        similarity.mean().backward()
        optimizer.step()
        similarities.append(similarity.mean().item())
    assert similarities[0] > 0.6
    assert sum(similarities[-10:]) / 10 < 0.2


def test_measuring_changes_neither_outputs_nor_mechanisms():
    attention = build_attention()
    x, mechanism = torch.randn(2, 7, 8), attention.mechanism
    expected = attention(x)
    with measure_head_similarity(attention):
        torch.testing.assert_close(attention(x), expected)
    assert attention.mechanism is mechanism
    with pytest.raises(RuntimeError), measure_head_similarity(attention):
        raise RuntimeError
    assert attention.mechanism is mechanism


def test_a_single_head_cannot_be_compared():
    attention = build_attention(1)
    with measure_head_similarity(attention) as similarity:
        attention(torch.randn(1, 5, 8))
    with pytest.raises(ValueError, match="several heads"):
        similarity.mean()
