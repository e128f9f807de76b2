// Additive attention: out = softmax(u · tanh(q_i + k_j)) · v, and its gradients.
//
// Algorithm. tanh(q + k) = 1 − 2r with r = 1 / (1 + e^(2q) · e^(2k)). The exponentials of queries and
// keys are computed once, so that each of the Q·K·D values costs a product and a reciprocal instead
// of a tanh. The score is Σ_d u_d − 2 Σ_d u_d r_d; its first sum is the same for all keys and cancels
// in the softmax. With g = ∂loss/∂score:
//     ∂loss/∂q_id = 4 u_d Σ_j g_ij (r − r²)      since 1 − tanh² = 4 (r − r²)
//     ∂loss/∂k_jd = 4 u_d Σ_i g_ij (r − r²)
//     ∂loss/∂u_d  = −2 Σ_ij g_ij r               since Σ_j g_ij = 0
// The backward pass computes scores and r again: nothing of size Q×K is kept.
//
// Why it is exact. e^(2q) has a relative error of a few units in the last place for every q, hence so
// has 1 + e^(2q) · e^(2k), a sum of positive numbers, and r. As r ≤ 1, the absolute error of tanh is
// that of a rounded number near 1. The product cannot overflow if no |q| and |k| exceeds MAX_INPUT;
// a head with larger inputs (or NaN) takes e^(2(q + k)) for each value, which is slower.
//
// Data layout. q, k, v, out and gradients are contiguous (head of the batch, time, features); u is
// (head, D). Keys are transposed to (D, keys), so that one vector holds one feature of many keys. A
// task has the weights of QUERY_BLOCK queries for all keys in its own memory.
#include "gemm_tile.h"

#include <cstdlib>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace {

constexpr int64_t QUERY_BLOCK = 8;
constexpr int ROWS = 4;  // queries that share the loads of a vector of keys
constexpr float MAX_INPUT = 21;  // e^(4 · 21) is finite
constexpr float MAX_EXPONENT = 80;

struct Sizes {
    int64_t batch, heads, queries, keys, width, value_width;
    bool causal;
    int64_t padded_keys() const { return round_up(keys, LANES); }
    int64_t num_heads() const { return batch * heads; }
    // Number of keys that a query sees; the last query is at the last key.
    int64_t visible_keys(int64_t query) const {
        if (!causal) return keys;
        const int64_t visible = query + 1 + keys - queries;
        return visible < 0 ? 0 : visible;
    }
};

ALWAYS_INLINE Vec reciprocal(Vec x) {
#if defined(__AVX512F__)
    // 14 digits, doubled by a step of Newton: a third of the time of a division
    const Vec r = (Vec)_mm512_maskz_rcp14_ps(0xFFFF, (__m512)x);
    return r * (2.0f - x * r);
#else
    return 1.0f / x;
#endif
}

// r = 1 / (1 + e^(2(q + k))). IS_PRODUCT: a and b are e^(2q) and e^(2k), else 2q and 2k.
template <bool IS_PRODUCT>
ALWAYS_INLINE Vec sigmoid_of_sum(float a, Vec b) {
    if (IS_PRODUCT) return reciprocal(a * b + 1.0f);
    const Vec sum = a + b;
    return reciprocal(exp(sum > MAX_EXPONENT ? broadcast(MAX_EXPONENT) : sum) + 1.0f);
}

// What a head's tasks share: inputs of r, values by features, and whether the fast form is safe.
struct Head {
    const float *query_terms;  // (queries, width): e^(2q) or 2q
    const float *key_terms;    // (width, padded keys): e^(2k) or 2k
    const float *u;
    const uint8_t *key_mask;  // nullptr or one byte per key, 0 for padding
    bool is_product;
};

bool exceeds(const float *x, int64_t count, float limit) {
    bool within = true;
    for (int64_t i = 0; i < count; i++) within &= std::fabs(x[i]) <= limit;  // false for NaN
    return !within;
}

void exponentiate(float *x, int64_t count) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) store(x + i, exp(load(x + i)));
    if (i < count) store_first(x + i, exp(load_first(x + i, count - i)), count - i);
}

// Writes query_terms and key_terms of one head and returns whether they are exponentials.
bool prepare_head(const Sizes &sizes, const float *q, const float *k, float *query_terms,
                  float *key_terms) {
    const int64_t query_values = sizes.queries * sizes.width, padded = sizes.padded_keys();
    transpose(sizes.keys, sizes.width, k, sizes.width, key_terms, padded);
    for (int64_t d = 0; d < sizes.width; d++)
        for (int64_t j = 0; j < padded; j++)
            key_terms[d * padded + j] = j < sizes.keys ? 2 * key_terms[d * padded + j] : 0;
    for (int64_t i = 0; i < query_values; i++) query_terms[i] = 2 * q[i];
    const bool is_product = !exceeds(q, query_values, MAX_INPUT) &&
                            !exceeds(k, sizes.keys * sizes.width, MAX_INPUT);
    if (is_product) {
        exponentiate(query_terms, query_values);
        exponentiate(key_terms, sizes.width * padded);
    }
    return is_product;
}

// −2 Σ_d u_d r_d of `NUM` queries and the keys of one or two vectors.
template <bool IS_PRODUCT, int NUM, int VECS>
ALWAYS_INLINE void score_block(
    const Sizes &sizes, const Head &head, int64_t query, int64_t key, float *scores) {
    Vec sum[NUM][VECS] = {};
    const int64_t width = sizes.width, padded = sizes.padded_keys();
    const float *a = head.query_terms + query * width, *b = head.key_terms + key;
    for (int64_t d = 0; d < width; d++) {
        const float u = head.u[d];
        for (int vec = 0; vec < VECS; vec++) {
            const Vec keys = load(b + d * padded + vec * LANES);
            for (int row = 0; row < NUM; row++)
                sum[row][vec] += u * sigmoid_of_sum<IS_PRODUCT>(a[row * width + d], keys);
        }
    }
    for (int row = 0; row < NUM; row++)
        for (int vec = 0; vec < VECS; vec++)
            store(scores + row * padded + key + vec * LANES, -2.0f * sum[row][vec]);
}

template <bool IS_PRODUCT, int NUM>
void score_rows(
    const Sizes &sizes, const Head &head, int64_t query, int64_t last_key, float *scores) {
    int64_t key = 0;
    for (; key + 2 * LANES <= last_key; key += 2 * LANES)
        score_block<IS_PRODUCT, NUM, 2>(sizes, head, query, key, scores);
    if (key < last_key) score_block<IS_PRODUCT, NUM, 1>(sizes, head, query, key, scores);
}

// Scores of `count` queries for the first `last_key` keys, a multiple of LANES; −infinity for keys
// that a query does not see.
void compute_scores(
    const Sizes &sizes, const Head &head, int64_t query, int64_t count, int64_t last_key,
    float *scores) {
    const int64_t padded = sizes.padded_keys();
    for (int64_t row = 0; row < count;) {
        const bool is_full = row + ROWS <= count;
        float *target = scores + row * padded;
        if (head.is_product)
            (is_full ? score_rows<true, ROWS> : score_rows<true, 1>)(
                sizes, head, query + row, last_key, target);
        else
            (is_full ? score_rows<false, ROWS> : score_rows<false, 1>)(
                sizes, head, query + row, last_key, target);
        row += is_full ? ROWS : 1;
    }
    for (int64_t row = 0; row < count; row++) {
        float *target = scores + row * padded;
        if (head.key_mask)
            for (int64_t j = 0; j < sizes.keys && j < last_key; j++)
                if (!head.key_mask[j]) target[j] = -INFINITY;
        for (int64_t j = sizes.visible_keys(query + row); j < last_key; j++) target[j] = -INFINITY;
    }
}

// exp(score − shift) in place; returns the sum. −infinity gives 0, NaN stays NaN.
float exponentiate_row(float *row, int64_t last_key, float shift) {
    Vec sum = {};
    for (int64_t j = 0; j < last_key; j += LANES) {
        const Vec weight = exp(load(row + j) - shift);
        store(row + j, weight);
        sum += weight;
    }
    return sum_lanes(sum);
}

// The largest score of a row, 0 if all keys are masked. NaN is skipped.
float largest_score(const float *row, int64_t last_key) {
    Vec largest = broadcast(-INFINITY);
    for (int64_t j = 0; j < last_key; j += LANES) largest = maximum(load(row + j), largest);
    const float result = max_lanes(largest);
    return result > -INFINITY ? result : 0;
}

int64_t last_visible_key(const Sizes &sizes, int64_t query, int64_t count) {
    return round_up(sizes.visible_keys(query + count - 1), LANES);
}

Head get_head(const Sizes &sizes, int64_t head, const float *query_terms, const float *key_terms,
              const float *u, const uint8_t *key_mask, const uint8_t *is_product) {
    return {query_terms + head * sizes.queries * sizes.width,
            key_terms + head * sizes.width * sizes.padded_keys(),
            u + head % sizes.heads * sizes.width,
            key_mask ? key_mask + head / sizes.heads * sizes.keys : nullptr,
            is_product[head] != 0};
}

// Gradients of `NUM` queries, for all features: adds g (r − r²) over the keys to grad_q and over the
// queries to grad_keys (width, padded keys), and g r over both to grad_u.
template <bool IS_PRODUCT, int NUM>
void differentiate_rows(
    const Sizes &sizes, const Head &head, int64_t query, int64_t last_key, const float *grad_scores,
    float *grad_q, float *grad_keys, double *grad_u) {
    const int64_t width = sizes.width, padded = sizes.padded_keys();
    for (int64_t d = 0; d < width; d++) {
        Vec query_sum[NUM] = {}, u_sum = {};
        float a[NUM];
        for (int row = 0; row < NUM; row++) a[row] = head.query_terms[(query + row) * width + d];
        const float *b = head.key_terms + d * padded;
        float *key_sum = grad_keys + d * padded;
        for (int64_t j = 0; j < last_key; j += LANES) {
            const Vec keys = load(b + j);
            Vec sum = load(key_sum + j);
            for (int row = 0; row < NUM; row++) {
                const Vec r = sigmoid_of_sum<IS_PRODUCT>(a[row], keys);
                const Vec weighted = load(grad_scores + row * padded + j) * r;
                const Vec slope = weighted - weighted * r;
                u_sum += weighted;
                query_sum[row] += slope;
                sum += slope;
            }
            store(key_sum + j, sum);
        }
        for (int row = 0; row < NUM; row++)
            grad_q[(query + row) * width + d] = 4 * head.u[d] * sum_lanes(query_sum[row]);
        grad_u[d] += sum_lanes(u_sum);
    }
}

// Memory of the part of a head's queries that one task of the backward pass computes.
struct Part {
    float *grad_keys;    // (width, padded keys), before the factor 4 u
    float *grad_values;  // (keys, value_width)
    double *grad_u;      // (width), before the factor −2
    static int64_t size(const Sizes &sizes) {
        // a multiple of 16 floats, so that the doubles of every part are aligned
        return round_up(
            (sizes.width + sizes.value_width) * sizes.padded_keys() + 2 * sizes.width, 16);
    }
    Part(float *memory, const Sizes &sizes) {
        grad_u = reinterpret_cast<double *>(memory);
        grad_keys = memory + 2 * sizes.width;
        grad_values = grad_keys + sizes.width * sizes.padded_keys();
    }
};

int64_t num_parts(const Sizes &sizes, int threads) {
    // Enough tasks for all threads; every part costs memory and a sum at the end.
    const int64_t wanted = (2 * threads + sizes.num_heads() - 1) / sizes.num_heads();
    const int64_t most = (sizes.queries + 31) / 32;
    return wanted < most ? wanted : most;
}

}  // namespace

// `sizes`: batch, heads, queries, keys, width, value width, causal. key_mask (batch, keys) is NULL or
// 0 for padding. Also writes the terms of queries and keys and the log-sum-exp of every query, for
// the backward pass. `ok` becomes 1, or 0 if there is no memory.
KERNEL(additive_forward)
(const float *q, const float *k, const float *v, const float *u, const uint8_t *key_mask,
 float *out, float *logsumexp, float *query_terms, float *key_terms, uint8_t *is_product,
 const int64_t *size_list, int64_t threads, int64_t *ok) {
    const Sizes sizes = {size_list[0], size_list[1], size_list[2], size_list[3],
                         size_list[4], size_list[5], size_list[6] != 0};
    const int64_t queries = sizes.queries, padded = sizes.padded_keys(), width = sizes.width;
    const int64_t value_width = sizes.value_width;
    parallel_for(sizes.num_heads(), int(threads), [&](int64_t head) {
        is_product[head] = prepare_head(
            sizes, q + head * queries * width, k + head * sizes.keys * width,
            query_terms + head * queries * width, key_terms + head * width * padded);
    });
    const int64_t blocks = (queries + QUERY_BLOCK - 1) / QUERY_BLOCK;
    int64_t next = 0, has_memory = 1;
    run_on_threads(int(threads), [&](int, int) {
        float *scores = static_cast<float *>(malloc(QUERY_BLOCK * padded * sizeof(float)));
        if (!scores) {
            __atomic_store_n(&has_memory, 0, __ATOMIC_RELAXED);
            return;
        }
        for (;;) {
            const int64_t task = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
            if (task >= blocks * sizes.num_heads()) break;
            const int64_t index = task / blocks, query = task % blocks * QUERY_BLOCK;
            const int64_t count = queries - query < QUERY_BLOCK ? queries - query : QUERY_BLOCK;
            const int64_t last_key = last_visible_key(sizes, query, count);
            const Head head =
                get_head(sizes, index, query_terms, key_terms, u, key_mask, is_product);
            compute_scores(sizes, head, query, count, last_key, scores);
            for (int64_t row = 0; row < count; row++) {
                float *weights = scores + row * padded;
                const float shift = largest_score(weights, last_key);
                const float sum = exponentiate_row(weights, last_key, shift);
                // a row without visible keys has the weights exp(−infinity) = 0 in both passes
                logsumexp[index * queries + query + row] =
                    sum == 0 ? INFINITY : shift + std::log(sum);
                const float factor = sum == 0 ? 0 : 1 / sum;
                for (int64_t j = 0; j < last_key; j += LANES)
                    store(weights + j, load(weights + j) * factor);
            }
            multiply(count, value_width, last_key < sizes.keys ? last_key : sizes.keys, scores, padded,
                     1, v + index * sizes.keys * value_width, value_width,
                     out + (index * queries + query) * value_width, value_width, false);
        }
        free(scores);
    });
    *ok = has_memory;
}

// Floats of the scratch memory of the backward pass.
KERNEL(additive_scratch_size)(const int64_t *size_list, int64_t threads, int64_t *size) {
    const Sizes sizes = {size_list[0], size_list[1], size_list[2], size_list[3],
                         size_list[4], size_list[5], size_list[6] != 0};
    const int64_t rows = 2 * QUERY_BLOCK * sizes.padded_keys();  // a multiple of 16 floats
    const int64_t values = sizes.value_width * sizes.padded_keys();
    const int64_t parts = num_parts(sizes, int(threads));
    *size = sizes.num_heads() * (values + parts * (Part::size(sizes) + rows));
}

KERNEL(additive_backward)
(const float *v, const float *u, const uint8_t *key_mask, const float *out, const float *logsumexp,
 const float *query_terms, const float *key_terms, const uint8_t *is_product, const float *grad_out,
 float *grad_q, float *grad_k, float *grad_v, float *grad_u, float *scratch,
 const int64_t *size_list, int64_t threads) {
    const Sizes sizes = {size_list[0], size_list[1], size_list[2], size_list[3],
                         size_list[4], size_list[5], size_list[6] != 0};
    const int64_t queries = sizes.queries, keys = sizes.keys, padded = sizes.padded_keys();
    const int64_t width = sizes.width, value_width = sizes.value_width, heads = sizes.num_heads();
    const int64_t parts = num_parts(sizes, int(threads)), rows_size = QUERY_BLOCK * padded;
    const int64_t part_queries = round_up((queries + parts - 1) / parts, ROWS);
    // per head the values by features (value_width, padded keys); per part a Part and two blocks of
    // rows. Parts come first: they hold doubles.
    const int64_t part_size = Part::size(sizes) + 2 * rows_size;
    float *transposed_values = scratch + heads * parts * part_size;
    parallel_for(heads, int(threads), [&](int64_t head) {
        float *target = transposed_values + head * value_width * padded;
        memset(target, 0, value_width * padded * sizeof(float));
        transpose(keys, value_width, v + head * keys * value_width, value_width, target, padded);
    });
    parallel_for(heads * parts, int(threads), [&](int64_t task) {
        const int64_t index = task / parts, first = task % parts * part_queries;
        const int64_t last = first + part_queries < queries ? first + part_queries : queries;
        float *memory = scratch + task * part_size;
        memset(memory, 0, Part::size(sizes) * sizeof(float));
        Part part(memory, sizes);
        float *weights = memory + Part::size(sizes), *grad_scores = weights + rows_size;
        const Head head = get_head(sizes, index, query_terms, key_terms, u, key_mask, is_product);
        for (int64_t query = first; query < last; query += QUERY_BLOCK) {
            const int64_t count = last - query < QUERY_BLOCK ? last - query : QUERY_BLOCK;
            const int64_t last_key = last_visible_key(sizes, query, count);
            const int64_t real_keys = last_key < keys ? last_key : keys;
            const float *grad_rows = grad_out + (index * queries + query) * value_width;
            const float *out_rows = out + (index * queries + query) * value_width;
            compute_scores(sizes, head, query, count, last_key, weights);
            multiply(count, last_key, value_width, grad_rows, value_width, 1,
                     transposed_values + index * value_width * padded, padded, grad_scores, padded,
                     false);
            for (int64_t row = 0; row < count; row++) {
                float *weight = weights + row * padded, *grad = grad_scores + row * padded;
                exponentiate_row(weight, last_key, logsumexp[index * queries + query + row]);
                // Σ_j weight_j · ∂loss/∂weight_j
                const float mean =
                    dot(grad_rows + row * value_width, out_rows + row * value_width, value_width);
                for (int64_t j = 0; j < last_key; j += LANES)
                    store(grad + j, load(weight + j) * (load(grad + j) - mean));
            }
            multiply(real_keys, value_width, count, weights, 1, padded, grad_rows, value_width,
                     part.grad_values, value_width, true);
            float *grad_q_of_head = grad_q + index * queries * width;
            for (int64_t row = 0; row < count;) {
                const bool is_full = row + ROWS <= count;
                auto differentiate = differentiate_rows<true, ROWS>;
                if (!head.is_product)
                    differentiate =
                        is_full ? differentiate_rows<false, ROWS> : differentiate_rows<false, 1>;
                else if (!is_full)
                    differentiate = differentiate_rows<true, 1>;
                differentiate(sizes, head, query + row, last_key, grad_scores + row * padded,
                              grad_q_of_head, part.grad_keys, part.grad_u);
                row += is_full ? ROWS : 1;
            }
        }
    });
    // Sum the parts of each head. `grad_u` is (batch · heads, width) here.
    parallel_for(heads, int(threads), [&](int64_t head) {
        Part sum(scratch + head * parts * part_size, sizes);
        for (int64_t index = 1; index < parts; index++) {
            const Part part(scratch + (head * parts + index) * part_size, sizes);
            for (int64_t i = 0; i < (width + value_width) * padded; i++)
                sum.grad_keys[i] += part.grad_keys[i];  // and grad_values, which follow
            for (int64_t d = 0; d < width; d++) sum.grad_u[d] += part.grad_u[d];
        }
        const float *u_of_head = u + head % sizes.heads * width;
        for (int64_t d = 0; d < width; d++) {
            for (int64_t j = 0; j < keys; j++) sum.grad_keys[d * padded + j] *= 4 * u_of_head[d];
            grad_u[head * width + d] = float(-2 * sum.grad_u[d]);
        }
        transpose(width, keys, sum.grad_keys, padded, grad_k + head * keys * width, width);
        memcpy(grad_v + head * keys * value_width, sum.grad_values,
               keys * value_width * sizeof(float));
    });
}
