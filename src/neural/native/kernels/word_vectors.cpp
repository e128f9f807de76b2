// Features from word vectors: sums over the words of an element, comparison of the two sides of
// each gap, and the posterior of change points.
//
// An element is a sentence or line of a document; a gap is the place between an element and the one
// before it, and has the index of the element. Vectors have `width` numbers, a multiple of 16, so
// that all loops run over whole vectors of every instruction set. Sums over elements are in double
// precision: windows slide by adding one element and subtracting another, and the error of single
// precision would grow with the document. vector_kernels.py defines every result.
#include "kernel.h"

namespace {

constexpr int DOUBLES = LANES / 2;

ALWAYS_INLINE VecDouble widen(const float *p) {
    typedef float Half __attribute__((vector_size(DOUBLES * 4)));
    Half half;
    memcpy(&half, p, sizeof half);
    return __builtin_convertvector(half, VecDouble);
}

// sum += sign · vector
ALWAYS_INLINE void accumulate(double *sum, const float *vector, int64_t width, double sign) {
    for (int64_t i = 0; i < width; i += DOUBLES)
        store(sum + i, load(sum + i) + broadcast(sign) * widen(vector + i));
}

constexpr double LOG_ZERO = -1e30;  // stands for log(0): infinities would give NaN

// log Σ exp(terms[i]) of `count` numbers ≤ 0 after subtracting their maximum.
ALWAYS_INLINE double log_sum_exp(const float *terms, int64_t count, double maximum) {
    Vec sum = {};
    for (int64_t i = 0; i < count; i += LANES) sum += exp_nonpositive(load(terms + i));
    return maximum + std::log(double(sum_lanes(sum)));
}

}  // namespace

// Sum of the vectors of each element's words: out[e] = Σ scales[w] · rows[w] over its words w.
// `rows`, (words, width), are int8; ids below 0 are words without a vector.
KERNEL(sum_word_vectors)
(const int32_t *ids, const int64_t *starts, int64_t elements, const int8_t *rows,
 const float *scales, int64_t width, float *out) {
    typedef int8_t Bytes __attribute__((vector_size(LANES)));
    for (int64_t element = 0; element < elements; element++) {
        float *sum = out + element * width;
        memset(sum, 0, size_t(width) * sizeof(float));
        for (int64_t token = starts[element]; token < starts[element + 1]; token++) {
            const int32_t word = ids[token];
            if (word < 0) continue;
            const int8_t *row = rows + word * width;
            const Vec scale = broadcast(scales[word]);
            for (int64_t i = 0; i < width; i += LANES) {
                Bytes bytes;
                memcpy(&bytes, row + i, sizeof bytes);
                store(sum + i, load(sum + i) + scale * __builtin_convertvector(bytes, Vec));
            }
        }
    }
}

// Comparison of the sums L and R of the `scale` vectors before and after each gap but the first:
// cosine = L·R / (|L| |R|), and gain = |L|²/l + |R|²/r − |L + R|²/(l + r), where l and r are the
// numbers of vectors: by how much two means describe them better than one. `sums` is scratch memory,
// 2 · width numbers.
KERNEL(compare_sides)
(const float *vectors, int64_t elements, int64_t width, int64_t scale, double *sums, double *cosine,
 double *gain) {
    double *left = sums, *right = sums + width;
    memset(sums, 0, size_t(2 * width) * sizeof(double));
    for (int64_t i = 0; i < scale && i < elements; i++)
        accumulate(right, vectors + i * width, width, 1);
    for (int64_t gap = 1; gap < elements; gap++) {
        accumulate(left, vectors + (gap - 1) * width, width, 1);
        accumulate(right, vectors + (gap - 1) * width, width, -1);
        if (gap > scale) accumulate(left, vectors + (gap - 1 - scale) * width, width, -1);
        if (gap + scale <= elements)
            accumulate(right, vectors + (gap + scale - 1) * width, width, 1);
        VecDouble left_squared = {}, right_squared = {}, product = {};
        for (int64_t i = 0; i < width; i += DOUBLES) {
            const VecDouble l = load(left + i), r = load(right + i);
            left_squared += l * l;
            right_squared += r * r;
            product += l * r;
        }
        const double ll = sum_lanes(left_squared), rr = sum_lanes(right_squared);
        const double lr = sum_lanes(product);
        const double before = double(gap < scale ? gap : scale);
        const double after = double(elements - gap < scale ? elements - gap : scale);
        const double norms = ll * rr;
        cosine[gap] = lr / std::sqrt(norms > 1e-12 ? norms : 1e-12);
        gain[gap] = ll / before + rr / after - (ll + rr + 2 * lr) / (before + after);
    }
}

// Squared norms of the sums of all runs of 1 … `longest` vectors: out[e · longest + L − 1] is that
// of the L vectors before the end e, for e = 1 … elements. `sums`, (elements + 1, width), are
// cumulative sums. Entries with L > e are not written.
KERNEL(square_run_sums)
(const double *sums, int64_t elements, int64_t width, int64_t longest, double *out) {
    for (int64_t end = 1; end <= elements; end++) {
        const double *last = sums + end * width;
        const int64_t count = end < longest ? end : longest;
        for (int64_t length = 1; length <= count; length++) {
            const double *first = sums + (end - length) * width;
            VecDouble squared = {};
            for (int64_t i = 0; i < width; i += DOUBLES) {
                const VecDouble difference = load(last + i) - load(first + i);
                squared += difference * difference;
            }
            out[end * longest + length - 1] = sum_lanes(squared);
        }
    }
}

// Sums over all segmentations, in logarithms: `forward[e]` over those of the first e elements,
// `backward[s]` over those of the elements from s on; (elements + 1) numbers each. The logarithm of
// the weight of a segment of L elements with the squared norm q is constants[L − 1] +
// slopes[L − 1] · q. `squares` are those of `square_run_sums`. `terms` is scratch memory: `longest`
// numbers, rounded up to whole vectors.
KERNEL(sum_change_points)
(const double *squares, int64_t elements, int64_t longest, const double *constants,
 const double *slopes, float *terms, double *values, double *forward, double *backward) {
    forward[0] = 0;
    for (int64_t end = 1; end <= elements; end++) {
        const int64_t count = end < longest ? end : longest;
        double maximum = LOG_ZERO;
        for (int64_t i = 0; i < count; i++) {
            values[i] =
                forward[end - 1 - i] + constants[i] + slopes[i] * squares[end * longest + i];
            maximum = values[i] > maximum ? values[i] : maximum;
        }
        const int64_t padded = (count + LANES - 1) / LANES * LANES;
        for (int64_t i = 0; i < padded; i++)
            terms[i] = i < count ? float(values[i] - maximum) : -200;
        forward[end] = log_sum_exp(terms, padded, maximum);
    }
    backward[elements] = 0;
    for (int64_t start = elements - 1; start >= 0; start--) {
        const int64_t count = elements - start < longest ? elements - start : longest;
        double maximum = LOG_ZERO;
        for (int64_t i = 0; i < count; i++) {
            values[i] = backward[start + 1 + i] + constants[i] +
                        slopes[i] * squares[(start + 1 + i) * longest + i];
            maximum = values[i] > maximum ? values[i] : maximum;
        }
        const int64_t padded = (count + LANES - 1) / LANES * LANES;
        for (int64_t i = 0; i < padded; i++)
            terms[i] = i < count ? float(values[i] - maximum) : -200;
        backward[start] = log_sum_exp(terms, padded, maximum);
    }
}

// Cosine of each vector with the sum of the `scale` vectors before it, and after it; 0 where there
// are none, or where a sum is 0. `sums` is scratch memory, 2 · width numbers.
KERNEL(compare_with_context)
(const float *vectors, int64_t elements, int64_t width, int64_t scale, double *sums, double *before,
 double *after) {
    double *left = sums, *right = sums + width;
    memset(sums, 0, size_t(2 * width) * sizeof(double));
    for (int64_t i = 1; i <= scale && i < elements; i++)
        accumulate(right, vectors + i * width, width, 1);
    for (int64_t element = 0; element < elements; element++) {
        const float *vector = vectors + element * width;
        VecDouble own = {}, left_squared = {}, right_squared = {}, with_left = {}, with_right = {};
        for (int64_t i = 0; i < width; i += DOUBLES) {
            const VecDouble x = widen(vector + i), l = load(left + i), r = load(right + i);
            own += x * x;
            left_squared += l * l;
            right_squared += r * r;
            with_left += x * l;
            with_right += x * r;
        }
        const double norm = sum_lanes(own);
        const double left_norm = norm * sum_lanes(left_squared);
        const double right_norm = norm * sum_lanes(right_squared);
        before[element] = sum_lanes(with_left) / std::sqrt(left_norm > 1e-12 ? left_norm : 1e-12);
        after[element] = sum_lanes(with_right) / std::sqrt(right_norm > 1e-12 ? right_norm : 1e-12);
        accumulate(left, vector, width, 1);
        if (element >= scale) accumulate(left, vectors + (element - scale) * width, width, -1);
        if (element + 1 < elements)
            accumulate(right, vectors + (element + 1) * width, width, -1);
        if (element + 1 + scale < elements)
            accumulate(right, vectors + (element + 1 + scale) * width, width, 1);
    }
}
