#include "lib/msg/long_arrivals.hpp"

#include <algorithm>
#include <cstring>

#include "base/log.hpp"

namespace rio::msg {

int LongArrivals::accept(uint64_t length_bytes_max) {
  length_bytes_max_ = length_bytes_max;
  return length_bytes_max != 0 ? context_.accept_large(false) : 0;
}

/// Process the inbox until there is a message to show. Nothing behind a shown long message is
/// processed before the caller has taken that.
bool LongArrivals::look_further() {
  const Inbox& inbox = context_.inbox();
  while (shown_ == nullptr && !inbox.empty()) {
    const Origin origin = inbox.origin(0);
    const Kind kind = kind_of(inbox.at(0));
    LongArrival* const begun = incoming(origin);
    if (kind == Kind::kData && begun == nullptr) {
      return true;
    }
    if (const char* const wrong = arrive(begun, kind, origin); wrong != nullptr) {
      bad(origin, wrong);
    }
  }
  return shown_ != nullptr;
}

/// The incomplete message of a sender in this session; null: none. One of an earlier session is
/// never continued.
LongArrival* LongArrivals::incoming(const Origin& origin) {
  const auto it = std::find_if(assembling_.begin(), assembling_.end(), [&](const LongArrival* a) {
    return a->origin.link == origin.link && a->origin.from == origin.from;
  });
  if (it == assembling_.end()) {
    return nullptr;
  }
  if ((*it)->origin.session != origin.session) {
    forget(**it);
    return nullptr;
  }
  return *it;
}

/// Process the oldest item of the inbox. @return null; else the error, and the item is still there.
const char* LongArrivals::arrive(LongArrival* begun, Kind kind, const Origin& origin) {
  if (begun != nullptr && (kind == Kind::kMore || kind == Kind::kLast)) {
    return arrive_part(*begun, kind);
  }
  if (begun != nullptr) {
    return "another message between the parts of a message";
  }
  switch (kind) {
    case Kind::kFirst:
      return arrive_first(origin);
    case Kind::kRequest:
      return arrive_request(origin);
    default:
      return "a part without a first part";
  }
}

const char* LongArrivals::arrive_first(const Origin& origin) {
  const iovec& bytes = context_.inbox().at(0);
  FirstHeader header;
  if (bytes.iov_len < sizeof(header)) {
    return "a first part without its header";
  }
  std::memcpy(&header, bytes.iov_base, sizeof(header));
  Assembly assembly;
  if (!assembly.begin(header.total_bytes, bytes.iov_len - sizeof(header), kLongMax)) {
    return "an invalid first part";
  }
  LongArrival* const arrival = arrivals_.get();
  if (arrival == nullptr) {
    return "no memory for a message";
  }
  arrival->origin = origin;
  arrival->length_bytes = header.total_bytes;
  arrival->assembly = assembly;
  arrival->unwanted = header.total_bytes > length_bytes_max_;
  assembling_.push_back(arrival);
  keep_part(*arrival);
  return nullptr;
}

const char* LongArrivals::arrive_part(LongArrival& incoming, Kind kind) {
  if (!incoming.assembly.add(kind, context_.inbox().at(0).iov_len)) {
    return "a part of the wrong length";
  }
  keep_part(incoming);
  if (!incoming.assembly.whole()) {
    return nullptr;
  }
  if (incoming.unwanted) {
    forget(incoming);
    return nullptr;
  }
  std::erase(assembling_, &incoming);
  shown_ = &incoming;
  return nullptr;
}

const char* LongArrivals::arrive_request(const Origin& origin) {
  LongArrival* const arrival = arrivals_.get();
  if (arrival == nullptr) {
    return "no memory for a message";
  }
  Request* const request = context_.take_request();
  if (length_bytes_max_ == 0 || request->body.len_bytes > length_bytes_max_) {
    arrivals_.put(arrival);
    context_.refuse_large(request);
    return nullptr;
  }
  context_.keep_large(request);
  arrival->origin = origin;
  arrival->length_bytes = request->body.len_bytes;
  arrival->request = request;
  shown_ = arrival;
  return nullptr;
}

/// Add the oldest item of the inbox to an arrival.
void LongArrivals::keep_part(LongArrival& arrival) {
  if (arrival.unwanted) {
    context_.drop_oldest();
  } else {
    arrival.parts.push_back(context_.take_oldest());
  }
}

/// Drop the oldest item of the inbox. A request has no buffer to return.
void LongArrivals::drop_oldest() {
  if (kind_of(context_.inbox().at(0)) == Kind::kRequest) {
    context_.refuse_large(context_.take_request());
  } else {
    context_.drop_oldest();
  }
}

void LongArrivals::forget(LongArrival& incoming) {
  std::erase(assembling_, &incoming);
  refuse(incoming);
}

bool LongArrivals::forget_stale() {
  if (!context_.inbox().empty()) {
    return false;
  }
  for (size_t i = assembling_.size(); i-- > 0;) {
    const Origin& origin = assembling_[i]->origin;
    if (origin.session != origin.link->session) {
      forget(*assembling_[i]);
    }
  }
  return true;
}

void LongArrivals::forget_all() {
  while (!assembling_.empty()) {
    forget(*assembling_.back());
  }
  if (shown_ != nullptr) {
    refuse(*shown());
  }
}

/// The oldest item of the inbox is invalid: drop it and end the session.
void LongArrivals::bad(const Origin& origin, const char* what) {
  drop_oldest();
  if (LongArrival* const begun = incoming(origin); begun != nullptr) {
    forget(*begun);
  }
  if (origin.session == origin.link->session) {  // otherwise the session has ended already
    base::log_warning("context %u: %s, from destID %u, context %u", context_.id(), what,
                      origin.link->dest_id(), origin.from);
    context_.port().cut_off(*origin.link);
  }
}

void LongArrivals::copy_out(const LongArrival& arrival, void* buffer, uint64_t capacity) const {
  auto* to = static_cast<uint8_t*>(buffer);
  uint64_t left = std::min(capacity, arrival.length_bytes);
  context_.port().count_copied(left);
  uint64_t skip = sizeof(FirstHeader);
  for (const Delivery& part : arrival.parts) {
    const uint64_t count = std::min<uint64_t>(left, part.bytes.iov_len - skip);
    if (count != 0) {
      std::memcpy(to, static_cast<const uint8_t*>(part.bytes.iov_base) + skip, count);
    }
    to += count;
    left -= count;
    skip = 0;
  }
}

Request* LongArrivals::take_request(LongArrival& arrival) {
  Request* const request = arrival.request;
  arrivals_.put(&arrival);
  return request;
}

void LongArrivals::refuse(LongArrival& arrival) {
  for (const Delivery& part : arrival.parts) {
    context_.give_back(part);
  }
  if (arrival.request != nullptr) {
    context_.refuse_large(arrival.request);
  }
  arrivals_.put(&arrival);
}

}  // namespace rio::msg
