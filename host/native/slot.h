// What one isolate shares with the host: a clock of its entries, a brake, and a mailbox. Its isolate's thread writes what the
// host's reads, and the other way round.
#pragma once
#include <sched.h>
#include <stdlib.h>
#include <sys/types.h>
#include <v8.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

// As many as the host lets share one stay, and more.
constexpr uint32_t kEntries = 128;
constexpr uint32_t kSlots = 1 << 15;

// Held for a few instructions, or to copy what a guest has said while it says more.
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

struct Slot {
	// The clock. Written by the isolate's thread, read by the host's.
	std::atomic<uint32_t> begun{0};
	// All entries have run: what they took can be read until the next begins.
	std::atomic<bool> ended{false};
	std::atomic<int32_t> clocks[kEntries];
	std::atomic<int64_t> starts_ns[kEntries];
	// When the entry's thread turned to another isolate; 0 if it did not.
	std::atomic<int64_t> ends_ns[kEntries];
	// Stays so far.
	std::atomic<uint32_t> stays{0};

	// The brake. 1: its thread sleeps at the next interrupt, until it is 0 again.
	std::atomic<uint32_t> held{0};
	// The thread that is kept to a few cores for it; 0 if none is.
	pid_t confined = 0;
	// Null when it is gone, or on its way.
	v8::Isolate* isolate = nullptr;
	std::atomic_flag isolate_lock = ATOMIC_FLAG_INIT;

	// The mailbox. The host's alone: what is to go in next time.
	Buffer pushed;
	std::atomic_flag mail_lock = ATOMIC_FLAG_INIT;
	// Guarded by the lock: what goes in, until the guest has taken it.
	Buffer inbox;
	// What the guest has said: the host takes the whole, but while the guest writes behind it, when what there is of it up to
	// `length` is copied.
	Buffer outbox;
	size_t taken;
	bool is_writing;
	// The isolate's thread's alone: it runs a batch, at whose end the host comes for what was said.
	bool is_running;
	bool drops_rejections;
	// Garbage was collected since that was looked at.
	bool has_collected;

	// What the host is to be told; if that is anything, the slot is in the list of those.
	std::atomic<uint32_t> events{0};
	Slot* next_signaled;
	uint32_t number;
};

// A batch has run, or was ended.
constexpr uint32_t kLeft = 1;
// The isolate is gone.
constexpr uint32_t kGone = 2;
// Something was said outside of batches.
constexpr uint32_t kSaid = 4;

extern std::atomic<Slot*> slots[kSlots];

// Null if the value is no number of a slot that exists.
inline Slot* SlotOf(v8::Local<v8::Value> value) {
	if (!value->IsUint32()) return nullptr;
	uint32_t number = value.As<v8::Uint32>()->Value();
	return number < kSlots ? slots[number].load(std::memory_order_acquire) : nullptr;
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
void BeginEntry(Slot* slot);
void EndEntries(Slot* slot);
// On the host's: the clock that the running entry's thread has; 0 if none runs.
int32_t RunningClock(const Slot* slot);
// The thread that a clock is of.
pid_t ThreadOf(int32_t clock);
void ForgetEntries(Slot* slot);
void AddClock(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> host);

// brake.cc
void ReadCores();
// A thread is born with the cores of the one that started it, which may be confined.
void UseAllCores();
// Lets the slot's isolate be interrupted from now on, and tells of its end.
void Watch(Slot* slot, v8::Isolate* isolate, v8::Local<v8::Context> context);
void AddBrake(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> host);

// mailbox.cc
void EmptyMailbox(Slot* slot);
void AddMailboxOfGuest(
	v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> guest, v8::Local<v8::Value> number);
void AddMailboxOfHost(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> host);

// signals.cc: has the host told of the slot, in its next turn.
void Signal(Slot* slot, uint32_t event);
