// Compression: zlib's formats, and brotli.
//
// What a call may take is limited by the bytes that go in and come out, so a bomb is taken apart slice by slice, and its text
// counts against the memory limit as it appears.
#include <setjmp.h>
#include <zlib.h>

#include "natives.h"

// Node.js brings these along, but not their headers. As in brotli's encode.h and decode.h, version 1.2.
extern "C" {
void* BrotliEncoderCreateInstance(void* (*alloc)(void*, size_t), void (*release)(void*, void*), void* opaque);
void BrotliEncoderDestroyInstance(void* state);
int BrotliEncoderSetParameter(void* state, int parameter, uint32_t value);
int BrotliEncoderCompressStream(void* state, int operation, size_t* available_in, const uint8_t** next_in, size_t* available_out,
	uint8_t** next_out, size_t* total_out);
int BrotliEncoderIsFinished(void* state);
int BrotliEncoderHasMoreOutput(void* state);
void* BrotliDecoderCreateInstance(void* (*alloc)(void*, size_t), void (*release)(void*, void*), void* opaque);
void BrotliDecoderDestroyInstance(void* state);
int BrotliDecoderSetParameter(void* state, int parameter, uint32_t value);
int BrotliDecoderDecompressStream(void* state, size_t* available_in, const uint8_t** next_in, size_t* available_out,
	uint8_t** next_out, size_t* total_out);
int BrotliDecoderGetErrorCode(const void* state);
const char* BrotliDecoderErrorString(int code);
}

namespace {

// What goes in at once: zlib's best level may compare each byte with thousands of others.
constexpr size_t kDeflateSlice = 8 * 1024;
constexpr size_t kOutputSlice = 64 * 1024;

// Where a call reads and writes, and how far it came.
struct Run {
	Bytes input;
	Room output;
	const uint8_t* from;
	uint8_t* to;
	size_t available_in, available_out;
	bool is_last;

	// From the arguments: input, at, end, output, outputAt.
	Run(const Info& info, size_t slice) : input(info[1]), output(info[4]) {
		size_t at = PositionOf(info[2], input.size());
		size_t end = PositionOf(info[3], input.size());
		size_t output_at = PositionOf(info[5], output.size);
		size_t rest = end > at ? end - at : 0, room = output.size - output_at;
		from = input.data() + at;
		to = output.data + output_at;
		available_in = rest < slice ? rest : slice;
		available_out = room < kOutputSlice ? room : kOutputSlice;
		is_last = available_in == rest;
	}
	Run(const Run&) = delete;
};

// All that a call says, in one number: a status, what was taken and what was given, 20 bits each.
void ReturnRun(const Info& info, int status, size_t taken, size_t given) {
	info.GetReturnValue().Set((static_cast<double>(status) * (1 << 20) + static_cast<double>(taken)) * (1 << 20) +
		static_cast<double>(given));
}

struct Flate : Native {
	z_stream stream;
	bool deflates;

	static void Destroy(Native* native) {
		Flate* flate = static_cast<Flate*>(native);
		if (flate->deflates) {
			deflateEnd(&flate->stream);
		} else {
			inflateEnd(&flate->stream);
		}
	}
};

void* AllocFlate(void* isolate, unsigned count, unsigned size) {
	return CountedAlloc(static_cast<v8::Isolate*>(isolate), static_cast<size_t>(count) * size);
}

void FreeFlate(void*, void* memory) { CountedFree(memory); }

// flateNew(deflates, level, windowBits, memLevel, strategy)
void FlateNew(const Info& info) {
	Flate* flate = MakeNative<Flate>();
	if (flate == nullptr) return ThrowMemory(info);
	z_stream* stream = &flate->stream;
	stream->zalloc = AllocFlate;
	stream->zfree = FreeFlate;
	stream->opaque = info.GetIsolate();
	flate->deflates = info[0]->IsTrue();
	int bits = IntegerOf(info[2], 15);
	int result = flate->deflates
		? deflateInit2(stream, IntegerOf(info[1], -1), Z_DEFLATED, bits, IntegerOf(info[3], 8), IntegerOf(info[4], 0))
		: inflateInit2(stream, bits);
	if (result == Z_OK) return Return(info, flate, sizeof(Flate));
	Drop(flate);
	if (result == Z_MEM_ERROR) return ThrowMemory(info);
	ThrowError(info, "Init error");
}

Flate* FlateOf(const Info& info) {
	Flate* flate = Get<Flate>(info[0]);
	if (flate == nullptr) ThrowError(info, "There is nothing to compress with.");
	return flate;
}

// flateRun(flate, input, at, end, output, outputAt, flush): the status is zlib's, and 6 more.
void FlateRun(const Info& info) {
	Flate* flate = FlateOf(info);
	if (flate == nullptr) return;
	Run run(info, flate->deflates ? kDeflateSlice : kSlowSlice);
	int flush = IntegerOf(info[6], Z_NO_FLUSH);
	if (flush < Z_NO_FLUSH || flush > Z_BLOCK) return ThrowError(info, "There is no such flush.");
	if (!run.is_last) flush = Z_NO_FLUSH;
	z_stream* stream = &flate->stream;
	stream->next_in = const_cast<uint8_t*>(run.from);
	stream->avail_in = static_cast<unsigned>(run.available_in);
	stream->next_out = run.to;
	stream->avail_out = static_cast<unsigned>(run.available_out);
	int status = run.available_out == 0 ? Z_BUF_ERROR : flate->deflates ? deflate(stream, flush) : inflate(stream, flush);
	size_t taken = run.available_in - stream->avail_in, given = run.available_out - stream->avail_out;
	// They are not there the next time.
	stream->next_in = stream->next_out = nullptr;
	stream->avail_in = stream->avail_out = 0;
	if (status == Z_MEM_ERROR) return ThrowMemory(info);
	ReturnRun(info, status + 6, taken, given);
}

// flateMessage(flate): zlib's word on the last error; undefined if it has none.
void FlateMessage(const Info& info) {
	Flate* flate = FlateOf(info);
	if (flate == nullptr || flate->stream.msg == nullptr) return;
	info.GetReturnValue().Set(v8::String::NewFromUtf8(info.GetIsolate(), flate->stream.msg).ToLocalChecked());
}

// flateDictionary(flate, bytes), flateReset(flate), flateParams(flate, level, strategy): each returns zlib's status.
void FlateDictionary(const Info& info) {
	Flate* flate = FlateOf(info);
	if (flate == nullptr) return;
	Bytes bytes(info[1]);
	if (bytes.size() > kFastSlice) return ThrowError(info, "A dictionary has 512 KiB at most.");
	unsigned size = static_cast<unsigned>(bytes.size());
	info.GetReturnValue().Set(flate->deflates ? deflateSetDictionary(&flate->stream, bytes.data(), size)
											   : inflateSetDictionary(&flate->stream, bytes.data(), size));
}

void FlateReset(const Info& info) {
	Flate* flate = FlateOf(info);
	if (flate == nullptr) return;
	info.GetReturnValue().Set(flate->deflates ? deflateReset(&flate->stream) : inflateReset(&flate->stream));
}

void FlateParams(const Info& info) {
	Flate* flate = FlateOf(info);
	if (flate == nullptr || !flate->deflates) return;
	// zlib brings what it has to its end first, and refuses to without a place to write to. Whoever wants what is left flushes
	// before.
	uint8_t nowhere;
	flate->stream.next_out = &nowhere;
	int status = deflateParams(&flate->stream, IntegerOf(info[1], -1), IntegerOf(info[2], 0));
	flate->stream.next_out = nullptr;
	info.GetReturnValue().Set(status);
}

constexpr int kProcess = 0, kFlush = 1, kFinish = 2, kMetadata = 3;
enum { kModeParameter, kQuality, kWindow, kBlock, kContextModeling, kSizeHint, kLargeWindow, kPostfix, kDirect, kParameters };
// From this quality on, brotli reads a block again and again, and a meta-block of many megabytes at once: blocks are kept small,
// and a meta-block ends after a few of them, which makes the text a little longer.
constexpr uint32_t kThoroughQuality = 10, kLargeBlockQuality = 9, kBlockBits = 16;
constexpr size_t kMetaBlock = 128 * 1024;

// In front of what an encoder has asked for: a list of all of it.
struct Piece {
	Piece* next;
	Piece* previous;
};

struct Brotli : Native {
	void* encoder;
	void* decoder;
	v8::Isolate* isolate;
	// The call that runs, which its memory is asked for in; null while there is none.
	const Info* info;
	// Where an encoder goes that gets no memory.
	jmp_buf* way_out;
	Piece* pieces;
	uint32_t quality;
	size_t since_flush;
	bool is_flushing;

	static void Destroy(Native* native) {
		Brotli* brotli = static_cast<Brotli*>(native);
		brotli->info = nullptr;
		DropEncoder(brotli);
		if (brotli->decoder != nullptr) BrotliDecoderDestroyInstance(brotli->decoder);
	}

	// Frees all that the encoder has. It may be in the midst of its work, so nobody asks it.
	static void DropEncoder(Brotli* brotli) {
		while (brotli->pieces != nullptr) {
			Piece* piece = brotli->pieces;
			brotli->pieces = piece->next;
			CountedFree(piece);
		}
		brotli->encoder = nullptr;
	}
};

// brotli asks for memory between the steps of its work; null if there is none, or the isolate is being ended.
void* AllocBrotli(void* opaque, size_t size) {
	Brotli* brotli = static_cast<Brotli*>(opaque);
	if (brotli->info != nullptr && !Poll(*brotli->info)) return nullptr;
	return CountedAlloc(brotli->isolate, size);
}

void FreeBrotli(void*, void* memory) { CountedFree(memory); }

// As Node.js builds it, the encoder ends the process when it gets no memory. So it is left by a jump instead: between it and
// here is only C, of brotli, which keeps nothing outside of the memory that it asks for.
void* AllocForEncoder(void* opaque, size_t size) {
	Brotli* brotli = static_cast<Brotli*>(opaque);
	Piece* piece = static_cast<Piece*>(AllocBrotli(opaque, size + sizeof(Piece)));
	if (piece == nullptr) longjmp(*brotli->way_out, 1);
	*piece = {brotli->pieces, nullptr};
	if (piece->next != nullptr) piece->next->previous = piece;
	brotli->pieces = piece;
	return piece + 1;
}

void FreeForEncoder(void* opaque, void* memory) {
	if (memory == nullptr) return;
	Piece* piece = static_cast<Piece*>(memory) - 1;
	if (piece->next != nullptr) piece->next->previous = piece->previous;
	if (piece->previous != nullptr) {
		piece->previous->next = piece->next;
	} else {
		static_cast<Brotli*>(opaque)->pieces = piece->next;
	}
	CountedFree(piece);
}

// The encoder is null if there is no memory for it.
void MakeEncoder(Brotli* brotli) {
	jmp_buf way_out;
	brotli->way_out = &way_out;
	if (setjmp(way_out) != 0) return;
	brotli->encoder = BrotliEncoderCreateInstance(AllocForEncoder, FreeForEncoder, brotli);
}

bool SetParameter(Brotli* brotli, int parameter, uint32_t value) {
	if (brotli->decoder != nullptr) return parameter == 0 && BrotliDecoderSetParameter(brotli->decoder, 0, value) == 1;
	// A large window takes up to a gigabyte.
	if (parameter == kLargeWindow) return value == 0;
	if (parameter < 0 || parameter >= kParameters) return false;
	if (parameter == kQuality) brotli->quality = value;
	if (parameter == kBlock && value > kBlockBits) value = kBlockBits;
	return BrotliEncoderSetParameter(brotli->encoder, parameter, value) == 1;
}

// brotliNew(encodes, parameters): those are a Uint32Array of numbers in pairs, each an encoder's or decoder's parameter and its
// value. Undefined if one of them is not possible.
void BrotliNew(const Info& info) {
	Brotli* brotli = MakeNative<Brotli>();
	if (brotli == nullptr) return ThrowMemory(info);
	Bytes parameters(info[1]);
	brotli->isolate = info.GetIsolate();
	brotli->quality = 11;
	if (info[0]->IsTrue()) {
		MakeEncoder(brotli);
	} else {
		brotli->decoder = BrotliDecoderCreateInstance(AllocBrotli, FreeBrotli, brotli);
	}
	bool is_made = brotli->encoder != nullptr || brotli->decoder != nullptr;
	bool is_set = is_made;
	for (size_t at = 0; is_set && at + 8 <= parameters.size() && at < 512; at += 8) {
		uint32_t pair[2];
		memcpy(pair, parameters.data() + at, sizeof(pair));
		is_set = SetParameter(brotli, static_cast<int>(pair[0]), pair[1]);
	}
	if (is_set && brotli->encoder != nullptr && brotli->quality >= kLargeBlockQuality) {
		BrotliEncoderSetParameter(brotli->encoder, kBlock, kBlockBits);
	}
	if (is_set) return Return(info, brotli, sizeof(Brotli));
	Drop(brotli);
	if (!is_made) ThrowMemory(info);
}

enum { kGoesOn, kFinished, kMoreOutput, kFailed };

int Encode(Brotli* brotli, Run& run, int operation) {
	void* encoder = brotli->encoder;
	if (!run.is_last) operation = kProcess;
	bool is_thorough = brotli->quality >= kThoroughQuality;
	if (operation == kProcess && is_thorough && brotli->since_flush >= kMetaBlock) operation = kFlush;
	// What was begun must be brought to its end before anything else goes in.
	size_t held_back = 0;
	if (brotli->is_flushing) {
		held_back = run.available_in;
		run.available_in = 0;
		operation = kFlush;
	}
	size_t before = run.available_in;
	if (BrotliEncoderCompressStream(
			encoder, operation, &run.available_in, &run.from, &run.available_out, &run.to, nullptr) != 1) {
		return kFailed;
	}
	brotli->since_flush += before - run.available_in;
	bool has_more = BrotliEncoderHasMoreOutput(encoder) == 1;
	if (operation == kFlush) {
		brotli->is_flushing = run.available_in > 0 || has_more;
		brotli->since_flush = 0;
	}
	run.available_in += held_back;
	if (BrotliEncoderIsFinished(encoder) == 1) return kFinished;
	return has_more ? kMoreOutput : kGoesOn;
}

int Decode(Brotli* brotli, Run& run) {
	int result = BrotliDecoderDecompressStream(
		brotli->decoder, &run.available_in, &run.from, &run.available_out, &run.to, nullptr);
	return result == 0 ? kFailed : result == 1 ? kFinished : result == 3 ? kMoreOutput : kGoesOn;
}

// brotliRun(brotli, input, at, end, output, outputAt, operation)
void BrotliRun(const Info& info) {
	Brotli* brotli = Get<Brotli>(info[0]);
	if (brotli == nullptr) return ThrowError(info, "There is nothing to compress with.");
	Run run(info, kSlowSlice);
	int operation = IntegerOf(info[6], kProcess);
	if (operation < kProcess || operation >= kMetadata) return ThrowError(info, "There is no such operation.");
	if (brotli->encoder == nullptr && brotli->decoder == nullptr) return ThrowMemory(info);
	const size_t in = run.available_in, out = run.available_out;
	jmp_buf way_out;
	brotli->way_out = &way_out;
	if (setjmp(way_out) != 0) {
		brotli->info = nullptr;
		Brotli::DropEncoder(brotli);
		v8::Isolate* isolate = info.GetIsolate();
		if (!isolate->HasPendingException() && !isolate->IsExecutionTerminating()) ThrowMemory(info);
		return;
	}
	brotli->info = &info;
	int status = brotli->encoder != nullptr ? Encode(brotli, run, operation) : Decode(brotli, run);
	brotli->info = nullptr;
	if (info.GetIsolate()->HasPendingException()) return;
	ReturnRun(info, status, in - run.available_in, out - run.available_out);
}

// brotliMessage(brotli): what was wrong with the text, as the decoder names it.
void BrotliMessage(const Info& info) {
	Brotli* brotli = Get<Brotli>(info[0]);
	if (brotli == nullptr || brotli->decoder == nullptr) return;
	const char* text = BrotliDecoderErrorString(BrotliDecoderGetErrorCode(brotli->decoder));
	info.GetReturnValue().Set(v8::String::NewFromUtf8(info.GetIsolate(), text).ToLocalChecked());
}

// crc(bytes, at, value): of the next 512 KiB.
void Crc(const Info& info) {
	Bytes bytes(info[0]);
	size_t at = PositionOf(info[1], bytes.size());
	size_t count = bytes.size() - at < kFastSlice ? bytes.size() - at : kFastSlice;
	uint32_t before = info[2]->IsUint32() ? info[2].As<v8::Uint32>()->Value() : 0;
	info.GetReturnValue().Set(static_cast<uint32_t>(crc32(before, bytes.data() + at, static_cast<unsigned>(count))));
}

}  // namespace

const NativeFunction kCompressionFunctions[] = {
	{"flateNew", FlateNew},
	{"flateRun", FlateRun},
	{"flateMessage", FlateMessage},
	{"flateDictionary", FlateDictionary},
	{"flateReset", FlateReset},
	{"flateParams", FlateParams},
	{"brotliNew", BrotliNew},
	{"brotliRun", BrotliRun},
	{"brotliMessage", BrotliMessage},
	{"crc", Crc},
	{nullptr, nullptr},
};
