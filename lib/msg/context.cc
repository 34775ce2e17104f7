#include "lib/msg/context.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>

#include "base/log.hpp"
#include "lib/msg/clock.hpp"

namespace rio::msg {

/// Send the news that the last context of an id has closed, and wait until it has arrived if it
/// can: a peer that learns the new context's name by other means then finds the news already there.
/// @return false: a peer accepts nothing now.
bool Context::tell_last_end(Port& port, uint16_t id) {
  constexpr uint64_t kPatienceNs = 1'000'000'000;
  const auto any_link = [&](auto&& is) {
    return std::any_of(port.links_.begin(), port.links_.end(),
                       [&](const std::unique_ptr<Link>& link) { return is(*link); });
  };
  const auto is_untold = [&] {
    return any_link([&](const Link& link) { return (link.say.refused >> id & 1) != 0; });
  };
  const auto is_on_its_way = [&] {
    const uint32_t next = port.tx_->next_index();
    return next - port.told_at_[id] < next - port.tx_->oldest_index() ||
           any_link([](const Link& link) { return link.backlog.again + link.backlog.resent != 0; });
  };
  const uint64_t end_ns = now_ns() + kPatienceNs;
  while (is_untold() || (port.told_at_[id] != 0 && is_on_its_way())) {
    if (now_ns() > end_ns) {
      return !is_untold();
    }
    port.reap();
    port.progress();
  }
  port.told_at_[id] = 0;
  return true;
}

int Context::create(Port& port, uint16_t id, std::unique_ptr<Context>* out) {
  if (id >= kContexts) {
    base::log_error("context %u: ids are 0 to %u", id, kContexts - 1);
    return -EINVAL;
  }
  if (port.contexts_[id] != nullptr) {
    base::log_error("context %u: the port has it already; take another id", id);
    return -EBUSY;
  }
  if (!tell_last_end(port, id)) {
    base::log_error(
        "context %u: a peer does not accept the news that the last one of this id has closed; use "
        "another id, or try again later",
        id);
    return -EBUSY;
  }
  out->reset(new (std::nothrow) Context(port, id, std::bit_ceil(port.config_.buffers + 1)));
  if (*out == nullptr) {
    return -ENOMEM;
  }
  port.contexts_[id] = out->get();
  return 0;
}

Context::~Context() {
  close();
}

void Context::close() {
  if (closed_) {
    return;
  }
  closed_ = true;
  port_.contexts_[id_] = nullptr;
  while (!inbox_.empty()) {
    if (kind_of(inbox_.at(0)) == Kind::kRequest) {
      refuse_large(take_request());
    } else {
      drop_oldest();
    }
  }
  port_.close_context(id_);
}

Delivery Context::take_oldest() {
  Delivery oldest{};
  if (const uint32_t count = inbox_.take(&oldest); count != 0) {
    port_.return_credit(oldest.origin, id_, count);
  }
  return oldest;
}

}  // namespace rio::msg
