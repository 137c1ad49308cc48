// Asymmetric keys, and what is done with them.
//
// Nothing here can be interrupted but to make a key, so keys are of kinds and sizes with which nothing takes long.
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include "natives.h"

namespace {

constexpr int kMostRsaBits = 8192;
// Of private keys that somebody brings: where the numbers for each factor are wrong, OpenSSL notices, and computes all again
// without them, which takes many times as long.
constexpr int kMostGivenBits = 4096;
// An RSA key of 8192 bits has less than 5 KB.
constexpr size_t kMostKeyBytes = 16 * 1024;
// Ed25519 and Ed448 read what they sign twice, and at once.
constexpr size_t kMostSigned = 16 << 20;
constexpr size_t kMostLabel = 64 * 1024;
// The longest signature and the longest RSA text.
constexpr size_t kMostResult = kMostRsaBits / 8 + 16;

struct Key : Native {
	EVP_PKEY* key;

	static void Destroy(Native* native) { EVP_PKEY_free(static_cast<Key*>(native)->key); }
};

bool FitsInto(const EVP_PKEY* key, const char* name, int bits) {
	BIGNUM* number = nullptr;
	if (EVP_PKEY_get_bn_param(key, name, &number) != 1) return true;
	bool fits = BN_num_bits(number) <= bits;
	BN_clear_free(number);
	return fits;
}

// A number that is longer than those of keys that are meant is a lie, which would take long to compute with. Factors are of like
// length, and what is there for each is no longer than it.
bool IsSoundRsa(const EVP_PKEY* key) {
	static const char* const kNames[] = {OSSL_PKEY_PARAM_RSA_FACTOR1, OSSL_PKEY_PARAM_RSA_FACTOR2,
		OSSL_PKEY_PARAM_RSA_FACTOR3, OSSL_PKEY_PARAM_RSA_FACTOR4, OSSL_PKEY_PARAM_RSA_FACTOR5, OSSL_PKEY_PARAM_RSA_EXPONENT1,
		OSSL_PKEY_PARAM_RSA_EXPONENT2, OSSL_PKEY_PARAM_RSA_EXPONENT3, OSSL_PKEY_PARAM_RSA_EXPONENT4, OSSL_PKEY_PARAM_RSA_EXPONENT5,
		OSSL_PKEY_PARAM_RSA_COEFFICIENT1, OSSL_PKEY_PARAM_RSA_COEFFICIENT2, OSSL_PKEY_PARAM_RSA_COEFFICIENT3,
		OSSL_PKEY_PARAM_RSA_COEFFICIENT4};
	int bits = EVP_PKEY_get_bits(key);
	if (bits < 256 || bits > kMostRsaBits) return false;
	// As OpenSSL has it where it only verifies.
	if (!FitsInto(key, OSSL_PKEY_PARAM_RSA_E, bits > 3072 ? 64 : bits)) return false;
	for (const char* name : kNames) {
		if (!FitsInto(key, name, bits / 2 + 1)) return false;
	}
	return FitsInto(key, OSSL_PKEY_PARAM_RSA_D, bits);
}

bool IsKnownCurve(const EVP_PKEY* key) {
	char name[32];
	size_t length = 0;
	if (EVP_PKEY_get_group_name(key, name, sizeof(name), &length) != 1) return false;
	for (const char* known : {"prime256v1", "secp384r1", "secp521r1", "secp256k1", "secp224r1"}) {
		if (strcmp(name, known) == 0) return true;
	}
	return false;
}

bool IsSound(EVP_PKEY* key) {
	switch (EVP_PKEY_get_base_id(key)) {
		case EVP_PKEY_RSA:
		case EVP_PKEY_RSA_PSS:
			return IsSoundRsa(key);
		case EVP_PKEY_EC:
			return IsKnownCurve(key);
		case EVP_PKEY_ED25519:
		case EVP_PKEY_ED448:
		case EVP_PKEY_X25519:
		case EVP_PKEY_X448:
			return true;
		default:
			return false;
	}
}

// Before anything is computed with the numbers in it: to read a private key of DSA or DH does that.
bool IsKnownAlgorithm(const PKCS8_PRIV_KEY_INFO* info) {
	const ASN1_OBJECT* algorithm = nullptr;
	if (PKCS8_pkey_get0(&algorithm, nullptr, nullptr, nullptr, info) != 1) return false;
	switch (OBJ_obj2nid(algorithm)) {
		case NID_rsaEncryption:
		case NID_rsassaPss:
		case NID_X9_62_id_ecPublicKey:
		case NID_ED25519:
		case NID_ED448:
		case NID_X25519:
		case NID_X448:
			return true;
		default:
			return false;
	}
}

EVP_PKEY* ReadPrivate(const Bytes& der) {
	const unsigned char* at = der.data();
	PKCS8_PRIV_KEY_INFO* info = d2i_PKCS8_PRIV_KEY_INFO(nullptr, &at, der.length());
	EVP_PKEY* key = info != nullptr && IsKnownAlgorithm(info) ? EVP_PKCS82PKEY(info) : nullptr;
	PKCS8_PRIV_KEY_INFO_free(info);
	return key;
}

EVP_PKEY* ReadPublic(const Bytes& der) {
	const unsigned char* at = der.data();
	return d2i_PUBKEY(nullptr, &at, der.length());
}

// What OpenSSL takes for the numbers of a key, and to compute with them.
size_t SizeOf(EVP_PKEY* key) { return 4096 + 4 * static_cast<size_t>(EVP_PKEY_get_bits(key)); }

// Takes the key.
void ReturnKey(const Info& info, EVP_PKEY* key) {
	Key* made = MakeNative<Key>();
	if (made == nullptr) {
		EVP_PKEY_free(key);
		return ThrowMemory(info);
	}
	made->key = key;
	Return(info, made, SizeOf(key));
}

// keyRead(der, isPrivate): a key from PKCS #8 or SPKI; undefined if it is no key, or of a kind or size that there is not.
void KeyRead(const Info& info) {
	Bytes der(info[0]);
	if (der.size() == 0 || der.size() > kMostKeyBytes) return;
	EVP_PKEY* key = info[1]->IsTrue() ? ReadPrivate(der) : ReadPublic(der);
	if (key == nullptr) return;
	int kind = EVP_PKEY_get_base_id(key);
	bool is_rsa = kind == EVP_PKEY_RSA || kind == EVP_PKEY_RSA_PSS;
	bool is_long = info[1]->IsTrue() && is_rsa && EVP_PKEY_get_bits(key) > kMostGivenBits;
	if (is_long || !IsSound(key)) return EVP_PKEY_free(key);
	// Whatever form its point came in.
	if (kind == EVP_PKEY_EC) {
		EVP_PKEY_set_utf8_string_param(key, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT, "uncompressed");
	}
	ReturnKey(info, key);
}

EVP_PKEY* KeyOf(const Info& info, int index = 0) {
	Key* key = Get<Key>(info[index]);
	if (key != nullptr) return key->key;
	ThrowError(info, "That is no key.");
	return nullptr;
}

// keyWrite(key, isPrivate): PKCS #8 or SPKI.
void KeyWrite(const Info& info) {
	EVP_PKEY* key = KeyOf(info);
	if (key == nullptr) return;
	unsigned char* der = nullptr;
	int length = -1;
	if (info[1]->IsTrue()) {
		PKCS8_PRIV_KEY_INFO* private_info = EVP_PKEY2PKCS8(key);
		if (private_info != nullptr) length = i2d_PKCS8_PRIV_KEY_INFO(private_info, &der);
		PKCS8_PRIV_KEY_INFO_free(private_info);
	} else {
		length = i2d_PUBKEY(key, &der);
	}
	if (length > 0) {
		ReturnBytes(info, der, static_cast<size_t>(length));
	} else {
		ThrowOpenSsl(info, "The key cannot be written.");
	}
	if (length > 0) OPENSSL_cleanse(der, static_cast<size_t>(length));
	OPENSSL_free(der);
}

// keyIsWhole(key): whether the public and the private half of a key on a curve belong together.
void KeyIsWhole(const Info& info) {
	EVP_PKEY* key = KeyOf(info);
	if (key == nullptr) return;
	int kind = EVP_PKEY_get_base_id(key);
	if (kind == EVP_PKEY_RSA || kind == EVP_PKEY_RSA_PSS) return info.GetReturnValue().Set(true);
	EVP_PKEY_CTX* context = EVP_PKEY_CTX_new(key, nullptr);
	info.GetReturnValue().Set(context != nullptr && EVP_PKEY_pairwise_check(context) == 1);
	EVP_PKEY_CTX_free(context);
}

// Between two candidates for a prime.
int OnCandidate(EVP_PKEY_CTX* context) { return Poll(*static_cast<const Info*>(EVP_PKEY_CTX_get_app_data(context))) ? 1 : 0; }

bool SetExponent(EVP_PKEY_CTX* context, uint32_t value) {
	BIGNUM* exponent = BN_new();
	bool is_set = exponent != nullptr && BN_set_word(exponent, value) == 1 &&
		EVP_PKEY_CTX_set1_rsa_keygen_pubexp(context, exponent) == 1;
	BN_free(exponent);
	return is_set;
}

// keyGenerate(kind, sizeOrCurve, exponent): the kind is RSA, RSA-PSS, EC, or the name of a curve of its own.
void KeyGenerate(const Info& info) {
	v8::Isolate* isolate = info.GetIsolate();
	Name kind(isolate, info[0]);
	bool is_rsa = strcmp(kind.text, "RSA") == 0 || strcmp(kind.text, "RSA-PSS") == 0;
	bool is_known = is_rsa;
	for (const char* known : {"EC", "ED25519", "ED448", "X25519", "X448"}) is_known |= strcmp(kind.text, known) == 0;
	if (!is_known) return ThrowError(info, "There are no such keys.");
	int bits = IntegerOf(info[1], 0);
	if (is_rsa && (bits < 512 || bits > kMostRsaBits)) return ThrowError(info, "An RSA key has 512 to 8192 bits.");
	EVP_PKEY_CTX* context = EVP_PKEY_CTX_new_from_name(nullptr, kind.text, nullptr);
	bool is_set = context != nullptr && EVP_PKEY_keygen_init(context) == 1;
	if (is_set && is_rsa) {
		uint32_t exponent = info[2]->IsUint32() ? info[2].As<v8::Uint32>()->Value() : 65537;
		is_set = EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits) == 1 && SetExponent(context, exponent);
	} else if (is_set && strcmp(kind.text, "EC") == 0) {
		is_set = EVP_PKEY_CTX_set_group_name(context, Name(isolate, info[1]).text) == 1;
	}
	EVP_PKEY* key = nullptr;
	if (is_set) {
		EVP_PKEY_CTX_set_app_data(context, const_cast<Info*>(&info));
		EVP_PKEY_CTX_set_cb(context, OnCandidate);
		is_set = EVP_PKEY_generate(context, &key) == 1;
	}
	EVP_PKEY_CTX_free(context);
	bool is_sound = is_set && IsSound(key);
	if (is_sound) return ReturnKey(info, key);
	EVP_PKEY_free(key);
	if (!isolate->IsExecutionTerminating() && !isolate->HasPendingException()) {
		ThrowOpenSsl(info, is_set ? "There are no such keys." : "The key cannot be made.");
	}
}

// A digest for as long as the call takes. Its name may be undefined, and then there is none.
class Digest {
 public:
	Digest(v8::Isolate* isolate, v8::Local<v8::Value> name) : is_wanted_(!name->IsUndefined()) {
		if (is_wanted_) digest_ = EVP_MD_fetch(nullptr, Name(isolate, name).text, nullptr);
	}
	~Digest() { EVP_MD_free(digest_); }
	Digest(const Digest&) = delete;
	const EVP_MD* get() const { return digest_; }
	bool is_unknown() const { return is_wanted_ && digest_ == nullptr; }

 private:
	bool is_wanted_;
	EVP_MD* digest_ = nullptr;
};

// The padding of an RSA key and what it needs, in the arguments from `first`: padding, length of the salt, digest of MGF1.
bool SetPadding(const Info& info, int first, EVP_PKEY* key, EVP_PKEY_CTX* context, const EVP_MD* digest, bool is_encryption) {
	int kind = EVP_PKEY_get_base_id(key);
	if (kind != EVP_PKEY_RSA && kind != EVP_PKEY_RSA_PSS) return true;
	int padding = IntegerOf(info[first], kind == EVP_PKEY_RSA_PSS ? RSA_PKCS1_PSS_PADDING : RSA_PKCS1_PADDING);
	if (EVP_PKEY_CTX_set_rsa_padding(context, padding) <= 0) return false;
	if (is_encryption) {
		return padding != RSA_PKCS1_OAEP_PADDING || digest == nullptr || EVP_PKEY_CTX_set_rsa_oaep_md(context, digest) > 0;
	}
	if (digest != nullptr && EVP_PKEY_CTX_set_signature_md(context, digest) <= 0) return false;
	if (padding != RSA_PKCS1_PSS_PADDING) return true;
	Digest mask(info.GetIsolate(), info[first + 2]);
	if (mask.is_unknown()) return false;
	if (info[first + 1]->IsInt32() && EVP_PKEY_CTX_set_rsa_pss_saltlen(context, IntegerOf(info[first + 1], 0)) <= 0) return false;
	return mask.get() == nullptr || EVP_PKEY_CTX_set_rsa_mgf1_md(context, mask.get()) > 0;
}

bool SignsWhole(EVP_PKEY* key) {
	int kind = EVP_PKEY_get_base_id(key);
	return kind == EVP_PKEY_ED25519 || kind == EVP_PKEY_ED448;
}

// sign(key, digest, data, padding, saltLength, maskDigest): the data is what the digest gave, but with Ed25519 and Ed448, which
// have none, the text itself.
void Sign(const Info& info) {
	EVP_PKEY* key = KeyOf(info);
	if (key == nullptr) return;
	Bytes data(info[2]);
	Digest digest(info.GetIsolate(), info[1]);
	if (digest.is_unknown()) return ThrowError(info, "Invalid digest");
	if (data.size() > kMostSigned) return ThrowError(info, "What is signed without a digest has 16 MiB at most.");
	uint8_t signature[kMostResult];
	size_t length = sizeof(signature);
	bool is_done;
	if (SignsWhole(key)) {
		EVP_MD_CTX* context = EVP_MD_CTX_new();
		is_done = context != nullptr && EVP_DigestSignInit(context, nullptr, nullptr, nullptr, key) == 1 &&
			EVP_DigestSign(context, signature, &length, data.data(), data.size()) == 1;
		EVP_MD_CTX_free(context);
	} else {
		EVP_PKEY_CTX* context = EVP_PKEY_CTX_new(key, nullptr);
		is_done = context != nullptr && EVP_PKEY_sign_init(context) == 1 &&
			SetPadding(info, 3, key, context, digest.get(), false) &&
			EVP_PKEY_sign(context, signature, &length, data.data(), data.size()) == 1;
		EVP_PKEY_CTX_free(context);
	}
	if (!is_done) return ThrowOpenSsl(info, "It cannot be signed.");
	ReturnBytes(info, signature, length);
}

// verify(key, digest, data, padding, saltLength, maskDigest, signature)
void Verify(const Info& info) {
	EVP_PKEY* key = KeyOf(info);
	if (key == nullptr) return;
	Bytes data(info[2]), signature(info[6]);
	Digest digest(info.GetIsolate(), info[1]);
	if (digest.is_unknown()) return ThrowError(info, "Invalid digest");
	if (data.size() > kMostSigned) return ThrowError(info, "What is signed without a digest has 16 MiB at most.");
	info.GetReturnValue().Set(false);
	// No signature is longer, and to read one is not worth it.
	if (signature.size() > kMostResult) return;
	if (SignsWhole(key)) {
		EVP_MD_CTX* context = EVP_MD_CTX_new();
		bool is_set = context != nullptr && EVP_DigestVerifyInit(context, nullptr, nullptr, nullptr, key) == 1;
		bool is_right = is_set &&
			EVP_DigestVerify(context, signature.data(), signature.size(), data.data(), data.size()) == 1;
		EVP_MD_CTX_free(context);
		if (!is_set) return ThrowOpenSsl(info, "It cannot be verified.");
		return info.GetReturnValue().Set(is_right);
	}
	EVP_PKEY_CTX* context = EVP_PKEY_CTX_new(key, nullptr);
	bool is_set =
		context != nullptr && EVP_PKEY_verify_init(context) == 1 && SetPadding(info, 3, key, context, digest.get(), false);
	bool is_right =
		is_set && EVP_PKEY_verify(context, signature.data(), signature.size(), data.data(), data.size()) == 1;
	EVP_PKEY_CTX_free(context);
	if (!is_set) return ThrowOpenSsl(info, "It cannot be verified.");
	info.GetReturnValue().Set(is_right);
}

using Init = int (*)(EVP_PKEY_CTX*);
using Convert = int (*)(EVP_PKEY_CTX*, unsigned char*, size_t*, const unsigned char*, size_t);

// What can be done to a text with an RSA key, by the number that user code gives.
constexpr struct {
	Init init;
	Convert convert;
	bool is_encryption;
} kConversions[] = {
	{EVP_PKEY_encrypt_init, EVP_PKEY_encrypt, true},
	{EVP_PKEY_decrypt_init, EVP_PKEY_decrypt, true},
	{EVP_PKEY_sign_init, EVP_PKEY_sign, false},
	{EVP_PKEY_verify_recover_init, EVP_PKEY_verify_recover, false},
};

bool SetLabel(EVP_PKEY_CTX* context, const Bytes& label) {
	if (label.size() == 0) return true;
	void* copy = OPENSSL_memdup(label.data(), label.size());
	if (copy == nullptr) return false;
	if (EVP_PKEY_CTX_set0_rsa_oaep_label(context, copy, label.length()) > 0) return true;
	OPENSSL_free(copy);
	return false;
}

// convert(how, key, data, padding, digest, label): 0 encrypts with a public key, 1 decrypts with the private one; 2 does so
// with a private one, and 3 undoes that with the public one.
void ConvertText(const Info& info) {
	uint32_t how = info[0]->IsUint32() ? info[0].As<v8::Uint32>()->Value() : 4;
	EVP_PKEY* key = KeyOf(info, 1);
	if (key == nullptr) return;
	Bytes data(info[2]), label(info[5]);
	Digest digest(info.GetIsolate(), info[4]);
	if (how > 3 || EVP_PKEY_get_base_id(key) != EVP_PKEY_RSA || label.size() > kMostLabel || data.size() > kMostResult) {
		return ThrowError(info, "It cannot be converted so.");
	}
	if (digest.is_unknown()) return ThrowError(info, "Invalid digest");
	uint8_t result[kMostResult];
	size_t length = sizeof(result);
	const auto& conversion = kConversions[how];
	EVP_PKEY_CTX* context = EVP_PKEY_CTX_new(key, nullptr);
	bool is_done = context != nullptr && conversion.init(context) == 1 &&
		SetPadding(info, 3, key, context, conversion.is_encryption ? digest.get() : nullptr, conversion.is_encryption) &&
		(!conversion.is_encryption || SetLabel(context, label)) &&
		conversion.convert(context, result, &length, data.data(), data.size()) == 1;
	EVP_PKEY_CTX_free(context);
	if (!is_done) return ThrowOpenSsl(info, "It cannot be converted.");
	ReturnBytes(info, result, length);
	OPENSSL_cleanse(result, sizeof(result));
}

// derive(key, peer): the secret that two keys of a curve share.
void Derive(const Info& info) {
	EVP_PKEY *key = KeyOf(info), *peer = key == nullptr ? nullptr : KeyOf(info, 1);
	if (peer == nullptr) return;
	uint8_t secret[128];
	size_t length = sizeof(secret);
	EVP_PKEY_CTX* context = EVP_PKEY_CTX_new(key, nullptr);
	bool is_done = EVP_PKEY_get_base_id(key) == EVP_PKEY_get_base_id(peer) && context != nullptr &&
		EVP_PKEY_derive_init(context) == 1 && EVP_PKEY_derive_set_peer(context, peer) == 1 &&
		EVP_PKEY_derive(context, secret, &length) == 1;
	EVP_PKEY_CTX_free(context);
	if (!is_done) return ThrowOpenSsl(info, "The keys share no secret.");
	ReturnBytes(info, secret, length);
	OPENSSL_cleanse(secret, sizeof(secret));
}

}  // namespace

const NativeFunction kKeyFunctions[] = {
	{"keyRead", Clearing<KeyRead>},
	{"keyWrite", Clearing<KeyWrite>},
	{"keyIsWhole", Clearing<KeyIsWhole>},
	{"keyGenerate", Clearing<KeyGenerate>},
	{"sign", Clearing<Sign>},
	{"verify", Clearing<Verify>},
	{"convert", Clearing<ConvertText>},
	{"derive", Clearing<Derive>},
	{nullptr, nullptr},
};
