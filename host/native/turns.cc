// How long threads keep a core before others have it.
//
// A thread that wakes up has a core at once if it asks for shorter turns than the one that runs there (Linux from 6.12 on; older
// systems ignore it). Else that one goes on until the next tick, on most machines 4 ms, and a call passes a dozen threads. So
// what works for long takes long turns. It gets as much of the CPU as before, and unlike a lower priority long turns can be
// taken back without special rights.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "isolate-state.h"

namespace {

// The longest that the system takes, in ns.
constexpr uint64_t kLongNs = 100000000;
// As many as threads are born with.
constexpr uint64_t kUsualNs = 0;

// struct sched_attr, which only new C libraries have.
struct Attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t niceness;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

// As in linux/sched.h.
constexpr uint32_t kOrdinary = 0;
constexpr uint64_t kResetOnFork = 1;

bool SetTurns(pid_t thread, uint64_t ns) {
	Attributes attributes = {};
	if (syscall(SYS_sched_getattr, thread, &attributes, sizeof(attributes), 0) != 0) return false;
	if (attributes.policy != kOrdinary) return false;
	attributes.size = sizeof(attributes);
	attributes.flags &= kResetOnFork;
	attributes.runtime_ns = ns;
	return syscall(SYS_sched_setattr, thread, &attributes, 0) == 0;
}

// lengthenTurns(index): the thread that runs the isolate takes long turns. Returns whether it does, and did not before.
void LengthenTurns(const v8::FunctionCallbackInfo<v8::Value>& info) {
	IsolateState* state = StateOf(info[0]);
	int32_t clock = state == nullptr ? 0 : RunningClock(state);
	bool is_set = false;
	if (clock != 0 && state->long_thread == 0) {
		pid_t thread = ThreadOf(clock);
		is_set = SetTurns(thread, kLongNs);
		// It may have left the isolate meanwhile; the host calls resetTurns when it has seen that.
		if (is_set) state->long_thread = thread;
	}
	info.GetReturnValue().Set(is_set);
}

// resetTurns(index): the thread takes turns as others do.
void ResetTurns(const v8::FunctionCallbackInfo<v8::Value>& info) {
	IsolateState* state = StateOf(info[0]);
	if (state == nullptr || state->long_thread == 0) return;
	SetTurns(state->long_thread, kUsualNs);
	state->long_thread = 0;
}

// struct linux_dirent64.
struct Entry {
	uint64_t number;
	int64_t next;
	uint16_t size;
	uint8_t type;
	char name[];
};

}  // namespace

void LengthenTurnsOfHelpers() {
	int folder = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
	if (folder < 0) return;
	pid_t own = static_cast<pid_t>(syscall(SYS_gettid));
	alignas(Entry) char entries[4096];
	for (long length; (length = syscall(SYS_getdents64, folder, entries, sizeof(entries))) > 0;) {
		for (const char* at = entries; at < entries + length; at += reinterpret_cast<const Entry*>(at)->size) {
			pid_t thread = 0;
			for (const char* digit = reinterpret_cast<const Entry*>(at)->name; *digit >= '0' && *digit <= '9'; digit++) {
				thread = thread * 10 + (*digit - '0');
			}
			if (thread != 0 && thread != own) SetTurns(thread, kLongNs);
		}
	}
	syscall(SYS_close, folder);
}

void UseUsualTurns() { SetTurns(0, kUsualNs); }

void AddTurns(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> host) {
	Set(isolate, context, host, "lengthenTurns", MakeFunction(context, LengthenTurns));
	Set(isolate, context, host, "resetTurns", MakeFunction(context, ResetTurns));
}
