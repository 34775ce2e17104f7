#include "lib/msg/large.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <utility>

#include "lib/msg/rail.hpp"

namespace rio::msg {

int Large::start() {
  if (started()) {
    return 0;
  }
  std::unique_ptr<Sender> sender(new (std::nothrow) Sender(works_));
  std::unique_ptr<Receiver> receiver(new (std::nothrow) Receiver(works_));
  int rc = sender == nullptr || receiver == nullptr ? -ENOMEM : 0;
  for (Rail* const rail : works_.rails) {
    rc = rc != 0 ? rc : rail->start_large();
  }
  if (rc == 0) {
    sender_ = std::move(sender);
    receiver_ = std::move(receiver);
  }
  return rc;
}

bool Large::busy() const {
  return started() && (sender_->busy() || receiver_->busy() || works_.control.has_answers());
}

void Large::progress() {
  sender_->progress();  // first, since data that it sends keeps the partner busy meanwhile
  receiver_->progress();
  works_.control.say_answers();
  const bool is_active =
      busy() || std::any_of(works_.rails.begin(), works_.rails.end(),
                            [](const Rail* rail) { return rail->queues.late_possible(); });
  awake_ &= is_active ? ~0 : ~kActive;
}

void Large::take_all() {
  if (started()) {
    sender().progress();
    receiver().take_all();
  }
}

bool Large::on_message(Link& link, const Numbered& message) {
  const HeaderWords words = message.header;
  const uint32_t bytes = message.length_bytes - kHeaderBytes - words.padding();
  const uint8_t* const at =
      message.buffer != nullptr ? message.buffer + kHeaderBytes : message.body.data();
  const bool is_request = words.kind() == Kind::kRequest;
  const uint32_t session = link.session;
  if (bytes > sizeof(RequestBody) || link.large.control_in.arrive() != 0 ||
      (!is_request && link.large.control_out.on_limit(words.credit()) != 0)) {
    return false;
  }
  const std::span<const uint8_t> body(at, bytes);
  ++works_.stats.received;
  if (!(is_request ? on_request(link, std::bit_cast<Header>(words), body)
                   : on_control(link, words, body)) ||
      link.large.answers > kAnswersMax) {
    return false;
  }
  if (session != link.session) {
    return true;
  }
  link.large.control_in.free();
  if (link.large.control_in.due()) {
    link.say.control = true;
    works_.peers.want(link);
  }
  return true;
}

bool Large::on_request(Link& link, const Header& header, std::span<const uint8_t> body) {
  if (header.to >= kContexts || header.from >= kContexts || start() != 0) {
    return false;
  }
  // Handle the limit even if the message is refused: the peer will not repeat it.
  const bool open = link.in[header.to].open;
  const uint16_t number = link.number_in(header.to);
  RecvAccount& records = link.large.records_in[header.to];
  if (link.out[header.from].on_limit(header.credit) != 0 || (open && records.arrive() != 0)) {
    return false;
  }
  if (open && records.due()) {  // records freed before now exceed those that the sender has left
    link.say.records |= 1ull << header.to;
    works_.peers.want(link);
  }
  Requests& requests = receiver().requests();
  Request* const request = requests.on_request(link, header, body, number);
  if (request == nullptr) {
    return false;
  }
  if ((request->body.flags & RequestBody::kSmall) != 0 && open) {
    works_.inflows.grow(link, header.to);
  }
  if (!open) {  // sent before the peer knew that the context is closed
    requests.refuse(request, false);
    return true;
  }
  ContextSlot& context = *works_.contexts[header.to];  // not null, since its flow is open
  if (!context.accepts_large) {
    requests.refuse(request);
    return true;
  }
  // The inbox must keep room for all buffers.
  if (!context.inbox.reserve(works_.config.buffers + 1)) {
    return false;
  }
  *context.inbox.tail() = {&request->body, sizeof(request->body)};
  context.inbox.push(1, request->origin);
  return true;
}

bool Large::on_control(Link& link, const HeaderWords& header, std::span<const uint8_t> body) {
  // An offer may arrive at a port that has never used large data, so create the objects now.
  if (header.to() >= kContexts || header.from() >= kContexts || start() != 0) {
    return false;
  }
  switch (header.kind()) {
    case Kind::kGrant:
      return sender().on_grant(link, body);
    case Kind::kStripe:
      return sender().on_stripe(link, body);
    case Kind::kExtend:
    case Kind::kDone:
      return sender().on_total(link, header.kind(), body);
    case Kind::kAbort:
      return sender().on_abort(link, body);
    case Kind::kOffer:
      return sender().on_offer(link, header.from(), body);
    case Kind::kRevoke:
      return sender().on_revoke(link, header.from(), body);
    case Kind::kRevoked:
      return receiver().offers().on_revoked(link, header.to(), body);
    default:
      return receiver().on_closed(link, body);
  }
}

void Large::resume(const Rail& rail) {
  if (started()) {
    sender().resume(rail);
  }
}

void Large::end_session(Link& link, int error) {
  if (started()) {
    sender().end_session(link, error);
    receiver().end_session(link, error);
  }
}

void Large::card_gone(Rail& rail) {
  if (started()) {
    sender().card_gone(rail);
    if (works_.rails.count() > 1) {
      receiver().card_gone(rail);
    }
  }
}

void Large::close_context(Link& link, uint16_t context) {
  if (started()) {
    receiver().offers().revoke(link, context);
  }
}

}  // namespace rio::msg
