// What one isolate shares with the host: a clock of its entries, a way to suspend them, and a mailbox. Its isolate's thread
// writes what the host's reads, and the other way round.
#pragma once
#include <sched.h>
#include <stdlib.h>
#include <sys/types.h>
#include <v8.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

// The most entries of a batch that can be measured; the host puts fewer into one.
constexpr uint32_t kEntries = 128;
constexpr uint32_t kIsolates = 1 << 15;

// Of counts of bytes that any thread may lower: above them is how often the state was taken.
constexpr uint32_t kCountedBits = 40;
constexpr uint64_t kCounted = (static_cast<uint64_t>(1) << kCountedBits) - 1;
// Pieces that are smaller are looked at a slice at a time. For them V8 may hold a lock of which its statistics need one.
constexpr size_t kSmall = 4096;
// How the names of its file begin, as it is shipped and as it is built.
constexpr const char* kIsolatedVm = "isolated";

// Held for a few instructions, or to copy the outbox while the guest writes on.
class Locked {
 public:
	explicit Locked(std::atomic_flag& lock) : lock_(lock) {
		while (lock_.test_and_set(std::memory_order_acquire)) sched_yield();
	}
	~Locked() { lock_.clear(std::memory_order_release); }

 private:
	std::atomic_flag& lock_;
};

// Memory that grows; nothing when it is empty.
struct Buffer {
	char* bytes;
	size_t length;
	size_t capacity;
};

struct IsolateState {
	// The clock. Written by the isolate's thread, read by the host's.
	std::atomic<uint32_t> begun{0};
	// All entries have run: their CPU time can be read until the next begins.
	std::atomic<bool> ended{false};
	// Of the thread that all of them run on.
	std::atomic<int32_t> clock{0};
	std::atomic<int64_t> starts_ns[kEntries];
	// When the last one ended, or its thread left the isolate; 0 until then.
	std::atomic<int64_t> end_ns{0};
	// Batches so far.
	std::atomic<uint32_t> batches{0};
	// What threads did in it between them, mostly V8's collecting of garbage, since the host asked.
	std::atomic<int64_t> between_ns{0};
	// Odd while the clock is set for a batch, or a part.
	std::atomic<uint32_t> changes{0};
	// 1: the host has not yet given isolated-vm all that is to be measured together, which does not begin until it is 0. Until then
	// the host does nothing else.
	std::atomic<uint32_t> is_begin_held{0};

	// Suspension. 1: its thread sleeps at the next interrupt, until it is 0 again; and at the begin of a batch, if the host ends
	// the isolate.
	std::atomic<uint32_t> suspended{0};
	// The thread that is limited to few cores for it; 0 if none is.
	pid_t affinity_thread = 0;
	// The thread that takes long turns for it; 0 if none does.
	pid_t long_thread = 0;
	// Null when it is gone, or on its way.
	v8::Isolate* isolate = nullptr;
	std::atomic_flag isolate_lock = ATOMIC_FLAG_INIT;

	// The mailbox. The host's alone: what is to go in next time.
	Buffer pushed;
	std::atomic_flag mail_lock = ATOMIC_FLAG_INIT;
	// Guarded by the lock: what goes in, until the guest has taken it.
	Buffer inbox;
	// Messages of the guest: the host takes the buffer, but while the guest writes into it only a copy, of what is before
	// `length`.
	Buffer outbox;
	size_t read_to;
	bool is_writing;
	// The host ends the isolate: no further entry begins, and a thread that comes stays until the host has let go.
	std::atomic<bool> is_closed{false};
	// The isolate's thread's alone: it runs a batch, at whose end the host reads the outbox.
	bool is_running;
	bool takes_rejections;
	// The entry has rejected promises that nobody awaited.
	bool has_rejections;
	// The guest has kept something for the end of the entry.
	bool awaits_end;
	// Garbage was collected, and isolated-vm has not looked at the memory since.
	bool has_collected;
	// Garbage is being collected.
	bool is_collecting;

	// Memory, in bytes. The isolate's thread's alone:
	// what the heap may hold, by V8's own count: the limit, and the space for young objects;
	uint64_t limit_bytes;
	// what it may take before its size has to be looked at,
	uint64_t room_bytes;
	// what it has taken in small pieces since its size was looked at, and not given back,
	uint64_t small_bytes;
	// what its threads have taken outside of it, by `malloc`, and not given back themselves;
	uint64_t malloced_bytes;
	// the most of that since memory was last given back to the system for it;
	uint64_t most_malloced_bytes;
	// what it has beyond its limit, of all that isolates may have,
	uint64_t excess_bytes;
	// what it has asked for since its size was compared with what the host was told that it holds,
	uint64_t growth_bytes;
	uint64_t told_bytes;
	// whether it took any since its size was looked at, and whether it will be interrupted to be kept to its limit;
	bool has_grown;
	bool is_interrupted;
	// whether it has run nothing of a function yet: what booting takes is within no limit;
	bool is_blank;
	// It held more than its limit, and is being ended for that: what it says does not count.
	bool is_over;
	// Most that it held, and what it holds, as last seen, with what hangs on it outside of the heap. Read by the host.
	std::atomic<uint64_t> peak_bytes{0};
	std::atomic<uint64_t> held_bytes{0};
	// What libraries hold for it, in bytes, and above the lower 40 bits how often the state was taken: what is freed late is of an
	// isolate before.
	std::atomic<uint64_t> library_bytes{0};
	// The same of what other threads have given back for it of `malloced_bytes`, from the begin.
	std::atomic<uint64_t> freed_bytes{0};
	// The script that it was booted with, behind which are its libraries.
	uint32_t core;

	// Events that the host has not been told of; if there are any, the state is in their list.
	std::atomic<uint32_t> events{0};
	IsolateState* next_signaled;
	uint32_t index;
};

// A batch has run, or was ended.
constexpr uint32_t kBatchDone = 1;
// The isolate is gone.
constexpr uint32_t kGone = 2;
// The guest has said something outside of batches.
constexpr uint32_t kMessage = 4;
// The isolate has taken much memory.
constexpr uint32_t kGrown = 8;
// Its thread has stopped for good, for want of memory.
constexpr uint32_t kGaveUp = 16;
// It holds more than its limit, outside of its heap too, of which isolated-vm knows nothing: it is to be disposed.
constexpr uint32_t kOver = 32;

extern std::atomic<IsolateState*> states[kIsolates];

// What it has outside of its heap. On its thread.
inline uint64_t MallocedBytes(const IsolateState* state) {
	return state->malloced_bytes - (state->freed_bytes.load(std::memory_order_relaxed) & kCounted);
}

// Null if the value is no index of a state that exists.
inline IsolateState* StateOf(v8::Local<v8::Value> value) {
	if (!value->IsUint32()) return nullptr;
	uint32_t index = value.As<v8::Uint32>()->Value();
	return index < kIsolates ? states[index].load(std::memory_order_acquire) : nullptr;
}

inline v8::Local<v8::Function> MakeFunction(
	v8::Local<v8::Context> context, v8::FunctionCallback callback, v8::Local<v8::Value> data = v8::Local<v8::Value>()) {
	return v8::Function::New(context, callback, data, 0, v8::ConstructorBehavior::kThrow).ToLocalChecked();
}

inline void Set(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> target, const char* name,
	v8::Local<v8::Value> value) {
	target->Set(context, v8::String::NewFromUtf8(isolate, name).ToLocalChecked(), value).Check();
}

// entry-clock.cc: on the isolate's thread.
void BeginEntry(IsolateState* state);
void EndEntries(IsolateState* state);
// A part of what is measured as one entry begins, when all of it has been given to isolated-vm. What the parts before took, since
// the last reset, counts as well.
void BeginPart(IsolateState* state);
// The thread is about to enter an isolate, null if it has no state; or to leave the one that it entered.
void ThreadEnters(IsolateState* state);
void ThreadLeaves();
// It takes the isolate down: what it does from now on is on nobody's bill.
void ThreadEnds(const IsolateState* state);
// On the host's: the clock that the running entry's thread has; 0 if none runs.
int32_t RunningClock(const IsolateState* state);
// The thread that a clock is of.
pid_t ThreadOf(int32_t clock);
void ResetEntries(IsolateState* state);
void AddClock(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> host);

// suspend.cc
void ReadCores();
// A thread is born with the cores of the one that started it, which may be limited to few.
void UseAllCores();
// On the isolate's thread.
void SleepWhileSuspended(IsolateState* state);
void SleepWhile(std::atomic<uint32_t>& is_set);
// Makes it 0, and wakes up who sleeps while it is 1.
void ClearAndWake(std::atomic<uint32_t>& is_set);
// Lets the isolate be interrupted from now on, and tells of its end.
void TrackIsolate(IsolateState* state, v8::Isolate* isolate, v8::Local<v8::Context> context);
void AddSuspend(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> host);

// visits.cc
// What V8 asks of an isolate while no thread is in it is kept from now on, once it is known where that is; and the clock is told
// when a thread enters and leaves one. Once, before there are isolates. Returns false if it is not.
bool WatchVisits();
// Looks where it is, in an isolate that has run nothing, on its thread.
void LearnRequests(v8::Isolate* isolate);

// collections.cc: on the isolate's thread, around each collection of the whole heap.
void WaitToCollect(const IsolateState* state, v8::Isolate* isolate);
void HasCollected();

// turns.cc
// What V8 collects garbage and compiles with beside the threads of isolates, all that there are so far, takes long turns.
void LengthenTurnsOfHelpers();
// A thread is born with the turns of the one that started it.
void UseUsualTurns();
void AddTurns(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> host);

// memory.cc
// V8 and isolated-vm ask for memory through the addon from now on. Once, before there are isolates. Returns false if they do not.
bool WatchMemory();
// An entry begins, or something else that is measured.
void BeginTaking(IsolateState* state);
void UntrackMemory(v8::Isolate* isolate);
// The state of an isolate that isolated-vm has made; null if it has none.
IsolateState* TrackedOf(v8::Isolate* isolate);
// A library takes memory, on the isolate's thread; it is taken already. Returns what `LibraryFrees` needs, on any thread.
uint64_t LibraryTakes(v8::Isolate* isolate, size_t bytes);
void LibraryFrees(uint64_t owner, size_t bytes);
// What this thread takes counts as that of the isolate which it has locked.
void ThreadRunsIsolates();
// It has locked it, or, if it is null, none any more.
void ThreadLocks(v8::Isolate* isolate);
void TrackMemory(IsolateState* state, v8::Isolate* isolate);
// On the isolate's thread, where it may collect garbage. Returns false if the isolate holds more than its limit, and is being
// ended for that.
bool KeepToLimit(IsolateState* state, v8::Isolate* isolate);
// The isolate is gone.
void ForgetMemory(IsolateState* state);
void AddMemory(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> host);

// That of the isolate in which this thread is, if it is in one.
IsolateState* Current();
// On the isolate's thread, before it takes so much outside of its heap. Does not return if it cannot be given: the thread would
// not know what to do without.
void Take(IsolateState* state, size_t size);

// outside.cc: as WatchMemory.
bool CountOutside();

// giving-back.cc: as WatchMemory.
bool WatchDisposals();
// The thread that it ends on is about to take it down.
void LeavesOutside(const IsolateState* state);
// On the isolate's thread, behind what it ran.
void GiveBackIfWorthIt(IsolateState* state);

// mailbox.cc
void EmptyMailbox(IsolateState* state);
void AddMailboxOfGuest(
	v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> guest, v8::Local<v8::Value> index);
void AddMailboxOfHost(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> host);

// scripts.cc
void AddScriptsOfGuest(
	v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> guest, v8::Local<v8::Value> index);
void AddScriptsOfHost(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> host);

// inner-state.cc
void AddInnerState(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> target);

// signals.cc: tells the host of an event of the isolate, in the next turn of its event loop.
void Signal(IsolateState* state, uint32_t event);
