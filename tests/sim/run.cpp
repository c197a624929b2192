#include "run.hpp"

#include <boost/asio/io_context.hpp>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "agent.hpp"
#include "agents/agent.hpp"
#include "agents/stream_name.hpp"
#include "client.hpp"
#include "core/cursor.hpp"
#include "core/event_json.hpp"
#include "machine.hpp"
#include "serve/server.hpp"
#include "tail/tail.hpp"
#include "unreliable_watcher.hpp"
#include "watch/watchers.hpp"

namespace earshot::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t key = 42;
const std::string root = "/home/u/.claude";
constexpr std::size_t log_bytes = 512 << 10;
constexpr watch::SweepIntervals intervals{200ms, 10'000ms, 5'000ms, 2'000ms};

using Trace = std::function<void(const std::string&)>;

/// Forwards the events of the tail to the server and adds them to the trace.
class ObserverTrace final : public tail::StreamObserver {
 public:
  ObserverTrace(serve::Server& server, Trace trace) : server_(server), trace_(std::move(trace)) {}
  void on_added(const tail::Stream& stream) override {
    log("added", stream);
    server_.on_added(stream);
  }
  void on_event(const tail::Stream& stream, const Event& event) override {
    if (trace_)
      trace_("  the tail: " + std::string(type_name(event.body)) + ' ' + stream.name() + ' ' +
             to_string(event.cursor));
    server_.on_event(stream, event);
  }
  void on_changed(const tail::Stream& stream) override { server_.on_changed(stream); }
  void on_reset(const tail::Stream& stream, std::string_view reason) override {
    log("reset, " + std::string(reason), stream);
    server_.on_reset(stream, reason);
  }
  void on_removed(const tail::Stream& stream) override {
    log("removed", stream);
    server_.on_removed(stream);
  }
  void on_renamed(const tail::Stream& stream, std::string_view from) override {
    log("renamed from " + std::string(from), stream);
    server_.on_renamed(stream, from);
  }
  void on_compacting(std::string_view session) override { server_.on_compacting(session); }
  void on_flush() override { server_.on_flush(); }
  void on_batch_end() override { server_.on_batch_end(); }

 private:
  void log(const std::string& what, const tail::Stream& stream) {
    if (trace_)
      trace_("  the tail: " + what + ' ' + stream.name() + " at " + std::to_string(stream.published_bytes()));
  }
  serve::Server& server_;
  const Trace trace_;
};

/// The daemon's modules, connected as in Daemon; its disk thread is a queue that the run processes.
class Daemon {
 public:
  Daemon(Machine& machine, const AgentProgram& program, NotificationFaults faults, Trace trace)
      : server(io, {.host = "h", .version = "0", .token = "t", .log_bytes_max = log_bytes}),
        observer(server, std::move(trace)),
        watcher(machine, faults, [this](const watch::ChangeHint& hint) { on_change(hint); }),
        sweep(
            io, disk.get_executor(), [this](const watch::ChangeHint& hint) { mux.notify(hint); }, intervals,
            [] { return true; }),
        tail(io, disk.get_executor(), connect_backends(), options(program), observer) {
    server.set_archive(tail);
    tail.start([this] {
      ready = true;
      server.serve();
    });
  }
  ~Daemon() {
    tail.stop();
    while (disk.poll() > 0) disk.restart();
    for (const auto& each : connections)
      if (const auto connection = each.lock())
        if (const auto drop = connection->drop) drop();
  }

  /// False: nothing to do now.
  bool step(Random& random) {
    io.restart();
    disk.restart();
    const bool disk_first = random.percent(50);
    if (disk_first && disk.poll_one() > 0) return true;
    return io.poll_one() > 0 || (!disk_first && disk.poll_one() > 0);
  }

  boost::asio::io_context io{1}, disk{1};
  watch::WatchMux mux;
  serve::Server server;
  ObserverTrace observer;
  UnreliableWatcher watcher;
  watch::Sweep sweep;
  tail::Tail tail;
  bool ready = false;
  std::vector<std::weak_ptr<Connection>> connections;

 private:
  void on_change(const watch::ChangeHint& hint) {
    if (hint.where == watch::ChangeHint::Where::path) sweep.mark_hot(hint.path);
    mux.notify(hint);
  }
  watch::WatchMux& connect_backends() {
    mux.add_backend(watcher);
    mux.add_backend(sweep);
    return mux;
  }
  static tail::Options options(const AgentProgram& program) {
    tail::Options options;
    options.roots = {{"r", root, true, &program}};
    options.hash_key = key;
    options.files_per_turn = 2;
    return options;
  }
};

const AgentProgram& program_of(std::uint64_t seed) {
  const auto all = agent_programs();
  return *all[seed / seeds_per_program % all.size()];
}

class Run {
 public:
  Run(std::uint64_t seed, const std::function<void(const std::string&)>& trace)
      : machine_(seed),
        random_(machine_.random),
        program_(program_of(seed)),
        agent_(machine_, program_, root),
        trace_(trace),
        has_cold_files_(seed % seeds_per_program >= first_seed_with_cold_files),
        has_second_subscriptions_(seed % seeds_per_program >= first_seed_with_second_subscriptions &&
                                  !has_cold_files_) {}

  Outcome outcome() {
    try {
      live();
    } catch (const std::exception& failed) {
      outcome_.failure = failed.what();
    }
    return outcome_;
  }

 private:
  void log(const std::string& what) {
    if (trace_) trace_(std::to_string(machine_.now / 1ms) + " ms  " + what);
  }

  void live() {
    machine_.has_birth_times = random_.percent(80);
    if (random_.percent(70)) notification_faults_ = {static_cast<unsigned>(random_.below(30)), 5, 10, 1};
    if (random_.percent(5)) notification_faults_.lost = 100;
    if (random_.percent(60)) faults_ = {2, 20, 30, 2, 1, 2};
    machine_.make_directories("/home/u");
    if (random_.percent(80))
      for (std::uint64_t n = random_.below(20); n > 0; --n) log(agent_.act());
    make_clients();
    if (has_cold_files_) machine_.wait(48h);
    start_daemon();
    machine_.faults = faults_;
    for (std::uint64_t steps = random_.between(40, 400); steps > 0; --steps) {
      step();
      check_cold_streams(false);
    }
    settle();
    compare("live", true);
    for (auto& client : clients_) leave(*client);
    settle();
    compare("after a resume", false);
    edit();
    settle();
    compare("after an edit", true);
    log("the daemon is killed and restarted");
    kill();
    settle();
    compare("after a restart", false);
  }

  /// Changes one byte without a later append: detected by the change time.
  void edit() {
    for (const auto& [path, file] : machine_.files(root)) {
      file->hidden = false;  // earlier hidden edits have been found
      if (file->bytes.empty() || random_.percent(50)) continue;
      const std::size_t at = random_.below(file->bytes.size());
      machine_.overwrite(file, at, file->bytes[at] == 'x' ? "y" : "x");
      file->hidden = false;
      log("edit " + path + " at " + std::to_string(at));
    }
  }

  void make_clients() {
    const std::uint64_t count = random_.between(1, 4);
    for (std::uint64_t n = 0; n < count; ++n) {
      Client::ClientOptions options;
      options.name = "client " + std::to_string(n);
      if (random_.percent(25)) options.types = {random_.percent(50) ? "turn.*" : "tool.*"};
      options.catch_up = random_.percent(50);
      // A session that was old when a client subscribed is not announced to it.
      options.whole = random_.percent(50) || has_cold_files_;
      // Without `catch_up` the position of a client that lagged is known to the daemon only.
      if (has_second_subscriptions_ && options.catch_up) options.second_after = random_.between(1, 60);
      clients_.push_back(std::make_unique<Client>(std::move(options)));
      if (trace_) clients_.back()->trace = [this](const std::string& what) { log(what); };
    }
  }

  void start_daemon() {
    daemon_ = std::make_unique<Daemon>(machine_, program_, notification_faults_,
                                       trace_ ? [this](const std::string& what) { log(what); } : Trace());
    log("the daemon starts");
  }
  void kill() {
    daemon_.reset();
    for (auto& client : clients_) client->leave();
    start_daemon();
  }

  std::set<std::string> streams() const {
    std::set<std::string> all;
    if (daemon_->ready)
      daemon_->tail.for_each([&](const tail::Stream& stream) { all.insert(stream.name()); });
    return all;
  }
  void connect(Client& client) {
    if (!daemon_->ready) return;
    auto line = std::make_shared<Connection>(daemon_->io);
    line->room = random_.percent(70) ? 1 << 30 : random_.below(20'000);
    daemon_->connections.push_back(line);
    daemon_->server.admit(make_sim_transport(line), serve::TransportKind::unix_socket);
    client.connect(std::move(line), streams());
    log(client.options().name + " connects");
  }
  void leave(Client& client) {
    if (!client.connected()) return;
    client.process_received();
    client.leave();
    log(client.options().name + " disconnects");
  }

  void turn(std::uint64_t times) {
    while (times-- > 0) daemon_->step(random_);
  }

  void step() {
    const auto what = random_.below(100);
    if (what < 35) return log(agent_.act());
    if (what < 50) return void(daemon_->watcher.deliver());
    if (what < 70) return turn(random_.between(1, 30));
    if (what < 82)
      return machine_.wait(
          std::chrono::milliseconds(random_.percent(10) ? random_.below(5000) : random_.below(100)));
    if (what == 82) return kill_now();
    if (what == 83) return machine_.faults = random_.percent(50) ? Faults{} : faults_, void();
    Client& client = *random_.one_of(clients_);
    if (!client.connected()) return connect(client);
    if (what == 84) return leave(client);
    if (what < 88) return stall(client);
    give_room(client, random_.percent(50) ? 1 << 30 : random_.below(50'000));
  }
  void kill_now() {
    for (auto& client : clients_) client->process_received();
    log("kill -9 and restart");
    kill();
  }
  void stall(Client& client) {
    client.line()->room = 0;
    client.line()->pongs = random_.percent(50);
    log(client.options().name + " stalls");
  }
  void give_room(Client& client, std::size_t bytes) {
    client.line()->room = bytes;
    client.line()->pongs = true;
    if (client.line()->moved) client.line()->moved();
    client.process_received();
  }

  /// Without faults and writes: runs until everything is idle and a slow sweep was completed.
  void settle() {
    machine_.faults = {};
    for (const auto& [path, file] : machine_.files(root))
      if (file->denied) machine_.deny(file, false);
    log("settles");
    // An unreadable file is tried again after at most a minute.
    const auto until = machine_.now + 90s;
    while (machine_.now < until) {
      for (bool busy = true; busy;) {
        busy = daemon_->watcher.deliver(true);
        for (int turns = 0; daemon_->step(random_); ++turns) {
          busy = true;
          if (turns > 1'000'000) throw std::runtime_error("the daemon does not become idle");
        }
      }
      for (auto& client : clients_) {
        if (!client->connected()) connect(*client);
        if (client->connected()) give_room(*client, 1 << 30);
      }
      while (daemon_->step(random_)) {
      }
      machine_.wait(machine_.now + 5s < until ? 499ms : 100ms);
    }
    for (auto& client : clients_) client->process_received();
  }

  /// Looks up the cold streams of each session that was ever seen, as the daemon does for a live process
  /// without a transcript. `idle`: no file is being folded, so that all of them must be found.
  void check_cold_streams(bool idle) {
    std::map<std::string, std::set<std::string>> expected;
    daemon_->tail.for_each([&](const tail::Stream& stream) {
      sessions_.insert(stream.session());
      if (!stream.transcript()) expected[stream.session()].insert(stream.name());
    });
    for (const std::string& session : sessions_) {
      const std::set<std::string>& cold = expected[session];
      const auto found = daemon_->tail.cold_streams_of(session);
      for (const std::string& name : found)
        if (!cold.contains(name)) throw std::runtime_error(name + " is no cold stream of " + session);
      if (idle && found.size() != cold.size())
        throw std::runtime_error("cold streams of " + session + " were not found");
    }
  }

  struct Fold final : EventSink {
    std::string stream, session, bytes;      // the session: by the path, or the records so far
    const Transcript* transcript = nullptr;  // null: the records do not matter
    EncodeOptions encoding;
    struct Each {
      Cursor at;
      std::string type, text;
    };
    std::vector<Each> events;
    void on_event(const Event& event) override {
      Each each{event.cursor, std::string(type_name(event.body)), {}};
      const bool is_recorded = transcript && !transcript->recorded_session().empty();
      append_event(each.text, event, {"h", stream, is_recorded ? transcript->recorded_session() : session},
                   encoding);
      events.push_back(std::move(each));
    }
  };

  std::string health() const {
    std::string all;
    for (const auto& [path, reason, advice] : daemon_->tail.problems()) all += "\n  " + path + ": " + reason;
    return all;
  }

  /// The events of each stream in a single fold.
  std::map<std::string, Fold> fold_files(bool live) {
    std::map<std::string, Fold> all;
    std::set<const Node*> seen;
    hidden_.clear();
    daemon_->tail.for_each([&](const tail::Stream& stream) {
      const NodePtr file = machine_.find(stream.path());
      if (!file) throw std::runtime_error(stream.name() + " is known, but its file was removed" + health());
      seen.insert(file.get());
      if (live && file->hidden) hidden_.insert(stream.name());
      Fold& fold = all[stream.name()];
      fold.stream = stream.name();
      const auto place = place_of(stream.path(), program_);
      fold.session = place.is_likely ? place.session : stream.session();
      fold.encoding = daemon_->server.context().encoding(serve::Audience::full);
      std::string bytes = fold.bytes = file->bytes;
      const std::size_t size = bytes.size();
      bytes.resize(size + feed_padding);
      Workspace workspace;
      Transcript transcript({.hash_key = key, .own_agent = place.agent, .format = &program_.format()});
      if (place.is_likely) fold.transcript = &transcript;
      transcript.feed(std::span<const char>(bytes).first(size), workspace, fold);
      fold.transcript = nullptr;
    });
    for (const auto& [path, file] : machine_.files(root))
      if (path.ends_with(".jsonl") && !seen.contains(file.get()))
        throw std::runtime_error(path + " was not found" + health());
    return all;
  }

  void compare(const std::string& when, bool live) {
    check_cold_streams(true);
    const auto files = fold_files(live);
    for (const auto& client : clients_) {
      const auto fail = [&](const std::string& stream, const std::string& what) {
        throw std::runtime_error(when + ": " + client->options().name + ": " + stream + ": " + what);
      };
      if (!client->connected() || !client->is_ready()) fail("-", "is not ready");
      for (const auto& [stream, held] : client->held()) {
        if (hidden_.contains(stream)) continue;
        const auto at = files.find(stream);
        if (at == files.end() && held.restarted) continue;  // it was unreadable, then removed
        if (at == files.end()) fail(stream, "the stream does not exist any more");
        if (!held.violation.empty()) fail(stream, held.violation);
        check(at->second, held, *client, [&](const std::string& what) { fail(stream, what); });
      }
      for (const auto& [stream, fold] : files)
        if (!client->held().contains(stream) && !hidden_.contains(stream))
          for (const auto& each : fold.events)
            if (client->wants(each.type)) fail(stream, "it did not receive the stream");
    }
  }

  void check(const Fold& fold, const ReceivedStream& held, const Client& client,
             const std::function<void(const std::string&)>& fail) {
    const auto is_position = [&](const std::string& cursor) {
      const auto place = parse_cursor(cursor);
      if (!place || place->offset > fold.bytes.size()) return false;
      PrefixHasher prefix_hash(key);
      prefix_hash.add(std::span<const char>(fold.bytes).first(place->offset));
      return *place == begin_cursor || prefix_hash.value() == place->prefix_hash;
    };
    auto expected = fold.events.begin();
    if (!held.base.empty()) {
      if (!is_position(held.base)) return fail("its base is no position in the file: " + held.base);
      const Cursor base = *parse_cursor(held.base);
      const auto place = [](const Cursor& at) { return std::pair(at.offset, at.index); };
      while (expected != fold.events.end() && place(expected->at) <= place(base)) ++expected;
    }
    const auto next = [&] {
      while (expected != fold.events.end() && !client.wants(expected->type)) ++expected;
    };
    for (const Received& received : held.events) {
      if (received.text.empty()) {
        if (!is_position(received.cursor))
          return fail("a cursor is no position in the file: " + received.cursor);
        continue;
      }
      next();
      if (expected == fold.events.end()) return fail("extra event: " + received.text);
      if (expected->text != received.text)
        return fail("received\n  " + received.text.substr(0, 400) + "\ninstead of\n  " +
                    expected->text.substr(0, 400));
      ++expected;
      ++outcome_.events;
    }
    next();
    if (expected != fold.events.end()) fail("missing event: " + expected->text.substr(0, 400));
  }

  Machine machine_;
  Random& random_;
  const AgentProgram& program_;
  Agent agent_;
  const std::function<void(const std::string&)>& trace_;
  const bool has_cold_files_, has_second_subscriptions_;
  std::set<std::string> sessions_;  // whose cold streams were looked up
  NotificationFaults notification_faults_;
  Faults faults_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::unique_ptr<Daemon> daemon_;
  std::set<std::string> hidden_;
  Outcome outcome_;
};

}  // namespace

Outcome run(std::uint64_t seed, const std::function<void(const std::string&)>& trace) {
  Run run(seed, trace);
  return run.outcome();
}

}  // namespace earshot::sim
