// Signatures as WebCrypto makes them: ECDSA with P-256 and SHA-256. Pure.
#pragma once
#include <cstddef>
#include <string_view>

namespace earshot::serve {

constexpr std::size_t p256_key_digits = 130;        // the byte 04, x and y
constexpr std::size_t p256_signature_digits = 128;  // r and s

/// The uncompressed form of a point of the curve, as lower-case hex digits: WebCrypto's format `raw`.
bool is_p256_key(std::string_view key);

/// False for anything but a valid signature: of another length, out of range, by another key.
bool p256_verifies(std::string_view key, std::string_view message, std::string_view signature);

}  // namespace earshot::serve
