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

// Whose entry this thread ran last. Its batch may be over.
thread_local struct {
	IsolateState* state;
	uint32_t batch;
} last_entry = {nullptr, 0};

// The batch that this thread ran last, and when it ended; or, where it is known what the thread did since then, when that ended.
// Null once it has done something else than leave the isolate and enter it again.
thread_local struct {
	IsolateState* state;
	uint32_t batches;
	int64_t ns;
} last_batch = {nullptr, 0, 0};

// If its thread did more than this since, V8 did something of itself, as collecting garbage, which is nobody's entry.
constexpr int64_t kMostBetweenNs = 200000;

// When the first entry of a batch begins. To leave an isolate and enter it again takes isolated-vm and the system a while, which
// nobody else would be charged for: it is the next entry's.
int64_t BatchStart(IsolateState* state, int64_t now) {
	if (last_batch.state != state || last_batch.batches != state->batches.load(std::memory_order_relaxed)) return now;
	if (now - last_batch.ns <= kMostBetweenNs) return last_batch.ns;
	state->between_ns.fetch_add(now - last_batch.ns, std::memory_order_relaxed);
	return now;
}

// The thread turns to an isolate, which may not be the one that it served last.
void TurnTo(IsolateState* state, int64_t now) {
	IsolateState* before = last_entry.state;
	if (before == nullptr || before == state) return;
	last_entry.state = nullptr;
	if (before->batches.load(std::memory_order_relaxed) == last_entry.batch) before->end_ns.store(now, std::memory_order_relaxed);
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
void BeginEntryAfter(IsolateState* state, int64_t before_ns) {
	BeginTaking(state);
	clockid_t clock = OwnClock();
	int64_t now = Read(clock);
	TurnTo(state, now);
	uint32_t index = state->begun.load(std::memory_order_relaxed);
	if (index == 0) {
		state->clock.store(clock, std::memory_order_relaxed);
		state->end_ns.store(0, std::memory_order_relaxed);
		last_entry = {state, state->batches.load(std::memory_order_relaxed)};
		state->starts_ns[0].store(BatchStart(state, now) - before_ns, std::memory_order_relaxed);
		last_batch.state = nullptr;
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
// none has begun since the last reset, or more than can be kept.
void ReadEntryCpu(const v8::FunctionCallbackInfo<v8::Value>& info) {
	info.GetReturnValue().Set(0);
	const IsolateState* state = StateOf(info[0]);
	if (state == nullptr) return;
	uint32_t begun = state->begun.load(std::memory_order_acquire);
	if (entry_cpu_size > 0) entry_cpu[entry_cpu_size - 1] = static_cast<double>(state->peak_bytes.load(std::memory_order_relaxed));
	if (begun > kEntries || begun >= entry_cpu_size) return;
	for (uint32_t index = 0; index < begun; index++) entry_cpu[index] = static_cast<double>(CpuTimeOf(state, index, begun));
	// The batch may have ended meanwhile, and another begun: what was read is a mixture then.
	if (state->begun.load(std::memory_order_acquire) >= begun) info.GetReturnValue().Set(begun);
}

// resetEntryCpu(index): a batch is about to begin. No thread is in the isolate.
void ResetEntryCpu(const v8::FunctionCallbackInfo<v8::Value>& info) {
	IsolateState* state = StateOf(info[0]);
	if (state != nullptr) ResetEntries(state);
}

// takeBetween(index): CPU time of what V8 did of itself behind batches, in ns, since the last call.
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

void BeginEntry(IsolateState* state) { BeginEntryAfter(state, 0); }

void BeginPart(IsolateState* state) {
	// isolated-vm leaves an isolate where it finds nothing more to do; what comes just then may run on another thread, unmeasured.
	SleepWhile(state->is_begin_held);
	int64_t before_ns = state->ended.load(std::memory_order_relaxed) ? CpuTimeOf(state, 0, 1) : 0;
	ResetEntries(state);
	BeginEntryAfter(state, before_ns);
}

void EndEntries(IsolateState* state) {
	clockid_t clock = OwnClock();
	int64_t now = Read(clock);
	TurnTo(state, now);
	bool are_its_own = state->clock.load(std::memory_order_relaxed) == clock;
	// Its thread goes on with something else.
	if (are_its_own && !state->ended.load(std::memory_order_relaxed)) state->end_ns.store(now, std::memory_order_relaxed);
	uint32_t batches = state->batches.fetch_add(1, std::memory_order_relaxed) + 1;
	last_batch = {state, batches, now};
	state->ended.store(true, std::memory_order_release);
}

void TurnAway() {
	last_batch.state = nullptr;
	if (last_entry.state != nullptr) TurnTo(nullptr, Read(OwnClock()));
}

void ThreadEnters(const IsolateState* state) {
	if (last_batch.state != state) last_batch.state = nullptr;
}

void ThreadLeaves() {
	if (last_batch.state != nullptr) last_batch.ns = BatchStart(last_batch.state, Read(OwnClock()));
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
	Set(isolate, context, host, "shareEntryCpu", MakeFunction(context, ShareEntryCpu));
	Set(isolate, context, host, "readEntryCpu", MakeFunction(context, ReadEntryCpu));
	Set(isolate, context, host, "resetEntryCpu", MakeFunction(context, ResetEntryCpu));
	Set(isolate, context, host, "takeBetween", MakeFunction(context, TakeBetween));
	Set(isolate, context, host, "holdBegin", MakeFunction(context, HoldBegin));
	Set(isolate, context, host, "releaseBegin", MakeFunction(context, ReleaseBegin));
}
