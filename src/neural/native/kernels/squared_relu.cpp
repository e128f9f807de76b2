// max(x, 0)², and its gradient 2 · max(x, 0) · grad: one pass over contiguous values.
#include "kernel.h"

namespace {

constexpr int64_t CHUNK = 1 << 14;  // values of one task: 64 kB, which fit in the first caches

template <class Body>
void for_each_chunk(int64_t count, int threads, Body body) {
    parallel_for((count + CHUNK - 1) / CHUNK, threads, [&](int64_t task) {
        const int64_t first = task * CHUNK, last = first + CHUNK < count ? first + CHUNK : count;
        body(first, last);
    });
}

}  // namespace

KERNEL(squared_relu_forward)(const float *x, float *out, int64_t count, int64_t threads) {
    for_each_chunk(count, int(threads), [&](int64_t first, int64_t last) {
#pragma omp simd
        for (int64_t i = first; i < last; i++) {
            // a NaN is not below 0, so it stays
            const float value = x[i] < 0 ? 0 : x[i];
            out[i] = value * value;
        }
    });
}

KERNEL(squared_relu_backward)
(const float *x, const float *grad_out, float *grad_x, int64_t count, int64_t threads) {
    for_each_chunk(count, int(threads), [&](int64_t first, int64_t last) {
#pragma omp simd
        for (int64_t i = first; i < last; i++) {
            const float value = x[i] < 0 ? 0 : x[i];
            grad_x[i] = 2 * value * grad_out[i];
        }
    });
}
