#include "log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

#include "base/hex.hpp"

namespace earshot {
namespace {

class EscapingFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& into) override {
    const std::string text = escape_controls({message.payload.data(), message.payload.size()});
    into.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<EscapingFlag>(); }
};

}  // namespace

std::string escape_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f)
      out += c;
    else
      out += {'\\', 'x', hex_digits[byte >> 4], hex_digits[byte & 15]};
  }
  return out;
}

void start_log(const std::string& level) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("earshotd"));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<EscapingFlag>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %*");
  spdlog::set_formatter(std::move(formatter));
  spdlog::set_level(spdlog::level::from_str(level));
  auto audit = std::make_shared<spdlog::logger>("audit", spdlog::default_logger()->sinks().front());
  audit->set_level(level == "off" ? spdlog::level::off : spdlog::level::info);
  spdlog::register_logger(std::move(audit));
}

}  // namespace earshot
