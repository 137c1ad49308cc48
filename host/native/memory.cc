// Keeps isolates to their memory.
//
// V8 compares a heap with its limit when it collects garbage, and isolated-vm ends an isolate only then. The first large object
// after a collection is compared with nothing (V8's NewLargeObjectSpace::AllocateRaw), and when old objects reach the limit,
// isolated-vm gives a gigabyte more. So one text that is made flat may take a gigabyte, and nobody notices before garbage is
// collected again. But all memory of a heap comes from the system, by `mmap`, on the thread that runs the isolate, and passes
// here; so does what V8 takes outside of heaps, by `malloc`, as for JSON, large numbers, patterns, texts in other alphabets,
// dates of `Temporal` and what belongs to each buffer (outside.cc). V8 collects garbage on the same thread
// (`--single-threaded-gc`).
// What an isolate asks for beyond its limit it is given from a stock that all isolates of the process share, and it is ended at
// its next step if it holds that much then. When the stock is used up, it is refused: V8 then collects garbage, asks again, and
// gives the isolate up. Who calls `malloc` may not know what to do without, so there it is given up at once.
//
// Buffers are kept to the limit by isolated-vm, which takes them itself, or has the system make writable what V8 has reserved.
// Here they count, and the host is told of them as of all that grows: what is within a limit may be more than the process has.
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "imports.h"
#include "isolate-state.h"

namespace {

// Of those that isolates have for their embedder, of which isolated-vm uses none.
constexpr uint32_t kDataSlot = 3;

// What isolates may yet have beyond their limits. Without a host, there is no bound.
std::atomic<int64_t> stock_bytes{INT64_MAX / 2};

// V8's own threads, which compile, and the host's are let through.
thread_local bool runs_isolates = false;
// The isolate that this thread has locked; null if none. V8 gives memory back after it has left it, before it lets go of it.
thread_local v8::Isolate* locked = nullptr;

// The host is told when an isolate holds so much more than it was told before, in bytes.
constexpr uint64_t kGrowth = 16 << 20;

// So much beyond its limit an isolate may have whatever the others took, in bytes: who needs hardly any is not given up for them.
constexpr uint64_t kSlice = 1 << 20;

// With what it has taken outside of its heap an isolate may have so much more than its limit, in bytes. Up to that, what V8 takes
// there for a moment does no harm: it is of the stock, of which this is a quarter. And where the runtime keeps buffers for what
// V8 takes, as for formats of dates, that counts twice.
constexpr uint64_t kOutside = 48 << 20;

// What the heap holds and takes, and what hangs on it outside.
struct Size {
	uint64_t used;
	uint64_t taken;
	// What V8 knows of, and what libraries hold, of which it does not.
	uint64_t external;

	uint64_t Held() const { return used + external; }
	// With what was taken outside. For some of that, as for what formats dates, the runtime keeps buffers that nobody writes to, so
	// it counts once.
	uint64_t HeldWith(uint64_t malloced) const { return used + (external > malloced ? external : malloced); }
};

// What is smaller is seen later, in bytes.
constexpr size_t kSeenAtOnce = 64 * 1024;

Size SizeOf(const IsolateState* state, v8::Isolate* isolate) {
	v8::HeapStatistics heap;
	isolate->GetHeapStatistics(&heap);
	uint64_t library_bytes = state->library_bytes.load(std::memory_order_relaxed) & kCounted;
	return {heap.used_heap_size(), heap.total_heap_size(), heap.external_memory() + library_bytes};
}

void Remember(IsolateState* state, uint64_t bytes) {
	state->held_bytes.store(bytes, std::memory_order_relaxed);
	if (bytes > state->peak_bytes.load(std::memory_order_relaxed)) state->peak_bytes.store(bytes, std::memory_order_relaxed);
}

int64_t FromStock(uint64_t excess) { return excess > kSlice ? static_cast<int64_t>(excess - kSlice) : 0; }

// Gives back to the stock what the isolate does not have any more, or takes what it lacks. Returns false if there is not as much.
bool Draw(IsolateState* state, uint64_t excess) {
	int64_t lack = FromStock(excess) - FromStock(state->excess_bytes);
	int64_t left = stock_bytes.load();
	// What is refused is never gone for a moment: another would be refused what there is.
	do {
		if (lack > 0 && left < lack) return false;
	} while (!stock_bytes.compare_exchange_weak(left, left - lack));
	state->excess_bytes = excess;
	return true;
}

// It holds so much, or is about to. That may be the end of the process, so the host is told before.
void Tell(IsolateState* state, uint64_t held) {
	state->held_bytes.store(held, std::memory_order_relaxed);
	state->growth_bytes = 0;
	if (held < state->told_bytes) state->told_bytes = held;
	if (held - state->told_bytes < kGrowth) return;
	state->told_bytes = held;
	Signal(state, kGrown);
}

// It takes so much more. What was asked for since may have been given back, so it is not added up, but looked at.
void Grow(IsolateState* state, uint64_t length) {
	state->growth_bytes += length;
	if (state->growth_bytes < kGrowth) return;
	state->has_grown = true;
	Tell(state, SizeOf(state, state->isolate).HeldWith(MallocedBytes(state)) + length);
}

// Code is made writable in smaller pieces, in bytes.
constexpr size_t kProtected = 1 << 20;

// How much more than its limit it has with so much; up to it, it need not be looked at again.
uint64_t ExcessOf(IsolateState* state, uint64_t taken) {
	bool is_within = taken <= state->limit_bytes;
	state->small_bytes = 0;
	state->room_bytes = is_within ? state->limit_bytes - taken : 0;
	return is_within ? 0 : taken - state->limit_bytes;
}

// Buffers count to isolated-vm as well, which refuses those that do not fit: who was refused one may need a little to say so.
// Of what else is outside of the heap it knows nothing.
bool IsWithin(const IsolateState* state, const Size& size) {
	return size.Held() <= state->limit_bytes + kSlice && size.Held() + MallocedBytes(state) <= state->limit_bytes + kOutside;
}

void Interrupted(v8::Isolate* isolate, void* data) {
	IsolateState* state = static_cast<IsolateState*>(data);
	state->is_interrupted = false;
	KeepToLimit(state, isolate);
}

// V8 takes memory for what is asked of it here, in the midst of which nothing more may be asked of it.
thread_local bool is_requesting = false;

// In place of V8's, for isolated-vm alone.
void RequestInterrupt(v8::Isolate* isolate, v8::InterruptCallback callback, void* data) {
	is_requesting = true;
	isolate->RequestInterrupt(callback, data);
	is_requesting = false;
}

// Has its memory looked at, at its next step.
void Interrupt(IsolateState* state) {
	state->has_grown = true;
	if (state->is_interrupted || is_requesting) return;
	state->is_interrupted = true;
	RequestInterrupt(state->isolate, Interrupted, state);
}

// Whether the isolate of this thread may take so much more. V8 may be in the midst of anything.
bool MayTake(IsolateState* state, size_t length) {
	// What a collection takes to move objects it gives back; V8 could not do without.
	if (state->is_collecting || state->is_blank) return true;
	if (state->small_bytes + length <= state->room_bytes) {
		state->room_bytes -= length;
		Grow(state, length);
		return true;
	}
	Size size = SizeOf(state, state->isolate);
	uint64_t excess = ExcessOf(state, size.taken + size.external + MallocedBytes(state) + length);
	if (!Draw(state, excess)) return false;
	if (excess > 0) Remember(state, size.Held() + length);
	Grow(state, length);
	if (excess > 0) Interrupt(state);
	return true;
}

// The same of a small piece. Nothing is looked at here, but at its next step.
bool MayTakeSmall(IsolateState* state, size_t length) {
	if (state->is_collecting || state->is_blank) return true;
	if (state->small_bytes >= kGrowth) Interrupt(state);
	uint64_t room = state->room_bytes > kSlice ? state->room_bytes : kSlice;
	if (state->small_bytes + length <= room) return true;
	if (!Draw(state, state->excess_bytes + kSlice)) return false;
	state->room_bytes = room + kSlice;
	Interrupt(state);
	return true;
}

// In place of `mmap`, for the program alone. What is reserved without leave to write takes nothing.
void* Map(void* address, size_t length, int protection, int flags, int file, off_t offset) {
	IsolateState* state = (protection & PROT_WRITE) != 0 && (flags & MAP_ANONYMOUS) != 0 ? Current() : nullptr;
	if (state != nullptr) {
		// A heap does not grow or shrink unseen.
		state->has_grown = true;
		if (!MayTake(state, length)) {
			errno = ENOMEM;
			return MAP_FAILED;
		}
	}
	return mmap(address, length, protection, flags, file, offset);
}

// In place of `mprotect`, for the program alone: what is reserved becomes memory when it may be written to. V8 may hold locks
// then of which its statistics need one, so what there is more is added.
int Protect(void* address, size_t length, int protection) {
	IsolateState* state = (protection & PROT_WRITE) != 0 && length >= kProtected ? Current() : nullptr;
	if (state != nullptr && !state->is_collecting) Tell(state, state->held_bytes.load(std::memory_order_relaxed) + length);
	return mprotect(address, length, protection);
}

// In place of those of isolated-vm, which has compared them with the limit: buffers, which V8 counts as its own.
void* CallocBuffer(size_t count, size_t each) {
	size_t size;
	IsolateState* state = __builtin_mul_overflow(count, each, &size) ? nullptr : Current();
	if (state != nullptr) Grow(state, size);
	return calloc(count, each);
}

void* MallocBuffer(size_t size) {
	IsolateState* state = Current();
	if (state != nullptr) Grow(state, size);
	return malloc(size);
}

void CollectionBegins(v8::Isolate* isolate, v8::GCType type, v8::GCCallbackFlags, void* data) {
	IsolateState* state = static_cast<IsolateState*>(data);
	if (type == v8::kGCTypeMarkSweepCompact) WaitToCollect(state, isolate);
	state->is_collecting = true;
	// Of all that was taken since the last look, this is the most.
	if (!state->has_grown) return;
	Remember(state, SizeOf(state, isolate).Held());
}

void CollectionEnds(v8::Isolate*, v8::GCType type, v8::GCCallbackFlags, void* data) {
	IsolateState* state = static_cast<IsolateState*>(data);
	if (type == v8::kGCTypeMarkSweepCompact) HasCollected();
	state->is_collecting = false;
	state->has_collected = true;
}

// setMemoryStock(bytes): what isolates may have beyond their limits, all together.
void SetMemoryStock(const v8::FunctionCallbackInfo<v8::Value>& info) {
	if (info[0]->IsNumber()) stock_bytes.store(static_cast<int64_t>(info[0].As<v8::Number>()->Value()));
}

// heldBytes(index): what the isolate holds, as last seen.
void HeldBytes(const v8::FunctionCallbackInfo<v8::Value>& info) {
	IsolateState* state = StateOf(info[0]);
	uint64_t bytes = state == nullptr ? 0 : state->held_bytes.load(std::memory_order_relaxed);
	info.GetReturnValue().Set(static_cast<double>(bytes));
}

}  // namespace

bool WatchMemory() {
	// By the name that it has in a program for large files, as the system's C library may call it.
	bool has_heap = ReplaceImport(nullptr, "mmap64", reinterpret_cast<void*>(Map));
	has_heap |= ReplaceImport(nullptr, "mmap", reinterpret_cast<void*>(Map));
	bool has_reserved = ReplaceImport(nullptr, "mprotect", reinterpret_cast<void*>(Protect));
	bool has_outside = CountOutside() && WatchDisposals();
	bool has_buffers = ReplaceImport(kIsolatedVm, "calloc", reinterpret_cast<void*>(CallocBuffer));
	ReplaceImport(kIsolatedVm, "malloc", reinterpret_cast<void*>(MallocBuffer));
	bool has_requests =
		ReplaceImport(kIsolatedVm, "_ZN2v87Isolate16RequestInterruptEPFvPS0_PvES2_", reinterpret_cast<void*>(RequestInterrupt));
	return has_heap && has_reserved && has_outside && has_buffers && has_requests;
}

IsolateState* Current() { return locked == nullptr ? nullptr : TrackedOf(locked); }

void Take(IsolateState* state, size_t size) {
	if (size < kSmall ? MayTakeSmall(state, size) : MayTake(state, size)) return;
	Signal(state, kGaveUp);
	for (;;) pause();
}

void ThreadRunsIsolates() {
	runs_isolates = true;
	locked = v8::Isolate::TryGetCurrent();
}

void ThreadLocks(v8::Isolate* isolate) {
	if (runs_isolates) locked = isolate;
}

IsolateState* TrackedOf(v8::Isolate* isolate) { return static_cast<IsolateState*>(isolate->GetData(kDataSlot)); }

void BeginTaking(IsolateState* state) { state->is_blank = false; }

void TrackMemory(IsolateState* state, v8::Isolate* isolate) {
	v8::HeapStatistics heap;
	isolate->GetHeapStatistics(&heap);
	state->limit_bytes = heap.heap_size_limit();
	state->room_bytes = state->small_bytes = state->excess_bytes = state->growth_bytes = state->told_bytes = 0;
	state->malloced_bytes = state->most_malloced_bytes = 0;
	state->freed_bytes.store((state->freed_bytes.load() | kCounted) + 1);
	state->is_blank = true;
	state->has_grown = state->is_interrupted = state->is_over = state->is_collecting = false;
	state->peak_bytes.store(0);
	state->held_bytes.store(0);
	state->library_bytes.store((state->library_bytes.load() | kCounted) + 1);
	isolate->AddGCPrologueCallback(CollectionBegins, state);
	isolate->AddGCEpilogueCallback(CollectionEnds, state);
	isolate->SetData(kDataSlot, state);
}

uint64_t LibraryTakes(v8::Isolate* isolate, size_t bytes) {
	IsolateState* state = static_cast<IsolateState*>(isolate->GetData(kDataSlot));
	if (state == nullptr) return UINT64_MAX;
	uint64_t before = state->library_bytes.fetch_add(bytes);
	state->has_grown = true;
	// It may be freed before anybody looks.
	if (bytes >= kSeenAtOnce) Remember(state, SizeOf(state, isolate).Held());
	return (before & ~kCounted) | state->index;
}

void LibraryFrees(uint64_t owner, size_t bytes) {
	if (owner == UINT64_MAX) return;
	std::atomic<uint64_t>& held = states[owner & kCounted].load()->library_bytes;
	uint64_t now = held.load();
	while ((now & ~kCounted) == (owner & ~kCounted) && !held.compare_exchange_weak(now, now - bytes)) {
	}
}

// Takes off what other threads gave back: their count stands below that of the turns, and would run over into it one day.
static void TakeOffFreed(IsolateState* state) {
	uint64_t freed = state->freed_bytes.load();
	while (!state->freed_bytes.compare_exchange_weak(freed, freed & ~kCounted)) {
	}
	state->malloced_bytes -= freed & kCounted;
}

bool KeepToLimit(IsolateState* state, v8::Isolate* isolate) {
	state->has_grown = false;
	TakeOffFreed(state);
	Size size = SizeOf(state, isolate);
	Remember(state, size.HeldWith(MallocedBytes(state)));
	bool is_within = IsWithin(state, size);
	if (!is_within) {
		// It may be garbage. One collection, at once, behind which isolated-vm looks; what is left is more than the limit to it as
		// well.
		isolate->MemoryPressureNotification(v8::MemoryPressureLevel::kNone);
		isolate->MemoryPressureNotification(v8::MemoryPressureLevel::kCritical);
		isolate->MemoryPressureNotification(v8::MemoryPressureLevel::kNone);
		size = SizeOf(state, isolate);
		is_within = IsWithin(state, size);
		if (!is_within && !state->is_over && size.used <= state->limit_bytes) {
			Signal(state, kOver);
			isolate->TerminateExecution();
		}
		state->is_over = !is_within;
	}
	Tell(state, size.HeldWith(MallocedBytes(state)));
	Draw(state, ExcessOf(state, size.taken + size.external + MallocedBytes(state)));
	return is_within;
}

// The thread that it ends on may give back what is no longer its.
void UntrackMemory(v8::Isolate* isolate) {
	if (const IsolateState* state = TrackedOf(isolate)) LeavesOutside(state);
	isolate->SetData(kDataSlot, nullptr);
	if (locked == isolate) locked = nullptr;
}

void ForgetMemory(IsolateState* state) {
	stock_bytes.fetch_add(FromStock(state->excess_bytes));
	state->excess_bytes = 0;
}

void AddMemory(v8::Isolate* isolate, v8::Local<v8::Context> context, v8::Local<v8::Object> host) {
	Set(isolate, context, host, "setMemoryStock", MakeFunction(context, SetMemoryStock));
	Set(isolate, context, host, "heldBytes", MakeFunction(context, HeldBytes));
}
