// Symmetric ciphers.
#include <openssl/evp.h>

#include "natives.h"

namespace {

// What a context of OpenSSL takes, in bytes, with the largest state of a cipher.
constexpr size_t kContextBytes = 2048;
// A wrapped key goes in at once, in six rounds (RFC 3394).
constexpr size_t kMostWrapped = 256 * 1024;
constexpr size_t kMostTag = 16;
// A mode with feedback of less than a block works through all of its cipher for each bit, or each byte.
constexpr size_t kFeedbackSlice = 8 * 1024;

struct Cipher : Native {
	EVP_CIPHER_CTX* context;
	bool is_encrypting, is_aead, is_wrap;
	// Nothing goes in any more.
	bool has_ended;
	// It knows what tag the text is to have.
	bool has_tag;
	size_t tag_length;
	// The most that a call takes.
	size_t slice;

	static void Destroy(Native* native) { EVP_CIPHER_CTX_free(static_cast<Cipher*>(native)->context); }
};

size_t SliceOf(const EVP_CIPHER* cipher) {
	const char* name = EVP_CIPHER_get0_name(cipher);
	size_t length = strlen(name);
	const char* end = name + (length < 4 ? 0 : length - 4);
	bool is_fine = strcmp(end, "CFB1") == 0 || strcmp(end, "CFB8") == 0;
	return EVP_CIPHER_get_mode(cipher) == EVP_CIPH_CFB_MODE && is_fine ? kFeedbackSlice : kFastSlice;
}

bool IsAead(const EVP_CIPHER* cipher) { return (EVP_CIPHER_get_flags(cipher) & EVP_CIPH_FLAG_AEAD_CIPHER) != 0; }

// Ciphers that can be given their text in pieces. Null if there is none of the name, or it is of another kind: CCM and SIV take
// all at once, and XTS has its own idea of a piece.
EVP_CIPHER* CipherNamed(const char* name) {
	EVP_CIPHER* cipher = EVP_CIPHER_fetch(nullptr, name, nullptr);
	if (cipher == nullptr) return nullptr;
	bool is_composed = strstr(EVP_CIPHER_get0_name(cipher), "HMAC") != nullptr;
	switch (EVP_CIPHER_get_mode(cipher)) {
		case EVP_CIPH_STREAM_CIPHER:
		case EVP_CIPH_ECB_MODE:
		case EVP_CIPH_CBC_MODE:
		case EVP_CIPH_CFB_MODE:
		case EVP_CIPH_OFB_MODE:
		case EVP_CIPH_CTR_MODE:
		case EVP_CIPH_GCM_MODE:
		case EVP_CIPH_OCB_MODE:
		case EVP_CIPH_WRAP_MODE:
			if (!is_composed) return cipher;
	}
	EVP_CIPHER_free(cipher);
	return nullptr;
}

// cipherInfo(name): its mode, the bytes of its key, of its IV and of its block; undefined if there is none.
void CipherInfo(const Info& info) {
	v8::Isolate* isolate = info.GetIsolate();
	EVP_CIPHER* cipher = CipherNamed(Name(isolate, info[0]).text);
	if (cipher == nullptr) return;
	v8::Local<v8::Value> facts[] = {
		v8::Integer::New(isolate, EVP_CIPHER_get_mode(cipher)),
		v8::Integer::New(isolate, EVP_CIPHER_get_key_length(cipher)),
		v8::Integer::New(isolate, EVP_CIPHER_get_iv_length(cipher)),
		v8::Integer::New(isolate, EVP_CIPHER_get_block_size(cipher)),
		v8::Integer::New(isolate, EVP_CIPHER_get_nid(cipher)),
		v8::Boolean::New(isolate, IsAead(cipher)),
	};
	EVP_CIPHER_free(cipher);
	info.GetReturnValue().Set(v8::Array::New(isolate, facts, sizeof(facts) / sizeof(facts[0])));
}

// Returns what is wrong with the arguments; null if nothing is.
const char* Init(Cipher* made, const EVP_CIPHER* cipher, const Bytes& key, const Bytes& iv) {
	EVP_CIPHER_CTX* context = made->context;
	int encrypts = made->is_encrypting;
	if (made->is_wrap) EVP_CIPHER_CTX_set_flags(context, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
	if (EVP_CipherInit_ex(context, cipher, nullptr, nullptr, nullptr, encrypts) != 1) return "The cipher cannot be used.";
	if (static_cast<int>(key.size()) != EVP_CIPHER_get_key_length(cipher)) return "Invalid key length";
	bool has_other_length = static_cast<int>(iv.size()) != EVP_CIPHER_get_iv_length(cipher);
	if (has_other_length) {
		if (!made->is_aead || iv.size() == 0 || iv.size() > 128) return "Invalid initialization vector";
		if (EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, iv.length(), nullptr) != 1) return "Invalid initialization vector";
	}
	// It must know before the key how long its tag is to be, or it compares none of it. GCM takes what length the tag has.
	if (made->is_aead && EVP_CIPHER_get_mode(cipher) != EVP_CIPH_GCM_MODE) {
		int length = static_cast<int>(made->tag_length);
		if (EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, length, nullptr) != 1) return "Invalid authentication tag length";
	}
	const uint8_t* start = iv.size() == 0 ? nullptr : iv.data();
	if (EVP_CipherInit_ex(context, nullptr, nullptr, key.data(), start, encrypts) != 1) return "The cipher cannot be used.";
	return nullptr;
}

// cipherNew(name, encrypts, key, iv, tagLength): undefined if there is no such cipher.
void CipherNew(const Info& info) {
	EVP_CIPHER* cipher = CipherNamed(Name(info.GetIsolate(), info[0]).text);
	if (cipher == nullptr) return;
	Cipher* made = MakeNative<Cipher>();
	const char* wrong = "There is no memory.";
	if (made != nullptr && (made->context = EVP_CIPHER_CTX_new()) != nullptr) {
		int32_t tag_length = IntegerOf(info[4], kMostTag);
		made->is_encrypting = info[1]->IsTrue();
		made->is_aead = IsAead(cipher);
		made->slice = SliceOf(cipher);
		made->is_wrap = EVP_CIPHER_get_mode(cipher) == EVP_CIPH_WRAP_MODE;
		made->tag_length = tag_length < 1 || tag_length > static_cast<int32_t>(kMostTag) ? kMostTag : tag_length;
		wrong = Init(made, cipher, Bytes(info[2]), Bytes(info[3]));
	}
	EVP_CIPHER_free(cipher);
	if (wrong == nullptr) return Return(info, made, kContextBytes);
	if (made != nullptr) Drop(made);
	ThrowError(info, wrong);
}

Cipher* CipherOf(const Info& info) {
	Cipher* cipher = Get<Cipher>(info[0]);
	if (cipher != nullptr && !cipher->has_ended) return cipher;
	ThrowError(info, "The cipher has ended.");
	return nullptr;
}

// cipherPadding(cipher, pads)
void CipherPadding(const Info& info) {
	Cipher* cipher = CipherOf(info);
	if (cipher != nullptr) EVP_CIPHER_CTX_set_padding(cipher->context, info[1]->IsTrue());
}

// cipherSetTag(cipher, tag): what the text that is decrypted must turn out to have. Returns whether it can have it.
void CipherSetTag(const Info& info) {
	Cipher* cipher = CipherOf(info);
	if (cipher == nullptr) return;
	Bytes tag(info[1]);
	uint8_t copy[kMostTag];
	info.GetReturnValue().Set(false);
	if (!cipher->is_aead || cipher->is_encrypting || tag.size() == 0 || tag.size() > kMostTag) return;
	bool is_gcm = EVP_CIPHER_CTX_get_mode(cipher->context) == EVP_CIPH_GCM_MODE;
	if (!is_gcm && tag.size() != cipher->tag_length) return;
	memcpy(copy, tag.data(), tag.size());
	if (EVP_CIPHER_CTX_ctrl(cipher->context, EVP_CTRL_AEAD_SET_TAG, tag.length(), copy) == 1) cipher->has_tag = true;
	info.GetReturnValue().Set(cipher->has_tag);
}

// cipherAad(cipher, bytes, at): what is authenticated and not encrypted. Returns where it stopped.
void CipherAad(const Info& info) {
	Cipher* cipher = CipherOf(info);
	if (cipher == nullptr) return;
	if (!cipher->is_aead) return ThrowError(info, "The cipher authenticates nothing.");
	Bytes bytes(info[1]);
	size_t at = PositionOf(info[2], bytes.size());
	size_t count = bytes.size() - at < kFastSlice ? bytes.size() - at : kFastSlice;
	int written = 0;
	if (count > 0 && EVP_CipherUpdate(cipher->context, nullptr, &written, bytes.data() + at, static_cast<int>(count)) != 1) {
		return ThrowOpenSsl(info, "The cipher failed.");
	}
	info.GetReturnValue().Set(static_cast<double>(at + count));
}

// cipherSlice(cipher): the most that a call of cipherUpdate takes, in bytes.
void CipherSlice(const Info& info) {
	Cipher* cipher = CipherOf(info);
	if (cipher != nullptr) info.GetReturnValue().Set(static_cast<double>(cipher->slice));
}

// cipherUpdate(cipher, bytes, at, size, output, outputAt): takes up to so many bytes, of the slice that it is given, and
// returns how many it wrote. The output has room for a block more.
void CipherUpdate(const Info& info) {
	Cipher* cipher = CipherOf(info);
	if (cipher == nullptr) return;
	Bytes bytes(info[1]);
	Room output(info[4]);
	size_t at = PositionOf(info[2], bytes.size());
	size_t count = PositionOf(info[3], bytes.size() - at);
	size_t output_at = PositionOf(info[5], output.size);
	int written = 0;
	if (count > cipher->slice || (cipher->is_wrap && count > kMostWrapped)) return ThrowError(info, "That is too much at once.");
	if (output.size - output_at < count + EVP_MAX_BLOCK_LENGTH) return ThrowError(info, "There is no room for the output.");
	if (count > 0) {
		uint8_t* to = output.data + output_at;
		const uint8_t* from = bytes.data() + at;
		// What overlaps in part it would get wrong.
		bool overlaps = from < to + count + EVP_MAX_BLOCK_LENGTH && to < from + count;
		if (overlaps) return ThrowError(info, "Input and output overlap.");
		if (EVP_CipherUpdate(cipher->context, to, &written, from, static_cast<int>(count)) != 1) {
			return ThrowOpenSsl(info, "The cipher failed.");
		}
	}
	info.GetReturnValue().Set(written);
}

// cipherFinal(cipher): the rest. It throws if the text is not what was encrypted, as far as the cipher can tell.
void CipherFinal(const Info& info) {
	Cipher* cipher = CipherOf(info);
	if (cipher == nullptr) return;
	cipher->has_ended = true;
	uint8_t rest[EVP_MAX_BLOCK_LENGTH];
	int written = 0;
	// What nobody gave a tag of is not authentic, though not every cipher of OpenSSL says so. A wrapped key came out whole.
	bool can_tell = !cipher->is_aead || cipher->is_encrypting || cipher->has_tag;
	bool is_done = can_tell && (cipher->is_wrap || EVP_CipherFinal_ex(cipher->context, rest, &written) == 1);
	if (!is_done && cipher->is_aead) return ThrowError(info, "Unsupported state or unable to authenticate data");
	if (!is_done) return ThrowOpenSsl(info, "The cipher failed.");
	ReturnBytes(info, rest, static_cast<size_t>(written));
}

// cipherTag(cipher): after the end of what was encrypted.
void CipherTag(const Info& info) {
	Cipher* cipher = Get<Cipher>(info[0]);
	uint8_t tag[kMostTag];
	if (cipher == nullptr || !cipher->is_aead || !cipher->is_encrypting || !cipher->has_ended) {
		return ThrowError(info, "There is no tag.");
	}
	int length = static_cast<int>(cipher->tag_length);
	if (EVP_CIPHER_CTX_ctrl(cipher->context, EVP_CTRL_AEAD_GET_TAG, length, tag) != 1) {
		return ThrowOpenSsl(info, "There is no tag.");
	}
	ReturnBytes(info, tag, cipher->tag_length);
}

}  // namespace

const NativeFunction kCipherFunctions[] = {
	{"cipherInfo", Clearing<CipherInfo>},
	{"cipherNew", Clearing<CipherNew>},
	{"cipherPadding", Clearing<CipherPadding>},
	{"cipherSetTag", Clearing<CipherSetTag>},
	{"cipherAad", Clearing<CipherAad>},
	{"cipherSlice", CipherSlice},
	{"cipherUpdate", Clearing<CipherUpdate>},
	{"cipherFinal", Clearing<CipherFinal>},
	{"cipherTag", Clearing<CipherTag>},
	{nullptr, nullptr},
};
