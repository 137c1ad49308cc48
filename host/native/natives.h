// Native functions for the code of a function: digests, ciphers, keys, compression. They run on the isolate's thread, so their
// CPU time is on the bill of the entry by itself.
//
// They are as safe as the language's own, for user code can call each of them with anything:
// - None runs for long. What may take long goes by slices, each a call of its own, and between two calls V8 can suspend the
//   isolate or end it. What cannot be sliced asks `Poll`, or is limited in size.
// - What they keep, and what they give, counts against the memory limit.
// - They take no argument's word: every size is checked against what is there at that moment. No code of the function runs
//   between the check and the use, and there is no shared memory.
// - Errors of OpenSSL's queue, which a thread takes along to the next isolate, are cleared after each call.
#pragma once
#include <stdlib.h>
#include <string.h>
#include <v8.h>

#include <cstddef>
#include <cstdint>
#include <memory>

using Info = v8::FunctionCallbackInfo<v8::Value>;

// What a slice takes: of what is as fast as a digest, and of what is as slow as compression.
constexpr size_t kFastSlice = 512 * 1024;
constexpr size_t kSlowSlice = 16 * 1024;

// Something that a library keeps for a function. It lives for as long as the object that stands for it, but no longer than the
// isolate.
struct Native {
	// Frees what is within, on any thread. It is of another kind if this is another function.
	void (*destroy)(Native*);
	// Counts against the memory limit; null if `destroy` frees memory of `CountedAlloc` only.
	v8::BackingStore* reserved;
};

// Makes a struct that begins with a Native; all else is zero. Null if there is no memory.
template <typename T>
T* MakeNative() {
	T* made = static_cast<T*>(calloc(1, sizeof(T)));
	if (made != nullptr) made->destroy = T::Destroy;
	return made;
}

// Frees it.
void Drop(Native* native);
// Returns the object that stands for it to the caller. If there is no room for `bytes` in the memory limit, it throws and frees
// it.
void Return(const Info& info, Native* native, size_t bytes);

// No other object has as many: neither one of V8, of isolated-vm, nor what functions of the addon have as their data.
constexpr int kNativeFields = 5;
Native* NativeOf(v8::Local<v8::Value> value);

// Null if the value does not stand for one of that kind.
template <typename T>
T* Get(v8::Local<v8::Value> value) {
	Native* native = NativeOf(value);
	return native != nullptr && native->destroy == T::Destroy ? static_cast<T*>(native) : nullptr;
}

// The bytes of a view or a buffer, for as long as no JavaScript runs. What is neither has none.
class Bytes {
 public:
	explicit Bytes(v8::Local<v8::Value> value);
	const uint8_t* data() const { return data_; }
	size_t size() const { return size_; }
	int length() const { return static_cast<int>(size_); }

 private:
	// What V8 keeps in its heap is copied.
	uint8_t storage_[64];
	const uint8_t* data_ = storage_;
	size_t size_ = 0;
};

// The same to write to. Only for buffers and views of whole ones.
struct Room {
	uint8_t* data = nullptr;
	size_t size = 0;
	explicit Room(v8::Local<v8::Value> value);
};

// A position within `size` bytes. Anything else is their end.
size_t PositionOf(v8::Local<v8::Value> value, size_t size);
// A whole number of 32 bits; the other one if it is none.
int32_t IntegerOf(v8::Local<v8::Value> value, int32_t otherwise);

// The text of a short name; empty if it is longer, or no text.
struct Name {
	char text[64];
	explicit Name(v8::Isolate* isolate, v8::Local<v8::Value> value);
};

// Returns a copy of the bytes to the caller. Throws if there is no room for it.
void ReturnBytes(const Info& info, const uint8_t* data, size_t size);
// A new buffer; null if there is no room for it, and then it has thrown.
uint8_t* NewBytes(const Info& info, size_t size, v8::Local<v8::ArrayBuffer>* buffer);

void ThrowError(const Info& info, const char* message);
void ThrowMemory(const Info& info);
// The oldest error of OpenSSL's queue, or the message if there is none.
void ThrowOpenSsl(const Info& info, const char* message);

// Memory that counts against the memory limit, for libraries that ask for theirs; null if there is no room.
void* CountedAlloc(v8::Isolate* isolate, size_t size);
void CountedFree(void* memory);

// Lets V8 do what it does between two steps of JavaScript. Returns whether the isolate goes on.
bool Poll(const Info& info);

// A set of native functions, by name.
struct NativeFunction {
	const char* name;
	v8::FunctionCallback callback;
};

void ClearErrors();

// OpenSSL's errors stay with the thread, which serves another isolate next.
template <v8::FunctionCallback F>
void Clearing(const Info& info) {
	F(info);
	ClearErrors();
}

extern const NativeFunction kHashFunctions[];
extern const NativeFunction kCipherFunctions[];
extern const NativeFunction kKeyFunctions[];
extern const NativeFunction kCompressionFunctions[];

// natives.cc: random(bytes, at), which the core of the runtime has.
void Random(const Info& info);
// A new object with all other native functions. Empty if something was thrown.
v8::MaybeLocal<v8::Object> MakeNatives(v8::Isolate* isolate, v8::Local<v8::Context> context);
