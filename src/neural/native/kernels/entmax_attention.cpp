// Sparsemax and 1.5-entmax attention: out = weights · v with weights = entmax(scale · q·kᵀ), and its
// gradients.
//
// Algorithm. The scores of QUERY_BLOCK queries for all keys are computed as a product of matrices.
// For each query, entmax_threshold.h finds the threshold above which keys have weight, and lists
// these keys. Everything else is done for the listed keys only, usually a few per cent: the sum of
// their values, and in the backward pass, with s = 1 (sparsemax) or √weight (1.5-entmax),
//     dP_j = grad_out·v_j    dS_j = s_j · (dP_j − Σ s·dP / Σ s)
//     grad_v_j += weight_j grad_out    grad_q += scale · dS_j k_j    grad_k_j += scale · dS_j q
// The backward pass recomputes the scores, with the same operations in the same order, so that they
// are the same numbers. It keeps only the largest score and the threshold of each query.
//
// Why it is exact. A key that is not listed has weight 0 and gradient 0. A query without visible keys
// gets zeros; a query with a NaN score gets NaN.
//
// Data layout. Tensors are contiguous (head of the batch, time, features). Keys are copied to blocks
// (features, KEY_BLOCK), so that one vector holds one feature of many keys.
#include "entmax_threshold.h"
#include "gemm_tile.h"

namespace {

constexpr int64_t QUERY_BLOCK = 4 * TILE_ROWS;
constexpr int64_t KEY_BLOCK = 64;

struct Sizes {
    int64_t batch, heads, queries, keys, width, value_width;
    bool causal;
    int64_t num_heads() const { return batch * heads; }
    int64_t padded_keys() const { return round_up(keys, KEY_BLOCK); }
    int64_t query_blocks() const { return (queries + QUERY_BLOCK - 1) / QUERY_BLOCK; }
    // Number of keys that a query sees; the last query is at the last key.
    int64_t visible_keys(int64_t query) const {
        if (!causal) return keys;
        const int64_t visible = query + 1 + keys - queries;
        return visible < 0 ? 0 : visible;
    }
};

Sizes read_sizes(const int64_t *sizes) {
    return {sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6] != 0};
}

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Memory of one thread or task: the scores of a block of queries, and the list of keys of a query.
struct Buffers {
    float *scores, *values, *gradients;
    int32_t *indices;
    int64_t stride;
    static int64_t score_stride(const Sizes &sizes) { return sizes.padded_keys() + 16; }
    static int64_t size(const Sizes &sizes) { return (QUERY_BLOCK + 3) * score_stride(sizes); }
    Buffers(float *memory, const Sizes &sizes) : stride(score_stride(sizes)) {
        scores = memory;
        values = scores + QUERY_BLOCK * stride;
        gradients = values + stride;
        indices = reinterpret_cast<int32_t *>(gradients + stride);
    }
};

void transpose_blocks(const Sizes &sizes, const float *keys, float *target) {
    for (int64_t first = 0; first < sizes.keys; first += KEY_BLOCK) {
        const int64_t count = smaller(KEY_BLOCK, sizes.keys - first);
        float *tile = target + first * sizes.width;
        if (count < KEY_BLOCK) memset(tile, 0, sizes.width * KEY_BLOCK * sizeof(float));
        transpose(count, sizes.width, keys + first * sizes.width, sizes.width, tile, KEY_BLOCK);
    }
}

// Scores of `count` queries for the keys that the last of them sees; −infinity for masked keys.
void compute_scores(
    const Sizes &sizes, const float *q, const float *transposed_keys, const uint8_t *key_mask,
    int64_t query, int64_t count, float scale, const Buffers &buffers) {
    const int64_t last_key = sizes.visible_keys(query + count - 1);
    for (int64_t key = 0; key < last_key; key += KEY_BLOCK)
        multiply(count, KEY_BLOCK, sizes.width, q + query * sizes.width, sizes.width, 1,
                 transposed_keys + key * sizes.width, KEY_BLOCK, buffers.scores + key, buffers.stride,
                 false);
    for (int64_t row = 0; row < count; row++) {
        float *scores = buffers.scores + row * buffers.stride;
        for (int64_t j = 0; j < round_up(last_key, KEY_BLOCK); j += LANES)
            store(scores + j, load(scores + j) * scale);
        for (int64_t j = 0; key_mask && j < last_key; j++)
            if (!key_mask[j]) scores[j] = -INFINITY;
    }
}

// target += factor · source
ALWAYS_INLINE void add_scaled(float *target, const float *source, float factor, int64_t count) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        store(target + i, load(target + i) + factor * load(source + i));
    for (; i < count; i++) target[i] += factor * source[i];
}

// Output of one query; writes its largest score and threshold.
template <bool SQUARED>
void attend_query(
    const Sizes &sizes, const float *scores, int64_t visible, const float *v,
    const Buffers &buffers, float *out, float *largest, float *threshold) {
    memset(out, 0, sizes.value_width * sizeof(float));
    const RowMaximum maximum = find_maximum(scores, visible);
    *largest = maximum.value;
    *threshold = 0;  // no y is above it: a query without visible keys has no weights
    if (maximum.has_nan || maximum.value == INFINITY) {
        *largest = NAN;
        for (int64_t d = 0; d < sizes.value_width; d++) out[d] = NAN;
        return;
    }
    if (maximum.value == -INFINITY) return;
    const int64_t selected = select_above(
        scores, visible, maximum.value, SQUARED ? 0.5f : 1.0f, -1.0f, buffers.values,
        buffers.indices);
    *threshold = find_threshold<SQUARED>(buffers.values, selected);
    for (int64_t item = 0; item < selected; item++) {
        const float root = buffers.values[item] - *threshold;
        if (root > 0)
            add_scaled(out, v + buffers.indices[item] * sizes.value_width,
                       SQUARED ? root * root : root, sizes.value_width);
    }
}

// Adds the gradients of one query.
template <bool SQUARED>
void differentiate_query(
    const Sizes &sizes, const float *scores, int64_t visible, const float *q, const float *k,
    const float *v, const Buffers &buffers, float largest, float threshold, const float *grad_out,
    float scale, float *grad_q, float *grad_k, float *grad_v) {
    const bool is_nan = largest != largest;
    for (int64_t d = 0; d < sizes.width; d++) grad_q[d] = is_nan ? NAN : 0;
    if (is_nan || largest == -INFINITY) return;
    const int64_t selected = select_above(
        scores, visible, largest, SQUARED ? 0.5f : 1.0f, threshold, buffers.values,
        buffers.indices);
    float slope_sum = 0, product_sum = 0;
    for (int64_t item = 0; item < selected; item++) {
        const int64_t j = buffers.indices[item];
        const float root = buffers.values[item] - threshold, slope = SQUARED ? root : 1;
        const float grad = dot(grad_out, v + j * sizes.value_width, sizes.value_width);
        buffers.gradients[item] = grad;
        slope_sum += slope;
        product_sum += slope * grad;
        add_scaled(grad_v + j * sizes.value_width, grad_out, SQUARED ? root * root : root,
                   sizes.value_width);
    }
    const float mean = product_sum / slope_sum;
    for (int64_t item = 0; item < selected; item++) {
        const int64_t j = buffers.indices[item];
        const float slope = SQUARED ? buffers.values[item] - threshold : 1;
        const float grad_score = slope * (buffers.gradients[item] - mean) * scale;
        add_scaled(grad_q, k + j * sizes.width, grad_score, sizes.width);
        add_scaled(grad_k + j * sizes.width, q, grad_score, sizes.width);
    }
}

// Tasks per head of the backward pass: parts of its queries, so that there are enough for all threads.
int64_t num_parts(const Sizes &sizes, int64_t threads) {
    const int64_t wanted = (2 * threads + sizes.num_heads() - 1) / sizes.num_heads();
    return smaller(wanted, sizes.query_blocks());
}

// Floats of a part: its gradients of keys and values, and its buffers.
int64_t part_size(const Sizes &sizes) {
    return Buffers::size(sizes) + sizes.padded_keys() * (sizes.width + sizes.value_width);
}

}  // namespace

// Floats of the scratch memory of both passes.
KERNEL(entmax_attention_scratch_size)(const int64_t *size_list, int64_t threads, int64_t *size) {
    const Sizes sizes = read_sizes(size_list);
    const int64_t tasks = sizes.num_heads() * num_parts(sizes, threads);
    *size = sizes.num_heads() * sizes.padded_keys() * sizes.width +
            (tasks > threads ? tasks : threads) * part_size(sizes);
}

// `size_list`: batch, heads, queries, keys, width, value width, causal. key_mask (batch, keys) is
// NULL or 0 for padding. `squared`: 1.5-entmax, else sparsemax.
KERNEL(entmax_attention_forward)
(const float *q, const float *k, const float *v, const uint8_t *key_mask, float *out,
 float *largest, float *thresholds, float *scratch, const int64_t *size_list, float scale,
 int64_t squared, int64_t threads) {
    const Sizes sizes = read_sizes(size_list);
    const int64_t key_copy = sizes.padded_keys() * sizes.width, blocks = sizes.query_blocks();
    parallel_for(sizes.num_heads(), int(threads), [&](int64_t head) {
        transpose_blocks(sizes, k + head * sizes.keys * sizes.width, scratch + head * key_copy);
    });
    float *buffer_memory = scratch + sizes.num_heads() * key_copy;
    int64_t next = 0;
    run_on_threads(int(threads), [&](int thread, int) {
        const Buffers buffers(buffer_memory + thread * Buffers::size(sizes), sizes);
        for (;;) {
            const int64_t task = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
            if (task >= sizes.num_heads() * blocks) return;
            const int64_t head = task / blocks, query = task % blocks * QUERY_BLOCK;
            const int64_t count = smaller(QUERY_BLOCK, sizes.queries - query);
            compute_scores(sizes, q + head * sizes.queries * sizes.width, scratch + head * key_copy,
                           key_mask ? key_mask + head / sizes.heads * sizes.keys : nullptr, query,
                           count, scale, buffers);
            for (int64_t row = 0; row < count; row++) {
                const int64_t index = head * sizes.queries + query + row;
                (squared ? attend_query<true> : attend_query<false>)(
                    sizes, buffers.scores + row * buffers.stride, sizes.visible_keys(query + row),
                    v + head * sizes.keys * sizes.value_width, buffers,
                    out + index * sizes.value_width, largest + index, thresholds + index);
            }
        }
    });
}

KERNEL(entmax_attention_backward)
(const float *q, const float *k, const float *v, const uint8_t *key_mask, const float *largest,
 const float *thresholds, const float *grad_out, float *grad_q, float *grad_k, float *grad_v,
 float *scratch, const int64_t *size_list, float scale, int64_t squared, int64_t threads) {
    const Sizes sizes = read_sizes(size_list);
    const int64_t key_copy = sizes.padded_keys() * sizes.width, heads = sizes.num_heads();
    const int64_t key_values = sizes.keys * sizes.width, values = sizes.keys * sizes.value_width;
    parallel_for(heads, int(threads), [&](int64_t head) {
        transpose_blocks(sizes, k + head * key_values, scratch + head * key_copy);
    });
    float *part_memory = scratch + heads * key_copy;
    const int64_t parts = num_parts(sizes, threads);
    const int64_t part_blocks = (sizes.query_blocks() + parts - 1) / parts;
    parallel_for(heads * parts, int(threads), [&](int64_t task) {
        const int64_t head = task / parts, first = task % parts * part_blocks * QUERY_BLOCK;
        const int64_t last = smaller(sizes.queries, first + part_blocks * QUERY_BLOCK);
        float *memory = part_memory + task * part_size(sizes);
        const Buffers buffers(memory, sizes);
        float *part_grad_k = memory + Buffers::size(sizes), *part_grad_v = part_grad_k + key_values;
        memset(part_grad_k, 0, (key_values + values) * sizeof(float));
        for (int64_t query = first; query < last; query += QUERY_BLOCK) {
            const int64_t count = smaller(QUERY_BLOCK, last - query);
            compute_scores(sizes, q + head * sizes.queries * sizes.width, scratch + head * key_copy,
                           key_mask ? key_mask + head / sizes.heads * sizes.keys : nullptr, query,
                           count, scale, buffers);
            for (int64_t row = 0; row < count; row++) {
                const int64_t index = head * sizes.queries + query + row;
                (squared ? differentiate_query<true> : differentiate_query<false>)(
                    sizes, buffers.scores + row * buffers.stride, sizes.visible_keys(query + row),
                    q + index * sizes.width, k + head * key_values, v + head * values, buffers,
                    largest[index], thresholds[index], grad_out + index * sizes.value_width, scale,
                    grad_q + index * sizes.width, part_grad_k, part_grad_v);
            }
        }
    });
    parallel_for(heads, int(threads), [&](int64_t head) {
        for (int64_t part = 0; part < parts; part++) {
            const float *part_grad_k =
                part_memory + (head * parts + part) * part_size(sizes) + Buffers::size(sizes);
            const float *part_grad_v = part_grad_k + key_values;
            float *target_k = grad_k + head * key_values, *target_v = grad_v + head * values;
            for (int64_t i = 0; i < key_values; i++)
                target_k[i] = (part ? target_k[i] : 0) + part_grad_k[i];
            for (int64_t i = 0; i < values; i++)
                target_v[i] = (part ? target_v[i] : 0) + part_grad_v[i];
        }
    });
}
