// The addon that ties isolates to the host, beside isolated-vm: see src/addon.ts. Nothing else is reachable through it.
//
// Hardly more than C, and linked against nothing: what it needs of V8, libuv and the C library, glibc or musl, the process has
// already.
#include <string.h>

#include "signals.h"
#include "isolate-state.h"
#include "natives.h"

std::atomic<IsolateState*> states[kIsolates];

namespace {

// Taken by the threads of isolates, given back by the host's, guarded by a lock.
uint32_t free_indexes[kIsolates];
uint32_t state_count = 0, free_count = 0;
std::atomic_flag states_lock = ATOMIC_FLAG_INIT;

uint32_t TakeState() {
	Locked locked(states_lock);
	if (free_count > 0) return free_indexes[--free_count];
	if (state_count == kIsolates) return kIsolates;
	IsolateState* made = static_cast<IsolateState*>(calloc(1, sizeof(IsolateState)));
	if (made == nullptr) return kIsolates;
	made->index = state_count;
	states[state_count].store(made);
	return state_count++;
}

// release(index): the isolate is gone, and the host knows. Its index may be used again.
void Release(const v8::FunctionCallbackInfo<v8::Value>& info) {
	IsolateState* state = StateOf(info[0]);
	if (state == nullptr) return;
	ResetEntries(state);
	// No thread writes to it any more for what it ran last.
	state->batches.fetch_add(1);
	state->between_ns.store(0);
	state->suspended.store(0);
	state->is_closed.store(false);
	state->affinity_thread = 0;
	state->long_thread = 0;
	ForgetMemory(state);
	EmptyMailbox(state);
	Locked locked(states_lock);
	if (free_count < kIsolates) free_indexes[free_count++] = state->index;
}

}  // namespace

// Called by isolated-vm for a context of a guest.
extern "C" __attribute__((visibility("default"))) void InitForContext(
	v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> target) {
	uint32_t index = TakeState();
	if (index == kIsolates) return;
	v8::Local<v8::Value> data = v8::Integer::NewFromUnsigned(isolate, index);
	TrackIsolate(states[index].load(), isolate, context);
	TrackMemory(states[index].load(), isolate);
	LearnRequests(isolate);
	AddMailboxOfGuest(isolate, context, target, data);
	AddScriptsOfGuest(isolate, context, target, data);
	Set(isolate, context, target, "random", MakeFunction(context, Random));
	Set(isolate, context, target, "index", data);
}

// Called by Node.js for the host.
extern "C" __attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env, napi_value exports) {
	ReadCores();
	LengthenTurnsOfHelpers();
	bool is_watched = WatchMemory() && WatchVisits();
	v8::Isolate* isolate = v8::Isolate::GetCurrent();
	v8::Local<v8::Context> context = isolate->GetCurrentContext();
	v8::Local<v8::Value> value;
	static_assert(sizeof(value) == sizeof(exports));
	memcpy(static_cast<void*>(&value), &exports, sizeof(exports));
	v8::Local<v8::Object> host = value.As<v8::Object>();
	AddClock(isolate, context, host);
	AddSuspend(isolate, context, host);
	AddTurns(isolate, context, host);
	AddMemory(isolate, context, host);
	Set(isolate, context, host, "watches", v8::Boolean::New(isolate, is_watched));
	AddMailboxOfHost(isolate, context, host);
	AddScriptsOfHost(isolate, context, host);
	Set(isolate, context, host, "release", MakeFunction(context, Release));
	AddSignals(env, exports);
	return exports;
}
