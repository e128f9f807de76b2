// Root-mean-square norm of rows: out = x · f · weight with f = 1 / √(mean(x²) + ε).
//
// x and out are (row, feature), contiguous. A row stays in the first cache between the two loops
// over it. The backward pass computes f again instead of storing it, as x is read anyway. The
// gradient of `weight` is a sum over all rows: each chunk of rows has its own sum, and the sums of
// chunks are added in their order, so the result does not depend on threads.
#include "kernel.h"

namespace {

constexpr int64_t CHUNK_ROWS = 64;

template <class Body>
void for_each_chunk(int64_t rows, int threads, Body body) {
    parallel_for((rows + CHUNK_ROWS - 1) / CHUNK_ROWS, threads, [&](int64_t chunk) {
        const int64_t first = chunk * CHUNK_ROWS;
        body(chunk, first, first + CHUNK_ROWS < rows ? first + CHUNK_ROWS : rows);
    });
}

ALWAYS_INLINE float norm_factor(const float *x, int64_t width, float epsilon) {
    Vec sums = {};
    int64_t d = 0;
    for (; d + LANES <= width; d += LANES) sums += load(x + d) * load(x + d);
    float sum = sum_lanes(sums);
    for (; d < width; d++) sum += x[d] * x[d];
    return 1 / std::sqrt(sum / float(width) + epsilon);
}

}  // namespace

KERNEL(rms_norm_forward)
(const float *x, const float *weight, float *out, int64_t rows, int64_t width, float epsilon,
 int64_t threads) {
    for_each_chunk(rows, int(threads), [&](int64_t, int64_t first, int64_t last) {
        for (int64_t row = first; row < last; row++) {
            const float *vector = x + row * width;
            float *result = out + row * width;
            const float factor = norm_factor(vector, width, epsilon);
#pragma omp simd
            for (int64_t d = 0; d < width; d++) result[d] = vector[d] * factor * weight[d];
        }
    });
}

// With g = grad_out · weight, the gradient of x is f·(g − x·(x·g)·f²/width). `partial` has room for
// one row per chunk of CHUNK_ROWS rows.
KERNEL(rms_norm_backward)
(const float *x, const float *weight, const float *grad_out, float *grad_x, float *grad_weight,
 float *partial, int64_t rows, int64_t width, float epsilon, int64_t threads) {
    for_each_chunk(rows, int(threads), [&](int64_t chunk, int64_t first, int64_t last) {
        float *weight_sum = partial + chunk * width;
        memset(weight_sum, 0, width * sizeof(float));
        for (int64_t row = first; row < last; row++) {
            const float *vector = x + row * width, *grad = grad_out + row * width;
            float *result = grad_x + row * width;
            const float factor = norm_factor(vector, width, epsilon);
            Vec dots = {};
            int64_t d = 0;
            for (; d + LANES <= width; d += LANES) {
                const Vec value = load(vector + d), product = load(grad + d) * value;
                dots += product * load(weight + d);
                store(weight_sum + d, load(weight_sum + d) + product * factor);
            }
            float dot = sum_lanes(dots);
            for (; d < width; d++) {
                dot += vector[d] * grad[d] * weight[d];
                weight_sum[d] += vector[d] * grad[d] * factor;
            }
            const float projection = dot * factor * factor / float(width) * factor;
#pragma omp simd
            for (int64_t d = 0; d < width; d++)
                result[d] = factor * weight[d] * grad[d] - projection * vector[d];
        }
    });
    memcpy(grad_weight, partial, width * sizeof(float));
    const int64_t chunks = (rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
    for (int64_t chunk = 1; chunk < chunks; chunk++)
#pragma omp simd
        for (int64_t d = 0; d < width; d++) grad_weight[d] += partial[chunk * width + d];
}
