// Included by every kernel: names of entry points, vectors, exp, log, threads.
//
// A kernel source is compiled once per instruction set (CMakeLists.txt). KERNEL(name) is the name
// of its entry point for the current one, such as `localized_forward_avx2`; library.py looks it up.
// Its integers are int64_t, as library.py passes them: `long` has 32 bits on Windows.
// Code outside of KERNEL functions stands in an anonymous namespace: equal names of two
// instruction sets must not be merged by the linker.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "threads.h"

#define KERNEL_JOIN_(name, level) name##_##level
#define KERNEL_JOIN(name, level) KERNEL_JOIN_(name, level)
#define KERNEL(name) \
    extern "C" EXPORTED void KERNEL_JOIN(name, KERNEL_LEVEL)

#define ALWAYS_INLINE inline __attribute__((always_inline))

namespace {

// Floats of one vector. A source may define NARROW_VECTORS before including this file, if the
// shuffles of 16 lanes cost it more than they save.
#if defined(__AVX512F__) && !defined(NARROW_VECTORS)
constexpr int LANES = 16;
#define WIDE_VECTORS
#elif defined(__AVX__)
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif

// Vectors of the compiler: + - * / < work on all lanes. `a < b ? x : y` selects lane by lane.
typedef float Vec __attribute__((vector_size(LANES * 4)));
typedef int32_t VecInt __attribute__((vector_size(LANES * 4)));
typedef double VecDouble __attribute__((vector_size(LANES * 4)));

ALWAYS_INLINE Vec load(const float *p) {
    Vec v;
    memcpy(&v, p, sizeof v);
    return v;
}
ALWAYS_INLINE void store(float *p, Vec v) { memcpy(p, &v, sizeof v); }
ALWAYS_INLINE VecDouble load(const double *p) {
    VecDouble v;
    memcpy(&v, p, sizeof v);
    return v;
}
ALWAYS_INLINE void store(double *p, VecDouble v) { memcpy(p, &v, sizeof v); }
ALWAYS_INLINE Vec broadcast(float x) { return x - Vec{}; }
ALWAYS_INLINE VecDouble broadcast(double x) { return x - VecDouble{}; }
ALWAYS_INLINE Vec maximum(Vec a, Vec b) { return a > b ? a : b; }
ALWAYS_INLINE Vec minimum(Vec a, Vec b) { return a < b ? a : b; }

// Sum and maximum over the lanes: each step combines lanes STEP apart, in registers.
template <int STEP, class V, size_t... I>
ALWAYS_INLINE V swap_lanes(V v, std::index_sequence<I...>) {
    return __builtin_shufflevector(v, v, int(I ^ STEP)...);
}
template <int STEP = 1>
ALWAYS_INLINE float sum_lanes(Vec v) {
    if constexpr (STEP == LANES)
        return v[0];
    else
        return sum_lanes<2 * STEP>(v + swap_lanes<STEP>(v, std::make_index_sequence<LANES>()));
}
template <int STEP = 1>
ALWAYS_INLINE double sum_lanes(VecDouble v) {
    if constexpr (STEP == LANES / 2)
        return v[0];
    else
        return sum_lanes<2 * STEP>(v + swap_lanes<STEP>(v, std::make_index_sequence<LANES / 2>()));
}
template <int STEP = 1>
ALWAYS_INLINE float max_lanes(Vec v) {
    if constexpr (STEP == LANES)
        return v[0];
    else
        return max_lanes<2 * STEP>(
            maximum(v, swap_lanes<STEP>(v, std::make_index_sequence<LANES>())));
}

// Adds two vectors crosswise: lane i is a[i] + a[i ^ STEP], or that of b if i has the bit STEP.
template <int STEP, size_t... I>
ALWAYS_INLINE Vec add_pairs(Vec a, Vec b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, int(I & STEP ? I + LANES : I)...) +
           __builtin_shufflevector(a, b, int((I ^ STEP) + (I & STEP ? LANES : 0))...);
}

// Sums of N vectors at once, N a power of two up to LANES: lane i is the sum over vectors[i % N].
// Three instructions per vector, where N calls of `sum_lanes` take about eight.
template <int N, int STEP = 1>
ALWAYS_INLINE Vec sum_each(const Vec *vectors) {
    constexpr auto lanes = std::make_index_sequence<LANES>();
    if constexpr (N > 1) {
        Vec halves[N / 2];
        for (int i = 0; i < N / 2; i++)
            halves[i] = add_pairs<STEP>(vectors[2 * i], vectors[2 * i + 1], lanes);
        return sum_each<N / 2, 2 * STEP>(halves);
    } else if constexpr (STEP < LANES) {
        const Vec sum = add_pairs<STEP>(vectors[0], vectors[0], lanes);
        return sum_each<1, 2 * STEP>(&sum);
    } else {
        return vectors[0];
    }
}

// The first `count` lanes from memory, the others 0; and the reverse. 0 ≤ count ≤ LANES.
#if defined(WIDE_VECTORS)
ALWAYS_INLINE Vec load_first(const float *p, int64_t count) {
    return _mm512_maskz_loadu_ps(__mmask16((1u << count) - 1), p);
}
ALWAYS_INLINE void store_first(float *p, Vec v, int64_t count) {
    _mm512_mask_storeu_ps(p, __mmask16((1u << count) - 1), v);
}
#elif defined(__AVX__)
ALWAYS_INLINE __m256i first_lanes(int64_t count) {
    static const int32_t ones_then_zeros[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(ones_then_zeros + 8 - count));
}
ALWAYS_INLINE Vec load_first(const float *p, int64_t count) {
    return _mm256_maskload_ps(p, first_lanes(count));
}
ALWAYS_INLINE void store_first(float *p, Vec v, int64_t count) {
    _mm256_maskstore_ps(p, first_lanes(count), v);
}
#else
ALWAYS_INLINE Vec load_first(const float *p, int64_t count) {
    Vec v = {};
    for (int64_t i = 0; i < count; i++) v[i] = p[i];
    return v;
}
ALWAYS_INLINE void store_first(float *p, Vec v, int64_t count) {
    for (int64_t i = 0; i < count; i++) p[i] = v[i];
}
#endif

ALWAYS_INLINE Vec round_down(Vec x) {
    const Vec whole = __builtin_convertvector(__builtin_convertvector(x, VecInt), Vec);
    return whole > x ? whole - 1.0f : whole;
}

// exp(x), at most 2 units in the last place from the exact value; 0 below −87.3, infinity above
// 88.7, NaN for NaN. x = n·log 2 + r with |r| ≤ log(2) / 2; 2ⁿ is made from its exponent bits.
ALWAYS_INLINE Vec exp(Vec x) {
    const Vec clamped = minimum(maximum(x, broadcast(-87.33654f)), broadcast(88.72283f));
    const Vec n = round_down(clamped * 1.44269504f + 0.5f);
    // log 2 is the sum of two constants, so that r keeps all its digits (Cody and Waite, 1980)
    const Vec r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
    Vec p = 1.9875691500e-4f * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    // 2ⁿ as 2 · 2ⁿ⁻¹: n is up to 128, which is not the exponent of a finite number
    const VecInt bits = (__builtin_convertvector(n, VecInt) + 126) << 23;
    Vec power;
    memcpy(&power, &bits, sizeof power);
    Vec result = p * power * 2.0f;
    result = x < -87.33654f ? Vec{} : result;
    result = x > 88.72283f ? broadcast(INFINITY) : result;
    return x == x ? result : x;
}

// exp(x) for −87.3 ≤ x ≤ 88, or x below −87.3, where it is 0; for nothing else, also not NaN.
// A softmax takes it of differences from the largest score.
ALWAYS_INLINE Vec exp_nonpositive(Vec x) {
    const Vec clamped = maximum(x, broadcast(-87.33654f));
    const Vec n = round_down(clamped * 1.44269504f + 0.5f);
    const Vec r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
    Vec p = 1.9875691500e-4f * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const VecInt bits = (__builtin_convertvector(n, VecInt) + 127) << 23;
    Vec power;
    memcpy(&power, &bits, sizeof power);
    return x < -87.33654f ? Vec{} : p * power;
}

// log(x) of a normal number above 0, at most 2 units in the last place from the exact value.
ALWAYS_INLINE Vec log(Vec x) {
    VecInt bits;
    memcpy(&bits, &x, sizeof bits);
    // rounded so that the mantissa lies between √½ and √2 (0x3F3504F3 is √½)
    const VecInt exponent = (bits - 0x3F3504F3) >> 23;
    const VecInt mantissa_bits = bits - (exponent << 23);
    Vec mantissa;
    memcpy(&mantissa, &mantissa_bits, sizeof mantissa);
    const Vec r = mantissa - 1.0f;
    Vec p = 7.0376836292e-2f * r - 1.1514610310e-1f;
    p = p * r + 1.1676998740e-1f;
    p = p * r - 1.2420140846e-1f;
    p = p * r + 1.4249322787e-1f;
    p = p * r - 1.6668057665e-1f;
    p = p * r + 2.0000714765e-1f;
    p = p * r - 2.4999993993e-1f;
    p = p * r + 3.3333331174e-1f;
    return r + r * r * (p * r - 0.5f) + __builtin_convertvector(exponent, Vec) * 0.693147181f;
}

}  // namespace
