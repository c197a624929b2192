// Writes protobuf messages: https://protobuf.dev/programming-guides/encoding. Header-only.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::otlp {

using Field = std::uint32_t;  // its number

class ProtobufWriter {
 public:
  explicit ProtobufWriter(std::string& out) : out_(out) {}

  /// Default values are omitted, as proto3 has it.
  void text(Field field, std::string_view value) {
    if (!value.empty()) bytes(field, value);
  }
  /// Also if it is the default: for members of a oneof and list items.
  void bytes(Field field, std::string_view value) {
    begin(field, 2, value.size());
    out_ += value;
  }
  /// Eight bytes for each number, the most significant first.
  void id(Field field, std::initializer_list<std::uint64_t> parts) {
    begin(field, 2, parts.size() * sizeof(std::uint64_t));
    for (const std::uint64_t part : parts) append_number(part, std::endian::big);
  }
  void fixed64(Field field, std::uint64_t value) {
    char text[varint_bytes_max];
    out_.append(text, varint_to(text, tag(field, 1)));
    append_fixed64(value);
  }
  void real(Field field, double value) { fixed64(field, std::bit_cast<std::uint64_t>(value)); }
  void int64(Field field, std::int64_t value) { begin(field, 0, static_cast<std::uint64_t>(value)); }
  void uint32(Field field, std::uint32_t value) {
    if (value != 0) int64(field, value);
  }
  void flag(Field field, bool value) { int64(field, value ? 1 : 0); }
  /// What `write()` writes, in place; its length, mostly one byte, is inserted when it is known.
  template <class Write>
  void message(Field field, Write write) {
    begin(field, 2, 0);
    const std::size_t first = out_.size();
    write();
    const std::size_t size = out_.size() - first;
    out_[first - 1] = static_cast<char>(size);
    if (size < 0x80) return;
    char length[varint_bytes_max];
    out_.replace(first - 1, 1, length, varint_to(length, size));
  }
  void packed_fixed64(Field field, const std::vector<std::uint64_t>& values) {
    begin(field, 2, values.size() * sizeof(std::uint64_t));
    for (const std::uint64_t value : values) append_fixed64(value);
  }
  void packed_real(Field field, const std::vector<double>& values) {
    begin(field, 2, values.size() * sizeof(double));
    for (const double value : values) append_fixed64(std::bit_cast<std::uint64_t>(value));
  }

 private:
  static constexpr std::size_t varint_bytes_max = 10;
  /// Returns how many bytes it has.
  static std::size_t varint_to(char* to, std::uint64_t value) {
    std::size_t size = 0;
    for (; value >= 0x80; value >>= 7) to[size++] = static_cast<char>(value | 0x80);
    to[size++] = static_cast<char>(value);
    return size;
  }
  static std::uint64_t tag(Field field, std::uint32_t wire_type) { return field << 3 | wire_type; }
  /// The tag and its number, which is the size of what follows or the value.
  void begin(Field field, std::uint32_t wire_type, std::uint64_t number) {
    char text[2 * varint_bytes_max];
    const std::size_t size = varint_to(text, tag(field, wire_type));
    out_.append(text, size + varint_to(text + size, number));
  }
  void append_fixed64(std::uint64_t value) { append_number(value, std::endian::little); }
  void append_number(std::uint64_t value, std::endian order) {
    char text[sizeof value];
    for (std::size_t n = 0; n < sizeof text; ++n, value >>= 8)
      text[order == std::endian::little ? n : sizeof text - 1 - n] = static_cast<char>(value & 0xff);
    out_.append(text, sizeof text);
  }

  std::string& out_;
};

}  // namespace earshot::otlp
