"""A softmax is attention if its result is multiplied with values."""

import pytest
import torch
from torch.nn import functional

from neural.capture.softmax_calls import SoftmaxCall, WeightTracker

B, H, Q, K, D = 2, 3, 5, 7, 11
SCORES, VALUES = torch.randn(B, H, Q, K), torch.randn(B, H, K, D)


class FollowingMode(torch.overrides.TorchFunctionMode):
    """Follows one softmax through the functions called inside the block."""

    def __init__(self, scores=SCORES):
        super().__init__()
        self.tracker, self.call, self.applied = WeightTracker(), SoftmaxCall("here", scores), None
        self.weights = scores.softmax(dim=-1)
        self.tracker.start(self.call, self.weights)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.applied = self.tracker.follow(function, args, result) or self.applied
        return result


PATHS = {
    "matmul": lambda w: torch.matmul(w, VALUES),
    "operator": lambda w: w @ VALUES,
    "dropout": lambda w: functional.dropout(w, 0.1) @ VALUES,
    "cast": lambda w: w.to(torch.float64).type_as(VALUES) @ VALUES,
    "scaled": lambda w: (w * torch.rand(1, H, 1, 1)) @ VALUES,
    "heads in the batch": lambda w: torch.bmm(w.view(B * H, Q, K), VALUES.view(B * H, K, D)),
    "einsum": lambda w: torch.einsum("bhqk,bhkd->bqhd", w, VALUES),
    "einsum of a list": lambda w: torch.einsum("...qk,...kd->...qd", [w, VALUES]),
    "transposed": lambda w: VALUES.transpose(-1, -2) @ w.transpose(-1, -2),
    "mT": lambda w: VALUES.mT @ w.mT,
}


@pytest.mark.parametrize("path", PATHS)
def test_weights_are_followed_to_their_values(path):
    with FollowingMode() as followed:
        PATHS[path](followed.weights)
    assert followed.applied is followed.call
    assert followed.call.reordered_scores[1] == 0
    assert not followed.tracker.derived, "weights are released after the product"


@pytest.mark.parametrize(
    ("cut", "columns"), [(slice(None, -2), slice(0, K - 2)), (slice(1, None), slice(1, K))]
)
def test_columns_without_a_value_are_extra_keys_at_the_end(cut, columns):
    with FollowingMode() as followed:
        functional.dropout(followed.weights[..., cut], 0.1) @ VALUES[:, :, cut]
    assert followed.applied is followed.call
    assert followed.call.columns == columns
    scores, extra = followed.call.reordered_scores
    count = columns.stop - columns.start
    assert extra == K - count
    assert torch.equal(scores[..., :count], SCORES[..., columns])
    assert torch.equal(scores.sort(dim=-1).values, SCORES.sort(dim=-1).values)


NO_PATHS = {
    "no product": lambda w: w + 1,
    "einsum with a vector of queries": lambda w: torch.einsum("q,bhqk->bhk", torch.randn(Q), w),
    "a product of the queries": lambda w: w.mT @ torch.randn(B, H, Q, D),
    "einsum over the queries": lambda w: torch.einsum(
        "bhqk,bhqd->bhkd", w, torch.randn(B, H, Q, D)
    ),
    "a sum with weights": lambda w: (w.unsqueeze(-1) * VALUES.unsqueeze(2)).sum(dim=3),
    "other axes": lambda w: w.permute(0, 2, 1, 3) @ torch.randn(B, Q, K, D),
    "chunks": lambda w: functional.pad(w, (0, 3)).view(B, H, -1, 5) @ torch.randn(5, D),
}


@pytest.mark.parametrize("path", NO_PATHS)
def test_other_uses_of_a_softmax_are_not_attention(path):
    with FollowingMode() as followed:
        NO_PATHS[path](followed.weights)
    assert followed.applied is None
