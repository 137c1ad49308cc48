// Suspends entries that take long.
//
// It is V8's own way to interrupt: a function that runs on the isolate's thread between two steps of its code, and here sleeps
// there until the host has it go on. What V8 does not interrupt, such as a built-in that runs for long, is not suspended either;
// its thread can be kept to a few cores, which unlike a lower priority can be taken back without special rights.
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>

#include "isolate-state.h"

// What shared pointers ask before they count with atomic instructions; the C library has it only since glibc 2.32.
extern "C" {
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;
}

namespace {

// The cores that the process may use, and of them those for threads that are limited to few. Written once, before there are
// isolates.
cpu_set_t all_cores, few_cores;
bool has_few = false;

// By the system call: glibc has two functions of that name, and which is meant is not said in a program that is linked against
// no C library.
bool SetCores(pid_t thread, const cpu_set_t& cores) { return syscall(SYS_sched_setaffinity, thread, sizeof(cores), &cores) == 0; }

// On the isolate's thread, at an interrupt.
void SleepAtInterrupt(v8::Isolate*, void* data) { SleepWhileSuspended(static_cast<IsolateState*>(data)); }

// suspend(index): what runs in the isolate stops at its next step. Returns whether it can.
void Suspend(const v8::FunctionCallbackInfo<v8::Value>& info) {
	IsolateState* state = StateOf(info[0]);
	bool can_suspend = false;
	if (state != nullptr) {
		Locked locked(state->isolate_lock);
		can_suspend = state->isolate != nullptr;
		if (can_suspend && state->suspended.exchange(1) == 0) state->isolate->RequestInterrupt(SleepAtInterrupt, state);
	}
	info.GetReturnValue().Set(can_suspend);
}

// resume(index): it goes on. Without effect if it was not suspended.
void Resume(const v8::FunctionCallbackInfo<v8::Value>& info) {
	IsolateState* state = StateOf(info[0]);
	if (state != nullptr) ClearAndWake(state->suspended);
}

// setAffinity(index): the thread that runs the isolate is kept to a few cores. Returns whether it is, and was not before.
void SetAffinity(const v8::FunctionCallbackInfo<v8::Value>& info) {
	IsolateState* state = StateOf(info[0]);
	int32_t clock = state == nullptr ? 0 : RunningClock(state);
	bool is_set = false;
	if (has_few && clock != 0 && state->affinity_thread == 0) {
		pid_t thread = ThreadOf(clock);
		is_set = SetCores(thread, few_cores);
		// It may have left the isolate meanwhile; the host calls clearAffinity when it has seen that.
		if (is_set) state->affinity_thread = thread;
	}
	info.GetReturnValue().Set(is_set);
}

// clearAffinity(index): the thread may use all cores again.
void ClearAffinity(const v8::FunctionCallbackInfo<v8::Value>& info) {
	IsolateState* state = StateOf(info[0]);
	if (state == nullptr || state->affinity_thread == 0) return;
	SetCores(state->affinity_thread, all_cores);
	state->affinity_thread = 0;
}

// What hangs on an isolate to tell of its end: V8 frees all memory of array buffers before that of the isolate itself.
void IsolateEnds(void*, size_t, void* data) {
	IsolateState* state = static_cast<IsolateState*>(data);
	ThreadEnds(state);
	{
		Locked locked(state->isolate_lock);
		if (state->isolate != nullptr) UntrackMemory(state->isolate);
		state->isolate = nullptr;
	}
	Signal(state, kGone);
}

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

void SleepWhile(std::atomic<uint32_t>& is_set) {
	while (is_set.load(std::memory_order_acquire) == 1) syscall(SYS_futex, &is_set, FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0);
}

void ClearAndWake(std::atomic<uint32_t>& is_set) {
	if (is_set.exchange(0) == 1) syscall(SYS_futex, &is_set, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void SleepWhileSuspended(IsolateState* state) { SleepWhile(state->suspended); }

void UseAllCores() {
	if (has_few) SetCores(0, all_cores);
}

void TrackIsolate(IsolateState* state, v8::Isolate* isolate, v8::Local<v8::Context> context) {
	{
		Locked locked(state->isolate_lock);
		state->isolate = isolate;
	}
	v8::Local<v8::ArrayBuffer> buffer =
		v8::ArrayBuffer::New(isolate, v8::ArrayBuffer::NewBackingStore(state, 1, IsolateEnds, state));
	// It stays for as long as the context does, and no code can find it.
	context->Global()->SetPrivate(context, v8::Private::New(isolate), buffer).Check();
}

void AddSuspend(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> host) {
	Set(isolate, context, host, "suspend", MakeFunction(context, Suspend));
	Set(isolate, context, host, "resume", MakeFunction(context, Resume));
	Set(isolate, context, host, "setAffinity", MakeFunction(context, SetAffinity));
	Set(isolate, context, host, "clearAffinity", MakeFunction(context, ClearAffinity));
}
