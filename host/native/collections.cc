// Has isolates collect the garbage of their whole heaps by turns.
//
// V8 holds a lock of the whole process while it marks a heap (cppgc's g_process_mutex, for what other threads hold on to), and
// whoever is about to mark waits for it: the host's own thread as well, behind all isolates that wait. Twenty at their limits,
// where they collect again and again, kept the host from everything else for up to a second. So they wait here, in the order in
// which they came, and the host's thread is behind few of them. They lose little by that, since only one may mark anyway.
//
// What isolated-vm collects besides, when V8 has collected and the heap is still near its limit, is within the same turn.
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "isolate-state.h"

namespace {

// One marks while another does the rest.
constexpr int32_t kAtOnce = 2;
// Who has waited for so long goes on without a turn. A thread that V8 gave up for want of memory never ends its own.
constexpr time_t kLongestSeconds = 1;

// How many have come, and how many are done.
std::atomic<uint32_t> came{0}, done{0};

// Whom others wait for does not wait: an isolate that the host ends, or that is taken down, which isolated-vm does under a lock
// that the host's thread may want.
bool MayWait(const IsolateState* state, v8::Isolate* isolate) {
	return !state->is_closed.load(std::memory_order_relaxed) && v8::Locker::IsLocked(isolate);
}

}  // namespace

void WaitToCollect(const IsolateState* state, v8::Isolate* isolate) {
	uint32_t before = came.fetch_add(1);
	timespec end;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += kLongestSeconds;
	// Those that came later may be done sooner.
	for (uint32_t now = done.load(); static_cast<int32_t>(before - now) >= kAtOnce; now = done.load()) {
		if (!MayWait(state, isolate)) return;
		long result = syscall(SYS_futex, &done, FUTEX_WAIT_BITSET_PRIVATE, now, &end, nullptr, FUTEX_BITSET_MATCH_ANY);
		if (result != 0 && errno == ETIMEDOUT) return;
	}
}

void HasCollected() {
	done.fetch_add(1);
	syscall(SYS_futex, &done, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}
