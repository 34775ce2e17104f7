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
  std::vector<Delivery> memory(std::bit_ceil(port.config_.buffers));
  out->reset(new (std::nothrow) Context(port, id, std::move(memory)));
  if (*out == nullptr) {
    return -ENOMEM;
  }
  port.contexts_[id] = out->get();
  return 0;
}

Context::~Context() {
  port_.contexts_[id_] = nullptr;
  for (; !inbox_.empty(); inbox_.pop()) {
    port_.give_back(*inbox_.front());
  }
  port_.close_context(id_);
}

}  // namespace rio::msg
