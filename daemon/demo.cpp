#include "demo.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/steady_timer.hpp>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <iterator>
#include <random>
#include <system_error>

#include "base/hex.hpp"
#include "base/quantities.hpp"
#include "status/process_registry.hpp"

namespace earshot::demo {

namespace fs = std::filesystem;

namespace {

constexpr int pause_ms = 3000;  // between two sessions
constexpr std::string_view cwd = "/home/keeper/lighthouse";
constexpr std::string_view project = "projects/-home-keeper-lighthouse";

/// Registry members of a step; empty without a status, as older versions write it.
std::string status_fields(const Step& step) {
  if (step.name.empty()) return {};
  const std::string now = std::to_string(now_ms());
  std::string fields =
      R"(,"status":")" + std::string(step.name) + R"(","updatedAt":)" + now + R"(,"statusUpdatedAt":)" + now;
  if (!step.text.empty()) fields += R"(,"waitingFor":")" + std::string(step.text) + "\"";
  return fields;
}

std::string create_root() {
  const char* chosen = std::getenv("TMPDIR");
  for (const std::string& below : {std::string(chosen ? chosen : ""), std::string("/tmp")}) {
    if (below.empty()) continue;
    std::string path = below + "/earshot-demo-XXXXXX";
    if (::mkdtemp(path.data())) return path;  // 0700
  }
  throw std::system_error(errno, std::generic_category(), "no temporary directory for the demo");
}

/// Appends (O_APPEND) or replaces (O_TRUNC) with one write, as the agent program does.
void write_file(const std::string& path, std::string_view text, int flags) {
  fs::create_directories(fs::path(path).parent_path());
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), path);
  const ssize_t written = ::write(fd, text.data(), text.size());
  const int error = errno;
  ::close(fd);
  if (written != static_cast<ssize_t>(text.size()))
    throw std::system_error(error, std::generic_category(), path);
}

}  // namespace

struct Demo::Impl : std::enable_shared_from_this<Demo::Impl> {
  /// A chain of records: each names the one before it as its parent.
  struct Thread {
    struct Call {
      std::string id, caller;
    };
    std::string parent = "null";   // JSON
    std::deque<Call> open;         // calls without a result, oldest first
    std::string message, request;  // of the current message; empty: the next block starts a new one
    int index = 0;                 // of its block
    int lines = 0, context = 0;
  };

  struct Session {
    std::string id, agent, compaction, prompt;
    std::int64_t started_ms = 0;
    int turn = 0;
    std::array<Thread, 2> threads;
    std::size_t step = 0;
  };

  Impl(boost::asio::io_context& io, double given_speed)
      : speed(given_speed), root(create_root()), timer(io) {}

  void begin();
  void next();
  void play(const Step& step);
  void write_line(const Step& step);
  void write_registry(const Step& step);
  void clean();
  void wait(int ms, void (Impl::*then)());

  std::string fill(std::string_view text, const Step& step, Thread& thread, const std::string& uuid);
  struct Context;
  struct Placeholder;
  static const Placeholder placeholders[];
  std::string block_of(const Step& step, Thread& thread, const std::string& uuid);
  std::string digits(std::string_view alphabet, std::size_t count);
  std::string uuid();

  std::string at(std::string_view below) const { return root + "/" + std::string(below); }
  std::string folder() const { return at(project) + "/" + session.id; }
  std::string registry_path() const { return at("sessions/" + std::to_string(::getpid()) + ".json"); }

  double speed;
  std::string root;
  boost::asio::steady_timer timer;
  status::ProcessTable processes;
  std::mt19937_64 random{std::random_device{}()};
  Session session;
  std::deque<std::string> old;  // ended sessions, oldest first
  bool running = false;
};

std::string Demo::Impl::digits(std::string_view alphabet, std::size_t count) {
  std::string text;
  std::uniform_int_distribution<std::size_t> pick(0, alphabet.size() - 1);
  while (text.size() < count) text += alphabet[pick(random)];
  return text;
}

std::string Demo::Impl::uuid() {
  return random_hex(4) + "-" + random_hex(2) + "-4" + random_hex(2).substr(1) + "-" + digits("89ab", 1) +
         random_hex(2).substr(1) + "-" + random_hex(6);
}

void Demo::Impl::wait(int ms, void (Impl::*then)()) {
  const double scaled = speed > 0 ? ms * 1000.0 / speed : 0;
  timer.expires_after(std::chrono::microseconds(static_cast<std::int64_t>(scaled)));
  timer.async_wait([weak = weak_from_this(), then](const boost::system::error_code& failed) {
    const auto self = weak.lock();
    if (failed || !self || !self->running) return;
    try {
      (self.get()->*then)();
    } catch (const std::exception& error) {  // such as a full disk: the daemon goes on without the demo
      spdlog::warn("the demo stops: {}", error.what());
      self->running = false;
    }
  });
}

void Demo::Impl::begin() {
  session = Session{};
  session.id = uuid();
  session.agent = "a" + random_hex(8);
  session.compaction = "acompact-" + random_hex(8);
  session.started_ms = now_ms();
  wait(script()[0].after_ms, &Impl::next);
}

void Demo::Impl::next() {
  const auto steps = script();
  play(steps[session.step++]);
  if (session.step < steps.size()) return wait(steps[session.step].after_ms, &Impl::next);
  clean();
  wait(pause_ms, &Impl::begin);
}

void Demo::Impl::clean() {
  old.push_back(session.id);
  while (old.size() > old_sessions_max) {
    const std::string path = at(project) + "/" + old.front();
    fs::remove(path + ".jsonl");
    fs::remove_all(path);
    fs::remove_all(at("tasks/" + old.front()));
    old.pop_front();
  }
}

void Demo::Impl::play(const Step& step) {
  Thread& thread = session.threads[static_cast<std::size_t>(step.chain)];
  switch (step.act) {
    case Act::registry:
      return write_registry(step);
    case Act::leave:
      fs::remove(registry_path());
      return;
    case Act::task: {
      const std::string path = at("tasks/" + session.id + "/" + std::string(step.name) + ".json");
      write_file(path + ".tmp", step.text, O_TRUNC);
      return fs::rename(path + ".tmp", path);
    }
    case Act::meta: {
      Thread& parent = session.threads[0];
      const std::string path = folder() + "/subagents/agent-" + session.agent + ".meta.json";
      return write_file(path, fill(meta_file(), step, parent, {}), O_TRUNC);
    }
    case Act::prompt:
      ++session.turn;
      session.prompt = uuid();
      break;
    default:
      break;
  }
  const bool assistant =
      step.act == Act::think || step.act == Act::say || step.act == Act::call || step.act == Act::finish;
  if (!assistant) thread.message.clear();
  if (assistant && thread.message.empty()) {
    constexpr std::string_view letters = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    thread.message = "msg_01" + digits(letters, 22);
    thread.request = "req_011" + digits(letters, 21);
    thread.index = 0;
    thread.context += 1700;
  }
  write_line(step);
}

void Demo::Impl::write_line(const Step& step) {
  Thread& thread = session.threads[static_cast<std::size_t>(step.chain)];
  const std::string id = uuid();
  const std::string line = fill(line_of(step.act), step, thread, id) + "\n";
  if (step.act == Act::compacting)
    return write_file(folder() + "/subagents/agent-" + session.compaction + ".jsonl", line, O_APPEND);
  const bool is_main = step.chain == Chain::main;
  write_file(is_main ? folder() + ".jsonl" : folder() + "/subagents/agent-" + session.agent + ".jsonl", line,
             O_APPEND);
  if (step.act == Act::result) thread.open.pop_front();
  if (step.act == Act::title || step.act == Act::cost) return;  // not part of the parent chain
  thread.parent = "\"" + id + "\"";
  ++thread.index;
  ++thread.lines;
}

void Demo::Impl::write_registry(const Step& step) {
  write_file(registry_path(), fill(registry_file(), step, session.threads[0], {}), O_TRUNC);
}

std::string Demo::Impl::block_of(const Step& step, Thread& thread, const std::string& uuid) {
  const std::string text = fill(step.text, step, thread, uuid);
  if (step.act == Act::think) return R"({"type":"thinking","thinking":")" + text + R"(","signature":""})";
  if (step.act != Act::call) return R"({"type":"text","text":")" + text + "\"}";
  thread.open.push_back(
      {"toolu_01" + digits("abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", 22), uuid});
  return R"({"type":"tool_use","id":")" + thread.open.back().id + R"(","name":")" + std::string(step.name) +
         R"(","input":)" + text + "}";
}

/// The context of a placeholder.
struct Demo::Impl::Context {
  Impl& demo;
  const Step& step;
  Thread& thread;
  const std::string& uuid;

  Thread::Call call() const { return thread.open.empty() ? Thread::Call{} : thread.open.front(); }
  bool agent() const { return step.chain == Chain::agent; }
  std::string text(std::string_view of) const { return demo.fill(of, step, thread, uuid); }
};

struct Demo::Impl::Placeholder {
  std::string_view name;
  std::string (*fill)(Context&);
};

const Demo::Impl::Placeholder Demo::Impl::placeholders[] = {
    {"parent", [](Context& at) { return at.thread.parent; }},
    {"uuid", [](Context& at) { return at.uuid; }},
    {"time", [](Context&) { return format_time(now_ms()); }},
    {"session", [](Context& at) { return at.demo.session.id; }},
    {"cwd", [](Context&) { return std::string(cwd); }},
    {"agent", [](Context& at) { return at.demo.session.agent; }},
    {"compaction", [](Context& at) { return at.demo.session.compaction; }},
    {"prompt", [](Context& at) { return at.demo.session.prompt; }},
    {"sidechain", [](Context& at) { return std::string(at.agent() ? "true" : "false"); }},
    {"agent_field",
     [](Context& at) {
       return at.agent() ? R"("agentId":")" + at.demo.session.agent + "\"," : std::string();
     }},
    {"turn", [](Context& at) { return std::to_string(at.demo.session.turn); }},
    {"lines", [](Context& at) { return std::to_string(at.thread.lines); }},
    {"message", [](Context& at) { return at.thread.message; }},
    {"request", [](Context& at) { return at.thread.request; }},
    {"index", [](Context& at) { return std::to_string(at.thread.index); }},
    {"stop", [](Context& at) { return std::string(at.step.act == Act::finish ? "end_turn" : "tool_use"); }},
    {"context", [](Context& at) { return std::to_string(at.thread.context); }},
    {"output", [](Context& at) { return std::to_string(40 + at.step.text.size() / 4); }},
    {"block", [](Context& at) { return at.demo.block_of(at.step, at.thread, at.uuid); }},
    {"call", [](Context& at) { return at.call().id; }},
    {"caller", [](Context& at) { return at.call().caller; }},
    {"name", [](Context& at) { return std::string(at.step.name); }},
    {"text", [](Context& at) { return at.text(at.step.text); }},
    {"tool_use_result",
     [](Context&
            at) { return at.step.more.empty() ? "" : R"("toolUseResult":)" + at.text(at.step.more) + ","; }},
    {"tail", [](Context& at) { return at.demo.fill(line_tail(), at.step, at.thread, at.uuid); }},
    {"pid", [](Context&) { return std::to_string(::getpid()); }},
    {"started_ms", [](Context& at) { return std::to_string(at.demo.session.started_ms); }},
    {"process_start", [](Context& at) { return at.demo.processes.start_of(::getpid()); }},
    {"domain", [](Context& at) { return at.demo.processes.pid_domain(); }},
    {"status", [](Context& at) { return status_fields(at.step); }},
};

std::string Demo::Impl::fill(std::string_view text, const Step& step, Thread& thread,
                             const std::string& uuid) {
  std::string filled;
  for (;;) {
    const auto begin = text.find("${");
    const auto end = begin == text.npos ? text.npos : text.find('}', begin);
    filled.append(text.substr(0, begin));
    if (end == text.npos) return filled;
    const std::string_view name = text.substr(begin + 2, end - begin - 2);
    const auto found = std::find_if(std::begin(placeholders), std::end(placeholders),
                                    [&](const Placeholder& one) { return one.name == name; });
    assert(found != std::end(placeholders));  // the script is part of the program
    Context context{*this, step, thread, uuid};
    if (found != std::end(placeholders)) filled.append(found->fill(context));
    text.remove_prefix(end + 1);
  }
}

Demo::Demo(boost::asio::io_context& io, double speed) : impl_(std::make_shared<Impl>(io, speed)) {}

Demo::~Demo() {
  stop();
  std::error_code ignored;
  fs::remove_all(impl_->root, ignored);
}

const std::string& Demo::root() const { return impl_->root; }

void Demo::start() {
  if (impl_->running) return;
  impl_->running = true;
  impl_->begin();
}

void Demo::stop() {
  impl_->running = false;
  impl_->timer.cancel();
}

}  // namespace earshot::demo
