#include "otlp/span.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <charconv>

#include "base/hex.hpp"
#include "base/text.hpp"

namespace earshot::otlp {
namespace {

std::string joined(std::initializer_list<std::string_view> parts) {
  constexpr std::size_t digits_max = 20;
  std::size_t bytes_max = 0;
  for (const std::string_view part : parts) bytes_max += digits_max + 1 + part.size();
  std::string text;
  text.reserve(bytes_max);
  for (const std::string_view part : parts) {
    char digits[digits_max];
    text.append(digits, std::to_chars(digits, digits + digits_max, part.size()).ptr);
    text += ':';
    text += part;
  }
  return text;
}

}  // namespace

TraceId trace_id(std::initializer_list<std::string_view> parts) {
  const std::string text = joined(parts);
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.high64, hash.low64 != 0 ? hash.low64 : 1};  // the id of zeros is not valid
}

SpanId span_id(std::initializer_list<std::string_view> parts) {
  const std::string text = joined(parts);
  const std::uint64_t hash = XXH3_64bits(text.data(), text.size());
  return hash != 0 ? hash : 1;
}

std::string to_hex(const TraceId& id) {
  std::string out;
  append_hex(out, id.high);
  append_hex(out, id.low);
  return out;
}

std::string to_hex(SpanId id) {
  std::string out;
  append_hex(out, id);
  return out;
}

void Attributes::label(std::string_view key, std::string_view value) {
  if (!value.empty()) add({key, std::string(cut_utf8(value, label_bytes_max))});
}

void Attributes::text(std::string_view key, std::string_view value) {
  if (!value.empty()) add({key, std::string(value)});
}

void Attributes::add(Attribute attribute) {
  constexpr std::size_t usual_count = 16;
  if (all_.empty()) all_.reserve(usual_count);
  all_.push_back(std::move(attribute));
}

bool operator==(const Attributes& a, const Attributes& b) {
  if (a.all_.size() != b.all_.size()) return false;
  for (std::size_t i = 0; i < a.all_.size(); ++i)
    if (a.all_[i].key != b.all_[i].key || a.all_[i].value != b.all_[i].value) return false;
  return true;
}

}  // namespace earshot::otlp
