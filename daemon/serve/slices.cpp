#include "serve/slices.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace earshot::serve {

void Slices::begin(const void* owner, Work work, std::function<void()> done) {
  Slice slice;
  if (work(slice)) return done();
  begun_.push_back({owner, std::move(work), std::move(done)});
  run_soon();
}

void Slices::cancel(const void* owner) {
  std::erase_if(begun_, [owner](const Begun& each) { return each.owner == owner; });
}

void Slices::run_soon() {
  if (begun_.empty() || std::exchange(posted_, true)) return;
  boost::asio::post(io_, [this, alive = std::weak_ptr<char>(alive_)] {
    if (alive.expired()) return;
    posted_ = false;
    if (begun_.empty()) return;
    Begun next = std::move(begun_.front());
    begun_.pop_front();
    Slice slice;
    if (next.work(slice))
      next.done();
    else
      begun_.push_back(std::move(next));
    run_soon();
  });
}

}  // namespace earshot::serve
