#include "run.hpp"
#include "agents/claude_code/reader.hpp"

#include <boost/asio/io_context.hpp>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "agent.hpp"
#include "client.hpp"
#include "core/cursor.hpp"
#include "core/event_json.hpp"
#include "core/prefix_hash.hpp"
#include "doorbell.hpp"
#include "machine.hpp"
#include "serve/server.hpp"
#include "tail/tail.hpp"
#include "watch/sweep.hpp"
#include "watch/watch_mux.hpp"

namespace earshot::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t key = 42;
const std::string root = "/home/u/.claude";
constexpr std::size_t log_bytes = 512 << 10;
constexpr watch::SweepIntervals beats{200ms, 10'000ms, 5'000ms, 2'000ms};

using Trace = std::function<void(const std::string&)>;

/// What the tail tells goes on to the server, and into the trace.
class Overheard final : public tail::Listener {
 public:
  Overheard(serve::Server& server, Trace trace) : server_(server), trace_(std::move(trace)) {}
  void on_appeared(const tail::Stream& stream) override {
    say("appeared", stream);
    server_.on_appeared(stream);
  }
  void on_event(const tail::Stream& stream, const Event& event) override {
    if (trace_)
      trace_("  the tail: " + std::string(type_name(event.body)) + ' ' + stream.name() + ' ' +
             to_string(event.cursor));
    server_.on_event(stream, event);
  }
  void on_changed(const tail::Stream& stream) override { server_.on_changed(stream); }
  void on_reset(const tail::Stream& stream, std::string_view reason) override {
    say("reset, " + std::string(reason), stream);
    server_.on_reset(stream, reason);
  }
  void on_removed(const tail::Stream& stream) override {
    say("removed", stream);
    server_.on_removed(stream);
  }
  void on_compacting(std::string_view session) override { server_.on_compacting(session); }
  void on_pumped() override { server_.on_pumped(); }

 private:
  void say(const std::string& what, const tail::Stream& stream) {
    if (trace_) trace_("  the tail: " + what + ' ' + stream.name() + " at " + std::to_string(stream.bytes()));
  }
  serve::Server& server_;
  const Trace trace_;
};

/// The daemon's rooms, wired up as it wires them; its second thread is a queue that the run works off.
class Daemon {
 public:
  Daemon(Machine& machine, Bell bell, Trace trace)
      : server(io, {.host = "h", .version = "0", .token = "t", .log_bytes_max = log_bytes}),
        overheard(server, std::move(trace)),
        doorbell(machine, bell, [this](const watch::ChangeHint& ring) { rang(ring); }),
        sweep(
            io, disk.get_executor(), [this](const watch::ChangeHint& ring) { switchboard.ring(ring); }, beats,
            [] { return true; }),
        tail(io, disk.get_executor(), connected(), options(), overheard) {
    server.set_archive(tail);
    tail.start([this] {
      ready = true;
      server.serve();
    });
  }
  ~Daemon() {
    tail.stop();
    while (disk.poll() > 0) disk.restart();
  }

  /// False: there is nothing to do now.
  bool step(Dice& dice) {
    io.restart();
    disk.restart();
    const bool disk_first = dice.percent(50);
    if (disk_first && disk.poll_one() > 0) return true;
    return io.poll_one() > 0 || (!disk_first && disk.poll_one() > 0);
  }

  boost::asio::io_context io{1}, disk{1};
  watch::WatchMux switchboard;
  serve::Server server;
  Overheard overheard;
  ChangeCallback doorbell;
  watch::Sweep sweep;
  tail::Tail tail;
  bool ready = false;

 private:
  void rang(const watch::ChangeHint& ring) {
    if (ring.where == watch::ChangeHint::Where::path) sweep.heat(ring.path);
    switchboard.ring(ring);
  }
  watch::WatchMux& connected() {
    switchboard.add(doorbell);
    switchboard.add(sweep);
    return switchboard;
  }
  static tail::Options options() {
    tail::Options options;
    options.roots = {{"r", root}};
    options.hash_key = key;
    return options;
  }
};

class Run {
 public:
  Run(std::uint64_t seed, const std::function<void(const std::string&)>& trace)
      : machine_(seed), dice_(machine_.dice), agent_(machine_, root), trace_(trace) {}

  Outcome outcome() {
    try {
      live();
    } catch (const std::exception& failed) {
      outcome_.failure = failed.what();
    }
    return outcome_;
  }

 private:
  void say(const std::string& what) {
    if (trace_) trace_(std::to_string(machine_.now / 1ms) + " ms  " + what);
  }

  void live() {
    machine_.tells_births = dice_.percent(80);
    if (dice_.percent(70)) bell_ = {static_cast<unsigned>(dice_.below(30)), 5, 10, 1};
    if (dice_.percent(5)) bell_.lost = 100;
    if (dice_.percent(60)) faults_ = {2, 20, 30, 2, 1, 2};
    machine_.make_directories("/home/u");
    if (dice_.percent(80))
      for (std::uint64_t n = dice_.below(20); n > 0; --n) say(agent_.act());
    make_clients();
    switch_on();
    machine_.faults = faults_;
    for (std::uint64_t steps = dice_.between(40, 400); steps > 0; --steps) step();
    settle();
    compare("live", true);
    for (auto& client : clients_) leave(*client);
    settle();
    compare("after a resume", false);
    edit();
    settle();
    compare("after an edit", true);
    say("the daemon is killed, and starts again");
    kill();
    settle();
    compare("after a restart", false);
  }

  /// One byte, with nothing written after it: its change time says so.
  void edit() {
    for (const auto& [path, file] : machine_.files(root)) {
      file->hidden = false;  // whatever it was has been found out
      if (file->bytes.empty() || dice_.percent(50)) continue;
      const std::size_t at = dice_.below(file->bytes.size());
      machine_.overwrite(file, at, file->bytes[at] == 'x' ? "y" : "x");
      file->hidden = false;
      say("edit " + path + " at " + std::to_string(at));
    }
  }

  void make_clients() {
    const std::uint64_t count = dice_.between(1, 4);
    for (std::uint64_t n = 0; n < count; ++n) {
      Client::Ways ways;
      ways.name = "client " + std::to_string(n);
      if (dice_.percent(25)) ways.types = {dice_.percent(50) ? "turn.*" : "tool.*"};
      ways.catch_up = dice_.percent(50);
      ways.whole = dice_.percent(50);
      clients_.push_back(std::make_unique<Client>(std::move(ways)));
      if (trace_) clients_.back()->trace = [this](const std::string& what) { say(what); };
    }
  }

  void switch_on() {
    daemon_ = std::make_unique<Daemon>(machine_, bell_,
                                       trace_ ? [this](const std::string& what) { say(what); } : Trace());
    say("the daemon starts");
  }
  void kill() {
    daemon_.reset();
    for (auto& client : clients_) client->leave();
    switch_on();
  }

  std::set<std::string> streams() const {
    std::set<std::string> all;
    if (daemon_->ready)
      daemon_->tail.for_each([&](const tail::Stream& stream) { all.insert(stream.name()); });
    return all;
  }
  void connect(Client& client) {
    if (!daemon_->ready) return;
    auto line = std::make_shared<Line>(daemon_->io);
    line->room = dice_.percent(70) ? 1 << 30 : dice_.below(20'000);
    daemon_->server.admit(make_sim_transport(line), serve::TransportKind::unix_socket);
    client.connect(std::move(line), streams());
    say(client.ways().name + " comes");
  }
  void leave(Client& client) {
    if (!client.connected()) return;
    client.look();
    client.leave();
    say(client.ways().name + " leaves");
  }

  void turn(std::uint64_t times) {
    while (times-- > 0) daemon_->step(dice_);
  }

  void step() {
    const auto what = dice_.below(100);
    if (what < 35) return say(agent_.act());
    if (what < 50) return void(daemon_->doorbell.deliver());
    if (what < 70) return turn(dice_.between(1, 30));
    if (what < 82)
      return machine_.wait(
          std::chrono::milliseconds(dice_.percent(10) ? dice_.below(5000) : dice_.below(100)));
    if (what == 82) return kill_now();
    if (what == 83) return machine_.faults = dice_.percent(50) ? Faults{} : faults_, void();
    Client& client = *dice_.one_of(clients_);
    if (!client.connected()) return connect(client);
    if (what == 84) return leave(client);
    if (what < 88) return stall(client);
    give_room(client, dice_.percent(50) ? 1 << 30 : dice_.below(50'000));
  }
  void kill_now() {
    for (auto& client : clients_) client->look();
    say("kill -9, and a start");
    kill();
  }
  void stall(Client& client) {
    client.line()->room = 0;
    client.line()->pongs = dice_.percent(50);
    say(client.ways().name + " stalls");
  }
  void give_room(Client& client, std::size_t bytes) {
    client.line()->room = bytes;
    client.line()->pongs = true;
    if (client.line()->moved) client.line()->moved();
    client.look();
  }

  /// Nothing goes wrong any more, and nobody writes: until all is quiet, and the slow sweep has been round.
  void settle() {
    machine_.faults = {};
    for (const auto& [path, file] : machine_.files(root))
      if (file->denied) machine_.deny(file, false);
    say("settles");
    // A file that could not be read is tried again after a minute at most.
    const auto until = machine_.now + 90s;
    while (machine_.now < until) {
      for (bool busy = true; busy;) {
        busy = daemon_->doorbell.deliver(true);
        for (int turns = 0; daemon_->step(dice_); ++turns) {
          busy = true;
          if (turns > 1'000'000) throw std::runtime_error("the daemon does not come to rest");
        }
      }
      for (auto& client : clients_) {
        if (!client->connected()) connect(*client);
        if (client->connected()) give_room(*client, 1 << 30);
      }
      while (daemon_->step(dice_)) {
      }
      machine_.wait(machine_.now + 5s < until ? 499ms : 100ms);
    }
    for (auto& client : clients_) client->look();
  }

  struct Fold final : EventSink {
    std::string stream, session, bytes;
    EncodeOptions encoding;
    struct Each {
      Cursor at;
      std::string type, text;
    };
    std::vector<Each> events;
    void on_event(const Event& event) override {
      Each each{event.cursor, std::string(type_name(event.body)), {}};
      append_event(each.text, event, {"h", stream, session}, encoding);
      events.push_back(std::move(each));
    }
  };

  std::string health() const {
    std::string all;
    for (const auto& [path, reason, advice] : daemon_->tail.health()) all += "\n  " + path + ": " + reason;
    return all;
  }

  /// Stream → its events, folded in one piece.
  std::map<std::string, Fold> fold_files(bool live) {
    std::map<std::string, Fold> all;
    std::set<const Node*> seen;
    hidden_.clear();
    daemon_->tail.for_each([&](const tail::Stream& stream) {
      const File file = machine_.find(stream.path());
      if (!file) throw std::runtime_error(stream.name() + " is known, and its file is gone" + health());
      seen.insert(file.get());
      if (live && file->hidden) hidden_.insert(stream.name());
      Fold& fold = all[stream.name()];
      fold.stream = stream.name();
      fold.session = stream.session();
      fold.encoding = daemon_->server.context().encoding(serve::Audience::full);
      std::string bytes = fold.bytes = file->bytes;
      const std::size_t size = bytes.size();
      bytes.resize(size + feed_padding);
      Workspace workspace;
      Transcript transcript({.hash_key = key, .own_agent = stream.agent(), .reader = &claude_code::reader()});
      transcript.feed(std::span<const char>(bytes).first(size), workspace, fold);
    });
    for (const auto& [path, file] : machine_.files(root))
      if (path.ends_with(".jsonl") && !seen.contains(file.get()))
        throw std::runtime_error(path + " was not found" + health());
    return all;
  }

  void compare(const std::string& when, bool live) {
    const auto files = fold_files(live);
    for (const auto& client : clients_) {
      const auto fail = [&](const std::string& stream, const std::string& what) {
        throw std::runtime_error(when + ": " + client->ways().name + ": " + stream + ": " + what);
      };
      if (!client->connected() || !client->is_ready()) fail("-", "is not ready");
      for (const auto& [stream, held] : client->held()) {
        if (hidden_.contains(stream)) continue;
        const auto at = files.find(stream);
        if (at == files.end() && held.restarted) continue;  // it could not be read, and then it went
        if (at == files.end()) fail(stream, "there is no such stream any more");
        if (!held.muddled.empty()) fail(stream, held.muddled);
        check(at->second, held, *client, [&](const std::string& what) { fail(stream, what); });
      }
      for (const auto& [stream, fold] : files)
        if (!client->held().contains(stream) && !hidden_.contains(stream))
          for (const auto& each : fold.events)
            if (client->wants(each.type)) fail(stream, "it was never told of it");
    }
  }

  void check(const Fold& fold, const Held& held, const Client& client,
             const std::function<void(const std::string&)>& fail) {
    const auto is_place = [&](const std::string& cursor) {
      const auto place = parse_cursor(cursor);
      if (!place || place->offset > fold.bytes.size()) return false;
      PrefixHasher prefix_hash(key);
      prefix_hash.add(std::span<const char>(fold.bytes).first(place->offset));
      return *place == begin_cursor || prefix_hash.value() == place->prefix_hash;
    };
    auto expected = fold.events.begin();
    if (!held.base.empty()) {
      if (!is_place(held.base)) return fail("its beginning is no place of the file: " + held.base);
      const Cursor base = *parse_cursor(held.base);
      const auto place = [](const Cursor& at) { return std::pair(at.offset, at.index); };
      while (expected != fold.events.end() && place(expected->at) <= place(base)) ++expected;
    }
    const auto next = [&] {
      while (expected != fold.events.end() && !client.wants(expected->type)) ++expected;
    };
    for (const Heard& heard : held.events) {
      if (heard.text.empty()) {
        if (!is_place(heard.cursor)) return fail("a bookmark is no place of the file: " + heard.cursor);
        continue;
      }
      next();
      if (expected == fold.events.end()) return fail("too much: " + heard.text);
      if (expected->text != heard.text)
        return fail("it has\n  " + heard.text.substr(0, 400) + "\nnot\n  " + expected->text.substr(0, 400));
      ++expected;
      ++outcome_.events;
    }
    next();
    if (expected != fold.events.end()) fail("it lacks " + expected->text.substr(0, 400));
  }

  Machine machine_;
  Dice& dice_;
  Agent agent_;
  const std::function<void(const std::string&)>& trace_;
  Bell bell_;
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
