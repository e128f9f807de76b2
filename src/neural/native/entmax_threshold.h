// Threshold of sparsemax (α = 2) and 1.5-entmax (α = 1.5), with which the weights of a row sum to 1.
//
// With y = (α − 1) · (score − largest score), the weights are max(y − τ, 0) for sparsemax and
// max(y − τ, 0)² for 1.5-entmax. The largest y is 0 and has a weight of at most 1, so τ ≥ −1: only
// scores with y > −1 can have weight, usually a few per cent of a row. They are copied to a short
// list first.
//
// τ is the zero of f(τ) = Σ_j weight_j − 1, which falls and is convex. Newton's method from τ = −1,
// where f ≥ 0, approaches it from the left without ever passing it. It ends when rounding stops it.
#pragma once
#include "kernel.h"
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace {

constexpr int MAX_NEWTON_STEPS = 64;

// The largest value of a row and whether it has a NaN. `count` may be any number.
struct RowMaximum {
    float value;
    bool has_nan;
};

inline RowMaximum find_maximum(const float *row, int64_t count) {
    Vec largest = broadcast(-INFINITY);
    VecInt is_nan = {};
    int64_t j = 0;
    for (; j + LANES <= count; j += LANES) {
        const Vec value = load(row + j);
        largest = maximum(value, largest);
        is_nan |= value != value;
    }
    RowMaximum result = {max_lanes(largest), false};
    for (int lane = 0; lane < LANES; lane++) result.has_nan |= is_nan[lane] != 0;
    for (; j < count; j++) {
        if (row[j] > result.value) result.value = row[j];
        result.has_nan |= row[j] != row[j];
    }
    return result;
}

// Copies the y above `limit`, and their indices, to lists with room for `count` + LANES items.
// Returns how many there are.
inline int64_t select_above(
    const float *row, int64_t count, float largest, float factor, float limit, float *values,
    int32_t *indices) {
    int64_t selected = 0, j = 0;
#if defined(__AVX512F__)
    const __m512i lane =
        _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    for (; j + LANES <= count; j += LANES) {
        const Vec y = (load(row + j) - largest) * factor;
        const __mmask16 keep = _mm512_cmp_ps_mask((__m512)y, _mm512_set1_ps(limit), _CMP_GT_OQ);
        if (keep == 0) continue;
        _mm512_storeu_ps(values + selected, _mm512_maskz_compress_ps(keep, (__m512)y));
        _mm512_storeu_si512(
            indices + selected,
            _mm512_maskz_compress_epi32(keep, _mm512_add_epi32(lane, _mm512_set1_epi32(int(j)))));
        selected += __builtin_popcount(keep);
    }
#endif
    for (; j < count; j++) {
        const float y = (row[j] - largest) * factor;
        values[selected] = y;
        indices[selected] = int32_t(j);
        selected += y > limit;
    }
    return selected;
}

// τ for the selected y. SQUARED: 1.5-entmax, else sparsemax.
template <bool SQUARED>
float find_threshold(const float *values, int64_t count) {
    float threshold = -1;
    for (int step = 0; step < MAX_NEWTON_STEPS; step++) {
        // Σ weight, and minus its derivative: the number of weights, or twice the sum of roots
        Vec total = {}, slope = {};
        int64_t j = 0;
        auto add = [&](Vec y) {
            const Vec root = maximum(y - threshold, Vec{});
            total += SQUARED ? root * root : root;
            slope += SQUARED ? 2.0f * root : (root > 0.0f ? broadcast(1.0f) : Vec{});
        };
        for (; j + LANES <= count; j += LANES) add(load(values + j));
        if (j < count) {
            float rest[LANES];
            for (int lane = 0; lane < LANES; lane++)
                rest[lane] = j + lane < count ? values[j + lane] : -2.0f;
            add(load(rest));
        }
        const float next = threshold + (sum_lanes(total) - 1) / sum_lanes(slope);
        if (!(next > threshold)) break;
        threshold = next;
    }
    return threshold;
}

}  // namespace
