// Features of the elements (sentences or lines) of a document, from the ids of their words.
//
// Layout: `ids[starts[i]] … ids[starts[i + 1] − 1]` are the word ids of element i, from 0 to
// `vocabulary` − 1. A gap is the place between an element and the one before it; it has the index
// of the element. Scratch arrays have an entry per word and are prepared by the caller (kernels.py);
// plain_kernels.py defines every result by a plain loop.
//
// All loops read each word a constant number of times, so the time is linear in the text. Sums are
// double precision: they differ from the plain loops by rounding only.
#include "kernel.h"

namespace {

// Four models are computed together: their tables are interleaved, and a vector holds one number
// of each model.
constexpr int MODELS = 4;
typedef double Models __attribute__((vector_size(MODELS * 8)));
typedef int64_t ModelBits __attribute__((vector_size(MODELS * 8)));

constexpr double LOG_ZERO = -1e30;  // stands for log(0): infinities would give NaN

ALWAYS_INLINE Models load_models(const double *p) {
    Models v;
    memcpy(&v, p, sizeof v);
    return v;
}
ALWAYS_INLINE void store_models(double *p, Models v) { memcpy(p, &v, sizeof v); }

// exp(x) for x ≤ 0, at most 2 units in the last place from the exact value; 0 below −708.
// x = n·log 2 + r with |r| ≤ log(2) / 2; the Taylor series of exp(r) has 13 terms.
ALWAYS_INLINE Models exp_nonpositive_models(Models x) {
    const Models zero = {};
    const Models clamped = x > -708.0 ? x : zero - 708.0;
    // adding and subtracting 1.5 · 2⁵² rounds to the nearest whole number, whose low bits are n
    const Models shifted = clamped * 1.4426950408889634 + 6755399441055744.0;
    const Models n = shifted - 6755399441055744.0;
    const Models r = (clamped - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    Models p = r * (1.0 / 479001600) + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    ModelBits bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;  // the other bits of `shifted` leave at the top
    Models power;
    memcpy(&power, &bits, sizeof power);
    return x > -708.0 ? p * power : zero;
}

// The product rounded to double: not fused with a sum, so that all processors get the same bits.
ALWAYS_INLINE double multiply(double a, double b) {
    double product = a * b;
#if defined(__x86_64__)
    __asm__("" : "+x"(product));
#elif defined(__aarch64__)
    __asm__("" : "+w"(product));
#else
    volatile double rounded = product;
    product = rounded;
#endif
    return product;
}

}  // namespace

// Each word of an element once, in order of first use, and how often the element uses it.
// `slot`, (vocabulary,), is scratch memory of −1. out_starts has elements + 1 entries.
KERNEL(find_distinct_words)
(const int32_t *ids, const int64_t *starts, int64_t elements, int32_t *slot, int32_t *out_ids,
 int32_t *out_counts, int64_t *out_starts) {
    int64_t count = 0;
    for (int64_t element = 0; element < elements; element++) {
        const int64_t first = count;
        out_starts[element] = first;
        for (int64_t token = starts[element]; token < starts[element + 1]; token++) {
            const int32_t word = ids[token];
            // a slot before `first` is that of an earlier element
            if (slot[word] < first) {
                slot[word] = int32_t(count);
                out_ids[count] = word;
                out_counts[count++] = 0;
            }
            out_counts[slot[word]]++;
        }
    }
    out_starts[elements] = count;
}

// Words replaced by `new_ids[word]`, those below 0 left out: words → stems without stop words.
KERNEL(replace_words)
(const int32_t *ids, const int64_t *starts, int64_t elements, const int32_t *new_ids,
 int32_t *out_ids, int64_t *out_starts) {
    int64_t count = 0;
    for (int64_t element = 0; element < elements; element++) {
        out_starts[element] = count;
        for (int64_t token = starts[element]; token < starts[element + 1]; token++) {
            const int32_t id = new_ids[ids[token]];
            // the write is undone by the next one if the word is left out: no branch to mispredict
            out_ids[count] = id;
            count += id >= 0;
        }
    }
    out_starts[elements] = count;
}

// Distances in elements to the previous and to the next use of each word; `none` if there is none.
// `last`, (vocabulary,), is scratch memory of −1: the last token with each word.
KERNEL(find_word_distances)
(const int32_t *ids, const int64_t *starts, int64_t elements, int64_t none, int32_t *last,
 int32_t *back, int32_t *ahead) {
    for (int64_t element = 0; element < elements; element++)
        for (int64_t token = starts[element]; token < starts[element + 1]; token++) {
            const int32_t word = ids[token], previous = last[word];
            back[token] = int32_t(none);
            // `ahead` of the last use holds −1 − its element, until the next use is known
            if (previous >= 0)
                back[token] = ahead[previous] = int32_t(element + 1 + ahead[previous]);
            ahead[token] = int32_t(-1 - element);
            last[word] = int32_t(token);
        }
    for (int64_t token = 0; token < starts[elements]; token++)
        if (ahead[token] < 0) ahead[token] = int32_t(none);
}

// Number of an element's tokens whose distance is above each limit: out (elements, limits).
KERNEL(count_far_words)
(const int32_t *distances, const int64_t *starts, int64_t elements, const int64_t *limits,
 int64_t limit_count, int32_t *out) {
    for (int64_t element = 0; element < elements; element++)
        for (int64_t column = 0; column < limit_count; column++) {
            int32_t count = 0;
            for (int64_t token = starts[element]; token < starts[element + 1]; token++)
                count += distances[token] > limits[column];
            out[element * limit_count + column] = count;
        }
}

// Links of at most `distance` elements: those across each gap, and the chains that begin or end at
// each element. `bridging` has elements + 1 entries of 0, `begins` and `ends` have `elements`.
KERNEL(count_chain_links)
(const int32_t *back, const int32_t *ahead, const int64_t *starts, int64_t elements,
 int64_t distance, int32_t *bridging, int32_t *begins, int32_t *ends) {
    for (int64_t element = 0; element < elements; element++) {
        int32_t begin_count = 0, end_count = 0, links = 0;
        for (int64_t token = starts[element]; token < starts[element + 1]; token++) {
            const bool links_back = back[token] <= distance, links_ahead = ahead[token] <= distance;
            begin_count += !links_back & links_ahead;
            end_count += links_back & !links_ahead;
            // a difference array: +1 after the element where a link begins, −1 where it ends
            if (links_ahead && ahead[token] > 0) {
                links++;
                // beyond the end if a document is so short that "not used again" is a link
                const int64_t end = element + ahead[token] + 1;
                if (end <= elements) bridging[end]--;
            }
        }
        begins[element] = begin_count;
        ends[element] = end_count;
        bridging[element + 1] += links;
    }
    for (int64_t gap = 1; gap <= elements; gap++) bridging[gap] += bridging[gap - 1];
}

// Which kinds of words occur among the first `limits[j]` words of each element:
// out (elements, limit_count, kind_count) of 0, set to 1. `kinds` is the kind of each word, or −1.
KERNEL(mark_word_kinds)
(const int32_t *ids, const int64_t *starts, int64_t elements, const int8_t *kinds,
 int64_t kind_count, const int64_t *limits, int64_t limit_count, uint8_t *out) {
    for (int64_t element = 0; element < elements; element++) {
        uint8_t *row = out + element * limit_count * kind_count;
        for (int64_t token = starts[element]; token < starts[element + 1]; token++) {
            const int8_t kind = kinds[ids[token]];
            if (kind < 0) continue;
            const int64_t position = token - starts[element];
            for (int64_t column = 0; column < limit_count; column++)
                if (position < limits[column]) row[column * kind_count + kind] = 1;
        }
    }
}

// Cosine of the `scale` elements before each gap and those after it: out[1 … elements − 1], with a
// stride of `stride` numbers. `weights` are the weights of the stems in the dot product; `left` and
// `right`, (vocabulary,), are scratch memory of 0: counts of the stems on both sides.
//
// When the gap moves on by one element, the dot product and the squared norms are updated word by
// word: (c ± 1)² = c² ± 2c + 1. So every word is read at most four times, at any scale.
//
// Where both sides share no stem, the product is 0 up to rounding errors of 1e-16, and depths
// (below) compare such values. So every operation is rounded as in the plain loop.
KERNEL(compute_sliding_cosine)
(const int32_t *ids, const int64_t *starts, int64_t elements, const double *weights, int64_t scale,
 double *left, double *right, double *out, int64_t stride) {
    double product = 0, left_squared = 0, right_squared = 0;
    int64_t left_words = 0, right_words = 0;
    const int64_t begin = scale < elements ? scale : elements;
    for (int64_t token = 0; token < starts[begin]; token++) {
        const int32_t stem = ids[token];
        right_squared += multiply(weights[stem], (2 * right[stem] + 1));
        right[stem] += 1;
    }
    right_words = starts[begin];
    for (int64_t gap = 1; gap < elements; gap++) {
        // element gap − 1 moves from the right to the left side
        for (int64_t token = starts[gap - 1]; token < starts[gap]; token++) {
            const int32_t stem = ids[token];
            const double weight = weights[stem];
            product -= multiply(weight, left[stem]);
            right_squared -= multiply(weight, (2 * right[stem] - 1));
            right[stem] -= 1;
            product += multiply(weight, right[stem]);
            left_squared += multiply(weight, (2 * left[stem] + 1));
            left[stem] += 1;
        }
        left_words += starts[gap] - starts[gap - 1];
        right_words -= starts[gap] - starts[gap - 1];
        const int64_t leaving = gap - 1 - scale, entering = gap - 1 + scale;
        if (leaving >= 0) {
            for (int64_t token = starts[leaving]; token < starts[leaving + 1]; token++) {
                const int32_t stem = ids[token];
                product -= multiply(weights[stem], right[stem]);
                left_squared -= multiply(weights[stem], (2 * left[stem] - 1));
                left[stem] -= 1;
            }
            left_words -= starts[leaving + 1] - starts[leaving];
        }
        if (entering < elements) {
            for (int64_t token = starts[entering]; token < starts[entering + 1]; token++) {
                const int32_t stem = ids[token];
                product += multiply(weights[stem], left[stem]);
                right_squared += multiply(weights[stem], (2 * right[stem] + 1));
                right[stem] += 1;
            }
            right_words += starts[entering + 1] - starts[entering];
        }
        if (left_words == 0 || right_words == 0) {
            out[gap * stride] = 0;
            product = 0;  // drops accumulated rounding errors
            if (left_words == 0) left_squared = 0;
            if (right_words == 0) right_squared = 0;
        } else {
            const double cosine = product / sqrt(left_squared * right_squared);
            out[gap * stride] = cosine < 0 ? 0 : cosine > 1 ? 1 : cosine;
        }
    }
}

// Depth of each value: how far it is below the nearest peaks on its left and right, added.
// values[0] is ignored: the first element has no gap before it.
KERNEL(compute_depths)
(const double *values, int64_t count, int64_t value_stride, double *out, int64_t out_stride) {
    double peak = 0;
    for (int64_t i = 1; i < count; i++) {
        const double value = values[i * value_stride];
        if (i == 1 || values[(i - 1) * value_stride] < value) peak = value;
        out[i * out_stride] = peak - value;
    }
    for (int64_t i = count - 1; i > 0; i--) {
        const double value = values[i * value_stride];
        if (i == count - 1 || values[(i + 1) * value_stride] < value) peak = value;
        out[i * out_stride] += peak - value;
    }
}

// Number of words that each pair of elements shares: out (rows, high − low), a row per element from
// `first` on, a column per element from `low` to `high` − 1; it is 0 before. `ids` has each word of
// an element once; `holders[holder_starts[w]] …` are the elements with word w, in increasing order.
KERNEL(count_shared_words)
(const int32_t *ids, const int64_t *starts, const int32_t *holders, const int64_t *holder_starts,
 int64_t first, int64_t rows, int64_t low, int64_t high, double *out) {
    for (int64_t row = 0; row < rows; row++)
        for (int64_t token = starts[first + row]; token < starts[first + row + 1]; token++) {
            const int32_t word = ids[token];
            int64_t begin = holder_starts[word], end = holder_starts[word + 1];
            const int64_t last = end;
            while (begin < end) {  // binary search for the first holder at or after `low`
                const int64_t middle = (begin + end) / 2;
                if (holders[middle] < low)
                    begin = middle + 1;
                else
                    end = middle;
            }
            for (; begin < last && holders[begin] < high; begin++)
                out[row * (high - low) + holders[begin] - low] += 1;
        }
}

namespace {

// The `rank`-th largest value (1: the largest), by quickselect. Reorders `values`.
double select_kth_largest(double *values, int64_t count, int64_t rank) {
    int64_t left = 0, right = count - 1;
    const int64_t target = rank - 1;
    while (left < right) {
        const double pivot = values[(left + right) / 2];
        int64_t i = left, j = right;
        while (i <= j) {
            while (values[i] > pivot) i++;
            while (values[j] < pivot) j--;
            if (i <= j) {
                const double value = values[i];
                values[i++] = values[j];
                values[j--] = value;
            }
        }
        if (target <= j)
            right = j;
        else if (target >= i)
            left = i;
        else
            break;
    }
    return values[target];
}

}  // namespace

// Twelve statistics of each element's similarities to all others (STATISTICS of feature.py), into
// row `first` + r of out (count, 12). `block`, (rows, count), has the rows of a similarity matrix
// from element `first` on. Elements are similar from `*threshold` on, and neighbours up to a
// distance of `radius`. `values`, (count,), is scratch memory.
KERNEL(summarize_similarities)
(const double *block, int64_t rows, int64_t count, int64_t first, const double *threshold,
 int64_t radius, double *values, double *out) {
    const int64_t others = count - 1;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t i = first + r;
        const double *row = block + r * count;
        double *statistics = out + i * 12;
        double total = 0, largest = 0, before = 0, after = 0;  // sums over the neighbours
        int64_t match = i, similar = 0;
        for (int64_t j = 0; j < count; j++) {
            if (j == i) continue;
            const double value = row[j];
            values[j - (j > i)] = value;
            total += value;
            similar += value >= *threshold;
            if (value > largest) {
                largest = value;
                match = j;
            }
        }
        for (int64_t j = i - radius < 0 ? 0 : i - radius; j < i; j++) before += row[j];
        for (int64_t j = i + 1; j < count && j - i <= radius; j++) after += row[j];
        const double mean = total / others;
        double squares = 0;
        for (int64_t j = 0; j < others; j++) squares += (values[j] - mean) * (values[j] - mean);
        const int64_t left = radius < i ? radius : i;
        const int64_t right = radius < others - i ? radius : others - i;
        statistics[0] = mean;
        statistics[1] = largest;
        statistics[2] = sqrt(squares / others);
        // the last of the most similar quarter, and of the most similar tenth, rounded up
        statistics[3] = select_kth_largest(values, others, (others + 3) / 4);
        statistics[4] = select_kth_largest(values, others, (others + 9) / 10);
        statistics[5] = double(similar) / others;
        statistics[6] = i > 0 ? row[i - 1] : 0;
        statistics[7] = i < others ? row[i + 1] : 0;
        statistics[8] = i > 0 ? row[0] : 1;
        statistics[9] = i < others ? row[others] : 1;
        statistics[10] = after / (right > 0 ? right : 1) - before / (left > 0 ? left : 1);
        statistics[11] = double(match) / others;
    }
}

// Log-likelihood of the first i elements, summed over all segmentations, for four models at once:
// out (elements + 1, 4). Segments have at most `max_elements` elements.
//
// The likelihood of a segment is that of a Pólya urn: a stem that occurred c times among the w words
// of the segment so far has the probability exp(log_counts[c] − log_totals[w]). It does not depend
// on the order of the words, so it is a sum over the distinct stems of the segment. `count_sums[c]`
// is the sum of log_counts[0 … c − 1], `total_sums` likewise: (table, 4) each. A stem that occurs m
// times in an element, after c times in the segment before it, adds count_sums[c + m] −
// count_sums[c].
//
// `gains[s]` is the log-likelihood of the segment from element s to the current one. When the
// current element moves on, it grows by the sum over the stems of the new element. c is a step
// function of s with a step at every earlier element that uses the stem: the differences at these
// steps are collected in `steps`, and summed from right to left. Earlier uses are linked by
// `previous`; most stems have none within reach. So an element costs O(max_elements) plus the pairs
// of equal stems in the window, not O(max_elements · stems).
//
// ids, counts, starts: the distinct stems of every element and how often it uses them.
// `word_starts`: number of words before each element. `priors`: log P(a segment continues after an
// element) of the four models, then log P(it ends). Scratch memory: `last`, (vocabulary,), of −1;
// `previous` and `element_ids`, as long as `ids`; `scratch`, 12 · (max_elements + 1) numbers.
KERNEL(sum_segmentations)
(const int32_t *ids, const int32_t *counts, const int64_t *starts, const int64_t *word_starts,
 int64_t elements, const double *count_sums, const double *total_sums, const double *priors,
 int64_t max_elements, int32_t *last, int32_t *previous, int32_t *element_ids, double *scratch,
 double *out) {
    // ring buffers over the starts of the last segment; start s is at index s mod `ring`
    const int64_t ring = max_elements + 1;
    double *gains = scratch, *steps = scratch + MODELS * ring, *values = steps + MODELS * ring;
    const Models log_continue = load_models(priors), log_end = load_models(priors + MODELS);
    for (int64_t i = 0; i < 3 * MODELS * ring; i++) scratch[i] = 0;
    store_models(out, Models{});
    for (int64_t element = 0; element < elements; element++) {
        const int64_t first = element + 1 > max_elements ? element + 1 - max_elements : 0;
        store_models(gains + MODELS * (element % ring), Models{});
        Models common = {};  // what every start gains: the stems as if they were new
        for (int64_t i = starts[element]; i < starts[element + 1]; i++) {
            const int64_t m = counts[i];
            previous[i] = last[ids[i]];
            last[ids[i]] = int32_t(i);
            element_ids[i] = int32_t(element);
            Models gain = load_models(count_sums + MODELS * m);
            common += gain;
            int64_t c = 0;
            for (int64_t j = previous[i]; j >= 0 && element_ids[j] >= first; j = previous[j]) {
                c += counts[j];
                const Models next =
                    load_models(count_sums + MODELS * (c + m)) - load_models(count_sums + MODELS * c);
                double *step = steps + MODELS * (element_ids[j] % ring);
                store_models(step, load_models(step) + (next - gain));
                gain = next;
            }
        }
        Models largest = Models{} + LOG_ZERO, prior = log_end, sum = common;
        const int64_t words_end = word_starts[element + 1];
        for (int64_t start = element; start >= first; start--) {
            const int64_t slot = MODELS * (start % ring);
            sum += load_models(steps + slot);
            store_models(steps + slot, Models{});
            const Models gain = load_models(gains + slot) + sum;
            store_models(gains + slot, gain);
            const Models value = load_models(out + MODELS * start) + gain + prior -
                                 load_models(total_sums + MODELS * (words_end - word_starts[start]));
            prior += log_continue;
            store_models(values + MODELS * (start - first), value);
            largest = value > largest ? value : largest;
        }
        Models total = {};
        for (int64_t i = 0; i <= element - first; i++)
            total += exp_nonpositive_models(load_models(values + MODELS * i) - largest);
        for (int model = 0; model < MODELS; model++)
            out[MODELS * (element + 1) + model] = largest[model] + std::log(total[model]);
    }
}
