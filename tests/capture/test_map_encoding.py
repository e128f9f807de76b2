"""Encoded maps: within the error bound, small, and damage is noticed."""

import numpy as np
import pytest

from neural.capture.map_encoding import (
    MAP_HEADER,
    MapError,
    add_map_location,
    decode_map,
    encode_map,
    is_signed_map,
    to_shares,
)

H, Q, K = 3, 29, 53  # all different, all prime: a swapped axis cannot pass by luck


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)


def make_weights(*, sharpness: float = 3.0, query_offset: int | None = None) -> np.ndarray:
    scores = np.random.default_rng(0).normal(size=(H, Q, K)) * sharpness
    if query_offset is not None:
        scores = np.where(np.tri(Q, K, query_offset) > 0, scores, -1e9)
    return softmax(scores)


@pytest.mark.parametrize("sharpness", [0.0, 1.0, 5.0, 50.0])
def test_no_weight_is_off_by_more_than_four_thousandths(sharpness):
    weights = make_weights(sharpness=sharpness)
    decoded = decode_map(encode_map(weights))
    assert decoded.shape == weights.shape
    assert decoded.dtype == np.float32
    assert np.abs(decoded - weights).max() <= 0.004


def test_all_weights_between_0_and_1_stay_within_the_bound():
    weights = np.linspace(0, 1, 100_001, dtype=np.float32).reshape(1, 1, -1)
    decoded = decode_map(encode_map(weights))
    assert np.abs(decoded - weights).max() <= 0.004
    assert decoded[0, 0, 0] == 0
    assert decoded[0, 0, -1] == 1


@pytest.mark.parametrize("query_offset", [K - Q, 0, 7])
def test_a_causal_map_stores_only_the_triangle(query_offset):
    weights = make_weights(query_offset=query_offset)
    encoded = encode_map(weights, causal=True, query_offset=query_offset)
    decoded = decode_map(encoded)
    assert np.abs(decoded - weights).max() <= 0.004
    assert (decoded[:, np.tri(Q, K, query_offset) == 0] == 0).all()


def test_by_default_the_last_query_is_at_the_last_key():
    weights = make_weights(query_offset=K - Q)
    explicit = encode_map(weights, causal=True, query_offset=K - Q)
    assert encode_map(weights, causal=True) == explicit


def test_an_encoded_map_is_small_and_a_causal_one_smaller():
    scores = np.random.default_rng(1).normal(size=(1, 64, 64)) * 3
    weights = softmax(np.where(np.tri(64) > 0, scores, -1e9))
    assert len(encode_map(weights, causal=True)) < len(encode_map(weights)) < weights.nbytes / 8


def test_weights_slightly_outside_0_to_1_are_clipped():
    assert decode_map(encode_map(np.array([[[1.0000001, -1e-9]]], np.float32))).tolist() == [
        [[1.0, 0.0]]
    ]


@pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("causal", [True, False])
def test_negative_weights_keep_their_sign_and_nothing_is_clipped(factor, causal):
    weights = factor * (make_weights(query_offset=K - Q) - 0.5 * make_weights(query_offset=K - Q))
    weights[:, ::2] *= -2
    encoded = encode_map(weights, causal=causal)
    decoded = decode_map(encoded)
    assert is_signed_map(encoded)
    assert decoded.min() < 0
    assert np.abs(decoded - weights).max() <= 0.008 * max(1, np.abs(weights).max())
    assert (decoded * weights >= 0).all()


def test_a_signed_map_without_negative_weights_stays_signed():
    assert is_signed_map(encode_map(make_weights(), signed=True))
    assert not is_signed_map(encode_map(make_weights()))
    assert not is_signed_map(b"")
    decoded = decode_map(encode_map(make_weights(), signed=True))
    assert np.abs(decoded - make_weights()).max() <= 0.008


def test_a_signed_map_with_a_damaged_scale_is_refused():
    encoded = encode_map(-make_weights())
    with pytest.raises(MapError, match="its scale is missing"):
        decode_map(encoded[: MAP_HEADER.size + 2])
    for scale in (np.nan, np.inf, -1.0, 0.0):
        field = np.array(scale, "<f4").tobytes()
        with pytest.raises(MapError, match="its scale is"):
            decode_map(encoded[: MAP_HEADER.size] + field + encoded[MAP_HEADER.size + 4 :])


def test_shares_of_signed_weights_are_those_of_their_magnitudes():
    weights = np.array([[[0.6, -0.2, 0.0], [0.0, 0.0, 0.0]]])
    np.testing.assert_allclose(to_shares(weights), [[[0.75, 0.25, 0], [0, 0, 0]]])
    np.testing.assert_array_equal(to_shares(make_weights()), make_weights())


def test_bytes_that_are_not_a_map_are_refused():
    for data in (b"", b"NMAP", b"something else that is long enough to have a header"):
        with pytest.raises(MapError, match="not a map"):
            decode_map(data)


def test_a_map_of_a_newer_version_is_refused():
    encoded = bytearray(encode_map(make_weights()))
    encoded[4] = 9
    with pytest.raises(MapError, match="version 9"):
        decode_map(bytes(encoded))


def test_a_damaged_map_is_refused():
    encoded = encode_map(make_weights())
    with pytest.raises(MapError, match="damaged"):
        decode_map(encoded[:-9])
    flipped = bytearray(encoded)
    flipped[len(encoded) // 2] ^= 0xFF  # zlib has a checksum
    with pytest.raises(MapError, match="damaged"):
        decode_map(bytes(flipped))
    more_heads = bytearray(encoded)
    more_heads[5] = H + 1  # the header claims one head more
    with pytest.raises(MapError, match="damaged map"):
        decode_map(bytes(more_heads))


def test_a_damaged_map_of_a_run_names_the_run_and_the_step(tmp_path):
    with pytest.raises(MapError) as raised, add_map_location(tmp_path, 7):
        decode_map(encode_map(make_weights())[:-3])
    assert str(raised.value).startswith(f"{tmp_path / 'rows.sqlite'}, step 7: a damaged map")


@pytest.mark.parametrize("signed", [False, True])
def test_any_mask_is_stored_and_a_weight_of_0_is_not_taken_for_a_masked_one(signed):
    weights = make_weights()
    weights[:, 5, :9] = 0  # visible, and rounded to 0
    if signed:
        weights[0] *= -1
    distance = np.arange(Q)[:, None] - np.arange(K)
    hidden = (np.abs(distance) > 9) | (np.arange(K) >= 40)  # a window, and padding
    weights[:, hidden] = np.nan
    encoded = encode_map(weights, query_offset=0)
    decoded = decode_map(encoded, hidden=np.nan)
    assert (np.isnan(decoded) == hidden).all()
    assert is_signed_map(encoded) == signed
    assert np.nanmax(np.abs(decoded - weights)) <= 0.008
    assert not np.isnan(decode_map(encoded)).any()
    with pytest.raises(MapError, match="damaged"):
        decode_map(encoded[:-5])


def test_a_mask_that_is_causal_is_stored_as_causal():
    weights = make_weights(query_offset=7)
    hidden = np.where(np.tri(Q, K, 7) > 0, weights, np.nan)
    assert encode_map(hidden, query_offset=7) == encode_map(weights, causal=True, query_offset=7)
