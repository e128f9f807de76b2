// Which instruction sets the library has code for and this processor runs.
#include "threads.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

// The processor is asked directly: `__builtin_cpu_supports` needs a runtime library of the compiler,
// which Windows lacks.
namespace {

struct Registers {
    unsigned eax, ebx, ecx, edx;
};

Registers query_cpu(unsigned leaf) {
    Registers registers = {};
    __get_cpuid_count(leaf, 0, &registers.eax, &registers.ebx, &registers.ecx, &registers.edx);
    return registers;
}

// Bits of the answers: leaf 1, ecx; leaf 7, ebx (F, DQ, BW and VL of AVX-512); leaf 7, ecx.
constexpr unsigned FMA = 1u << 12, OSXSAVE = 1u << 27, F16C = 1u << 29;
constexpr unsigned AVX2 = 1u << 5, AVX512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
constexpr unsigned AVX512_VNNI = 1u << 11;
// Registers that the system saves when it switches threads: of AVX, and of AVX-512.
constexpr unsigned long long AVX_STATE = 0x6, AVX512_STATE = 0xe6;

__attribute__((target("xsave"))) unsigned long long saved_state() { return _xgetbv(0); }

}  // namespace
#endif

extern "C" {

// Bits 0 baseline, 1 avx2, 2 avx512, 3 avx512_vnni: LEVELS of library.py in this order.
EXPORTED int neural_supported_levels(void) {
    int levels = 1;
#if defined(__x86_64__) && defined(HAVE_LEVEL_avx2) && defined(HAVE_LEVEL_avx512)
    const unsigned needed = FMA | OSXSAVE | F16C;
    const Registers basic = query_cpu(1), extended = query_cpu(7);
    if ((basic.ecx & needed) != needed) return levels;
    const unsigned long long state = saved_state();
    if ((state & AVX_STATE) != AVX_STATE || !(extended.ebx & AVX2)) return levels;
    levels |= 2;
    if ((state & AVX512_STATE) != AVX512_STATE || (extended.ebx & AVX512) != AVX512) return levels;
    levels |= 4;
    if (extended.ecx & AVX512_VNNI) levels |= 8;
#endif
    return levels;
}
}
