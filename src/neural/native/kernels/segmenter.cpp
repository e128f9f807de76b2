// Layers of a trained segmenter, for inference without torch: linear, LSTM, attention in a window.
//
// Vectors run along the outputs (linear, LSTM) or along time (attention). Rows of weights are padded
// with zeros to a multiple of 16 numbers, so that there are no remainders on any instruction set;
// numpy_segmenter.py prepares them. Every layer computes the sums of its definition in float32, in
// another order; nothing is left out or approximated but exp (2 units in the last place).
#include "kernel.h"

namespace {

ALWAYS_INLINE Vec sigmoid(Vec x) { return 1.0f / (1.0f + exp(-x)); }
ALWAYS_INLINE Vec tanh(Vec x) { return 1.0f - 2.0f / (exp(x + x) + 1.0f); }

// ROWS rows of out = x · weights + bias, COLUMNS vectors of them: the sums stay in registers.
template <int ROWS, int COLUMNS>
ALWAYS_INLINE void multiply_tile(
    const float *x, int64_t x_stride, const float *weights, const float *bias, float *out,
    int64_t inputs, int64_t outputs) {
    Vec sum[ROWS][COLUMNS];
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) sum[r][c] = load(bias + c * LANES);
    for (int64_t k = 0; k < inputs; k++) {
        Vec weight[COLUMNS];
        for (int c = 0; c < COLUMNS; c++) weight[c] = load(weights + k * outputs + c * LANES);
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++) sum[r][c] += x[r * x_stride + k] * weight[c];
    }
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) store(out + r * outputs + c * LANES, sum[r][c]);
}

template <int ROWS>
void multiply_rows(
    const float *x, int64_t x_stride, const float *weights, const float *bias, float *out,
    int64_t inputs, int64_t outputs) {
    int64_t o = 0;
    for (; o + 3 * LANES <= outputs; o += 3 * LANES)
        multiply_tile<ROWS, 3>(x, x_stride, weights + o, bias + o, out + o, inputs, outputs);
    for (; o < outputs; o += LANES)
        multiply_tile<ROWS, 1>(x, x_stride, weights + o, bias + o, out + o, inputs, outputs);
}

// VECTORS vectors of sums = gates + hidden · weights.
template <int VECTORS>
ALWAYS_INLINE void add_recurrent(
    const float *gates, const float *hidden, const float *weights, float *sums, int64_t size,
    int64_t width) {
    Vec sum[VECTORS];
    for (int i = 0; i < VECTORS; i++) sum[i] = load(gates + i * LANES);
    for (int64_t k = 0; k < size; k++)
        for (int i = 0; i < VECTORS; i++)
            sum[i] += hidden[k] * load(weights + k * width + i * LANES);
    for (int i = 0; i < VECTORS; i++) store(sums + i * LANES, sum[i]);
}

}  // namespace

// out (rows, outputs) = x (rows, inputs) · weights (inputs, outputs) + bias (outputs). `outputs` is
// a multiple of 16; rows of x are `x_stride` numbers apart.
KERNEL(segmenter_linear)
(const float *x, int64_t x_stride, const float *weights, const float *bias, float *out,
 int64_t rows, int64_t inputs, int64_t outputs) {
    int64_t row = 0;
    for (; row + 4 <= rows; row += 4)
        multiply_rows<4>(
            x + row * x_stride, x_stride, weights, bias, out + row * outputs, inputs, outputs);
    for (; row < rows; row++)
        multiply_rows<1>(
            x + row * x_stride, x_stride, weights, bias, out + row * outputs, inputs, outputs);
}

// One direction of an LSTM, from a state of zeros. `gates` are the products of the inputs with their
// weights, biases included: four groups (input, forget, cell, output) of `padded` numbers per time
// step, of which the first `size` are used; steps are `gate_stride` numbers apart. `weights` (size,
// 4 · padded) are the recurrent ones. Time runs backward if `is_reversed`. The hidden state of a
// step is written to `out`, steps `out_stride` numbers apart. `scratch`: 6 · padded numbers.
//
// Padding is zero in gates and weights, so that its cells stay 0.
KERNEL(segmenter_lstm)
(const float *gates, int64_t gate_stride, const float *weights, float *out, int64_t out_stride,
 int64_t time, int64_t size, int64_t padded, int64_t is_reversed, float *scratch) {
    const int64_t width = 4 * padded;
    float *sums = scratch, *cell = scratch + width, *hidden = cell + padded;
    memset(cell, 0, 2 * padded * sizeof(float));
    for (int64_t step = 0; step < time; step++) {
        const int64_t t = is_reversed ? time - 1 - step : step;
        const float *gate = gates + t * gate_stride;
        int64_t g = 0;
#if defined(__AVX512F__)
        for (; g + 12 * LANES <= width; g += 12 * LANES)
            add_recurrent<12>(gate + g, hidden, weights + g, sums + g, size, width);
#endif
        for (; g + 8 * LANES <= width; g += 8 * LANES)
            add_recurrent<8>(gate + g, hidden, weights + g, sums + g, size, width);
        for (; g < width; g += 4 * LANES)
            add_recurrent<4>(gate + g, hidden, weights + g, sums + g, size, width);
        for (int64_t i = 0; i < padded; i += LANES) {
            const Vec input = sigmoid(load(sums + i)), forget = sigmoid(load(sums + padded + i));
            const Vec change = tanh(load(sums + 2 * padded + i));
            const Vec output = sigmoid(load(sums + 3 * padded + i));
            const Vec state = forget * load(cell + i) + input * change;
            store(cell + i, state);
            store(hidden + i, output * tanh(state));
        }
        memcpy(out + t * out_stride, hidden, size * sizeof(float));
    }
}

// Softmax attention of each position to those at most `reach` away. Time is the last axis: q, k, v
// and out are (heads · width, stride), with stride ≥ time + 2 · reach + 16; position t is at column
// `reach` + t, and the columns around the sequence are zeros. `scores`: 16 · (2 · reach + 1) numbers.
KERNEL(segmenter_window_attention)
(const float *q, const float *k, const float *v, float *out, int64_t time, int64_t stride,
 int64_t heads, int64_t width, int64_t reach, float scale, float *scores) {
    const int64_t window = 2 * reach + 1;
    VecInt lane;
    for (int i = 0; i < LANES; i++) lane[i] = i;
    for (int64_t head = 0; head < heads; head++) {
        const int64_t base = head * width * stride;
        for (int64_t t = 0; t < time; t += LANES) {
            Vec largest = broadcast(-1e30f);
            for (int64_t j = 0; j < window; j++) {
                Vec score = {};
                for (int64_t d = 0; d < width; d++)
                    score += load(q + base + d * stride + reach + t) * load(k + base + d * stride + t + j);
                // keys before the first position and after the last one have no weight
                const VecInt key = lane + int32_t(t + j - reach);
                score = ((key >= 0) & (key < int32_t(time))) ? score * scale : broadcast(-1e30f);
                store(scores + j * LANES, score);
                largest = maximum(largest, score);
            }
            Vec total = {};
            for (int64_t j = 0; j < window; j++) {
                const Vec weight = exp(load(scores + j * LANES) - largest);
                store(scores + j * LANES, weight);
                total += weight;
            }
            for (int64_t d = 0; d < width; d++) {
                Vec sum = {};
                for (int64_t j = 0; j < window; j++)
                    sum += load(scores + j * LANES) * load(v + base + d * stride + t + j);
                store(out + base + d * stride + reach + t, sum / total);
            }
        }
    }
}
