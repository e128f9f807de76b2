// Linear attention with φ(x) = elu(x) + 1, causal or not: out_i = Σ_j (φ(q_i)·φ(k_j)) v_j / total_i
// with total_i = Σ_j φ(q_i)·φ(k_j), over the keys j that query i sees; forward and backward.
//
// Algorithm. The keys are read in chunks of CHUNK positions. A running state holds the sums of all
// chunks before, Σ_j φ(k_j) v_jᵀ (width × value width) and Σ_j φ(k_j); it stays in the cache. Pairs
// inside a chunk are multiplied one by one. With h_i = grad_out_i / total_i and
// e_i = −(grad_out_i · out_i) / total_i, the gradients are sums of the same kind:
//     grad_φ(q_i) = Σ_j≤i (h_i·v_j + e_i) φ(k_j)      forwards, with the state of the keys
//     grad_φ(k_j) = Σ_i≥j (h_i·v_j + e_i) φ(q_i)      backwards, with the state of the queries:
//     grad_v_j    = Σ_i≥j (φ(q_i)·φ(k_j)) h_i         Σ_i φ(q_i) h_iᵀ and Σ_i e_i φ(q_i)
// If not causal, every position uses the sums over all others, and no chunk has inner pairs.
//
// With fewer heads than threads, the positions of a head are split into parts: first each part sums
// its own keys (or queries), then it starts from the sum of the parts before it (or after it).
//
// Why it is exact. Only the order of sums differs from the quadratic definition. The output and the
// gradients of a query are 0 if its total is at most MIN_TOTAL, as in `safe_divide` of linear.py.
//
// Data layout. Tensors are contiguous (head of the batch, time, features). Causal queries are aligned
// with the last keys: query i is at position i + keys − queries.
#include "gemm_tile.h"
#include "huge_pages.h"

namespace {

constexpr int64_t CHUNK = 32;
constexpr float MIN_TOTAL = 1.0842022e-19f;  // √(smallest normal number)

struct Sizes {
    int64_t batch, heads, queries, keys, width, value_width;
    bool causal;
    int64_t num_heads() const { return batch * heads; }
    int64_t state_size() const { return round_up(width * (value_width + 1), 16); }
};

Sizes read_sizes(const int64_t *sizes) {
    return {sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6] != 0};
}

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// Chunks of positions. First come those with keys only, then those with queries and keys; if not
// causal, keys and queries have chunks of their own.
struct Chunks {
    explicit Chunks(const Sizes &sizes)
        : offset(sizes.keys - sizes.queries),
          first_position(larger(offset, 0)),
          keys(sizes.keys),
          key_chunks((first_position + CHUNK - 1) / CHUNK),
          count(key_chunks + (sizes.keys - first_position + CHUNK - 1) / CHUNK) {}
    int64_t offset, first_position, keys, key_chunks, count;
    bool has_queries(int64_t chunk) const { return chunk >= key_chunks; }
    int64_t first(int64_t chunk) const {
        return has_queries(chunk) ? first_position + (chunk - key_chunks) * CHUNK : chunk * CHUNK;
    }
    int64_t size(int64_t chunk) const {
        return smaller(CHUNK, (has_queries(chunk) ? keys : first_position) - first(chunk));
    }
};

// Memory of one thread's chunk.
struct Buffers {
    float *queries, *keys;  // φ, (CHUNK, width)
    float *transposed;      // φ(k), (width, CHUNK), then its gradient
    float *values;          // transposed values, (value_width, CHUNK)
    float *outputs;         // h, (CHUNK, value_width)
    float *products, *gradients;  // pairs of a chunk, (CHUNK, CHUNK)
    float *totals;                // e, (CHUNK)
    static int64_t size(const Sizes &sizes) {
        return CHUNK * (4 * sizes.width + 2 * sizes.value_width + 2 * CHUNK + 1);
    }
    Buffers(float *memory, const Sizes &sizes) {
        queries = memory;
        keys = queries + CHUNK * sizes.width;
        transposed = keys + CHUNK * sizes.width;
        values = transposed + 2 * CHUNK * sizes.width;
        outputs = values + CHUNK * sizes.value_width;
        products = outputs + CHUNK * sizes.value_width;
        gradients = products + CHUNK * CHUNK;
        totals = gradients + CHUNK * CHUNK;
    }
};

ALWAYS_INLINE Vec feature(Vec x) { return x > 0.0f ? x + 1.0f : exp(x); }
// φ'(x), given φ(x)
ALWAYS_INLINE Vec feature_slope(Vec x, Vec phi) { return x > 0.0f ? broadcast(1.0f) : phi; }

void compute_features(const float *x, int64_t count, float *target) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) store(target + i, feature(load(x + i)));
    if (i < count) store_first(target + i, feature(load_first(x + i, count - i)), count - i);
}

void compute_key_features(
    const Sizes &sizes, const float *k, const uint8_t *key_mask, int64_t first, int64_t count,
    float *target) {
    compute_features(k + first * sizes.width, count * sizes.width, target);
    for (int64_t j = 0; key_mask && j < count; j++)
        if (!key_mask[first + j]) memset(target + j * sizes.width, 0, sizes.width * sizeof(float));
}

// grad_x = φ'(x) · gradient of φ(x)
void apply_slope(const float *x, const float *phi, const float *grad_phi, int64_t count, float *grad_x) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        store(grad_x + i, load(grad_phi + i) * feature_slope(load(x + i), load(phi + i)));
    for (; i < count; i++) grad_x[i] = grad_phi[i] * (x[i] > 0 ? 1 : phi[i]);
}

// target_d += Σ_i weight_i x_id; a weight is 1 where `weights` is NULL.
void add_rows(const float *x, const float *weights, int64_t count, int64_t width, float *target) {
    for (int64_t i = 0; i < count; i++)
        for (int64_t d = 0; d < width; d++)
            target[d] += (weights ? weights[i] : 1) * x[i * width + d];
}

// A state: `sums` (width, value_width), and behind it the sum of features (width).
float *features_of(float *state, const Sizes &sizes) {
    return state + sizes.width * sizes.value_width;
}

// Adds rows x (features) and y of a chunk: Σ x yᵀ, and Σ weight · x.
void add_to_state(
    const Sizes &sizes, float *state, const float *x, const float *y, const float *weights,
    int64_t count) {
    multiply(sizes.width, sizes.value_width, count, x, 1, sizes.width, y, sizes.value_width, state,
             sizes.value_width, true);
    add_rows(x, weights, count, sizes.width, features_of(state, sizes));
}

// The same with the transposed sum Σ y xᵀ, (value_width, width).
void add_to_transposed_state(
    const Sizes &sizes, float *state, const float *x, const float *y, int64_t count) {
    multiply(sizes.value_width, sizes.width, count, y, 1, sizes.value_width, x, sizes.width, state,
             sizes.width, true);
    add_rows(x, nullptr, count, sizes.width, features_of(state, sizes));
}

// Sets pairs of a query and a later key to 0.
void mask_later_keys(float *pairs, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = i + 1; j < count; j++) pairs[i * CHUNK + j] = 0;
}

// Everything that is the same for all positions of a head.
struct Head {
    const Sizes &sizes;
    const float *q, *k, *v;
    const uint8_t *key_mask;
    Head(const Sizes &sizes, int64_t head, const float *q, const float *k, const float *v,
         const uint8_t *key_mask)
        : sizes(sizes),
          q(q + head * sizes.queries * sizes.width),
          k(k + head * sizes.keys * sizes.width),
          v(v + head * sizes.keys * sizes.value_width),
          key_mask(key_mask ? key_mask + head / sizes.heads * sizes.keys : nullptr) {}
};

// Output and total of `count` queries. φ(q) is in `buffers`, and so are the products with the keys
// of the chunk, if causal.
void attend_queries(
    const Head &head, const Buffers &buffers, float *state, int64_t query, int64_t count,
    float *out, float *totals) {
    const Sizes &sizes = head.sizes;
    const int64_t width = sizes.width, value_width = sizes.value_width;
    float *target = out + query * value_width;
    const float *key_sum = features_of(state, sizes);
    multiply(count, value_width, width, buffers.queries, width, 1, state, value_width, target,
             value_width, false);
    if (sizes.causal)
        multiply(count, value_width, count, buffers.products, CHUNK, 1,
                 head.v + (query + sizes.keys - sizes.queries) * value_width, value_width, target,
                 value_width, true);
    for (int64_t i = 0; i < count; i++) {
        float total = dot(buffers.queries + i * width, key_sum, width);
        if (sizes.causal) total += sum(buffers.products + i * CHUNK, i + 1);
        totals[query + i] = total;
        const float factor = total <= MIN_TOTAL ? 0 : 1 / total;
        for (int64_t d = 0; d < value_width; d++) target[i * value_width + d] *= factor;
    }
}

// h and e of `count` queries.
void divide_gradients(
    const Sizes &sizes, const float *out, const float *totals, const float *grad_out, int64_t query,
    int64_t count, const Buffers &buffers) {
    for (int64_t i = 0; i < count; i++) {
        const float *grad = grad_out + (query + i) * sizes.value_width;
        const float *result = out + (query + i) * sizes.value_width;
        const float total = totals[query + i], factor = total <= MIN_TOTAL ? 0 : 1 / total;
        for (int64_t d = 0; d < sizes.value_width; d++)
            buffers.outputs[i * sizes.value_width + d] = grad[d] * factor;
        buffers.totals[i] = -dot(grad, result, sizes.value_width) * factor;
    }
}

// h_i·v_j + e_i of the pairs of a chunk; needs the transposed values.
void differentiate_pairs(const Sizes &sizes, const Buffers &buffers, int64_t count) {
    multiply(count, count, sizes.value_width, buffers.outputs, sizes.value_width, 1, buffers.values,
             CHUNK, buffers.gradients, CHUNK, false);
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j <= i; j++) buffers.gradients[i * CHUNK + j] += buffers.totals[i];
    mask_later_keys(buffers.gradients, count);
}

// φ(q)·φ(k) of the pairs of a chunk.
void multiply_pairs(const Sizes &sizes, const Buffers &buffers, int64_t count) {
    transpose(count, sizes.width, buffers.keys, sizes.width, buffers.transposed, CHUNK);
    multiply(count, count, sizes.width, buffers.queries, sizes.width, 1, buffers.transposed, CHUNK,
             buffers.products, CHUNK, false);
    mask_later_keys(buffers.products, count);
}

// Tasks per head: parts of its chunks, so that there are enough for all threads.
int64_t num_parts(const Sizes &sizes, int64_t threads) {
    const int64_t longest = larger(sizes.queries, sizes.keys);
    const int64_t wanted = sizes.num_heads() >= threads
                            ? 1
                            : (2 * threads + sizes.num_heads() - 1) / sizes.num_heads();
    return larger(1, smaller(wanted, longest / (4 * CHUNK)));
}

// Chunks `first` to `last` − 1 of part `part`.
struct Range {
    Range(int64_t count, int64_t parts, int64_t part)
        : first(count * part / parts), last(count * (part + 1) / parts) {}
    int64_t first, last;
};

// Turns sums of parts into the start of each part: the sum of the parts before it (after it, if
// `backwards`), or of all parts, if not causal.
void accumulate_parts(
    const Sizes &sizes, float *states, int64_t parts, bool backwards, float *sum) {
    const int64_t size = sizes.state_size();
    memset(sum, 0, size * sizeof(float));
    for (int64_t step = 0; step < parts; step++) {
        float *state = states + (backwards ? parts - 1 - step : step) * size;
        for (int64_t i = 0; i < size; i++) {
            const float own = state[i];
            state[i] = sum[i];
            sum[i] += own;
        }
    }
    for (int64_t part = 0; part < parts && !sizes.causal; part++)
        memcpy(states + part * size, sum, size * sizeof(float));
}

}  // namespace

// Floats of the scratch memory of both passes.
KERNEL(linear_scratch_size)(const int64_t *size_list, int64_t threads, int64_t *size) {
    const Sizes sizes = read_sizes(size_list);
    const int64_t parts = num_parts(sizes, threads);
    *size = sizes.num_heads() * (parts * (3 * sizes.state_size() + Buffers::size(sizes)));
}

// `size_list`: batch, heads, queries, keys, width, value width, causal. key_mask (batch, keys) is
// NULL or 0 for padding.
KERNEL(linear_forward)
(const float *q, const float *k, const float *v, const uint8_t *key_mask, float *out, float *totals,
 float *scratch, const int64_t *size_list, int64_t threads) {
    const Sizes sizes = read_sizes(size_list);
    const int64_t width = sizes.width, value_width = sizes.value_width, heads = sizes.num_heads();
    const int64_t parts = num_parts(sizes, threads), state_size = sizes.state_size();
    const Chunks chunks(sizes);
    const int64_t query_chunks = (sizes.queries + CHUNK - 1) / CHUNK;
    const int64_t key_chunks = sizes.causal ? chunks.count : (sizes.keys + CHUNK - 1) / CHUNK;
    float *states = scratch, *spare = states + heads * parts * state_size;
    float *buffer_memory = scratch + 3 * heads * parts * state_size;
    auto get_key_chunk = [&](int64_t chunk, int64_t &first, int64_t &count) {
        first = sizes.causal ? chunks.first(chunk) : chunk * CHUNK;
        count = sizes.causal ? chunks.size(chunk) : smaller(CHUNK, sizes.keys - first);
    };
    request_huge_pages(out, heads * sizes.queries * value_width * sizeof(float));
    memset(states, 0, heads * parts * state_size * sizeof(float));
    if (parts > 1 || !sizes.causal) {
        parallel_for(heads * parts, int(threads), [&](int64_t task) {
            const Head head(sizes, task / parts, q, k, v, key_mask);
            const Buffers buffers(buffer_memory + task * Buffers::size(sizes), sizes);
            const Range range(key_chunks, parts, task % parts);
            for (int64_t chunk = range.first; chunk < range.last; chunk++) {
                int64_t first, count;
                get_key_chunk(chunk, first, count);
                compute_key_features(sizes, head.k, head.key_mask, first, count, buffers.keys);
                add_to_state(sizes, states + task * state_size, buffers.keys,
                             head.v + first * value_width, nullptr, count);
            }
        });
        for (int64_t head = 0; head < heads; head++)
            accumulate_parts(sizes, states + head * parts * state_size, parts, false, spare);
    }
    parallel_for(heads * parts, int(threads), [&](int64_t task) {
        const int64_t index = task / parts;
        const Head head(sizes, index, q, k, v, key_mask);
        const Buffers buffers(buffer_memory + task * Buffers::size(sizes), sizes);
        float *state = states + task * state_size;
        float *out_of_head = out + index * sizes.queries * value_width;
        float *totals_of_head = totals + index * sizes.queries;
        const Range range(sizes.causal ? key_chunks : query_chunks, parts, task % parts);
        if (!sizes.causal) {
            for (int64_t chunk = range.first; chunk < range.last; chunk++) {
                const int64_t query = chunk * CHUNK, count = smaller(CHUNK, sizes.queries - query);
                compute_features(head.q + query * width, count * width, buffers.queries);
                attend_queries(head, buffers, state, query, count, out_of_head, totals_of_head);
            }
            return;
        }
        // queries before the first key
        const int64_t blind = larger(0, -chunks.offset);
        if (task % parts == 0) {
            memset(out_of_head, 0, blind * value_width * sizeof(float));
            memset(totals_of_head, 0, blind * sizeof(float));
        }
        for (int64_t chunk = range.first; chunk < range.last; chunk++) {
            const int64_t first = chunks.first(chunk), count = chunks.size(chunk);
            compute_key_features(sizes, head.k, head.key_mask, first, count, buffers.keys);
            if (chunks.has_queries(chunk)) {
                const int64_t query = first - chunks.offset;
                compute_features(head.q + query * width, count * width, buffers.queries);
                multiply_pairs(sizes, buffers, count);
                attend_queries(head, buffers, state, query, count, out_of_head, totals_of_head);
            }
            add_to_state(sizes, state, buffers.keys, head.v + first * value_width, nullptr, count);
        }
    });
}

KERNEL(linear_backward)
(const float *q, const float *k, const float *v, const uint8_t *key_mask, const float *out,
 const float *totals, const float *grad_out, float *grad_q, float *grad_k, float *grad_v,
 float *scratch, const int64_t *size_list, int64_t threads) {
    const Sizes sizes = read_sizes(size_list);
    const int64_t width = sizes.width, value_width = sizes.value_width, heads = sizes.num_heads();
    const int64_t parts = num_parts(sizes, threads), state_size = sizes.state_size();
    const Chunks chunks(sizes);
    const bool causal = sizes.causal;
    const int64_t key_chunks = causal ? chunks.count : (sizes.keys + CHUNK - 1) / CHUNK;
    const int64_t query_chunks = causal ? chunks.count : (sizes.queries + CHUNK - 1) / CHUNK;
    // states of keys (transposed) and of queries per part; one spare state
    float *key_states = scratch, *query_states = key_states + heads * parts * state_size;
    float *spare = query_states + heads * parts * state_size;
    float *buffer_memory = scratch + 3 * heads * parts * state_size;
    auto first_key = [&](int64_t chunk) { return causal ? chunks.first(chunk) : chunk * CHUNK; };
    auto count_keys = [&](int64_t chunk) {
        return causal ? chunks.size(chunk) : smaller(CHUNK, sizes.keys - chunk * CHUNK);
    };
    auto has_queries = [&](int64_t chunk) { return !causal || chunks.has_queries(chunk); };
    auto first_query = [&](int64_t chunk) {
        return causal ? chunks.first(chunk) - chunks.offset : chunk * CHUNK;
    };
    auto count_queries = [&](int64_t chunk) {
        return causal ? chunks.size(chunk) : smaller(CHUNK, sizes.queries - chunk * CHUNK);
    };
    // φ(q), h and e of a chunk
    auto prepare_queries = [&](const Head &head, int64_t index, int64_t chunk,
                               const Buffers &buffers) {
        const int64_t query = first_query(chunk), count = count_queries(chunk);
        compute_features(head.q + query * width, count * width, buffers.queries);
        divide_gradients(sizes, out + index * sizes.queries * value_width,
                         totals + index * sizes.queries,
                         grad_out + index * sizes.queries * value_width, query, count, buffers);
    };
    request_huge_pages(grad_q, heads * sizes.queries * width * sizeof(float));
    request_huge_pages(grad_k, heads * sizes.keys * width * sizeof(float));
    request_huge_pages(grad_v, heads * sizes.keys * value_width * sizeof(float));
    memset(scratch, 0, 2 * heads * parts * state_size * sizeof(float));
    if (parts > 1 || !causal) {
        parallel_for(heads * parts, int(threads), [&](int64_t task) {
            const Head head(sizes, task / parts, q, k, v, key_mask);
            const Buffers buffers(buffer_memory + task * Buffers::size(sizes), sizes);
            const Range key_range(key_chunks, parts, task % parts);
            for (int64_t chunk = key_range.first; chunk < key_range.last; chunk++) {
                const int64_t first = first_key(chunk), count = count_keys(chunk);
                compute_key_features(sizes, head.k, head.key_mask, first, count, buffers.keys);
                add_to_transposed_state(sizes, key_states + task * state_size, buffers.keys,
                                        head.v + first * value_width, count);
            }
            const Range query_range(query_chunks, parts, task % parts);
            for (int64_t chunk = query_range.first; chunk < query_range.last; chunk++) {
                if (!has_queries(chunk)) continue;
                prepare_queries(head, task / parts, chunk, buffers);
                add_to_state(sizes, query_states + task * state_size, buffers.queries,
                             buffers.outputs, buffers.totals, count_queries(chunk));
            }
        });
        for (int64_t head = 0; head < heads; head++) {
            const int64_t first = head * parts * state_size;
            accumulate_parts(sizes, key_states + first, parts, false, spare);
            accumulate_parts(sizes, query_states + first, parts, true, spare);
        }
    }
    parallel_for(heads * parts, int(threads), [&](int64_t task) {
        const int64_t index = task / parts;
        const Head head(sizes, index, q, k, v, key_mask);
        const Buffers buffers(buffer_memory + task * Buffers::size(sizes), sizes);
        float *key_state = key_states + task * state_size;
        float *query_state = query_states + task * state_size;
        float *grad_features = buffers.transposed;
        if (causal && task % parts == 0)  // queries before the first key
            memset(grad_q + index * sizes.queries * width, 0,
                   larger(0, -chunks.offset) * width * sizeof(float));
        const Range query_range(query_chunks, parts, task % parts);
        for (int64_t chunk = query_range.first; chunk < query_range.last; chunk++) {
            if (causal) {
                const int64_t first = first_key(chunk);
                compute_key_features(
                    sizes, head.k, head.key_mask, first, count_keys(chunk), buffers.keys);
            }
            if (has_queries(chunk)) {
                const int64_t query = first_query(chunk), count = count_queries(chunk);
                prepare_queries(head, index, chunk, buffers);
                multiply(count, width, value_width, buffers.outputs, value_width, 1, key_state,
                         width, grad_features, width, false);
                const float *key_sum = features_of(key_state, sizes);
                for (int64_t i = 0; i < count; i++)
                    for (int64_t d = 0; d < width; d++)
                        grad_features[i * width + d] += buffers.totals[i] * key_sum[d];
                if (causal) {
                    transpose(count, value_width, head.v + first_key(chunk) * value_width,
                              value_width, buffers.values, CHUNK);
                    differentiate_pairs(sizes, buffers, count);
                    multiply(count, width, count, buffers.gradients, CHUNK, 1, buffers.keys, width,
                             grad_features, width, true);
                }
                apply_slope(head.q + query * width, buffers.queries, grad_features, count * width,
                            grad_q + (index * sizes.queries + query) * width);
            }
            if (causal)
                add_to_transposed_state(sizes, key_state, buffers.keys,
                                        head.v + first_key(chunk) * value_width, count_keys(chunk));
        }
        const Range key_range(key_chunks, parts, task % parts);
        for (int64_t chunk = key_range.last - 1; chunk >= key_range.first; chunk--) {
            const int64_t first = first_key(chunk), count = count_keys(chunk);
            const bool has_pairs = causal && has_queries(chunk);
            float *grad_values = grad_v + (index * sizes.keys + first) * value_width;
            compute_key_features(sizes, head.k, head.key_mask, first, count, buffers.keys);
            transpose(count, value_width, head.v + first * value_width, value_width, buffers.values,
                      CHUNK);
            multiply(count, value_width, width, buffers.keys, width, 1, query_state, value_width,
                     grad_values, value_width, false);
            if (has_pairs) {
                prepare_queries(head, index, chunk, buffers);
                multiply_pairs(sizes, buffers, count);
                differentiate_pairs(sizes, buffers, count);
                multiply(count, value_width, count, buffers.products, 1, CHUNK, buffers.outputs,
                         value_width, grad_values, value_width, true);
            }
            // the gradient of φ(k) by features, (width, CHUNK): so no state needs to be transposed
            multiply(width, count, value_width, query_state, value_width, 1, buffers.values, CHUNK,
                     grad_features, CHUNK, false);
            if (has_pairs)
                multiply(width, count, count, buffers.queries, 1, width, buffers.gradients, CHUNK,
                         grad_features, CHUNK, true);
            const float *query_sum = features_of(query_state, sizes);
            for (int64_t d = 0; d < width; d++)
                for (int64_t j = 0; j < count; j++) grad_features[d * CHUNK + j] += query_sum[d];
            float *transposed_back = grad_features + CHUNK * width;
            transpose(width, count, grad_features, CHUNK, transposed_back, width);
            float *grad_keys = grad_k + (index * sizes.keys + first) * width;
            apply_slope(head.k + first * width, buffers.keys, transposed_back, count * width,
                        grad_keys);
            for (int64_t j = 0; head.key_mask && j < count; j++)
                if (!head.key_mask[first + j]) memset(grad_keys + j * width, 0, width * sizeof(float));
            if (has_pairs)
                add_to_state(sizes, query_state, buffers.queries, buffers.outputs, buffers.totals,
                             count);
        }
    });
}
