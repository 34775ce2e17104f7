// What arrives. Every field of a header is the peer's word until it was compared with ours.
#include <algorithm>

#include "lib/msg/context.hpp"
#include "lib/msg/port.hpp"

namespace rio::msg {

/// The link of a message that may begin a run; null: it is not plain.
inline Link* Port::begin_run(const Arrival& arrival, const HeaderWords& header) {
  const uint32_t index = header.key() & 0xFFFFu;
  const uint32_t bytes = arrival.length_bytes - kHeaderBytes - header.padding();
  if (index >= links_.size() || !header.takes_credit() || bytes > kPartBytesMax) {
    return nullptr;
  }
  Link& link = *links_[index];
  const Inflow& flow = link.in[header.to()];
  return link.expected == header.key_number && link.dest_id() == arrival.source && flow.left() != 0
             ? &link
             : nullptr;
}

/// A message that is there without others: as fetch_plain() and take_run(), which would begin and
/// end a run for it. @return false: it is for them.
inline bool Port::take_alone() {
  pmd::SharedRxQueue::Plain plain{};
  if (!shared_->alone(&plain)) {
    return false;
  }
  const Arrival arrival = {reinterpret_cast<uint8_t*>(plain.cookie), plain.source,
                           plain.length_bytes};
  const HeaderWords header = load_header(arrival.buffer);
  Link* const link = begin_run(arrival, header);
  if (link == nullptr) {
    return false;
  }
  shared_->pass(plain);
  Inbox& inbox = contexts_[header.to()]->inbox_;  // is there: its flow is open
  *inbox.tail() = {arrival.buffer + kHeaderBytes,
                   arrival.length_bytes - kHeaderBytes - header.padding()};
  inbox.push(1, {link, link->session, header.from()});
  link->expected = header.key_number + (1ull << 32);
  link->in[header.to()].arrive_known(1);
  link->out[header.from()].believe_limit(header.credit());
  ++stats_.received;
  return true;
}

uint32_t Port::progress() {
  serve();
  bool late = false;
  if (large_awake_) [[unlikely]] {
    large_progress();
    late = late_possible();
  }
  if (!shared_->ready()) {
    return 0;
  }
  const uint32_t n = late ? 0 : take_alone() ? 1 : fetch_plain();
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

/// The last messages of a peer come before the news that he has gone, and are not lost for it. No
/// buffers are posted here, so it ends.
void Port::take_what_came() {
  uint32_t taken = 1;
  while (shared_->ready() && taken != 0) {
    taken = late_possible() ? 0 : fetch_plain();
    posted_ -= taken;
    if (taken == 0) {
      taken = fetch_others();
    }
  }
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
  iovec* const begin = context.inbox_.tail();
  iovec* out = begin;
  uint64_t expected = link.expected;
  // Half a share at most: credits come back when all of a run are dropped, and who keeps one
  // message must not stop its sender.
  n = std::min({n, uint32_t{flow.left()}, uint32_t{flow.half}, context.inbox_.in_a_row()});
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
        *out++ = {buffer + kHeaderBytes, bytes};
        return true;
      });
  if (taken == 0) {
    return 0;
  }
  context.inbox_.push(taken, {&link, link.session, first.from()});
  link.expected = expected;
  flow.arrive_known(taken);
  stats_.received += taken;
  // Each tells how far we may go there; the last one is the newest.
  const auto* const last = static_cast<const uint8_t*>(begin[taken - 1].iov_base) - kHeaderBytes;
  link.out[first.from()].believe_limit(load_header(last).credit());
  return taken;
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
    look_at_events(true);
    look_at_time();
  }
  if (!talkers_.empty()) [[unlikely]] {
    speak();
  }
}

void Port::refill() {
  // Those that were given back last are still in the cache. The ring may be fuller than posted_
  // says: messages that became whole before an older one keep their entries.
  while (posted_ + kBurst <= kPosted && spare_count_ >= kBurst && shared_->free_count() >= kBurst) {
    const uint32_t taken =
        shared_->post_each(kBurst, [&, first = spare_.get() + spare_count_ - kBurst](size_t i) {
          const auto va = reinterpret_cast<uintptr_t>(first[i]);
          return pmd::RxBuffer{va + buffer_iova_minus_va_, va};
        });
    posted_ += taken;
    spare_count_ -= taken;
    if (taken != kBurst) [[unlikely]] {  // all or none, so the card is gone
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
  // Nobody uses our key before we have his.
  if (link == nullptr || link->keys.local != header.key() || link->dest_id() != arrival.source ||
      link->keys.remote == 0) {
    ++stats_.bad;
    on_unknown({arrival.source, header.key(), header.number(), 0});
    repost(buffer);
    return;
  }
  if (link->state != LinkState::kUp) {
    begin_session(*link);  // who uses our key knows that we have his
  }
  const Numbered message{header, buffer, static_cast<uint16_t>(length_bytes), {}};
  const uint32_t ahead = header.number() - link->next_in();
  if (ahead == 0) {
    take_in_order(*link, message);
  } else if (static_cast<int32_t>(ahead) < 0 || link->has(header.number())) {
    ++stats_.twice;
    repost(buffer);
  } else if (!keep_early(*link, message)) {
    repost(buffer);
    cut_off(*link);
  }
}

/// Only what has a credit keeps its buffer: who holds back one message must not get all buffers by
/// sending those behind it. @return false: against the rules.
bool Port::keep_early(Link& link, Numbered message) {
  const HeaderWords& header = message.header;
  Inflow* const flow = header.takes_credit() ? &link.in[header.to()] : nullptr;
  const bool counts = flow != nullptr && flow->open;
  if (counts && flow->early == flow->left()) {
    return false;
  }
  if (is_large(header.kind()) && !keep_body(&message)) {
    return false;
  }
  uint8_t* const buffer = message.buffer;
  message.buffer = counts ? buffer : nullptr;
  if (!link.keep(message)) {
    return false;
  }
  if (counts) {
    ++flow->early;
  } else {
    repost(buffer);
  }
  ++stats_.early;
  watch(link, 0);
  link.expect(link.next_in());
  return true;
}

void Port::take_in_order(Link& link, Numbered next) {
  const uint32_t session = link.session;
  do {
    link.expect(link.next_in() + 1);
    if (takes_credit(next.header.kind())) {
      deliver(link, next);
    } else if (is_large(next.header.kind())) {
      large(link, next);
      drop(next);
    } else {
      control(link, next.header);
      drop(next);
    }
  } while (link.session == session && take_early(link, &next));
  link.expect(link.next_in());
}

bool Port::take_early(Link& link, Numbered* next) {
  if (!link.take(next)) {
    return false;
  }
  if (next->buffer != nullptr) {
    Inflow& flow = link.in[next->header.to()];
    flow.early = static_cast<uint16_t>(flow.early - (flow.early != 0 ? 1 : 0));
  }
  return true;
}

void Port::deliver(Link& link, const Numbered& message) {
  const HeaderWords& header = message.header;
  const uint32_t bytes = message.length_bytes - kHeaderBytes - header.padding();
  if (!header.takes_credit() || bytes > kPartBytesMax) {
    drop(message);
    cut_off(link);
    return;
  }
  // Counts also where the message does not: the peer will not say it again.
  if (link.out[header.from()].on_limit(header.credit()) != 0) {
    drop(message);
    cut_off(link);
    return;
  }
  Inflow& flow = link.in[header.to()];
  if (!flow.open) {  // sent before it heard that the context is closed
    ++stats_.bad;
    drop(message);
    return;
  }
  if (flow.arrive() != 0 || message.buffer == nullptr) {
    drop(message);
    cut_off(link);
    return;
  }
  Context* const context = contexts_[header.to()];  // is there: its flow is open
  ++stats_.received;
  *context->inbox_.tail() = {message.buffer + kHeaderBytes, bytes};
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
  bool good = true;
  switch (header.kind()) {
    case Kind::kOpen:
      open_inflow(link, header.to());
      break;
    case Kind::kOpened:
      if ((link.theirs.opened & bit) == 0) {
        link.large.records_out[header.from()] = SendAccount(kRecordWindow);
      }
      link.theirs.opened |= bit;
      [[fallthrough]];
    case Kind::kCredit:
      // What was sent counts from the last kRefused on: a message that came before this one may
      // have had the same credit.
      good = (link.theirs.asked & bit) != 0 && flow.on_limit(header.credit()) == 0;
      break;
    case Kind::kRecords:
      good = (link.theirs.opened & bit) != 0 &&
             link.large.records_out[header.from()].on_limit(header.credit()) == 0;
      break;
    case Kind::kControl:
      good = link.large.control_out.on_limit(header.credit()) == 0;
      break;
    case Kind::kAlive:  // it is stuck: what was too little to be told may be all that it waits for
      for (uint32_t i = 0; i < kContexts; ++i) {
        if (link.in[i].open) {
          link.say.credit |= uint64_t{link.in[i].changed()} << i;
          link.say.records |= uint64_t{link.large.records_in[i].changed()} << i;
        }
      }
      want(link);
      break;
    case Kind::kRefused:
      good = (link.theirs.asked & bit) != 0;
      if (flow.sent() != static_cast<uint16_t>(header.credit() + link.backlog.kept_back[header.from()])) {
        link.lost |= link.routes.routed;  // not all messages to it were received
      }
      link.theirs.refused |= bit;
      ++link.refusals[header.from()];
      ++stats_.refused;
      link.theirs.asked &= ~bit;
      link.theirs.opened &= ~bit;
      flow = {};
      link.backlog.kept_back[header.from()] = 0;
      link.large.records_out[header.from()] = {};
      break;
    default:
      good = false;
  }
  if (!good) {
    cut_off(link);
  }
}

void Port::return_credit(const Origin& origin, uint32_t to, uint32_t count) {
  Link& link = *origin.link;
  Inflow& flow = link.in[to];
  if (origin.session != link.session || !flow.open) {
    shares_.put(count);  // their share went with the session, or the context
    return;
  }
  flow.free_known(count);  // nothing of a share is ever lent
  // The peer hears of it with the next message that goes there, or in one for that alone.
  if (flow.due()) {
    link.say.credit |= 1ull << to;
    want(link);
  }
}

/// A request was answered, or its sender does not want it any more.
void Port::return_record(const Origin& origin, uint32_t to) {
  Link& link = *origin.link;
  if (origin.session != link.session || !link.in[to].open) {
    return;  // its place went with the session, or the context
  }
  RecvAccount& records = link.large.records_in[to];
  if (records.free()) {
    records_lent_.put(1);
  }
  if (records.due()) {
    link.say.records |= 1ull << to;
    want(link);
  }
}

/// A window is used up, and somebody waits for what may be behind it. @return false: too many are.
bool Port::lend_records(Link& link, uint32_t context) {
  RecvAccount& records = link.large.records_in[context];
  if (!link.in[context].open || !records.exhausted()) {
    return true;
  }
  if (records.committed() + kRecordWindow > kWindowMax || !records_lent_.take_all(kRecordWindow)) {
    return false;
  }
  records.lend(kRecordWindow);
  link.say.records |= 1ull << context;
  want(link);
  return true;
}

}  // namespace rio::msg
