#include "serve/auth/p256.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace p256_test {

using namespace earshot::serve;

namespace {

// Made by WebCrypto in Node 18: generateKey(), exportKey("raw") and sign() with SHA-256.
const std::string message =
    "earshot sign-in "
    "1\nhello\n00112233445566778899aabbccddeeff\nhttp://127.0.0.1:7717\n0123456789abcdef\nnonce";
const std::string key =
    "0495c65279c53c63164fd60df5f644da5a1f08859d319e334e54b6871f3e2c3c512eec8ccd6a35b5ece9eb3bdb25b3a2eeb6"
    "768e0b6277a42de26a026215dfb62a";
const std::string signature =
    "36493cb9a679cc3067d4179c4f97c617e59f8b00af1e02c3481d1c8aae4e532721f069abe0381aac34ba5340414579b2d43d"
    "590be85b780ebc842cb90e60f968";
const std::string signature_of_nothing =
    "deb71d45734f0d39b63bbf06fd3b6f38ebc20ca086ff42bbb8b6f0cd00746a14ec553eca7c935f99b337594bbc66b53d03eb"
    "ebfe34626b5c2b2d2ac1e43a8733";
const std::string other_key =
    "0403f0d66c1da4db718feb69efdb7a5ffe25a5502b38afabf4bdfb4f847c5d832d4eb99bd6541de6b33ce9c141236d549f39"
    "7a6252214935a131ef9fbff3e4d6c2";
const std::string other_signature =
    "50a3d6f03ad15a4e4a2ea8c1df50205fe3695041f646acc8197eaeb5ab0f17650c02471fc6f7af107266a8ddb59f8b6757bd"
    "c00ff6a791f33557f6cbcee8c190";
const std::string p384_key =
    "04ae9b6b5c457276a46394946eb6e2291041a28252daad544525616e7db99dbeeb9073a56e10c67115660d980a5ff7bc9497"
    "d630071b56243d501da7694e1b8c1b8ee96cf1aefbc5116c4cc77a9c82444d0de6c04f5a12ab69124f54cfb9b11d4c";
const std::string p384_signature =
    "8f4e8f10481931a79b5254c51b4f8ffc8dcb0e659d08fc28a1d2da9891b97944f3891bd286c807308c4c61fc1b5b1c285fcc"
    "300175938acd5deffbf043d03a3a546392d317752d33105d8718f76df174d24242d9882f244ef6ca0a789e3d7448";

// Of the curve.
const std::string order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
const std::string zero(64, '0');
const std::string r = signature.substr(0, 64), s = signature.substr(64);

}  // namespace

TEST_CASE("a signature of WebCrypto is verified with the key that made it") {
  REQUIRE(is_p256_key(key));
  REQUIRE(is_p256_key(other_key));
  REQUIRE(p256_verifies(key, message, signature));
  REQUIRE(p256_verifies(other_key, message, other_signature));
  REQUIRE(p256_verifies(key, "", signature_of_nothing));
  REQUIRE_FALSE(p256_verifies(other_key, message, signature));
  REQUIRE_FALSE(p256_verifies(key, message + "\n", signature));
  REQUIRE_FALSE(p256_verifies(key, "", signature));
  REQUIRE_FALSE(p256_verifies(key, message, signature_of_nothing));
}

TEST_CASE("what is no signature is refused") {
  std::string upper = signature;
  for (char& digit : upper) digit = static_cast<char>(std::toupper(digit));
  std::string changed = signature;
  changed[100] = changed[100] == '0' ? '1' : '0';
  const std::string wrong[] = {"",
                               "0",
                               signature.substr(1),
                               signature.substr(0, 126),
                               signature + "00",
                               signature + signature,
                               upper,
                               changed,
                               "g" + signature.substr(1),
                               std::string(128, '\0'),
                               s + r,
                               zero + s,
                               r + zero,
                               zero + zero,
                               order + s,
                               r + order,
                               std::string(128, 'f'),
                               p384_signature,
                               std::string(1 << 16, 'a')};
  for (const std::string& each : wrong) {
    CAPTURE(each.substr(0, 200));
    REQUIRE_FALSE(p256_verifies(key, message, each));
  }
  REQUIRE(p256_verifies(key, message, signature));
}

TEST_CASE("what is no point of the curve is no key") {
  std::string off_curve = key;
  off_curve.back() = off_curve.back() == '0' ? '1' : '0';
  std::string upper = key;
  for (char& digit : upper) digit = static_cast<char>(std::toupper(digit));
  const std::string wrong[] = {"",
                               "00",
                               "04",
                               key.substr(0, 128),
                               key + "00",
                               key.substr(2),
                               "02" + key.substr(2, 64),  // compressed
                               "02" + key.substr(2),
                               "06" + key.substr(2),  // other forms, at this length
                               "00" + key.substr(2),
                               "04" + zero + zero,
                               "04" + std::string(128, 'f'),
                               off_curve,
                               upper,
                               p384_key,
                               p384_key.substr(0, 130),
                               std::string(130, 'x'),
                               std::string(1 << 16, '0')};
  for (const std::string& each : wrong) {
    CAPTURE(each.substr(0, 200));
    REQUIRE_FALSE(is_p256_key(each));
    REQUIRE_FALSE(p256_verifies(each, message, signature));
  }
}

}  // namespace p256_test
