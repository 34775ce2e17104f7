#include "lib/msg/receiver.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "lib/msg/context.hpp"
#include "lib/msg/port.hpp"
#include "lib/msg/registrations.hpp"

namespace rio::msg {
namespace {

constexpr uint32_t kBounceShift = 32;  // in the cookie of an entry, plus 1; below it: its number

/// What has not arrived with earlier attempts.
[[nodiscard]] pmd::mem::Range range_of(const RecvTransfer& transfer) {
  return {transfer.rest + transfer.arrived_bytes, transfer.rest_bytes - transfer.arrived_bytes,
          transfer.region != nullptr ? std::span(transfer.region->runs)
                                     : std::span<const pmd::IovaRun>()};
}

}  // namespace

int Receiver::create() {
  rules_ = port_.endpoint().align_rules();
  working_.reserve(64);
  return bounce_.create(port_.endpoint(), kQueues * kBounceEach);
}

Request* Receiver::on_request(Link& link, const Header& header, std::span<const uint8_t> bytes,
                              uint16_t number) {
  RequestBody body;
  if (read(bytes, &body) != 0 || body.transfer != link.large.requests_seen + 1) {
    return nullptr;
  }
  ++link.large.requests_seen;
  if (spare_.empty()) {
    requests_.push_back(std::make_unique<Request>());
    spare_.push_back(requests_.back().get());
  }
  Request* const request = spare_.back();
  spare_.pop_back();
  *request = Request{header, body, {&link, link.session, header.from}, {}, 0};
  link.large.requests.push_back(*request);
  Offer* const offer = find_offer(link, header.to);
  const bool good = offer != nullptr ? take_offer(*offer, *request, number) : body.offer == 0;
  if (!good) {
    free(request, false);
  }
  return good ? request : nullptr;
}

void Receiver::free(Request* request, bool record) {
  if (request->gone == 0) {
    request->origin.link->large.requests.erase(*request);
  }
  if (record) {
    port_.return_record(request->origin, request->header.to);
  }
  spare_.push_back(request);
}

void Receiver::refuse(Request* request, bool record) {
  if (request->gone == 0 && (request->accepted || request->parked)) {
    if (request->accepted) {
      park(*request, {StopReason::kRefused, false});
    } else {
      static_cast<void>(request->grant.stop({StopReason::kRefused, false}));
      say_stop(*request, StopReason::kRefused);
    }
    request->refused = true;
    if (record) {
      port_.return_record(request->origin, request->header.to);
    }
    return;  // until CLOSED
  }
  if (request->gone == 0) {
    Link& link = *request->origin.link;
    port_.answer(
        {&link, link.session, Kind::kAbort, request->body.transfer, 0, StopReason::kRefused});
  }
  free(request, record);
}

void Receiver::receive(Context& context, Request* request, void* buffer, uint64_t capacity,
                       RecvTransfer& transfer) {
  const RequestBody& body = request->body;
  void* const user = transfer.user;
  std::destroy_at(&transfer);
  std::construct_at(&transfer);
  transfer.user = user;
  transfer.context = &context;
  transfer.link = request->origin.link;
  transfer.id = body.transfer;
  transfer.waiter.transfer = &transfer;
  transfer.true_bytes = body.len_bytes;
  const uint64_t wanted = std::min(capacity, body.len_bytes);
  const uint64_t edge = std::min<uint64_t>(body.edge_bytes, wanted);
  if (edge != 0) {
    std::memcpy(buffer, body.edge, edge);
  }
  port_.stats_.copied += edge;
  transfer.edge_bytes = static_cast<uint8_t>(edge);
  transfer.rest = static_cast<uint8_t*>(buffer) + edge;
  transfer.rest_bytes = wanted - edge;
  const int gone = request->gone;
  const bool kept = request->accepted && request->buffer == buffer && capacity >= body.len_bytes;
  if (gone == 0 && request->accepted && !kept) {
    park(*request, {0, true});
  }
  const Request had = *request;
  free(request, true);
  if (gone != 0) {
    transfer.dead = true;
    finish(transfer, gone);
    return;
  }
  transfer.link->large.receives.push_back(transfer);
  transfer.grant = had.grant;
  transfer.place = had.place;
  transfer.quarantined = had.quarantined;
  if (kept) {
    accept(had, transfer);
    return;
  }
  port_.watch(*transfer.link, 0);
  if (transfer.rest_bytes == 0) {
    transfer.say_abort = transfer.grant.stop({StopReason::kEnough, false});
  } else if (transfer.grant.state() == RecvGrant::State::kWaiting) {
    assigner_.wait(transfer.link->large.source, transfer.waiter);
  }
  work(transfer);
}

void Receiver::cancel(RecvTransfer& transfer) {
  if (transfer.done || transfer.dead || !transfer.grant.stop({StopReason::kCancelled, false})) {
    return;
  }
  transfer.say_abort = true;
  assigner_.unwait(transfer.waiter);
  if (transfer.held) {
    transfer.quarantined = true;
    ++quarantined_;
    leave(transfer);
  }
  work(transfer);
}

RecvTransfer* Receiver::find(const Link& link, uint32_t id) const {
  RecvTransfer* transfer = link.large.receives.front();
  while (transfer != nullptr && transfer->id != id) {
    transfer = transfer->links.next;
  }
  return transfer;
}

Request* Receiver::find_request(const Link& link, uint32_t id) const {
  Request* request = link.large.requests.front();
  while (request != nullptr && request->body.transfer != id) {
    request = request->links.next;
  }
  return request;
}

void Receiver::work(RecvTransfer& transfer) {
  if (!transfer.working) {
    transfer.working = true;
    working_.push_back(&transfer);
  }
}

void Receiver::progress() {
  for (uint32_t left = to_stop_; left != 0; left &= left - 1) {
    stop_queue(static_cast<uint32_t>(__builtin_ctz(left)));
  }
  if (open_offers_ != 0) {
    look_at_offers();
  }
  serve();
  // Each queue may let an emulated card work, which then takes its time: what can be answered is,
  // before the next.
  for (uint32_t left = used_; left != 0; left &= left - 1) {
    if (reap(queues_[static_cast<uint32_t>(__builtin_ctz(left))])) {
      serve();
    }
  }
  if (!resting_.empty()) {
    const uint64_t now = port_.now_us();
    std::erase_if(resting_, [&](Link* link) { return assigner_.rested(link->large.source, now); });
  }
}

/// Give queues to those that wait, and say what there is to say.
void Receiver::serve() {
  QueuePlace place;
  while (QueueWaiter* const waiter = assigner_.assign(&place)) {
    begin(*static_cast<RecvTransfer::Waiter*>(waiter)->transfer, place);
  }
  size_t kept = 0;
  for (size_t i = 0; i < working_.size(); ++i) {
    RecvTransfer& transfer = *working_[i];
    if (look(transfer)) {
      working_[kept++] = &transfer;
    } else {
      transfer.working = false;
    }
  }
  working_.resize(kept);
}

bool Receiver::open(const Link& link, const QueuePlace& place) {
  Queue& queue = queues_[place.queue];
  if (place.reopen && queue.ring != nullptr) {
    if (port_.endpoint().close_dedicated(place.queue) == -ETIMEDOUT) {
      return false;
    }
    queue.ring = nullptr;
  }
  return queue.ring != nullptr || port_.endpoint().open_dedicated(place.queue, link.dest_id(),
                                                                  place.mailbox, &queue.ring) == 0;
}

void Receiver::begin(RecvTransfer& transfer, const QueuePlace& place) {
  transfer.place = place;
  work(transfer);
  if (transfer.region == nullptr) {
    transfer.region = port_.memory_->get(transfer.rest, transfer.rest_bytes);
  }
  const pmd::mem::Range range = range_of(transfer);
  if (!open(*transfer.link, place) || pmd::mem::choose_cut(range, rules_, &transfer.cut) != 0) {
    transfer.say_abort = transfer.grant.stop({StopReason::kFailed, false});
    assigner_.close(transfer.link->large.source, place);
    stop_queue(place.queue);
    return;
  }
  transfer.held = true;
  queues_[place.queue].transfer = &transfer;
  used_ |= 1u << place.queue;
  transfer.grant.start(static_cast<uint32_t>(pmd::mem::cut_messages(transfer.cut)), kWindow);
  post(transfer);
}

void Receiver::post(RecvTransfer& transfer) {
  Queue& queue = queues_[transfer.place.queue];
  RecvGrant& grant = transfer.grant;
  const uint32_t n = std::min<uint32_t>(grant.may_post(), queue.ring->free_count());
  const pmd::mem::Range range = range_of(transfer);
  if (n == 0 || transfer.broken || post_whole(transfer, range, n) ||
      pmd::mem::plan_receive(range, transfer.cut, rules_, {grant.next(), n}, &plan_) != 0) {
    return;
  }
  pmd::DedicatedEntry entries[kWindow];
  uint32_t buffers[kWindow];
  uint32_t count = 0;
  for (; count < n; ++count) {
    const pmd::mem::PlanMessage& m = plan_.messages[count];
    entries[count] = {m.iova, grant.next() + count, m.wire_bytes};
    buffers[count] = Bounce::kNone;
    if (m.placement == pmd::mem::Placement::kInPlace) {
      continue;
    }
    if (queue.bounced.size() == kBounceEach) {
      break;
    }
    buffers[count] = bounce_.get();  // there are enough for all queues
    queue.bounced.push_back(buffers[count]);
    entries[count].iova = bounce_.iova(buffers[count]);
    entries[count].cookie |= uint64_t{buffers[count] + 1} << kBounceShift;
  }
  const uint32_t posted = queue.ring->post(entries, static_cast<uint16_t>(count));
  for (uint32_t i = posted; i < count; ++i) {
    if (buffers[i] != Bounce::kNone) {
      std::erase(queue.bounced, buffers[i]);
      bounce_.put(buffers[i]);
    }
  }
  grant.posted(posted);
}

/// The short way: entries that need no bouncing. @return false: some may.
bool Receiver::post_whole(RecvTransfer& transfer, const pmd::mem::Range& range, uint32_t n) {
  RecvGrant& grant = transfer.grant;
  const uint32_t first = grant.next();
  uint64_t iova = 0;
  if (!pmd::mem::plan_whole(range, transfer.cut, rules_, {first, n}, &iova)) {
    return false;
  }
  pmd::DedicatedEntry entries[kWindow];
  const uint32_t size = rules_.message_max;
  for (uint32_t i = 0; i < n; ++i) {
    entries[i] = {iova + uint64_t{i} * size, first + i, size};
  }
  grant.posted(queues_[transfer.place.queue].ring->post(entries, static_cast<uint16_t>(n)));
  return true;
}

/// @return whether anything has arrived.
bool Receiver::reap(Queue& queue) {
  pmd::EntryDone done[kWindow];
  const uint32_t n = queue.ring->reap(done, kWindow);
  if (n == 0) {
    return false;
  }
  for (uint32_t i = complete_placed(*queue.transfer, {done, n}); i < n; ++i) {
    complete(queue, done[i]);
  }
  RecvTransfer& transfer = *queue.transfer;
  if (transfer.grant.state() == RecvGrant::State::kDone) {
    used_ &= ~(1u << transfer.place.queue);
    queue.transfer = nullptr;
    transfer.held = false;
    assigner_.release(transfer.link->large.source, transfer.place);
  } else if (transfer.grant.may_post() >= kWindow / 2 || queue.ring->outstanding() == 0 ||
             transfer.grant.may_post() + transfer.grant.next() ==
                 pmd::mem::cut_messages(transfer.cut)) {
    post(transfer);
  }
  work(transfer);
  return true;
}

/// The short way: what arrived where it belongs. @return how many; complete() has the next.
uint32_t Receiver::complete_placed(RecvTransfer& transfer, std::span<const pmd::EntryDone> done) {
  uint32_t n = 0;
  uint64_t bytes = 0;
  while (n < done.size() && done[n].status == pmd::Status::kOk &&
         done[n].cookie >> kBounceShift == 0 && !transfer.broken) {
    bytes += done[n].bytes;  // all of its entry: nothing is padded there
    ++n;
  }
  port_.stats_.placed += bytes;
  transfer.grant.completed(n);
  return n;
}

void Receiver::complete(Queue& queue, const pmd::EntryDone& done) {
  RecvTransfer& transfer = *queue.transfer;
  const auto bounced = static_cast<uint32_t>(done.cookie >> kBounceShift);
  const bool good = done.status == pmd::Status::kOk && !transfer.broken;
  const pmd::mem::CutMessage part =
      pmd::mem::cut_message(transfer.cut, rules_, static_cast<uint32_t>(done.cookie));
  if (bounced != 0) {
    const uint32_t buffer = bounced - 1;
    if (good) {
      std::memcpy(transfer.rest + transfer.arrived_bytes + part.offset_bytes, bounce_.va(buffer),
                  part.len_bytes);
    }
    std::erase(queue.bounced, buffer);
    bounce_.put(buffer);
  }
  if (!good) {
    transfer.broken = true;  // the sender knows, and will say CLOSED
    return;
  }
  (bounced != 0 ? port_.stats_.copied : port_.stats_.placed) += part.len_bytes;
  transfer.grant.completed(1);
}

/// @return whether there is more to do without anything being heard.
bool Receiver::look(RecvTransfer& transfer) {
  RecvGrant& grant = transfer.grant;
  if ((transfer.stuck & to_stop_) != 0) {
    return true;  // the card may still write there
  }
  if (transfer.dead) {
    finish(transfer, transfer.status);
    return false;
  }
  if (transfer.say_abort && !say_abort(transfer)) {
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
    const uint8_t reason = grant.cause().reason;
    finish(transfer, reason == StopReason::kEnough      ? 0
                     : reason == StopReason::kCancelled ? -ECANCELED
                                                        : -EIO);
  }
  return false;
}

bool Receiver::say_total(RecvTransfer& transfer) {
  if (!port_.may_say(*transfer.link) || transfer.dead) {
    return false;
  }
  RecvGrant& grant = transfer.grant;
  if (transfer.granted) {
    transfer.say_kept = false;
    TotalBody body{};
    body.transfer = transfer.id;
    body.total = grant.tell();
    body.attempt = grant.attempt();
    return port_.say_body(*transfer.link, Kind::kExtend, &body, sizeof(body));
  }
  GrantBody body{};
  body.transfer = transfer.id;
  body.attempt = grant.attempt();
  body.mailbox = transfer.place.mailbox;
  body.total = grant.tell();
  pmd::mem::encode_cut(transfer.cut, body.cut);
  transfer.granted = true;
  return port_.say_body(*transfer.link, Kind::kGrant, &body, sizeof(body));
}

bool Receiver::say_abort(RecvTransfer& transfer) {
  StopBody body{};
  body.transfer = transfer.id;
  body.attempt = transfer.grant.attempt();
  body.reason = transfer.grant.cause().reason;
  transfer.say_abort = !port_.say_body(*transfer.link, Kind::kAbort, &body, sizeof(body));
  return !transfer.say_abort;
}

void Receiver::finish(RecvTransfer& transfer, int status) {
  if (transfer.region != nullptr) {
    port_.memory_->put(transfer.region);
    transfer.region = nullptr;
  }
  if (!transfer.dead) {
    transfer.link->large.receives.erase(transfer);
  }
  transfer.len_bytes = transfer.edge_bytes + transfer.rest_bytes;
  transfer.status = status != 0 ? status : transfer.len_bytes < transfer.true_bytes ? -EMSGSIZE : 0;
  transfer.done = true;
  transfer.context->received_.push_back(transfer);
}

}  // namespace rio::msg
