// What has to be read before a question can be answered: sessions of which only the files are known.
#include <boost/asio/post.hpp>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "serve/websocket/client.hpp"

namespace earshot::serve {

/// The next message waits meanwhile.
struct Client::LookUp {
  std::vector<std::string> streams;  // that somebody names who may not see all
  std::size_t next = 0;
  std::set<std::string, std::less<>> sessions;           // theirs
  std::function<bool(std::string_view session)> wanted;  // further ones; empty: none
  std::function<void()> then;
};

/// Who asks for all sessions waits until those that are only known have been read; who may not see all, until
/// it is known whose the streams are that he names.
void Client::subscribe(message::Subscribe subscribe) {
  auto up = std::make_shared<LookUp>();
  if (subscribe.all && subscribe.snapshot && context_.read_cold) {
    up->wanted = [this, filter = subscribe.filter](std::string_view session) {
      Filter without_project = filter;  // the project is known once the transcript is read
      without_project.project.clear();
      return without_project.matches_session(context_.host_of(session), session, {}) &&
             (!user_ || context_.may_see_by_name(user_->allowed, session));
    };
  }
  if (user_ && subscribe.after && subscribe.after->size() <= context_.limits.after_entries)
    for (const std::string& entry : *subscribe.after)
      if (auto place = message::parse_stream_cursor(entry)) up->streams.push_back(std::move(place->stream));
  up->then = [this, subscribe = std::move(subscribe)]() mutable {
    subscriber_.subscribe(std::move(subscribe));
  };
  look_up(up);
}

void Client::read(message::Read read) {
  auto up = std::make_shared<LookUp>();
  if (user_) up->streams.push_back(read.stream);
  up->then = [this, read = std::move(read)] { subscriber_.read(read); };
  look_up(up);
}

/// A session's project is known when all of it has been read: one of its streams may have worked elsewhere.
void Client::look_up(const std::shared_ptr<LookUp>& up) {
  const bool limited = user_ && !user_->allowed.empty() && context_.archive && context_.read_cold;
  while (limited && up->next < up->streams.size()) {
    const std::string& name = up->streams[up->next++];
    const tail::Stream* stream = context_.archive->find(name);
    if (!stream || context_.sessions.contains(*stream)) continue;
    if (!stream->session().empty()) {
      if (context_.may_see_by_name(user_->allowed, stream->session())) up->sessions.insert(stream->session());
      continue;
    }
    asleep_ = true;
    return context_.archive->fold(name, [weak = weak_from_this(), up](const tail::Stream* read) {
      const auto self = weak.lock();
      if (!self || !self->subscribed()) return;
      if (read && self->context_.may_see_by_name(self->user_->allowed, read->session()))
        up->sessions.insert(read->session());
      boost::asio::post(self->transport_->socket().get_executor(), [self, up] {
        if (self->subscribed()) self->look_up(up);
      });
    });
  }
  if (!asleep_ && !up->wanted && up->sessions.empty()) return up->then();
  const auto known = [weak = weak_from_this(), up] {
    const auto self = weak.lock();
    if (!self || !self->subscribed()) return;
    self->asleep_ = false;
    up->then();
    self->wake();
    self->read_message();
  };
  if (!up->wanted && up->sessions.empty()) return known();
  asleep_ = true;
  const auto wanted = [up](std::string_view session) {
    return up->sessions.contains(session) || (up->wanted && up->wanted(session));
  };
  context_.read_cold(wanted, known);
}

}  // namespace earshot::serve
