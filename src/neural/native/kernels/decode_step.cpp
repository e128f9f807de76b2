// One decoding step of a GPT-like network: reads new tokens of each text and computes the logits of
// the next one. A sample is one of the texts that are generated together; a row is one new token of
// one sample (row = sample · count + index); all rows go through the network together.
//
// Algorithm. A single parallel region per call; its threads meet at a barrier after each stage:
//     norm → query/key/value projection → attention → output projection → norm → up → down
// Each matrix is read once per tile of rows, in the order in which it lies in memory.
//
// Data layout. Everything that is multiplied lies in groups of GROUP = 32 outputs:
//     float weights  (group, feature, 32 outputs)
//     int8 weights   (group, quad of features, 32 outputs, 4 features), times a scale per output
//     keys     (block, feature, 32 positions)       a score is an output, a feature an input
//     values   (block of features, position, 32 features)   a feature is an output, a weight an input
// An accumulator holds one output per lane, an input is broadcast to all lanes, and no sum goes
// across lanes. So one function, `multiply_tile`, computes linear maps, scores and weighted sums of
// values. Outputs are padded to whole groups and int8 features to whole quads: padded weights and
// biases are 0. A padded key gives a score that is not read.
//
// Exactness. Activations are not rounded to 8 bits. Without VNNI, int8 weights are converted to
// floats in registers. With VNNI, a row of inputs is converted to fixed-point numbers of 24 bits,
// relative to its largest value: that is the precision of a float. They are stored as three planes
// of bytes, each plane is multiplied in integers, and those sums are exact. So the result differs
// from torch's with the dequantized weights only by rounding of the last digits. (8-bit activations
// would be faster, but their rounding is a jump: a difference in the last digit between two decoders
// would grow to the size of that rounding, and generated texts would differ.)
#include "kernel.h"
#if defined(__AVX512VNNI__)
#include <immintrin.h>
#endif

namespace {

constexpr int GROUP = 32;
constexpr int GROUP_VECS = GROUP / LANES;
// Rows that share one reading of a weight: as many as the registers can accumulate.
constexpr int MAX_TILE = LANES == 16 ? 8 : 4;
// Bytes ahead of the current weights that are requested from memory: the processor's own prefetch
// stops at the end of each page of 4 kB.
constexpr int64_t PREFETCH_BYTES = 2048;
constexpr int64_t CACHE_LINE = 64;

enum NormKind : int64_t { NO_NORM = 0, RMS_NORM = 1, LAYER_NORM = 2 };
enum Activation : int64_t { NO_ACTIVATION = -1, RELU = 0, GELU = 1, SQUARED_RELU = 2, SILU = 3 };

// The same linear map of all layers; the layer is the first axis of each array.
struct LinearMap {
    const void *weights;         // of all groups, as described above
    const float *scale;          // (layer, padded outputs): factors of int8 weights
    const int32_t *weight_sums;  // (layer, padded outputs): sums of int8 weights
    const float *bias;           // (layer, padded outputs)
    int64_t groups;
    int64_t width;  // features of the input; of int8 weights padded to whole quads
};

}  // namespace

// Mirrors `NetworkArguments` in nn/kernels/decode_step.py. Sizes and weights of a network.
struct DecodeNetwork {
    int64_t layers, heads, kv_heads, head_width, width, context, rotary_pairs;
    int64_t norm_kind, final_norm_kind, qk_norm, activation, is_int8;
    double epsilon, final_epsilon;
    const float *token_table;     // (id, width)
    const float *position_table;  // (position, width)
    const float *cosine, *sine;   // (position, pair of features)
    const float *norm_scale, *norm_shift;  // (layer, before attention and feed-forward, width)
    const float *final_scale, *final_shift;
    LinearMap qkv, attention_output, up, down, output;
};

// Mirrors `StateArguments` in nn/kernels/decode_step.py. Memory that a step writes.
struct DecodeState {
    float *keys;    // (layer, sample, key/value head, block, feature, GROUP positions)
    float *values;  // (layer, sample, key/value head, block of features, position, GROUP)
    float *x;           // (row, padded width): the residual stream
    float *normed;      // (row or thread, padded width)
    float *projected;   // (row, padded queries, keys and values)
    float *attended;    // (row, heads · head width padded to a quad)
    float *hidden;      // (row, padded feed-forward width)
    float *scratch;     // (thread, scratch_size)
    uint8_t *planes;    // (row or thread, plane_size): inputs as fixed-point numbers
    float *plane_scale;  // (row or thread)
    int64_t scratch_size, plane_size;
};

namespace {

ALWAYS_INLINE int64_t pad(int64_t count) { return (count + GROUP - 1) / GROUP * GROUP; }

// Requests bytes from memory. A request never fails, so that it may be beyond the end of an array.
ALWAYS_INLINE void prefetch_bytes(const void *p, int64_t size) {
    for (int64_t offset = 0; offset < size; offset += CACHE_LINE)
        __builtin_prefetch(static_cast<const char *>(p) + offset);
}

// Float weights, feature by feature.
struct FloatWeights {
    using Weight = float;
    static constexpr int FEATURES = 1;  // that lie together
    Vec weights;
    explicit FloatWeights(const float *p) : weights(load(p)) {}
    Vec operator[](int) const { return weights; }
};

// int8 weights: a lane holds four features of one output, which shifts separate.
struct Int8Weights {
    using Weight = int8_t;
    static constexpr int FEATURES = 4;
    VecInt quads;
    explicit Int8Weights(const int8_t *p) { memcpy(&quads, p, sizeof quads); }
    ALWAYS_INLINE Vec operator[](int feature) const {
        return __builtin_convertvector((quads << (24 - 8 * feature)) >> 24, Vec);
    }
};

// One group of outputs for ROWS inputs: Σ over features of weights[feature] · x[row][feature].
// Calls write(row, first output of the vector, sums). VECS vectors of outputs are accumulated at a
// time; UNROLL steps have accumulators of their own, so that enough additions are independent.
template <class Weights, int ROWS, int VECS, int UNROLL, class Write>
ALWAYS_INLINE void multiply_tile(
    const typename Weights::Weight *weights, const float *x, int64_t x_stride, int64_t width,
    Write write) {
    constexpr int FEATURES = Weights::FEATURES;
    for (int first = 0; first < GROUP_VECS; first += VECS) {
        const auto *column = weights + first * LANES * FEATURES;
        Vec sums[UNROLL][ROWS][VECS] = {};
        const auto add_features = [&](int64_t i, int u) __attribute__((always_inline)) {
            const auto *p = column + i * GROUP;
#pragma GCC unroll 8
            for (int feature = 0; feature < FEATURES; feature++) {
                Vec weight[VECS];
#pragma GCC unroll 8
                for (int v = 0; v < VECS; v++)
                    weight[v] = Weights(p + v * LANES * FEATURES)[feature];
#pragma GCC unroll 8
                for (int row = 0; row < ROWS; row++) {
                    const Vec input = broadcast(x[row * x_stride + i + feature]);
#pragma GCC unroll 8
                    for (int v = 0; v < VECS; v++) sums[u][row][v] += weight[v] * input;
                }
            }
        };
        int64_t i = 0;
        for (; i + UNROLL * FEATURES <= width; i += UNROLL * FEATURES) {
            prefetch_bytes(
                reinterpret_cast<const char *>(column + i * GROUP) + PREFETCH_BYTES,
                UNROLL * FEATURES * GROUP * sizeof(*column));
#pragma GCC unroll 8
            for (int u = 0; u < UNROLL; u++) add_features(i + u * FEATURES, u);
        }
        for (; i < width; i += FEATURES) add_features(i, 0);
#pragma GCC unroll 8
        for (int row = 0; row < ROWS; row++) {
#pragma GCC unroll 8
            for (int v = 0; v < VECS; v++) {
                Vec total = sums[0][row][v];
#pragma GCC unroll 8
                for (int u = 1; u < UNROLL; u++) total += sums[u][row][v];
                write(row, (first + v) * LANES, total);
            }
        }
    }
}

// `multiply_tile` for any number of rows, in tiles.
template <class Weights, class Write>
ALWAYS_INLINE void multiply_group(
    const typename Weights::Weight *weights, const float *x, int64_t x_stride, int64_t rows,
    int64_t width, Write write) {
    int64_t first = 0;
    const auto write_row = [&](int64_t row, int64_t output, Vec sums) {
        write(first + row, output, sums);
    };
    for (; first + MAX_TILE <= rows; first += MAX_TILE)
        multiply_tile<Weights, MAX_TILE, 2, 1>(
            weights, x + first * x_stride, x_stride, width, write_row);
    if (MAX_TILE > 4 && first + 4 <= rows) {
        multiply_tile<Weights, 4, 2, 1>(weights, x + first * x_stride, x_stride, width, write_row);
        first += 4;
    }
    if (first + 2 <= rows) {
        multiply_tile<Weights, 2, 2, 2>(weights, x + first * x_stride, x_stride, width, write_row);
        first += 2;
    }
    if (first < rows)
        multiply_tile<Weights, 1, GROUP_VECS, 8 / GROUP_VECS>(
            weights, x + first * x_stride, x_stride, width, write_row);
}

#if defined(__AVX512VNNI__)
constexpr int PLANES = 3;  // bytes of a fixed-point number
// Somewhat below 2²³, which rounding of the factor must not reach.
constexpr float FIXED_POINT_MAX = (1 << 23) - 4;

// Converts a row to fixed-point numbers: x ≈ scale · (n − 2²³), 0 < n < 2²⁴. Byte b of all numbers
// is plane b, `width` bytes. The scale is NaN if a value is not finite.
void convert_to_planes(const float *x, int64_t width, uint8_t *planes, float *scale) {
    Vec largest_lanes = {}, nan_lanes = {};
    for (int64_t i = 0; i < width; i += LANES) {
        const int64_t lanes = width - i < LANES ? width - i : LANES;
        const Vec value = load_first(x + i, lanes);
        largest_lanes = maximum(largest_lanes, value < 0.0f ? -value : value);
        nan_lanes += value * 0.0f;
    }
    const float largest = max_lanes(largest_lanes);
    const float factor = largest > 0 ? FIXED_POINT_MAX / largest : 0;
    *scale = largest / FIXED_POINT_MAX + sum_lanes(nan_lanes);
    for (int64_t i = 0; i < width; i += LANES) {
        const int64_t lanes = width - i < LANES ? width - i : LANES;
        const __mmask16 mask = __mmask16((1u << lanes) - 1);
        const __m512 scaled = (__m512)(load_first(x + i, lanes) * factor);
        __m512i number = _mm512_maskz_cvtps_epi32(0xFFFF, scaled);
        number = _mm512_add_epi32(number, _mm512_set1_epi32(1 << 23));
        for (int b = 0; b < PLANES; b++) {
            _mm512_mask_cvtepi32_storeu_epi8(planes + b * width + i, mask, number);
            number = _mm512_maskz_srli_epi32(0xFFFF, number, 8);
        }
    }
}

// Adds the products of four unsigned inputs and four signed weights to each lane of the sums. As
// assembler, because GCC 12 copies the sums around the intrinsic, which doubles the time.
ALWAYS_INLINE VecInt add_quad_products(VecInt sums, VecInt inputs, VecInt weights) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(inputs), "v"(weights));
    return sums;
}

// One group of outputs for ROWS inputs in planes; like `multiply_tile`.
template <int ROWS, class Write>
ALWAYS_INLINE void multiply_planes(
    const int8_t *weights, const int32_t *weight_sums, const uint8_t *planes, int64_t plane_size,
    int64_t width, Write write) {
    VecInt sums[ROWS][PLANES][GROUP_VECS] = {};
    for (int64_t i = 0; i < width; i += 4) {
        prefetch_bytes(weights + i * GROUP + PREFETCH_BYTES, 4 * GROUP);
        VecInt quads[GROUP_VECS];
#pragma GCC unroll 8
        for (int v = 0; v < GROUP_VECS; v++)
            memcpy(&quads[v], weights + (i * GROUP + v * 4 * LANES), sizeof(VecInt));
#pragma GCC unroll 8
        for (int row = 0; row < ROWS; row++) {
#pragma GCC unroll 8
            for (int b = 0; b < PLANES; b++) {
                int32_t four_inputs;
                memcpy(&four_inputs, planes + row * plane_size + b * width + i, 4);
                const VecInt inputs = four_inputs - VecInt{};
#pragma GCC unroll 8
                for (int v = 0; v < GROUP_VECS; v++)
                    sums[row][b][v] = add_quad_products(sums[row][b][v], inputs, quads[v]);
            }
        }
    }
#pragma GCC unroll 8
    for (int row = 0; row < ROWS; row++) {
#pragma GCC unroll 8
        for (int v = 0; v < GROUP_VECS; v++) {
            // the last plane has the offset of 2²³ = 128 · 2¹⁶
            VecInt offset;
            memcpy(&offset, weight_sums + v * LANES, sizeof offset);
            Vec total = __builtin_convertvector(sums[row][2][v] - offset * 128, Vec) * 65536.0f;
            total += __builtin_convertvector(sums[row][1][v], Vec) * 256.0f;
            total += __builtin_convertvector(sums[row][0][v], Vec);
            write(row, v * LANES, total);
        }
    }
}

// `multiply_planes` for any number of rows, in tiles.
template <class Write>
ALWAYS_INLINE void multiply_plane_rows(
    const int8_t *weights, const int32_t *weight_sums, const uint8_t *planes, const float *scale,
    int64_t plane_size, int64_t rows, int64_t width, Write write) {
    int64_t first = 0;
    const auto write_row = [&](int64_t row, int64_t output, Vec sums) {
        write(first + row, output, sums * scale[first + row]);
    };
    for (; first + 4 <= rows; first += 4)
        multiply_planes<4>(
            weights, weight_sums, planes + first * plane_size, plane_size, width, write_row);
    for (; first < rows; first++)
        multiply_planes<1>(
            weights, weight_sums, planes + first * plane_size, plane_size, width, write_row);
}
#endif

// ½ x (1 + erf(x / √2)). erfc(z) = t · exp(−z² + P(t)) with t = 1 / (1 + z / 2), z ≥ 0, has a
// relative error of 1.2e-7 (Numerical Recipes, 6.2, erfcc).
ALWAYS_INLINE Vec gelu(Vec x) {
    const Vec z = (x < 0.0f ? -x : x) * 0.70710678f;
    const Vec t = 1.0f / (1.0f + 0.5f * z);
    Vec p = 0.17087277f * t - 0.82215223f;
    p = p * t + 1.48851587f;
    p = p * t - 1.13520398f;
    p = p * t + 0.27886807f;
    p = p * t - 0.18628806f;
    p = p * t + 0.09678418f;
    p = p * t + 0.37409196f;
    p = p * t + 1.00002368f;
    p = p * t - 1.26551223f;
    const Vec half_erfc = 0.5f * t * exp(p - z * z);
    return x * (x < 0.0f ? half_erfc : 1.0f - half_erfc);
}

ALWAYS_INLINE Vec activate(Vec x, int64_t activation) {
    if (activation == GELU) return gelu(x);
    if (activation == SILU) return x / (1.0f + exp(-x));
    const Vec positive = x < 0.0f ? Vec{} : x;  // a NaN is not below 0, so it stays
    return activation == SQUARED_RELU ? positive * positive : positive;
}

// LayerNorm or RMSNorm of one row.
void normalize_row(
    const float *x, int64_t kind, const float *scale, const float *shift, double epsilon,
    int64_t width, float *out) {
    float mean = 0;
    if (kind == LAYER_NORM) {
        Vec sum = {};
        int64_t i = 0;
        for (; i + LANES <= width; i += LANES) sum += load(x + i);
        mean = sum_lanes(sum);
        for (; i < width; i++) mean += x[i];
        mean /= float(width);
    }
    Vec sum = {};
    int64_t i = 0;
    for (; i + LANES <= width; i += LANES) {
        const Vec centered = load(x + i) - mean;
        sum += centered * centered;
    }
    float square = sum_lanes(sum);
    for (; i < width; i++) square += (x[i] - mean) * (x[i] - mean);
    const float factor = 1 / sqrtf(square / float(width) + float(epsilon));
    for (i = 0; i + LANES <= width; i += LANES)
        store(out + i, (load(x + i) - mean) * factor * load(scale + i) + load(shift + i));
    for (; i < width; i++) out[i] = (x[i] - mean) * factor * scale[i] + shift[i];
}

// Scales a query or key to length √D if `normalize`, and rotates pairs (i, pairs + i) of features.
void normalize_rotate(
    float *x, int64_t width, bool normalize, const float *cosine, const float *sine,
    int64_t pairs) {
    if (normalize) {
        float square = 0;
#pragma omp simd reduction(+ : square)
        for (int64_t i = 0; i < width; i++) square += x[i] * x[i];
        const float factor = 1 / sqrtf(square / float(width) + 1e-6f);
        for (int64_t i = 0; i < width; i++) x[i] *= factor;
    }
#pragma omp simd
    for (int64_t i = 0; i < pairs; i++) {
        const float left = x[i], right = x[pairs + i];
        x[i] = left * cosine[i] - right * sine[i];
        x[pairs + i] = left * sine[i] + right * cosine[i];
    }
}

// One call of the kernel; each thread runs `run`.
class Step {
   public:
    Step(
        const DecodeNetwork &network, const DecodeState &state, const int64_t *ids, int64_t samples,
        int64_t count, int64_t position, float *logits, Barrier &barrier, int64_t threads)
        : net(network),
          state(state),
          ids(ids),
          samples(samples),
          count(count),
          position(position),
          rows(samples * count),
          logits(logits),
          barrier(barrier),
          threads(threads) {}

    template <class Weights>
    void run(int64_t thread) const {
        const int64_t attended_width = net.attention_output.width;
        embed(thread);
        barrier.wait();
        for (int64_t layer = 0; layer < net.layers; layer++) {
            const float *scale = net.norm_scale + layer * 2 * net.width;
            const float *shift = net.norm_shift + layer * 2 * net.width;
            const float *normed =
                normalize(thread, all_rows(), net.norm_kind, scale, shift, net.epsilon);
            multiply<Weights>(
                thread, net.qkv, layer, normed, pad(net.width), rows, NO_ACTIVATION, false,
                state.projected);
            attend(thread, layer);
            barrier.wait();
            multiply<Weights>(
                thread, net.attention_output, layer, state.attended, attended_width, rows,
                NO_ACTIVATION, true, state.x);
            normed = normalize(
                thread, all_rows(), net.norm_kind, scale + net.width, shift + net.width,
                net.epsilon);
            multiply<Weights>(
                thread, net.up, layer, normed, pad(net.width), rows, net.activation, false,
                state.hidden);
            multiply<Weights>(
                thread, net.down, layer, state.hidden, net.up.groups * GROUP, rows, NO_ACTIVATION,
                true, state.x);
        }
        if (logits == nullptr) return;
        const RowSelection last_rows = {count - 1, count, samples};  // of each sample
        const float *normed = normalize(
            thread, last_rows, net.final_norm_kind, net.final_scale, net.final_shift,
            net.final_epsilon);
        multiply<Weights>(
            thread, net.output, 0, normed, pad(net.width), samples, NO_ACTIVATION, false, logits);
    }

   private:
    // The rows first, first + step, …
    struct RowSelection {
        int64_t first, step, num_rows;
    };
    RowSelection all_rows() const { return {0, 1, rows}; }

    // x = token embedding + position embedding; padded features are 0.
    void embed(int64_t thread) const {
        const int64_t width = net.width, stride = pad(width);
        for (int64_t row = thread; row < rows; row += threads) {
            const float *token = net.token_table + ids[row] * width;
            const float *place = net.position_table + (position + row % count) * width;
            float *x = state.x + row * stride;
            for (int64_t i = 0; i < width; i++) x[i] = token[i] + place[i];
            for (int64_t i = width; i < stride; i++) x[i] = 0;
        }
    }

    // Calls body(row, slot) for this thread's share of rows. A single row is computed by every
    // thread for itself, in a slot of its own: that takes less time than waiting for another
    // thread. With more rows, a row is its slot.
    template <class Body>
    ALWAYS_INLINE void for_each_row(int64_t thread, int64_t num_rows, Body body) const {
        if (num_rows == 1) return body(0, thread);
        for (int64_t row = thread; row < num_rows; row += threads) body(row, row);
    }

    // Norm of selected rows of x. Returns the first slot that this thread reads; `multiply` waits
    // for the other threads.
    const float *normalize(
        int64_t thread, RowSelection selected, int64_t kind, const float *scale, const float *shift,
        double epsilon) const {
        const int64_t stride = pad(net.width);
        for_each_row(thread, selected.num_rows, [&](int64_t row, int64_t slot) {
            const float *x = state.x + (selected.first + row * selected.step) * stride;
            float *out = state.normed + slot * stride;
            if (kind == NO_NORM)
                memcpy(out, x, net.width * sizeof(float));
            else
                normalize_row(x, kind, scale, shift, epsilon, net.width, out);
        });
        return state.normed + (selected.num_rows == 1 ? thread * stride : 0);
    }

    // A linear map of rows of x, with an activation, written to `out` or added to it. A thread
    // computes its share of the groups for all rows; then the threads wait for each other.
    template <class Weights>
    void multiply(
        int64_t thread, const LinearMap &map, int64_t layer, const float *x, int64_t x_stride,
        int64_t num_rows, int64_t activation, bool add, float *out) const {
        const int64_t outputs = map.groups * GROUP;
        const int64_t first = thread * map.groups / threads;
        const int64_t last = (thread + 1) * map.groups / threads;
        const auto *weights = static_cast<const typename Weights::Weight *>(map.weights) +
                              layer * outputs * map.width;
        const float *bias = map.bias + layer * outputs, *scale = map.scale + layer * outputs;
        int64_t group;
        const auto write = [&](int64_t row, int64_t output,
                               Vec sums) __attribute__((always_inline)) {
            output += group * GROUP;
            if (Weights::FEATURES > 1) sums *= load(scale + output);
            float *target = out + row * outputs + output;
            sums += load(bias + output);
            store(target, add ? load(target) + sums : sums);
        };
#if defined(__AVX512VNNI__)
        if (Weights::FEATURES > 1) {
            for_each_row(thread, num_rows, [&](int64_t row, int64_t slot) {
                convert_to_planes(
                    x + row * x_stride, map.width, state.planes + slot * state.plane_size,
                    state.plane_scale + slot);
            });
            if (num_rows > 1) barrier.wait();
            const int32_t *weight_sums = map.weight_sums + layer * outputs;
            const int64_t slot = num_rows == 1 ? thread : 0;
            for (group = first; group < last; group++)
                multiply_plane_rows(
                    reinterpret_cast<const int8_t *>(weights) + group * GROUP * map.width,
                    weight_sums + group * GROUP, state.planes + slot * state.plane_size,
                    state.plane_scale + slot, state.plane_size, num_rows, map.width, write);
        } else
#endif
        {
            if (num_rows > 1) barrier.wait();
            for (group = first; group < last; group++)
                multiply_group<Weights>(
                    weights + group * GROUP * map.width, x, x_stride, num_rows, map.width, write);
        }
        if (activation != NO_ACTIVATION)
            for (int64_t row = 0; row < num_rows; row++)
                for (int64_t i = first * GROUP; i < last * GROUP; i += LANES) {
                    float *target = out + row * outputs + i;
                    store(target, activate(load(target), activation));
                }
        barrier.wait();
    }

    // Caches keys and values of the new positions, then attends. A task is a key/value head of a
    // sample with the query heads that share it.
    void attend(int64_t thread, int64_t layer) const {
        const int64_t tasks = samples * net.kv_heads;
        for (int64_t task = thread; task < tasks; task += threads) {
            const int64_t sample = task / net.kv_heads, group = task % net.kv_heads;
            if (task + threads < tasks) prefetch_cache(layer * tasks + task + threads);
            float *keys = keys_at(layer * tasks + task), *values = values_at(layer * tasks + task);
            append_to_cache(sample, group, keys, values);
            attend_group(thread, sample, group, keys, values);
        }
    }

    // Keys and values of a key/value head of a sample in a layer.
    float *keys_at(int64_t index) const {
        return state.keys + index * pad(net.context) * net.head_width;
    }
    float *values_at(int64_t index) const {
        return state.values + index * pad(net.context) * pad(net.head_width);
    }

    // Requests what the next task reads first: the newest keys, which it also writes, and the
    // first keys and values. `multiply_tile` requests the rest.
    void prefetch_cache(int64_t index) const {
        const float *keys = keys_at(index), *values = values_at(index);
        prefetch_bytes(keys, PREFETCH_BYTES);
        prefetch_bytes(keys + position / GROUP * GROUP * net.head_width,
                       GROUP * net.head_width * sizeof(float));
        for (int64_t d = 0; d < net.head_width; d += GROUP)
            prefetch_bytes(values + d * pad(net.context), PREFETCH_BYTES);
    }

    void append_to_cache(int64_t sample, int64_t group, float *keys, float *values) const {
        const int64_t width = net.head_width, pairs = net.rotary_pairs;
        const int64_t stride = net.qkv.groups * GROUP, positions = pad(net.context);
        for (int64_t index = 0; index < count; index++) {
            const int64_t place = position + index;
            float *key =
                state.projected + (sample * count + index) * stride + (net.heads + group) * width;
            const float *value = key + net.kv_heads * width;
            normalize_rotate(
                key, width, net.qk_norm, net.cosine + place * pairs, net.sine + place * pairs,
                pairs);
            float *column = keys + place / GROUP * GROUP * width + place % GROUP;
            for (int64_t d = 0; d < width; d++) column[d * GROUP] = key[d];
            for (int64_t d = 0; d < width; d += GROUP) {
                const int64_t features = width - d < GROUP ? width - d : GROUP;
                memcpy(
                    values + (d * positions + place * GROUP), value + d, features * sizeof(float));
            }
        }
    }

    // Softmax attention of all new queries that share a key/value head, in tiles of queries.
    void attend_group(
        int64_t thread, int64_t sample, int64_t group, const float *keys,
        const float *values) const {
        const int64_t width = net.head_width, pairs = net.rotary_pairs, padded = pad(width);
        const int64_t positions = pad(net.context), group_size = net.heads / net.kv_heads;
        const float softmax_scale = 1 / sqrtf(float(width));
        float *queries = state.scratch + thread * state.scratch_size;  // (query, feature)
        float *sums = queries + MAX_TILE * padded;                     // (query, feature)
        float *weights = sums + MAX_TILE * padded;                     // (query, position)
        const int64_t num_queries = count * group_size;
        for (int64_t first = 0; first < num_queries; first += MAX_TILE) {
            const int64_t tile = num_queries - first < MAX_TILE ? num_queries - first : MAX_TILE;
            float totals[MAX_TILE];
            for (int64_t q = 0; q < tile; q++) {
                const int64_t index = (first + q) / group_size;
                const int64_t place = position + index;
                memcpy(queries + q * padded, query_at(sample, group, first + q),
                       width * sizeof(float));
                normalize_rotate(
                    queries + q * padded, width, net.qk_norm, net.cosine + place * pairs,
                    net.sine + place * pairs, pairs);
            }
            // keys up to the position of the last query
            const int64_t num_keys = position + (first + tile - 1) / group_size + 1;
            for (int64_t block = 0; block < num_keys; block += GROUP)
                multiply_group<FloatWeights>(
                    keys + block * width, queries, padded, tile, width,
                    [&](int64_t q, int64_t output, Vec scores) {
                        store(weights + q * positions + block + output, scores * softmax_scale);
                    });
            for (int64_t q = 0; q < tile; q++)
                totals[q] = exponentiate(
                    weights + q * positions, position + (first + q) / group_size + 1, num_keys);
            for (int64_t d = 0; d < padded; d += GROUP)
                multiply_group<FloatWeights>(
                    values + d * positions, weights, positions, tile, num_keys,
                    [&](int64_t q, int64_t output, Vec values) {
                        store(sums + q * padded + d + output, values);
                    });
            for (int64_t q = 0; q < tile; q++) {
                const int64_t row = sample * count + (first + q) / group_size;
                const int64_t head = group * group_size + (first + q) % group_size;
                float *out = state.attended + row * net.attention_output.width + head * width;
                const float factor = 1 / totals[q];
                for (int64_t d = 0; d < width; d++) out[d] = sums[q * padded + d] * factor;
            }
        }
    }

    const float *query_at(int64_t sample, int64_t group, int64_t query) const {
        const int64_t group_size = net.heads / net.kv_heads,
                      row = sample * count + query / group_size;
        const int64_t head = group * group_size + query % group_size;
        return state.projected + row * net.qkv.groups * GROUP + head * net.head_width;
    }

    // exp(score − largest score) of the first `visible` scores, in place, and 0 up to `num_keys`;
    // returns the sum.
    static float exponentiate(float *scores, int64_t visible, int64_t num_keys) {
        const int64_t whole = visible / LANES * LANES;
        for (int64_t j = visible; j < num_keys; j++) scores[j] = 0;
        float largest = -INFINITY;
        Vec largest_lanes = broadcast(-INFINITY);
        for (int64_t j = 0; j < whole; j += LANES)
            largest_lanes = maximum(largest_lanes, load(scores + j));
        largest = max_lanes(largest_lanes);
        for (int64_t j = whole; j < visible; j++)
            largest = scores[j] > largest ? scores[j] : largest;
        Vec sum = {};
        for (int64_t j = 0; j < whole; j += LANES) {
            const Vec weight = exp(load(scores + j) - largest);
            store(scores + j, weight);
            sum += weight;
        }
        if (whole < visible) {
            const Vec rest = load_first(scores + whole, visible - whole) - largest;
            Vec weight = exp(rest);
            store_first(scores + whole, weight, visible - whole);
            weight = load_first(scores + whole, visible - whole);
            sum += weight;
        }
        return sum_lanes(sum);
    }

    const DecodeNetwork &net;
    const DecodeState &state;
    const int64_t *ids;
    const int64_t samples, count, position, rows;
    float *logits;
    Barrier &barrier;
    const int64_t threads;
};

}  // namespace

// Reads `count` tokens per sample, ids (sample, index), at the positions from `position` on. Writes
// logits (sample, padded vocabulary) of the token after the last one, unless `logits` is NULL.
KERNEL(decode_step)
(const DecodeNetwork *network, const DecodeState *state, const int64_t *ids, int64_t samples,
 int64_t count, int64_t position, float *logits, int64_t max_threads) {
    Barrier barrier{int(max_threads)}, alone{1};
    run_on_threads(int(max_threads), [&](int thread, int threads) {
        // the runtime may give fewer threads than the barrier waits for: then one does all the work
        const bool complete = threads == max_threads;
        if (!complete && thread > 0) return;
        const Step step(
            *network, *state, ids, samples, count, position, logits, complete ? barrier : alone,
            complete ? threads : 1);
        if (network->is_int8)
            step.run<Int8Weights>(thread);
        else
            step.run<FloatWeights>(thread);
    });
}
