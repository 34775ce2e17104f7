#include "lib/msg/sender.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/msg/clock.hpp"

namespace rio::msg {
namespace {

constexpr uint64_t kLinkRestUs = 1000;  // pause after the first failure; it doubles each time,
constexpr uint8_t kDoublingsMax = 9;    // at most this often

[[nodiscard]] int error_of(StopCause cause) {
  switch (cause.reason) {
    case StopReason::kEnough:
      return 0;
    case StopReason::kCancelled:
      return -ECANCELED;
    case StopReason::kRefused:
      return -ECONNREFUSED;
    default:
      return -EIO;
  }
}

/// The length of an untrusted cut. @return 0: invalid.
[[nodiscard]] uint64_t length_of(std::span<const uint8_t, pmd::mem::kCutWireBytes> bytes,
                                 const pmd::mem::AlignRules& rules) {
  uint16_t head = 0;
  uint16_t last = 0;
  uint16_t tail = 0;
  uint32_t count = 0;
  std::memcpy(&head, &bytes[2], sizeof(head));
  std::memcpy(&last, &bytes[4], sizeof(last));
  std::memcpy(&tail, &bytes[6], sizeof(tail));
  std::memcpy(&count, &bytes[8], sizeof(count));
  return pmd::mem::cut_bytes({head, count, last, tail}, rules);
}

}  // namespace

int Sender::create() {
  rules_ = works_.endpoint.align_rules();
  const pmd::Caps& caps = works_.endpoint.caps();
  flags_ = caps.order_depth >= caps.letters ? 0 : pmd::TxFlags::kOrder;
  working_.reserve(kOut);
  return bounce_.create(works_.endpoint, kOut);
}

void Sender::send(ContextSlot& context, const Route& route, uint64_t match_bits, const void* data,
                  uint64_t len_bytes, SendTransfer& transfer, bool small,
                  const uint64_t* immediate) {
  Link& link = *route.link;
  auto* const va = static_cast<uint8_t*>(const_cast<void*>(data));  // only read
  const uint64_t edge = edge_bytes(reinterpret_cast<uintptr_t>(va), len_bytes);
  void* const user = transfer.user;
  transfer = SendTransfer{};
  transfer.user = user;
  transfer.context = &context;
  transfer.link = &link;
  transfer.id = ++link.large.sends_begun;
  transfer.edge_bytes = static_cast<uint8_t>(edge);
  transfer.rest = va + edge;
  transfer.rest_bytes = len_bytes - edge;

  RequestBody body{};
  body.transfer = transfer.id;
  body.len_bytes = len_bytes;
  body.match_bits = match_bits;
  body.page_offset = reinterpret_cast<uintptr_t>(va) % pmd::mem::kMessagePage;
  body.flags = small ? RequestBody::kSmall : 0;
  if (immediate != nullptr) {
    body.flags |= RequestBody::kImmediate;
    body.immediate = *immediate;
  }
  body.edge_bytes = transfer.edge_bytes;
  if (edge != 0) {
    std::memcpy(body.edge, va, edge);
  }
  body.message_number = link.number_out(HeaderWords{0, route.word}.to());
  if (!small && !offers_.empty()) [[unlikely]] {
    accept(route, body, transfer);
  }
  works_.outbox.post_request(route, body);
  link.large.sends.append(transfer);
  works_.peers.watch(link, 0);
  if (body.offer != 0) {
    work(transfer);
  }
}

/// Called before a request is sent: accept the peer's offer for it, if one fits.
void Sender::accept(const Route& route, RequestBody& body, SendTransfer& transfer) {
  const OfferBody* const offer = offers_.take(*route.link, HeaderWords{0, route.word}.to(), body);
  // An offer fits only if our memory has the same alignment and our card the same rules.
  if (offer == nullptr || transfer.edge_bytes != 0 || offer->unit_bytes != rules_.dedicated_size ||
      rules_.message_max != pmd::mem::kMessagePage ||
      offered_cut(*offer, transfer.rest_bytes, &transfer.cut) != 0) {
    return;
  }
  const auto messages =
      static_cast<uint32_t>(std::min<uint64_t>(pmd::mem::cut_messages(transfer.cut), UINT32_MAX));
  body.offer = offer->offer;
  transfer.granted_bytes = transfer.rest_bytes;
  transfer.region = works_.memory.get(transfer.rest, transfer.rest_bytes);
  transfer.grant.accept(offer->mailbox, messages, std::min<uint32_t>(offer->window, messages));
}

void Sender::cancel(SendTransfer& transfer) {
  if (!transfer.done && !transfer.dead) {
    transfer.grant.stop({StopReason::kCancelled, false});
    work(transfer);
  }
}

SendTransfer* Sender::find(const Link& link, uint32_t id) const {
  SendTransfer* transfer = link.large.sends.first();
  while (transfer != nullptr && transfer->id != id) {
    transfer = transfer->links.next;
  }
  return transfer;
}

void Sender::work(SendTransfer& transfer) {
  if (!transfer.working) {
    transfer.working = true;
    working_.push_back(&transfer);
  }
}

bool Sender::on_grant(Link& link, std::span<const uint8_t> bytes) {
  GrantBody body;
  if (read(bytes, &body) != 0 || body.transfer > link.large.sends_begun) {
    return false;
  }
  SendTransfer* const transfer = find(link, body.transfer);
  if (transfer == nullptr) {
    return true;  // we have closed that transfer
  }
  SendGrant& grant = transfer->grant;
  const uint64_t len_bytes = length_of(body.cut, rules_);
  pmd::mem::Cut cut;
  // A later attempt skips the leading data that has arrived.
  const bool first = !transfer->settled;
  if (len_bytes >
          (first ? transfer->rest_bytes : transfer->granted_bytes - transfer->arrived_bytes) ||
      pmd::mem::decode_cut(body.cut, len_bytes, rules_, &cut) != 0 ||
      pmd::mem::cut_messages(cut) > UINT32_MAX) {
    return false;
  }
  const bool mine =
      body.attempt == grant.attempt() && grant.state() == SendGrant::State::kRequested;
  if (grant.on_grant(body.attempt, body.mailbox, static_cast<uint32_t>(pmd::mem::cut_messages(cut)),
                     body.total) != 0) {
    return false;
  }
  if (mine) {
    transfer->cut = cut;
    if (first) {
      transfer->granted_bytes = len_bytes;
      transfer->settled = true;
    }
    const uint64_t arrived = transfer->granted_bytes - len_bytes;
    if (arrived != transfer->arrived_bytes) {
      transfer->arrived_bytes = arrived;
      grant.brought_further();
    }
    if (transfer->region == nullptr) {
      transfer->region = works_.memory.get(transfer->rest, transfer->rest_bytes);
    }
    work(*transfer);
  }
  return true;
}

bool Sender::on_extend(Link& link, std::span<const uint8_t> bytes) {
  TotalBody body;
  if (read_extend(bytes, &body) != 0 || body.transfer > link.large.sends_begun) {
    return false;
  }
  SendTransfer* const transfer = find(link, body.transfer);
  if (transfer == nullptr) {
    return true;
  }
  transfer->settled = true;  // also for an accepted offer
  work(*transfer);
  return transfer->grant.on_extend(body.attempt, body.total) == 0;
}

bool Sender::on_done(Link& link, std::span<const uint8_t> bytes) {
  TotalBody body;
  if (read_done(bytes, &body) != 0 || body.transfer > link.large.sends_begun) {
    return false;
  }
  SendTransfer* const transfer = find(link, body.transfer);
  if (transfer == nullptr) {
    return true;
  }
  work(*transfer);
  return transfer->grant.on_done(body.attempt) == 0;
}

bool Sender::on_abort(Link& link, std::span<const uint8_t> bytes) {
  StopBody body;
  if (read_abort(bytes, &body) != 0 || body.transfer > link.large.sends_begun) {
    return false;
  }
  SendTransfer* const transfer = find(link, body.transfer);
  if (transfer == nullptr) {
    const uint8_t reason = body.reason != 0 ? body.reason : StopReason::kCancelled;
    works_.control.answer(
        {&link, link.session, Kind::kClosed, body.transfer, body.attempt, reason});
    return true;
  }
  work(*transfer);
  return transfer->grant.on_abort(body.attempt, {body.reason, body.again != 0}) == 0;
}

void Sender::on_sent(const pmd::TxDone& done) {
  const auto slot = static_cast<uint32_t>(done.cookie & (kOut - 1));
  if (out_[slot].transfer == nullptr) {
    return;  // reported by a card that is gone
  }
  SendTransfer& transfer = *std::exchange(out_[slot].transfer, nullptr);
  bounce_.put(slot);
  works_.outbox.count_large(-1);
  if (done.status != pmd::Status::kOk) {
    if (works_.outbox.stopped() && take_back(transfer, out_[slot].number, done.status)) {
      return;
    }
    if (!transfer.dead && transfer.grant.state() == SendGrant::State::kSending) {
      ask_again(transfer.grant);
    }
    if (done.status == pmd::Status::kResponseTimeout) {
      transfer.grant.rest_until(now_us() + 2 * uint64_t{works_.response_timeout_us});
    } else if (done.status == pmd::Status::kLinkDown) {
      // Pause, or attempts that fail at once would be used up before the link is back.
      const uint8_t doublings = std::min(transfer.grant.fruitless(), kDoublingsMax);
      transfer.grant.rest_until(now_us() + (kLinkRestUs << doublings));
    }
  }
  transfer.grant.completed(1);
  work(transfer);
}

void Sender::ask_again(SendGrant& grant) {
  const bool again = grant.may_ask_again();
  grant.stop({again ? uint8_t{0} : StopReason::kFailed, again});
}

/// Handle a message that the card returned unsent because its ring was stopped. @return false: the
/// completion is of another kind.
bool Sender::take_back(SendTransfer& transfer, uint32_t number, pmd::Status status) {
  if (status != pmd::Status::kFlushed && status != pmd::Status::kRetryExpired) {
    return false;
  }
  if (transfer.unsent++ == 0) {
    interrupted_.push_back(&transfer);
    transfer.unsent_from = number;
  }
  transfer.unsent_from = std::min(transfer.unsent_from, number);
  return true;
}

void Sender::resume() {
  for (SendTransfer* const each : interrupted_) {
    SendGrant& grant = each->grant;
    const uint32_t count = std::exchange(each->unsent, 0);
    const bool sending = !each->dead && grant.state() == SendGrant::State::kSending;
    // All entries of a stopped ring are completed. Normally the unsent messages are the last ones;
    // if not, later messages may have landed in the entry of a refused one, so a new attempt is
    // needed.
    if (sending && each->unsent_from == grant.next() - count) {
      grant.not_sent(count);
    } else {
      if (sending) {
        ask_again(grant);
      }
      grant.completed(count);
    }
    work(*each);
  }
  interrupted_.clear();
}

void Sender::end_session(Link& link, int error) {
  while (!link.large.sends.is_empty()) {
    SendTransfer& transfer = *link.large.sends.first();
    link.large.sends.remove(transfer);
    transfer.dead = true;
    transfer.status = error;
    work(transfer);
  }
  link.large.sends_begun = 0;
  offers_.end_session(link);
}

void Sender::card_gone() {
  for (Out& out : out_) {
    if (out.transfer != nullptr) {
      out.transfer->grant.completed(1);
      work(*std::exchange(out.transfer, nullptr));
    }
  }
  works_.outbox.count_large(-static_cast<int32_t>(works_.outbox.large_count()));
}

void Sender::progress() {
  if (works_.outbox.large_count() != 0) {
    works_.outbox.reap();
  }
  size_t kept = 0;
  for (size_t i = 0; i < working_.size(); ++i) {
    SendTransfer& transfer = *working_[i];
    if (look(transfer)) {
      working_[kept++] = &transfer;
    } else {
      transfer.working = false;
      if (transfer.done) {
        transfer.context->sent.append(transfer);
      }
    }
  }
  working_.resize(kept);
}

/// Advance one transfer. @return whether to visit it again although nothing has arrived for it.
bool Sender::look(SendTransfer& transfer) {
  SendGrant& grant = transfer.grant;
  if (transfer.dead) {
    if (grant.out() != 0) {
      return false;  // on_sent() puts it back into the list
    }
    finish(transfer);
    return false;
  }
  if (grant.may_post() != 0) {
    post(transfer);
    return grant.may_post() != 0;
  }
  const uint64_t now = grant.state() == SendGrant::State::kDraining ? now_us() : 0;
  if (grant.closed_due(now) && !say_closed(transfer)) {
    return true;
  }
  if (grant.over() && grant.out() == 0) {
    finish(transfer);
    return false;
  }
  return grant.state() == SendGrant::State::kDraining;
}

void Sender::post(SendTransfer& transfer) {
  SendGrant& grant = transfer.grant;
  pmd::TxQueue& tx = works_.outbox.ring();
  const uint32_t taken = Outbox::kBudget + Outbox::kReserve;  // ring entries left to other messages
  if (works_.outbox.stopped() || transfer.link->rest.on) {
    return;
  }
  const uint32_t free = tx.free_count();
  const uint32_t room = free > taken ? free - taken : 0;
  const uint32_t mine = grant.out() < kOutEach ? kOutEach - grant.out() : 0;
  const uint32_t n = std::min({grant.may_post(), room, mine, kOut - works_.outbox.large_count()});
  if (n == 0) {
    return;  // completions make room
  }
  const pmd::mem::Range range = {transfer.rest + transfer.arrived_bytes,
                                 transfer.granted_bytes - transfer.arrived_bytes,
                                 transfer.region != nullptr ? std::span(transfer.region->runs)
                                                            : std::span<const pmd::IovaRun>()};
  if (pmd::mem::plan_send(range, transfer.cut, rules_, {grant.next(), n}, &plan_) != 0) {
    grant.stop({StopReason::kFailed, false});
    return;
  }
  pmd::TxMessage messages[kOutEach];
  uint32_t slots[kOutEach];
  for (uint32_t i = 0; i < n; ++i) {
    slots[i] = bounce_.get();
    messages[i] = message(transfer, plan_.messages[i], slots[i]);
  }
  const uint32_t posted = tx.burst(messages, static_cast<uint16_t>(n));
  for (uint32_t i = 0; i < n; ++i) {
    if (i < posted) {
      out_[slots[i]] = {&transfer, grant.next() + i};
    } else {
      bounce_.put(slots[i]);
    }
  }
  works_.outbox.count_large(static_cast<int32_t>(posted));
  grant.posted(posted);
}

pmd::TxMessage Sender::message(const SendTransfer& transfer, const pmd::mem::PlanMessage& m,
                               uint32_t slot) {
  uint64_t iova = m.iova;
  const bool placed = m.placement == pmd::mem::Placement::kInPlace;
  if (!placed) {
    uint8_t* const to = bounce_.va(slot);
    std::memcpy(to, m.va, m.len_bytes);
    std::memset(to + m.len_bytes, 0, m.wire_bytes - m.len_bytes);
    iova = bounce_.iova(slot);
  }
  (placed ? works_.stats.placed : works_.stats.copied) += m.len_bytes;
  return {.iova = iova,
          .cookie = Outbox::kLargeCookie | slot,
          .dest_id = transfer.link->dest_id(),
          .length_bytes = m.wire_bytes,
          .mbox = transfer.grant.mailbox(),
          .flags = flags_};
}

bool Sender::say_closed(SendTransfer& transfer) {
  if (!works_.control.may_say(*transfer.link) || transfer.dead) {
    return false;
  }
  const SendGrant::Closed closed = transfer.grant.take_closed();
  StopBody body{};
  body.transfer = transfer.id;
  body.arrived = closed.arrived;
  body.attempt = closed.attempt;
  body.reason = closed.cause.reason;
  body.again = closed.cause.again ? 1 : 0;
  return works_.control.say(*transfer.link, Kind::kClosed, &body, sizeof(body));
}

void Sender::finish(SendTransfer& transfer) {
  if (transfer.region != nullptr) {
    works_.memory.put(transfer.region);
    transfer.region = nullptr;
  }
  if (!transfer.dead) {
    transfer.link->large.sends.remove(transfer);
    const bool good = transfer.grant.state() == SendGrant::State::kDone;
    transfer.status = good ? 0 : error_of(transfer.grant.cause());
  }
  transfer.len_bytes = transfer.edge_bytes + transfer.granted_bytes;
  transfer.done = true;
}

}  // namespace rio::msg
