#include "lib/msg/receiver.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "lib/msg/context.hpp"
#include "lib/msg/port.hpp"

namespace rio::msg {
namespace {

constexpr uint32_t kBounceShift = 32;  // in the cookie of an entry, plus 1; below it: its number

}  // namespace

int Receiver::create() {
  rules_ = port_.endpoint().align_rules();
  working_.reserve(64);
  return bounce_.create(port_.endpoint(), kQueues * kBounceEach);
}

Request* Receiver::on_request(Link& link, const Header& header, std::span<const uint8_t> bytes) {
  RequestBody body;
  if (read(bytes, &body) != 0 || body.offer != 0 || body.transfer != link.requests_seen + 1) {
    return nullptr;
  }
  ++link.requests_seen;
  if (spare_.empty()) {
    requests_.push_back(std::make_unique<Request>());
    spare_.push_back(requests_.back().get());
  }
  Request* const request = spare_.back();
  spare_.pop_back();
  *request = {header, body, {&link, link.session, header.from}, {}, 0};
  link.requests.push_back(*request);
  return request;
}

void Receiver::free(Request* request, bool record) {
  if (request->gone == 0) {
    request->origin.link->requests.erase(*request);
  }
  if (record) {
    port_.return_record(request->origin, request->header.to);
  }
  spare_.push_back(request);
}

void Receiver::refuse(Request* request, bool record) {
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
  free(request, true);
  if (gone != 0) {
    transfer.dead = true;
    finish(transfer, gone);
    return;
  }
  transfer.link->receives.push_back(transfer);
  port_.watch(*transfer.link, 0);
  if (transfer.rest_bytes == 0) {
    transfer.say_abort = transfer.grant.stop({StopReason::kEnough, false});
  } else {
    assigner_.wait(transfer.link->source, transfer.waiter);
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
  RecvTransfer* transfer = link.receives.front();
  while (transfer != nullptr && transfer->id != id) {
    transfer = transfer->links.next;
  }
  return transfer;
}

Request* Receiver::find_request(const Link& link, uint32_t id) const {
  Request* request = link.requests.front();
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

bool Receiver::on_closed(Link& link, std::span<const uint8_t> bytes) {
  StopBody body;
  if (read_closed(bytes, &body) != 0 || body.transfer > link.requests_seen) {
    return false;
  }
  if (Request* const request = find_request(link, body.transfer); request != nullptr) {
    link.requests.erase(*request);
    request->gone = -ECANCELED;
    return body.again == 0 && body.sent == 0;
  }
  RecvTransfer* const transfer = find(link, body.transfer);
  if (transfer != nullptr && transfer->held) {
    reap(queues_[transfer->place.queue]);  // what was sent before CLOSED is there
  }
  if (transfer == nullptr || transfer->grant.state() == RecvGrant::State::kDone) {
    // All has arrived, but for an answer to the sender.
    if (body.again != 0 && body.attempt + 1 < kAttemptsMax) {
      const auto next = static_cast<uint8_t>(body.attempt + 1);
      port_.answer({&link, link.session, Kind::kDone, body.transfer, next, 0});
    }
    return true;
  }
  RecvGrant& grant = transfer->grant;
  const bool current = body.attempt == grant.attempt();
  if (grant.on_closed(body.attempt, body.sent, {body.reason, body.again != 0}) != 0) {
    return false;
  }
  if (!current) {
    return true;
  }
  assigner_.unwait(transfer->waiter);
  leave(*transfer);
  transfer->say_abort = false;
  if (grant.state() == RecvGrant::State::kWaiting) {
    transfer->granted = false;
    transfer->broken = false;
    assigner_.wait(link.source, transfer->waiter);
  }
  work(*transfer);
  return true;
}

/// Its queue and mailbox are not its any more.
void Receiver::leave(RecvTransfer& transfer) {
  QueueSource& source = transfer.link->source;
  const QueuePlace place = transfer.place;
  if (!transfer.held) {
    if (transfer.quarantined) {
      transfer.quarantined = false;
      --quarantined_;
      assigner_.closed(source, place.mailbox);
    }
    return;
  }
  transfer.held = false;
  queues_[place.queue].transfer = nullptr;
  used_ &= ~(1u << place.queue);
  if (transfer.quarantined) {
    assigner_.quarantine(source, place);
  } else {
    assigner_.close(source, place);
  }
  stop_queue(place.queue);
  transfer.stuck |= static_cast<uint8_t>(to_stop_ & (1u << place.queue));
}

void Receiver::stop_queue(uint32_t index) {
  Queue& queue = queues_[index];
  const int rc = queue.ring != nullptr ? port_.endpoint().close_dedicated(index) : 0;
  if (rc == -ETIMEDOUT) {
    to_stop_ |= 1u << index;  // its memory is still the card's
    return;
  }
  to_stop_ &= ~(1u << index);
  for (const uint32_t buffer : queue.bounced) {
    bounce_.put(buffer);
  }
  queue.bounced.clear();
  queue.ring = nullptr;
  assigner_.stopped(index);
}

void Receiver::end_session(Link& link, int error) {
  while (!link.requests.empty()) {
    Request& request = *link.requests.front();
    link.requests.erase(request);
    request.gone = error;
  }
  link.requests_seen = 0;
  const uint32_t stop =
      assigner_.died(link.source, port_.now_us() + 4 * uint64_t{port_.response_timeout_us()});
  for (uint32_t i = 0; i < kQueues; ++i) {
    if ((stop & (1u << i)) != 0) {
      RecvTransfer* const transfer = std::exchange(queues_[i].transfer, nullptr);
      used_ &= ~(1u << i);
      stop_queue(i);
      if (transfer != nullptr) {
        transfer->stuck |= static_cast<uint8_t>(to_stop_ & (1u << i));
      }
    }
  }
  while (!link.receives.empty()) {
    RecvTransfer& transfer = *link.receives.front();
    link.receives.erase(transfer);
    quarantined_ -= transfer.quarantined ? 1 : 0;
    transfer.quarantined = false;
    transfer.dead = true;
    transfer.status = error;
    transfer.grant.died({StopReason::kFailed, false});
    work(transfer);
  }
  if (link.source.resting() &&
      std::find(resting_.begin(), resting_.end(), &link) == resting_.end()) {
    resting_.push_back(&link);
  }
}

void Receiver::progress() {
  for (uint32_t left = to_stop_; left != 0; left &= left - 1) {
    stop_queue(static_cast<uint32_t>(__builtin_ctz(left)));
  }
  for (uint32_t left = used_; left != 0; left &= left - 1) {
    reap(queues_[static_cast<uint32_t>(__builtin_ctz(left))]);
  }
  if (!resting_.empty()) {
    const uint64_t now = port_.now_us();
    std::erase_if(resting_, [&](Link* link) { return assigner_.rested(link->source, now); });
  }
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

bool Receiver::open(RecvTransfer& transfer, const QueuePlace& place) {
  Queue& queue = queues_[place.queue];
  if (place.reopen && queue.ring != nullptr) {
    if (port_.endpoint().close_dedicated(place.queue) == -ETIMEDOUT) {
      return false;
    }
    queue.ring = nullptr;
  }
  return queue.ring != nullptr ||
         port_.endpoint().open_dedicated(place.queue, transfer.link->dest_id(), place.mailbox,
                                         &queue.ring) == 0;
}

void Receiver::begin(RecvTransfer& transfer, const QueuePlace& place) {
  transfer.place = place;
  work(transfer);
  if (transfer.region == nullptr &&
      port_.endpoint().register_memory(transfer.rest, transfer.rest_bytes, &transfer.region) != 0) {
    transfer.region = nullptr;
  }
  const pmd::mem::Range range = {transfer.rest, transfer.rest_bytes,
                                 transfer.region != nullptr ? std::span(transfer.region->runs)
                                                            : std::span<const pmd::IovaRun>()};
  if (!open(transfer, place) || pmd::mem::choose_cut(range, rules_, &transfer.cut) != 0) {
    transfer.say_abort = transfer.grant.stop({StopReason::kFailed, false});
    assigner_.close(transfer.link->source, place);
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
  const pmd::mem::Range range = {transfer.rest, transfer.rest_bytes,
                                 transfer.region != nullptr ? std::span(transfer.region->runs)
                                                            : std::span<const pmd::IovaRun>()};
  if (n == 0 || transfer.broken ||
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

void Receiver::reap(Queue& queue) {
  pmd::EntryDone done[kWindow];
  const uint32_t n = queue.ring->reap(done, kWindow);
  for (uint32_t i = 0; i < n; ++i) {
    complete(queue, done[i]);
  }
  if (n == 0) {
    return;
  }
  RecvTransfer& transfer = *queue.transfer;
  if (transfer.grant.state() == RecvGrant::State::kDone) {
    used_ &= ~(1u << transfer.place.queue);
    queue.transfer = nullptr;
    transfer.held = false;
    assigner_.release(transfer.link->source, transfer.place);
  } else if (transfer.grant.may_post() >= kWindow / 2 || queue.ring->outstanding() == 0 ||
             transfer.grant.may_post() + transfer.grant.next() ==
                 pmd::mem::cut_messages(transfer.cut)) {
    post(transfer);
  }
  work(transfer);
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
      std::memcpy(transfer.rest + part.offset_bytes, bounce_.va(buffer), part.len_bytes);
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
  const bool due = !transfer.granted || grant.extend_due();
  if (grant.state() == RecvGrant::State::kReceiving && due && !transfer.broken &&
      !say_total(transfer)) {
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
    static_cast<void>(port_.endpoint().unregister_memory(transfer.rest, transfer.rest_bytes));
    transfer.region = nullptr;
  }
  if (!transfer.dead) {
    transfer.link->receives.erase(transfer);
  }
  transfer.len_bytes = transfer.edge_bytes + transfer.rest_bytes;
  transfer.status = status != 0 ? status : transfer.len_bytes < transfer.true_bytes ? -EMSGSIZE : 0;
  transfer.done = true;
  transfer.context->received_.push_back(transfer);
}

}  // namespace rio::msg
