#include "lib/tag/parts.hpp"

#include <algorithm>
#include <cerrno>

#include "lib/msg/crowd.hpp"
#include "lib/msg/patience.hpp"

namespace rio::tag {
namespace {

// Tries without enough credit, one for each progress() of the port, before a message is sent as a
// request.
constexpr uint32_t kTries = 256;
// The limit for a sender that sleeps: it tries only at its wake-ups, which are milliseconds apart.
constexpr uint32_t kTriesAsleep = 8;

[[nodiscard]] uint8_t refusals_of(const msg::Route& route) {
  return route.link->refusals[msg::HeaderWords{0, route.word}.to()];
}

}  // namespace

bool PartsOut::must_ask(const msg::Route& route, uint32_t parts) {
  const uint32_t tries_max = port_.sleeps() ? kTriesAsleep : kTries;
  if (route.out->available() >= parts) {
    tries_ = 0;
    return false;
  }
  tries_ += tries_ < tries_max ? 1 : 0;
  return tries_ == tries_max;
}

msg::Route PartsOut::route_of(const msg::Route& route, msg::Kind kind) {
  msg::Route other = route;
  other.out = &credits_;
  other.word = msg::with_kind(route.word, kind);
  return other;
}

int PartsOut::begin(const msg::Route& route, msg::Kind kind, const FirstHeader& header,
                    const void* data, uint32_t parts) {
  msg::Outflow& all = *route.out;
  const uint32_t session = route.link->session;
  refusals_ = refusals_of(route);
  credits_ = all.available() >= parts ? all.split(static_cast<uint16_t>(parts)) : msg::Outflow();
  const int rc = port_.send(route_of(route, kind), &header, sizeof(header), data, kFirstBytesMax);
  if (rc != 0) {
    // Return the credits, unless the session ended or the context closed: then they are void.
    if (session == route.link->session && refusals_ == refusals_of(route)) {
      all.join(credits_);
    }
    credits_ = {};
  }
  return rc;
}

int PartsOut::go_on(const msg::Route& route, const uint8_t* data, uint64_t length_bytes,
                    uint64_t* sent_bytes) {
  if (refusals_ != refusals_of(route)) {
    forget();
    return -ECONNREFUSED;
  }
  const uint64_t left = length_bytes - *sent_bytes;
  const auto count = static_cast<uint32_t>(std::min<uint64_t>(left, kMoreBytesMax));
  const msg::Kind kind = count == left ? msg::Kind::kLast : msg::Kind::kMore;
  const msg::Route to = route_of(route, kind);
  // With a CPU of its own, each rank soon answers: a short part then needs no run.
  const bool is_cpu_shared = msg::is_crowd() || msg::Patience::of_this_thread().is_shared();
  const int rc = is_cpu_shared ? port_.send_part(to, data + *sent_bytes, count)
                               : port_.send(to, data + *sent_bytes, count);
  *sent_bytes += rc == 0 ? count : 0;
  return rc;
}

}  // namespace rio::tag
