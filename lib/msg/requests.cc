#include "lib/msg/requests.hpp"

#include <algorithm>
#include <cerrno>

#include "lib/msg/rail.hpp"

namespace rio::msg {

Request* Requests::on_request(Link& link, const Header& header, std::span<const uint8_t> bytes,
                              uint16_t number) {
  RequestBody body;
  if (read(bytes, &body) != 0 || body.transfer != link.large.requests_seen + 1) {
    return nullptr;
  }
  ++link.large.requests_seen;
  Request* const request = requests_.get();
  if (request == nullptr) {
    return nullptr;
  }
  *request = Request{header, body, {&link, link.session, header.from}, {}, 0};
  link.large.requests.append(*request);
  if (!offers_.take(*request, number)) {
    free(request, false);
    return nullptr;
  }
  return request;
}

void Requests::free(Request* request, bool record) {
  if (request->gone == 0) {
    request->origin.link->large.requests.remove(*request);
  }
  if (record) {
    inflows_.return_record(request->origin, request->header.to);
  }
  requests_.put(request);
}

void Requests::refuse(Request* request, bool record) {
  if (request->gone == 0 && (request->accepted || request->parked)) {
    if (request->accepted) {
      park(*request, {StopReason::kRefused, false});
    } else {
      static_cast<void>(request->grant.stop({StopReason::kRefused, false}));
      say_stop(*request, StopReason::kRefused);
    }
    request->refused = true;
    if (record) {
      inflows_.return_record(request->origin, request->header.to);
    }
    return;  // kept until CLOSED
  }
  if (request->gone == 0) {
    say_stop(*request, StopReason::kRefused);
  }
  free(request, record);
}

void Requests::keep(Request& request) {
  if (request.gone == 0 && request.accepted) {
    park(request, {0, true});
  }
}

void Requests::say_stop(const Request& request, uint8_t reason) {
  Link& link = *request.origin.link;
  control_.answer(
      {&link, link.session, Kind::kAbort, request.body.transfer, request.grant.attempt(), reason});
}

void Requests::park(Request& request, StopCause cause) {
  const auto messages = static_cast<uint32_t>(pmd::mem::cut_messages(request.cut));
  request.grant.told_by_offer(std::min(request.window, messages));
  static_cast<void>(request.grant.stop(cause));
  if (cause.again) {
    offers_.note_end(*request.origin.link, request.header.to, false);
  }
  request.accepted = false;
  request.parked = true;
  request.path->rail.queues.quarantine(request);
  say_stop(request, cause.reason);
}

bool Requests::close(Request& request, const StopBody& body) {
  Link& link = *request.origin.link;
  if (request.accepted) {  // the sender gave up before the user answered
    const auto messages = static_cast<uint32_t>(pmd::mem::cut_messages(request.cut));
    request.grant.told_by_offer(std::min(request.window, messages));
    static_cast<void>(request.grant.stop({0, true}));
    request.accepted = false;
    request.parked = true;
    ReceiveQueues& queues = request.path->rail.queues;
    queues.assigner().close(request.path->source, request.place);
    queues.stop(request.place.queue);
  }
  if (request.parked) {
    const bool current = body.attempt == request.grant.attempt();
    if (request.grant.on_closed(body.attempt, body.arrived, {body.reason, body.again != 0}) != 0) {
      return false;
    }
    if (!current) {
      return true;
    }
    request.path->rail.queues.end_quarantine(request.quarantined, request.path->source,
                                             request.place);
    if (request.grant.state() != RecvGrant::State::kEnded) {
      return true;
    }
  } else if (body.again != 0 || body.arrived != 0) {
    return false;
  }
  link.large.requests.remove(request);
  request.gone = -ECANCELED;
  if (request.refused) {
    requests_.put(&request);
  }
  return true;
}

void Requests::end_session(Link& link, int error) {
  while (!link.large.requests.is_empty()) {
    Request& request = *link.large.requests.first();
    link.large.requests.remove(request);
    request.gone = error;
    if (request.path != nullptr) {
      request.path->rail.queues.forget_quarantine(request.quarantined);
    }
    if (request.refused) {
      requests_.put(&request);
    }
  }
  link.large.requests_seen = 0;
}

}  // namespace rio::msg
