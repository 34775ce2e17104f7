#include "lib/msg/context.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>

#include "lib/msg/clock.hpp"
#include "pmd/bus/log.hpp"

namespace rio::msg {

/// @return false: some peer takes nothing now.
bool Context::tell_last_end(Port& port, uint16_t id) {
  constexpr uint64_t kPatienceNs = 1'000'000'000;
  const auto untold = [&](const std::unique_ptr<Link>& link) {
    return (link->say_refused >> id & 1) != 0;
  };
  const uint64_t end_ns = now_ns() + kPatienceNs;
  while (std::any_of(port.links_.begin(), port.links_.end(), untold)) {
    if (now_ns() > end_ns) {
      return false;
    }
    port.reap();
    port.progress();
  }
  return true;
}

int Context::create(Port& port, uint16_t id, std::unique_ptr<Context>* out) {
  if (id >= kContexts) {
    pmd::log_error("context %u: ids are 0 to %u", id, kContexts - 1);
    return -EINVAL;
  }
  if (port.contexts_[id] != nullptr) {
    pmd::log_error("context %u: the port has it already; take another id", id);
    return -EBUSY;
  }
  if (!tell_last_end(port, id)) {
    pmd::log_error(
        "context %u: a peer does not take the news that the last one of this id has closed; take "
        "another id, or come again",
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
