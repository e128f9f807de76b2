// Draws one token id per row of logits: softmax with a temperature, the k most probable ids, then
// inverse transform sampling: the first id whose cumulative probability exceeds a uniform number.
//
// Logits are (row, id) with any distance between rows. Everything is computed in double precision
// and added in the order of the ids, as NumPy does it in nn/sampling.py; only exp may differ, in the
// last bit. For the short rows of small vocabularies NumPy spends its time between operations.
#include "kernel.h"

namespace {

// Moves the values so that the `rank` smallest are first; returns the next one (Hoare, 1961).
double select(double *values, int64_t count, int64_t rank) {
    int64_t first = 0, last = count - 1;
    while (first < last) {
        const double pivot = values[first + (last - first) / 2];
        int64_t left = first, right = last;
        while (left <= right) {
            while (values[left] < pivot) left++;
            while (values[right] > pivot) right--;
            if (left > right) break;
            const double swapped = values[left];
            values[left++] = values[right];
            values[right--] = swapped;
        }
        if (rank <= right)
            last = right;
        else if (rank >= left)
            first = left;
        else
            break;
    }
    return values[rank];
}

bool all_finite(const float *logits, int64_t count) {
    float zero = 0;
    for (int64_t i = 0; i < count; i++) zero += logits[i] * 0.0f;  // NaN if a value is not finite
    return zero == 0;
}

int64_t draw(
    const float *logits, int64_t count, double temperature, int64_t top_k, double uniform,
    double *probabilities, double *sorted) {
    double largest = logits[0] / temperature, total = 0;
    for (int64_t i = 0; i < count; i++) {
        probabilities[i] = logits[i] / temperature;
        largest = probabilities[i] > largest ? probabilities[i] : largest;
    }
    for (int64_t i = 0; i < count; i++)
        probabilities[i] = __builtin_exp(probabilities[i] - largest);
    if (top_k < count) {
        memcpy(sorted, probabilities, count * sizeof(double));
        const double threshold = select(sorted, count, count - top_k);
        for (int64_t i = 0; i < count; i++)
            if (probabilities[i] < threshold) probabilities[i] = 0;
    }
    for (int64_t i = 0; i < count; i++) total += probabilities[i];
    // below the total, also if rounding made the product equal to it
    const double below_total = __builtin_nextafter(total, 0.0);
    const double limit = uniform * total < below_total ? uniform * total : below_total;
    double cumulative = 0;
    for (int64_t i = 0; i < count; i++) {
        cumulative += probabilities[i];
        if (cumulative > limit) return i;
    }
    return count - 1;
}

}  // namespace

// `temperature` is one number above 0, `uniform` one per row in [0, 1), `workspace` 2 · count. The
// id of a row with a logit that is not finite is −1.
KERNEL(sample_tokens)
(const float *logits, int64_t rows, int64_t stride, int64_t count, const double *temperature,
 int64_t top_k, const double *uniform, double *workspace, int64_t *ids) {
    for (int64_t row = 0; row < rows; row++) {
        const float *values = logits + row * stride;
        ids[row] = all_finite(values, count)
                       ? draw(values, count, *temperature, top_k, uniform[row], workspace,
                              workspace + count)
                       : -1;
    }
}
