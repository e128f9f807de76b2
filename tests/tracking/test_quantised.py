"""Maps in 8 bits: near enough, small, and never read wrong."""

import numpy as np
import pytest

from neural.tracking.quantised import MapError, maps_from, pack, unpack

H, Q, K = 3, 29, 53   # all different, all prime: a swapped axis cannot pass by luck


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)


def weights(*, sharp: float = 3.0, first: int | None = None) -> np.ndarray:
    scores = np.random.default_rng(0).normal(size=(H, Q, K)) * sharp
    return softmax(scores if first is None else np.where(np.tri(Q, K, first) > 0, scores, -1e9))


@pytest.mark.parametrize("sharp", [0.0, 1.0, 5.0, 50.0])
def test_no_weight_is_off_by_more_than_four_thousandths(sharp):
    given = weights(sharp=sharp)
    found = unpack(pack(given))
    assert found.shape == given.shape
    assert found.dtype == np.float32
    assert np.abs(found - given).max() <= 0.004


def test_every_weight_there_is_stays_within_the_bound():
    given = np.linspace(0, 1, 100_001, dtype=np.float32).reshape(1, 1, -1)
    found = unpack(pack(given))
    assert np.abs(found - given).max() <= 0.004
    assert found[0, 0, 0] == 0
    assert found[0, 0, -1] == 1


@pytest.mark.parametrize("first", [K - Q, 0, 7])
def test_of_a_causal_map_the_triangle_is_kept_and_nothing_else(first):
    given = weights(first=first)
    found = unpack(pack(given, causal=True, first=first))
    assert np.abs(found - given).max() <= 0.004
    assert (found[:, np.tri(Q, K, first) == 0] == 0).all()


def test_the_last_query_stands_at_the_last_key_unless_said_otherwise():
    given = weights(first=K - Q)
    assert pack(given, causal=True) == pack(given, causal=True, first=K - Q)


def test_a_map_takes_a_small_part_of_its_weights_and_a_causal_one_less():
    scores = np.random.default_rng(1).normal(size=(1, 64, 64)) * 3
    given = softmax(np.where(np.tri(64) > 0, scores, -1e9))
    assert len(pack(given, causal=True)) < len(pack(given)) < given.nbytes / 8


def test_weights_a_little_outside_of_the_scale_are_put_back_on_it():
    assert unpack(pack(np.array([[[1.0000001, -1e-9]]], np.float32))).tolist() == [[[1.0, 0.0]]]


def test_what_is_no_map_is_refused():
    for wrong in (b"", b"NMAP", b"something else that is long enough to have a header"):
        with pytest.raises(MapError, match="not a map"):
            unpack(wrong)


def test_a_map_of_a_later_version_is_refused_by_name():
    packed = bytearray(pack(weights()))
    packed[4] = 9
    with pytest.raises(MapError, match="version 9"):
        unpack(bytes(packed))


def test_a_broken_map_is_refused():
    packed = pack(weights())
    with pytest.raises(MapError, match="broken"):
        unpack(packed[:-9])
    middle = bytearray(packed)
    middle[len(packed) // 2] ^= 0xFF   # zlib carries a checksum of its own
    with pytest.raises(MapError, match="broken"):
        unpack(bytes(middle))
    fewer = bytearray(packed)
    fewer[5] = H + 1   # a header that promises one head more
    with pytest.raises(MapError, match="broken map"):
        unpack(bytes(fewer))


def test_a_broken_map_of_a_run_says_whose_it_is(tmp_path):
    with pytest.raises(MapError) as told, maps_from(tmp_path, 7):
        unpack(pack(weights())[:-3])
    assert str(told.value).startswith(f"{tmp_path / 'rows.sqlite'}, step 7: a broken map")
