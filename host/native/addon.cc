// The addon that ties isolates to the host, beside isolated-vm: see src/addon.ts. Nothing else is reachable through it.
//
// Hardly more than C, and linked against nothing: what it needs of V8, libuv and the C library, glibc or musl, the process has
// already.
#include <string.h>

#include "signals.h"
#include "slot.h"

std::atomic<Slot*> slots[kSlots];

namespace {

// Taken by the threads of isolates, given back by the host's, guarded by a lock.
uint32_t free_slots[kSlots];
uint32_t slot_count = 0, free_count = 0;
std::atomic_flag slots_lock = ATOMIC_FLAG_INIT;

uint32_t TakeSlot() {
	Locked locked(slots_lock);
	if (free_count > 0) return free_slots[--free_count];
	if (slot_count == kSlots) return kSlots;
	Slot* made = static_cast<Slot*>(calloc(1, sizeof(Slot)));
	if (made == nullptr) return kSlots;
	made->number = slot_count;
	slots[slot_count].store(made);
	return slot_count++;
}

// release(slot): the isolate is gone, and whoever had to know of it does.
void Release(const v8::FunctionCallbackInfo<v8::Value>& info) {
	Slot* slot = SlotOf(info[0]);
	if (slot == nullptr) return;
	ForgetEntries(slot);
	// No thread writes to it any more for what it ran last.
	slot->stays.fetch_add(1);
	slot->held.store(0);
	slot->confined = 0;
	EmptyMailbox(slot);
	Locked locked(slots_lock);
	if (free_count < kSlots) free_slots[free_count++] = slot->number;
}

}  // namespace

// Called by isolated-vm for a context of a guest.
extern "C" __attribute__((visibility("default"))) void InitForContext(
	v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> target) {
	uint32_t number = TakeSlot();
	if (number == kSlots) return;
	v8::Local<v8::Value> data = v8::Integer::NewFromUnsigned(isolate, number);
	Watch(slots[number].load(), isolate, context);
	AddMailboxOfGuest(isolate, context, target, data);
	Set(isolate, context, target, "slot", data);
}

// Called by Node.js for the host.
extern "C" __attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env, napi_value exports) {
	ReadCores();
	v8::Isolate* isolate = v8::Isolate::GetCurrent();
	v8::Local<v8::Context> context = isolate->GetCurrentContext();
	v8::Local<v8::Value> value;
	static_assert(sizeof(value) == sizeof(exports));
	memcpy(static_cast<void*>(&value), &exports, sizeof(exports));
	v8::Local<v8::Object> host = value.As<v8::Object>();
	AddClock(isolate, context, host);
	AddBrake(isolate, context, host);
	AddMailboxOfHost(isolate, context, host);
	Set(isolate, context, host, "release", MakeFunction(context, Release));
	AddSignals(env, exports);
	return exports;
}
