// CPU clock of isolates, entry by entry.
//
// isolated-vm runs an isolate on whichever thread of its pool is free. What calls the guest for each entry runs on that thread, and so
// can read the thread's own CPU clock; it leaves behind which thread it is, so that the host can read the same clock while the entry
// runs.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "slot.h"

namespace {

clockid_t FindOwnClock() {
	UseAllCores();
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

// The entry that this thread ran last. Its stay may be over.
thread_local struct {
	Slot* slot;
	uint32_t index;
	uint32_t stay;
} last_entry = {nullptr, 0, 0};

// The thread turns to an isolate, which may not be the one that it served last.
void TurnTo(Slot* slot, int64_t now) {
	Slot* before = last_entry.slot;
	if (before == nullptr || before == slot) return;
	last_entry.slot = nullptr;
	if (before->stays.load(std::memory_order_relaxed) != last_entry.stay) return;
	before->ends_ns[last_entry.index].store(now, std::memory_order_relaxed);
}

// CPU time of an entry, in ns. It ended when its thread turned to another isolate, or when the next entry began, if on the same
// thread; else its thread has done nothing since. `own` is a clock that was read `now`.
int64_t Took(const Slot* slot, uint32_t index, uint32_t begun, int32_t own = 0, int64_t now = 0) {
	int32_t clock = slot->clocks[index].load(std::memory_order_relaxed);
	bool has_next = index + 1 < begun && slot->clocks[index + 1].load(std::memory_order_relaxed) == clock;
	int64_t left = slot->ends_ns[index].load(std::memory_order_relaxed);
	int64_t end = left;
	if (end == 0 && has_next) end = slot->starts_ns[index + 1].load(std::memory_order_relaxed);
	if (end == 0) end = clock == own ? now : Read(clock);
	int64_t took = end - slot->starts_ns[index].load(std::memory_order_relaxed);
	return took > 0 ? took : 0;
}

// Where the host finds the spans.
double* told = nullptr;
uint32_t told_size = 0;

// tellIn(array): the array that `spans` fills from then on, which its caller keeps.
void TellIn(const v8::FunctionCallbackInfo<v8::Value>& info) {
	v8::Local<v8::Float64Array> array = info[0].As<v8::Float64Array>();
	told = reinterpret_cast<double*>(static_cast<char*>(array->Buffer()->Data()) + array->ByteOffset());
	told_size = static_cast<uint32_t>(array->Length());
}

// spans(slot): CPU time of each entry of the stay that is under way, the last one so far, or of the one that has ended, in ns.
// Returns how many there are: none if none has begun since they were forgotten, or more than can be kept.
void Spans(const v8::FunctionCallbackInfo<v8::Value>& info) {
	info.GetReturnValue().Set(0);
	const Slot* slot = SlotOf(info[0]);
	if (slot == nullptr) return;
	uint32_t begun = slot->begun.load(std::memory_order_acquire);
	if (begun > kEntries || begun > told_size) return;
	for (uint32_t index = 0; index < begun; index++) told[index] = static_cast<double>(Took(slot, index, begun));
	// The stay may have ended meanwhile, and another begun: what was read is a mixture then.
	if (slot->begun.load(std::memory_order_acquire) >= begun) info.GetReturnValue().Set(begun);
}

// forget(slot): a stay is about to begin. No thread is in the isolate.
void Forget(const v8::FunctionCallbackInfo<v8::Value>& info) {
	Slot* slot = SlotOf(info[0]);
	if (slot != nullptr) ForgetEntries(slot);
}

}  // namespace

void BeginEntry(Slot* slot) {
	clockid_t clock = OwnClock();
	int64_t now = Read(clock);
	TurnTo(slot, now);
	if (slot->ended.exchange(false, std::memory_order_relaxed)) slot->begun.store(0, std::memory_order_release);
	uint32_t index = slot->begun.load(std::memory_order_relaxed);
	if (index < kEntries) {
		slot->ends_ns[index].store(0, std::memory_order_relaxed);
		last_entry = {slot, index, slot->stays.load(std::memory_order_relaxed)};
		slot->starts_ns[index].store(now, std::memory_order_relaxed);
		slot->clocks[index].store(clock, std::memory_order_relaxed);
	}
	slot->begun.store(index + 1, std::memory_order_release);
}

void EndEntries(Slot* slot) {
	clockid_t clock = OwnClock();
	int64_t now = Read(clock);
	TurnTo(slot, now);
	uint32_t begun = slot->ended.load(std::memory_order_relaxed) ? 0 : slot->begun.load(std::memory_order_relaxed);
	for (uint32_t index = 0; begun <= kEntries && index < begun; index++) {
		// Its thread goes on with something else.
		int64_t took = Took(slot, index, begun, clock, now);
		slot->ends_ns[index].store(slot->starts_ns[index].load(std::memory_order_relaxed) + took, std::memory_order_relaxed);
	}
	slot->stays.fetch_add(1, std::memory_order_relaxed);
	slot->ended.store(true, std::memory_order_release);
}

int32_t RunningClock(const Slot* slot) {
	uint32_t begun = slot->begun.load(std::memory_order_acquire);
	return begun > 0 && begun <= kEntries ? slot->clocks[begun - 1].load(std::memory_order_relaxed) : 0;
}

pid_t ThreadOf(int32_t clock) { return static_cast<pid_t>(~(clock >> 3)); }

void ForgetEntries(Slot* slot) {
	slot->ended.store(false, std::memory_order_relaxed);
	slot->begun.store(0, std::memory_order_release);
}

void AddClock(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> host) {
	Set(isolate, context, host, "tellIn", MakeFunction(context, TellIn));
	Set(isolate, context, host, "spans", MakeFunction(context, Spans));
	Set(isolate, context, host, "forget", MakeFunction(context, Forget));
}
