// How members of the wire connect and part.
#include <algorithm>

#include "fpga/wire/udp/path.hpp"
#include "fpga/wire/udp/udp_wire.hpp"

namespace rio::wire::udp {
namespace {

constexpr uint32_t kRefusals = 2;   // consecutive, with nothing heard in between
constexpr size_t kGuestsMax = 256;  // callers that are not connected yet

[[nodiscard]] const char* refusal(Reason reason) {
  switch (reason) {
    case Reason::kOtherFabric:
      return "is in another fabric, or does not have this card in its members file; give both the "
             "same name and file";
    case Reason::kTaken:
      return "knows another card with the same destID; give each card its own by id=";
    default:
      return "has no room for another member";
  }
}

}  // namespace

void UdpWire::on_datagram(const Address& from, std::span<uint8_t> bytes) {
  if (bytes.size() < kHeaderBytes) {
    return;
  }
  if (bytes[kKindAt] >= kKindHello) {
    on_greeting(from, bytes);
  } else {
    on_data(from, bytes);
  }
}

void UdpWire::on_data(const Address& from, std::span<uint8_t> bytes) {
  const uint32_t number = header_of(bytes).session;
  Peer* const found = peer_in(number, from);
  if (found == nullptr) {
    return;
  }
  Peer& peer = *found;
  const bool is_now = number == peer.now.session;
  if (!is_now || peer.session == nullptr) {
    static_cast<void>(connect(peer, is_now ? peer.now : *peer.later, bytes));
    return;
  }
  const int rc = peer.session->take(bytes, now_ns_);
  if (rc == -EPROTO || peer.lanes->foul()) {
    tell("cut", peer.address, "sends frames that no card sends; it is ignored from now on");
    say(peer.address, peer.now.say(kKindFarewell, self_, 0), 0);
    leave(peer);
  } else if (rc == 0) {
    peer.asked = peer.refused = 0;
  }
}

void UdpWire::on_greeting(const Address& from, std::span<uint8_t> bytes) {
  const auto seen_bytes = static_cast<uint32_t>(bytes.size());
  Greeting greeting;
  if (const int rc = decode(bytes, self_.key, &greeting); rc != 0) {
    if (rc == -EACCES) {
      tell("key", from, "has another RIO_UDP_KEY, or none; it is not let in");
    }
    return;
  }
  if (greeting.kind == kKindHello) {
    on_hello(from, greeting, seen_bytes);
    return;
  }
  if (greeting.kind == kKindAsk) {
    on_question(from, greeting);
    return;
  }
  Peer* const peer = peer_in(greeting.to_session, from);
  if (peer != nullptr && greeting.kind == kKindAccept) {
    on_accept(*peer, greeting);
  } else if (peer != nullptr) {
    on_farewell(*peer, greeting);
  }
}

/// The peer that a session belongs to. @return null: none, or it is not at that address.
Peer* UdpWire::peer_in(uint32_t session, const Address& from) {
  const auto it = sessions_.find(session);
  return it != sessions_.end() && it->second->address == from ? it->second : nullptr;
}

/// Reports a fact about another member: its address, then `what`. @param matter reported once for
/// each address.
void UdpWire::tell(const char* matter, const Address& about, const std::string& what) {
  troubles_.tell(about.text() + " " + what, matter + (" " + about.text()));
}

void UdpWire::tell_taken(const Address& about, const Greeting& they) {
  tell("taken", about,
       "says that it has destID " + std::to_string(they.first_id) +
           ", which another card has; give each card its own by id=");
}

/// Checks whether a caller may join. @return kLeaving: it may.
Reason UdpWire::may_join(const Address& from, const Greeting& hello) {
  if (hello.fabric != self_.fabric || (closed_fabric_ && peer_at(from) == nullptr)) {
    return Reason::kOtherFabric;
  }
  if (hello.first_id == 0) {
    return Reason::kLeaving;
  }
  const auto meets = [&](uint32_t id, uint32_t count) {
    return ids_meet(id, count, hello.first_id, hello.ids);
  };
  if (self_.first_id != 0 && meets(self_.first_id, self_.ids)) {
    return Reason::kTaken;
  }
  for (const auto& peer : peers_) {
    const bool there = peer->session != nullptr && !(peer->address == from);
    if (there && peer->now.they->first_id != 0 && meets(peer->now.they->first_id, peer->ids)) {
      return Reason::kTaken;
    }
  }
  return Reason::kLeaving;
}

void UdpWire::on_hello(const Address& from, const Greeting& hello, uint32_t seen_bytes) {
  if (hello.member == self_.member) {
    return;
  }
  if (const Reason reason = may_join(from, hello); reason != Reason::kLeaving) {
    if (reason == Reason::kTaken) {
      tell_taken(from, hello);
    }
    refuse(from, hello, reason);
    return;
  }
  Peer* const peer = guest(from);
  Attempt* attempt = &peer->now;
  if (peer->session != nullptr && !peer->now.same(hello)) {
    // Either a new process at this address, or an old hello that another machine replays.
    if (!peer->later.has_value()) {
      peer->later.emplace();
    }
    attempt = &*peer->later;
  }
  if (attempt->session == 0 && !begin_attempt(attempt, *peer)) {
    return;
  }
  if (peer->session == nullptr || attempt != &peer->now) {
    attempt->hear(hello, seen_bytes);
  }
  // Not longer than the question, so that our answers cannot be used to flood another machine.
  say(from, attempt->say(kKindAccept, self_, seen_bytes), seen_bytes);
}

/// Answers with a farewell that echoes the challenge, and keeps no state. It is no longer than the
/// datagram that it answers, and is itself never answered.
void UdpWire::refuse(const Address& to, const Greeting& what, Reason reason) {
  Greeting no;
  no.kind = kKindFarewell;
  no.member = self_.member;
  no.to_session = what.session;
  no.echo = what.challenge;
  no.reason = reason;
  say(to, no, 0);
}

/// Answers a peer that hears nothing from us and asks whether we know the connection.
void UdpWire::on_question(const Address& from, const Greeting& question) {
  Peer* const peer = peer_in(question.to_session, from);
  const bool is_now = peer != nullptr && peer->now.session == question.to_session;
  if (peer == nullptr || !knows(is_now ? peer->now : *peer->later, question)) {
    refuse(from, question, Reason::kUnknown);
  } else if (is_now && peer->session != nullptr) {
    answer(*peer, false);
  }  // otherwise its first datagram is still on the way, and will be repeated
}

void UdpWire::on_accept(Peer& peer, const Greeting& accept) {
  const bool later = peer.later.has_value() && peer.later->answered_by(accept);
  if (!later && !peer.now.answered_by(accept)) {
    return;
  }
  if (later || peer.session == nullptr) {
    Attempt& attempt = later ? *peer.later : peer.now;
    if (may_join(peer.address, accept) != Reason::kLeaving) {
      tell_taken(peer.address, accept);
      give_up(peer);
      return;
    }
    attempt.hear(accept, accept.datagram_bytes);
    if (!connect(peer, attempt, {})) {
      return;
    }
  }
  answer(peer, false);  // tells the peer that its accept has arrived
}

void UdpWire::on_farewell(Peer& peer, const Greeting& farewell) {
  if (farewell.reason == Reason::kUnknown) {
    if (peer.session != nullptr && peer.doubt.answered_by(farewell, peer.now)) {
      leave(peer);
    }
    return;
  }
  if (!peer.now.answered_by(farewell)) {
    return;
  }
  if (farewell.reason != Reason::kLeaving) {
    tell("refused", peer.address, refusal(farewell.reason));
  }
  if (peer.session != nullptr) {
    leave(peer);
  } else {
    give_up(peer);
  }
}

/// Finds or makes the peer for a caller. If too many wait, the oldest is forgotten.
Peer* UdpWire::guest(const Address& from) {
  if (Peer* const known = peer_at(from); known != nullptr) {
    return known;
  }
  const auto idle = [](const auto& peer) {
    return peer->first_id == 0 && peer->session == nullptr && !peer->leaving;
  };
  if (static_cast<size_t>(std::ranges::count_if(peers_, idle)) >= kGuestsMax) {
    const auto oldest = std::ranges::find_if(peers_, idle);
    forget_attempt(&(*oldest)->now);
    peers_.erase(oldest);
  }
  return add_peer(from);
}

bool UdpWire::begin_attempt(Attempt* attempt, Peer& peer) {
  *attempt = {};
  uint32_t number = 0;
  while (number == 0 || sessions_.contains(number)) {
    if (draw({reinterpret_cast<uint8_t*>(&number), sizeof(number)}) != 0) {
      return false;
    }
  }
  if (draw(attempt->challenge) != 0) {
    return false;
  }
  attempt->session = number;
  sessions_[number] = &peer;
  return true;
}

void UdpWire::forget_attempt(Attempt* attempt) {
  sessions_.erase(attempt->session);
  *attempt = {};
}

/// Completes the connection. @param first its first datagram, if that completes it.
bool UdpWire::connect(Peer& peer, Attempt& attempt, std::span<uint8_t> first) {
  if (!attempt.they.has_value()) {
    return false;
  }
  const Agreed agreed = attempt.agree(self_.key);
  if (!first.empty() && agreed.sealed) {
    std::vector<uint8_t> copy(first.begin(), first.end());
    if (udp::open(agreed.in_key, header_of(copy).number, copy, kClearBytes) == 0) {
      return false;
    }
  }
  const Attempt made = attempt;
  if (peer.session != nullptr) {
    leave(peer);
  }
  if (peer.leaving) {
    close(peer);
  }
  if (peer.now.session != made.session) {
    forget_attempt(&peer.now);
  }
  peer.now = made;
  sessions_[made.session] = &peer;
  peer.later.reset();
  if (!name(peer, *made.they)) {
    forget_attempt(&peer.now);
    return false;
  }
  peer.calls.end();
  peer.ids = made.they->ids;
  peer.asked = peer.refused = 0;
  peer.asked_ns = peer.owed_ns = 0;
  peer.units = 0;
  peer.doubt.end();
  peer.lanes = std::make_unique<FrameUnits>(Ids{own_id_, self_.ids, peer.first_id, peer.ids});
  peer.session = std::make_unique<Connection>(agreed, peer.lanes.get(), now_ns_);
  connected_.push_back(&peer);
  open(peer, {peer.lanes->out(UnitKind::kRequests), peer.lanes->out(UnitKind::kResponses), false,
              true, 0, peer.lanes->pulls()});
  if (!first.empty()) {
    on_data(peer.address, first);
  }
  return true;
}

/// Gives the peer its first destID here. @return false: there are too many.
bool UdpWire::name(Peer& peer, const Greeting& they) {
  if (peer.first_id != 0) {
    if (closed_fabric_ && they.first_id != peer.first_id) {
      tell("file", peer.address,
           "says that it has destID " + std::to_string(they.first_id) + ", and the members file " +
               std::to_string(peer.first_id) + "; give all machines the same file");
      return false;
    }
    return true;
  }
  const std::lock_guard lock(mutex_);
  peer.first_id = id_of(peer.address, true);
  return peer.first_id != 0;
}

/// Stops sending to the peer; frames that it has sent are still taken.
void UdpWire::leave(Peer& peer) {
  std::erase(connected_, &peer);
  peer.session.reset();
  forget_attempt(&peer.now);
  if (peer.later.has_value()) {
    forget_attempt(&*peer.later);
    peer.later.reset();
  }
  Member::leave(peer);
  look_ns_ = 0;
}

void UdpWire::close(Peer& peer) {
  Member::close(peer);
  peer.lanes.reset();
  list_inbound();
}

/// Gives up a member that was called: it is not there, or refuses.
void UdpWire::give_up(Peer& peer) {
  peer.calls.end();
  forget_attempt(&peer.now);
  absent([&](uint32_t dest_id) {
    return dest_id - peer.first_id < kIdsMax && peer_of(dest_id) == &peer;
  });
}

/// Long datagrams are probes, so this is not a fault unless the path is narrower than the minimum.
/// A report of an unknown router is logged, and ends nothing.
void UdpWire::on_narrow(const Address& to, uint32_t mtu) {
  const Peer* const peer = peer_at(to);
  if (peer == nullptr) {
    return;
  }
  Path path = path_between(socket_->address(), to);
  path.mtu = std::min(path.mtu, mtu);
  if (!path.is_wide()) {
    troubles_.tell(judge(socket_->address(), to, path).text, "path " + to.text());
  } else if (peer->session != nullptr && path.datagram_bytes() < peer->session->datagram_bytes()) {
    troubles_.tell(
        "the way to " + to.text() + " takes packets of " + std::to_string(path.mtu) +
            " bytes now, less than when the connection was made; it is cut, until programs "
            "begin another one",
        "narrow " + to.text());
  }
}

void UdpWire::on_refused(const Address& to) {
  Peer* const peer = peer_at(to);
  if (peer == nullptr) {
    return;
  }
  if (peer->session == nullptr) {
    if (peer->calls.calling()) {
      give_up(*peer);
    }
  } else if (++peer->refused >= kRefusals) {
    leave(*peer);
  } else {
    peer->doubt.begin(now_ns_, now_ns_);
    look_ns_ = 0;
  }
}

}  // namespace rio::wire::udp
