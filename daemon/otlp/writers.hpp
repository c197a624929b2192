// Writers of protobuf messages, as bytes and as JSON, with the same calls: one description of a message gives
// both encodings. Header-only.
//
// Bytes: https://protobuf.dev/programming-guides/encoding. JSON: the proto3 mapping, with OTLP's exceptions
// (OTLP specification 1.3, "JSON Protobuf Encoding"): ids as hexadecimal digits, enums as numbers.
#pragma once
#include <bit>
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
    tag(field, 2);
    varint(value.size());
    out_ += value;
  }
  /// Eight bytes for each number, the most significant first.
  void id(const Field& field, std::initializer_list<std::uint64_t> parts) {
    std::string value;
    for (const std::uint64_t part : parts)
      for (int shift = 56; shift >= 0; shift -= 8) value += static_cast<char>(part >> shift & 0xff);
    bytes(field, value);
  }
  void fixed64(const Field& field, std::uint64_t value) {
    tag(field, 1);
    append_fixed64(value);
  }
  void sfixed64(const Field& field, std::int64_t value) { fixed64(field, static_cast<std::uint64_t>(value)); }
  void real(const Field& field, double value) { fixed64(field, std::bit_cast<std::uint64_t>(value)); }
  void int64(const Field& field, std::int64_t value) {
    tag(field, 0);
    varint(static_cast<std::uint64_t>(value));
  }
  void uint32(const Field& field, std::uint32_t value) {
    if (value != 0) int64(field, value);
  }
  void flag(const Field& field, bool value) { int64(field, value ? 1 : 0); }
  void enumeration(const Field& field, int value) {
    if (value != 0) int64(field, value);
  }
  template <class Write>
  void message(const Field& field, Write write) {
    std::string inner;
    ProtobufWriter writer(inner);
    write(writer);
    bytes(field, inner);
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
    tag(field, 2);
    varint(values.size() * sizeof(std::uint64_t));
    for (const std::uint64_t value : values) append_fixed64(value);
  }
  void packed_real(const Field& field, const std::vector<double>& values) {
    tag(field, 2);
    varint(values.size() * sizeof(double));
    for (const double value : values) append_fixed64(std::bit_cast<std::uint64_t>(value));
  }

 private:
  void tag(const Field& field, std::uint32_t wire_type) { varint(field.number << 3 | wire_type); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  void append_fixed64(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) out_ += static_cast<char>(value >> shift & 0xff);
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
