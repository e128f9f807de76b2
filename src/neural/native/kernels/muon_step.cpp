// Muon's update of many weight matrices: momentum, Newton–Schulz iteration, weight step.
//
// A task is one matrix, so that all its data stays in the second cache of one core and the result
// does not depend on the number of threads. The iteration X ← (a + b·S + c·S²)·X, S = X·Xᵀ, needs
// fewer multiplications here than one matrix product after the other:
//
// - S, S² and every polynomial of S are symmetric: their blocks above the diagonal are mirrored.
// - If one side is at least twice the other, only S is iterated. With Pₖ = a + b·Sₖ + c·Sₖ² all
//   Sₖ and Pₖ commute, so Sₖ₊₁ = Pₖ·Sₖ·Pₖ, and the result is (P₅·…·P₁)·X, computed once. In exact
//   arithmetic that is the same. In float32, results differ by about 1e-5 from the exact ones
//   (5e-6 in the usual order), also for matrices of low rank. An error of an eigenvalue of S near
//   0 grows by a² ≈ 12 per iteration, so at most MAX_GRAM_STEPS iterations are done this way.
//
// Layout: W is the matrix with its long side first (Xᵀ if X is wide), so S = WᵀW reads rows of W
// only, and the step is W·P. Sides are padded with zeros to multiples of BLOCK, which changes
// nothing: zero rows and columns stay zero. Rows have ROW_GAP more floats than columns, because
// rows whose distance is a power of two would compete for the same few lines of the first cache.
#include <cstdlib>

#include "kernel.h"

namespace {

constexpr int64_t BLOCK = 32;     // rows and columns of a block of the product
constexpr int64_t ROW_GAP = 16;   // floats between two rows of a workspace matrix
constexpr int64_t DEPTH = 256;    // terms that are summed before a block is stored
constexpr int64_t MAX_GRAM_STEPS = 5;
constexpr int TILE_VECTORS = 2;                       // columns of a register tile, in vectors
constexpr int TILE_ROWS = LANES == 16 ? 8 : 4;        // its rows: as many sums as registers allow
constexpr int TILE_COLUMNS = TILE_VECTORS * LANES;

int64_t round_up(int64_t size, int64_t multiple) {
    return (size + multiple - 1) / multiple * multiple;
}

// result += A·B for one register tile. A(i, k) is a[i · row_stride + k · depth_stride].
ALWAYS_INLINE void multiply_tile(
    const float *a, int64_t row_stride, int64_t depth_stride, const float *b, int64_t b_stride,
    int64_t depth, Vec sums[TILE_ROWS][TILE_VECTORS]) {
    for (int64_t k = 0; k < depth; k++) {
        Vec row[TILE_VECTORS];
        for (int v = 0; v < TILE_VECTORS; v++) row[v] = load(b + k * b_stride + v * LANES);
        for (int i = 0; i < TILE_ROWS; i++) {
            const Vec factor = broadcast(a[i * row_stride + k * depth_stride]);
            for (int v = 0; v < TILE_VECTORS; v++) sums[i][v] += factor * row[v];
        }
    }
}

// Vectors of the first and of the second halves of two vectors, element by element.
#if __has_builtin(__builtin_shufflevector)
#if defined(__AVX512F__)
#define INTERLEAVE_LOW(a, b) \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define INTERLEAVE_HIGH(a, b) \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif defined(__AVX__)
#define INTERLEAVE_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define INTERLEAVE_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif
#endif

// Transpose of LANES × LANES values: log₂(LANES) perfect shuffles of the rows.
ALWAYS_INLINE void transpose_tile(
    const float *from, int64_t from_stride, float *to, int64_t to_stride) {
#ifdef INTERLEAVE_LOW
    Vec rows[LANES], shuffled[LANES];
    for (int i = 0; i < LANES; i++) rows[i] = load(from + i * from_stride);
    for (int size = 1; size < LANES; size *= 2) {
        for (int i = 0; i < LANES / 2; i++) {
            shuffled[2 * i] = INTERLEAVE_LOW(rows[i], rows[i + LANES / 2]);
            shuffled[2 * i + 1] = INTERLEAVE_HIGH(rows[i], rows[i + LANES / 2]);
        }
        for (int i = 0; i < LANES; i++) rows[i] = shuffled[i];
    }
    for (int i = 0; i < LANES; i++) store(to + i * to_stride, rows[i]);
#else
    for (int i = 0; i < LANES; i++)
        for (int j = 0; j < LANES; j++) to[j * to_stride + i] = from[i * from_stride + j];
#endif
}

// Transpose of a matrix whose sides need not be multiples of LANES.
void transpose(
    const float *from, int64_t from_stride, float *to, int64_t to_stride, int64_t rows,
    int64_t columns) {
    const int64_t full_rows = rows / LANES * LANES, full_columns = columns / LANES * LANES;
    for (int64_t i = 0; i < full_rows; i += LANES)
        for (int64_t j = 0; j < full_columns; j += LANES)
            transpose_tile(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i < full_rows ? full_columns : 0; j < columns; j++)
            to[j * to_stride + i] = from[i * from_stride + j];
}

// A matrix of the workspace; both sides are multiples of BLOCK.
struct Matrix {
    float *data;
    int64_t rows, columns;
    int64_t stride() const { return columns + ROW_GAP; }
    float *at(int64_t i, int64_t j) const { return data + i * stride() + j; }
};

// Blocks of out = alpha · op(A)·B + beta · added, with op(A) = Aᵀ if TRANSPOSED. `added` has the
// size of `out` and may be out itself. SYMMETRIC: the product is known to be symmetric, so only
// blocks on and below the diagonal are computed.
template <bool TRANSPOSED, bool SYMMETRIC>
void multiply(
    const Matrix &a, const Matrix &b, const Matrix &out, float alpha = 1, float beta = 0,
    const Matrix *added = nullptr) {
    const int64_t depth = b.rows;
    for (int64_t block_column = 0; block_column < out.columns; block_column += BLOCK)
        for (int64_t first = 0; first < depth; first += DEPTH) {
            const int64_t terms = depth - first < DEPTH ? depth - first : DEPTH;
            for (int64_t i = SYMMETRIC ? block_column : 0; i < out.rows; i += TILE_ROWS)
                for (int64_t j = block_column; j < block_column + BLOCK; j += TILE_COLUMNS) {
                    Vec sums[TILE_ROWS][TILE_VECTORS] = {};
                    multiply_tile(
                        TRANSPOSED ? a.at(first, i) : a.at(i, first), TRANSPOSED ? 1 : a.stride(),
                        TRANSPOSED ? a.stride() : 1, b.at(first, j), b.stride(), terms, sums);
                    for (int row = 0; row < TILE_ROWS; row++)
                        for (int v = 0; v < TILE_VECTORS; v++) {
                            float *target = out.at(i + row, j + v * LANES);
                            Vec value = alpha * sums[row][v];
                            if (first > 0)
                                value += load(target);
                            else if (added)
                                value += beta * load(added->at(i + row, j + v * LANES));
                            store(target, value);
                        }
                }
        }
    if (SYMMETRIC)
        for (int64_t i = 0; i < out.rows; i += BLOCK)
            for (int64_t j = 0; j < i; j += BLOCK)
                transpose(out.at(i, j), out.stride(), out.at(j, i), out.stride(), BLOCK, BLOCK);
}

struct Polynomial {
    float a, b, c;
};

// out = a + b·S + c·S²
void evaluate(const Polynomial &polynomial, const Matrix &s, const Matrix &out) {
    multiply<true, true>(s, s, out, polynomial.c, polynomial.b, &s);
    for (int64_t i = 0; i < out.rows; i++) *out.at(i, i) += polynomial.a;
}

int64_t matrix_floats(int64_t rows, int64_t columns) { return rows * (columns + ROW_GAP); }

// Floats of the workspace of one matrix: W, its successor, and five matrices of the short side.
int64_t workspace_floats(int64_t rows, int64_t columns) {
    const int64_t long_side = round_up(rows > columns ? rows : columns, BLOCK);
    const int64_t short_side = round_up(rows > columns ? columns : rows, BLOCK);
    return 2 * matrix_floats(long_side, short_side) + 5 * matrix_floats(short_side, short_side);
}

// Orthogonalizes `w` in the workspace behind it; returns the matrix that holds the result.
Matrix iterate(const Matrix &w, float *memory, const Polynomial &polynomial, int64_t steps) {
    const int64_t side = w.columns, size = matrix_floats(side, side);
    Matrix next = {memory, w.rows, side};
    memory += matrix_floats(w.rows, side);
    Matrix s = {memory, side, side}, p = {memory + size, side, side};
    Matrix product = {memory + 2 * size, side, side}, scratch = {memory + 3 * size, side, side};
    Matrix next_product = {memory + 4 * size, side, side};
    if (w.rows < 2 * side || steps > MAX_GRAM_STEPS || steps < 1) {
        Matrix current = w;
        for (int64_t step = 0; step < steps; step++) {
            multiply<true, true>(current, current, s);
            evaluate(polynomial, s, p);
            multiply<false, false>(current, p, next);
            const Matrix previous = current;
            current = next;
            next = previous;
        }
        return current;
    }
    multiply<true, true>(w, w, s);
    evaluate(polynomial, s, product);
    const Matrix *factor = &product;
    for (int64_t step = 1; step < steps; step++) {
        // S becomes F·S·F, where F is the polynomial of the iteration before. F·S and the product
        // of all F are symmetric but for rounding, and still computed in full: if they are
        // mirrored, matrices of low rank get errors of 1e-2
        multiply<true, false>(*factor, s, scratch);
        multiply<false, true>(scratch, *factor, s);
        evaluate(polynomial, s, p);
        multiply<false, false>(product, p, next_product);
        const Matrix previous = product;
        product = next_product;
        next_product = previous;
        factor = &p;
    }
    multiply<false, false>(w, product, next);
    return next;
}

struct Settings {
    float momentum, decay, rate, epsilon;
    bool nesterov;
    Polynomial polynomial;
    int64_t steps;
};

// The update of one matrix; `memory` holds workspace_floats(rows, columns).
void update_matrix(
    float *weight, const float *grad, float *momentum_buffer, int64_t rows, int64_t columns,
    const Settings &settings, float *memory) {
    const int64_t count = rows * columns;
    const bool is_wide = rows < columns;
    const int64_t long_side = is_wide ? columns : rows, short_side = is_wide ? rows : columns;
    const Matrix w = {memory, round_up(long_side, BLOCK), round_up(short_side, BLOCK)};
    memory += matrix_floats(w.rows, w.columns);
    float *direction = memory;  // where the iteration puts its matrices later
    memset(w.data, 0, sizeof(float) * matrix_floats(w.rows, w.columns));
    // as torch.lerp: momentum ← momentum + (grad − momentum)·(1 − m), direction alike
    const float keep = 1 - settings.momentum;
    double square = 0;
    for (int64_t first = 0; first < count; first += 1024) {
        const int64_t last = first + 1024 < count ? first + 1024 : count;
        float partial = 0;
#pragma omp simd reduction(+ : partial)
        for (int64_t i = first; i < last; i++) {
            const float average = momentum_buffer[i] + (grad[i] - momentum_buffer[i]) * keep;
            momentum_buffer[i] = average;
            direction[i] =
                settings.nesterov ? average + (grad[i] - average) * keep : average;
            partial += direction[i] * direction[i];
        }
        square += partial;
    }
    // not `norm < epsilon ? …`: a NaN stays a NaN
    const float norm = float(std::sqrt(square));
    const float factor = 1 / (norm <= settings.epsilon ? settings.epsilon : norm);
    for (int64_t i = 0; i < count; i++) direction[i] *= factor;
    if (is_wide)
        transpose(direction, columns, w.data, w.stride(), rows, columns);
    else
        for (int64_t i = 0; i < rows; i++)
            memcpy(w.at(i, 0), direction + i * columns, sizeof(float) * columns);
    const Matrix result = iterate(w, memory, settings.polynomial, settings.steps);
    const float *step = result.data;
    int64_t step_stride = result.stride();
    if (is_wide) {
        float *transposed = result.data == w.data ? memory : w.data;
        transpose(result.data, step_stride, transposed, columns, long_side, short_side);
        step = transposed, step_stride = columns;
    }
    // matrices with more rows than columns take longer steps (adjust_lr_fn="original" of torch)
    const float rate = is_wide ? settings.rate : settings.rate * std::sqrt(float(rows) / columns);
    for (int64_t i = 0; i < rows; i++) {
        float *row = weight + i * columns;
        const float *step_row = step + i * step_stride;
        for (int64_t j = 0; j < columns; j++) row[j] = row[j] * settings.decay - rate * step_row[j];
    }
}

}  // namespace

// `matrices` has five numbers per matrix: addresses of weight, gradient and momentum, rows and
// columns. `decay` is the factor of the old weights. `failed` becomes 1, and nothing else happens,
// if there is no memory for the workspace.
KERNEL(muon_step)
(const int64_t *matrices, int64_t count, float momentum, int64_t nesterov, float decay, float rate,
 float a, float b, float c, int64_t steps, float epsilon, int64_t threads, int64_t *failed) {
    const Settings settings = {momentum, decay, rate, epsilon, nesterov != 0, {a, b, c}, steps};
    int64_t floats = 0;
    for (int64_t index = 0; index < count; index++) {
        const int64_t needed = workspace_floats(matrices[5 * index + 3], matrices[5 * index + 4]);
        floats = needed > floats ? needed : floats;
    }
    const int workers = int(threads < count ? threads : count);
    float *memory = static_cast<float *>(malloc(sizeof(float) * floats * workers));
    *failed = memory == nullptr;
    if (!memory) return;
    int64_t next = 0;
    run_on_threads(workers, [&](int thread, int) {
        for (;;) {
            const int64_t index = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
            if (index >= count) return;
            const int64_t *matrix = matrices + 5 * index;
            update_matrix(
                reinterpret_cast<float *>(matrix[0]), reinterpret_cast<const float *>(matrix[1]),
                reinterpret_cast<float *>(matrix[2]), matrix[3], matrix[4], settings,
                memory + thread * floats);
        }
    });
    free(memory);
}
