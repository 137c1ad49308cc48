// Stands by where a thread enters an isolate and leaves it: tells the clock of entries, and keeps what V8 asks of an isolate
// while no thread is in it.
//
// V8's helpers compile functions that run often, and then have the thread of the isolate put the code to use at its next
// interrupt. But isolated-vm lets the isolate go behind each batch, and a thread that takes it begins with nothing asked of it
// (V8's StackGuard::InitThread). V8 does not ask again, nor compile again what it has compiled: every other function whose
// entries are shorter than its compilation went on as it was, 5 to 50 times slower, until some other compilation ended within
// an entry.
//
// So what was asked is noted before a thread takes an isolate, and asked anew when it has it. Where V8 notes that, its headers
// tell but for the position, which is found by asking a new isolate for two things: if it is not found, all is as V8 has it.
#include <string.h>

#include "imports.h"
#include "isolate-state.h"

extern "C" void InitializeLocker(v8::Locker*, v8::Isolate*) __asm__("_ZN2v86Locker10InitializeEPNS_7IsolateE");
extern "C" void DestroyLocker(v8::Locker*) __asm__("_ZN2v86LockerD1Ev");

namespace {

constexpr int kWords = v8::internal::Internals::kStackGuardSize / sizeof(uint32_t);
// Requests are bits below it.
constexpr uint32_t kMostRequests = 1 << 16;

// Which of the words has the requests; -1 if that is not known.
std::atomic<int> requests_at{-1};
// That of the host itself, in which others keep what is theirs.
v8::Isolate* host = nullptr;
// That to end what runs. It is not asked anew: it was meant for what ran before.
std::atomic<uint32_t> termination{0};

uint32_t* GuardOf(v8::Isolate* isolate) {
	return reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(isolate) + v8::internal::Internals::kIsolateStackGuardOffset);
}

void Nothing(v8::Isolate*, void*) {}

// What was asked between the two; 0 if it is not one request.
uint32_t RequestBetween(uint32_t before, uint32_t after) {
	uint32_t more = after & ~before;
	bool is_one = (before & ~after) == 0 && more != 0 && (more & (more - 1)) == 0 && after < kMostRequests;
	return is_one ? more : 0;
}

// In place of V8's, for isolated-vm alone, as is the next.
void LockIsolate(v8::Locker* locker, v8::Isolate* isolate) {
	IsolateState* state = isolate == host ? nullptr : TrackedOf(isolate);
	ThreadEnters(state);
	int at = requests_at.load(std::memory_order_acquire);
	bool is_kept = at >= 0 && state != nullptr;
	uint32_t asked = is_kept ? __atomic_load_n(GuardOf(isolate) + at, __ATOMIC_RELAXED) & ~termination.load() : 0;
	InitializeLocker(locker, isolate);
	if (asked != 0) {
		__atomic_fetch_or(GuardOf(isolate) + at, asked, __ATOMIC_RELAXED);
		// V8 looks at what is asked, now with this.
		isolate->RequestInterrupt(Nothing, nullptr);
	}
	if (isolate != host) ThreadLocks(isolate);
}

void UnlockIsolate(v8::Locker* locker) {
	ThreadLeaves();
	DestroyLocker(locker);
	// It may have locked one within another.
	ThreadLocks(v8::Isolate::TryGetCurrent());
}

}  // namespace

bool WatchVisits() {
	host = v8::Isolate::GetCurrent();
	return ReplaceImport(kIsolatedVm, "_ZN2v86Locker10InitializeEPNS_7IsolateE", reinterpret_cast<void*>(LockIsolate)) &&
		ReplaceImport(kIsolatedVm, "_ZN2v86LockerD1Ev", reinterpret_cast<void*>(UnlockIsolate));
}

void LearnRequests(v8::Isolate* isolate) {
	if (requests_at.load() >= 0) return;
	const uint32_t* guard = GuardOf(isolate);
	uint32_t words[3][kWords];
	memcpy(words[0], guard, sizeof(words[0]));
	isolate->RequestInterrupt(Nothing, nullptr);
	memcpy(words[1], guard, sizeof(words[1]));
	isolate->TerminateExecution();
	memcpy(words[2], guard, sizeof(words[2]));
	isolate->CancelTerminateExecution();
	for (int word = 0; word < kWords; word++) {
		uint32_t end = RequestBetween(words[1][word], words[2][word]);
		if (end == 0 || RequestBetween(words[0][word], words[1][word]) == 0) continue;
		termination.store(end);
		requests_at.store(word);
		return;
	}
}
