// Softmax attention with a bias per key that has a gradient: out = softmax(scale · q·kᵀ + bias) · v.
//
// Algorithm. Flash attention (Dao et al., 2022): scores are computed in tiles of QUERY_BLOCK queries
// and KEY_BLOCK keys and never leave the cache. The forward pass keeps the largest score and the sum
// of exponentials of each query so far and rescales its output when the largest score grows. It saves
// their log-sum-exp, from which the backward pass recomputes the weights P of a tile exactly:
//     dP = dO·vᵀ    dS = P ∘ (dP − δ), δ_i = dO_i · O_i
//     grad_v = Pᵀ·dO    grad_q = scale · dS·k    grad_k = scale · dSᵀ·q    grad_bias_j = Σ_i dS_ij
// The last sum is what torch's fused kernel does not give; here it costs one addition per score.
//
// Why it is exact. It is the softmax itself; only the order of sums differs. A masked key has the
// bias −infinity and the weight 0. The log-sum-exp of a query without visible keys is +infinity, so
// that its weights, output and gradients are 0. NaN stays NaN.
//
// Data layout. All tensors are contiguous: (head of the batch, time, features), the bias (head of the
// batch, keys). A transposed copy of keys and values is made per block of keys, (features,
// KEY_BLOCK), so that a vector holds one feature of many keys.
#include "gemm_tile.h"

namespace {

constexpr int64_t QUERY_BLOCK = 96;  // a multiple of TILE_ROWS
constexpr int64_t KEY_BLOCK = 64;
// Distance of rows of a tile. Not a power of two: those would share few lines of the first cache.
constexpr int64_t TILE_STRIDE = KEY_BLOCK + 16;

struct Sizes {
    int64_t num_heads, queries, keys, width, value_width;
    bool causal;
    int64_t key_blocks() const { return (keys + KEY_BLOCK - 1) / KEY_BLOCK; }
    int64_t query_blocks() const { return (queries + QUERY_BLOCK - 1) / QUERY_BLOCK; }
    // Number of keys that a query sees; the last query is at the last key.
    int64_t visible_keys(int64_t query) const {
        if (!causal) return keys;
        const int64_t visible = query + 1 + keys - queries;
        return visible < 0 ? 0 : visible;
    }
};

Sizes read_sizes(const int64_t *sizes) {
    return {sizes[0] * sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6] != 0};
}

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Copies keys or values (time, width) into blocks (width, KEY_BLOCK); absent keys are 0.
void transpose_blocks(const Sizes &sizes, const float *source, int64_t width, float *target) {
    for (int64_t block = 0; block < sizes.key_blocks(); block++) {
        const int64_t first = block * KEY_BLOCK, count = smaller(KEY_BLOCK, sizes.keys - first);
        float *tile = target + block * width * KEY_BLOCK;
        if (count < KEY_BLOCK) memset(tile, 0, width * KEY_BLOCK * sizeof(float));
        transpose(count, width, source + first * width, width, tile, KEY_BLOCK);
    }
}

// exp of a score minus a value that is at least as large, up to rounding; NaN stays NaN.
ALWAYS_INLINE Vec exp_difference(Vec x) { return x == x ? exp_nonpositive(x) : x; }

// scale · q·kᵀ + bias of a tile; −infinity for pairs that are masked, and for absent keys.
void compute_scores(
    const Sizes &sizes, const float *q, const float *transposed_keys, const float *bias,
    int64_t query, int64_t count, int64_t first_key, float scale, float *scores) {
    multiply(count, KEY_BLOCK, sizes.width, q + query * sizes.width, sizes.width, 1, transposed_keys,
             KEY_BLOCK, scores, TILE_STRIDE, false);
    float tile_bias[KEY_BLOCK];
    for (int64_t j = 0; j < KEY_BLOCK; j++)
        tile_bias[j] = first_key + j < sizes.keys ? bias[first_key + j] : -INFINITY;
    for (int64_t row = 0; row < count; row++) {
        float *target = scores + row * TILE_STRIDE;
        for (int64_t j = 0; j < KEY_BLOCK; j += LANES)
            store(target + j, load(target + j) * scale + load(tile_bias + j));
        const int64_t visible = sizes.visible_keys(query + row) - first_key;
        for (int64_t j = visible < 0 ? 0 : visible; j < KEY_BLOCK; j++) target[j] = -INFINITY;
    }
}

// State of the softmax of a query: largest score and sum of exp(score − largest) so far.
struct RowState {
    float largest, sum;
};

// Turns the scores of a tile into exp(score − largest) and rescales what was summed before.
void update_rows(const Sizes &sizes, int64_t count, float *scores, RowState *states, float *out) {
    for (int64_t row = 0; row < count; row++) {
        float *weights = scores + row * TILE_STRIDE;
        RowState &state = states[row];
        Vec tile_largest = load(weights);
        for (int64_t j = LANES; j < KEY_BLOCK; j += LANES)
            tile_largest = maximum(load(weights + j), tile_largest);
        const float previous = state.largest, candidate = max_lanes(tile_largest);
        if (candidate > previous) {
            const float factor = std::exp(previous - candidate);  // 0 for the first tile
            state.largest = candidate;
            state.sum *= factor;
            float *target = out + row * sizes.value_width;
            for (int64_t d = 0; d < sizes.value_width; d++) target[d] *= factor;
        }
        // without a visible key so far, the difference of infinities would be NaN
        const float shift = state.largest > -INFINITY ? state.largest : 0;
        Vec sum = {};
        for (int64_t j = 0; j < KEY_BLOCK; j += LANES) {
            const Vec weight = exp_difference(load(weights + j) - shift);
            store(weights + j, weight);
            sum += weight;
        }
        state.sum += sum_lanes(sum);
    }
}

// Pieces of memory of one task of the backward pass, all multiples of 16 floats.
struct Scratch {
    float *weights, *grad_scores, *delta, *grad_k, *grad_v, *grad_bias;
    static int64_t size(const Sizes &sizes) {
        return 2 * QUERY_BLOCK * TILE_STRIDE + round_up(sizes.queries, 16) +
               sizes.key_blocks() * KEY_BLOCK * (sizes.width + sizes.value_width + 1);
    }
    Scratch(float *memory, const Sizes &sizes) {
        weights = memory;
        grad_scores = weights + QUERY_BLOCK * TILE_STRIDE;
        delta = grad_scores + QUERY_BLOCK * TILE_STRIDE;
        grad_k = delta + round_up(sizes.queries, 16);
        grad_v = grad_k + sizes.key_blocks() * KEY_BLOCK * sizes.width;
        grad_bias = grad_v + sizes.key_blocks() * KEY_BLOCK * sizes.value_width;
    }
};

// Weights P and gradients dS of a tile, in place of the scores and of dP; adds to grad_bias.
void differentiate_scores(
    int64_t count, const float *logsumexp, const float *delta, float *weights, float *grad_scores,
    float *grad_bias) {
    for (int64_t row = 0; row < count; row++) {
        float *weight = weights + row * TILE_STRIDE, *grad = grad_scores + row * TILE_STRIDE;
        for (int64_t j = 0; j < KEY_BLOCK; j += LANES) {
            const Vec p = exp_difference(load(weight + j) - logsumexp[row]);
            const Vec ds = p * (load(grad + j) - delta[row]);
            store(weight + j, p);
            store(grad + j, ds);
            store(grad_bias + j, load(grad_bias + j) + ds);
        }
    }
}

// Tasks per head: parts of its queries, so that there are enough for all threads.
int64_t num_parts(const Sizes &sizes, int64_t threads) {
    const int64_t wanted = (2 * threads + sizes.num_heads - 1) / sizes.num_heads;
    return smaller(wanted, sizes.query_blocks());
}

}  // namespace

// `size_list`: batch, heads, queries, keys, width, value width, causal. transposed_keys has room for
// all blocks of keys.
KERNEL(flash_bias_forward)
(const float *q, const float *k, const float *v, const float *bias, float *out, float *logsumexp,
 float *transposed_keys, const int64_t *size_list, float scale, int64_t threads) {
    const Sizes sizes = read_sizes(size_list);
    const int64_t queries = sizes.queries, keys = sizes.keys, width = sizes.width;
    const int64_t value_width = sizes.value_width, blocks = sizes.query_blocks();
    const int64_t key_copy = sizes.key_blocks() * KEY_BLOCK * width;
    parallel_for(sizes.num_heads, int(threads), [&](int64_t head) {
        transpose_blocks(sizes, k + head * keys * width, width, transposed_keys + head * key_copy);
    });
    parallel_for(sizes.num_heads * blocks, int(threads), [&](int64_t task) {
        alignas(64) float scores[QUERY_BLOCK * TILE_STRIDE];
        RowState states[QUERY_BLOCK];
        const int64_t head = task / blocks, query = task % blocks * QUERY_BLOCK;
        const int64_t count = smaller(QUERY_BLOCK, queries - query);
        const int64_t last_key = sizes.visible_keys(query + count - 1);
        float *out_rows = out + (head * queries + query) * value_width;
        memset(out_rows, 0, count * value_width * sizeof(float));
        for (int64_t row = 0; row < count; row++) states[row] = {-INFINITY, 0};
        for (int64_t first_key = 0; first_key < last_key; first_key += KEY_BLOCK) {
            compute_scores(sizes, q + head * queries * width,
                           transposed_keys + head * key_copy + first_key * width,
                           bias + head * keys, query, count, first_key, scale, scores);
            update_rows(sizes, count, scores, states, out_rows);
            multiply(count, value_width, smaller(KEY_BLOCK, keys - first_key), scores, TILE_STRIDE, 1,
                     v + (head * keys + first_key) * value_width, value_width, out_rows, value_width,
                     true);
        }
        for (int64_t row = 0; row < count; row++) {
            const RowState state = states[row];
            const float factor = state.sum == 0 ? 0 : 1 / state.sum;
            for (int64_t d = 0; d < value_width; d++) out_rows[row * value_width + d] *= factor;
            logsumexp[head * queries + query + row] =
                state.sum == 0 ? INFINITY : state.largest + std::log(state.sum);
        }
    });
}

// Floats of the scratch memory of the backward pass.
KERNEL(flash_bias_scratch_size)(const int64_t *size_list, int64_t threads, int64_t *size) {
    const Sizes sizes = read_sizes(size_list);
    const int64_t copies = sizes.key_blocks() * KEY_BLOCK * (sizes.width + sizes.value_width);
    *size = sizes.num_heads * (copies + num_parts(sizes, threads) * Scratch::size(sizes));
}

KERNEL(flash_bias_backward)
(const float *q, const float *k, const float *v, const float *bias, const float *out,
 const float *logsumexp, const float *grad_out, float *grad_q, float *grad_k, float *grad_v,
 float *grad_bias, float *memory, const int64_t *size_list, float scale, int64_t threads) {
    const Sizes sizes = read_sizes(size_list);
    const int64_t queries = sizes.queries, keys = sizes.keys, width = sizes.width;
    const int64_t value_width = sizes.value_width, heads = sizes.num_heads;
    const int64_t parts = num_parts(sizes, threads), padded = sizes.key_blocks() * KEY_BLOCK;
    const int64_t part_blocks = (sizes.query_blocks() + parts - 1) / parts;
    float *transposed_keys = memory, *transposed_values = memory + heads * padded * width;
    float *part_memory = transposed_values + heads * padded * value_width;
    parallel_for(heads, int(threads), [&](int64_t head) {
        transpose_blocks(sizes, k + head * keys * width, width,
                         transposed_keys + head * padded * width);
        transpose_blocks(sizes, v + head * keys * value_width, value_width,
                         transposed_values + head * padded * value_width);
    });
    parallel_for(heads * parts, int(threads), [&](int64_t task) {
        const int64_t head = task / parts;
        const int64_t first = task % parts * part_blocks * QUERY_BLOCK;
        const int64_t last = smaller(queries, first + part_blocks * QUERY_BLOCK);
        Scratch scratch(part_memory + task * Scratch::size(sizes), sizes);
        memset(scratch.grad_k, 0, padded * (width + value_width + 1) * sizeof(float));
        const float *q_of_head = q + head * queries * width;
        const float *grad_of_head = grad_out + head * queries * value_width;
        const float *out_of_head = out + head * queries * value_width;
        float *grad_q_of_head = grad_q + head * queries * width;
        for (int64_t i = first; i < last; i++)
            scratch.delta[i] =
                dot(grad_of_head + i * value_width, out_of_head + i * value_width, value_width);
        if (first < last)
            memset(grad_q_of_head + first * width, 0, (last - first) * width * sizeof(float));
        for (int64_t first_key = 0; first_key < keys; first_key += KEY_BLOCK) {
            const int64_t real_keys = smaller(KEY_BLOCK, keys - first_key);
            const float *key_tile = transposed_keys + head * padded * width + first_key * width;
            const float *value_tile =
                transposed_values + head * padded * value_width + first_key * value_width;
            for (int64_t query = first; query < last; query += QUERY_BLOCK) {
                const int64_t count = smaller(QUERY_BLOCK, last - query);
                if (sizes.visible_keys(query + count - 1) <= first_key) continue;
                const float *grad_rows = grad_of_head + query * value_width;
                compute_scores(sizes, q_of_head, key_tile, bias + head * keys, query, count,
                               first_key, scale, scratch.weights);
                multiply(count, KEY_BLOCK, value_width, grad_rows, value_width, 1, value_tile,
                         KEY_BLOCK, scratch.grad_scores, TILE_STRIDE, false);
                differentiate_scores(count, logsumexp + head * queries + query,
                                     scratch.delta + query, scratch.weights, scratch.grad_scores,
                                     scratch.grad_bias + first_key);
                multiply(real_keys, value_width, count, scratch.weights, 1, TILE_STRIDE, grad_rows,
                         value_width, scratch.grad_v + first_key * value_width, value_width, true);
                multiply(real_keys, width, count, scratch.grad_scores, 1, TILE_STRIDE,
                         q_of_head + query * width, width, scratch.grad_k + first_key * width, width,
                         true);
                multiply(count, width, real_keys, scratch.grad_scores, TILE_STRIDE, 1,
                         k + (head * keys + first_key) * width, width, grad_q_of_head + query * width,
                         width, true);
            }
        }
        for (int64_t i = first * width; i < last * width; i++) grad_q_of_head[i] *= scale;
    });
    parallel_for(heads, int(threads), [&](int64_t head) {
        for (int64_t part = 0; part < parts; part++) {
            const Scratch scratch(part_memory + (head * parts + part) * Scratch::size(sizes), sizes);
            auto add = [&](float *target, const float *source, int64_t count, float factor) {
                for (int64_t i = 0; i < count; i++)
                    target[i] = (part ? target[i] : 0) + source[i] * factor;
            };
            add(grad_k + head * keys * width, scratch.grad_k, keys * width, scale);
            add(grad_v + head * keys * value_width, scratch.grad_v, keys * value_width, 1);
            add(grad_bias + head * keys, scratch.grad_bias, keys, 1);
        }
    });
}
