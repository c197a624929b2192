// Snapshots that a client receives by page.
#include <algorithm>

#include "base/hex.hpp"
#include "serve/stream/frames.hpp"
#include "serve/stream/subscriber.hpp"

namespace earshot::serve {
namespace {

constexpr std::size_t frames_per_write = 16;  // encoded when they are sent; later ones may still change
constexpr std::size_t continuation_bytes = 8;

}  // namespace

Subscriber::Subscription* Subscriber::find_subscription(Mask bit) {
  const auto found = std::find_if(subscriptions_.begin(), subscriptions_.end(),
                                  [bit](const Subscription& each) { return each.bit == bit; });
  return found == subscriptions_.end() ? nullptr : &*found;
}

/// The first waiting subscription is active from now on, and its first page is requested.
void Subscriber::start_pages() {
  Starting starting = std::move(starting_.front());
  starting_.pop_front();
  starting_bytes_ -= starting.bytes;
  Subscription& subscription = add_subscription(std::move(starting.subscription));
  subscription.pages = Pages{starting.asked.page, context_.sessions.changes(), {}, {}, true};
  start_next();
}

void Subscriber::next_page(const message::NextPage& asked) {
  const auto has_id = [&](const Subscription& each) { return each.id == asked.id; };
  const auto found = std::find_if(subscriptions_.begin(), subscriptions_.end(), has_id);
  const bool waits = std::any_of(starting_.begin(), starting_.end(),
                                 [&](const Starting& each) { return has_id(each.subscription); });
  if (found == subscriptions_.end() && !waits)
    return push_answer(error_frame(asked.id, "bad_message", "there is no subscription with this `id`"));
  if (waits || !found->pages || found->pages->next.empty() || found->pages->next != asked.next) {
    return push_answer(
        error_frame(asked.id, "bad_page",
                    "`next` is not that of the subscription's last `page` frame, or was used before: "
                    "subscribe again for a new snapshot"));
  }
  found->pages->next.clear();
  found->pages->is_requested = true;
  start_next();
}

/// Finds the sessions of the page that was requested first, if there is one and no other page is being sent.
void Subscriber::start_page() {
  const auto next = std::find_if(subscriptions_.begin(), subscriptions_.end(), [](const Subscription& each) {
    return each.pages && each.pages->is_requested;
  });
  if (page_ || next == subscriptions_.end()) return;
  next->pages->is_requested = false;
  page_ = std::make_unique<Page>(
      Page{next->bit, PageSelection(next->pages->size, next->pages->last, local_day(wall_now_ms()))});
  const auto visit = [this](const Session& session) {
    const Subscription& subscription = *find_subscription(page_->owner);
    if (!session.is_shown() || !is_in_snapshot(subscription, session)) return;
    const std::uint64_t begun = subscription.pages->changes;
    if (session.change <= begun) {
      page_->selection.add(session, context_.sessions.models(), [this, begun](std::uint32_t id) {
        const Session* later = context_.sessions.find(id);
        return later && later->change <= begun ? later : nullptr;
      });
    } else if (session.pending || session.is_throttled) {
      states_due_.insert(session.id);  // its frame would follow too late for a `ready` after this page
    }
  };
  const auto done = [this] {
    page_found();
    wake();
  };
  if (context_.scans) return context_.scans->begin(this, visit, done);
  context_.sessions.for_each(visit);
  done();
}

void Subscriber::page_found() {
  page_->is_complete = true;
  page_->ids = page_->selection.ids_reversed();
  if (page_->selection.rest().sessions() > 0) return;
  // The last page: everything that is known belongs before `ready`.
  page_->ids.insert(page_->ids.begin(), states_due_.begin(), states_due_.end());
  states_due_.clear();
}

/// Queues the next frames of the page. False: there is none.
bool Subscriber::add_page() {
  if (!page_ || !page_->is_complete) return false;
  for (std::size_t made = 0; made < frames_per_write && !page_->ids.empty();) {
    Session* session = context_.sessions.find(page_->ids.back());
    page_->ids.pop_back();
    if (!session || !session->is_shown() || !may_see(session)) continue;
    push(Kind::snapshot, context_.sessions.frame(*session, audience_), page_->owner);
    ++made;
  }
  if (page_->ids.empty()) finish_page();
  return true;
}

void Subscriber::finish_page() {
  const std::unique_ptr<Page> page = std::move(page_);
  Subscription& subscription = *find_subscription(page->owner);
  Pages& pages = *subscription.pages;
  pages.last = page->selection.last();
  const PageRest& rest = page->selection.rest();
  if (rest.sessions() > 0) pages.next = random_hex(continuation_bytes);
  push(Kind::answer, make_frame(page_frame(subscription.id, rest, pages.next)), subscription.bit);
  if (rest.sessions() == 0)
    push(Kind::answer, make_frame(control_frame("ready", subscription.id)), subscription.bit);
  start_next();
}

}  // namespace earshot::serve
