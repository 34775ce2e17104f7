/// @file
/// A wire between machines. Each member has its own card, and a UDP connection with each partner
/// that it talks to. docs/decisions/0021-wire-over-udp.md
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fork.hpp"
#include "fpga/wire/member.hpp"
#include "fpga/wire/udp/contact.hpp"
#include "fpga/wire/udp/frame_units.hpp"
#include "fpga/wire/udp/keeper.hpp"
#include "fpga/wire/udp/seat.hpp"
#include "fpga/wire/udp/socket.hpp"

namespace rio::wire::udp {

/// Another member. Its `first_id` is our number for it; 0: none yet. Used by the thread that steps
/// the card.
struct Peer : Partner {
  Address address;
  uint32_t path_bytes = 0;
  Calls calls;
  Attempt now;                        ///< the connection if there is a session, else the attempt
  std::optional<Attempt> later;       ///< a call of the peer while a connection is up
  std::unique_ptr<FrameUnits> lanes;  ///< with a session, and until the card has taken all frames
  std::unique_ptr<Connection> session;
  uint64_t asked_ns = 0;  ///< when the peer was last asked for an answer
  uint32_t asked = 0;     ///< consecutive questions without an answer
  uint32_t units = 0;     ///< Connection::units() at the last keep-alive question
  Doubt doubt;            ///< doubt whether the peer still knows the connection
  uint32_t refused = 0;   ///< ICMP refusals since the peer was last heard
  uint64_t owed_ns = 0;   ///< since when a postponed answer is owed; 0: none is
};

/// A member of a fabric, as the model's wire. Everything belongs to the thread that steps the card,
/// except for reach(), set_poke(), poke_soon() and the functions that Member allows on any thread.
/// In a forked child all peers are gone; the parent's go on as if there were no child.
class UdpWire final : public Member, private Listener {
 public:
  /// Open the socket, and start the member's thread. @return 0; -EINVAL (the seat, the key, the
  /// file), -EADDRINUSE, -EADDRNOTAVAIL (not an address of this machine, or others in the file
  /// cannot reach it), -errno; `error` gives the cause.
  [[nodiscard]] static int join(const Seat& seat, std::unique_ptr<UdpWire>* out,
                                std::string* error);
  /// Waits until everything sent has arrived, at most half a second, then tells the peers.
  ~UdpWire() override;
  UdpWire(const UdpWire&) = delete;
  UdpWire& operator=(const UdpWire&) = delete;

  [[nodiscard]] uint32_t first_id() const override { return own_id_; }
  [[nodiscard]] uint32_t ids() const override { return self_.ids; }
  [[nodiscard]] bool unattended() const override { return keeper_->unattended(); }
  [[nodiscard]] std::string address() const override { return socket_->address().text(); }
  [[nodiscard]] int reach(const std::string& address, uint32_t* dest_id) override;

  [[nodiscard]] bool link_up() const override { return true; }
  void pump(uint64_t now_ns) override;

 private:
  /// A member's own destID if no file gives it one: half of the 16-bit numbers are above it.
  static constexpr uint32_t kMiddleId = 0x8000;
  static constexpr uint64_t kAnswerWithinNs = 100'000;
  static constexpr uint64_t kAskAfterNs = 1'000'000'000;
  static constexpr uint64_t kAskSoonNs = 250'000'000;  // after units, perhaps the last ones
  static constexpr uint64_t kDoubtAfterNs = 20'000'000;

  UdpWire() = default;
  [[nodiscard]] bool find_member(uint32_t dest_id) override;
  void add_inbound(std::vector<model::Inbound>* list) override;
  void on_asleep(bool asleep) override;
  void lose_all();
  [[nodiscard]] int take_seat(const Seat& seat, std::string* error);
  [[nodiscard]] int open_socket(const Seat& seat, std::string* error);
  void on_datagram(const Address& from, std::span<uint8_t> bytes) override;
  void on_refused(const Address& to) override;
  void on_narrow(const Address& to, uint32_t mtu) override;
  void on_data(const Address& from, std::span<uint8_t> bytes);
  void on_greeting(const Address& from, std::span<uint8_t> bytes);
  void on_hello(const Address& from, const Greeting& hello, uint32_t seen_bytes);
  void on_accept(Peer& peer, const Greeting& accept);
  void on_farewell(Peer& peer, const Greeting& farewell);
  void on_question(const Address& from, const Greeting& question);
  void refuse(const Address& to, const Greeting& what, Reason reason);
  [[nodiscard]] Reason may_join(const Address& from, const Greeting& hello);
  [[nodiscard]] Peer* peer_at(const Address& address);
  [[nodiscard]] Peer* add_peer(const Address& address);
  [[nodiscard]] Peer* peer_in(uint32_t session, const Address& from);
  [[nodiscard]] Peer* peer_of(uint32_t dest_id);
  [[nodiscard]] Peer* guest(const Address& from);
  [[nodiscard]] bool begin_attempt(Attempt* attempt, Peer& peer);
  void forget_attempt(Attempt* attempt);

  [[nodiscard]] bool connect(Peer& peer, Attempt& attempt, std::span<uint8_t> first);
  [[nodiscard]] bool name(Peer& peer, const Greeting& they);
  void leave(Peer& peer);
  void close(Peer& peer);
  void give_up(Peer& peer);

  void say(const Address& to, const Greeting& greeting, size_t bytes);
  void serve(Peer& peer);
  void send_units(Peer& peer);
  void answer(Peer& peer, bool asks);
  void look(Peer& peer);
  void check_session(Peer& peer);
  void check_doubt(Peer& peer);
  void call(Peer& peer);
  [[nodiscard]] bool find_path(Peer& peer);
  [[nodiscard]] uint32_t id_of(const Address& of, bool may_add);
  void take_reached();
  void tell(const char* matter, const Address& about, const std::string& what);
  void tell_taken(const Address& about, const Greeting& they);
  void linger();

  Self self_;
  uint32_t own_id_ = kMiddleId;
  uint32_t patience_s_ = 30;
  bool closed_fabric_ = false;  // a members file lists who is in it
  std::unique_ptr<Socket> socket_;
  uint64_t now_ns_ = 0;
  uint64_t look_ns_ = 0;
  uint64_t due_ns_ = UINT64_MAX;  // when the owner must step again, if it does not poll

  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<Peer*> connected_;
  std::unordered_map<uint32_t, Peer*> sessions_;

  std::mutex mutex_;  // guards the members below
  std::vector<Place> known_;
  uint32_t lower_ = 0;                // allocated blocks of kIdsMax destIDs below our own
  uint32_t higher_ = 0;               // and above it
  std::atomic<bool> reached_{false};  // known_ has something new
  size_t taken_known_ = 0;            // how many of known_ have become peers

  bool inherited_ = false;  // this is a forked child, and the wire is its parent's
  const base::InChild in_child_{[](void* ctx) { static_cast<UdpWire*>(ctx)->inherited_ = true; },
                                this};

  std::unique_ptr<Keeper> keeper_;  // last, since its thread uses the rest
};

}  // namespace rio::wire::udp
