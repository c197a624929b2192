// A browser with a key, as the page is one.
#pragma once
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>

#include <memory>
#include <string>

#include "base/hex.hpp"
#include "serve/auth/sign_in.hpp"

namespace earshot::test {

class TestBrowser {
 public:
  TestBrowser() : key_(EVP_EC_gen("P-256"), EVP_PKEY_free) {}

  std::string public_key() const {
    unsigned char point[65];
    std::size_t size = 0;
    EVP_PKEY_get_octet_string_param(key_.get(), OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point, &size);
    return to_hex(point, size);
  }

  std::string sign(const std::string& message) const {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    unsigned char der[128];
    std::size_t size = sizeof der;
    EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr, key_.get());
    EVP_DigestSign(digest.get(), der, &size, reinterpret_cast<const unsigned char*>(message.data()),
                   message.size());
    const unsigned char* begin = der;
    ECDSA_SIG* const signature = d2i_ECDSA_SIG(nullptr, &begin, static_cast<long>(size));
    unsigned char raw[64];
    BN_bn2binpad(ECDSA_SIG_get0_r(signature), raw, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(signature), raw + 32, 32);
    ECDSA_SIG_free(signature);
    return to_hex(raw, sizeof raw);
  }

  /// The answer to a challenge.
  serve::SignIn answer(std::string id, std::string nonce, const std::string& purpose,
                       const std::string& daemon_id, const std::string& origin) const {
    serve::SignIn sign_in{std::move(id), std::move(nonce), {}};
    sign_in.signature = sign(serve::sign_in_message(purpose, daemon_id, origin, sign_in));
    return sign_in;
  }

 private:
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_;
};

}  // namespace earshot::test
