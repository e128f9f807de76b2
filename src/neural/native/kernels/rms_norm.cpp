// Root-mean-square norm of rows: out = x · f · weight with f = 1 / √(mean(x²) + ε).
//
// x and out are (row, feature), contiguous. A row stays in the first cache between the two loops
// over it. The backward pass computes f again instead of storing it, as x is read anyway. The
// gradient of `weight` is a sum over all rows: each chunk of rows has its own sum, and the sums of
// chunks are added in their order, so the result does not depend on threads.
#include "kernel.h"

namespace {

constexpr long CHUNK_ROWS = 64;

template <class Body>
void for_each_chunk(long rows, int threads, Body body) {
    parallel_for((rows + CHUNK_ROWS - 1) / CHUNK_ROWS, threads, [&](long chunk) {
        const long first = chunk * CHUNK_ROWS;
        body(chunk, first, first + CHUNK_ROWS < rows ? first + CHUNK_ROWS : rows);
    });
}

ALWAYS_INLINE float norm_factor(const float *x, long width, float epsilon) {
    Vec sums = {};
    long d = 0;
    for (; d + LANES <= width; d += LANES) sums += load(x + d) * load(x + d);
    float sum = sum_lanes(sums);
    for (; d < width; d++) sum += x[d] * x[d];
    return 1 / std::sqrt(sum / float(width) + epsilon);
}

}  // namespace

KERNEL(rms_norm_forward)
(const float *x, const float *weight, float *out, long rows, long width, float epsilon,
 long threads) {
    for_each_chunk(rows, int(threads), [&](long, long first, long last) {
        for (long row = first; row < last; row++) {
            const float *vector = x + row * width;
            float *result = out + row * width;
            const float factor = norm_factor(vector, width, epsilon);
#pragma omp simd
            for (long d = 0; d < width; d++) result[d] = vector[d] * factor * weight[d];
        }
    });
}

// With g = grad_out · weight, the gradient of x is f·(g − x·(x·g)·f²/width). `partial` has room for
// one row per chunk of CHUNK_ROWS rows.
KERNEL(rms_norm_backward)
(const float *x, const float *weight, const float *grad_out, float *grad_x, float *grad_weight,
 float *partial, long rows, long width, float epsilon, long threads) {
    for_each_chunk(rows, int(threads), [&](long chunk, long first, long last) {
        float *weight_sum = partial + chunk * width;
        memset(weight_sum, 0, width * sizeof(float));
        for (long row = first; row < last; row++) {
            const float *vector = x + row * width, *grad = grad_out + row * width;
            float *result = grad_x + row * width;
            const float factor = norm_factor(vector, width, epsilon);
            Vec dots = {};
            long d = 0;
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
            for (long d = 0; d < width; d++)
                result[d] = factor * weight[d] * grad[d] - projection * vector[d];
        }
    });
    memcpy(grad_weight, partial, width * sizeof(float));
    const long chunks = (rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
    for (long chunk = 1; chunk < chunks; chunk++)
#pragma omp simd
        for (long d = 0; d < width; d++) grad_weight[d] += partial[chunk * width + d];
}
