// Large data: what a port does for its sender and receiver.
#include <algorithm>
#include <cerrno>
#include <new>

#include "lib/msg/clock.hpp"
#include "lib/msg/context.hpp"
#include "lib/msg/port.hpp"
#include "lib/msg/receiver.hpp"
#include "lib/msg/registrations.hpp"
#include "lib/msg/sender.hpp"

namespace rio::msg {

int Port::start_large() {
  if (receiver_ != nullptr) {
    return 0;
  }
  std::unique_ptr<Sender> sender(new (std::nothrow) Sender(*this));
  std::unique_ptr<Receiver> receiver(new (std::nothrow) Receiver(*this));
  std::unique_ptr<Registrations> memory(new (std::nothrow) Registrations(*endpoint_));
  if (sender == nullptr || receiver == nullptr || memory == nullptr) {
    return -ENOMEM;
  }
  int rc = sender->create();
  rc = rc != 0 ? rc : receiver->create();
  if (rc != 0) {
    return rc;
  }
  memory_ = std::move(memory);
  sender_ = std::move(sender);
  receiver_ = std::move(receiver);
  return 0;
}

uint64_t Port::now_us() const {
  return now_ns() / 1000;
}

uint32_t Port::response_timeout_us() const {
  return config_.response_timeout_us;
}

Sender& Port::sender() {
  large_awake_ = true;
  return *sender_;
}

Receiver& Port::receiver() {
  large_awake_ = true;
  return *receiver_;
}

bool Port::large_busy() const {
  return sender_->busy() || receiver_->busy() || !answers_.empty();
}

bool Port::late_possible() const {
  return receiver_ != nullptr && receiver_->late_possible();
}

void Port::large_progress() {
  receiver_->progress();
  sender_->progress();
  // A peer that gives no credit for it stops nobody else's answer.
  std::erase_if(answers_, [&](const Answer& answer) {
    const bool said = say(answer);
    answer.link->large.answers -= said && answer.session == answer.link->session ? 1 : 0;
    return said;
  });
  large_awake_ = large_busy() || late_possible();
}

/// What is said about large data takes room, and a control credit.
bool Port::may_say(const Link& link) {
  // What is reaped to make room may be the end of the session.
  return take_room() && link.state == LinkState::kUp && !link.rest.on &&
         link.large.control_out.available() != 0;
}

bool Port::say_body(Link& link, Kind kind, const void* body, uint32_t bytes, uint32_t to,
                    uint32_t from) {
  if (!may_say(link)) {
    return false;
  }
  link.large.control_out.take_known();
  const HeaderWords header = {link.next_out, HeaderWords::rest_of(to, from, link.large.control_in.tell(),
                                                                  kind, padding_of(bytes))};
  uint8_t* const at = tx_->slot_va();
  std::memcpy(at, &header, sizeof(header));
  std::memcpy(at + sizeof(header), body, bytes);
  post(link, at, kHeaderBytes + bytes);
  return true;
}

/// @return false: no room now.
bool Port::say(const Answer& answer) {
  if (answer.session != answer.link->session) {
    return true;
  }
  if (answer.kind == Kind::kDone) {
    const TotalBody body = {answer.transfer, 0, answer.attempt, {}};
    return say_body(*answer.link, answer.kind, &body, sizeof(body));
  }
  if (answer.kind == Kind::kRevoked) {
    if (answer.link->number_out(answer.context) != answer.number) {
      return true;  // a message went meanwhile: it was the answer
    }
    const RevokeBody body = {answer.transfer};
    return say_body(*answer.link, answer.kind, &body, sizeof(body), answer.context);
  }
  const uint8_t again = answer.reason == 0 ? 1 : 0;
  const StopBody body = {answer.transfer, 0, answer.attempt, answer.reason, again, 0};
  return say_body(*answer.link, answer.kind, &body, sizeof(body));
}

/// Of what came early. @return false: there is none that could be right.
bool Port::keep_body(Numbered* message) {
  const uint32_t bytes = message->length_bytes - kHeaderBytes;
  if (bytes > message->body.size()) {
    return false;
  }
  std::memcpy(message->body.data(), message->buffer + kHeaderBytes, bytes);
  return true;
}

void Port::large(Link& link, const Numbered& message) {
  const HeaderWords words = message.header;
  const uint32_t bytes = message.length_bytes - kHeaderBytes - words.padding();
  const uint8_t* const at =
      message.buffer != nullptr ? message.buffer + kHeaderBytes : message.body.data();
  const bool is_request = words.kind() == Kind::kRequest;
  const uint32_t session = link.session;
  if (bytes > sizeof(RequestBody) || link.large.control_in.arrive() != 0 ||
      (!is_request && link.large.control_out.on_limit(words.credit()) != 0)) {
    cut_off(link);
    return;
  }
  const std::span<const uint8_t> body(at, bytes);
  ++stats_.received;
  Header header;
  std::memcpy(&header, &words, sizeof(header));
  if (!(is_request ? request(link, header, body) : large_control(link, words, body)) ||
      link.large.answers > kAnswersMax) {
    cut_off(link);
  }
  if (session != link.session) {
    return;
  }
  link.large.control_in.free();
  if (link.large.control_in.due()) {
    link.say.control = true;
    want(link);
  }
}

bool Port::request(Link& link, const Header& header, std::span<const uint8_t> body) {
  if (header.to >= kContexts || header.from >= kContexts || start_large() != 0) {
    return false;
  }
  // Counts also where the message does not: the peer will not say it again.
  const bool open = link.in[header.to].open;
  const uint16_t number = link.number_in(header.to);
  RecvAccount& records = link.large.records_in[header.to];
  if (link.out[header.from].on_limit(header.credit) != 0 || (open && records.arrive() != 0)) {
    return false;
  }
  if (open && records.due()) {  // what came free before is more than the sender has left now
    link.say.records |= 1ull << header.to;
    want(link);
  }
  Request* const request = receiver().on_request(link, header, body, number);
  if (request == nullptr) {
    return false;
  }
  if ((request->body.flags & RequestBody::kSmall) != 0 && open) {
    grow_inflow(link, header.to);
  }
  if (!open) {  // sent before it heard that the context is closed
    receiver().refuse(request, false);
    return true;
  }
  Context& context = *contexts_[header.to];  // is there: its flow is open
  if (!context.accepts_large_) {
    receiver().refuse(request);
    return true;
  }
  // There has to be room for all buffers, still.
  if (!context.inbox_.reserve(config_.buffers + 1)) {
    return false;
  }
  *context.inbox_.tail() = {&request->body, sizeof(request->body)};
  context.inbox_.push(1, request->origin);
  return true;
}

bool Port::large_control(Link& link, const HeaderWords& header, std::span<const uint8_t> body) {
  // Whoever has not heard of large data may hear of an offer: it is not known when it is made.
  if (header.to() >= kContexts || header.from() >= kContexts || start_large() != 0) {
    return false;
  }
  switch (header.kind()) {
    case Kind::kGrant:
      return sender().on_grant(link, body);
    case Kind::kExtend:
      return sender().on_extend(link, body);
    case Kind::kDone:
      return sender().on_done(link, body);
    case Kind::kAbort:
      return sender().on_abort(link, body);
    case Kind::kOffer:
      return sender().on_offer(link, header.from(), body);
    case Kind::kRevoke:
      return sender().on_revoke(link, header.from(), body);
    case Kind::kRevoked:
      return receiver().on_revoked(link, header.to(), body);
    default:
      return receiver().on_closed(link, body);
  }
}

int Context::accept_large(bool all_may_ask) {
  const int rc = port_.start_large();
  accepts_large_ = rc == 0;
  all_may_ask_ = rc == 0 && all_may_ask;
  return rc;
}

int Context::send_large(const Route& route, uint64_t match_bits, const void* data,
                        uint64_t len_bytes, SendTransfer& transfer, bool small,
                        const uint64_t* immediate) {
  const int rc = port_.start_large();
  return rc != 0 ? rc
                 : port_.sender().send(*this, route, match_bits, data, len_bytes, transfer, small,
                                       immediate);
}

Request* Context::take_request() {
  const Delivery oldest = take_oldest();  // of a run of its own, that gives nothing back
  return reinterpret_cast<Request*>(static_cast<uint8_t*>(oldest.bytes.iov_base) -
                                    offsetof(Request, body));
}

void Context::receive_large(Request* request, void* buffer, uint64_t capacity,
                            RecvTransfer& transfer) {
  port_.receiver().receive(*this, request, buffer, capacity, transfer);
}

void Context::keep_large(Request* request) {
  port_.receiver().keep(*request);
}

int Context::offer_large(const Route& route, uint64_t match_bits, uint64_t ignore_bits,
                         void* buffer, uint64_t capacity) {
  return port_.receiver_ == nullptr
             ? -EAGAIN
             : port_.receiver().offer(*route.link, id_, match_bits, ignore_bits, buffer, capacity);
}

void Context::revoke_offer(const Route& route) {
  if (port_.receiver_ != nullptr) {
    port_.receiver().revoke(*route.link, id_);
  }
}

bool Context::lend_requests(const Origin& origin) {
  return origin.session != origin.link->session || port_.lend_records(*origin.link, id_);
}

bool Context::requests_left(const Origin& origin) const {
  const Link& link = *origin.link;
  return origin.session != link.session || !link.in[id_].open || !link.large.records_in[id_].exhausted();
}

void Context::refuse_large(Request* request) {
  port_.receiver().refuse(request);
}

void Context::cancel(SendTransfer& transfer) {
  port_.sender().cancel(transfer);
}

void Context::cancel(RecvTransfer& transfer) {
  port_.receiver().cancel(transfer);
}

SendTransfer* Context::next_sent() {
  SendTransfer* const transfer = sent_.front();
  if (transfer != nullptr) {
    sent_.erase(*transfer);
  }
  return transfer;
}

RecvTransfer* Context::next_received() {
  RecvTransfer* const transfer = received_.front();
  if (transfer != nullptr) {
    received_.erase(*transfer);
  }
  return transfer;
}

}  // namespace rio::msg
