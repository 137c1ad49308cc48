// CPU clock of isolates, entry by entry, and a brake for entries that take long. See src/entry-clock.ts.
//
// isolated-vm runs an isolate on whichever thread of its pool is free. A function of the guest's bootstrap that is called when an entry
// begins runs on that thread, and so can read the thread's own CPU clock; it leaves behind which thread it is, so that the host can read
// the same clock while the entry runs. Nothing else is reachable through this addon.
//
// The brake is V8's own way to interrupt: a function that runs on the isolate's thread between two steps of its code, and here sleeps there
// until the host has it go on. What V8 does not interrupt, such as a built-in that runs for long, is not held either; its thread can be kept to
// a few cores, which unlike a lower priority can be taken back without special rights.
#include <limits.h>
#include <linux/futex.h>
#include <node_api.h>
#include <sched.h>
#include <stdlib.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <v8.h>

#include <atomic>
#include <cstdint>
#include <memory>

// What shared pointers ask before they count with atomic instructions; the C library has it only since glibc 2.32.
extern "C" {
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;
}

namespace {

// More than the host lets share one stay.
constexpr uint32_t kEntries = 64;
constexpr uint32_t kSlots = 1 << 15;

struct Slot {
	// Written by the isolate's thread, read by the host's.
	std::atomic<uint32_t> begun{0};
	// All entries have run: what they took can be read until the next begins.
	std::atomic<bool> ended{false};
	std::atomic<int32_t> clocks[kEntries];
	std::atomic<int64_t> starts_ns[kEntries];
	// When the entry's thread turned to another isolate; 0 if it did not.
	std::atomic<int64_t> ends_ns[kEntries];
	// Stays so far.
	std::atomic<uint32_t> stays{0};
	// 1: its thread sleeps at the next interrupt, until it is 0 again.
	std::atomic<uint32_t> held{0};
	// The thread that is kept to a few cores for it; 0 if none is.
	pid_t confined = 0;
	// Null when it is gone, or on its way.
	v8::Isolate* isolate = nullptr;
	std::atomic_flag isolate_lock = ATOMIC_FLAG_INIT;
};

// Hardly more than C: what is linked against must not be newer than what Node.js needs.
std::atomic<Slot*> slots[kSlots];
// Taken by the threads of isolates, given back by the host's: a queue, guarded by a lock that is held for a few instructions.
uint32_t free_slots[kSlots];
uint32_t slot_count = 0, free_first = 0, free_count = 0;
std::atomic_flag slots_lock = ATOMIC_FLAG_INIT;

class Locked {
 public:
	explicit Locked(std::atomic_flag& lock) : lock_(lock) {
		while (lock_.test_and_set(std::memory_order_acquire)) {}
	}
	~Locked() { lock_.clear(std::memory_order_release); }

 private:
	std::atomic_flag& lock_;
};

// The cores that the process may use, and of them those for what is confined. Written once, before there are isolates.
cpu_set_t all_cores, few_cores;
bool has_few = false;

clockid_t FindOwnClock() {
	// A thread is born with the cores of the one that started it, which may be confined.
	if (has_few) sched_setaffinity(0, sizeof(all_cores), &all_cores);
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
	if (before->stays.load(std::memory_order_relaxed) == last_entry.stay) before->ends_ns[last_entry.index].store(now, std::memory_order_relaxed);
	last_entry.slot = nullptr;
}

Slot* SlotOf(const v8::FunctionCallbackInfo<v8::Value>& info) {
	return slots[info.Data().As<v8::Uint32>()->Value()].load();
}

// An entry begins.
void Begin(const v8::FunctionCallbackInfo<v8::Value>& info) {
	Slot* slot = SlotOf(info);
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

// CPU time of an entry, in ns. It ended when its thread turned to another isolate, or when the next entry began, if on the same thread; else
// its thread has done nothing since.
int64_t Took(const Slot* slot, uint32_t index, uint32_t begun) {
	int32_t clock = slot->clocks[index].load(std::memory_order_relaxed);
	bool has_next = index + 1 < begun && slot->clocks[index + 1].load(std::memory_order_relaxed) == clock;
	int64_t left = slot->ends_ns[index].load(std::memory_order_relaxed);
	int64_t end = left != 0 ? left : has_next ? slot->starts_ns[index + 1].load(std::memory_order_relaxed) : Read(clock);
	int64_t took = end - slot->starts_ns[index].load(std::memory_order_relaxed);
	return took > 0 ? took : 0;
}

// All entries have run. Returns what each took, in ns, between commas; empty if there were more than can be kept.
void End(const v8::FunctionCallbackInfo<v8::Value>& info) {
	Slot* slot = SlotOf(info);
	TurnTo(slot, Read(OwnClock()));
	uint32_t begun = slot->ended.load(std::memory_order_relaxed) ? 0 : slot->begun.load(std::memory_order_relaxed);
	bool is_known = begun <= kEntries;
	char text[kEntries * 21];
	size_t length = 0;
	for (uint32_t index = 0; is_known && index < begun; index++) {
		long long took = Took(slot, index, begun);
		// Its thread goes on with something else.
		slot->ends_ns[index].store(slot->starts_ns[index].load(std::memory_order_relaxed) + took, std::memory_order_relaxed);
		length += snprintf(text + length, sizeof(text) - length, index == 0 ? "%lld" : ",%lld", took);
	}
	slot->stays.fetch_add(1, std::memory_order_relaxed);
	slot->ended.store(true, std::memory_order_release);
	v8::Local<v8::String> result;
	if (v8::String::NewFromUtf8(info.GetIsolate(), text, v8::NewStringType::kNormal, is_known ? static_cast<int>(length) : 0).ToLocal(&result)) {
		info.GetReturnValue().Set(result);
	}
}

uint32_t TakeSlot() {
	Locked locked(slots_lock);
	uint32_t number;
	if (slot_count < kSlots) {
		number = slot_count;
		Slot* made = static_cast<Slot*>(calloc(1, sizeof(Slot)));
		if (made == nullptr) return kSlots;
		slots[number].store(made);
		slot_count++;
	} else if (free_count > 0) {
		// The one that was given back longest ago: an isolate that was ended may still be on its way out.
		number = free_slots[free_first];
		free_first = (free_first + 1) % kSlots;
		free_count--;
	} else {
		return kSlots;
	}
	slots[number].load()->begun.store(0);
	slots[number].load()->ended.store(false);
	slots[number].load()->stays.fetch_add(1);
	slots[number].load()->held.store(0);
	slots[number].load()->confined = 0;
	return number;
}

Slot* SlotArgument(napi_env env, napi_callback_info info, uint32_t* number) {
	size_t count = 1;
	napi_value argument;
	if (napi_get_cb_info(env, info, &count, &argument, nullptr, nullptr) != napi_ok || count != 1) return nullptr;
	if (napi_get_value_uint32(env, argument, number) != napi_ok || *number >= kSlots) return nullptr;
	return slots[*number].load();
}

// spans(slot): CPU time of each entry of the stay that is under way, the last one so far, or of the one that has ended, in ns; empty if there is
// none since it was forgotten.
napi_value Spans(napi_env env, napi_callback_info info) {
	uint32_t number;
	napi_value result;
	if (napi_create_array(env, &result) != napi_ok) return nullptr;
	Slot* slot = SlotArgument(env, info, &number);
	if (slot == nullptr) return result;
	uint32_t begun = slot->begun.load(std::memory_order_acquire);
	if (begun == 0 || begun > kEntries) return result;
	int64_t took_ns[kEntries];
	for (uint32_t index = 0; index < begun; index++) took_ns[index] = Took(slot, index, begun);
	// The stay may have ended meanwhile, and another begun: what was read is a mixture then.
	if (slot->begun.load(std::memory_order_acquire) < begun) return result;
	for (uint32_t index = 0; index < begun; index++) {
		napi_value value;
		napi_create_double(env, static_cast<double>(took_ns[index]), &value);
		napi_set_element(env, result, index, value);
	}
	return result;
}

// forget(slot): a stay is about to begin. No thread is in the isolate.
napi_value Forget(napi_env env, napi_callback_info info) {
	uint32_t number;
	Slot* slot = SlotArgument(env, info, &number);
	if (slot == nullptr) return nullptr;
	slot->ended.store(false, std::memory_order_relaxed);
	slot->begun.store(0, std::memory_order_release);
	return nullptr;
}

napi_value Release(napi_env env, napi_callback_info info) {
	uint32_t number;
	if (SlotArgument(env, info, &number) != nullptr) {
		Locked locked(slots_lock);
		if (free_count < kSlots) free_slots[(free_first + free_count++) % kSlots] = number;
	}
	return nullptr;
}

// On the isolate's thread, at an interrupt.
void SleepWhileHeld(v8::Isolate*, void* data) {
	std::atomic<uint32_t>& held = static_cast<Slot*>(data)->held;
	while (held.load(std::memory_order_acquire) == 1) syscall(SYS_futex, &held, FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0);
}

// hold(slot): what runs in the isolate stops at its next step. Returns whether it can.
napi_value Hold(napi_env env, napi_callback_info info) {
	uint32_t number;
	napi_value result;
	Slot* slot = SlotArgument(env, info, &number);
	bool can_hold = false;
	if (slot != nullptr) {
		Locked locked(slot->isolate_lock);
		can_hold = slot->isolate != nullptr;
		if (can_hold && slot->held.exchange(1) == 0) slot->isolate->RequestInterrupt(SleepWhileHeld, slot);
	}
	return napi_get_boolean(env, can_hold, &result) == napi_ok ? result : nullptr;
}

// resume(slot): it goes on. Without effect if it was not held.
napi_value Resume(napi_env env, napi_callback_info info) {
	uint32_t number;
	Slot* slot = SlotArgument(env, info, &number);
	if (slot != nullptr && slot->held.exchange(0) == 1) syscall(SYS_futex, &slot->held, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
	return nullptr;
}

// One core of four, at least one, those with the highest numbers: all processes keep to the same, and leave the others.
void ReadCores() {
	if (sched_getaffinity(0, sizeof(all_cores), &all_cores) != 0) return;
	int count = CPU_COUNT(&all_cores);
	int few = count / 4 > 1 ? count / 4 : 1;
	CPU_ZERO(&few_cores);
	for (int core = CPU_SETSIZE - 1; core >= 0 && few > 0; core--) {
		if (!CPU_ISSET(core, &all_cores)) continue;
		CPU_SET(core, &few_cores);
		few--;
	}
	has_few = count > 1;
}

// confine(slot): the thread that runs the isolate is kept to a few cores. Returns whether it is.
napi_value Confine(napi_env env, napi_callback_info info) {
	uint32_t number;
	napi_value result;
	Slot* slot = SlotArgument(env, info, &number);
	uint32_t begun = slot == nullptr ? 0 : slot->begun.load(std::memory_order_acquire);
	bool is_confined = false;
	if (has_few && begun > 0 && begun <= kEntries && slot->confined == 0) {
		// As FindOwnClock made it.
		pid_t thread = static_cast<pid_t>(~(slot->clocks[begun - 1].load(std::memory_order_relaxed) >> 3));
		is_confined = sched_setaffinity(thread, sizeof(few_cores), &few_cores) == 0;
		// It may have left the isolate meanwhile; whoever confines it lets it go when it has.
		if (is_confined) slot->confined = thread;
	}
	return napi_get_boolean(env, is_confined, &result) == napi_ok ? result : nullptr;
}

// unconfine(slot): the thread may use all cores again.
napi_value Unconfine(napi_env env, napi_callback_info info) {
	uint32_t number;
	Slot* slot = SlotArgument(env, info, &number);
	if (slot == nullptr || slot->confined == 0) return nullptr;
	sched_setaffinity(slot->confined, sizeof(all_cores), &all_cores);
	slot->confined = 0;
	return nullptr;
}

// What hangs on an isolate to tell of its end: V8 frees all memory of array buffers before that of the isolate itself.
struct Token {
	Slot* slot;
	v8::Isolate* isolate;
};

void IsolateEnds(void* data, size_t, void*) {
	Token* token = static_cast<Token*>(data);
	{
		Locked locked(token->slot->isolate_lock);
		// The slot may have gone on to another.
		if (token->slot->isolate == token->isolate) token->slot->isolate = nullptr;
	}
	free(token);
}

// Lets the slot's isolate be interrupted from now on, for as long as `owner` exists in it.
void Watch(Slot* slot, v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> owner) {
	Token* token = static_cast<Token*>(malloc(sizeof(Token)));
	if (token == nullptr) return;
	*token = {slot, isolate};
	{
		Locked locked(slot->isolate_lock);
		slot->isolate = isolate;
	}
	v8::Local<v8::ArrayBuffer> buffer = v8::ArrayBuffer::New(isolate, v8::ArrayBuffer::NewBackingStore(token, 1, IsolateEnds, nullptr));
	owner->SetPrivate(context, v8::Private::New(isolate), buffer).Check();
}

void Set(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> target, const char* name, v8::Local<v8::Value> value) {
	target->Set(context, v8::String::NewFromUtf8(isolate, name).ToLocalChecked(), value).Check();
}

}  // namespace

// Called by isolated-vm for a context of a guest.
extern "C" __attribute__((visibility("default"))) void InitForContext(
	v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> target) {
	uint32_t number = TakeSlot();
	if (number == kSlots) return;
	v8::Local<v8::Value> data = v8::Integer::NewFromUnsigned(isolate, number);
	v8::Local<v8::Function> begin, end;
	if (!v8::Function::New(context, Begin, data).ToLocal(&begin) || !v8::Function::New(context, End, data).ToLocal(&end)) return;
	Watch(slots[number].load(), isolate, context, begin);
	Set(isolate, context, target, "begin", begin);
	Set(isolate, context, target, "end", end);
	Set(isolate, context, target, "slot", data);
}

// Called by Node.js for the host.
extern "C" __attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env, napi_value exports) {
	ReadCores();
	napi_property_descriptor properties[] = {
		{"spans", nullptr, Spans, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
		{"forget", nullptr, Forget, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
		{"release", nullptr, Release, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
		{"hold", nullptr, Hold, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
		{"confine", nullptr, Confine, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
		{"unconfine", nullptr, Unconfine, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
		{"resume", nullptr, Resume, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
	};
	napi_define_properties(env, exports, sizeof(properties) / sizeof(properties[0]), properties);
	return exports;
}
