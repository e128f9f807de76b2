// Sparsemax and 1.5-entmax of the rows of a contiguous matrix, and their gradients.
//
// Algorithm: entmax_threshold.h finds the threshold τ of a row by Newton's method, without sorting.
// The gradient needs the weights only: with s = 1 where a weight is positive (sparsemax) or s = √weight
// (1.5-entmax), grad_score = s · (grad − Σ s·grad / Σ s). A row with a NaN is NaN.
#include "entmax_threshold.h"

#include <cstdlib>

namespace {

constexpr int64_t ROWS_PER_TASK = 8;

template <bool SQUARED>
void project_row(
    const float *scores, int64_t count, float *weights, float *values, int32_t *indices) {
    const RowMaximum largest = find_maximum(scores, count);
    if (largest.has_nan || !std::isfinite(largest.value)) {
        for (int64_t j = 0; j < count; j++) weights[j] = NAN;
        return;
    }
    const float factor = SQUARED ? 0.5f : 1.0f;
    const int64_t selected =
        select_above(scores, count, largest.value, factor, -1.0f, values, indices);
    const float threshold = find_threshold<SQUARED>(values, selected);
    memset(weights, 0, count * sizeof(float));
    for (int64_t item = 0; item < selected; item++) {
        const float root = values[item] > threshold ? values[item] - threshold : 0;
        weights[indices[item]] = SQUARED ? root * root : root;
    }
}

template <bool SQUARED>
ALWAYS_INLINE float slope_of(float weight) {
    // NaN stays NaN: it is not equal to 0
    return SQUARED ? std::sqrt(weight) : (weight == 0 ? 0.0f : 1.0f + weight * 0);
}

template <bool SQUARED>
void differentiate_row(const float *weights, const float *grad, int64_t count, float *grad_scores) {
    Vec slopes = {}, products = {};
    int64_t j = 0;
    auto slopes_at = [&](int64_t first) {
        Vec slope;
        for (int lane = 0; lane < LANES; lane++)
            slope[lane] = slope_of<SQUARED>(weights[first + lane]);
        return slope;
    };
    for (; j + LANES <= count; j += LANES) {
        const Vec slope = slopes_at(j);
        slopes += slope;
        products += slope * load(grad + j);
    }
    float slope_sum = sum_lanes(slopes), product_sum = sum_lanes(products);
    for (; j < count; j++) {
        slope_sum += slope_of<SQUARED>(weights[j]);
        product_sum += slope_of<SQUARED>(weights[j]) * grad[j];
    }
    const float mean = product_sum / slope_sum;
    for (j = 0; j + LANES <= count; j += LANES)
        store(grad_scores + j, slopes_at(j) * (load(grad + j) - mean));
    for (; j < count; j++) grad_scores[j] = slope_of<SQUARED>(weights[j]) * (grad[j] - mean);
}

// Calls body(first row, last row) for blocks of rows.
template <class Body>
void for_row_blocks(int64_t rows, int64_t threads, Body body) {
    parallel_for((rows + ROWS_PER_TASK - 1) / ROWS_PER_TASK, int(threads), [&](int64_t task) {
        const int64_t first = task * ROWS_PER_TASK, last = first + ROWS_PER_TASK;
        body(first, last < rows ? last : rows);
    });
}

}  // namespace

// `ok` becomes 1, or 0 if there is no memory.
KERNEL(entmax_rows_forward)
(const float *scores, float *weights, int64_t rows, int64_t count, int64_t squared, int64_t threads,
 int64_t *ok) {
    int64_t has_memory = 1;
    for_row_blocks(rows, threads, [&](int64_t first, int64_t last) {
        const size_t items = count + LANES;
        float *values = static_cast<float *>(malloc(items * (sizeof(float) + sizeof(int32_t))));
        if (!values) {
            __atomic_store_n(&has_memory, 0, __ATOMIC_RELAXED);
            return;
        }
        int32_t *indices = reinterpret_cast<int32_t *>(values + items);
        for (int64_t row = first; row < last; row++)
            (squared ? project_row<true> : project_row<false>)(
                scores + row * count, count, weights + row * count, values, indices);
        free(values);
    });
    *ok = has_memory;
}

KERNEL(entmax_rows_backward)
(const float *weights, const float *grad, float *grad_scores, int64_t rows, int64_t count,
 int64_t squared, int64_t threads) {
    for_row_blocks(rows, threads, [&](int64_t first, int64_t last) {
        for (int64_t row = first; row < last; row++)
            (squared ? differentiate_row<true> : differentiate_row<false>)(
                weights + row * count, grad + row * count, count, grad_scores + row * count);
    });
}
