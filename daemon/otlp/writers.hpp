// Writers of protobuf messages, as bytes and as JSON, with the same calls: one description of a message gives
// both encodings. Header-only.
//
// Bytes: https://protobuf.dev/programming-guides/encoding. JSON: the proto3 mapping, with OTLP's exceptions
// (OTLP specification 1.3, "JSON Protobuf Encoding"): ids as hexadecimal digits, enums as numbers.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.hpp"

namespace earshot::otlp {

struct Field {
  std::uint32_t number;
  std::string_view name;  // in JSON
};

class ProtobufWriter {
 public:
  explicit ProtobufWriter(std::string& out) : out_(out) {}

  /// Default values are omitted, as proto3 has it.
  void text(const Field& field, std::string_view value) {
    if (!value.empty()) bytes(field, value);
  }
  /// Also if it is the default: for members of a oneof and list items.
  void bytes(const Field& field, std::string_view value) {
    begin(field, 2, value.size());
    out_ += value;
  }
  /// Eight bytes for each number, the most significant first.
  void id(const Field& field, std::initializer_list<std::uint64_t> parts) {
    begin(field, 2, parts.size() * sizeof(std::uint64_t));
    for (const std::uint64_t part : parts) append_number(part, std::endian::big);
  }
  void fixed64(const Field& field, std::uint64_t value) {
    char text[varint_bytes_max];
    out_.append(text, varint_to(text, tag(field, 1)));
    append_fixed64(value);
  }
  void sfixed64(const Field& field, std::int64_t value) { fixed64(field, static_cast<std::uint64_t>(value)); }
  void real(const Field& field, double value) { fixed64(field, std::bit_cast<std::uint64_t>(value)); }
  void int64(const Field& field, std::int64_t value) { begin(field, 0, static_cast<std::uint64_t>(value)); }
  void uint32(const Field& field, std::uint32_t value) {
    if (value != 0) int64(field, value);
  }
  void flag(const Field& field, bool value) { int64(field, value ? 1 : 0); }
  void enumeration(const Field& field, int value) {
    if (value != 0) int64(field, value);
  }
  /// Written in place; its length, mostly one byte, is inserted when it is known.
  template <class Write>
  void message(const Field& field, Write write) {
    begin(field, 2, 0);
    const std::size_t first = out_.size();
    write(*this);
    const std::size_t size = out_.size() - first;
    out_[first - 1] = static_cast<char>(size);
    if (size < 0x80) return;
    char length[varint_bytes_max];
    out_.replace(first - 1, 1, length, varint_to(length, size));
  }
  template <class Items, class Write>
  void messages(const Field& field, const Items& items, Write write) {
    for (const auto& item : items) message(field, [&](ProtobufWriter& writer) { write(writer, item); });
  }
  /// Messages that are encoded already.
  void encoded(const Field& field, const std::vector<std::string>& items) {
    for (const std::string& item : items) bytes(field, item);
  }
  void packed_fixed64(const Field& field, const std::vector<std::uint64_t>& values) {
    begin(field, 2, values.size() * sizeof(std::uint64_t));
    for (const std::uint64_t value : values) append_fixed64(value);
  }
  void packed_real(const Field& field, const std::vector<double>& values) {
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
  static std::uint64_t tag(const Field& field, std::uint32_t wire_type) {
    return field.number << 3 | wire_type;
  }
  /// The tag and its number, which is the size of what follows or the value.
  void begin(const Field& field, std::uint32_t wire_type, std::uint64_t number) {
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

class ProtobufJsonWriter {
 public:
  explicit ProtobufJsonWriter(std::string& out) : json_(out) { json_.begin_object(); }
  /// After the last field.
  void end() { json_.end_object(); }

  void text(const Field& field, std::string_view value) { json_.member_if_any(field.name, value); }
  void bytes(const Field& field, std::string_view value) { json_.member(field.name, value); }
  void id(const Field& field, std::initializer_list<std::uint64_t> parts) {
    std::string digits;
    for (const std::uint64_t part : parts)
      for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[part >> shift & 15];
    json_.member(field.name, digits);
  }
  void fixed64(const Field& field, std::uint64_t value) { json_.member(field.name, std::to_string(value)); }
  void sfixed64(const Field& field, std::int64_t value) { json_.member(field.name, std::to_string(value)); }
  void real(const Field& field, double value) { json_.member(field.name, value); }
  void int64(const Field& field, std::int64_t value) { json_.member(field.name, std::to_string(value)); }
  void uint32(const Field& field, std::uint32_t value) {
    if (value != 0) json_.member(field.name, value);
  }
  void flag(const Field& field, bool value) { json_.member(field.name, value); }
  void enumeration(const Field& field, int value) {
    if (value != 0) json_.member(field.name, value);
  }
  template <class Write>
  void message(const Field& field, Write write) {
    write_object(json_.key(field.name), write);
  }
  template <class Items, class Write>
  void messages(const Field& field, const Items& items, Write write) {
    if (items.empty()) return;
    json_.key(field.name).array(items, [&](const auto& item) {
      write_object(json_, [&](ProtobufJsonWriter& writer) { write(writer, item); });
    });
  }
  void encoded(const Field& field, const std::vector<std::string>& items) {
    json_.key(field.name).array(items, [&](const std::string& item) { json_.raw(item); });
  }
  void packed_fixed64(const Field& field, const std::vector<std::uint64_t>& values) {
    json_.key(field.name).array(values, [&](std::uint64_t value) { json_.value(std::to_string(value)); });
  }
  void packed_real(const Field& field, const std::vector<double>& values) {
    json_.array_member(field.name, values);
  }

 private:
  template <class Write>
  static void write_object(JsonWriter& json, Write write) {
    ProtobufJsonWriter inner(json.next());
    write(inner);
    inner.end();
  }

  JsonWriter json_;
};

}  // namespace earshot::otlp
