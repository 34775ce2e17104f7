// What arrives. Every field of a header is the peer's word until it was compared with ours.
#include "lib/msg/context.hpp"
#include "lib/msg/port.hpp"

namespace rio::msg {
namespace {

Header load_header(const uint8_t* buffer) {
  Header header;
  std::memcpy(&header, buffer, sizeof(header));
  return header;
}

}  // namespace

void Port::take(const pmd::RxMessage& message) {
  auto* const buffer = reinterpret_cast<uint8_t*>(message.cookie);
  const Header header = load_header(buffer);
  const uint32_t index = header.key & 0xFFFFu;
  Link* const link = index < links_.size() ? links_[index].get() : nullptr;
  if (message.status != pmd::Status::kOk || message.length_bytes < kHeaderBytes ||
      link == nullptr || link->local_key != header.key || link->dest_id() != message.source ||
      link->next_in != header.number || header.kind > Kind::kMore) [[unlikely]] {
    take_other(link, buffer, message);
    return;
  }
  ++link->next_in;
  if (!deliver(*link, buffer, header, message.length_bytes)) [[unlikely]] {
    repost(buffer);
  }
  if (link->has_early()) [[unlikely]] {
    take_numbered(*link, nullptr, 0);
  }
}

inline bool Port::deliver(Link& link, uint8_t* buffer, const Header& header,
                          uint32_t length_bytes) {
  const uint32_t padded = length_bytes - kHeaderBytes;
  if (header.from >= kContexts || header.to >= kContexts || header.padding > 7 ||
      header.padding > padded || !takes_credit(header.kind)) [[unlikely]] {
    cut_off(link);
    return false;
  }
  Context* const context = contexts_[header.to];
  Inflow& flow = link.in[header.to];
  if (flow.received == flow.limit) [[unlikely]] {
    // Past its share; or sent before it heard that the context is closed.
    if (context != nullptr) {
      cut_off(link);
    }
    return false;
  }
  ++flow.received;
  link.out[header.from].limit = header.credit;
  ++stats_.received;
  if (context == nullptr) [[unlikely]] {
    return false;
  }
  context->inbox().push({buffer + kHeaderBytes, &link, static_cast<uint16_t>(padded - header.padding),
                         header.from, link.session});
  return true;
}

void Port::take_other(Link* link, uint8_t* buffer, const pmd::RxMessage& message) {
  const uint32_t length_bytes = message.length_bytes;
  if (message.status != pmd::Status::kOk || length_bytes < kHeaderBytes) {
    ++stats_.bad;
    repost(buffer);
    return;
  }
  const Header header = load_header(buffer);
  if (header.kind >= Kind::kHello) {
    on_session(message.source, buffer, length_bytes);
    repost(buffer);
    return;
  }
  if (link == nullptr || link->local_key != header.key || link->dest_id() != message.source) {
    ++stats_.bad;
    on_unknown(message.source, header.key);
    repost(buffer);
    return;
  }
  if (link->next_in != header.number) {
    const bool seen = link->next_in - header.number <= Link::kWindow;
    if (seen) {
      ++stats_.twice;
    } else if (link->keep(header.number, {buffer, static_cast<uint16_t>(length_bytes)})) {
      ++stats_.early;
      return;
    } else {
      cut_off(*link);
    }
    repost(buffer);
    return;
  }
  take_numbered(*link, buffer, length_bytes);
}

void Port::take_numbered(Link& link, uint8_t* buffer, uint32_t length_bytes) {
  Early next{buffer, static_cast<uint16_t>(length_bytes)};
  if (buffer == nullptr && !link.take(&next)) {
    return;
  }
  do {
    ++link.next_in;
    const Header header = load_header(next.buffer);
    const bool kept = takes_credit(header.kind) &&
                      deliver(link, next.buffer, header, next.length_bytes);
    if (!takes_credit(header.kind)) {
      control(link, header);
    }
    if (!kept) {
      repost(next.buffer);
    }
  } while (link.take(&next));
}

void Port::control(Link& link, const Header& header) {
  if (header.from >= kContexts || header.to >= kContexts) {
    cut_off(link);
    return;
  }
  ++stats_.received;
  Outflow& flow = link.out[header.from];
  const uint64_t bit = 1ull << header.from;
  switch (header.kind) {
    case Kind::kOpen:
      open_inflow(link, header.to);
      break;
    case Kind::kOpened:
      if ((link.asked & bit) == 0) {
        cut_off(link);
        return;
      }
      link.refused &= ~bit;
      flow = {0, header.credit};
      break;
    case Kind::kRefused:
      link.refused |= bit;
      link.asked &= ~bit;
      flow.limit = flow.sent;
      break;
    case Kind::kCredit:
      flow.limit = header.credit;
      break;
    default:
      cut_off(link);
  }
}

void Port::give_back(const Delivery& delivery) {
  uint8_t* const buffer = delivery.data - kHeaderBytes;
  Link& link = *delivery.link;
  if (delivery.session != link.session) [[unlikely]] {
    ++unshared_;  // its share went with the session
    repost(buffer);
    return;
  }
  const uint16_t to = load_header(buffer).to;
  Inflow& flow = link.in[to];
  ++flow.limit;
  // The peer hears of it with the next message that goes there, or in one for that alone.
  if (static_cast<uint16_t>(flow.limit - flow.told) * 2u >= flow.share) [[unlikely]] {
    link.say_credit |= 1ull << to;
    want(link);
  }
  repost(buffer);
}

void Port::repost(uint8_t* buffer) {
  spare_[spare_count_++] = buffer;
}

void Port::refill() {
  pmd::RxBuffer wanted[kBurst];
  // Those that were given back last are still in the cache.
  while (posted_ + kBurst <= kPosted && spare_count_ >= kBurst) {
    for (pmd::RxBuffer& buffer : wanted) {
      const auto va = reinterpret_cast<uintptr_t>(spare_[--spare_count_]);
      buffer = {va + buffer_iova_minus_va_, va};
    }
    const uint32_t taken = shared_->post(wanted, kBurst);
    posted_ += taken;
    if (taken != kBurst) [[unlikely]] {
      for (uint32_t i = taken; i < kBurst; ++i) {
        repost(reinterpret_cast<uint8_t*>(wanted[i].cookie));
      }
      return;
    }
  }
}

}  // namespace rio::msg
