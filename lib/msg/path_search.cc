// How rails find each other.
#include <algorithm>
#include <cstring>
#include <string>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "lib/msg/paths.hpp"
#include "lib/msg/rail.hpp"
#include "lib/msg/sessions.hpp"

namespace rio::msg {
namespace {

constexpr uint64_t kSearchNs = 10'000'000;  // between questions of one rail; it doubles with each
constexpr uint64_t kSearchMostNs = 500'000'000;  // round over the peer's rails
constexpr uint64_t kAnswerNs = 1'000'000'000;    // longer than an answer takes

/// @return what is wrong with a list of rails; null: nothing.
[[nodiscard]] const char* lie_of(const Link& link, const RailsBody& body) {
  const auto ends = [](const RailsBody::Rail& rail) {
    return rail.address[RailsBody::kAddressBytes - 1] == '\0';
  };
  if (body.magic != kMagic || body.is_seen > 1 || body.zero != 0) {
    return "its list of rails has another format";
  }
  if (body.count != link.rails) {
    return "its list of rails is longer or shorter than it said when the session began";
  }
  return std::all_of(body.rails, body.rails + body.count, ends)
             ? nullptr
             : "the address of one of its rails has no end";
}

}  // namespace

bool Paths::say_rails(Link& link) {
  RailsBody body{};
  body.magic = kMagic;
  body.session = link.keys.remote;
  body.peer = link.keys.local;
  body.is_seen = link.peer_rails->known != 0 ? 1 : 0;
  body.count = port_.rails.count();
  for (const Rail* const rail : port_.rails) {
    const std::string address = rail->endpoint.address();
    RailsBody::Rail& to = body.rails[rail->index];
    to.dest_id = rail->endpoint.dest_id();
    std::memcpy(to.address, address.data(),
                std::min<size_t>(address.size(), RailsBody::kAddressBytes - 1));
  }
  return link.outbox->say_to(link.path->dest_id,
                             {link.keys.remote, HeaderWords::rest_of(0, 0, 0, Kind::kRails, 0)},
                             &body, sizeof(body));
}

/// Ask the next of the peer's rails, beginning with the one of the same number.
void Paths::search(Link& link, Rail& rail, uint64_t now) {
  PeerRails& peer = *link.peer_rails;
  PeerRails::Search& search = peer.searches[rail.index];
  const Path* const path = link.paths[rail.index].get();
  const bool is_known = path != nullptr && path->remote != Path::kNoRail;
  if (link.keys.local > link.keys.remote && !is_known) {
    return;  // the peer asks first
  }
  if (peer.known == 0 || now < search.again_ns || rail.health.error() != 0) {
    return;
  }
  const uint32_t asked = search.asked++;
  search.again_ns = now + std::min(kSearchNs << std::min(asked / peer.known, 6u), kSearchMostNs);
  const bool is_first = path != nullptr && (asked == 0 || (is_known && asked % 2 == 0));
  if (is_first || link.keys.local > link.keys.remote) {
    ask(link, rail, path->dest_id);
    return;
  }
  const RailsBody::Rail& to = peer.rails[(rail.index + asked) % peer.known];
  uint32_t dest_id = to.dest_id;
  if (to.address[0] != '\0' && rail.endpoint.reach(to.address, &dest_id) != 0) {
    return;
  }
  ask(link, rail, dest_id);
}

void Paths::ask(Link& link, Rail& rail, uint32_t dest_id) {
  const RailBody body = {kMagic, link.keys.remote, link.keys.local,
                         static_cast<uint16_t>(rail.index), RailBody::kNone};
  static_cast<void>(
      rail.outbox.say_to(dest_id, {link.keys.remote, HeaderWords::rest_of(0, 0, 0, Kind::kFind, 0)},
                         &body, sizeof(body)));
}

/// The link of a session. @return null: there is none with these keys.
Link* Paths::known(uint32_t local_key, uint32_t remote_key) const {
  const uint32_t index = local_key & 0xFFFFu;
  Link* const link = index < port_.peers.count() ? &port_.peers.at(index) : nullptr;
  return link != nullptr && link->keys.local == local_key && link->keys.remote == remote_key
             ? link
             : nullptr;
}

/// Whether a session with several rails is up. If not, the peer was faster; its message comes
/// again.
bool Paths::is_early(const Link* link) {
  return link != nullptr && link->state != LinkState::kUp;
}

bool Paths::on_message(Rail& rail, uint32_t source, Kind kind, std::span<const uint8_t> bytes) {
  if (kind == Kind::kRails) {
    RailsBody body;
    if (bytes.size() != sizeof(body)) {
      return false;
    }
    std::memcpy(&body, bytes.data(), sizeof(body));
    Link* const link = known(body.session, body.peer);
    const Path* const path = port_.peers.find(rail.index, source);
    if (is_early(link)) {
      return true;
    }
    if (link == nullptr || link->peer_rails == nullptr || path == nullptr || &path->link != link) {
      return false;
    }
    if (const char* const wrong = lie_of(*link, body); wrong != nullptr) {
      cut_off(*link, wrong);
      return false;
    }
    take_rails(*link, body);
    return true;
  }
  RailBody body;
  if (kind < Kind::kFind || kind > Kind::kLeft || bytes.size() != sizeof(body)) {
    return false;
  }
  std::memcpy(&body, bytes.data(), sizeof(body));
  const bool is_question = kind != Kind::kFound;
  Link* const link = body.magic == kMagic ? known(body.session, body.peer) : nullptr;
  if (is_early(link)) {
    return true;
  }
  if (link == nullptr || link->peer_rails == nullptr) {
    return false;
  }
  const uint32_t remote = is_question ? body.asking : body.answering;
  const bool is_asked = is_question || has_asked(*link, rail);
  if (remote >= link->rails ||
      (is_question ? body.answering != RailBody::kNone : body.asking != rail.index) || !is_asked) {
    return false;  // a stranger may have guessed the keys, so the session goes on
  }
  if (kind == Kind::kLost) {
    Path* const path = find(*link, remote);
    return path == nullptr || on_path_gone(*path);
  }
  if (kind == Kind::kLeft) {
    if (Path* const path = find(*link, remote); path != nullptr) {
      on_failed(*path, pmd::Status::kResponseTimeout);
    }
    if (Path* const path = link->paths[rail.index].get(); path != nullptr) {
      path->state.delivered(base::now_ns());  // it carried this message
    }
    return true;
  }
  if (take_path(*link, rail, source, remote, !is_question) && is_question) {
    const RailBody answer = {kMagic, link->keys.remote, link->keys.local, body.asking,
                             static_cast<uint16_t>(rail.index)};
    static_cast<void>(rail.outbox.say_to(
        source, {link->keys.remote, HeaderWords::rest_of(0, 0, 0, Kind::kFound, 0)}, &answer,
        sizeof(answer)));
    if (!link->paths[rail.index]->is_found) {
      PeerRails::Search& search = link->peer_rails->searches[rail.index];
      ++search.asked;
      search.again_ns = base::now_ns() + kSearchNs;
      ask(*link, rail, source);
    }
  }
  return true;
}

/// Whether a rail of the peer has no path to another rail of ours. A path that the peer does not
/// know of, since our answer was lost, ends when the peer has asked for a while.
bool Paths::leaves(Link& link, const Rail& rail, uint32_t remote) {
  for (const std::unique_ptr<Path>& each : link.paths) {
    if (each == nullptr || each->remote != remote || &each->rail == &rail) {
      continue;
    }
    if (each.get() == link.path || base::now_ns() - each->known_ns < kAnswerNs) {
      return false;
    }
    each->is_found = false;
    each->remote = Path::kNoRail;
    set_rails(link);
  }
  return true;
}

/// Whether a rail waits, or may have waited, for an answer of the peer in this session.
bool Paths::has_asked(const Link& link, const Rail& rail) {
  const Path* const path = link.paths[rail.index].get();
  return link.peer_rails->searches[rail.index].asked != 0 || (path != nullptr && path->is_asked);
}

void Paths::cut_off(Link& link, const char* why) const {
  if (!link.keys.warned) {  // Sessions logs once, too
    base::log_warning("destID %u: %s", link.dest_id(), why);
  }
  port_.sessions.cut_off(link);
}

void Paths::take_rails(Link& link, const RailsBody& body) {
  PeerRails& peer = *link.peer_rails;
  if (peer.known == 0) {
    peer.known = body.count;
    std::copy_n(body.rails, body.count, peer.rails.begin());
  }
  peer.has_ours = peer.has_ours || body.is_seen != 0;
  if (body.is_seen == 0) {
    static_cast<void>(say_rails(link));
  }
}

/// A rail has heard from the peer: it has a path, unless it, or the peer's rail, has another one.
/// So a rail of ours has at most one of the peer's, and the other way round, and both sides agree
/// on that, since one of them asks first. The path is used as soon as the peer has answered, since
/// the peer then knows it, too.
/// @return whether `source` is at the other end of the rail's path. If it is not, messages from it
/// would not be taken.
bool Paths::take_path(Link& link, Rail& rail, uint32_t source, uint32_t remote, bool is_answer) {
  Path* path = link.paths[rail.index].get();
  const Path* const by_source = port_.peers.find(rail.index, source);
  if ((by_source != nullptr && &by_source->link != &link) ||
      (path != nullptr && path->dest_id != source && (path->is_found || path == link.path)) ||
      !leaves(link, rail, remote)) {
    return false;
  }
  if (path == nullptr || path->dest_id != source) {
    path = &port_.peers.add_path(link, rail, source);
    link.peer_rails->searches[rail.index].again_ns = 0;
  }
  if (path->remote != remote || !path->is_found) {
    path->remote = remote;
    path->known_ns = base::now_ns();
  }
  if (is_answer && !path->is_found) {
    path->is_found = true;
    is_calm_ = false;  // the news are due
    granted_.forget(rail.index);
    set_rails(link);
    path->state = rail::RailState(port_.config.response_timeout_ns());
  }
  if (path->is_asked) {
    path->is_asked = false;
    path->state.probe_answered(base::now_ns());
  }
  return true;
}

}  // namespace rio::msg
