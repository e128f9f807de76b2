// Statistics of attention rows without the Q×K matrix: score a few rows, measure them, reuse the
// memory. A row is the distribution of one query over the keys: a softmax of scaled dot products.
//
// Entry points (capture/compiled_statistics.py calls them):
//   measure_head_rows    ROW_STATISTICS of every row of one call
//   measure_layer_rows   LAYER_STATISTICS of every row: all heads of a layer together
//   compare_call_rows    PAIR_STATISTICS of pairs of calls under one mask, head by head
//   sum_head_affinities  Σ √(p q) of the weights of every two heads of several calls
// Statistics without a value are not written: the caller fills the output with NaN.
//
// Algorithm. Keys are copied into panels of PANEL_KEYS keys, (panel, D, PANEL_KEYS), in the order
// in which they are read. A task is a block of rows of one head. For every panel and every tile of
// TILE_ROWS rows, the sums of a tile stay in registers over the loop of D (`score_tile`). Scores of
// a block of rows, at most SCORE_BYTES, stay in the second cache, where the passes below read them.
// Heads whose panels fit into PANEL_BYTES are packed together, so that a call of short rows has two
// parallel loops.
//
// Scores have base 2: they are multiplied by log2 e when queries are packed. So a weight before the
// division is e = 2^x with x = score − reference, and its exponent is split off without rounding.
// The entropy is log Σe − log 2 · Σ e·x / Σe, which needs no logarithm per key.
//
// Exactness. Every statistic is a sum over all visible keys in 32 bits, as in the definitions of
// capture/measures; nothing is sampled or cut off. A hidden key (masked, padding, or outside of the
// window) has a score below MIN_VISIBLE_SCORE and a weight of exactly 0. Rows are padded with
// hidden keys to whole vectors. Keys after the positions (learned sinks) are part of sums,
// entropies, largest weights and comparisons; distances count them as 0, mean positions skip them.
//
// Names: `unit` is example · heads + head, `key_unit` the same of key heads, `row` a query, `query`
// its key index, `column` a key counted from the first key of the panels that a block reads.
#include <cstdlib>

#include "kernel.h"
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace {

constexpr float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;
// As in capture/attention_call.py. The two bounds of scores serve for base 2 as well.
constexpr float HIDDEN_SCORE = -1e30f;
constexpr float MIN_VISIBLE_SCORE = -1e29f;
constexpr float HIDING_BIAS = -5e3f;

// Sums of a tile, key vectors and a query fill the vector registers: AVX-512 and NEON have 32,
// others 16.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int TILE_ROWS = 8;
#else
constexpr int TILE_ROWS = 4;
#endif
constexpr int PANEL_VECTORS = 3;
constexpr int PANEL_KEYS = PANEL_VECTORS * LANES;
constexpr int64_t SCORE_BYTES = 512 << 10;  // half of a usual second cache
constexpr int64_t MAX_BLOCK_ROWS = 32;      // more would leave threads without work in short inputs
constexpr int64_t PANEL_BYTES = 4 << 20;

// Arguments of one call; `NativeCall` in compiled_statistics.py has the same fields. Strides are in
// elements, in the order of the axes; 0 where a mask is broadcast. Masks may be null.
struct Call {
    const float *q, *k;       // (B, H, Q, D), (B, G, K, D); H / G heads share a key head
    const float *key_bias;    // (B, H, K), added to the scores of a key
    const float *bias;        // (B, H, Q, K), added to scores; HIDING_BIAS or less hides a pair
    const uint8_t *pairs;     // (B, H, Q, K), 0 hides a pair
    const int64_t *segments;  // (B, K): a query sees the keys of its own segment
    const int64_t *first_keys;  // (B, Q): the first key of a row's sequence; −1 if unknown
    const int64_t *targets;     // (B, Q): the key of induction; −1 if there is none
    int64_t q_strides[4], k_strides[4], key_bias_strides[3], bias_strides[4], pairs_strides[4];
    int64_t segments_strides[2];
    int64_t batch, heads, key_heads, queries, keys, width;
    int64_t positions;                // number of leading keys that are positions
    int64_t query_offset;             // key index of the first query
    int64_t keys_before, keys_after;  // how many keys before and after its own a query sees
    int64_t include_sink;             // whether a row sees its first key
    int64_t shares_positions;         // whether queries and keys are positions of one sequence
    double scale;

    int64_t units() const { return batch * heads; }
    int64_t key_unit(int64_t unit) const { return unit / (heads / key_heads); }
    // Window of a row: its first key, and the key after the last.
    int64_t first_visible(int64_t row) const {
        const int64_t first = query_offset + row - keys_before;
        return first > 0 ? first : 0;
    }
    int64_t end_visible(int64_t row) const {
        const int64_t end = query_offset + row + keys_after + 1;
        return end < 0 ? 0 : end < keys ? end : keys;
    }
    bool may_hide_keys() const {
        return key_bias || bias || pairs || segments || !include_sink;
    }
};

// Indices of ROW_STATISTICS in compiled_statistics.py.
enum RowStatistic {
    ENTROPY, VISIBLE, LOGIT, LARGEST, FIRST, PREVIOUS, DIAGONAL, INDUCTION, DISTANCE, POSITION,
    SPREAD, WITHIN, EXTRA, FROM_FIRST, SEES_FIRST
};

int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
int64_t round_up(int64_t count, int64_t multiple) {
    return (count + multiple - 1) / multiple * multiple;
}
ALWAYS_INLINE Vec absolute(Vec x) { return maximum(x, -x); }

// 0, 1, 2 … in the lanes.
ALWAYS_INLINE Vec lane_numbers() {
    Vec v;
    for (int lane = 0; lane < LANES; lane++) v[lane] = float(lane);
    return v;
}

// 2^x of x ≤ 126, off by at most 2e-7 of it; exactly 1 at 0; 0 far below 0; NaN for NaN.
#if defined(__AVX512F__)
// x = floor(x) + r with 0 ≤ r < 1 exact; 2^r is a polynomial with the smallest relative error.
ALWAYS_INLINE Vec exp2(Vec x) {
    const Vec r = _mm512_maskz_reduce_ps(0xFFFF, x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    Vec p = r * 0.0018671302f + 0.00901703f;
    p = p * r + 0.055799913f;
    p = p * r + 0.24016444f;
    p = p * r + 0.6931513f;
    p = p * r + 1.0f;
    return _mm512_maskz_scalef_ps(0xFFFF, p, x);  // p · 2^floor(x)
}
#else
// x = n + r, where n is whole and r exact; 2^r is a polynomial with the smallest relative error.
ALWAYS_INLINE Vec exp2(Vec x) {
    constexpr float ROUND = 12582912;  // 1.5 · 2^23: sums are whole numbers, in their last bits
    const Vec clamped = x < -125.0f ? broadcast(-125.0f) : x;
    const Vec shifted = clamped + ROUND, r = clamped - (shifted - ROUND);
    Vec p = r * 0.0013264727f + 0.009671513f;
    p = p * r + 0.055507336f;
    p = p * r + 0.24022242f;
    p = p * r + 0.693147f;
    p = p * r + 1.0f;
    // unsigned: above 2^127 the exponent wraps around, and the result is not used
    typedef uint32_t VecBits __attribute__((vector_size(LANES * 4)));
    VecBits n, bits;
    memcpy(&n, &shifted, sizeof n);
    memcpy(&bits, &p, sizeof bits);
    bits += n << 23;
    memcpy(&p, &bits, sizeof p);
    p = x < -125.0f ? Vec{} : p;
    return x == x ? p : x;
}
#endif

// Memory of one call of an entry point, aligned to cache lines; null if there is none.
class Buffer {
   public:
    explicit Buffer(int64_t floats) : memory_(malloc(floats * sizeof(float) + 64)) {}
    Buffer(const Buffer &) = delete;
    ~Buffer() { free(memory_); }
    bool is_missing() const { return memory_ == nullptr; }
    float *data() const {
        const uintptr_t address = reinterpret_cast<uintptr_t>(memory_);
        return reinterpret_cast<float *>((address + 63) & ~uintptr_t(63));
    }

   private:
    void *memory_;
};

// Keys of consecutive key heads in panels, padded with zeros.
struct Panels {
    const Call *call;
    float *data;
    int64_t first_key_unit;

    static int64_t size(const Call &call) { return round_up(call.keys, PANEL_KEYS) * call.width; }
    const float *of(int64_t unit) const {
        return data + (call->key_unit(unit) - first_key_unit) * size(*call);
    }
    void pack(int64_t key_unit, int64_t panel) const {
        const int64_t example = key_unit / call->key_heads, head = key_unit % call->key_heads;
        const int64_t *strides = call->k_strides;
        const int64_t first_key = panel * PANEL_KEYS;
        const int64_t count = min_of(PANEL_KEYS, call->keys - first_key);
        const float *k =
            call->k + example * strides[0] + head * strides[1] + first_key * strides[2];
        float *out = data + (key_unit - first_key_unit) * size(*call) + first_key * call->width;
        for (int64_t d = 0; d < call->width; d++, out += PANEL_KEYS) {
            for (int64_t j = 0; j < count; j++) out[j] = k[j * strides[2] + d * strides[3]];
            for (int64_t j = count; j < PANEL_KEYS; j++) out[j] = 0;
        }
    }
};

// out[:TILE_ROWS, :VECTORS·LANES] = qᵀ · panel. `q` is (D, TILE_ROWS), `panel` (D, PANEL_KEYS).
template <int VECTORS>
void score_tile(const float *q, const float *panel, int64_t width, float *out, int64_t stride) {
    Vec sums[TILE_ROWS][VECTORS] = {};
    for (int64_t d = 0; d < width; d++, q += TILE_ROWS, panel += PANEL_KEYS) {
        Vec key[VECTORS];
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; v++) key[v] = load(panel + v * LANES);
#pragma GCC unroll 8
        for (int i = 0; i < TILE_ROWS; i++) {
            const Vec query = broadcast(q[i]);
#pragma GCC unroll 8
            for (int v = 0; v < VECTORS; v++) sums[i][v] += query * key[v];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < TILE_ROWS; i++)
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; v++) store(out + i * stride + v * LANES, sums[i][v]);
}

// A block of rows of one unit, and the keys that it reads: whole panels.
struct Block {
    int64_t unit, first_row, rows;
    int64_t left;     // first key: column 0
    int64_t columns;  // number of columns, a multiple of LANES; 0 if no row sees a key

    Block(const Call &call, int64_t unit, int64_t first_row, int64_t max_rows)
        : unit(unit), first_row(first_row), rows(min_of(max_rows, call.queries - first_row)) {
        const int64_t low = call.first_visible(first_row);
        const int64_t high = call.end_visible(first_row + rows - 1);
        left = low / PANEL_KEYS * PANEL_KEYS;
        columns = low < high ? round_up(high - left, LANES) : 0;
    }
};

// Queries of a block times the scale, in tiles (D, TILE_ROWS); missing rows are 0.
void pack_queries(const Call &call, const Block &block, float *out) {
    const int64_t *strides = call.q_strides;
    const float *q = call.q + block.unit / call.heads * strides[0] +
                     block.unit % call.heads * strides[1] + block.first_row * strides[2];
    const float scale = float(call.scale * 1.4426950408889634);
    for (int64_t first = 0; first < block.rows; first += TILE_ROWS) {
        const int64_t count = min_of(TILE_ROWS, block.rows - first);
        for (int64_t d = 0; d < call.width; d++, out += TILE_ROWS)
            for (int64_t i = 0; i < TILE_ROWS; i++)
                out[i] = i < count ? q[(first + i) * strides[2] + d * strides[3]] * scale : 0;
    }
}

// Scores of all rows of a block, without masks. A tile skips panels that none of its rows sees.
void score_block(
    const Call &call, const Block &block, const float *panels, float *queries, float *scores,
    int64_t stride) {
    pack_queries(call, block, queries);
    for (int64_t column = 0; column < block.columns; column += PANEL_KEYS) {
        const int64_t key = block.left + column;
        const float *panel = panels + key * call.width;
        for (int64_t first = 0; first < block.rows; first += TILE_ROWS) {
            const int64_t last = min_of(first + TILE_ROWS, block.rows) - 1;
            const int64_t start = call.first_visible(block.first_row + first) - key;
            const int64_t end = call.end_visible(block.first_row + last) - key;
            if (end <= 0 || start >= PANEL_KEYS) continue;
            const float *tile = queries + first * call.width;
            float *out = scores + first * stride + column;
            if (end > 2 * LANES)
                score_tile<3>(tile, panel, call.width, out, stride);
            else if (end > LANES)
                score_tile<2>(tile, panel, call.width, out, stride);
            else
                score_tile<1>(tile, panel, call.width, out, stride);
        }
    }
}

// Scores of one row: `s[0]` is key `left`; keys outside of [low, high) are padding.
struct Row {
    float *s;
    int64_t left, low, high;
    int64_t first_column, end_column;  // of the whole vectors that contain low to high

    bool is_empty() const { return low >= high; }
    // Score of a key if it is among the first `end` keys and in the window, else HIDDEN_SCORE.
    float score(int64_t key, int64_t end) const {
        return key >= low && key < high && key < end ? s[key - left] : HIDDEN_SCORE;
    }
};

template <class Stride>
void hide_pairs(float *s, const uint8_t *pairs, Stride stride, int64_t low, int64_t high) {
    for (int64_t j = low; j < high; j++) s[j] = pairs[j * stride] ? s[j] : HIDDEN_SCORE;
}
template <class Stride>
void add_bias(float *s, const float *bias, Stride stride, int64_t low, int64_t high) {
    for (int64_t j = low; j < high; j++) {
        const float added = bias[j * stride];
        s[j] = added <= HIDING_BIAS ? HIDDEN_SCORE : s[j] + added * LOG2_E;
    }
}
struct UnitStride {};
ALWAYS_INLINE int64_t operator*(int64_t j, UnitStride) { return j; }

// Row i of a block with biases and masks applied.
Row mask_row(const Call &call, const Block &block, int64_t i, float *scores, int64_t stride) {
    const int64_t row = block.first_row + i;
    Row r = {scores + i * stride, block.left, call.first_visible(row), call.end_visible(row), 0, 0};
    if (r.is_empty()) return r;
    const int64_t low = r.low - r.left, high = r.high - r.left;
    r.first_column = low / LANES * LANES;
    r.end_column = round_up(high, LANES);
    for (int64_t j = r.first_column; j < low; j++) r.s[j] = HIDDEN_SCORE;
    for (int64_t j = high; j < r.end_column; j++) r.s[j] = HIDDEN_SCORE;
    if (!call.may_hide_keys()) return r;

    const int64_t example = block.unit / call.heads, head = block.unit % call.heads;
    float *s = r.s - r.left;  // by key
    if (call.key_bias) {
        const int64_t *strides = call.key_bias_strides;
        const float *bias = call.key_bias + example * strides[0] + head * strides[1];
        for (int64_t j = r.low; j < r.high; j++) s[j] += bias[j * strides[2]] * LOG2_E;
    }
    if (call.bias) {
        const int64_t *strides = call.bias_strides;
        const float *bias = call.bias + example * strides[0] + head * strides[1] + row * strides[2];
        if (strides[3] == 1)
            add_bias(s, bias, UnitStride(), r.low, r.high);
        else
            add_bias(s, bias, strides[3], r.low, r.high);
    }
    if (call.pairs) {
        const int64_t *strides = call.pairs_strides;
        const uint8_t *pairs =
            call.pairs + example * strides[0] + head * strides[1] + row * strides[2];
        if (strides[3] == 1)
            hide_pairs(s, pairs, UnitStride(), r.low, r.high);
        else
            hide_pairs(s, pairs, strides[3], r.low, r.high);
    }
    if (call.segments) {
        const int64_t *segments = call.segments + example * call.segments_strides[0];
        const int64_t step = call.segments_strides[1];
        const int64_t query = max_of(0, min_of(call.query_offset + row, call.keys - 1));
        for (int64_t j = r.low; j < r.high; j++)
            if (segments[j * step] != segments[query * step]) s[j] = HIDDEN_SCORE;
    }
    if (!call.include_sink) {
        const int64_t first_key = call.first_keys[example * call.queries + row];
        if (first_key >= r.low && first_key < r.high) s[first_key] = HIDDEN_SCORE;
    }
    return r;
}

// Largest score of a row, in the columns before `end`.
float find_largest(const Row &row, int64_t end) {
    Vec largest = broadcast(HIDDEN_SCORE);
    for (int64_t j = row.first_column; j < min_of(end, row.end_column); j += LANES)
        largest = maximum(load(row.s + j), largest);
    return max_lanes(largest);
}

// Number of visible keys of a row.
float count_visible(const Call &call, const Row &row) {
    if (!call.may_hide_keys()) return float(row.high - row.low);
    VecInt count = {};
    for (int64_t j = row.first_column; j < row.end_column; j += LANES)
        count -= load(row.s + j) > MIN_VISIBLE_SCORE;  // a true lane is −1
    return sum_lanes(__builtin_convertvector(count, Vec));
}

// Sum of e[low:high], with both ends clipped to the array.
float sum_range(const float *e, int64_t size, int64_t low, int64_t high) {
    low = max_of(low, 0), high = min_of(high, size);
    Vec total = {};
    int64_t j = low;
    for (; j + LANES <= high; j += LANES) total += load(e + j);
    float rest = 0;
    for (; j < high; j++) rest += e[j];
    return sum_lanes(total) + rest;
}

// Smallest distance from index `center` within which the weights `e` sum to `target_mass`.
// The search adds many distances at a time, and fewer in the range that reaches the target.
int64_t find_distance_containing(const float *e, int64_t size, int64_t center, float target_mass) {
    const int64_t max_distance = max_of(center, size - 1 - center);
    float mass = 0;
    int64_t distance = 0;
    for (int64_t step = 256; step > 0;) {
        if (distance >= max_distance) break;
        const int64_t left = center - distance, right = center + max_of(distance, 1);
        const float added = sum_range(e, size, left - step + 1, left + 1) +
                            sum_range(e, size, right, center + distance + step);
        if (mass + added >= target_mass)
            step /= 16;  // the target lies in this range: 256, 16, 1, end
        else
            mass += added, distance += step;
    }
    return min_of(distance, max_distance);
}

// What `measure_head_rows` writes, and where: statistic s of a row of a unit is at
// values[s · stride + unit · queries + row].
struct RowOutput {
    float *values;
    int64_t stride;
    bool needs_spread;
    float mass_share;  // of "within"; 0: not needed
};

// Sums over keys, with e = 2^x, x = score − reference and offset = key − query.
struct RowSums {
    Vec largest = broadcast(HIDDEN_SCORE);  // largest score
    Vec sum = {};                           // Σ e
    Vec exponents = {};                     // Σ e · x
    Vec shift = {};                         // Σ e · offset

    // Adds the columns [first, end), whole vectors; `offset` is that of the first one.
    template <bool KEEP_WEIGHTS>
    ALWAYS_INLINE void add(float *s, int64_t first, int64_t end, float reference, Vec offset) {
        for (int64_t j = first; j < end; j += LANES) {
            const Vec score = load(s + j), x = score - reference, e = exp2(x);
            if (KEEP_WEIGHTS) store(s + j, e);
            largest = maximum(score, largest);
            sum += e;
            exponents += e * x;
            shift += e * offset;
            offset += float(LANES);
        }
    }
};

// Sums over a whole row. Keys before and after the query are summed apart, because their distances
// from it are −offset and offset: so the loop does not compute distances.
struct WholeRowSums {
    float largest, sum, exponent, shift, distance;

    template <bool KEEP_WEIGHTS>
    static WholeRowSums compute(const Row &row, int64_t query, float reference) {
        const int64_t first = row.first_column, end = row.end_column, own_column = query - row.left;
        // the vector of the query's own key; if that is not in the row, the end on its side
        const int64_t own = own_column < first ? first
                         : own_column >= end ? end
                                             : own_column / LANES * LANES;
        const int64_t after = min_of(own + LANES, end);
        const auto offset = [&](int64_t column) {
            return lane_numbers() + float(column - own_column);
        };
        RowSums left, middle, right;
        left.add<KEEP_WEIGHTS>(row.s, first, own, reference, offset(first));
        middle.add<KEEP_WEIGHTS>(row.s, own, after, reference, offset(own));
        right.add<KEEP_WEIGHTS>(row.s, after, end, reference, offset(after));
        return {
            max_lanes(maximum(left.largest, maximum(middle.largest, right.largest))),
            sum_lanes(left.sum + middle.sum + right.sum),
            sum_lanes(left.exponents + middle.exponents + right.exponents),
            sum_lanes(left.shift + middle.shift + right.shift),
            sum_lanes(right.shift - left.shift + middle.sum * absolute(offset(own))),
        };
    }
};

// A score that weights may be relative to: 2^(score − reference) must not overflow, nor round the
// largest weights to 0. The largest of the first keys serves if the largest of all is not much
// larger; so that is checked after the pass over the row instead of finding it in another one.
constexpr int64_t REFERENCE_KEYS = 128;
constexpr float MAX_ABOVE_REFERENCE = 60;

void measure_row(
    const Call &call, int64_t unit, int64_t row_index, const Row &row, const RowOutput &output) {
    const int64_t query = call.query_offset + row_index, end = min_of(row.high, call.positions);
    const int64_t at = unit / call.heads * call.queries + row_index;
    const int64_t first_key = call.first_keys[at];
    // scores of single keys, before weights replace them
    Vec single = broadcast(HIDDEN_SCORE);
    single[0] = row.score(first_key, end);
    single[1] = row.score(query - 1, end);
    single[2] = row.score(query, end);
    single[3] = row.score(call.targets[at], end);
    const float visible = count_visible(call, row);

    const bool keep_weights = output.needs_spread || output.mass_share > 0;
    const int64_t extra_key = max_of(row.low, end);  // keys from here on are not positions
    float reference = find_largest(row, row.first_column + REFERENCE_KEYS), largest = reference;
    Vec extra_sum = {}, extra_exponents = {};
    WholeRowSums sums;
    if (keep_weights || extra_key < row.high) {
        largest = find_largest(row, row.end_column);
        if (largest - reference > MAX_ABOVE_REFERENCE) reference = largest;
        for (int64_t key = extra_key; key < row.high; key += LANES) {
            Vec x = broadcast(HIDDEN_SCORE);
            memcpy(&x, row.s + key - row.left, min_of(LANES, row.high - key) * sizeof(float));
            x -= reference;
            const Vec e = exp2(x);
            extra_sum += e;
            extra_exponents += e * x;
        }
        for (int64_t key = extra_key; key < row.high; key++) row.s[key - row.left] = HIDDEN_SCORE;
        sums = keep_weights ? WholeRowSums::compute<true>(row, query, reference)
                            : WholeRowSums::compute<false>(row, query, reference);
    } else {
        sums = WholeRowSums::compute<false>(row, query, reference);
        largest = sums.largest;
        if (largest - reference > MAX_ABOVE_REFERENCE) {
            reference = largest;
            sums = WholeRowSums::compute<false>(row, query, reference);
        }
    }
    if (largest < MIN_VISIBLE_SCORE) return;

    float *out = output.values + unit * call.queries + row_index;
    const auto write = [&](RowStatistic statistic, float value) {
        out[statistic * output.stride] = value;
    };
    const float extra = sum_lanes(extra_sum), total = sums.sum + extra;
    const float exponent = sums.exponent + sum_lanes(extra_exponents);
    write(ENTROPY, logf(total) - LN_2 * exponent / total);
    write(VISIBLE, visible);
    write(LOGIT, largest * LN_2);
    write(EXTRA, extra / total);

    const Vec weights = exp2(single - reference) / total;
    write(LARGEST, exp2(broadcast(largest - reference))[0] / total);
    // a row that sees a single key gives it all weight, which says nothing about the first key
    if (visible > 1 && first_key >= 0) {
        write(FIRST, weights[0]);
        write(SEES_FIRST, single[0] > MIN_VISIBLE_SCORE ? 1 : 0);
    }
    if (call.shares_positions) {
        // meaningless if there is no first key: readers use it only together with FIRST
        write(FROM_FIRST, float(first_key < query ? query - first_key : first_key - query));
        if (single[1] > MIN_VISIBLE_SCORE) write(PREVIOUS, weights[1]);
        if (single[2] > MIN_VISIBLE_SCORE) write(DIAGONAL, weights[2]);
        if (single[3] > MIN_VISIBLE_SCORE) write(INDUCTION, weights[3]);
        write(DISTANCE, sums.distance / total);
    }
    if (sums.sum > 0) {
        const float shift = sums.shift / sums.sum;
        write(POSITION, float(query) + shift);
        if (output.needs_spread) {
            // a pass of its own: Σe·x² − (Σe·x)² would lose all digits of a narrow row
            Vec squares = {};
            Vec deviation = lane_numbers() + (float(row.left + row.first_column - query) - shift);
            for (int64_t j = row.first_column; j < row.end_column; j += LANES) {
                squares += load(row.s + j) * deviation * deviation;
                deviation += float(LANES);
            }
            write(SPREAD, sqrtf(sum_lanes(squares) / sums.sum));
        }
    }
    if (output.mass_share > 0 && call.shares_positions) {
        const float *e = row.s + row.low - row.left;
        const int64_t size = max_of(0, end - row.low);
        const float target_mass = output.mass_share * total - extra;
        write(WITHIN, float(find_distance_containing(e, size, query - row.low, target_mass)));
    }
}

// Largest score of a row and sum of its 2^(score − largest), which replace the scores in `weights`
// (may be the row itself). Visible keys get at least 2^−125, so that they differ from hidden ones.
struct Softmax {
    float largest, total, entropy;
};
Softmax compute_softmax(const Row &row, float *weights) {
    const float largest = find_largest(row, row.end_column);
    if (largest < MIN_VISIBLE_SCORE) return {largest, 0, 0};
    Vec sum = {}, exponents = {};
    for (int64_t j = row.first_column; j < row.end_column; j += LANES) {
        const Vec score = load(row.s + j);
        const Vec x = maximum(score - largest, broadcast(-125.0f));
        const Vec e = score > MIN_VISIBLE_SCORE ? exp2(x) : Vec{};
        store(weights + j, e);
        sum += e;
        exponents += e * x;
    }
    const float total = sum_lanes(sum);
    return {largest, total, logf(total) - LN_2 * sum_lanes(exponents) / total};
}

// Running mean and variance of a weight over the heads (Welford, 1962): row of head number `head`.
// Returns what it adds to the sum of squares.
float update_mean(const Row &row, float total, int64_t head, float *mean) {
    const float scale = 1 / total, rate = 1 / float(head + 1);
    Vec squares = {};
    for (int64_t j = row.first_column; j < row.end_column; j += LANES) {
        const Vec weight = load(row.s + j) * scale, previous = load(mean + j);
        const Vec change = weight - previous;
        const Vec updated = previous + change * rate;
        store(mean + j, updated);
        squares += change * (weight - updated);
    }
    return sum_lanes(squares);
}

// Statistics of a layer from the mean weights of its heads.
void measure_mean_row(
    const Call &call, const Row &row, const float *mean, float entropies, float squares, float *out,
    int64_t stride) {
    Vec entropy = {};
    VecInt count = {};
    for (int64_t j = row.first_column; j < row.end_column; j += LANES) {
        const Vec m = load(mean + j);
        entropy -= m * log(maximum(m, broadcast(1e-37f)));  // `log` needs a normal number
        count -= m > 0.0f;
    }
    const float heads = float(call.heads);
    const float diversity = sum_lanes(entropy) - entropies / heads;
    out[0] = diversity < 0 ? 0 : diversity;
    out[stride] = squares / heads / sum_lanes(__builtin_convertvector(count, Vec));
}

// Scores and weights of a row in one of the calls that are compared.
struct ComparedRow {
    Row row;
    const float *weights;
    Softmax softmax;
};

void measure_pair(
    const Call &call, const ComparedRow &first, const ComparedRow &second, float min_distance,
    float *out, int64_t stride) {
    const Row &row = first.row;
    const float scale_p = 1 / first.softmax.total, scale_q = 1 / second.softmax.total;
    const float uniform = 1 / count_visible(call, row);
    // log2 p − log2 q = (score p − score q) − offset, finite even where a weight rounds to 0
    const float offset = (first.softmax.largest - second.softmax.largest) +
                         (log2f(first.softmax.total) - log2f(second.softmax.total));
    Vec js = {}, kl = {}, dot = {}, norm_p = {}, norm_q = {};
    for (int64_t j = row.first_column; j < row.end_column; j += LANES) {
        const Vec score = load(row.s + j);
        const Vec p = load(first.weights + j) * scale_p, q = load(second.weights + j) * scale_q;
        const Vec ratio = ((score - load(second.row.s + j)) - offset) * LN_2;
        kl += p * ratio;
        // p log(p/m) + q log(q/m) = (p + q) L − min(p, q)·|ratio| with m the mean of p and q and
        // L = log(max(p, q)/m) = 2 atanh(w), by its power series
        const Vec larger = maximum(p, q), sum = p + q;
        const Vec w = absolute(p - q) / maximum(sum + 2.0f * larger, broadcast(1e-37f));
        const Vec x = w * w;
        Vec series = x * float(1. / 11) + float(1. / 9);
        series = series * x + float(1. / 7);
        series = series * x + float(1. / 5);
        series = series * x + float(1. / 3);
        series = series * x + 1.0f;
        js += 2.0f * sum * w * series - minimum(p, q) * absolute(ratio);
        const Vec center = score > MIN_VISIBLE_SCORE ? broadcast(uniform) : Vec{};
        dot += (p - center) * (q - center);
        norm_p += (p - center) * (p - center);
        norm_q += (q - center) * (q - center);
    }
    const float bits = sum_lanes(js) / (2 * LN_2), nats = sum_lanes(kl);
    const float product = sum_lanes(dot);
    const float square_p = sum_lanes(norm_p), square_q = sum_lanes(norm_q);
    out[0] = bits < 0 ? 0 : bits > 1 ? 1 : bits;
    out[stride] = nats < 0 ? 0 : nats;
    // the cosine without centering: the uniform row is added back
    out[2 * stride] = (product + uniform) / sqrtf((square_p + uniform) * (square_q + uniform));
    if ((square_p < square_q ? square_p : square_q) >= uniform * min_distance * min_distance)
        out[3 * stride] = product / sqrtf(square_p * square_q);
}

// Square roots of the weights of a row: 2^(x/2) / √Σ 2^x.
void compute_roots(const Row &row, float *out) {
    const float largest = find_largest(row, row.end_column);
    Vec sum = {};
    for (int64_t j = row.first_column; j < row.end_column; j += LANES) {
        const Vec root = exp2((load(row.s + j) - largest) * 0.5f);
        store(out + j, root);
        sum += root * root;
    }
    const float scale = 1 / sqrtf(sum_lanes(sum));
    for (int64_t j = row.first_column; j < row.end_column; j += LANES)
        store(out + j, load(out + j) * scale);
}

// matrix[a, b] += Σ over counted rows i of roots[i, a] · roots[i, b] for a ≤ b; `roots` is
// (row, padded head, column). Every step computes DOT_ROWS × 2 products over all rows.
constexpr int64_t DOT_ROWS = 4;
void add_dot_products(
    const float *roots, const bool *is_counted, int64_t rows, int64_t heads, int64_t padded_heads,
    int64_t columns, int64_t stride, double *matrix) {
    for (int64_t a = 0; a < heads; a += DOT_ROWS)
        for (int64_t b = a; b < heads; b += 2) {
            Vec sums[DOT_ROWS][2] = {};
            for (int64_t i = 0; i < rows; i++) {
                if (!is_counted[i]) continue;
                const float *left = roots + (i * padded_heads + a) * stride;
                const float *right = roots + (i * padded_heads + b) * stride;
                for (int64_t j = 0; j < columns; j += LANES) {
                    const Vec first = load(right + j), second = load(right + stride + j);
#pragma GCC unroll 4
                    for (int64_t n = 0; n < DOT_ROWS; n++) {
                        const Vec value = load(left + n * stride + j);
                        sums[n][0] += value * first;
                        sums[n][1] += value * second;
                    }
                }
            }
            for (int64_t n = 0; n < DOT_ROWS; n++)
                for (int64_t m = 0; m < 2; m++)
                    if (a + n <= b + m && b + m < heads)
                        matrix[(a + n) * heads + b + m] += double(sum_lanes(sums[n][m]));
        }
}

// Calls body(task, scratch) for every task; threads take the next one when they have done one.
// Every thread has `scratch_floats` floats of its own in `scratch`.
template <class Body>
void run_tasks(int64_t tasks, int64_t threads, float *scratch, int64_t scratch_floats, Body body) {
    int64_t next = 0;
    run_on_threads(int(min_of(tasks, threads)), [&](int thread, int) {
        for (;;) {
            const int64_t task = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
            if (task >= tasks) return;
            body(task, scratch + thread * scratch_floats);
        }
    });
}

// Floats between two rows of scores: an odd number of vectors, because rows whose distance is a
// power of two would share the same lines of the cache.
int64_t score_stride(const Call &call) {
    return (round_up(call.keys, PANEL_KEYS) / LANES | 1) * LANES;
}

// Rows of a block with `row_copies` floats per score in memory.
int64_t block_rows(const Call &call, int64_t row_copies) {
    const int64_t fitting =
        SCORE_BYTES / (score_stride(call) * row_copies * int64_t(sizeof(float)));
    return max_of(TILE_ROWS, min_of(MAX_BLOCK_ROWS, fitting / TILE_ROWS * TILE_ROWS));
}

// Packs the keys of the key units from `panels.first_key_unit` to `end_key_unit` − 1.
void pack_keys(const Panels &panels, int64_t end_key_unit, int64_t threads) {
    const int64_t per_head = (panels.call->keys + PANEL_KEYS - 1) / PANEL_KEYS;
    parallel_for(
        (end_key_unit - panels.first_key_unit) * per_head, int(threads), [&](int64_t task) {
            panels.pack(panels.first_key_unit + task / per_head, task % per_head);
        });
}

// Number of units whose panels are in memory together: a multiple of `multiple`.
int64_t group_units(const Call &call, int64_t multiple) {
    const int64_t bytes_per_key_head = max_of(1, Panels::size(call) * int64_t(sizeof(float)));
    const int64_t key_heads = max_of(1, PANEL_BYTES / bytes_per_key_head);
    const int64_t units = key_heads * (call.heads / call.key_heads) / multiple * multiple;
    return min_of(max_of(units, multiple), call.units());
}

// Floats for the panels of `units` consecutive units, wherever they begin.
int64_t panel_floats(const Call &call, int64_t units) {
    const int64_t units_per_key_head = call.heads / call.key_heads;
    const int64_t key_heads = (units + units_per_key_head - 2) / units_per_key_head + 1;
    return key_heads * Panels::size(call);
}

}  // namespace

// `failed` is set to 1 if there is no memory.
KERNEL(measure_head_rows)
(const Call *call_pointer, float *out, int64_t needs_spread, float mass_share, int64_t threads,
 int64_t *failed) {
    const Call &call = *call_pointer;
    const int64_t group = group_units(call, call.heads / call.key_heads);
    const int64_t rows = block_rows(call, 1), stride = score_stride(call);
    const int64_t query_floats = round_up(rows * call.width, LANES);
    const int64_t scratch_floats = query_floats + rows * stride;
    const Buffer panel_memory(panel_floats(call, group)), scratch(threads * scratch_floats);
    if (panel_memory.is_missing() || scratch.is_missing()) {
        *failed = 1;
        return;
    }
    const RowOutput output = {out, call.units() * call.queries, needs_spread != 0, mass_share};
    const int64_t blocks = (call.queries + rows - 1) / rows;
    for (int64_t first = 0; first < call.units(); first += group) {
        const int64_t count = min_of(group, call.units() - first);
        const Panels panels = {&call, panel_memory.data(), call.key_unit(first)};
        pack_keys(panels, call.key_unit(first + count - 1) + 1, threads);
        const int64_t tasks = count * blocks;
        run_tasks(tasks, threads, scratch.data(), scratch_floats, [&](int64_t task, float *memory) {
            // the last rows of causal attention take longest: first
            const int64_t first_row = (blocks - 1 - task % blocks) * rows;
            const Block block(call, first + task / blocks, first_row, rows);
            float *scores = memory + query_floats;
            score_block(call, block, panels.of(block.unit), memory, scores, stride);
            for (int64_t i = 0; i < block.rows; i++) {
                const Row row = mask_row(call, block, i, scores, stride);
                if (!row.is_empty()) measure_row(call, block.unit, first_row + i, row, output);
            }
        });
    }
}

KERNEL(measure_layer_rows)(const Call *call_pointer, float *out, int64_t threads, int64_t *failed) {
    const Call &call = *call_pointer;
    const int64_t group = group_units(call, call.heads);
    const int64_t rows = block_rows(call, 2), stride = score_stride(call);
    const int64_t query_floats = round_up(rows * call.width, LANES);
    const int64_t scratch_floats = query_floats + 2 * rows * stride;
    const Buffer panel_memory(panel_floats(call, group)), scratch(threads * scratch_floats);
    if (panel_memory.is_missing() || scratch.is_missing()) {
        *failed = 1;
        return;
    }
    const int64_t blocks = (call.queries + rows - 1) / rows;
    for (int64_t first = 0; first < call.units(); first += group) {
        const int64_t count = min_of(group, call.units() - first);
        const Panels panels = {&call, panel_memory.data(), call.key_unit(first)};
        pack_keys(panels, call.key_unit(first + count - 1) + 1, threads);
        const int64_t tasks = count / call.heads * blocks;
        run_tasks(tasks, threads, scratch.data(), scratch_floats, [&](int64_t task, float *memory) {
            const int64_t first_unit = first + task / blocks * call.heads;
            const int64_t first_row = (blocks - 1 - task % blocks) * rows;
            float *scores = memory + query_floats, *means = scores + rows * stride;
            float entropies[MAX_BLOCK_ROWS] = {}, squares[MAX_BLOCK_ROWS] = {};
            bool sees_keys[MAX_BLOCK_ROWS];
            for (int64_t i = 0; i < rows; i++) sees_keys[i] = true;
            memset(means, 0, rows * stride * sizeof(float));
            for (int64_t head = 0; head < call.heads; head++) {
                const Block block(call, first_unit + head, first_row, rows);
                score_block(call, block, panels.of(block.unit), memory, scores, stride);
                for (int64_t i = 0; i < block.rows; i++) {
                    const Row row = mask_row(call, block, i, scores, stride);
                    Softmax softmax = {};
                    if (!row.is_empty()) softmax = compute_softmax(row, row.s);
                    // NaN counts as seen, so that it shows in the result
                    sees_keys[i] = sees_keys[i] && softmax.total != 0;
                    if (!sees_keys[i]) continue;
                    entropies[i] += softmax.entropy;
                    squares[i] += update_mean(row, softmax.total, head, means + i * stride);
                    if (head == call.heads - 1)
                        measure_mean_row(
                            call, row, means + i * stride, entropies[i], squares[i],
                            out + first_unit / call.heads * call.queries + first_row + i,
                            call.batch * call.queries);
                }
            }
        });
    }
}

// Compares every two of `count` calls, which have the mask of the first one. Statistic s of pair
// number n is at out[(4 n + s) · units · queries]; pairs are in the order (0, 1), (0, 2) … (1, 2) …
// The cosine after subtracting the uniform row is written only for rows whose distance from the
// uniform row, relative to its norm, is at least `min_distance`.
KERNEL(compare_call_rows)
(const Call *calls, int64_t count, float min_distance, float *out, int64_t threads,
 int64_t *failed) {
    const Call &mask = calls[0];
    // scores and weights of every call
    const int64_t rows = block_rows(mask, 2 * count), stride = score_stride(mask);
    const int64_t group = max_of(1, group_units(mask, 1) / count);
    int64_t width = 0, panel_total = 0;
    for (int64_t c = 0; c < count; c++) {
        width = max_of(width, calls[c].width);
        panel_total += panel_floats(calls[c], group);
    }
    const int64_t query_floats = round_up(rows * width, LANES), layer_floats = 2 * rows * stride;
    const int64_t row_floats =
        round_up(count * int64_t(sizeof(ComparedRow) / sizeof(float) + 1), LANES);
    const int64_t scratch_floats = query_floats + row_floats + count * layer_floats;
    const Buffer panel_memory(panel_total), scratch(threads * scratch_floats);
    const Buffer list_memory(count * int64_t(sizeof(Panels) / sizeof(float) + 1));
    if (panel_memory.is_missing() || scratch.is_missing() || list_memory.is_missing()) {
        *failed = 1;
        return;
    }
    Panels *panels = reinterpret_cast<Panels *>(list_memory.data());
    const int64_t blocks = (mask.queries + rows - 1) / rows,
                  out_stride = mask.units() * mask.queries;
    for (int64_t first = 0; first < mask.units(); first += group) {
        const int64_t units = min_of(group, mask.units() - first);
        float *next_panels = panel_memory.data();
        for (int64_t c = 0; c < count; c++) {
            panels[c] = {calls + c, next_panels, calls[c].key_unit(first)};
            pack_keys(panels[c], calls[c].key_unit(first + units - 1) + 1, threads);
            next_panels += panel_floats(calls[c], group);
        }
        const int64_t tasks = units * blocks;
        run_tasks(tasks, threads, scratch.data(), scratch_floats, [&](int64_t task, float *memory) {
            const int64_t unit = first + task / blocks;
            const int64_t first_row = (blocks - 1 - task % blocks) * rows;
            const Block block(mask, unit, first_row, rows);
            ComparedRow *compared = reinterpret_cast<ComparedRow *>(memory + query_floats);
            float *scores = memory + query_floats + row_floats;
            for (int64_t c = 0; c < count; c++)
                score_block(
                    calls[c], block, panels[c].of(unit), memory, scores + c * layer_floats, stride);
            for (int64_t i = 0; i < block.rows; i++) {
                bool sees_keys = true;
                for (int64_t c = 0; c < count && sees_keys; c++) {
                    float *layer = scores + c * layer_floats;
                    float *weights = layer + (rows + i) * stride;
                    const Row row = mask_row(mask, block, i, layer, stride);
                    Softmax softmax = {};
                    if (!row.is_empty()) softmax = compute_softmax(row, weights);
                    sees_keys = softmax.total != 0;
                    compared[c] = {row, weights, softmax};
                }
                float *row_out = out + unit * mask.queries + first_row + i;
                for (int64_t a = 0; a < count && sees_keys; a++)
                    for (int64_t b = a + 1; b < count; b++, row_out += 4 * out_stride)
                        measure_pair(
                            mask, compared[a], compared[b], min_distance, row_out, out_stride);
            }
        });
    }
}

// affinity[a, b] = Σ over counted rows of Σⱼ √(pⱼ qⱼ), p and q the weights of heads a and b, for
// all N heads of `count` calls, in the order of the calls: a float64 matrix (N, N). A row counts if
// it is in `valid` (may be null: all) and sees at least two keys in every head; `row_count` is the
// number of such rows. Tasks are assigned to threads in a fixed order, so that sums are the same in
// every run.
KERNEL(sum_head_affinities)
(const Call *calls, int64_t count, const uint8_t *valid, double *affinity, int64_t *row_count,
 int64_t threads, int64_t *failed) {
    const Call &first_call = calls[0];
    const int64_t queries = first_call.queries, stride = score_stride(first_call);
    const int64_t blocks = (queries + TILE_ROWS - 1) / TILE_ROWS;
    int64_t heads = 0, width = 0, panel_total = 0;
    for (int64_t c = 0; c < count; c++) {
        heads += calls[c].heads;
        width = max_of(width, calls[c].width);
        panel_total += calls[c].key_heads * Panels::size(calls[c]);
    }
    const int64_t padded_heads = round_up(heads, DOT_ROWS), row_floats = TILE_ROWS * stride;
    const int64_t query_floats = round_up(TILE_ROWS * width, LANES);
    const int64_t matrix_floats = round_up(2 * heads * heads, LANES);  // doubles
    const int64_t scratch_floats = query_floats + matrix_floats + (1 + padded_heads) * row_floats;
    const Buffer panel_memory(panel_total), scratch(threads * scratch_floats);
    const Buffer count_memory(2 * threads);
    if (panel_memory.is_missing() || scratch.is_missing() || count_memory.is_missing()) {
        *failed = 1;
        return;
    }
    int64_t *counts = reinterpret_cast<int64_t *>(count_memory.data());
    for (int64_t thread = 0; thread < threads; thread++) {
        counts[thread] = 0;
        memset(scratch.data() + thread * scratch_floats, 0, scratch_floats * sizeof(float));
    }
    for (int64_t example = 0; example < first_call.batch; example++) {
        float *next_panels = panel_memory.data();
        for (int64_t c = 0; c < count; c++) {
            const Panels panels = {calls + c, next_panels, example * calls[c].key_heads};
            pack_keys(panels, panels.first_key_unit + calls[c].key_heads, threads);
            next_panels += calls[c].key_heads * Panels::size(calls[c]);
        }
        run_on_threads(int(min_of(blocks, threads)), [&](int thread, int thread_count) {
            float *memory = scratch.data() + thread * scratch_floats;
            double *matrix = reinterpret_cast<double *>(memory + query_floats);
            float *scores = memory + query_floats + matrix_floats, *roots = scores + row_floats;
            for (int64_t task = thread; task < blocks; task += thread_count) {
                const int64_t first_row = task * TILE_ROWS;
                const int64_t rows = min_of(TILE_ROWS, queries - first_row);
                bool is_counted[TILE_ROWS];
                for (int64_t i = 0; i < rows; i++)
                    is_counted[i] = !valid || valid[example * queries + first_row + i];
                int64_t left = first_call.keys, end = 0, head_index = 0;
                for (int64_t c = 0; c < count; c++) {
                    const Block block(calls[c], 0, first_row, TILE_ROWS);
                    left = min_of(left, block.left);
                    end = max_of(end, block.left + block.columns);
                }
                const float *call_panels = panel_memory.data();
                for (int64_t c = 0; c < count; c++) {
                    const Call &call = calls[c];
                    for (int64_t head = 0; head < call.heads; head++, head_index++) {
                        const Block block(call, example * call.heads + head, first_row, TILE_ROWS);
                        const int64_t key_head = head / (call.heads / call.key_heads);
                        const float *panels = call_panels + key_head * Panels::size(call);
                        score_block(call, block, panels, memory, scores, stride);
                        for (int64_t i = 0; i < rows; i++) {
                            float *out = roots + (i * padded_heads + head_index) * stride;
                            memset(out, 0, max_of(end - left, 0) * sizeof(float));
                            const Row row = mask_row(call, block, i, scores, stride);
                            if (row.is_empty() || count_visible(call, row) < 2)
                                is_counted[i] = false;
                            else
                                compute_roots(row, out + block.left - left);
                        }
                    }
                    call_panels += call.key_heads * Panels::size(call);
                }
                for (int64_t i = 0; i < rows; i++) counts[thread] += is_counted[i];
                const int64_t columns = max_of(end - left, 0);
                add_dot_products(
                    roots, is_counted, rows, heads, padded_heads, columns, stride, matrix);
            }
        });
    }
    for (int64_t thread = 0; thread < threads; thread++) {
        const float *memory = scratch.data() + thread * scratch_floats;
        const double *matrix = reinterpret_cast<const double *>(memory + query_floats);
        *row_count += counts[thread];
        for (int64_t a = 0; a < heads; a++)
            for (int64_t b = a; b < heads; b++) {
                affinity[a * heads + b] += matrix[a * heads + b];
                if (a != b) affinity[b * heads + a] += matrix[a * heads + b];
            }
    }
}
