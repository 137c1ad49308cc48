// CPU clock of isolates, entry by entry.
//
// isolated-vm runs an isolate on whichever thread of its pool is free. What calls the guest for each entry runs on that thread,
// and so can read the thread's own CPU clock; it leaves behind which thread it is, so that the host can read the same clock while
// the entry runs.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "isolate-state.h"

namespace {

clockid_t FindOwnClock() {
	UseAllCores();
	UseUsualTurns();
	ThreadRunsIsolates();
	return static_cast<clockid_t>((~static_cast<uint32_t>(syscall(SYS_gettid)) << 3) | 6);
}

// The CPU clock of the thread that calls, as pthread_getcpuclockid makes it, readable from all threads of the process.
clockid_t OwnClock() {
	static thread_local clockid_t clock = FindOwnClock();
	return clock;
}

int64_t Read(clockid_t clock) {
	timespec time;
	// The thread may have ended.
	if (clock_gettime(clock, &time) != 0) return -1;
	return static_cast<int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
}

// Whose entries this thread runs; null if none are under way.
thread_local IsolateState* running = nullptr;

// How many locks of isolates this thread holds: within an entry it may take down another one.
thread_local int locks = 0;
// It is the host's own, which runs no entries.
thread_local bool is_host = false;

// What this thread does in an isolate besides entries: where, as of which batch, and until when it is counted. Null where that is
// not known.
thread_local struct {
	IsolateState* state;
	uint32_t batches;
	int64_t counted_until_ns;
} between = {nullptr, 0, 0};

// Less than this between two batches is the way out of an isolate and in again; more, what V8 did on its own, as collecting
// garbage.
constexpr int64_t kMostBetweenNs = 200000;

// Another isolate may have its state by now, or another thread have gone on.
bool IsCurrent() {
	return between.state != nullptr && between.batches == between.state->batches.load(std::memory_order_relaxed);
}

void CountBetween(int64_t now) {
	between.state->between_ns.fetch_add(now - between.counted_until_ns, std::memory_order_relaxed);
	between.counted_until_ns = now;
}

// When the first entry of a batch begins. To leave an isolate and enter it again takes isolated-vm and the system a while, which
// nobody else would be charged for: it is the next entry's.
int64_t EntryStart(const IsolateState* state, int64_t now) {
	if (between.state != state || !IsCurrent()) return now;
	if (now - between.counted_until_ns > kMostBetweenNs) CountBetween(now);
	return between.counted_until_ns;
}

// CPU time of an entry, in ns.
int64_t CpuTimeOf(const IsolateState* state, uint32_t index, uint32_t begun) {
	int64_t end = index + 1 < begun ? state->starts_ns[index + 1].load(std::memory_order_relaxed)
									: state->end_ns.load(std::memory_order_relaxed);
	if (end == 0) end = Read(state->clock.load(std::memory_order_relaxed));
	int64_t cpu_ns = end - state->starts_ns[index].load(std::memory_order_relaxed);
	return cpu_ns > 0 ? cpu_ns : 0;
}

// @param before_ns what counts as used by then
void BeginEntryAt(IsolateState* state, uint32_t index, int64_t before_ns) {
	BeginTaking(state);
	clockid_t clock = OwnClock();
	int64_t now = Read(clock);
	if (index == 0) {
		running = state;
		// Odd while the host would read a mixture.
		uint32_t changes = state->changes.load(std::memory_order_relaxed);
		state->changes.store(changes + 1, std::memory_order_relaxed);
		std::atomic_thread_fence(std::memory_order_release);
		state->ended.store(false, std::memory_order_relaxed);
		state->clock.store(clock, std::memory_order_relaxed);
		state->end_ns.store(0, std::memory_order_relaxed);
		state->starts_ns[0].store(EntryStart(state, now) - before_ns, std::memory_order_relaxed);
		between.state = nullptr;
		state->changes.store(changes + 2, std::memory_order_release);
	} else if (index < kEntries) {
		state->starts_ns[index].store(now, std::memory_order_relaxed);
	}
	state->begun.store(index + 1, std::memory_order_release);
}

// Where the host reads the CPU time of entries.
double* entry_cpu = nullptr;
uint32_t entry_cpu_size = 0;

// shareEntryCpu(array): the array that `readEntryCpu` fills from then on, which its caller keeps.
void ShareEntryCpu(const v8::FunctionCallbackInfo<v8::Value>& info) {
	v8::Local<v8::Float64Array> array = info[0].As<v8::Float64Array>();
	entry_cpu = reinterpret_cast<double*>(static_cast<char*>(array->Buffer()->Data()) + array->ByteOffset());
	entry_cpu_size = static_cast<uint32_t>(array->Length());
}

// readEntryCpu(index): CPU time of each entry, in ns: of the batch that runs, the last entry so far; else of the batch that ran
// last. The last place is for the most memory that the isolate ever held, in bytes. Returns how many entries there are: 0 if
// none has begun since the last reset, or more than can be kept, or one begins just now.
void ReadEntryCpu(const v8::FunctionCallbackInfo<v8::Value>& info) {
	info.GetReturnValue().Set(0);
	const IsolateState* state = StateOf(info[0]);
	if (state == nullptr) return;
	uint32_t changes = state->changes.load(std::memory_order_acquire);
	uint32_t begun = state->begun.load(std::memory_order_acquire);
	if (entry_cpu_size > 0) entry_cpu[entry_cpu_size - 1] = static_cast<double>(state->peak_bytes.load(std::memory_order_relaxed));
	if (begun > kEntries || begun >= entry_cpu_size) return;
	for (uint32_t index = 0; index < begun; index++) entry_cpu[index] = static_cast<double>(CpuTimeOf(state, index, begun));
	// Another part may have begun meanwhile: what was read is a mixture then.
	std::atomic_thread_fence(std::memory_order_acquire);
	bool is_whole = changes % 2 == 0 && state->changes.load(std::memory_order_relaxed) == changes;
	if (is_whole) info.GetReturnValue().Set(begun);
}

// resetEntryCpu(index): a batch is about to begin. No thread is in the isolate.
void ResetEntryCpu(const v8::FunctionCallbackInfo<v8::Value>& info) {
	IsolateState* state = StateOf(info[0]);
	if (state != nullptr) ResetEntries(state);
}

// takeBetween(index): CPU time of what V8 did on its own between batches, in ns, since the last call.
void TakeBetween(const v8::FunctionCallbackInfo<v8::Value>& info) {
	IsolateState* state = StateOf(info[0]);
	int64_t ns = state == nullptr ? 0 : state->between_ns.exchange(0, std::memory_order_relaxed);
	info.GetReturnValue().Set(static_cast<double>(ns));
}

// holdBegin(index): what is measured from now on does not begin.
void HoldBegin(const v8::FunctionCallbackInfo<v8::Value>& info) {
	IsolateState* state = StateOf(info[0]);
	if (state != nullptr) state->is_begin_held.store(1);
}

// releaseBegin(index): it may begin.
void ReleaseBegin(const v8::FunctionCallbackInfo<v8::Value>& info) {
	IsolateState* state = StateOf(info[0]);
	if (state != nullptr) ClearAndWake(state->is_begin_held);
}

}  // namespace

void BeginEntry(IsolateState* state) { BeginEntryAt(state, state->begun.load(std::memory_order_relaxed), 0); }

void BeginPart(IsolateState* state) {
	// isolated-vm leaves an isolate where it finds nothing more to do; what comes just then may run on another thread, unmeasured.
	SleepWhile(state->is_begin_held);
	BeginEntryAt(state, 0, state->ended.load(std::memory_order_relaxed) ? CpuTimeOf(state, 0, 1) : 0);
}

void EndEntries(IsolateState* state) {
	int64_t now = Read(OwnClock());
	if (running == state) state->end_ns.store(now, std::memory_order_relaxed);
	running = nullptr;
	between = {state, state->batches.fetch_add(1, std::memory_order_relaxed) + 1, now};
	state->ended.store(true, std::memory_order_release);
}

void ThreadEnters(IsolateState* state) {
	// What booting takes is nobody's.
	if (state != nullptr && state->is_blank) state = nullptr;
	if (locks++ > 0 || is_host) return;
	bool is_counting = IsCurrent();
	if (is_counting ? between.state == state : state == nullptr) return;
	int64_t now = Read(OwnClock());
	// The way out of the one before.
	if (is_counting) CountBetween(now);
	between = {state, state == nullptr ? 0 : state->batches.load(std::memory_order_relaxed), now};
}

void ThreadLeaves() {
	if (--locks > 0 || is_host || (running == nullptr && !IsCurrent())) return;
	int64_t now = Read(OwnClock());
	if (running != nullptr) {
		// V8 has ended the isolate, and the thread goes on with something else, or ends.
		running->end_ns.store(now, std::memory_order_relaxed);
		running = nullptr;
	} else if (now - between.counted_until_ns > kMostBetweenNs) {
		CountBetween(now);
	}
}

void ThreadEnds(const IsolateState* state) {
	if (between.state == state) between.state = nullptr;
}

int32_t RunningClock(const IsolateState* state) {
	uint32_t begun = state->begun.load(std::memory_order_acquire);
	return begun > 0 ? state->clock.load(std::memory_order_relaxed) : 0;
}

pid_t ThreadOf(int32_t clock) { return static_cast<pid_t>(~(clock >> 3)); }

void ResetEntries(IsolateState* state) {
	state->ended.store(false, std::memory_order_relaxed);
	state->begun.store(0, std::memory_order_release);
}

void AddClock(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> host) {
	// The host's thread loads the addon.
	is_host = true;
	Set(isolate, context, host, "shareEntryCpu", MakeFunction(context, ShareEntryCpu));
	Set(isolate, context, host, "readEntryCpu", MakeFunction(context, ReadEntryCpu));
	Set(isolate, context, host, "resetEntryCpu", MakeFunction(context, ResetEntryCpu));
	Set(isolate, context, host, "takeBetween", MakeFunction(context, TakeBetween));
	Set(isolate, context, host, "holdBegin", MakeFunction(context, HoldBegin));
	Set(isolate, context, host, "releaseBegin", MakeFunction(context, ReleaseBegin));
}
