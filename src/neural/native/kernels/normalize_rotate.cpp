// Query-key norm and rotary positions: out = rotate(x / √(mean(x²) + ε)) of every vector.
//
// x is (example, position, head, feature) with any strides, but features next to each other; out is
// contiguous. Feature i of a head is rotated together with feature i + D/2 by the angle of its
// position; cos and sin are (position, pair) and shared by examples and heads. Without pairs there
// is no rotation, without `normalize` no norm. A vector stays in the first cache between the two
// loops over it, so memory is read and written once. Sums are taken lane by lane, in an order that
// depends on the width alone: results do not depend on threads.
#include "kernel.h"

namespace {

// (example, position, head, feature); `strides` of the first three in floats.
struct Vectors {
    float *data;
    int64_t example_stride, position_stride, head_stride;
    float *at(int64_t b, int64_t t, int64_t h) const {
        return data + b * example_stride + t * position_stride + h * head_stride;
    }
};

struct Sizes {
    int64_t examples, time, heads, width, pairs;
};

constexpr int64_t TASK_FLOATS = 1 << 13;  // values of one task, 32 kB

// Calls body(b, t) for every example and position; a task is a few positions.
template <class Body>
void for_each_position(const Sizes &sizes, int threads, Body body) {
    const int64_t positions = sizes.examples * sizes.time, features = sizes.heads * sizes.width;
    const int64_t per_task = features < TASK_FLOATS ? TASK_FLOATS / features : 1;
    parallel_for((positions + per_task - 1) / per_task, threads, [&](int64_t task) {
        const int64_t first = task * per_task;
        const int64_t last = first + per_task < positions ? first + per_task : positions;
        for (int64_t position = first; position < last; position++)
            body(position / sizes.time, position % sizes.time);
    });
}

ALWAYS_INLINE float dot(const float *x, const float *y, int64_t width) {
    Vec sums = {};
    int64_t d = 0;
    for (; d + LANES <= width; d += LANES) sums += load(x + d) * load(y + d);
    float sum = sum_lanes(sums);
    for (; d < width; d++) sum += x[d] * y[d];
    return sum;
}

ALWAYS_INLINE float norm_factor(const float *x, int64_t width, float epsilon) {
    return 1 / std::sqrt(dot(x, x, width) / float(width) + epsilon);
}

// (left, right) rotated by the angles; `direction` −1 is the inverse rotation.
ALWAYS_INLINE void rotate(
    const float *x, const float *cos, const float *sin, int64_t pairs, float factor,
    float direction, float *out) {
    const float *left = x, *right = x + pairs;
    int64_t d = 0;
    for (; d + LANES <= pairs; d += LANES) {
        const Vec c = load(cos + d) * factor, s = load(sin + d) * (factor * direction);
        const Vec l = load(left + d), r = load(right + d);
        store(out + d, l * c - r * s);
        store(out + pairs + d, l * s + r * c);
    }
    for (; d < pairs; d++) {
        const float c = cos[d] * factor, s = sin[d] * (factor * direction);
        const float l = left[d], r = right[d];
        out[d] = l * c - r * s;
        out[pairs + d] = l * s + r * c;
    }
}

}  // namespace

KERNEL(normalize_rotate_forward)
(float *x, int64_t example_stride, int64_t position_stride, int64_t head_stride, const float *cos,
 const float *sin, float *out, int64_t examples, int64_t time, int64_t heads, int64_t width,
 int64_t pairs, int64_t normalize, float epsilon, int64_t threads) {
    const Vectors inputs = {x, example_stride, position_stride, head_stride};
    const Sizes sizes = {examples, time, heads, width, pairs};
    for_each_position(sizes, int(threads), [&](int64_t b, int64_t t) {
        for (int64_t h = 0; h < heads; h++) {
            const float *vector = inputs.at(b, t, h);
            float *result = out + ((b * time + t) * heads + h) * width;
            const float factor = normalize ? norm_factor(vector, width, epsilon) : 1;
            if (pairs > 0)
                rotate(vector, cos + t * pairs, sin + t * pairs, pairs, factor, 1, result);
            else
                for (int64_t d = 0; d < width; d++) result[d] = vector[d] * factor;
        }
    });
}

// Gradient of x. With g the gradient after the inverse rotation and f the factor of the norm, it is
// f·(g − x·(x·g)·f²/D): the component along x vanishes, because out does not depend on the length.
KERNEL(normalize_rotate_backward)
(float *x, int64_t example_stride, int64_t position_stride, int64_t head_stride, const float *cos,
 const float *sin, float *grad_out, int64_t grad_example_stride, int64_t grad_position_stride,
 int64_t grad_head_stride, float *grad_x, int64_t examples, int64_t time, int64_t heads,
 int64_t width, int64_t pairs, int64_t normalize, float epsilon, int64_t threads) {
    const Vectors inputs = {x, example_stride, position_stride, head_stride};
    const Vectors grads = {
        grad_out, grad_example_stride, grad_position_stride, grad_head_stride};
    const Sizes sizes = {examples, time, heads, width, pairs};
    for_each_position(sizes, int(threads), [&](int64_t b, int64_t t) {
        for (int64_t h = 0; h < heads; h++) {
            const float *vector = inputs.at(b, t, h), *grad = grads.at(b, t, h);
            float *result = grad_x + ((b * time + t) * heads + h) * width;
            if (pairs > 0)
                rotate(grad, cos + t * pairs, sin + t * pairs, pairs, 1, -1, result);
            else
                memcpy(result, grad, width * sizeof(float));
            if (!normalize) continue;
            const float factor = norm_factor(vector, width, epsilon);
            const float projection =
                dot(vector, result, width) * factor * factor / float(width) * factor;
            for (int64_t d = 0; d < width; d++)
                result[d] = factor * result[d] - projection * vector[d];
        }
    });
}
