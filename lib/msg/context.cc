#include "lib/msg/context.hpp"

#include <bit>
#include <cerrno>
#include <new>

#include "pmd/bus/log.hpp"

namespace rio::msg {

int Context::create(Port& port, uint16_t id, std::unique_ptr<Context>* out) {
  if (id >= kContexts) {
    pmd::log_error("context %u: ids are 0 to %u", id, kContexts - 1);
    return -EINVAL;
  }
  if (port.contexts_[id] != nullptr) {
    pmd::log_error("context %u: the port has it already; take another id", id);
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
