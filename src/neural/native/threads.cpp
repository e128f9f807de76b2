#include "threads.h"

namespace {

// The interface of GNU's OpenMP runtime: `GOMP_parallel` calls body(data) on every thread.
using ParallelFunction = void (*)(void (*body)(void *), void *data, unsigned threads, unsigned flags);
using CountFunction = int (*)();

ParallelFunction start_threads = nullptr;
CountFunction thread_number = nullptr;
CountFunction thread_count = nullptr;

struct Call {
    void (*body)(void *, int, int);
    void *context;
};

void run_thread(void *data) {
    const Call *call = static_cast<const Call *>(data);
    call->body(call->context, thread_number(), thread_count());
}

}  // namespace

extern "C" {

EXPORTED void neural_connect_threads(
    void *gomp_parallel, void *omp_get_thread_num, void *omp_get_num_threads) {
    thread_number = reinterpret_cast<CountFunction>(omp_get_thread_num);
    thread_count = reinterpret_cast<CountFunction>(omp_get_num_threads);
    start_threads = reinterpret_cast<ParallelFunction>(gomp_parallel);
}

void neural_run_on_threads(
    int max_threads, void (*body)(void *context, int thread, int threads), void *context) {
    if (start_threads == nullptr || max_threads <= 1) {
        body(context, 0, 1);
        return;
    }
    Call call = {body, context};
    start_threads(run_thread, &call, unsigned(max_threads), 0);
}
}
