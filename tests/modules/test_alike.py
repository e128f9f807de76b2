"""Heads compared without their weights written out."""

import pytest
import torch

from neural.modules.alike import comparing, likeness
from neural.modules.attention.localized import Localized
from neural.modules.attention.self import Self
from neural.modules.heads import Heads
from neural.modules.mask import Mask


def heads(count=2, mechanism=None, seed=0):
    torch.manual_seed(seed)
    return Heads(8, count, 8 // count, mechanism or Self())


def exact(weights, real):
    """Σ over pairs of different heads of w·w′, over the same of a head with itself, from weights written out."""
    weights = weights * real[:, None, :, None]
    products = torch.einsum("bhqk,bgqk->hg", weights, weights)
    count = len(products)
    return (products.sum() - products.trace()) / (count - 1) / products.trace()


def test_heads_that_do_the_same_are_alike():
    one = heads()
    with torch.no_grad():
        for part in (one.query, one.key):
            part.weight[4:] = part.weight[:4]
            part.bias[4:] = part.bias[:4]
    with comparing(one) as compared:
        one(torch.randn(2, 7, 8))
    torch.testing.assert_close(compared.alike(), torch.tensor(1.0))


def test_heads_that_share_no_key_have_nothing_in_common():
    sketch = torch.zeros(1, 2, 3, 4)
    sketch[0, 0, :, :2], sketch[0, 1, :, 2:] = 1.0, -1.0
    assert likeness(sketch).item() == 0


def test_rows_of_padding_do_not_count():
    sketch = torch.tensor([[[[1.0], [5.0]], [[1.0], [-5.0]]]])
    assert likeness(sketch).item() < 0
    assert likeness(sketch, torch.tensor([[True, False]])).item() == 1


@pytest.mark.parametrize("mechanism", [Self(), Localized(window=5)], ids=repr)
def test_on_average_it_is_what_the_written_out_weights_say(mechanism):
    one = heads(4, mechanism)
    with torch.no_grad():
        one.query.weight.mul_(6)
    x, mask = torch.randn(2, 12, 8), torch.arange(12) < torch.tensor([[12], [9]])
    q, k = one.split(one.query(x)), one.split(one.key(x))
    wanted = exact(mechanism.weights(q, k, Mask(keys=mask)), mask).item()
    with torch.no_grad(), comparing(one) as compared:
        for _ in range(150):
            one(x, mask)
    assert compared.alike().item() == pytest.approx(wanted, abs=0.03)
    assert wanted < 0.9


def test_following_the_gradient_drives_heads_apart():
    one = heads()
    x = torch.randn(2, 9, 8)
    optimizer = torch.optim.Adam(one.parameters(), lr=0.05)
    found = []
    for _ in range(40):
        with comparing(one) as compared:
            one(x)
        optimizer.zero_grad()
        compared.alike().backward()
        optimizer.step()
        found.append(compared.alike().item())
    assert found[0] > 0.6
    assert sum(found[-10:]) / 10 < 0.2


def test_the_model_computes_the_same_and_is_left_as_it_was():
    one = heads()
    x, own = torch.randn(2, 7, 8), one.mechanism
    wanted = one(x)
    with comparing(one):
        torch.testing.assert_close(one(x), wanted)
    assert one.mechanism is own
    with pytest.raises(RuntimeError), comparing(one):
        raise RuntimeError
    assert one.mechanism is own


def test_one_head_alone_cannot_be_compared():
    one = heads(1)
    with comparing(one) as compared:
        one(torch.randn(1, 5, 8))
    with pytest.raises(ValueError, match="several heads"):
        compared.alike()
