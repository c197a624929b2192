#include "serve/auth/p256.hpp"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <array>
#include <cstdint>
#include <memory>

#include "base/hex.hpp"

namespace earshot::serve {
namespace {

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Deleter<EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>>;
using Signature = std::unique_ptr<ECDSA_SIG, Deleter<ECDSA_SIG_free>>;
using Number = std::unique_ptr<BIGNUM, Deleter<BN_free>>;

constexpr std::size_t number_bytes = 32;

/// False unless `hex` is exactly as long as `bytes`.
template <std::size_t N>
bool decode(std::string_view hex, std::array<unsigned char, N>& bytes) {
  if (hex.size() != 2 * N || !is_hex(hex)) return false;
  for (std::size_t i = 0; i < N; ++i)
    bytes[i] = static_cast<unsigned char>(hex_digits.find(hex[2 * i]) << 4 | hex_digits.find(hex[2 * i + 1]));
  return true;
}

/// Null unless it is a point of the curve: EVP_PKEY_fromdata() checks it, and all points are of its only
/// group.
Key decode_key(std::string_view hex) {
  std::array<unsigned char, p256_key_digits / 2> point{};
  if (!decode(hex, point) || point[0] != POINT_CONVERSION_UNCOMPRESSED) return nullptr;
  char group[] = "prime256v1";
  OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
      OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()),
      OSSL_PARAM_construct_end()};
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* key = nullptr;
  if (context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1) {
    EVP_PKEY_free(key);
    ERR_clear_error();
    return nullptr;
  }
  return Key(key);
}

}  // namespace

bool is_p256_key(std::string_view key) { return decode_key(key) != nullptr; }

bool p256_verifies(std::string_view key, std::string_view message, std::string_view signature) {
  std::array<unsigned char, 2 * number_bytes> raw{};
  if (!decode(signature, raw)) return false;
  const Key public_key = decode_key(key);
  const Signature numbers(ECDSA_SIG_new());
  if (public_key == nullptr || numbers == nullptr) return false;
  Number r(BN_bin2bn(raw.data(), number_bytes, nullptr));
  Number s(BN_bin2bn(raw.data() + number_bytes, number_bytes, nullptr));
  if (r == nullptr || s == nullptr || ECDSA_SIG_set0(numbers.get(), r.get(), s.get()) != 1) return false;
  r.release();  // owned by `numbers`
  s.release();
  unsigned char* der = nullptr;
  const int der_bytes = i2d_ECDSA_SIG(numbers.get(), &der);
  if (der_bytes <= 0) return false;
  const DigestContext digest(EVP_MD_CTX_new());
  const bool verified =
      digest != nullptr &&
      EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, public_key.get()) == 1 &&
      EVP_DigestVerify(digest.get(), der, static_cast<std::size_t>(der_bytes),
                       reinterpret_cast<const unsigned char*>(message.data()), message.size()) == 1;
  OPENSSL_free(der);
  if (!verified) ERR_clear_error();  // or TLS would report it as its own
  return verified;
}

}  // namespace earshot::serve
