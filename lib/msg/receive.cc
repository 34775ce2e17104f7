// What arrives. Every field of a header is the peer's word until it was compared with ours.
#include <algorithm>

#include "lib/msg/context.hpp"
#include "lib/msg/port.hpp"

namespace rio::msg {

uint32_t Port::progress() {
  serve();
  if (receiver_ != nullptr && large_busy()) {
    large_progress();
  }
  if (!shared_->ready()) {
    return 0;
  }
  const uint32_t n = late_possible() ? 0 : fetch_plain();
  posted_ -= n;
  uint32_t more = 0;
  if (n == 0) [[unlikely]] {
    more = fetch_others();
  }
  if (posted_ + kBurst <= kPosted) {
    refill();
  }
  return n + more;
}

/// Plain messages, in runs: what those of one sender for one context have in common is looked at
/// once.
uint32_t Port::fetch_plain() {
  uint32_t other_count = 0;
  uint32_t done = 0;
  while (done < kBurst) {
    Arrival first{};
    shared_->for_each_plain(1, [&](uint64_t cookie, uint32_t source, uint32_t length_bytes) {
      first = {reinterpret_cast<uint8_t*>(cookie), source, length_bytes};
      return false;  // only a look
    });
    if (first.buffer == nullptr) {
      break;
    }
    const HeaderWords header = load_header(first.buffer);
    Link* const link = begin_run(first, header);
    if (link == nullptr) {
      others_[other_count++] = first;
      done += shared_->for_each_plain(1, [](uint64_t, uint32_t, uint32_t) { return true; });
      continue;
    }
    done += take_run(*link, header, first.source, kBurst - done);
  }
  for (uint32_t i = 0; i < other_count; ++i) {
    take_other(others_[i]);
  }
  return done;
}

uint32_t Port::take_run(Link& link, HeaderWords first, uint32_t source, uint32_t n) {
  Inflow& flow = link.in[first.to()];
  Context& context = *contexts_[first.to()];  // is there: its flow is open
  iovec* out = context.inbox_.tail();
  uint64_t expected = link.expected;
  uint64_t rest = first.rest;
  n = std::min(
      {n, uint32_t{static_cast<uint16_t>(flow.limit - flow.received)}, context.inbox_.in_a_row()});
  const uint32_t taken =
      shared_->for_each_plain(n, [&](uint64_t cookie, uint32_t from, uint32_t length_bytes) {
        auto* const buffer = reinterpret_cast<uint8_t*>(cookie);
        const HeaderWords header = load_header(buffer);
        const uint32_t bytes = length_bytes - kHeaderBytes - header.padding();
        const uint64_t wrong = (header.key_number ^ expected) |
                               ((header.rest ^ first.rest) & HeaderWords::kRoute) | (from ^ source);
        if (wrong != 0 || bytes > kPartBytesMax) [[unlikely]] {
          return false;
        }
        expected += 1ull << 32;
        rest = header.rest;
        *out++ = {buffer + kHeaderBytes, bytes};
        return true;
      });
  context.inbox_.push(taken, {&link, link.session, first.from()});
  link.expected = expected;
  flow.received = static_cast<uint16_t>(flow.received + taken);
  stats_.received += taken;
  link.out[first.from()].limit = HeaderWords{0, rest}.credit();
  return taken;
}

/// The link of a message that may begin a run; null: it is not plain.
Link* Port::begin_run(const Arrival& arrival, const HeaderWords& header) {
  const uint32_t index = header.key() & 0xFFFFu;
  const uint32_t bytes = arrival.length_bytes - kHeaderBytes - header.padding();
  if (index >= links_.size() || !header.takes_credit() || bytes > kPartBytesMax) {
    return nullptr;
  }
  Link& link = *links_[index];
  const Inflow& flow = link.in[header.to()];
  return link.expected == header.key_number && link.dest_id() == arrival.source &&
                 flow.received != flow.limit
             ? &link
             : nullptr;
}

/// What the card did not deliver in order, or not well.
uint32_t Port::fetch_others() {
  pmd::RxMessage messages[kBurst];
  const uint32_t n = shared_->burst(messages, kBurst);
  posted_ -= n;
  for (uint32_t i = 0; i < n; ++i) {
    auto* const buffer = reinterpret_cast<uint8_t*>(messages[i].cookie);
    const bool late = messages[i].mbox - 1u < QueueSource::kMailboxes;  // for a closed queue
    if (messages[i].status == pmd::Status::kOk && !late) {
      take_other({buffer, messages[i].source, messages[i].length_bytes});
    } else {
      ++stats_.bad;
      repost(buffer);
    }
  }
  return n;
}

void Port::serve() {
  if (--until_time_ == 0) [[unlikely]] {
    until_time_ = kBurst;
    reap();
    look_at_events();
    look_at_time();
  }
  if (!talkers_.empty()) [[unlikely]] {
    speak();
  }
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
    if (taken != kBurst) [[unlikely]] {  // the card is gone
      for (uint32_t i = taken; i < kBurst; ++i) {
        repost(reinterpret_cast<uint8_t*>(wanted[i].cookie));
      }
      return;
    }
  }
}

void Port::take_other(const Arrival& arrival) {
  uint8_t* const buffer = arrival.buffer;
  const uint32_t length_bytes = arrival.length_bytes;
  if (length_bytes < kHeaderBytes) {
    ++stats_.bad;
    repost(buffer);
    return;
  }
  const HeaderWords header = load_header(buffer);
  if (header.kind() >= Kind::kHello) {
    on_session(arrival.source, buffer, length_bytes);
    repost(buffer);
    return;
  }
  const uint32_t index = header.key() & 0xFFFFu;
  Link* const link = index < links_.size() ? links_[index].get() : nullptr;
  if (link == nullptr || link->local_key != header.key() || link->dest_id() != arrival.source) {
    ++stats_.bad;
    on_unknown(arrival.source, header.key());
    repost(buffer);
    return;
  }
  const Early early{buffer, static_cast<uint16_t>(length_bytes)};
  if (link->next_in() == header.number()) {
    take_in_order(*link, early);
    return;
  }
  if (link->next_in() - header.number() <= Link::kWindow) {
    ++stats_.twice;
  } else if (link->keep(header.number(), early)) {
    ++stats_.early;
    link->expect(link->next_in());
    return;
  } else {
    cut_off(*link);
  }
  repost(buffer);
}

void Port::take_in_order(Link& link, Early next) {
  const uint32_t session = link.session;
  do {
    link.expect(link.next_in() + 1);
    const HeaderWords header = load_header(next.buffer);
    if (takes_credit(header.kind())) {
      deliver(link, next.buffer, next.length_bytes);
    } else if (header.kind() == Kind::kRequest) {
      request(link, next.buffer, next.length_bytes);
      repost(next.buffer);
    } else if (is_large(header.kind())) {
      ++stats_.received;
      if (!large_control(link, next.buffer, next.length_bytes)) {
        cut_off(link);
      }
      repost(next.buffer);
    } else {
      control(link, header);
      repost(next.buffer);
    }
  } while (link.session == session && link.take(&next));
  link.expect(link.next_in());
}

void Port::deliver(Link& link, uint8_t* buffer, uint32_t length_bytes) {
  const HeaderWords header = load_header(buffer);
  const uint32_t bytes = length_bytes - kHeaderBytes - header.padding();
  if (!header.takes_credit() || bytes > kPartBytesMax) {
    cut_off(link);
    repost(buffer);
    return;
  }
  Context* const context = contexts_[header.to()];
  Inflow& flow = link.in[header.to()];
  if (context == nullptr) {  // sent before it heard that the context is closed
    repost(buffer);
    return;
  }
  if (flow.received == flow.limit) {
    cut_off(link);
    repost(buffer);
    return;
  }
  ++flow.received;
  ++stats_.received;
  link.out[header.from()].limit = header.credit();
  *context->inbox_.tail() = {buffer + kHeaderBytes, bytes};
  context->inbox_.push(1, {&link, link.session, header.from()});
}

void Port::control(Link& link, const HeaderWords& header) {
  if (header.from() >= kContexts || header.to() >= kContexts) {
    cut_off(link);
    return;
  }
  ++stats_.received;
  Outflow& flow = link.out[header.from()];
  const uint64_t bit = 1ull << header.from();
  switch (header.kind()) {
    case Kind::kOpen:
      open_inflow(link, header.to());
      break;
    case Kind::kOpened:
      if ((link.asked & bit) == 0) {
        cut_off(link);
        return;
      }
      link.refused &= ~bit;
      // What was sent counts from the last kRefused on: a message that came before this one may
      // have had the same credit.
      flow.limit = header.credit();
      break;
    case Kind::kRefused:
      link.refused |= bit;
      link.asked &= ~bit;
      flow = {};
      break;
    case Kind::kCredit:
      flow.limit = header.credit();
      break;
    default:
      cut_off(link);
  }
}

void Port::return_credit(const Origin& origin, uint32_t to, uint32_t count) {
  Link& link = *origin.link;
  if (origin.session != link.session) {
    unshared_ += count;  // their share went with the session
    return;
  }
  Inflow& flow = link.in[to];
  flow.limit = static_cast<uint16_t>(flow.limit + count);
  // The peer hears of it with the next message that goes there, or in one for that alone.
  if (static_cast<uint16_t>(flow.limit - flow.told) >= flow.half) {
    link.say_credit |= 1ull << to;
    want(link);
  }
}

}  // namespace rio::msg
