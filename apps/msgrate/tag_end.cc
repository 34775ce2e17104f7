#include "apps/msgrate/tag_end.hpp"

namespace rio::msgrate {

TagEnd::~TagEnd() {
  constexpr uint32_t kFlushMs = 5000;
  if (endpoint_ != nullptr) {
    static_cast<void>(endpoint_->flush(kFlushMs));
  }
}

int TagEnd::open(const std::string& card) {
  msg::PortConfig config;
  config.card = card;
  int rc = msg::MessagePort::open(config, &port_);
  rc = rc != 0 ? rc : tag::TaggedContext::create(*port_, kContext, {}, &endpoint_);
  return rc != 0 ? complain(card, -rc) : 0;
}

}  // namespace rio::msgrate
