#include "serve/http/health.hpp"

#include <string_view>

#include "core/event_json.hpp"

namespace earshot::serve {
namespace {

/// Fields of one JSON object, in the order in which they are named.
class Object {
 public:
  explicit Object(std::string& out) : out_(out) { out_ += '{'; }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  ~Object() { out_ += '}'; }

  std::string& key(std::string_view name) {
    if (!first_) out_ += ',';
    first_ = false;
    append_string(out_, name);
    out_ += ':';
    return out_;
  }
  void text(std::string_view name, std::string_view value) { append_string(key(name), value); }
  template <class Number>
  void number(std::string_view name, Number value) {
    key(name) += std::to_string(value);
  }
  void flag(std::string_view name, bool value) { key(name) += value ? "true" : "false"; }

 private:
  std::string& out_;
  bool first_ = true;
};

template <class Items, class Append>
void append_array(std::string& out, const Items& items, Append append) {
  out += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    first = false;
    append(item);
  }
  out += ']';
}

}  // namespace

std::string health_json(const Health& health) {
  std::string out;
  {
    Object object(out);
    object.text("version", health.version);
    object.text("instance", health.instance);
    object.text("host", health.host);
    object.number("pid", health.pid);
    object.number("uptime_s", health.uptime_s);
    object.number("protocol", 1);
    object.text("state", health.state);
    object.text("address", health.address);
    object.text("socket", health.socket);
    append_array(object.key("roots"), health.roots, [&](const Health::Root& root) {
      Object one(out);
      one.text("name", root.name);
      one.text("path", root.path);
      one.flag("there", root.there);
      one.number("transcripts", root.transcripts);
      one.number("live", root.live);
    });
    object.key("watch");
    {
      Object watch(out);
      watch.text("mode", health.watch.mode);
      watch.text("trouble", health.watch.trouble);
      watch.number("inotify_watches", health.watch.inotify_watches);
    }
    append_array(object.key("troubles"), health.troubles, [&](const Health::Trouble& trouble) {
      Object one(out);
      one.text("path", trouble.path);
      one.text("reason", trouble.reason);
      one.text("advice", trouble.advice);
    });
    object.key("redaction");
    {
      Object redaction(out);
      redaction.flag("on", health.redaction.on);
      append_array(redaction.key("rules"), health.redaction.rules,
                   [&](const std::string& rule) { append_string(out, rule); });
    }
    if (!health.team.all.empty()) {
      object.key("team");
      Object team(out);
      for (const TeamMetric& each : health.team.all) team.number(each.name, each.value);
    }
    if (!health.hosts.empty()) {
      append_array(object.key("hosts"), health.hosts, [&](const Health::Host& host) {
        Object one(out);
        one.text("name", host.name);
        one.flag("online", host.online);
        one.text("heard", host.heard);
      });
    }
    object.number("connections", health.connections);
    object.number("sessions", health.sessions);
    object.key("limits");
    {
      Object limits(out);
      for (const auto& [name, value] : health.limits) limits.number(name, value);
    }
  }
  return out + "\n";
}

}  // namespace earshot::serve
