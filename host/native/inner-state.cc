// What Node.js' own modules ask V8 for, and the language does not give: what continuations carry along, and what is inside of
// promises, proxies and iterators. On the isolate's thread, for the guest alone.
#include "isolate-state.h"

namespace {

// carried(): what a promise's continuation made now will find when it runs; carried(value): sets it.
void Carried(const v8::FunctionCallbackInfo<v8::Value>& info) {
	v8::Isolate* isolate = info.GetIsolate();
	if (info.Length() > 0) {
		isolate->SetContinuationPreservedEmbedderDataV2(info[0]);
		return;
	}
	v8::Local<v8::Data> data = isolate->GetContinuationPreservedEmbedderDataV2();
	if (!data.IsEmpty() && data->IsValue()) info.GetReturnValue().Set(data.As<v8::Value>());
}

// inside(value): [1, state, result] of a promise; [2, target, handler] of a proxy; [3, entries, whether they are pairs] of an
// iterator of a map or set; undefined for all else. Not of weak collections, which tell when V8 collects garbage.
void Inside(const v8::FunctionCallbackInfo<v8::Value>& info) {
	v8::Isolate* isolate = info.GetIsolate();
	v8::Local<v8::Value> value = info[0];
	v8::Local<v8::Value> parts[3];
	bool are_pairs = false;
	if (value->IsPromise()) {
		v8::Local<v8::Promise> promise = value.As<v8::Promise>();
		parts[0] = v8::Integer::New(isolate, 1);
		parts[1] = v8::Integer::New(isolate, promise->State());
		parts[2] = v8::Undefined(isolate);
		if (promise->State() != v8::Promise::kPending) parts[2] = promise->Result();
	} else if (value->IsProxy()) {
		parts[0] = v8::Integer::New(isolate, 2);
		parts[1] = value.As<v8::Proxy>()->GetTarget();
		parts[2] = value.As<v8::Proxy>()->GetHandler();
	} else if (value->IsMapIterator() || value->IsSetIterator()) {
		v8::Local<v8::Array> entries;
		if (!value.As<v8::Object>()->PreviewEntries(&are_pairs).ToLocal(&entries)) return;
		parts[0] = v8::Integer::New(isolate, 3);
		parts[1] = entries;
		parts[2] = v8::Boolean::New(isolate, are_pairs);
	} else {
		return;
	}
	info.GetReturnValue().Set(v8::Array::New(isolate, parts, 3));
}

}  // namespace

void AddInnerState(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> target) {
	Set(isolate, context, target, "carried", MakeFunction(context, Carried));
	Set(isolate, context, target, "inside", MakeFunction(context, Inside));
}
