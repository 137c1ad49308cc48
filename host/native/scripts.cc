// The scripts of the runtime: the core, which every isolate is booted with, and libraries, which a guest loads when it first
// needs them. Their sources and V8's code caches are kept once for the process, and lie outside of all heaps: an isolate holds
// a string that refers to the source.
#include <string.h>

#include "isolate-state.h"
#include "natives.h"

namespace {

constexpr uint32_t kScripts = 256;

// Lives as long as the process, so no isolate ever disposes of it.
class Source : public v8::String::ExternalOneByteStringResource {
 public:
	Source(const char* bytes, size_t length) : bytes_(bytes), length_(length) {}
	const char* data() const override { return bytes_; }
	size_t length() const override { return length_; }
	void Dispose() override {}

 private:
	const char* bytes_;
	size_t length_;
};

struct RuntimeScript {
	Source source;
	char* name;
	// Made in the first isolate that ran it. Never freed: others may be reading it.
	std::atomic<const v8::ScriptCompiler::CachedData*> cache{nullptr};
};

std::atomic<RuntimeScript*> scripts[kScripts];
// The host's thread's alone.
uint32_t script_count = 0;

char* CopyOf(v8::Isolate* isolate, v8::Local<v8::String> text) {
	uint32_t length = static_cast<uint32_t>(text->Length());
	char* bytes = static_cast<char*>(malloc(length + 1));
	if (bytes == nullptr) return nullptr;
	text->WriteOneByteV2(isolate, 0, length, reinterpret_cast<uint8_t*>(bytes));
	bytes[length] = 0;
	return bytes;
}

// addScript(name, source): keeps a script, whose characters must all be of one byte. Returns its index; undefined if there is
// no room.
void AddScript(const v8::FunctionCallbackInfo<v8::Value>& info) {
	v8::Isolate* isolate = info.GetIsolate();
	if (!info[0]->IsString() || !info[1]->IsString() || script_count == kScripts) return;
	v8::Local<v8::String> text = info[1].As<v8::String>();
	if (!text->ContainsOnlyOneByte()) return;
	char* name = CopyOf(isolate, info[0].As<v8::String>());
	char* bytes = CopyOf(isolate, text);
	if (name == nullptr || bytes == nullptr) return;
	RuntimeScript* script = static_cast<RuntimeScript*>(calloc(1, sizeof(RuntimeScript)));
	if (script == nullptr) return;
	new (script) RuntimeScript{Source(bytes, static_cast<size_t>(text->Length())), name};
	scripts[script_count].store(script, std::memory_order_release);
	info.GetReturnValue().Set(script_count++);
}

// Calls `warmUp` of what a script has given, if it has one. Returns false if something was thrown.
bool WarmUp(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Value> given) {
	v8::Local<v8::Value> warm_up;
	if (!given->IsObject()) return true;
	if (!given.As<v8::Object>()->Get(context, v8::String::NewFromUtf8Literal(isolate, "warmUp")).ToLocal(&warm_up)) return false;
	return !warm_up->IsFunction() || !warm_up.As<v8::Function>()->Call(context, given, 0, nullptr).IsEmpty();
}

// Whether a function has a second parameter.
bool TakesNatives(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Function> function) {
	v8::Local<v8::Value> length;
	if (!function->Get(context, v8::String::NewFromUtf8Literal(isolate, "length")).ToLocal(&length)) return false;
	return length->IsInt32() && length.As<v8::Int32>()->Value() == 2;
}

// In the object that `library` has as its data: the index of the isolate's state, and the native functions, once there are any.
enum { kState, kNatives, kDataFields };

// The native functions of the context; all its libraries get the same. Empty if something was thrown.
v8::MaybeLocal<v8::Value> NativesOf(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> data) {
	v8::Local<v8::Value> kept = data->GetInternalField(kNatives).As<v8::Value>();
	if (kept->IsObject()) return kept;
	v8::Local<v8::Object> natives;
	if (!MakeNatives(isolate, context).ToLocal(&natives)) return {};
	data->SetInternalField(kNatives, natives);
	return natives;
}

// Compiles a script in the isolate, runs it, and calls the function that it gives. Empty if something was thrown. A library has
// the data of `library`, and may take native functions, for which there is room behind the values.
v8::MaybeLocal<v8::Value> RunScript(
	v8::Isolate* isolate, RuntimeScript* script, v8::Local<v8::Object> library, int count, v8::Local<v8::Value>* values) {
	v8::Local<v8::Context> context = isolate->GetCurrentContext();
	v8::Local<v8::String> text, name;
	if (!v8::String::NewExternalOneByte(isolate, &script->source).ToLocal(&text)) return {};
	if (!v8::String::NewFromUtf8(isolate, script->name).ToLocal(&name)) return {};
	v8::ScriptOrigin origin(name);
	const v8::ScriptCompiler::CachedData* kept = script->cache.load(std::memory_order_acquire);
	// The source owns what it is given, so it gets a view of what is kept.
	v8::ScriptCompiler::CachedData* cached =
		kept == nullptr ? nullptr : new v8::ScriptCompiler::CachedData(kept->data, kept->length);
	v8::ScriptCompiler::Source source(text, origin, cached);
	v8::Local<v8::Script> compiled;
	v8::ScriptCompiler::CompileOptions options =
		cached == nullptr ? v8::ScriptCompiler::kNoCompileOptions : v8::ScriptCompiler::kConsumeCodeCache;
	if (!v8::ScriptCompiler::Compile(context, &source, options).ToLocal(&compiled)) return {};
	v8::Local<v8::Value> made, result;
	if (!compiled->Run(context).ToLocal(&made) || !made->IsFunction()) return {};
	v8::Local<v8::Function> function = made.As<v8::Function>();
	if (!library.IsEmpty() && TakesNatives(isolate, context, function)) {
		if (!NativesOf(isolate, context, library).ToLocal(&values[count])) return {};
		count++;
	}
	if (!function->Call(context, v8::Undefined(isolate), count, values).ToLocal(&result)) return {};
	if (kept == nullptr) {
		// The cache has what has been compiled by now: what every isolate runs of it, and what most will.
		if (!WarmUp(isolate, context, result)) return {};
		const v8::ScriptCompiler::CachedData* made_cache = v8::ScriptCompiler::CreateCodeCache(compiled->GetUnboundScript());
		// Another thread may have been faster.
		if (made_cache != nullptr && !script->cache.compare_exchange_strong(kept, made_cache)) delete made_cache;
	}
	return result;
}

RuntimeScript* ScriptOf(v8::Local<v8::Value> value, uint32_t offset) {
	if (!value->IsUint32()) return nullptr;
	uint64_t index = static_cast<uint64_t>(value.As<v8::Uint32>()->Value()) + offset;
	return index < kScripts ? scripts[index].load(std::memory_order_acquire) : nullptr;
}

constexpr int kMaxValues = 32;

// boot(index, …values), for the host alone: runs the core, and calls the function that it gives with the values. `library` runs
// the scripts behind it from now on.
void Boot(const v8::FunctionCallbackInfo<v8::Value>& info) {
	RuntimeScript* script = ScriptOf(info[0], 0);
	int count = info.Length() - 1;
	if (script == nullptr || count > kMaxValues) return;
	StateOf(info.Data())->core = info[0].As<v8::Uint32>()->Value();
	v8::Local<v8::Value> values[kMaxValues];
	for (int index = 0; index < count; index++) values[index] = info[index + 1];
	v8::Local<v8::Value> result;
	if (RunScript(info.GetIsolate(), script, {}, count, values).ToLocal(&result)) info.GetReturnValue().Set(result);
}

// library(index, require), in the guest, for the runtime: runs the script of the index behind the core, counted from 1, and
// calls the function that it gives with `require`, and with native functions if it takes a second argument.
void Library(const v8::FunctionCallbackInfo<v8::Value>& info) {
	v8::Local<v8::Object> data = info.Data().As<v8::Object>();
	RuntimeScript* script = ScriptOf(info[0], StateOf(data->GetInternalField(kState).As<v8::Value>())->core);
	if (script == nullptr) return;
	v8::Local<v8::Value> values[2] = {info[1]};
	v8::Local<v8::Value> result;
	if (RunScript(info.GetIsolate(), script, data, 1, values).ToLocal(&result)) info.GetReturnValue().Set(result);
}

}  // namespace

void AddScriptsOfGuest(
	v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> guest, v8::Local<v8::Value> index) {
	Set(isolate, context, guest, "boot", MakeFunction(context, Boot, index));
	v8::Local<v8::ObjectTemplate> shape = v8::ObjectTemplate::New(isolate);
	shape->SetInternalFieldCount(kDataFields);
	v8::Local<v8::Object> data = shape->NewInstance(context).ToLocalChecked();
	data->SetInternalField(kState, index);
	Set(isolate, context, guest, "library", MakeFunction(context, Library, data));
}

void AddScriptsOfHost(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> host) {
	Set(isolate, context, host, "addScript", MakeFunction(context, AddScript));
}
