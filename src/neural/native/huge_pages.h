// Huge pages for large outputs.
//
// The system maps fresh memory at its first write, page by page. For a tensor of 32 MB that takes
// longer than a linear-time kernel computes. Pages of 2 MB instead of 4 kB halve it. Linux only, where
// the administrator allows it (transparent_hugepage = madvise or always); otherwise nothing happens.
#pragma once
#include <cstddef>
#include <cstdint>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace {

constexpr size_t HUGE_PAGE = 1 << 21;

inline void request_huge_pages(void *memory, size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (bytes < 2 * HUGE_PAGE) return;
    const uintptr_t first = (uintptr_t(memory) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    const uintptr_t last = (uintptr_t(memory) + bytes) / HUGE_PAGE * HUGE_PAGE;
    if (first < last) madvise(reinterpret_cast<void *>(first), last - first, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

}  // namespace
