#include "otlp/config.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <memory>

#include "base/file.hpp"

namespace earshot::otlp {

bool is_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  const auto is_name = [](unsigned char c) { return c > ' ' && c < 0x7f; };
  const auto is_text = [](unsigned char c) { return c >= ' ' && c < 0x7f; };
  return colon != line.npos && colon > 0 &&
         std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(colon), is_name) &&
         std::all_of(line.begin(), line.end(), is_text);
}

std::string read_headers_file(Config& config) {
  constexpr std::size_t bytes_max = 64 << 10;
  config.file_headers.clear();
  if (config.headers_file.empty()) return {};
  const PrivateFile file = read_private_file(config.headers_file, bytes_max);
  // Other private files are created by the daemon if they are missing.
  if (!file.error.empty()) return file.error.substr(0, file.error.find("; otherwise"));
  if (!file.text) return config.headers_file + ": there is no such file";
  std::string_view left = *file.text;
  for (std::size_t number = 1; !left.empty(); ++number) {
    std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    // The line itself is a secret.
    if (!is_header(line))
      return config.headers_file + ":" + std::to_string(number) + ": must be `Name: value` in visible ASCII";
    config.file_headers.emplace_back(line);
  }
  return {};
}

std::string check_authorities(const std::string& file) {
  constexpr std::size_t bytes_max = 8 << 20;  // the system's own files have less than 1 MiB
  const SmallFile read = read_small_file(file, bytes_max);
  if (!read.ok()) return file + ": " + read.error_text();
  const std::unique_ptr<BIO, decltype(&BIO_free)> bytes(
      BIO_new_mem_buf(read.text.data(), static_cast<int>(read.text.size())), &BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      bytes ? PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr) : nullptr, &X509_free);
  ERR_clear_error();
  if (!certificate) return file + ": contains no certificate in PEM (-----BEGIN CERTIFICATE-----)";
  return {};
}

}  // namespace earshot::otlp
