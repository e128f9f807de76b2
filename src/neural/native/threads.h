// Parallel loops in the OpenMP runtime of torch; serial where torch is not loaded.
//
// The library is not linked with an OpenMP runtime: a second one beside torch's would start threads
// of its own, which compete with torch's. `neural_connect_threads` gets the addresses of three
// functions of the runtime that torch has loaded (library.py). GNU's, LLVM's and Intel's all have
// them.
#pragma once
#include <cstdint>

// Functions that other programs find in the library.
#if defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

extern "C" {
// Runs body(context, thread, threads) on up to `max_threads` threads and waits for all of them.
void neural_run_on_threads(
    int max_threads, void (*body)(void *context, int thread, int threads), void *context);
}

namespace {

// Calls body(thread, threads) on each thread; `threads` is how many there are, at most max_threads.
template <class Body>
void run_on_threads(int max_threads, Body body) {
    neural_run_on_threads(
        max_threads,
        [](void *context, int thread, int threads) {
            (*static_cast<Body *>(context))(thread, threads);
        },
        &body);
}

// Calls body(task) for every task from 0 to `tasks` − 1. A thread takes the next task when it has
// done one, so that a thread which the system holds up does not hold up the others.
template <class Body>
void parallel_for(int64_t tasks, int max_threads, Body body) {
    int64_t next = 0;
    run_on_threads(tasks < max_threads ? int(tasks) : max_threads, [&](int, int) {
        for (;;) {
            const int64_t task = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
            if (task >= tasks) return;
            body(task);
        }
    });
}

// Lets the threads of one `run_on_threads` wait for each other. They spin: stages of a kernel take
// microseconds. After a while they yield, in case a thread has lost its core.
class Barrier {
   public:
    explicit Barrier(int threads) : threads_(threads) {}
    void wait() {
        if (threads_ == 1) return;
        const int phase = __atomic_load_n(&phase_, __ATOMIC_RELAXED);
        if (__atomic_add_fetch(&arrived_, 1, __ATOMIC_ACQ_REL) == threads_) {
            __atomic_store_n(&arrived_, 0, __ATOMIC_RELAXED);
            __atomic_store_n(&phase_, phase + 1, __ATOMIC_RELEASE);
            return;
        }
        for (int spins = 0; __atomic_load_n(&phase_, __ATOMIC_ACQUIRE) == phase; spins++) {
            if (spins < SPINS)
                pause();
            else
                yield();
        }
    }

   private:
    static constexpr int SPINS = 1000;  // about 20 µs
    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ __volatile__("yield");
#endif
    }
    static void yield();
    const int threads_;
    int arrived_ = 0;
    int phase_ = 0;
};

}  // namespace

#if defined(_WIN32)
extern "C" __declspec(dllimport) int __stdcall SwitchToThread(void);
inline void Barrier::yield() { SwitchToThread(); }
#else
#include <sched.h>
inline void Barrier::yield() { sched_yield(); }
#endif
