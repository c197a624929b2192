#include "core/dialects/claude_code.hpp"

#include <algorithm>

namespace earshot::dialects {
namespace {

void read_summary(const Fields& f, Record& out) {
  out.facts.push_back(fact::Title{fact::Title::Kind::summary, text(f.summary), text(f.leafUuid)});
}
void read_ai_title(const Fields& f, Record& out) {
  out.facts.push_back(fact::Title{fact::Title::Kind::ai, text(f.aiTitle), {}});
}
void read_custom_title(const Fields& f, Record& out) {
  out.facts.push_back(fact::Title{fact::Title::Kind::custom, text(f.customTitle), {}});
}
void read_agent_name(const Fields& f, Record& out) {
  out.facts.push_back(fact::Title{fact::Title::Kind::agent_name, text(f.agentName), {}});
}
void read_mode(const Fields& f, Record& out) { out.facts.push_back(fact::Mode{text(f.mode)}); }
void read_permission_mode(const Fields& f, Record& out) {
  out.facts.push_back(fact::PermissionMode{text(f.permissionMode)});
}
void read_cost(const Fields& f, Record& out) {
  if (!f.totalCostUSD) return;
  if (const auto usd = dom::as_double(*f.totalCostUSD)) out.facts.push_back(fact::Cost{*usd});
}
void read_queue(const Fields& f, Record& out) {
  const auto said = text_of_content(f.content, out);
  out.facts.push_back(fact::Queue{text(f.operation), said});
  if (said) read_notifications(*said, out);
}
void read_snapshot(const Fields& f, Record& out) {
  const auto backups = f.snapshot ? dom::member(*f.snapshot, "trackedFileBackups") : Value{};
  dom::object files;
  if (!backups || backups->get_object().get(files)) return;
  fact::Files seen{text(f.messageId), {}};
  for (const auto file : files)
    if (std::find(seen.files.begin(), seen.files.end(), file.key) == seen.files.end())
      seen.files.push_back(file.key);
  if (!seen.files.empty()) out.facts.push_back(std::move(seen));
}
void read_delta(const Fields& f, Record& out) {
  if (const auto path = text(f.trackingPath); !path.empty())
    out.facts.push_back(fact::Files{text(f.messageId), {path}});
}
void read_progress(const Fields& f, Record& out) {
  const std::string_view kind = f.data ? dom::text_of(*f.data, "type") : std::string_view{};
  if (kind == "agent_progress")
    out.facts.push_back(fact::AgentLink{text(f.parentToolUseID), dom::text_of(*f.data, "agentId")});
}
void nothing(const Fields&, Record&) {}

struct Rule {
  std::string_view type;
  void (*read)(const Fields&, Record&);
  std::string_view versions;  // that were seen to write it
};

// Records of the chain, but for user and assistant.
constexpr Rule chain[] = {
    {"system", read_system, "1.0.43 -"},
    {"attachment", read_attachment, "2.1.90 -"},
    {"progress", read_progress, "2.1.12 - 2.1.81"},
};

// State that is set again and again, and records that mean nothing here.
constexpr Rule metadata[] = {
    {"summary", read_summary, "0.2 - 2.1.29"},
    {"ai-title", read_ai_title, "2.1.126 -"},
    {"custom-title", read_custom_title, "2.1.81 -"},
    {"agent-name", read_agent_name, "2.1.81 - 2.1.108"},
    {"mode", read_mode, "2.1.205 -"},
    {"permission-mode", read_permission_mode, "2.1.92 -"},
    {"queue-operation", read_queue, "2.0.37 -"},
    {"file-history-snapshot", read_snapshot, "2.0.5 -"},
    {"file-history-delta", read_delta, "2.1.212 -"},
    {"cost-state", read_cost, "2.1.330 -"},
    {"last-prompt", nothing, "2.1.77 -"},
    {"pr-link", nothing, "2.1.29 -"},
    {"bridge-session", nothing, "2.1.197 -"},
    {"frame-link", nothing, "2.1.217 -"},
    {"atis-latch", nothing, "2.1.217 -"},
    {"tools-used", nothing, "2.1.330 -"},
    {"api-request", nothing, "2.1.330 -"},
    {"api-request-blob", nothing, "2.1.330 -"},
    {"api-request-shape", nothing, "2.1.330 -"},
    {"worktree-state", nothing, "2.1.220 -"},
    {"relocated", nothing, "2.1.220 -"},
    {"agent-setting", nothing, "2.1.220 -"},
    {"tag", nothing, "2.1.220 -"},
};

const Rule* find(std::span<const Rule> rules, std::string_view type) {
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const Rule& rule) { return rule.type == type; });
  return found == rules.end() ? nullptr : &*found;
}

class ClaudeCode final : public Dialect {
 public:
  std::string_view name() const override { return "claude-code"; }

  void read(const dom::element& json, std::string_view raw, Record& out) const override {
    const Fields fields(json);
    out.type = text(fields.type);
    read_header(fields, out);
    if (out.type == "user") return read_user(fields, raw, out);
    if (out.type == "assistant") return read_assistant(fields, raw, out);
    const Rule* rule = find(chain, out.type);
    if (!rule) rule = find(metadata, out.type);
    out.unknown = !rule;
    if (rule) rule->read(fields, out);
  }
};

}  // namespace

const Dialect& claude_code() {
  static const ClaudeCode reader;
  return reader;
}

bool is_claude_code_chain(std::string_view type) {
  return type == "user" || type == "assistant" || find(chain, type) != nullptr;
}
bool is_claude_code_metadata(std::string_view type) { return find(metadata, type) != nullptr; }

}  // namespace earshot::dialects
