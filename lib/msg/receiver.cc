#include "lib/msg/receiver.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "lib/msg/paths.hpp"
#include "lib/msg/rail.hpp"

namespace rio::msg {
namespace {

[[nodiscard]] ReceiveQueues& queues(const RecvTransfer& transfer) {
  return transfer.path->rail.queues;
}

/// Register what a transfer receives into; stripes share what their transfer receives into.
[[nodiscard]] const pmd::mem::Region* registered(const RecvTransfer& transfer) {
  const RecvTransfer& all = transfer.is_stripe() ? *transfer.stripes->whole : transfer;
  return transfer.path->rail.memory.get(all.rest, all.rest_bytes);
}

[[nodiscard]] int error_of(StopCause cause) {
  return cause.reason == StopReason::kEnough      ? 0
         : cause.reason == StopReason::kCancelled ? -ECANCELED
                                                  : -EIO;
}

}  // namespace

void Receiver::receive(ContextSlot& context, Request* request, void* buffer, uint64_t capacity,
                       RecvTransfer& transfer) {
  const RequestBody& body = request->body;
  void* const user = transfer.user;
  std::destroy_at(&transfer);
  std::construct_at(&transfer);
  transfer.user = user;
  transfer.context = &context;
  transfer.link = request->origin.link;
  transfer.path = request->path != nullptr ? request->path : transfer.link->path;
  transfer.id = body.transfer;
  transfer.waiter.transfer = &transfer;
  transfer.true_bytes = body.len_bytes;
  const uint64_t wanted = std::min(capacity, body.len_bytes);
  const uint64_t edge = std::min<uint64_t>(body.edge_bytes, wanted);
  if (edge != 0) {
    std::memcpy(buffer, body.edge, edge);
  }
  works_.stats.copied += edge;
  transfer.edge_bytes = static_cast<uint8_t>(edge);
  transfer.rest = static_cast<uint8_t*>(buffer) + edge;
  transfer.rest_bytes = wanted - edge;
  const int gone = request->gone;
  const bool kept = request->accepted && request->buffer == buffer && capacity >= body.len_bytes;
  if (gone == 0 && request->accepted && !kept) {
    requests_.park(*request, {0, true});
  }
  const Request had = *request;
  requests_.free(request, true);
  if (gone != 0) {
    transfer.dead = true;
    finish(transfer, gone);
    return;
  }
  transfer.link->large.receives.append(transfer);
  transfer.grant = had.grant;
  transfer.place = had.place;
  transfer.quarantined = had.quarantined;
  if (kept) {
    accept(had, transfer);
    return;
  }
  works_.peers.watch(*transfer.link, 0);
  if (transfer.rest_bytes == 0) {
    transfer.say_abort = transfer.grant.stop({StopReason::kEnough, false});
  } else if (transfer.grant.state() == RecvGrant::State::kWaiting &&
             (wanted != body.len_bytes || !begin_read(transfer, had.body.shown_at)) &&
             !stripes_.divide(transfer)) {
    wait(transfer);
  }
  working_.add(transfer);
}

/// Wait for a queue, of the rail that suits best.
void Receiver::wait(RecvTransfer& transfer) {
  static_cast<void>(move(transfer));
  queues(transfer).assigner().wait(transfer.path->source, transfer.waiter);
}

/// Move to the rail that suits best. @return whether that is another one.
bool Receiver::move(RecvTransfer& transfer) {
  if (transfer.link->peer_rails == nullptr || queues(transfer).may_be_written(transfer)) {
    return false;
  }
  Path& path = works_.paths.choose_for_large(*transfer.link);
  if (&path == transfer.path) {
    return false;
  }
  if (transfer.is_stripe()) {
    stripes_.move(transfer, path);
  }
  transfer.path->rail.memory.put(std::exchange(transfer.region, nullptr));
  transfer.path = &path;
  transfer.stuck = 0;
  return true;
}

/// Receive into the buffer that was offered: post entries for the messages that the peer is already
/// sending.
void Receiver::accept(const Request& request, RecvTransfer& transfer) {
  const auto messages = static_cast<uint32_t>(pmd::mem::cut_messages(request.cut));
  transfer.cut = request.cut;
  transfer.region = transfer.path->rail.memory.get(transfer.rest, transfer.rest_bytes);
  transfer.granted = true;
  transfer.say_kept = true;
  queues(transfer).assign(transfer);
  offers_.note_end(*transfer.link, request.header.to, true);
  transfer.grant.start(messages, ReceiveQueues::kWindow);
  transfer.grant.told_by_offer(std::min(request.window, messages));
  works_.peers.watch(*transfer.link, 0);
  queues(transfer).post(transfer);
  working_.add(transfer);
}

void Receiver::cancel(RecvTransfer& transfer) {
  if (transfer.done || transfer.dead) {
    return;
  }
  if (transfer.has_stripes()) {
    stop_all(transfer, {StopReason::kCancelled, false});
  } else {
    stop(transfer, {StopReason::kCancelled, false});
  }
}

void Receiver::stop(RecvTransfer& transfer, StopCause cause) {
  if (!transfer.grant.stop(cause)) {
    return;
  }
  transfer.say_abort = true;
  queues(transfer).assigner().unwait(transfer.waiter);
  if (transfer.held) {
    queues(transfer).quarantine(transfer);
  }
  working_.add(transfer);
}

/// Stop a transfer with all its stripes.
void Receiver::stop_all(RecvTransfer& whole, StopCause cause) {
  stop(whole, cause);
  end_unknown(whole, cause);
  whole.link->large.receives.for_each([&](RecvTransfer& each) {
    if (each.stripe != 0 && each.stripes == whole.stripes) {
      stop(each, cause);
    }
  });
}

/// End the stripes of a transfer of which the sender does not know.
void Receiver::end_unknown(RecvTransfer& whole, StopCause cause) {
  stripes_.drop_idle(whole);
  whole.link->large.receives.for_each([&](RecvTransfer& each) {
    if (each.is_stripe() && each.stripes == whole.stripes && each.stripe == 0) {
      queues(each).assigner().unwait(each.waiter);
      queues(each).leave(each);
      each.grant.died(cause);
      working_.add(each);
    }
  });
}

void Receiver::progress() {
  if (reads_ != 0) {
    progress_reads();
  }
  for (Rail* const rail : works_.rails) {
    progress(*rail);
  }
}

void Receiver::take_all() {
  constexpr uint32_t kLooksMost = 64;  // other peers may send without end
  for (Rail* const rail : works_.rails) {
    for (uint32_t looks = 0; looks < kLooksMost && rail->queues.ready() != 0; ++looks) {
      progress(*rail);
    }
  }
}

void Receiver::progress(Rail& rail) {
  rail.queues.stop_pending();
  offers_.progress();
  serve(rail);
  // Reaping a queue with nothing in it runs an emulated card, which takes time. So it is done for
  // one queue only, and only if no other has something and the sender has not just run the card.
  const uint32_t used = rail.queues.used();
  const uint32_t ready = rail.queues.ready();
  const uint32_t idle = rail.outbox.large_count() == 0 ? used & (~used + 1) : 0;
  for (uint32_t left = ready != 0 ? ready : idle; left != 0; left &= left - 1) {
    RecvTransfer* const transfer = rail.queues.reap(static_cast<uint32_t>(__builtin_ctz(left)));
    if (transfer != nullptr) {
      working_.add(*transfer);
      serve(rail);
    }
  }
  rail.queues.end_rests();
}

bool Receiver::busy() const {
  return offers_.any_open() || !working_.empty() || reads_ != 0 ||
         std::any_of(works_.rails.begin(), works_.rails.end(),
                     [](const Rail* rail) { return rail->queues.busy(); });
}

/// Assign queues to waiting transfers, and send due messages.
void Receiver::serve(Rail& rail) {
  QueuePlace place;
  while (QueueWaiter* const waiter = rail.queues.assigner().assign(&place)) {
    begin(*static_cast<RecvTransfer::Waiter*>(waiter)->transfer, place);
  }
  working_.visit([this](RecvTransfer& transfer) { return look(transfer); });
}

void Receiver::begin(RecvTransfer& transfer, const QueuePlace& place) {
  transfer.place = place;
  working_.add(transfer);
  if (transfer.is_stripe() && transfer.rest_bytes == 0) {
    stripes_.take(transfer);
  }
  if (transfer.region == nullptr) {
    transfer.region = registered(transfer);
  }
  ReceiveQueues& rings = queues(transfer);
  const pmd::mem::Range range = transfer.range(transfer.rest_bytes);
  if (!rings.open(*transfer.path, place) ||
      pmd::mem::choose_cut(range, rings.rules(), &transfer.cut) != 0) {
    rings.assigner().close(transfer.path->source, place);
    rings.stop(place.queue);
    if (move(transfer)) {
      queues(transfer).assigner().wait(transfer.path->source, transfer.waiter);
    } else if (transfer.is_stripe() && transfer.stripe == 0) {
      transfer.grant.died({StopReason::kFailed, false});
    } else {
      transfer.say_abort = transfer.grant.stop({StopReason::kFailed, false});
    }
    return;
  }
  rings.assign(transfer);
  transfer.grant.start(static_cast<uint32_t>(pmd::mem::cut_messages(transfer.cut)),
                       ReceiveQueues::kWindow);
  rings.post(transfer);
}

/// Advance one transfer. @return whether to visit it again although nothing has arrived for it.
bool Receiver::look(RecvTransfer& transfer) {
  if (transfer.has_stripes()) {
    return look_at_whole(transfer);
  }
  RecvGrant& grant = transfer.grant;
  if (transfer.read.is_on) {
    return false;  // end_read() puts it back into the list
  }
  if (queues(transfer).may_be_written(transfer)) {
    return true;  // the card may still write there
  }
  if (transfer.dead) {
    finish(transfer, transfer.status);
    return false;
  }
  if (transfer.say_abort && !say_abort(transfer)) {
    return true;
  }
  if (transfer.say_read && !say_read(transfer)) {
    return true;
  }
  const bool receiving = grant.state() == RecvGrant::State::kReceiving && !transfer.broken;
  const bool due = receiving && (!transfer.granted || grant.extend_due());
  const bool kept = receiving || grant.state() == RecvGrant::State::kDone;
  if ((due || (transfer.say_kept && kept)) && !say_total(transfer)) {
    return true;
  }
  if (grant.state() == RecvGrant::State::kDone) {
    finish(transfer, 0);
  } else if (grant.state() == RecvGrant::State::kEnded) {
    finish(transfer, error_of(grant.cause()));
  }
  return false;
}

/// Advance a transfer that has stripes, as far as it is not theirs. @return as look().
bool Receiver::look_at_whole(RecvTransfer& transfer) {
  if (!transfer.dead && transfer.say_abort && !say_abort(transfer)) {
    return true;
  }
  const RecvGrant& grant = transfer.grant;
  const Stripes<RecvTransfer>& stripes = *transfer.stripes;
  const bool is_over =
      transfer.dead || grant.state() == RecvGrant::State::kEnded ||
      (grant.state() == RecvGrant::State::kWaiting && stripes.done_bytes == transfer.rest_bytes);
  if (is_over && stripes.live == 0) {
    const bool has_all = stripes.done_bytes == transfer.rest_bytes;
    stripes_.free(transfer);
    finish(transfer, transfer.dead ? transfer.status : has_all ? 0 : error_of(grant.cause()));
  }
  return false;
}

bool Receiver::say_total(RecvTransfer& transfer) {
  if (!works_.control.may_say(*transfer.link) || transfer.dead) {
    return false;
  }
  RecvGrant& grant = transfer.grant;
  if (transfer.granted) {
    transfer.say_kept = false;
    const TotalBody body = {transfer.id, grant.tell(), grant.attempt(), transfer.stripe, {}};
    return works_.control.say(*transfer.link, Kind::kExtend, &body, sizeof(body));
  }
  StripeBody stripe{};
  GrantBody& body = stripe.grant;
  body.transfer = transfer.id;
  body.attempt = grant.attempt();
  body.mailbox = transfer.place.mailbox;
  body.rail = static_cast<uint8_t>(transfer.path->rail.index);
  body.total = grant.tell();
  pmd::mem::encode_cut(transfer.cut, body.cut);
  transfer.granted = true;
  if (!transfer.is_stripe()) {
    return works_.control.say(*transfer.link, Kind::kGrant, &body, sizeof(body));
  }
  const RecvTransfer& whole = *transfer.stripes->whole;
  if (transfer.stripe == 0) {
    transfer.stripe = static_cast<uint8_t>(++transfer.stripes->begun);
  }
  body.stripe = transfer.stripe;
  stripe.first_byte = static_cast<uint64_t>(transfer.rest - whole.rest);
  stripe.whole_bytes = whole.rest_bytes;
  return works_.control.say(*transfer.link, Kind::kStripe, &stripe, sizeof(stripe));
}

bool Receiver::say_abort(RecvTransfer& transfer) {
  const RecvGrant& grant = transfer.grant;
  const StopBody body = {
      transfer.id,    0, grant.attempt(), grant.cause().reason, uint8_t{grant.cause().again},
      transfer.stripe};
  transfer.say_abort = !works_.control.say(*transfer.link, Kind::kAbort, &body, sizeof(body));
  return !transfer.say_abort;
}

void Receiver::finish(RecvTransfer& transfer, int status) {
  transfer.path->rail.memory.put(std::exchange(transfer.region, nullptr));
  if (!transfer.dead) {
    transfer.link->large.receives.remove(transfer);
  }
  if (transfer.is_stripe()) {
    RecvTransfer& whole = *transfer.stripes->whole;
    if (status != 0 && !transfer.dead && whole.grant.state() == RecvGrant::State::kWaiting) {
      stop_all(whole, transfer.grant.cause());
    }
    if (stripes_.end(transfer, status) != nullptr) {
      working_.add(whole);
    }
    return;
  }
  transfer.len_bytes = transfer.edge_bytes + transfer.rest_bytes;
  transfer.status = status != 0 ? status : transfer.len_bytes < transfer.true_bytes ? -EMSGSIZE : 0;
  transfer.done = true;
  transfer.context->received.append(transfer);
}

bool Receiver::on_closed(Link& link, std::span<const uint8_t> bytes) {
  StopBody body;
  if (read(bytes, Kind::kClosed, &body) != 0 || body.transfer > link.large.requests_seen) {
    return false;
  }
  if (Request* const request = link.large.requests.find(
          [&](const Request& each) { return each.body.transfer == body.transfer; });
      request != nullptr) {
    return requests_.close(*request, body);
  }
  RecvTransfer* const transfer = link.large.receives.find([&](const RecvTransfer& each) {
    return each.id == body.transfer && each.stripe == body.stripe &&
           (body.stripe != 0 || !each.is_stripe());
  });
  // All data sent before CLOSED has arrived: reap it.
  if (transfer != nullptr && transfer->held &&
      queues(*transfer).reap(transfer->place.queue) != nullptr) {
    working_.add(*transfer);
  }
  if (transfer == nullptr || transfer->grant.state() == RecvGrant::State::kDone) {
    // All data has arrived, but an answer to the sender was lost.
    if (body.again != 0 && body.attempt + 1 < kAttemptsMax) {
      const auto next = static_cast<uint8_t>(body.attempt + 1);
      works_.control.answer({.link = &link,
                             .session = link.session,
                             .kind = Kind::kDone,
                             .transfer = body.transfer,
                             .attempt = next,
                             .reason = 0,
                             .stripe = body.stripe});
    }
    return true;
  }
  RecvGrant& grant = transfer->grant;
  const bool current = body.attempt == grant.attempt();
  if (grant.on_closed(body.attempt, body.arrived, {body.reason, body.again != 0}) != 0) {
    return false;
  }
  if (!current) {
    return true;
  }
  if (transfer->has_stripes()) {
    transfer->say_abort = false;
    end_unknown(*transfer, grant.cause());  // the sender closes the others
    working_.add(*transfer);
    return true;
  }
  ReceiveQueues& rings = queues(*transfer);
  rings.assigner().unwait(transfer->waiter);
  rings.leave(*transfer, body.again == StopBody::kDoubtful);
  if (transfer->broken || body.again != 0) {  // the sender is in doubt about the path
    works_.paths.on_failed(*transfer->path, pmd::Status::kResponseTimeout);
  }
  transfer->say_abort = false;
  if (grant.state() == RecvGrant::State::kWaiting) {
    // Data that has arrived need not be sent again.
    if (transfer->granted && !transfer->say_kept) {
      transfer->arrived_bytes +=
          pmd::mem::cut_message(transfer->cut, rings.rules(), grant.kept()).offset_bytes;
    }
    transfer->granted = false;
    transfer->say_kept = false;
    transfer->broken = false;
    if (transfer->rest_bytes == 0) {
      transfer->say_abort = grant.stop({StopReason::kEnough, false});
    } else {
      wait(*transfer);
    }
  }
  working_.add(*transfer);
  return true;
}

void Receiver::card_gone(Rail& rail) {
  for (uint32_t i = 0; i < works_.peers.count(); ++i) {
    works_.peers.at(i).large.receives.for_each([&](RecvTransfer& transfer) {
      if (&transfer.path->rail == &rail && transfer.held) {
        lose_card(transfer);
      }
    });
  }
}

/// The card of a transfer that has a queue is gone. Its writes are in memory, with the
/// completions.
void Receiver::lose_card(RecvTransfer& transfer) {
  RecvGrant& grant = transfer.grant;
  ReceiveQueues& rings = queues(transfer);
  if (rings.reap(transfer.place.queue) != nullptr) {
    working_.add(transfer);
  }
  if (!transfer.held || grant.state() != RecvGrant::State::kReceiving) {
    return;
  }
  if (!transfer.granted && !transfer.say_kept) {
    rings.leave(transfer);
    grant.lose_queue();
    wait(transfer);
  } else if (grant.stop({0, true})) {
    transfer.say_abort = true;
    rings.quarantine(transfer);
    working_.add(transfer);
  }
}

void Receiver::end_session(Link& link, int error) {
  requests_.end_session(link, error);
  offers_.end_session(link);
  for (const std::unique_ptr<Path>& path : link.paths) {
    if (path != nullptr) {
      path->rail.queues.end_session(*path);
    }
  }
  while (!link.large.receives.is_empty()) {
    RecvTransfer& transfer = *link.large.receives.first();
    link.large.receives.remove(transfer);
    queues(transfer).forget_quarantine(transfer.quarantined);
    transfer.dead = true;
    transfer.status = error;
    transfer.grant.died({StopReason::kFailed, false});
    working_.add(transfer);
    if (transfer.read.is_on) {
      lose_read();
    }
  }
}

}  // namespace rio::msg
