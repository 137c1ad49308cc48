// A brake for entries that take long.
//
// It is V8's own way to interrupt: a function that runs on the isolate's thread between two steps of its code, and here sleeps
// there until the host has it go on. What V8 does not interrupt, such as a built-in that runs for long, is not held either; its
// thread can be kept to a few cores, which unlike a lower priority can be taken back without special rights.
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>

#include "slot.h"

// What shared pointers ask before they count with atomic instructions; the C library has it only since glibc 2.32.
extern "C" {
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;
}

namespace {

// The cores that the process may use, and of them those for what is confined. Written once, before there are isolates.
cpu_set_t all_cores, few_cores;
bool has_few = false;

// By the system call: glibc has two functions of that name, and which is meant is not said in a program that is linked against
// no C library.
bool KeepTo(pid_t thread, const cpu_set_t& cores) { return syscall(SYS_sched_setaffinity, thread, sizeof(cores), &cores) == 0; }

// On the isolate's thread, at an interrupt.
void SleepWhileHeld(v8::Isolate*, void* data) {
	std::atomic<uint32_t>& held = static_cast<Slot*>(data)->held;
	while (held.load(std::memory_order_acquire) == 1) syscall(SYS_futex, &held, FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0);
}

// hold(slot): what runs in the isolate stops at its next step. Returns whether it can.
void Hold(const v8::FunctionCallbackInfo<v8::Value>& info) {
	Slot* slot = SlotOf(info[0]);
	bool can_hold = false;
	if (slot != nullptr) {
		Locked locked(slot->isolate_lock);
		can_hold = slot->isolate != nullptr;
		if (can_hold && slot->held.exchange(1) == 0) slot->isolate->RequestInterrupt(SleepWhileHeld, slot);
	}
	info.GetReturnValue().Set(can_hold);
}

// resume(slot): it goes on. Without effect if it was not held.
void Resume(const v8::FunctionCallbackInfo<v8::Value>& info) {
	Slot* slot = SlotOf(info[0]);
	if (slot == nullptr || slot->held.exchange(0) == 0) return;
	syscall(SYS_futex, &slot->held, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// confine(slot): the thread that runs the isolate is kept to a few cores. Returns whether it is, and was not before.
void Confine(const v8::FunctionCallbackInfo<v8::Value>& info) {
	Slot* slot = SlotOf(info[0]);
	int32_t clock = slot == nullptr ? 0 : RunningClock(slot);
	bool is_confined = false;
	if (has_few && clock != 0 && slot->confined == 0) {
		pid_t thread = ThreadOf(clock);
		is_confined = KeepTo(thread, few_cores);
		// It may have left the isolate meanwhile; whoever confines it lets it go when it has.
		if (is_confined) slot->confined = thread;
	}
	info.GetReturnValue().Set(is_confined);
}

// unconfine(slot): the thread may use all cores again.
void Unconfine(const v8::FunctionCallbackInfo<v8::Value>& info) {
	Slot* slot = SlotOf(info[0]);
	if (slot == nullptr || slot->confined == 0) return;
	KeepTo(slot->confined, all_cores);
	slot->confined = 0;
}

// What hangs on an isolate to tell of its end: V8 frees all memory of array buffers before that of the isolate itself.
void IsolateEnds(void*, size_t, void* data) {
	Slot* slot = static_cast<Slot*>(data);
	{
		Locked locked(slot->isolate_lock);
		slot->isolate = nullptr;
	}
	Signal(slot, kGone);
}

void HasCollected(v8::Isolate*, v8::GCType, v8::GCCallbackFlags, void* slot) { static_cast<Slot*>(slot)->has_collected = true; }

}  // namespace

// One core of four, at least one, those with the highest numbers: all processes keep to the same, and leave the others.
void ReadCores() {
	if (syscall(SYS_sched_getaffinity, 0, sizeof(all_cores), &all_cores) <= 0) return;
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

void UseAllCores() {
	if (has_few) KeepTo(0, all_cores);
}

void Watch(Slot* slot, v8::Isolate* isolate, v8::Local<v8::Context> context) {
	{
		Locked locked(slot->isolate_lock);
		slot->isolate = isolate;
	}
	isolate->AddGCEpilogueCallback(HasCollected, slot);
	v8::Local<v8::ArrayBuffer> buffer = v8::ArrayBuffer::New(isolate, v8::ArrayBuffer::NewBackingStore(slot, 1, IsolateEnds, slot));
	// It stays for as long as the context does, and no code can find it.
	context->Global()->SetPrivate(context, v8::Private::New(isolate), buffer).Check();
}

void AddBrake(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> host) {
	Set(isolate, context, host, "hold", MakeFunction(context, Hold));
	Set(isolate, context, host, "resume", MakeFunction(context, Resume));
	Set(isolate, context, host, "confine", MakeFunction(context, Confine));
	Set(isolate, context, host, "unconfine", MakeFunction(context, Unconfine));
}
