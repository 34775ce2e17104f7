#include "lib/msg/intake.hpp"

#include <algorithm>

#include "lib/msg/rail.hpp"

namespace rio::msg {

Intake::Intake(const PortObjects& port, Rail& rail)
    : ring_(rail.endpoint.shared()),
      peers_(port.peers),
      contexts_(port.contexts),
      buffers_(rail.buffers),
      sorter_(port.sorter),
      queues_(rail.queues),
      rail_(rail),
      pool_(port.buffers),
      stats_(port.stats) {}

/// Check the first message of a run. @return its link; null: the message is for Sorter.
inline Link* Intake::begin_run(const Arrival& arrival, const HeaderWords& header) const {
  const uint32_t index = header.key() & 0xFFFFu;
  const uint32_t bytes = arrival.length_bytes - kHeaderBytes - header.padding();
  if (index >= peers_.count() || !header.takes_credit() || bytes > kPartBytesMax) {
    return nullptr;
  }
  Link& link = peers_.at(index);
  const Inflow& flow = link.in[header.to()];
  return link.expected == header.key_number && link.dest_id() == arrival.source && flow.left() != 0
             ? &link
             : nullptr;
}

/// Fast path for a single arrival, without the cost of beginning and ending a run. @return false:
/// not taken; call fetch_plain().
inline bool Intake::take_alone() {
  pmd::SharedRxQueue::Plain plain{};
  if (!ring_.alone(&plain)) {
    return false;
  }
  const Arrival arrival = {reinterpret_cast<uint8_t*>(plain.cookie), plain.source,
                           plain.length_bytes};
  const HeaderWords header = load_header(arrival.buffer);
  Link* const link = begin_run(arrival, header);
  if (link == nullptr) {
    return false;
  }
  ring_.pass(plain);
  Inbox& inbox = contexts_[header.to()]->inbox;  // not null, since its flow is open
  *inbox.tail() = {arrival.buffer + kHeaderBytes,
                   arrival.length_bytes - kHeaderBytes - header.padding()};
  inbox.push(1, {link, link->session, header.from()});
  link->expected = header.key_number + (1ull << 32);
  link->in[header.to()].arrive_known(1);
  link->out[header.from()].believe_limit(header.credit());
  ++received_;
  return true;
}

uint32_t Intake::take(bool late) {
  return ring_.ready() ? take_arrived(late) : 0;
}

/// Not inlined, so that a poll that finds nothing saves no registers.
[[gnu::noinline]] uint32_t Intake::take_arrived(bool late) {
  const uint32_t n = late ? 0 : take_alone() ? 1 : fetch_plain();
  buffers_.filled(n);
  uint32_t more = 0;
  if (n == 0) [[unlikely]] {
    more = fetch_each();
  }
  buffers_.top_up();
  return n + more;
}

void Intake::take_all() {
  uint32_t taken = 1;
  while (ring_.ready() && taken != 0) {
    taken = queues_.late_possible() ? 0 : fetch_plain();
    buffers_.filled(taken);
    if (taken == 0) {
      taken = fetch_each();
    }
  }
}

/// Take messages in runs, so that what a run has in common is checked once.
uint32_t Intake::fetch_plain() {
  uint32_t unsorted_count = 0;
  uint32_t done = 0;
  while (done < kBurst) {
    pmd::SharedRxQueue::Plain plain{};
    if (!ring_.peek(&plain)) {
      break;
    }
    const Arrival first = {reinterpret_cast<uint8_t*>(plain.cookie), plain.source,
                           plain.length_bytes};
    const HeaderWords header = load_header(first.buffer);
    Link* const link = begin_run(first, header);
    if (link == nullptr) {
      unsorted_[unsorted_count++] = first;
      ring_.pass(plain);
      ++done;
      continue;
    }
    done += take_run(*link, header, first.source, kBurst - done);
  }
  for (uint32_t i = 0; i < unsorted_count; ++i) {
    sorter_.take(rail_, unsorted_[i]);
  }
  return done;
}

/// Takes messages of a run. Not inlined, so that its loop has the registers. @return how many are
/// in `out`.
[[gnu::noinline]] static uint32_t pick(pmd::SharedRxQueue& ring, uint32_t n,
                                       const HeaderWords& first, uint32_t source, iovec* out) {
  RunHeader wanted(first);
  return ring.for_each_plain(source, n, [&](uint64_t cookie, uint32_t length_bytes) {
    auto* const buffer = reinterpret_cast<uint8_t*>(cookie);
    const uint32_t bytes = length_bytes - kHeaderBytes - RunHeader::padding(buffer);
    if (!wanted.is_at(buffer) || bytes > kPartBytesMax) [[unlikely]] {
      return false;
    }
    wanted.next();
    *out++ = {buffer + kHeaderBytes, bytes};
    return true;
  });
}

uint32_t Intake::take_run(Link& link, HeaderWords first, uint32_t source, uint32_t n) {
  Inflow& flow = link.in[first.to()];
  Inbox& inbox = contexts_[first.to()]->inbox;  // not null, since its flow is open
  iovec* const begin = inbox.tail();
  // A run has at most half a share. Credits are returned when a whole run is dropped, so a context
  // that keeps one message must not block its sender.
  n = std::min({n, uint32_t{flow.left()}, uint32_t{flow.half}, inbox.in_a_row(inbox.count())});
  const uint32_t taken = pick(ring_, n, {link.expected, first.rest}, source, begin);
  if (taken == 0) {
    return 0;
  }
  inbox.push(taken, {&link, link.session, first.from()});
  link.expected += uint64_t{taken} << 32;
  flow.arrive_known(taken);
  received_ += taken;
  // Each header carries our limit at that peer; the last one is the newest.
  const auto* const last = static_cast<const uint8_t*>(begin[taken - 1].iov_base) - kHeaderBytes;
  link.out[first.from()].believe_limit(load_header(last).credit());
  return taken;
}

/// Take messages one by one: those out of order or with errors.
uint32_t Intake::fetch_each() {
  pmd::RxMessage messages[kBurst];
  const uint32_t n = ring_.burst(messages, kBurst);
  buffers_.filled(n);
  for (uint32_t i = 0; i < n; ++i) {
    auto* const buffer = reinterpret_cast<uint8_t*>(messages[i].cookie);
    const bool late =
        messages[i].mbox - 1u < QueueSource::kMailboxes;  // sent for a queue that is closed now
    if (messages[i].status == pmd::Status::kOk && !late) {
      sorter_.take(rail_, {buffer, messages[i].source, messages[i].length_bytes});
    } else {
      ++stats_.bad;
      pool_.give_back(buffer);
    }
  }
  return n;
}

}  // namespace rio::msg
