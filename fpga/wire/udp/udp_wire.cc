#include "fpga/wire/udp/udp_wire.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/no_cancel.hpp"
#include "fpga/wire/udp/path.hpp"

namespace rio::wire::udp {
namespace {

constexpr uint64_t kLookNs = 1'000'000;
/// Rounds of Socket::receive() in one step.
constexpr uint32_t kRounds = 4;

}  // namespace

int UdpWire::take_seat(const Seat& seat, std::string* error) {
  if (const int rc = Key::from_text(seat.key, &self_.key, error); rc != 0) {
    *error = "RIO_UDP_KEY: " + *error;
    return rc;
  }
  if (const int rc = draw(self_.member); rc != 0) {
    *error = "the system has no random bytes";
    return rc;
  }
  self_.ids = seat.ids;
  self_.first_id = seat.id;
  self_.fabric = fabric_mark(seat.fabric);
  own_id_ = seat.id == 0 ? kMiddleId : seat.id;
  patience_s_ = seat.patience_s;
  closed_fabric_ = !seat.members.empty();
  return 0;
}

int UdpWire::open_socket(const Seat& seat, std::string* error) {
  Places places;
  if (const int rc = find_places(seat, &places, error); rc != 0) {
    return rc;
  }
  if (const int rc = Socket::open(places.own, &socket_); rc != 0) {
    *error = places.own.text() + ": " + std::strerror(-rc) +
             (rc == -EADDRINUSE      ? "; another card is there: give this one another port or id"
              : rc == -EADDRNOTAVAIL ? "; it is not of this machine: give an address that is"
                                     : "");
    return rc;
  }
  socket_->set_faults(seat.faults);
  std::string warning;
  if (const int rc = check_paths(seat, places.own, places.others, &warning, error); rc != 0) {
    return rc;
  }
  troubles_.tell(warning);
  known_ = std::move(places.others);
  reached_.store(true, std::memory_order_relaxed);
  return 0;
}

int UdpWire::join(const Seat& seat, std::unique_ptr<UdpWire>* out, std::string* error) {
  std::unique_ptr<UdpWire> wire(new UdpWire);
  if (const base::Trouble trouble = wire->thread_.open()) {
    *error = base::why(trouble);
    return trouble.rc;
  }
  if (const int rc = wire->take_seat(seat, error); rc != 0) {
    return rc;
  }
  if (const int rc = wire->open_socket(seat, error); rc != 0) {
    return rc;
  }
  wire->keeper_ = std::make_unique<Keeper>(wire->socket_->fd(), &wire->asleep_, &wire->thread_);
  wire->pumps_.store(true, std::memory_order_relaxed);
  if (const int rc = wire->keeper_->start(error); rc != 0) {
    return rc;
  }
  *out = std::move(wire);
  return 0;
}

UdpWire::~UdpWire() {
  if (keeper_ != nullptr && thread_.of_this_process()) {
    thread_.stop();
    linger();
  }
}

void UdpWire::on_asleep(bool asleep) {
  if (asleep) {
    thread_.poke_soon();  // the thread looks from now on
  }
}

int UdpWire::reach(const std::string& address, uint32_t* dest_id) {
  Address at;
  if (Address::parse(address, false, &at) != 0 || !at.is_one_place()) {
    return -EINVAL;
  }
  const Address& own = socket_->address();
  if (at.family() != own.family()) {
    troubles_.tell(judge(own, at, {}).text, "path " + at.text());
    return -EINVAL;
  }
  if (at == own) {
    *dest_id = own_id_;
    return 0;
  }
  const std::lock_guard lock(mutex_);
  const uint32_t id = id_of(at, !closed_fabric_);
  *dest_id = id != 0 ? id : *dest_id;
  return id != 0 ? 0 : closed_fabric_ ? -EINVAL : -ENOSPC;
}

/// The first destID of the member at an address: its own block, or a free one. The caller holds the
/// mutex. @param may_add whether a free block may be taken. @return 0: there is none.
uint32_t UdpWire::id_of(const Address& of, bool may_add) {
  constexpr uint32_t kBlocks = kMiddleId / kIdsMax - 1;
  const auto known = std::ranges::find(known_, of, &Place::address);
  if (known != known_.end()) {
    return known->id;
  }
  const bool below = of < socket_->address();
  uint32_t& given = below ? lower_ : higher_;
  if (!may_add || given == kBlocks) {
    return 0;
  }
  ++given;
  const uint32_t id = below ? kMiddleId - given * kIdsMax : kMiddleId + given * kIdsMax;
  known_.push_back({id, of});
  reached_.store(true, std::memory_order_release);  // pairs with take_reached()
  return id;
}

void UdpWire::take_reached() {
  // acquire: pairs with id_of().
  if (!reached_.exchange(false, std::memory_order_acquire)) {
    return;
  }
  const std::lock_guard lock(mutex_);
  for (; taken_known_ < known_.size(); ++taken_known_) {
    const Place& known = known_[taken_known_];
    Peer* peer = peer_at(known.address);
    if (peer == nullptr) {
      peer = add_peer(known.address);
    }
    if (peer->first_id == 0) {
      peer->first_id = known.id;
    }
  }
}

Peer* UdpWire::peer_at(const Address& address) {
  const auto it = std::ranges::find(peers_, address, &Peer::address);
  return it == peers_.end() ? nullptr : it->get();
}

Peer* UdpWire::add_peer(const Address& address) {
  peers_.push_back(std::make_unique<Peer>());
  peers_.back()->address = address;
  return peers_.back().get();
}

/// The peer that may have a destID.
Peer* UdpWire::peer_of(uint32_t dest_id) {
  Peer* best = nullptr;
  for (const auto& peer : peers_) {
    if (peer->first_id != 0 && dest_id - peer->first_id < kIdsMax &&
        (best == nullptr || peer->first_id > best->first_id)) {
      best = peer.get();
    }
  }
  return best;
}

bool UdpWire::find_member(uint32_t dest_id) {
  if (inherited_) {
    return false;
  }
  take_reached();
  Peer* const peer = peer_of(dest_id);
  if (peer == nullptr || peer->leaving || peer->session != nullptr) {
    return false;
  }
  if (!peer->calls.calling()) {
    peer->calls.begin(base::now_ns());
    peer->path_bytes = 0;
    look_ns_ = 0;
  }
  return true;
}

void UdpWire::pump(uint64_t /*now_ns*/) {
  if (inherited_) [[unlikely]] {
    lose_all();
    return;
  }
  now_ns_ = base::now_ns();
  take_reached();
  // First the frames that the card has sent, since their receivers wait for them.
  for (size_t i = 0; i < connected_.size(); ++i) {
    serve(*connected_[i]);
  }
  socket_->flush();
  for (uint32_t left = kRounds; left > 0; --left) {
    if (socket_->receive(this) < Socket::kTakenMax) {
      break;
    }
  }
  if (now_ns_ >= look_ns_) {
    const base::NoCancel no_cancel;  // opens sockets and draws random bytes
    look_ns_ = now_ns_ + kLookNs;
    due_ns_ = UINT64_MAX;
    for (size_t i = 0; i < peers_.size(); ++i) {
      look(*peers_[i]);
    }
    socket_->flush();
  }
  keeper_->polled(due_ns_);
}

/// Called in a forked child: callers that wait for a peer learn that it is gone.
void UdpWire::lose_all() {
  for (const auto& peer : peers_) {
    if (peer->session != nullptr) {
      leave(*peer);
    }
    if (peer->leaving) {
      close(*peer);
    }
    if (peer->calls.calling()) {
      give_up(*peer);
    }
  }
}

void UdpWire::serve(Peer& peer) {
  Connection& session = *peer.session;
  if (session.waits()) {
    static_cast<void>(session.offer_again());
  }
  static_cast<void>(peer.lanes->gather(&session));
  send_units(peer);
  if (!session.owes_answer(true)) {
    peer.owed_ns = 0;
    return;
  }
  if (peer.owed_ns == 0) {
    peer.owed_ns = now_ns_;
  }
  if (session.owes_answer(false) || now_ns_ - peer.owed_ns > kAnswerWithinNs || asleep() ||
      keeper_->unattended()) {
    answer(peer, false);
  }
}

void UdpWire::send_units(Peer& peer) {
  Connection& session = *peer.session;
  for (;;) {
    const size_t used =
        session.send(now_ns_, socket_->begin(peer.address, session.datagram_bytes()));
    if (used == 0) {
      return;
    }
    socket_->end(used);
    peer.owed_ns = 0;
  }
}

void UdpWire::answer(Peer& peer, bool asks) {
  socket_->end(peer.session->answer(socket_->begin(peer.address, kHeaderBytes + kTagBytes), asks));
  peer.owed_ns = 0;
}

void UdpWire::say(const Address& to, const Greeting& greeting, size_t bytes) {
  const std::span<uint8_t> room = socket_->begin(to, std::max(bytes, kGreetingBytes + kTagBytes));
  if (const size_t used = encode(greeting, self_.key, bytes, room); used > 0) {
    socket_->end(used);
  }
}

void UdpWire::look(Peer& peer) {
  if (peer.leaving) {
    due_ns_ = now_ns_ + kLookNs;
    if (is_over(peer, peer.lanes->taken())) {
      close(peer);
    }
    return;
  }
  if (peer.session != nullptr) {
    check_session(peer);
    return;
  }
  if (!peer.calls.calling()) {
    return;
  }
  if (peer.calls.in_vain(now_ns_)) {
    tell("absent", peer.address,
         "does not answer; no member is there, or it has another RIO_UDP_KEY, "
         "or a firewall or a broken link is in between");
    give_up(peer);
    return;
  }
  if (peer.calls.due_ns() <= now_ns_) {
    call(peer);
  }
  due_ns_ = std::min(due_ns_, peer.calls.due_ns());
}

void UdpWire::check_session(Peer& peer) {
  Connection& session = *peer.session;
  if (session.due_ns() <= now_ns_) {
    session.look(now_ns_);
    send_units(peer);
    peer.doubt.begin(now_ns_, std::max(now_ns_, session.heard_ns() + kDoubtAfterNs));
  }
  const bool soon = peer.asked == 0 && peer.units != session.units();
  const uint64_t quiet_ns =
      std::max(session.heard_ns(), peer.asked_ns) + (soon ? kAskSoonNs : kAskAfterNs);
  if (quiet_ns <= now_ns_) {
    // Count questions, not time: this process may have been the one that was stopped.
    if (peer.asked >= patience_s_) {
      tell("silent", peer.address,
           "has not answered for " + std::to_string(patience_s_) +
               " s; its machine or the link to it is down, or another "
               "program is there, or a member with another RIO_UDP_KEY");
      leave(peer);
      return;
    }
    ++peer.asked;
    peer.asked_ns = now_ns_;
    peer.units = session.units();
    answer(peer, true);
    peer.doubt.begin(now_ns_, now_ns_ + kDoubtAfterNs);
  }
  check_doubt(peer);
  due_ns_ = std::min(
      {due_ns_, session.due_ns(), peer.doubt.due_ns(), std::max(quiet_ns, now_ns_ + kLookNs)});
  if (peer.owed_ns != 0) {
    due_ns_ = now_ns_;
  }
}

void UdpWire::check_doubt(Peer& peer) {
  if (!peer.doubt.on()) {
    return;
  }
  if (peer.session->heard_ns() > peer.doubt.since_ns()) {
    peer.doubt.end();
    return;
  }
  Greeting question;
  if (peer.doubt.due_ns() <= now_ns_ && peer.doubt.ask(now_ns_, peer.now, self_, &question) == 0) {
    say(peer.address, question, 0);
  }
}

/// Finds the longest datagram that a peer can receive. @return false: none can get there; reported.
bool UdpWire::find_path(Peer& peer) {
  const Path path = path_between(socket_->address(), peer.address);
  const Verdict verdict = judge(socket_->address(), peer.address, path);
  troubles_.tell(verdict.text, "path " + peer.address.text());
  peer.path_bytes = path.datagram_bytes();
  return verdict.possible && path.error == 0 && path.is_wide();
}

void UdpWire::call(Peer& peer) {
  if (peer.path_bytes == 0 && !find_path(peer)) {
    give_up(peer);
    return;
  }
  if (peer.now.session == 0 && !begin_attempt(&peer.now, peer)) {
    return;
  }
  Greeting hello = peer.now.say(kKindHello, self_, 0);
  hello.to_session = 0;
  hello.echo = {};
  say(peer.address, hello, peer.calls.call(now_ns_, peer.path_bytes));
}

void UdpWire::add_inbound(std::vector<model::Inbound>* list) {
  for (const auto& peer : peers_) {
    if (peer->lanes != nullptr) {
      list->push_back({peer->lanes->in(UnitKind::kRequests), peer->lanes->in(UnitKind::kResponses),
                       peer->first_id, peer->ids - 1, peer->lanes->puller()});
    }
  }
}

void UdpWire::linger() {
  constexpr uint64_t kLingerNs = 500'000'000;
  const uint64_t end_ns = base::now_ns() + kLingerNs;
  const auto busy = [](Peer* peer) { return !peer->session->all_there(); };
  while (base::now_ns() < end_ns) {
    pump(0);
    if (std::none_of(connected_.begin(), connected_.end(), busy)) {
      break;
    }
    socket_->wait_ms(1);
  }
  for (Peer* const peer : connected_) {
    say(peer->address, peer->now.say(kKindFarewell, self_, 0), 0);
  }
  socket_->flush();
}

}  // namespace rio::wire::udp
