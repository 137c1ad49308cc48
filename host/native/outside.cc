// Counts what isolates take outside of their heaps, by `malloc`, until it is given back.
//
// Who gives a piece back need not be who took it: V8's compiler takes much on its own threads that the isolate's thread frees,
// and the other way round, and isolated-vm frees what V8 took. If whatever an isolate's thread frees were off its account, it
// could hide what it keeps behind what was never counted. So each piece that counts says at its end whose it is, and a piece that
// says nothing is nobody's. What stands there is sealed with a secret and with its address: nobody can write it into a piece of
// their own.
#include <malloc.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "imports.h"
#include "isolate-state.h"

// Those of C++, which call `malloc` from another library. Where there is none, they are a part of the program.
extern "C" {
__attribute__((weak)) void* NewObject(size_t) __asm__("_Znwm");
__attribute__((weak)) void* NewArray(size_t) __asm__("_Znam");
__attribute__((weak)) void* TryNewObject(size_t, const void*) __asm__("_ZnwmRKSt9nothrow_t");
__attribute__((weak)) void* TryNewArray(size_t, const void*) __asm__("_ZnamRKSt9nothrow_t");
}

namespace {

// At the end of a piece, in its last bytes. Who can write there, as a guest into its buffers, finds no seal by trying.
struct Mark {
	uint64_t owner;
	uint64_t seal;
};
uint64_t secrets[3];

// Of an owner: the index of its state, and above that how often the state was taken.
constexpr uint32_t kIndexBits = 15;
static_assert(kIsolates == 1 << kIndexBits);

uint64_t SealOf(const void* memory, uint64_t owner) {
	uint64_t mixed = (reinterpret_cast<uintptr_t>(memory) ^ secrets[0]) * secrets[1];
	mixed = ((mixed ^ mixed >> 32) + owner) * secrets[2];
	return mixed ^ mixed >> 32;
}

uint64_t OwnerOf(uint64_t freed, uint32_t index) { return freed >> kCountedBits << kIndexBits | index; }

// Where the mark of a piece is, if it has room for one.
char* MarkIn(void* memory, size_t size) {
	return size < sizeof(Mark) ? nullptr : static_cast<char*>(memory) + size - sizeof(Mark);
}

// Whether the piece counts for somebody.
bool IsMarked(void* memory, size_t size, Mark* mark) {
	const char* at = MarkIn(memory, size);
	if (at == nullptr) return false;
	memcpy(mark, at, sizeof(*mark));
	return mark->seal == SealOf(memory, mark->owner);
}

// That of the isolate on whose account is what this thread takes; null if it is on nobody's.
IsolateState* Taker() {
	IsolateState* state = Current();
	return state == nullptr || state->is_blank ? nullptr : state;
}

// With room for the mark. What is too large for it is so in any case.
size_t Marked(size_t size) { return size > SIZE_MAX - sizeof(Mark) ? size : size + sizeof(Mark); }

// It counts from now on.
void* Taken(IsolateState* state, void* memory) {
	if (memory == nullptr) return memory;
	size_t size = malloc_usable_size(memory);
	uint64_t owner = OwnerOf(state->freed_bytes.load(std::memory_order_relaxed), state->index);
	Mark mark{owner, SealOf(memory, owner)};
	memcpy(MarkIn(memory, size), &mark, sizeof(mark));
	state->malloced_bytes += size;
	if (state->malloced_bytes > state->most_malloced_bytes) state->most_malloced_bytes = state->malloced_bytes;
	if (size < kSmall) state->small_bytes += size;
	return memory;
}

// It counts no more, on whatever thread.
void GiveBack(void* memory) {
	size_t size = malloc_usable_size(memory);
	Mark mark;
	if (!IsMarked(memory, size, &mark)) return;
	// Who has the same memory next may write nothing there.
	memset(MarkIn(memory, size), 0, sizeof(mark));
	uint64_t owner = mark.owner;
	IsolateState* state = states[owner & (kIsolates - 1)].load(std::memory_order_acquire);
	uint64_t freed = state->freed_bytes.load(std::memory_order_relaxed);
	if (state == Current()) {
		if (OwnerOf(freed, state->index) != owner) return;
		state->malloced_bytes -= size;
		// What was taken before it was last looked at may be more.
		if (size < kSmall) state->small_bytes -= size < state->small_bytes ? size : state->small_bytes;
		return;
	}
	// Of an isolate before, it counts for nobody.
	while (OwnerOf(freed, state->index) == owner &&
		!state->freed_bytes.compare_exchange_weak(freed, freed + size, std::memory_order_relaxed)) {
	}
}

void* Malloc(size_t size) {
	IsolateState* state = Taker();
	if (state == nullptr) return malloc(size);
	Take(state, size);
	return Taken(state, malloc(Marked(size)));
}

void* Calloc(size_t count, size_t each) {
	size_t size;
	IsolateState* state = __builtin_mul_overflow(count, each, &size) ? nullptr : Taker();
	if (state == nullptr) return calloc(count, each);
	Take(state, size);
	return Taken(state, calloc(1, Marked(size)));
}

void Free(void* memory) {
	if (memory != nullptr) GiveBack(memory);
	free(memory);
}

void* Realloc(void* memory, size_t size) {
	IsolateState* state = Taker();
	size_t before = memory == nullptr ? 0 : malloc_usable_size(memory);
	Mark mark;
	bool is_marked = IsMarked(memory, before, &mark);
	if (size == 0 || (state == nullptr && !is_marked)) {
		if (is_marked) GiveBack(memory);
		return realloc(memory, size);
	}
	if (state != nullptr && size > before) Take(state, size);
	// It counts anew, and until then for nobody: whose it was may not be who has it now.
	if (is_marked) GiveBack(memory);
	void* moved = realloc(memory, state == nullptr ? size : Marked(size));
	if (state == nullptr) return moved;
	// What could not be moved is still there.
	if (moved == nullptr && is_marked) Taken(state, memory);
	return Taken(state, moved);
}

int PosixMemalign(void** memory, size_t alignment, size_t size) {
	IsolateState* state = Taker();
	if (state == nullptr) return posix_memalign(memory, alignment, size);
	Take(state, size);
	int result = posix_memalign(memory, alignment, Marked(size));
	if (result == 0) Taken(state, *memory);
	return result;
}

// V8 fills up what it is given.
size_t UsableSize(void* memory) {
	size_t size = memory == nullptr ? 0 : malloc_usable_size(memory);
	Mark mark;
	return IsMarked(memory, size, &mark) ? size - sizeof(mark) : size;
}

template <auto allocate>
void* New(size_t size) {
	IsolateState* state = Taker();
	if (state == nullptr) return allocate(size);
	Take(state, size);
	return Taken(state, allocate(Marked(size)));
}

template <auto allocate>
void* TryNew(size_t size, const void* tag) {
	IsolateState* state = Taker();
	if (state == nullptr) return allocate(size, tag);
	Take(state, size);
	return Taken(state, allocate(Marked(size), tag));
}

// What C++ takes comes from the same place, and is given back to it.
void Delete(void* memory) { Free(memory); }
void DeleteSized(void* memory, size_t) { Free(memory); }

}  // namespace

bool CountOutside() {
	if (syscall(SYS_getrandom, secrets, sizeof(secrets), 0) != sizeof(secrets)) return false;
	secrets[1] |= 1;
	secrets[2] |= 1;
	const struct {
		const char* name;
		void* function;
	} functions[] = {
		{"calloc", reinterpret_cast<void*>(Calloc)},
		{"realloc", reinterpret_cast<void*>(Realloc)},
		{"posix_memalign", reinterpret_cast<void*>(PosixMemalign)},
		{"malloc_usable_size", reinterpret_cast<void*>(UsableSize)},
		{"free", reinterpret_cast<void*>(Free)},
		{"_Znwm", reinterpret_cast<void*>(New<NewObject>)},
		{"_Znam", reinterpret_cast<void*>(New<NewArray>)},
		{"_ZnwmRKSt9nothrow_t", reinterpret_cast<void*>(TryNew<TryNewObject>)},
		{"_ZnamRKSt9nothrow_t", reinterpret_cast<void*>(TryNew<TryNewArray>)},
		{"_ZdlPv", reinterpret_cast<void*>(Delete)},
		{"_ZdaPv", reinterpret_cast<void*>(Delete)},
		{"_ZdlPvm", reinterpret_cast<void*>(DeleteSized)},
		{"_ZdaPvm", reinterpret_cast<void*>(DeleteSized)},
	};
	for (const auto& [name, function] : functions) ReplaceImport(nullptr, name, function);
	// What V8 took is freed by these as well, as texts of C++ that they have a hand in.
	for (const char* library : {kIsolatedVm, "libstdc++"}) ReplaceImport(library, "free", reinterpret_cast<void*>(Free));
	return ReplaceImport(nullptr, "malloc", reinterpret_cast<void*>(Malloc));
}
