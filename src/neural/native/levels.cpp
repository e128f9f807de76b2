// Which instruction sets the library has code for and this processor runs.

extern "C" {

// Bits 0 baseline, 1 avx2, 2 avx512, 3 avx512_vnni: LEVELS of library.py in this order.
__attribute__((visibility("default"))) int neural_supported_levels(void) {
    int levels = 1;
#if defined(__x86_64__) || defined(_M_X64)
    __builtin_cpu_init();
#if defined(HAVE_LEVEL_avx2)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2) levels |= 2;
#endif
#if defined(HAVE_LEVEL_avx512)
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl");
    if (avx512) levels |= 4;
    if (avx512 && __builtin_cpu_supports("avx512vnni")) levels |= 8;
#endif
#endif
    return levels;
}
}
