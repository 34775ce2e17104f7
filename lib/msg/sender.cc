#include "lib/msg/sender.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "lib/msg/large_burst.hpp"
#include "lib/msg/paths.hpp"
#include "lib/msg/rail.hpp"

namespace rio::msg {
namespace {

constexpr uint64_t kLinkRestNs = 1'000'000;  // pause after the first failure; it doubles each time,
constexpr uint8_t kDoublingsMax = 9;         // at most this often

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

}  // namespace

bool Sender::busy() const {
  return !working_.empty() ||
         std::any_of(works_.rails.begin(), works_.rails.end(),
                     [](const Rail* rail) { return rail->outbox.large_count() != 0; });
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
  transfer.path = link.path;
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
  if (!small && !takers_.empty()) [[unlikely]] {
    accept(route, body, transfer);
  }
  if (!small && body.offer == 0) {
    body.shown_at = show(transfer);
  }
  link.outbox->post_request(route, body);
  link.large.sends.append(transfer);
  works_.peers.watch(link, 0);
  if (body.offer != 0) {
    working_.add(transfer);
  }
}

/// Called before a request is sent: accept the peer's offer for it, if one fits.
void Sender::accept(const Route& route, RequestBody& body, SendTransfer& transfer) {
  const OfferBody* const offer = taker(*route.link, HeaderWords{0, route.word}.to())
                                     .take(body.message_number, body.len_bytes, body.match_bits);
  // An offer fits only if our memory has the same alignment and our card the same rules.
  const pmd::mem::AlignRules& rules = transfer.path->rail.slots.rules();
  if (offer == nullptr || transfer.edge_bytes != 0 || offer->unit_bytes != rules.dedicated_size ||
      rules.message_max != pmd::mem::kMessagePage ||
      offered_cut(*offer, transfer.rest_bytes, &transfer.cut) != 0) {
    return;
  }
  const auto messages =
      static_cast<uint32_t>(std::min<uint64_t>(pmd::mem::cut_messages(transfer.cut), UINT32_MAX));
  body.offer = offer->offer;
  transfer.granted_bytes = transfer.rest_bytes;
  transfer.region = transfer.path->rail.memory.get(transfer.rest, transfer.rest_bytes);
  transfer.grant.accept(offer->mailbox, messages, std::min<uint32_t>(offer->window, messages));
}

/// Show the data to the receiver. @return the address for REQUEST; 0: the peer's card cannot read
/// it.
uint64_t Sender::show(SendTransfer& transfer) {
  Rail& rail = transfer.path->rail;
  if (!rail.shown.is_open() || transfer.link->peer_rails != nullptr || transfer.rest_bytes == 0) {
    return 0;
  }
  transfer.region = rail.memory.get(transfer.rest, transfer.rest_bytes);
  const uint64_t at =
      transfer.region == nullptr
          ? 0
          : rail.shown.address(*transfer.region, transfer.rest, transfer.rest_bytes);
  if (at != 0) {
    transfer.grant.show();
    transfer.granted_bytes = transfer.rest_bytes;
  }
  return at;
}

/// The send ends, but the receiver may be reading its data: the bytes that it gets from now on are
/// not those that were sent, so its read must fail.
void Sender::hide(const SendTransfer& transfer) {
  Rail& rail = transfer.path->rail;
  if (transfer.grant.is_shown() && rail.health.error() == 0) {
    rail.shown.renew();
  }
}

void Sender::cancel(SendTransfer& transfer) {
  if (!transfer.done && !transfer.dead) {
    stop_all(transfer, {StopReason::kCancelled, false});
  }
}

/// Stop a transfer with its stripes.
void Sender::stop_all(SendTransfer& whole, StopCause cause) {
  whole.grant.stop(cause);
  working_.add(whole);
  if (whole.has_stripes()) {
    whole.link->large.sends.for_each([&](SendTransfer& each) {
      if (each.is_stripe() && each.stripes == whole.stripes) {
        each.grant.stop(cause);
        working_.add(each);
      }
    });
  }
}

void Sender::on_sent(Rail& rail, const pmd::TxDone& done) {
  const SendSlots::Out out =
      rail.slots.end(static_cast<uint32_t>(done.cookie & (SendSlots::kCount - 1)));
  if (out.transfer == nullptr) {
    return;  // reported by a card that is gone
  }
  SendTransfer& transfer = *out.transfer;
  rail.outbox.count_large(-1);
  if (done.status != pmd::Status::kOk) {
    if (rail.outbox.stopped() && take_back(out, done.status)) {
      return;
    }
    if (!transfer.dead && transfer.grant.state() == SendGrant::State::kSending) {
      ask_again(transfer.grant);
    }
    if (done.status == pmd::Status::kResponseTimeout) {
      if (transfer.link->peer_rails != nullptr && transfer.settled) {
        transfer.grant.leave_rest_to_receiver();  // it goes on by another rail meanwhile
        rail.silence.doubt(*transfer.path);
      }
      transfer.grant.rest_until(base::now_ns() + 2 * works_.config.response_timeout_ns());
    } else if (done.status == pmd::Status::kLinkDown) {
      // Pause, or attempts that fail at once would be used up before the link is back.
      const uint8_t doublings = std::min(transfer.grant.fruitless(), kDoublingsMax);
      transfer.grant.rest_until(base::now_ns() + (kLinkRestNs << doublings));
    }
  }
  transfer.grant.completed(1);
  working_.add(transfer);
}

void Sender::ask_again(SendGrant& grant) {
  const bool again = grant.may_ask_again();
  grant.stop({again ? uint8_t{0} : StopReason::kFailed, again});
}

/// Handle a message that the card returned unsent because its ring was stopped. @return false: the
/// completion is of another kind.
bool Sender::take_back(const SendSlots::Out& out, pmd::Status status) {
  if (status != pmd::Status::kFlushed && status != pmd::Status::kRetryExpired) {
    return false;
  }
  SendTransfer& transfer = *out.transfer;
  if (transfer.unsent++ == 0) {
    interrupted_.push_back(&transfer);
    transfer.unsent_from = out.number;
  }
  transfer.unsent_from = std::min(transfer.unsent_from, out.number);
  return true;
}

void Sender::resume(const Rail& rail) {
  std::erase_if(interrupted_, [&](SendTransfer* each) {
    if (&each->path->rail != &rail) {
      return false;
    }
    SendGrant& grant = each->grant;
    const uint32_t count = std::exchange(each->unsent, 0);
    const bool sending = !each->dead && grant.state() == SendGrant::State::kSending;
    // All entries of a stopped ring are completed. Normally the unsent messages are the last ones;
    // if not, later messages may have landed in the entry of a refused one, so a new attempt is
    // needed. It is, too, if another path is better: the receiver chooses.
    if (sending && !Paths::is_left(*each->path) && each->unsent_from == grant.next() - count) {
      grant.not_sent(count);
    } else {
      if (sending) {
        ask_again(grant);
      }
      grant.completed(count);
    }
    working_.add(*each);
    return true;
  });
}

void Sender::end_session(Link& link, int error) {
  while (!link.large.sends.is_empty()) {
    SendTransfer& transfer = *link.large.sends.first();
    link.large.sends.remove(transfer);
    transfer.dead = true;
    transfer.status = error;
    working_.add(transfer);
  }
  link.large.sends_begun = 0;
  std::erase_if(takers_, [&](const auto& each) { return each.first >> 32 == link.index(); });
}

void Sender::card_gone(Rail& rail) {
  for (uint32_t i = 0; i < works_.peers.count(); ++i) {
    works_.peers.at(i).large.sends.for_each([&](SendTransfer& each) {
      if (&each.path->rail == &rail && each.grant.state() == SendGrant::State::kSending) {
        ask_again(each.grant);  // it may have posted nothing yet
        working_.add(each);
      }
    });
  }
  for (uint32_t slot = 0; slot < SendSlots::kCount; ++slot) {
    if (SendTransfer* const transfer = rail.slots.end(slot).transfer; transfer != nullptr) {
      transfer->grant.completed(1);
      working_.add(*transfer);
    }
  }
  std::erase_if(interrupted_, [&](SendTransfer* each) {
    if (&each->path->rail != &rail) {
      return false;
    }
    each->grant.completed(std::exchange(each->unsent, 0));
    working_.add(*each);
    return true;
  });
  rail.outbox.count_large(-static_cast<int32_t>(rail.outbox.large_count()));
}

void Sender::progress() {
  // Reaping may run an emulated card, which takes time. So post first what was granted meanwhile.
  working_.visit([this](SendTransfer& transfer) { return look(transfer); });
  for (Rail* const rail : works_.rails) {
    if (rail->outbox.large_count() != 0) {
      rail->outbox.reap();
    }
  }
  working_.visit([this](SendTransfer& transfer) { return look(transfer); });
}

/// Advance one transfer. @return whether to visit it again although nothing has arrived for it.
bool Sender::look(SendTransfer& transfer) {
  SendGrant& grant = transfer.grant;
  if (transfer.has_stripes()) {
    return look_at_whole(transfer);
  }
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
  const uint64_t now = grant.state() == SendGrant::State::kDraining ? base::now_ns() : 0;
  if (grant.closed_due(now) && !say_closed(transfer)) {
    return true;
  }
  if (grant.over() && grant.out() == 0) {
    finish(transfer);
    return false;
  }
  return grant.state() == SendGrant::State::kDraining;
}

/// Advance a transfer that has stripes, as far as it is not theirs. @return as look().
bool Sender::look_at_whole(SendTransfer& transfer) {
  const SendGrant& grant = transfer.grant;
  if (!transfer.dead && grant.closed_due(0) && !say_closed(transfer)) {
    return true;
  }
  const bool has_all = transfer.stripes->done_bytes == transfer.granted_bytes;
  if (transfer.stripes->live == 0 && (has_all || transfer.dead || grant.over())) {
    finish(transfer);
  }
  return false;
}

void Sender::post(SendTransfer& transfer) {
  SendGrant& grant = transfer.grant;
  Outbox& outbox = transfer.path->rail.outbox;
  SendSlots& places = transfer.path->rail.slots;
  pmd::TxQueue& tx = outbox.ring();
  const uint32_t taken = Outbox::kBudget + Outbox::kReserve;  // ring entries left to other messages
  if (outbox.stopped() || transfer.path->rest.on) {
    return;
  }
  const uint32_t free = tx.free_count();
  const uint32_t room = free > taken ? free - taken : 0;
  const uint32_t mine = grant.out() < kOutEach ? kOutEach - grant.out() : 0;
  const uint32_t left = SendSlots::kCount - outbox.large_count();
  const uint32_t n = large_burst(grant.may_post(), std::min({room, mine, left}), kBurstMin);
  if (n == 0) {
    return;  // completions make room
  }
  if (pmd::mem::plan_send(transfer.range(transfer.granted_bytes), transfer.cut, places.rules(),
                          {grant.next(), n}, &plan_) != 0) {
    grant.stop({StopReason::kFailed, false});
    return;
  }
  pmd::TxMessage messages[kOutEach];
  uint32_t slots[kOutEach];
  for (uint32_t i = 0; i < n; ++i) {
    slots[i] = places.get();
    messages[i] = message(transfer, plan_.messages[i], slots[i]);
  }
  const uint32_t posted = tx.burst(messages, static_cast<uint16_t>(n));
  for (uint32_t i = 0; i < n; ++i) {
    if (i < posted) {
      places.use(slots[i], {&transfer, grant.next() + i});
    } else {
      places.put(slots[i]);
    }
  }
  outbox.count_large(static_cast<int32_t>(posted));
  grant.posted(posted);
}

pmd::TxMessage Sender::message(const SendTransfer& transfer, const pmd::mem::PlanMessage& m,
                               uint32_t slot) {
  const SendSlots& places = transfer.path->rail.slots;
  uint64_t iova = m.iova;
  const bool placed = m.placement == pmd::mem::Placement::kInPlace;
  if (!placed) {
    uint8_t* const to = places.va(slot);
    std::memcpy(to, m.va, m.len_bytes);
    std::memset(to + m.len_bytes, 0, m.wire_bytes - m.len_bytes);
    iova = places.iova(slot);
  }
  (placed ? works_.stats.placed : works_.stats.copied) += m.len_bytes;
  return {.iova = iova,
          .cookie = Outbox::kLargeCookie | slot,
          .dest_id = transfer.path->dest_id,
          .length_bytes = m.wire_bytes,
          .mbox = transfer.grant.mailbox(),
          .flags = places.flags()};
}

bool Sender::say_closed(SendTransfer& transfer) {
  if (!works_.control.may_say(*transfer.link) || transfer.dead) {
    return false;
  }
  const SendGrant::Closed closed = transfer.grant.take_closed();
  const StopBody body = {transfer.id,
                         closed.arrived,
                         closed.attempt,
                         closed.cause.reason,
                         closed.is_doubtful ? StopBody::kDoubtful : uint8_t{closed.cause.again},
                         transfer.stripe};
  return works_.control.say(*transfer.link, Kind::kClosed, &body, sizeof(body));
}

void Sender::finish(SendTransfer& transfer) {
  hide(transfer);
  transfer.path->rail.memory.put(std::exchange(transfer.region, nullptr));
  if (!transfer.dead) {
    transfer.link->large.sends.remove(transfer);
  }
  if (transfer.is_stripe()) {
    return finish_stripe(transfer);
  }
  const bool has_all =
      transfer.has_stripes() && transfer.stripes->done_bytes == transfer.granted_bytes;
  if (!transfer.dead) {
    const bool good = has_all || transfer.grant.state() == SendGrant::State::kDone;
    transfer.status = good ? 0 : error_of(transfer.grant.cause());
  }
  if (transfer.has_stripes()) {
    stripes_.free(transfer);
  }
  transfer.len_bytes = transfer.edge_bytes + transfer.granted_bytes;
  transfer.done = true;
  transfer.context->sent.append(transfer);
}

void Sender::finish_stripe(SendTransfer& stripe) {
  const bool is_good = stripe.grant.state() == SendGrant::State::kDone;
  const bool is_dead = stripe.dead;
  const StopCause cause = stripe.grant.cause();
  SendTransfer& whole = stripes_.end(stripe, is_good);
  if (!is_good && !is_dead) {
    stop_all(whole, cause);
  }
  working_.add(whole);
}

}  // namespace rio::msg
