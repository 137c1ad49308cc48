// What native functions are made of; see natives.h.
#include "natives.h"

#include <errno.h>
#include <openssl/err.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "isolate-state.h"

namespace {

// In the object that each native function of a context has as its data.
enum { kShape, kNothing, kDataFields };

// V8 frees the buffer that hangs on the object, when that is garbage or the isolate ends.
void FreeNative(void*, size_t, void* data) { Drop(static_cast<Native*>(data)); }

// Far above every memory limit. V8 would end the process for sizes that no buffer can have.
constexpr size_t kMostReserved = static_cast<size_t>(1) << 35;

v8::BackingStore* Reserve(v8::Isolate* isolate, size_t bytes) {
	if (bytes > kMostReserved) return nullptr;
	using Mode = v8::BackingStoreInitializationMode;
	return v8::ArrayBuffer::NewBackingStore(
		isolate, bytes, Mode::kUninitialized, v8::BackingStoreOnFailureMode::kReturnNull)
		.release();
}

v8::Local<v8::String> TextOf(const Info& info, const char* text) {
	return v8::String::NewFromUtf8(info.GetIsolate(), text).ToLocalChecked();
}

}  // namespace

void Drop(Native* native) {
	native->destroy(native);
	delete native->reserved;
	free(native);
}

void Return(const Info& info, Native* native, size_t bytes) {
	v8::Isolate* isolate = info.GetIsolate();
	v8::Local<v8::Object> data = info.Data().As<v8::Object>();
	// The smallest sizes are never refused: the allocator ends the isolate instead.
	native->reserved = Reserve(isolate, bytes < 128 ? 128 : bytes);
	v8::Local<v8::Object> object;
	v8::Local<v8::ObjectTemplate> shape = data->GetInternalField(kShape).As<v8::ObjectTemplate>();
	if (native->reserved == nullptr) {
		Drop(native);
		return ThrowMemory(info);
	}
	if (!shape->NewInstance(isolate->GetCurrentContext()).ToLocal(&object)) return Drop(native);
	// V8 takes it for as large as it is, and collects garbage in time.
	v8::Local<v8::ArrayBuffer> holder =
		v8::ArrayBuffer::New(isolate, v8::ArrayBuffer::NewBackingStore(native, bytes, FreeNative, native));
	object->SetAlignedPointerInInternalField(0, native, v8::kEmbedderDataTypeTagDefault);
	object->SetInternalField(1, holder);
	info.GetReturnValue().Set(object);
}

Native* NativeOf(v8::Local<v8::Value> value) {
	if (!value->IsObject()) return nullptr;
	v8::Local<v8::Object> object = value.As<v8::Object>();
	if (object->InternalFieldCount() != kNativeFields) return nullptr;
	return static_cast<Native*>(object->GetAlignedPointerFromInternalField(0, v8::kEmbedderDataTypeTagDefault));
}

Bytes::Bytes(v8::Local<v8::Value> value) {
	if (value->IsArrayBufferView()) {
		v8::MemorySpan<uint8_t> span = value.As<v8::ArrayBufferView>()->GetContents({storage_, sizeof(storage_)});
		if (span.size() > 0) data_ = span.data();
		size_ = span.size();
	} else if (value->IsArrayBuffer()) {
		v8::Local<v8::ArrayBuffer> buffer = value.As<v8::ArrayBuffer>();
		if (buffer->ByteLength() > 0) data_ = static_cast<const uint8_t*>(buffer->Data());
		size_ = buffer->ByteLength();
	}
}

Room::Room(v8::Local<v8::Value> value) {
	if (!value->IsUint8Array()) return;
	v8::Local<v8::Uint8Array> view = value.As<v8::Uint8Array>();
	v8::Local<v8::ArrayBuffer> buffer = view->Buffer();
	size_t offset = view->ByteOffset(), length = view->ByteLength();
	if (offset > buffer->ByteLength() || length > buffer->ByteLength() - offset) return;
	data = static_cast<uint8_t*>(buffer->Data()) + offset;
	size = length;
}

size_t PositionOf(v8::Local<v8::Value> value, size_t size) {
	double number = value->IsNumber() ? value.As<v8::Number>()->Value() : -1;
	// What is not a number at all compares as false.
	return number >= 0 && number <= static_cast<double>(size) ? static_cast<size_t>(number) : size;
}

int32_t IntegerOf(v8::Local<v8::Value> value, int32_t otherwise) {
	return value->IsInt32() ? value.As<v8::Int32>()->Value() : otherwise;
}

Name::Name(v8::Isolate* isolate, v8::Local<v8::Value> value) {
	text[0] = '\0';
	if (!value->IsString()) return;
	v8::Local<v8::String> string = value.As<v8::String>();
	uint32_t length = static_cast<uint32_t>(string->Length());
	if (length >= sizeof(text) || !string->IsOneByte()) return;
	string->WriteOneByteV2(isolate, 0, length, reinterpret_cast<uint8_t*>(text));
	text[length] = '\0';
}

uint8_t* NewBytes(const Info& info, size_t size, v8::Local<v8::ArrayBuffer>* buffer) {
	if (v8::ArrayBuffer::MaybeNew(info.GetIsolate(), size).ToLocal(buffer)) {
		static uint8_t nothing;
		return size == 0 ? &nothing : static_cast<uint8_t*>((*buffer)->Data());
	}
	ThrowMemory(info);
	return nullptr;
}

void ReturnBytes(const Info& info, const uint8_t* data, size_t size) {
	v8::Local<v8::ArrayBuffer> buffer;
	uint8_t* copy = NewBytes(info, size, &buffer);
	if (copy == nullptr) return;
	if (size > 0) memcpy(copy, data, size);
	info.GetReturnValue().Set(buffer);
}

void ThrowError(const Info& info, const char* message) {
	info.GetIsolate()->ThrowException(v8::Exception::Error(TextOf(info, message)));
}

void ThrowMemory(const Info& info) {
	v8::Local<v8::String> message = TextOf(info, "It does not fit into what is left of the memory limit.");
	info.GetIsolate()->ThrowException(v8::Exception::RangeError(message));
}

void ThrowOpenSsl(const Info& info, const char* message) {
	unsigned long error = ERR_peek_error();
	char text[256];
	if (error != 0) ERR_error_string_n(error, text, sizeof(text));
	ThrowError(info, error == 0 ? message : text);
}

void ClearErrors() { ERR_clear_error(); }

// In front of the memory stands what it belongs to: the store, and its isolate.
constexpr size_t kHead = 16;

void* CountedAlloc(v8::Isolate* isolate, size_t size) {
	if (size > kMostReserved) return nullptr;
	// The smallest sizes are never refused: the allocator ends the isolate instead.
	v8::BackingStore* store = Reserve(isolate, size + kHead < 128 ? 128 : size + kHead);
	if (store == nullptr) return nullptr;
	char* memory = static_cast<char*>(store->Data());
	uint64_t owner = LibraryTakes(isolate, store->ByteLength());
	memcpy(memory, &store, sizeof(store));
	memcpy(memory + sizeof(store), &owner, sizeof(owner));
	return memory + kHead;
}

void CountedFree(void* memory) {
	if (memory == nullptr) return;
	v8::BackingStore* store;
	uint64_t owner;
	memcpy(&store, static_cast<char*>(memory) - kHead, sizeof(store));
	memcpy(&owner, static_cast<char*>(memory) - kHead + sizeof(store), sizeof(owner));
	LibraryFrees(owner, store->ByteLength());
	delete store;
}

bool Poll(const Info& info) {
	v8::Isolate* isolate = info.GetIsolate();
	v8::HandleScope scope(isolate);
	v8::TryCatch caught(isolate);
	v8::Local<v8::Function> nothing = info.Data().As<v8::Object>()->GetInternalField(kNothing).As<v8::Value>().As<v8::Function>();
	// V8 runs interrupts when a function begins.
	bool has_run = !nothing->Call(isolate->GetCurrentContext(), v8::Undefined(isolate), 0, nullptr).IsEmpty();
	if (!has_run) caught.ReThrow();
	return has_run && !isolate->IsExecutionTerminating();
}

// random(bytes, at): fills them with random bytes of the system. Returns where it stopped.
void Random(const Info& info) {
	Room room(info[0]);
	size_t at = PositionOf(info[1], room.size);
	size_t end = room.size - at < kFastSlice ? room.size : at + kFastSlice;
	while (at < end) {
		long got = syscall(SYS_getrandom, room.data + at, end - at, 0);
		if (got < 0 && errno != EINTR) return ThrowError(info, "The system gives no random bytes.");
		if (got > 0) at += static_cast<size_t>(got);
	}
	info.GetReturnValue().Set(static_cast<double>(at));
}

namespace {

// By now user code may have set traps in prototypes, and used up the stack: nothing is taken for granted.
bool AddFunctions(v8::Local<v8::Context> context, v8::Local<v8::Object> target, v8::Local<v8::Object> data,
	const NativeFunction* functions) {
	for (; functions->name != nullptr; functions++) {
		v8::Local<v8::Function> function;
		v8::MaybeLocal<v8::Function> made =
			v8::Function::New(context, functions->callback, data, 0, v8::ConstructorBehavior::kThrow);
		if (!made.ToLocal(&function)) return false;
		v8::Local<v8::String> name = v8::String::NewFromUtf8(v8::Isolate::GetCurrent(), functions->name).ToLocalChecked();
		if (!target->CreateDataProperty(context, name, function).FromMaybe(false)) return false;
	}
	return true;
}

}  // namespace

v8::MaybeLocal<v8::Object> MakeNatives(v8::Isolate* isolate, v8::Local<v8::Context> context) {
	v8::Local<v8::Value> nothing;
	v8::Local<v8::Script> script;
	if (!v8::Script::Compile(context, v8::String::NewFromUtf8Literal(isolate, "(()=>{})")).ToLocal(&script)) return {};
	if (!script->Run(context).ToLocal(&nothing)) return {};
	v8::Local<v8::ObjectTemplate> data_shape = v8::ObjectTemplate::New(isolate), shape = v8::ObjectTemplate::New(isolate);
	data_shape->SetInternalFieldCount(kDataFields);
	shape->SetInternalFieldCount(kNativeFields);
	v8::Local<v8::Object> data;
	if (!data_shape->NewInstance(context).ToLocal(&data)) return {};
	data->SetInternalField(kShape, shape);
	data->SetInternalField(kNothing, nothing);
	v8::Local<v8::Object> natives = v8::Object::New(isolate, v8::Null(isolate), nullptr, nullptr, 0);
	for (const NativeFunction* functions :
		{kHashFunctions, kCipherFunctions, kKeyFunctions, kCompressionFunctions}) {
		if (!AddFunctions(context, natives, data, functions)) return {};
	}
	return natives;
}
