#include "lib/msg/message_context.hpp"

#include <bit>
#include <cerrno>
#include <new>
#include <thread>

#include "base/log.hpp"

namespace rio::msg {

/// Tell peers that the last context of an id has closed, and wait until they have received it, so
/// that a peer never takes the new context for the old one. Peers that have asked for a context
/// that did not exist yet are told, too. @return false: a peer accepts nothing, for as long as
/// messages to it are kept.
bool MessageContext::tell_last_end(MessagePort& port, uint16_t id) {
  constexpr uint64_t kPatienceNs = 1'000'000'000;  // for an answer to news that have left
  const auto is_untold = [&] {
    for (uint32_t i = 0; i < port.link_count(); ++i) {
      if ((port.link_at(i).say.refused >> id & 1) != 0) {
        return true;
      }
    }
    return false;
  };
  const uint64_t begin_ns = port.listening_.now_ns();
  for (bool untold = is_untold(); untold || port.speaker_.news_may_be_out(id);
       untold = is_untold()) {
    if (port.listening_.now_ns() - begin_ns > (untold ? port.config().deliver_ns() : kPatienceNs)) {
      return !untold;
    }
    for (Rail* const rail : port.rails_) {
      rail->outbox.reap();
    }
    port.progress();
    std::this_thread::yield();  // perhaps to the peer
  }
  port.speaker_.forget_news(id);
  return true;
}

int MessageContext::create(MessagePort& port, uint16_t id, std::unique_ptr<MessageContext>* out) {
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
  out->reset(new (std::nothrow) MessageContext(port, id, std::bit_ceil(port.config().buffers + 1)));
  if (*out == nullptr) {
    return -ENOMEM;
  }
  port.contexts_[id] = &(*out)->slot_;
  return 0;
}

MessageContext::~MessageContext() {
  close();
}

void MessageContext::close() {
  if (closed_) {
    return;  // the port may be in its destructor: see MessagePort::take_over()
  }
  closed_ = true;
  port_.contexts_[id_] = nullptr;
  while (!slot_.inbox.empty()) {
    if (kind_of(slot_.inbox.at(0)) == Kind::kRequest) {
      refuse_large(take_request());
    } else {
      drop_oldest();
    }
  }
  port_.sessions_.close_context(id_);
}

Delivery MessageContext::take_oldest() {
  Delivery oldest{};
  if (const uint32_t count = slot_.inbox.take(&oldest); count != 0) {
    port_.inflows_.return_credit(oldest.origin, id_, count);
  }
  return oldest;
}

int MessageContext::accept_large(bool all_may_ask) {
  const int rc = port_.large_.start();
  slot_.accepts_large = rc == 0;
  slot_.all_may_ask = rc == 0 && all_may_ask;
  return rc;
}

int MessageContext::send_large(const Route& route, uint64_t match_bits, const void* data,
                               uint64_t len_bytes, SendTransfer& transfer, bool small,
                               const uint64_t* immediate) {
  if (const int rc = port_.large_.start(); rc != 0) {
    return rc;
  }
  const bool empty = len_bytes == 0;
  if ((empty && !small) || (!empty && data == nullptr) || len_bytes > kTransferMax) {
    return -EINVAL;
  }
  if (!route.link->outbox->may_request(route)) {
    return port_.not_now(route);
  }
  port_.large_.sender().send(slot_, route, match_bits, data, len_bytes, transfer, small, immediate);
  return 0;
}

Request* MessageContext::take_request() {
  const Delivery oldest = take_oldest();  // a request is a run of its own, with no buffer to return
  return reinterpret_cast<Request*>(static_cast<uint8_t*>(oldest.bytes.iov_base) -
                                    offsetof(Request, body));
}

int MessageContext::offer_large(const Route& route, uint64_t match_bits, uint64_t ignore_bits,
                                void* buffer, uint64_t capacity) {
  return !port_.large_.started() ? -EAGAIN
                                 : port_.large_.receiver().offers().offer(
                                       *route.link, id_, match_bits, ignore_bits, buffer, capacity);
}

bool MessageContext::requests_left(const Origin& origin) const {
  const Link& link = *origin.link;
  return origin.session != link.session || !link.in[id_].open ||
         !link.large.records_in[id_].exhausted();
}

}  // namespace rio::msg
