// Local attention: a query sees the keys at most `reach` positions away. O(n·w) time, O(n) memory.
//
// Queries, keys and values are (batch, head, time, feature) with any strides, but neighbouring
// features; the last query has the position of the last key. One task is a chunk of positions of one
// head. Its rows fit in the second-level cache, so each value comes from memory about once.
//
// The forward pass does one thing after the other for all queries of a chunk: dot products with the
// keys of their windows, into a table; the softmax of each row; sums of values. One query after the
// other would be slower: every step waits for the one before, and the processor cannot look far
// enough ahead to begin with the next query. The backward pass fills two tables: the weights p, again,
// and grad_score = p · (grad_p − Σ p · grad_p). A query's gradient is the sum of grad_score · key over
// its window, and the gradients of a key and value are sums over the queries around it. All are sums in
// registers that are written once; adding each pair's share to memory takes three times as long. The
// tables also have the queries within `reach` of the chunk, so that chunks are independent: two
// threads never write the same row, and the result does not depend on the number of threads.
//
// Nothing is approximated. NaN in a query or key makes its rows NaN, as in torch; a row without
// visible keys is zero.
#include <cstdlib>

#define NARROW_VECTORS  // dot products of short rows: most of the time goes into sums over lanes
#include "huge_pages.h"
#include "kernel.h"

namespace {

constexpr int BLOCK = 4;     // vectors of a row that `add_rows` keeps in registers
constexpr int64_t CHUNK = 128;  // positions of one task

// The rows of one head: row i are the features at time i.
struct Rows {
    float *data;
    int64_t stride;
    float *operator[](int64_t i) const { return data + i * stride; }
};

// A (batch, head, time, feature) array; `strides` are those of batch, head and time.
struct Array {
    float *data;
    const int64_t *strides;
    Rows head(int64_t batch, int64_t head) const {
        return {data + batch * strides[0] + head * strides[1], strides[2]};
    }
};

int64_t round_up(int64_t count, int64_t multiple) {
    return (count + multiple - 1) / multiple * multiple;
}

struct Shape {
    int64_t batch, heads, queries, keys, width, value_width, reach;
    bool causal;
    float scale;
    // of a query at `position`: the first key it sees, and the one after the last
    int64_t first_key(int64_t position) const { return position > reach ? position - reach : 0; }
    int64_t end_key(int64_t position) const {
        const int64_t end = causal ? position + 1 : position + reach + 1;
        return end < 0 ? 0 : end < keys ? end : keys;
    }
    int64_t offset() const { return keys - queries; }  // position of query 0
    // Columns of a table with a row per query: one per key from its position − reach on, and room for
    // the last vector of a row.
    int64_t columns() const { return round_up(2 * reach + 1, LANES) + LANES; }
};

// The queries of one head at some positions, row by row of a table: calls
// body(i, first key, number of keys, entry of the first key in the table).
template <class Body>
ALWAYS_INLINE void for_each_query(const Shape &shape, int64_t begin, int64_t end, Body body) {
    const int64_t offset = shape.offset(), columns = shape.columns();
    const int64_t stop = end < shape.keys ? end : shape.keys;
    for (int64_t position = begin < offset ? offset : begin; position < stop; position++) {
        const int64_t first = shape.first_key(position), last = shape.end_key(position);
        const int64_t column = first - (position - shape.reach);
        body(position - offset, first, last > first ? last - first : 0,
             (position - begin) * columns + column);
    }
}

// Lane i is row · rows[i]; for i ≥ `count` it is undefined. N rows at once, 1 ≤ count ≤ N.
template <int N>
ALWAYS_INLINE Vec dot_group(const float *row, const float *rows, int64_t stride, int64_t count, int64_t width) {
    const float *row_at[N];
    row_at[0] = rows;
    // rows after the last one repeat it
    for (int i = 1; i < N; i++) row_at[i] = row_at[i - 1] + (i < count ? stride : 0);
    Vec sum[N] = {};
    int64_t d = 0;
    for (; d + LANES <= width; d += LANES) {
        const Vec x = load(row + d);
        for (int i = 0; i < N; i++) sum[i] += x * load(row_at[i] + d);
    }
    if (d < width) {
        const Vec x = load_first(row + d, width - d);
        for (int i = 0; i < N; i++) sum[i] += x * load_first(row_at[i] + d, width - d);
    }
    return sum_each<N>(sum);
}

// out[i] = row · rows[i] for `count` rows. Writes whole vectors: a later load of a vector would have
// to wait for several smaller stores.
__attribute__((noinline)) void dot_many_rows(
    const float *row, const float *rows, int64_t stride, int64_t count, int64_t width, float *out) {
    for (; count > LANES / 2; count -= LANES, rows += LANES * stride, out += LANES)
        store(out, dot_group<LANES>(row, rows, stride, count, width));
    if (count > 0) store(out, dot_group<LANES / 2>(row, rows, stride, count, width));
}

ALWAYS_INLINE void dot_rows(
    const float *row, const float *rows, int64_t stride, int64_t count, int64_t width, float *out) {
    if (count > LANES / 2)
        dot_many_rows(row, rows, stride, count, width, out);
    else if (count > 0)
        store(out, dot_group<LANES / 2>(row, rows, stride, count, width));
}

// out = Σ factor[i · step] · rows[first + i] over `count` rows.
ALWAYS_INLINE void add_rows(
    const float *factor, int64_t step, Rows rows, int64_t first, int64_t count, int64_t width,
    float *out) {
    int64_t d = 0;
    for (; d + BLOCK * LANES <= width; d += BLOCK * LANES) {
        Vec sum[BLOCK] = {};
        for (int64_t i = 0; i < count; i++)
            for (int b = 0; b < BLOCK; b++)
                sum[b] += factor[i * step] * load(rows[first + i] + d + b * LANES);
        for (int b = 0; b < BLOCK; b++) store(out + d + b * LANES, sum[b]);
    }
    for (; d < width; d += LANES) {
        const int64_t lanes = width - d < LANES ? width - d : LANES;
        Vec sum = {};
        for (int64_t i = 0; i < count; i++)
            sum += factor[i * step] * load_first(rows[first + i] + d, lanes);
        store_first(out + d, sum, lanes);
    }
}

// The vector of scores from `i` on; −inf after the last one.
ALWAYS_INLINE Vec load_scores(const float *score, int64_t i, int64_t count, VecInt lane) {
    const Vec values = load(score + i);
    return i + LANES <= count ? values : lane < int(count - i) ? values : broadcast(-INFINITY);
}

// Softmax of `count` dot products, in place; 0 after the last one. The array has whole vectors.
// False if no key is visible: then all weights are 0.
ALWAYS_INLINE bool softmax(float *weight, const uint8_t *visible, int64_t count, float scale) {
    VecInt lane;
    for (int i = 0; i < LANES; i++) lane[i] = i;
    if (visible)
        for (int64_t i = 0; i < count; i++) weight[i] = visible[i] ? weight[i] : -INFINITY;
    Vec largest = broadcast(-INFINITY);
    for (int64_t i = 0; i < count; i += LANES)
        largest = maximum(load_scores(weight, i, count, lane), largest);
    // exp(−inf − 0) is 0; −inf − −inf would be NaN. A NaN among the scores stays NaN. The difference
    // comes before the product: fused, score * scale − max * scale is not 0 for the largest score,
    // but the rounding error of max * scale, which is 64 at 1e9.
    const float max = max_lanes(largest), shift = max == -INFINITY ? 0 : max;
    Vec total = {};
    for (int64_t i = 0; i < count; i += LANES) {
        const Vec value = exp((load_scores(weight, i, count, lane) - shift) * scale);
        store(weight + i, value);
        total += value;
    }
    const float sum = sum_lanes(total);
    if (sum == 0) return false;
    for (int64_t i = 0; i < count; i += LANES) store(weight + i, load(weight + i) * (1 / sum));
    return true;
}

// The shape from the array `sizes` that both entry points get.
Shape read_shape(const int64_t *sizes, float scale) {
    return {sizes[0], sizes[1], sizes[2],       sizes[3], sizes[4],
            sizes[5], sizes[6], sizes[7] != 0, scale};
}

// Calls body(batch, head, begin, end, scratch) for chunks of the positions from `start` to `stop` of
// every head. Each thread has `scratch_size` floats of its own. False if memory ran out.
template <class Body>
bool for_each_chunk(
    const Shape &shape, int64_t start, int64_t stop, int64_t chunk, int64_t scratch_size,
    int64_t threads, Body body) {
    const int64_t chunks = (stop - start + chunk - 1) / chunk;
    const int64_t tasks = shape.batch * shape.heads * chunks;
    int64_t next = 0, has_memory = 1;
    run_on_threads(int(tasks < threads ? tasks : threads), [&](int, int) {
        float *scratch = static_cast<float *>(malloc(scratch_size * sizeof(float)));
        if (!scratch) {
            __atomic_store_n(&has_memory, 0, __ATOMIC_RELAXED);
            return;
        }
        for (;;) {
            const int64_t task = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
            if (task >= tasks) break;
            const int64_t begin = start + task % chunks * chunk;
            body(task / chunks / shape.heads, task / chunks % shape.heads, begin,
                 begin + chunk < stop ? begin + chunk : stop, scratch);
        }
        free(scratch);
    });
    return has_memory;
}

// Attention of one head.
struct Head {
    const Shape &shape;
    Rows q, k, v;
    const uint8_t *is_key;

    const uint8_t *visible(int64_t first) const { return is_key ? is_key + first : nullptr; }

    // Softmax weights of the queries at the positions from `begin` to `end`, into a table.
    void fill_weights(int64_t begin, int64_t end, float *weights) const {
        for_each_query(
            shape, begin, end, [&](int64_t i, int64_t first, int64_t count, int64_t entry) {
                dot_rows(q[i], k[first], k.stride, count, shape.width, weights + entry);
            });
        for_each_query(
            shape, begin, end, [&](int64_t, int64_t first, int64_t count, int64_t entry) {
                softmax(weights + entry, visible(first), count, shape.scale);
            });
    }

    // Gradients of the scores of the same queries, into a table.
    void fill_grad_scores(
        int64_t begin, int64_t end, Rows grad_out, const float *weights, float *grad_scores) const {
        for_each_query(
            shape, begin, end, [&](int64_t i, int64_t first, int64_t count, int64_t entry) {
                dot_rows(
                    grad_out[i], v[first], v.stride, count, shape.value_width, grad_scores + entry);
            });
        for_each_query(
            shape, begin, end, [&](int64_t, int64_t first, int64_t count, int64_t entry) {
                const float *weight = weights + entry;
                float *grad_score = grad_scores + entry;
                // values of hidden keys may be anything, also NaN
                for (int64_t c = 0; is_key && c < count; c++)
                    if (!is_key[first + c]) grad_score[c] = 0;
                Vec products = {};
                int64_t c = 0;
                for (; c + LANES <= count; c += LANES)
                    products += load(weight + c) * load(grad_score + c);
                if (c < count)
                    products +=
                        load_first(weight + c, count - c) * load_first(grad_score + c, count - c);
                const float mean = sum_lanes(products);
                for (c = 0; c < count; c += LANES)
                    store(
                        grad_score + c,
                        load(weight + c) * (load(grad_score + c) - mean) * shape.scale);
            });
    }

    // out = Σ over the queries that see key j of their entry in a table · their row.
    void sum_queries(int64_t j, int64_t start, const float *table, Rows rows, int64_t width, float *out) const {
        const int64_t columns = shape.columns();
        int64_t low = shape.causal ? j : j - shape.reach, high = j + shape.reach;  // positions
        low = low < shape.offset() ? shape.offset() : low;
        high = high < shape.keys ? high : shape.keys - 1;
        // the next query is one row below, and one column to the left
        const float *entry = table + (low - start) * columns + j - low + shape.reach;
        add_rows(entry, columns - 1, rows, low - shape.offset(), high - low + 1, width, out);
    }
};

}  // namespace

// `sizes`: batch, heads, queries, keys, width, value width, reach, causal.
// `strides`: batch, head and time of q, k, v and out; then the batch stride of is_key, which is NULL
// or (batch, keys) with 1 for visible keys. `ok` becomes 0 if memory ran out.
KERNEL(localized_forward)
(float *q, float *k, float *v, const uint8_t *is_key, float *out, const int64_t *sizes,
 const int64_t *strides, float scale, int64_t threads, int64_t *ok) {
    const Shape shape = read_shape(sizes, scale);
    request_huge_pages(
        out, shape.batch * shape.heads * shape.queries * shape.value_width * sizeof(float));
    *ok = for_each_chunk(
        shape, shape.offset(), shape.keys, CHUNK, CHUNK * shape.columns(), threads,
        [&](int64_t b, int64_t h, int64_t begin, int64_t end, float *weights) {
            const Head head = {shape, Array{q, strides}.head(b, h), Array{k, strides + 3}.head(b, h),
                               Array{v, strides + 6}.head(b, h),
                               is_key ? is_key + b * strides[12] : nullptr};
            const Rows outputs = Array{out, strides + 9}.head(b, h);
            head.fill_weights(begin, end, weights);
            for_each_query(
                shape, begin, end, [&](int64_t i, int64_t first, int64_t count, int64_t entry) {
                    add_rows(
                        weights + entry, 1, head.v, first, count, shape.value_width, outputs[i]);
                });
        });
}

// `strides`: batch, head and time of q, k, v, grad_out, grad_q, grad_k, grad_v; then batch of is_key.
KERNEL(localized_backward)
(float *q, float *k, float *v, const uint8_t *is_key, float *grad_out, float *grad_q, float *grad_k,
 float *grad_v, const int64_t *sizes, const int64_t *strides, float scale, int64_t threads,
 int64_t *ok) {
    const Shape shape = read_shape(sizes, scale);
    const int64_t reach = shape.reach, start = shape.offset() < 0 ? shape.offset() : 0;
    const int64_t chunk = reach < CHUNK / 4 ? CHUNK : 4 * reach;
    const int64_t table_size = (chunk + 2 * reach) * shape.columns();
    *ok = for_each_chunk(
        shape, start, shape.keys, chunk, 2 * table_size, threads,
        [&](int64_t b, int64_t h, int64_t begin, int64_t end, float *weights) {
            const Head head = {shape, Array{q, strides}.head(b, h), Array{k, strides + 3}.head(b, h),
                               Array{v, strides + 6}.head(b, h),
                               is_key ? is_key + b * strides[21] : nullptr};
            const Rows grad_outputs = Array{grad_out, strides + 9}.head(b, h);
            const Rows grad_queries = Array{grad_q, strides + 12}.head(b, h);
            const Rows grad_keys = Array{grad_k, strides + 15}.head(b, h);
            const Rows grad_values = Array{grad_v, strides + 18}.head(b, h);
            float *grad_scores = weights + table_size;
            head.fill_weights(begin - reach, end + reach, weights);
            head.fill_grad_scores(begin - reach, end + reach, grad_outputs, weights, grad_scores);
            for_each_query(
                shape, begin, end, [&](int64_t i, int64_t first, int64_t count, int64_t entry) {
                    add_rows(
                        grad_scores + reach * shape.columns() + entry, 1, head.k, first, count,
                        shape.width, grad_queries[i]);
                });
            for (int64_t j = begin < 0 ? 0 : begin; j < end; j++) {
                head.sum_queries(j, begin - reach, grad_scores, head.q, shape.width, grad_keys[j]);
                head.sum_queries(j, begin - reach, weights, grad_outputs, shape.value_width,
                                 grad_values[j]);
            }
        });
}
