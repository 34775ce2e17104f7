// The sender handles the messages of receivers.
#include <cerrno>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "lib/msg/paths.hpp"
#include "lib/msg/rail.hpp"
#include "lib/msg/sender.hpp"

namespace rio::msg {
namespace {

constexpr uint8_t kRefusalsMax = 4;     // in a row, of a path that only the sender takes to fail
constexpr uint32_t kRefusalsEach = 16;  // in a response time-out

/// Read the cut of a grant. @return false: it is foreign, and invalid.
[[nodiscard]] bool read_cut(const GrantBody& body, const Path& path, uint64_t len_max,
                            pmd::mem::Cut* out) {
  return pmd::mem::decode_cut(body.cut, len_max, path.rail.slots.rules(), out) == 0 &&
         pmd::mem::cut_messages(*out) <= UINT32_MAX;
}

/// Log that a peer wants data by a rail that it has not, or that was never found. @return false:
/// the peer broke the protocol.
[[nodiscard]] bool refuse_rail(const Link& link, uint32_t rail) {
  if (!link.keys.warned) {  // Sessions logs once, too
    base::log_warning("destID %u: it granted data by its rail %u, to which there is no path",
                      link.dest_id(), rail);
  }
  return false;
}

}  // namespace

/// The OfferTaker of a peer's context, without an offer that a message sent meanwhile has refused.
OfferTaker& Sender::taker(const Link& link, uint32_t context) {
  OfferTaker& taker = takers_[uint64_t{link.index()} << 32 | context];
  taker.lapse_before(link.number_out(context));
  return taker;
}

bool Sender::on_offer(Link& link, uint32_t context, std::span<const uint8_t> bytes) {
  OfferBody body;
  if (read(bytes, &body) != 0 || body.message_number > UINT16_MAX) {
    return false;
  }
  // Message numbers are modulo 2^16, like credits.
  const auto ahead = static_cast<int16_t>(link.number_out(context) - body.message_number);
  return taker(link, context)
             .on_offer(body, body.message_number + static_cast<uint32_t>(int32_t{ahead})) == 0;
}

bool Sender::on_revoke(Link& link, uint32_t context, std::span<const uint8_t> bytes) {
  RevokeBody body;
  bool answer = false;
  if (read(bytes, &body) != 0 || taker(link, context).on_revoke(body.offer, &answer) != 0) {
    return false;
  }
  if (answer) {
    works_.control.answer({&link, link.session, Kind::kRevoked, body.offer, 0, 0,
                           static_cast<uint16_t>(context), link.number_out(context)});
  }
  return true;
}

SendTransfer* Sender::find(const Link& link, uint32_t id, uint32_t stripe) {
  return link.large.sends.find(
      [&](const SendTransfer& each) { return each.id == id && each.stripe == stripe; });
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
  // A later attempt skips the leading data that has arrived.
  const uint64_t len_max =
      transfer->settled ? transfer->granted_bytes - transfer->arrived_bytes : transfer->rest_bytes;
  Path* const path = works_.paths.find(link, body.rail);
  pmd::mem::Cut cut;
  if (path == nullptr) {
    return refuse_rail(link, body.rail);
  }
  return !transfer->has_stripes() && read_cut(body, *path, len_max, &cut) &&
         take_grant(*transfer, body, *path, cut);
}

bool Sender::on_stripe(Link& link, std::span<const uint8_t> bytes) {
  StripeBody body;
  if (read(bytes, &body) != 0 || body.grant.transfer > link.large.sends_begun) {
    return false;
  }
  SendTransfer* const whole = find(link, body.grant.transfer);
  if (whole == nullptr || whole->grant.state() == SendGrant::State::kEnded) {
    // We have closed that transfer, but the receiver did not know that when it granted the stripe.
    works_.control.answer({.link = &link,
                           .session = link.session,
                           .kind = Kind::kClosed,
                           .transfer = body.grant.transfer,
                           .attempt = body.grant.attempt,
                           .reason = StopReason::kCancelled,
                           .stripe = body.grant.stripe});
    return true;
  }
  Path* const path = works_.paths.find(link, body.grant.rail);
  pmd::mem::Cut cut;
  if (path == nullptr) {
    return refuse_rail(link, body.grant.rail);
  }
  if (link.peer_rails == nullptr || whole->grant.attempt() != 0 ||
      whole->grant.state() != SendGrant::State::kRequested ||
      !read_cut(body.grant, *path, body.whole_bytes - body.first_byte, &cut)) {
    return false;
  }
  SendTransfer* stripe = nullptr;
  const int rc =
      stripes_.granted(*whole, body, pmd::mem::cut_bytes(cut, path->rail.slots.rules()), &stripe);
  if (rc == -ENOMEM) {
    stop_all(*whole, {StopReason::kFailed, false});
  }
  return rc == -ENOMEM ||
         (rc == 0 && (stripe == nullptr || take_grant(*stripe, body.grant, *path, cut)));
}

/// A transfer or a stripe was granted. @return false: the peer broke the protocol.
bool Sender::take_grant(SendTransfer& transfer, const GrantBody& body, Path& path,
                        const pmd::mem::Cut& cut) {
  SendGrant& grant = transfer.grant;
  const bool mine =
      body.attempt == grant.attempt() && grant.state() == SendGrant::State::kRequested;
  if (grant.on_grant(body.attempt, body.mailbox, static_cast<uint32_t>(pmd::mem::cut_messages(cut)),
                     body.total) != 0) {
    return false;
  }
  if (!mine) {
    return true;
  }
  use(transfer, path);
  if (path.rail.health.error() != 0) {
    works_.paths.say_lost(*transfer.link, path.rail);
    ask_again(grant);
  } else if (grant.fruitless() < kRefusalsMax && Paths::is_left(path)) {
    // The receiver does not know yet that the path fails, or that another one works again.
    if (grant.fruitless() != 0) {
      grant.rest_until(base::now_ns() + works_.config.response_timeout_ns() / kRefusalsEach);
    }
    ask_again(grant);
  }
  transfer.cut = cut;
  const uint64_t len_bytes = pmd::mem::cut_bytes(cut, path.rail.slots.rules());
  if (!transfer.settled) {
    transfer.granted_bytes = len_bytes;
    transfer.settled = true;
  }
  const uint64_t arrived = transfer.granted_bytes - len_bytes;
  if (arrived != transfer.arrived_bytes) {
    transfer.arrived_bytes = arrived;
    grant.brought_further();
  }
  if (transfer.region == nullptr) {
    const SendTransfer& all = transfer.is_stripe() ? *transfer.stripes->whole : transfer;
    transfer.region = path.rail.memory.get(all.rest, all.rest_bytes);
  }
  working_.add(transfer);
  return true;
}

/// The next attempt takes a path; nothing is posted now.
void Sender::use(SendTransfer& transfer, Path& path) {
  if (&path != transfer.path) {
    transfer.path->rail.memory.put(std::exchange(transfer.region, nullptr));
    transfer.path = &path;
  }
}

bool Sender::on_total(Link& link, Kind kind, std::span<const uint8_t> bytes) {
  TotalBody body;
  if (read(bytes, kind, &body) != 0 || body.transfer > link.large.sends_begun) {
    return false;
  }
  SendTransfer* const transfer = find(link, body.transfer, body.stripe);
  if (transfer == nullptr) {
    return true;
  }
  if (kind == Kind::kDone) {
    const uint64_t read_bytes = transfer->grant.is_shown() ? transfer->rest_bytes : 0;
    if (transfer->grant.on_done(body.attempt) != 0) {
      return false;
    }
    works_.stats.placed += read_bytes;
    // Of a transfer that was shown nothing is under way: its user is told by this progress().
    if (read_bytes == 0 || transfer->working || look(*transfer)) {
      working_.add(*transfer);
    }
    return true;
  }
  working_.add(*transfer);
  transfer->settled = true;  // also for an accepted offer
  return transfer->grant.on_extend(body.attempt, body.total) == 0;
}

bool Sender::on_abort(Link& link, std::span<const uint8_t> bytes) {
  StopBody body;
  if (read(bytes, Kind::kAbort, &body) != 0 || body.transfer > link.large.sends_begun) {
    return false;
  }
  SendTransfer* const transfer = find(link, body.transfer, body.stripe);
  if (transfer == nullptr) {
    works_.control.answer({.link = &link,
                           .session = link.session,
                           .kind = Kind::kClosed,
                           .transfer = body.transfer,
                           .attempt = body.attempt,
                           .reason = body.reason != 0 ? body.reason : StopReason::kCancelled,
                           .stripe = body.stripe});
    return true;
  }
  working_.add(*transfer);
  const bool again = body.again != 0 && transfer->grant.may_ask_again();
  const uint8_t reason = body.again != 0 && !again ? StopReason::kFailed : body.reason;
  return transfer->grant.on_abort(body.attempt, {reason, again}) == 0;
}

}  // namespace rio::msg
