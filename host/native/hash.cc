// Digests, HMAC, and what of key derivation is made of them and takes long.
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "natives.h"

namespace {

// What a context of OpenSSL takes, in bytes, with the largest state of a digest.
constexpr size_t kContextBytes = 1024;
// An extendable digest gives no more at once.
constexpr size_t kMostOutput = 1 << 20;

struct Hash : Native {
	EVP_MD_CTX* inner;
	// For HMAC: the digest that is put around the other; null for a plain digest.
	EVP_MD_CTX* outer;
	bool has_ended;

	static void Destroy(Native* native) {
		Hash* hash = static_cast<Hash*>(native);
		EVP_MD_CTX_free(hash->inner);
		EVP_MD_CTX_free(hash->outer);
	}
};

// RFC 2104: the key, or zeroes, with each byte combined with `pad`.
bool StartPadded(EVP_MD_CTX* context, const EVP_MD* digest, const Bytes& key, int block, uint8_t pad) {
	uint8_t padded[256];
	memset(padded, pad, sizeof(padded));
	for (size_t index = 0; index < key.size(); index++) padded[index] ^= key.data()[index];
	bool is_done = EVP_DigestInit_ex(context, digest, nullptr) == 1 && EVP_DigestUpdate(context, padded, block) == 1;
	OPENSSL_cleanse(padded, sizeof(padded));
	return is_done;
}

bool StartHmac(Hash* hash, const EVP_MD* digest, const Bytes& key) {
	int block = EVP_MD_get_block_size(digest);
	hash->outer = EVP_MD_CTX_new();
	if (hash->outer == nullptr || block <= 1 || block > 256 || key.size() > static_cast<size_t>(block)) return false;
	return StartPadded(hash->inner, digest, key, block, 0x36) && StartPadded(hash->outer, digest, key, block, 0x5c);
}

// hashNew(name, key): undefined if there is no such digest. With a key, which is no longer than a block, it is HMAC.
void HashNew(const Info& info) {
	Name name(info.GetIsolate(), info[0]);
	EVP_MD* digest = EVP_MD_fetch(nullptr, name.text, nullptr);
	if (digest == nullptr) return;
	Hash* hash = MakeNative<Hash>();
	bool is_keyed = !info[1]->IsUndefined();
	bool is_started = hash != nullptr && (hash->inner = EVP_MD_CTX_new()) != nullptr &&
		(is_keyed ? StartHmac(hash, digest, Bytes(info[1])) : EVP_DigestInit_ex(hash->inner, digest, nullptr) == 1);
	EVP_MD_free(digest);
	if (is_started) return Return(info, hash, kContextBytes * (is_keyed ? 2 : 1));
	if (hash != nullptr) Drop(hash);
	ThrowOpenSsl(info, "The digest cannot be used so.");
}

// hashInfo(name): bytes of its result, and of its block times 2^16; undefined if there is no such digest.
void HashInfo(const Info& info) {
	EVP_MD* digest = EVP_MD_fetch(nullptr, Name(info.GetIsolate(), info[0]).text, nullptr);
	if (digest == nullptr) return;
	info.GetReturnValue().Set(EVP_MD_get_size(digest) + (EVP_MD_get_block_size(digest) << 16));
	EVP_MD_free(digest);
}

// hashUpdate(hash, bytes, at): returns where it stopped.
void HashUpdate(const Info& info) {
	Hash* hash = Get<Hash>(info[0]);
	Bytes bytes(info[1]);
	size_t at = PositionOf(info[2], bytes.size());
	size_t count = bytes.size() - at < kFastSlice ? bytes.size() - at : kFastSlice;
	if (hash == nullptr || hash->has_ended) return ThrowError(info, "The digest has ended.");
	if (EVP_DigestUpdate(hash->inner, bytes.data() + at, count) != 1) return ThrowOpenSsl(info, "The digest failed.");
	info.GetReturnValue().Set(static_cast<double>(at + count));
}

// Ends a digest, or HMAC. `inner` and `scratch` are used up, `outer` is not. Returns whether it worked.
bool Finish(EVP_MD_CTX* inner, const EVP_MD_CTX* outer, EVP_MD_CTX* scratch, uint8_t* result, unsigned* size) {
	if (EVP_DigestFinal_ex(inner, result, size) != 1) return false;
	if (outer == nullptr) return true;
	return EVP_MD_CTX_copy_ex(scratch, outer) == 1 && EVP_DigestUpdate(scratch, result, *size) == 1 &&
		EVP_DigestFinal_ex(scratch, result, size) == 1;
}

// hashDigest(hash, size): ends it. The size counts only where a digest gives as much as one likes.
void HashDigest(const Info& info) {
	Hash* hash = Get<Hash>(info[0]);
	if (hash == nullptr || hash->has_ended) return ThrowError(info, "The digest has ended.");
	const EVP_MD* digest = EVP_MD_CTX_get0_md(hash->inner);
	hash->has_ended = true;
	if ((EVP_MD_get_flags(digest) & EVP_MD_FLAG_XOF) != 0 && info[1]->IsUint32()) {
		size_t wanted = info[1].As<v8::Uint32>()->Value();
		v8::Local<v8::ArrayBuffer> buffer;
		if (wanted > kMostOutput) return ThrowError(info, "A digest gives 1 MiB at most.");
		uint8_t* output = NewBytes(info, wanted, &buffer);
		if (output == nullptr) return;
		if (wanted > 0 && EVP_DigestFinalXOF(hash->inner, output, wanted) != 1) return ThrowOpenSsl(info, "The digest failed.");
		return info.GetReturnValue().Set(buffer);
	}
	uint8_t result[EVP_MAX_MD_SIZE];
	unsigned size = 0;
	// What HMAC keeps for a second time is not needed any more.
	bool is_done = EVP_DigestFinal_ex(hash->inner, result, &size) == 1;
	if (is_done && hash->outer != nullptr) {
		is_done = EVP_DigestUpdate(hash->outer, result, size) == 1 && EVP_DigestFinal_ex(hash->outer, result, &size) == 1;
	}
	if (!is_done) return ThrowOpenSsl(info, "The digest failed.");
	ReturnBytes(info, result, size);
}

// hashCopy(hash): another that goes on from where this one is.
void HashCopy(const Info& info) {
	Hash* hash = Get<Hash>(info[0]);
	if (hash == nullptr || hash->has_ended) return ThrowError(info, "The digest has ended.");
	Hash* copy = MakeNative<Hash>();
	bool is_copied = copy != nullptr && (copy->inner = EVP_MD_CTX_new()) != nullptr &&
		EVP_MD_CTX_copy_ex(copy->inner, hash->inner) == 1;
	if (is_copied && hash->outer != nullptr) {
		is_copied = (copy->outer = EVP_MD_CTX_new()) != nullptr && EVP_MD_CTX_copy_ex(copy->outer, hash->outer) == 1;
	}
	if (is_copied) return Return(info, copy, kContextBytes * (hash->outer == nullptr ? 1 : 2));
	if (copy != nullptr) Drop(copy);
	ThrowOpenSsl(info, "The digest cannot be copied.");
}

constexpr uint32_t kIterations = 2048;

// hmacIterate(hmac, last, sum, count): what PBKDF2 does `count` times, 2048 at most (RFC 8018, section 5.2): `last` becomes its
// own HMAC, and `sum` is combined with it. The HMAC itself stays as it was made. Returns how often it did.
void HmacIterate(const Info& info) {
	Hash* hash = Get<Hash>(info[0]);
	if (hash == nullptr || hash->outer == nullptr || hash->has_ended) return ThrowError(info, "There is no HMAC to iterate.");
	size_t size = static_cast<size_t>(EVP_MD_CTX_get_size(hash->inner));
	Room last(info[1]), sum(info[2]);
	if (last.size != size || sum.size != size) return ThrowError(info, "The parts are as long as the digest.");
	uint32_t count = info[3]->IsUint32() ? info[3].As<v8::Uint32>()->Value() : 0;
	if (count > kIterations) count = kIterations;
	EVP_MD_CTX *inner = EVP_MD_CTX_new(), *outer = EVP_MD_CTX_new();
	uint8_t value[EVP_MAX_MD_SIZE];
	memcpy(value, last.data, size);
	bool is_done = inner != nullptr && outer != nullptr;
	for (uint32_t times = 0; times < count && is_done; times++) {
		unsigned length = 0;
		is_done = EVP_MD_CTX_copy_ex(inner, hash->inner) == 1 && EVP_DigestUpdate(inner, value, size) == 1 &&
			Finish(inner, hash->outer, outer, value, &length);
		for (size_t index = 0; index < size; index++) sum.data[index] ^= value[index];
	}
	memcpy(last.data, value, size);
	OPENSSL_cleanse(value, sizeof(value));
	EVP_MD_CTX_free(inner);
	EVP_MD_CTX_free(outer);
	if (!is_done) return ThrowOpenSsl(info, "The HMAC failed.");
	info.GetReturnValue().Set(count);
}

// scrypt's ROMix (RFC 7914, section 5) of one block, which needs all its memory at once, and goes step by step. OpenSSL's own
// cannot be interrupted.
struct Mix : Native {
	uint32_t* table;
	uint32_t* block;
	uint32_t* scratch;
	uint32_t n, r;
	// Steps that were made, of 2n.
	uint64_t at;

	size_t words() const { return 32 * static_cast<size_t>(r); }

	static void Destroy(Native* native) { CountedFree(static_cast<Mix*>(native)->table); }
};

// A step of a block of this size takes half a millisecond.
constexpr uint32_t kMostR = 1024;
// Calls of the Salsa20/8 core for each slice.
constexpr uint32_t kMixSlice = 16384;

inline uint32_t Rotate(uint32_t value, int bits) { return (value << bits) | (value >> (32 - bits)); }

// RFC 7914, section 3.
void Salsa(uint32_t (&b)[16]) {
	uint32_t x[16];
	memcpy(x, b, sizeof(x));
	for (int round = 0; round < 8; round += 2) {
		x[4] ^= Rotate(x[0] + x[12], 7), x[8] ^= Rotate(x[4] + x[0], 9);
		x[12] ^= Rotate(x[8] + x[4], 13), x[0] ^= Rotate(x[12] + x[8], 18);
		x[9] ^= Rotate(x[5] + x[1], 7), x[13] ^= Rotate(x[9] + x[5], 9);
		x[1] ^= Rotate(x[13] + x[9], 13), x[5] ^= Rotate(x[1] + x[13], 18);
		x[14] ^= Rotate(x[10] + x[6], 7), x[2] ^= Rotate(x[14] + x[10], 9);
		x[6] ^= Rotate(x[2] + x[14], 13), x[10] ^= Rotate(x[6] + x[2], 18);
		x[3] ^= Rotate(x[15] + x[11], 7), x[7] ^= Rotate(x[3] + x[15], 9);
		x[11] ^= Rotate(x[7] + x[3], 13), x[15] ^= Rotate(x[11] + x[7], 18);
		x[1] ^= Rotate(x[0] + x[3], 7), x[2] ^= Rotate(x[1] + x[0], 9);
		x[3] ^= Rotate(x[2] + x[1], 13), x[0] ^= Rotate(x[3] + x[2], 18);
		x[6] ^= Rotate(x[5] + x[4], 7), x[7] ^= Rotate(x[6] + x[5], 9);
		x[4] ^= Rotate(x[7] + x[6], 13), x[5] ^= Rotate(x[4] + x[7], 18);
		x[11] ^= Rotate(x[10] + x[9], 7), x[8] ^= Rotate(x[11] + x[10], 9);
		x[9] ^= Rotate(x[8] + x[11], 13), x[10] ^= Rotate(x[9] + x[8], 18);
		x[12] ^= Rotate(x[15] + x[14], 7), x[13] ^= Rotate(x[12] + x[15], 9);
		x[14] ^= Rotate(x[13] + x[12], 13), x[15] ^= Rotate(x[14] + x[13], 18);
	}
	for (int index = 0; index < 16; index++) b[index] += x[index];
}

// RFC 7914, section 4.
void MixBlock(uint32_t* block, uint32_t* scratch, uint32_t r) {
	uint32_t x[16];
	memcpy(x, block + 16 * (2 * static_cast<size_t>(r) - 1), sizeof(x));
	for (uint32_t part = 0; part < 2 * r; part++) {
		for (int index = 0; index < 16; index++) x[index] ^= block[16 * part + index];
		Salsa(x);
		memcpy(scratch + 16 * (static_cast<size_t>(part / 2) + (part % 2) * r), x, sizeof(x));
	}
	memcpy(block, scratch, 128 * static_cast<size_t>(r));
}

// mixNew(block, n, r): the block has 128 r bytes, and n is a power of two.
void MixNew(const Info& info) {
	Bytes block(info[0]);
	uint32_t n = info[1]->IsUint32() ? info[1].As<v8::Uint32>()->Value() : 0;
	uint32_t r = info[2]->IsUint32() ? info[2].As<v8::Uint32>()->Value() : 0;
	if (n < 2 || (n & (n - 1)) != 0 || r < 1 || r > kMostR || block.size() != 128 * static_cast<size_t>(r)) {
		return ThrowError(info, "N is a power of two above 1, r is 1 to 1024, and the block has 128 r bytes.");
	}
	Mix* mix = MakeNative<Mix>();
	if (mix == nullptr) return ThrowMemory(info);
	mix->n = n;
	mix->r = r;
	size_t words = mix->words();
	// At most 2^31 times 2^17 bytes, which fits into 64 bits.
	mix->table = static_cast<uint32_t*>(CountedAlloc(info.GetIsolate(), (static_cast<size_t>(n) + 2) * words * 4));
	if (mix->table == nullptr) {
		Drop(mix);
		return ThrowMemory(info);
	}
	mix->block = mix->table + n * words;
	mix->scratch = mix->block + words;
	memcpy(mix->block, block.data(), words * 4);
	Return(info, mix, sizeof(Mix));
}

// mixStep(mix): goes on for a while. Returns whether it is done.
void MixStep(const Info& info) {
	Mix* mix = Get<Mix>(info[0]);
	if (mix == nullptr) return ThrowError(info, "There is nothing to mix.");
	size_t words = mix->words();
	uint32_t steps = kMixSlice / (2 * mix->r);
	for (steps = steps > 0 ? steps : 1; steps > 0 && mix->at < 2 * static_cast<uint64_t>(mix->n); steps--, mix->at++) {
		if (mix->at < mix->n) {
			memcpy(mix->table + mix->at * words, mix->block, words * 4);
		} else {
			const uint32_t* row = mix->table + (mix->block[words - 16] & (mix->n - 1)) * words;
			for (size_t index = 0; index < words; index++) mix->block[index] ^= row[index];
		}
		MixBlock(mix->block, mix->scratch, mix->r);
	}
	info.GetReturnValue().Set(mix->at == 2 * static_cast<uint64_t>(mix->n));
}

// mixResult(mix): the block.
void MixResult(const Info& info) {
	Mix* mix = Get<Mix>(info[0]);
	if (mix == nullptr) return ThrowError(info, "There is nothing to mix.");
	ReturnBytes(info, reinterpret_cast<uint8_t*>(mix->block), mix->words() * 4);
}

constexpr size_t kMostCompared = 16 << 20;

// equal(one, other): in a time that says nothing about what is in them. They are equally long.
void Equal(const Info& info) {
	Bytes one(info[0]), other(info[1]);
	if (one.size() > kMostCompared) return ThrowError(info, "What is compared has 16 MiB at most.");
	info.GetReturnValue().Set(one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0);
}

}  // namespace

const NativeFunction kHashFunctions[] = {
	{"hashNew", Clearing<HashNew>},
	{"hashInfo", Clearing<HashInfo>},
	{"hashUpdate", Clearing<HashUpdate>},
	{"hashDigest", Clearing<HashDigest>},
	{"hashCopy", Clearing<HashCopy>},
	{"hmacIterate", Clearing<HmacIterate>},
	{"mixNew", MixNew},
	{"mixStep", MixStep},
	{"mixResult", MixResult},
	{"equal", Equal},
	{nullptr, nullptr},
};
