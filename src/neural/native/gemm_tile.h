// Products of small matrices that lie in the first caches: C = A·B or C += A·B.
//
// A block of 6 rows of C and a few vectors of its columns stays in registers; every step loads one
// row of B and multiplies it with 6 values of A. A is read value by value, so it may be transposed:
// its element (row, step) is a[row · a_row + step · a_step]. Rows of B and C are contiguous.
#pragma once
#include "kernel.h"

namespace {

constexpr int TILE_ROWS = 6;
// 24 of 32 registers of AVX-512, 12 of 16 otherwise, hold the block of C
constexpr int TILE_VECS = LANES == 16 ? 4 : 2;

// `ROWS` rows and `VECS` vectors of columns of C. If `tail` is not 0, the last vector has only that
// many columns.
template <int ROWS, int VECS>
void multiply_registers(
    int64_t steps, const float *a, int64_t a_row, int64_t a_step, const float *b, int64_t b_row,
    float *c, int64_t c_row, bool accumulate, int64_t tail) {
    Vec sum[ROWS][VECS] = {};
    if (tail == 0) {
        for (int64_t step = 0; step < steps; step++) {
            Vec row_of_b[VECS];
            for (int vec = 0; vec < VECS; vec++) row_of_b[vec] = load(b + step * b_row + vec * LANES);
            for (int row = 0; row < ROWS; row++) {
                const Vec value = broadcast(a[row * a_row + step * a_step]);
                for (int vec = 0; vec < VECS; vec++) sum[row][vec] += value * row_of_b[vec];
            }
        }
        for (int row = 0; row < ROWS; row++)
            for (int vec = 0; vec < VECS; vec++) {
                float *target = c + row * c_row + vec * LANES;
                store(target, accumulate ? load(target) + sum[row][vec] : sum[row][vec]);
            }
        return;
    }
    for (int64_t step = 0; step < steps; step++) {
        const Vec row_of_b = load_first(b + step * b_row, tail);
        for (int row = 0; row < ROWS; row++)
            sum[row][0] += broadcast(a[row * a_row + step * a_step]) * row_of_b;
    }
    for (int row = 0; row < ROWS; row++) {
        float *target = c + row * c_row;
        const Vec before = accumulate ? load_first(target, tail) : Vec{};
        store_first(target, before + sum[row][0], tail);
    }
}

template <int VECS>
inline void multiply_columns(
    int64_t rows, int64_t steps, const float *a, int64_t a_row, int64_t a_step, const float *b,
    int64_t b_row, float *c, int64_t c_row, bool accumulate, int64_t tail) {
    int64_t row = 0;
    auto multiply_rows = [&](auto multiply_some, int64_t count) {
        for (; row + count <= rows; row += count)
            multiply_some(
                steps, a + row * a_row, a_row, a_step, b, b_row, c + row * c_row, c_row, accumulate,
                tail);
    };
    multiply_rows(multiply_registers<TILE_ROWS, VECS>, TILE_ROWS);
    multiply_rows(multiply_registers<4, VECS>, 4);
    multiply_rows(multiply_registers<2, VECS>, 2);
    multiply_rows(multiply_registers<1, VECS>, 1);
}

// C (rows × columns) = A (rows × steps) · B (steps × columns), or C += A·B if `accumulate`.
inline void multiply(
    int64_t rows, int64_t columns, int64_t steps, const float *a, int64_t a_row, int64_t a_step,
    const float *b, int64_t b_row, float *c, int64_t c_row, bool accumulate) {
    int64_t column = 0;
    auto multiply_vectors = [&](auto multiply_some, int64_t count) {
        for (; column + count <= columns; column += count)
            multiply_some(
                rows, steps, a, a_row, a_step, b + column, b_row, c + column, c_row, accumulate, 0);
    };
    multiply_vectors(multiply_columns<TILE_VECS>, TILE_VECS * LANES);
    multiply_vectors(multiply_columns<2>, 2 * LANES);
    multiply_vectors(multiply_columns<1>, LANES);
    if (column < columns)
        multiply_columns<1>(
            rows, steps, a, a_row, a_step, b + column, b_row, c + column, c_row, accumulate,
            columns - column);
}

typedef float Quad __attribute__((vector_size(16)));

// Four values of the eight in two vectors, by index. GCC before 12 has no __builtin_shufflevector.
template <int A, int B, int C, int D>
ALWAYS_INLINE Quad shuffle_quads(Quad first, Quad second) {
#if defined(__clang__)
    return __builtin_shufflevector(first, second, A, B, C, D);
#else
    typedef int32_t QuadInt __attribute__((vector_size(16)));
    return __builtin_shuffle(first, second, QuadInt{A, B, C, D});
#endif
}

// Copies a matrix (rows × columns) as its transpose (columns × rows), in squares of 4 × 4.
inline void transpose(
    int64_t rows, int64_t columns, const float *source, int64_t source_row, float *target,
    int64_t target_row) {
    const int64_t square_rows = rows & ~int64_t(3), square_columns = columns & ~int64_t(3);
    for (int64_t row = 0; row < square_rows; row += 4)
        for (int64_t column = 0; column < square_columns; column += 4) {
            Quad in[4], half[4], out[4];
            for (int i = 0; i < 4; i++)
                memcpy(&in[i], source + (row + i) * source_row + column, sizeof(Quad));
            half[0] = shuffle_quads<0, 4, 1, 5>(in[0], in[1]);
            half[1] = shuffle_quads<0, 4, 1, 5>(in[2], in[3]);
            half[2] = shuffle_quads<2, 6, 3, 7>(in[0], in[1]);
            half[3] = shuffle_quads<2, 6, 3, 7>(in[2], in[3]);
            out[0] = shuffle_quads<0, 1, 4, 5>(half[0], half[1]);
            out[1] = shuffle_quads<2, 3, 6, 7>(half[0], half[1]);
            out[2] = shuffle_quads<0, 1, 4, 5>(half[2], half[3]);
            out[3] = shuffle_quads<2, 3, 6, 7>(half[2], half[3]);
            for (int i = 0; i < 4; i++)
                memcpy(target + (column + i) * target_row + row, &out[i], sizeof(Quad));
        }
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = row < square_rows ? square_columns : 0; column < columns; column++)
            target[column * target_row + row] = source[row * source_row + column];
}

// Σ x_i
inline float sum(const float *x, int64_t count) {
    Vec partial = {};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) partial += load(x + i);
    float result = sum_lanes(partial);
    for (; i < count; i++) result += x[i];
    return result;
}

// Σ x_i y_i
inline float dot(const float *x, const float *y, int64_t count) {
    Vec sum = {};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) sum += load(x + i) * load(y + i);
    float result = sum_lanes(sum);
    for (; i < count; i++) result += x[i] * y[i];
    return result;
}

constexpr int64_t round_up(int64_t size, int64_t multiple) { return (size + multiple - 1) / multiple * multiple; }

}  // namespace
