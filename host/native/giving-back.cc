// Gives memory back to the system that isolates had outside of their heaps.
//
// The C library keeps what is freed in small pieces, for each thread apart: behind a function that was ended for its dates of
// `Temporal`, each thread that it had run on held as much as it had, for good, which took the host beyond its budget. So the
// thread has all that is free given back when an isolate that had much outside is gone, or has much less than it had. That takes
// milliseconds, a tenth of what it took to take the isolate down. It locks what each thread has, one after the other, so it is
// done by one thread at a time, and seldom: a function could have it done again and again.
#include <malloc.h>
#include <time.h>

#include "imports.h"
#include "isolate-state.h"

extern "C" {
// The other C library has none, and keeps little.
__attribute__((weak)) int malloc_trim(size_t);
void DisposeIsolate(v8::Isolate*) __asm__("_ZN2v87Isolate7DisposeEv");
}

namespace {

// From so much on it is worth it, in bytes.
constexpr uint64_t kWorthIt = 16 << 20;

// What isolates that are gone had at most, since memory was last given back for it.
std::atomic<uint64_t> left_bytes{0};
// The same of the one that this thread takes down.
thread_local uint64_t own_left_bytes = 0;

// It rests for so many times as long as it took.
constexpr uint64_t kRest = 10;
// When it may be done again; never as long as a thread does it.
std::atomic<uint64_t> due_ns{0};

uint64_t NowNs() {
	timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

// Whether it was done.
bool GiveAllBack() {
	uint64_t begin_ns = NowNs(), due = due_ns.load();
	if (malloc_trim == nullptr || begin_ns < due || !due_ns.compare_exchange_strong(due, UINT64_MAX)) return false;
	malloc_trim(0);
	uint64_t end_ns = NowNs();
	due_ns.store(end_ns + kRest * (end_ns - begin_ns));
	return true;
}

// In place of V8's, for isolated-vm alone. Only behind it all of the isolate is free.
void Dispose(v8::Isolate* isolate) {
	own_left_bytes = 0;
	DisposeIsolate(isolate);
	uint64_t left = left_bytes.fetch_add(own_left_bytes) + own_left_bytes;
	if (left >= kWorthIt && GiveAllBack()) left_bytes.fetch_sub(left);
}

}  // namespace

bool WatchDisposals() { return ReplaceImport(kIsolatedVm, "_ZN2v87Isolate7DisposeEv", reinterpret_cast<void*>(Dispose)); }

void LeavesOutside(const IsolateState* state) { own_left_bytes = state->most_malloced_bytes; }

void GiveBackIfWorthIt(IsolateState* state) {
	if (state->most_malloced_bytes < state->malloced_bytes + kWorthIt) return;
	if (GiveAllBack()) state->most_malloced_bytes = state->malloced_bytes;
}
