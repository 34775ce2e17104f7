/// @file
/// A connection that is up: units of both lanes in both directions, sealed if there is a key.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "fpga/wire/udp/congestion.hpp"
#include "fpga/wire/udp/datagram.hpp"
#include "fpga/wire/udp/key.hpp"
#include "fpga/wire/udp/receiver.hpp"
#include "fpga/wire/udp/sender.hpp"

namespace rio::wire::udp {

/// The terms of a connection.
struct Agreed {
  uint32_t session = 0;         ///< session number in datagrams to us
  uint32_t their_session = 0;   ///< session number in datagrams to the peer
  uint32_t datagram_bytes = 0;  ///< the longest that may be sent
  bool sealed = false;
  KeyBytes out_key{};
  KeyBytes in_key{};
};

/// Takes units in order, without a copy where possible.
class Intake {
 public:
  virtual ~Intake() = default;
  /// Take a unit. @return false: there is no room now, and nothing was taken; it is offered again.
  [[nodiscard]] virtual bool take(UnitKind lane, std::span<const uint8_t> unit) = 0;
};

/// Used by one thread. Without I/O; times are the caller's, of a monotonic clock.
class Connection {
 public:
  Connection(const Agreed& agreed, Intake* intake, uint64_t now_ns);

  [[nodiscard]] uint32_t unit_bytes() const { return unit_bytes_; }  ///< of the longest unit
  /// Like Sender::begin() and Sender::end(). Accepts only as much as can be sent soon.
  [[nodiscard]] std::span<uint8_t> begin_unit(UnitKind lane);
  void end_unit(UnitKind lane, size_t bytes) { sender(lane).end(bytes); }

  /// Process a datagram for this session. @param bytes foreign; opened in place. @return 0;
  /// -EACCES: it does not open; -EALREADY: it arrived before; -EPROTO: its sender breaks the rules
  /// and should be cut off.
  [[nodiscard]] int take(std::span<uint8_t> bytes, uint64_t now_ns);
  /// Offer again the units that had no room. @return whether something was taken.
  bool offer_again();

  /// Write the next datagram. @param out at least datagram_bytes(). @return its length, sealed if
  /// there is a key; 0: nothing may be sent now.
  [[nodiscard]] size_t send(uint64_t now_ns, std::span<uint8_t> out);
  /// Whether the peer is owed news that no unit carries. @param at_once include urgent news only if
  /// false; else all.
  [[nodiscard]] bool owes_answer(bool at_once) const {
    return answer_now_ || (at_once && unanswered_ > 0);
  }
  /// Write a datagram that only acknowledges. @param asks whether the peer shall answer. @param out
  /// at least kHeaderBytes + kTagBytes. @return its length.
  [[nodiscard]] size_t answer(std::span<uint8_t> out, bool asks) {
    Datagram datagram;
    datagram.asks = asks;
    return write(out, datagram);
  }
  /// Length of the longest datagram.
  [[nodiscard]] uint32_t datagram_bytes() const { return unit_bytes_ + more_bytes_; }
  /// Whether a unit has arrived that found no room.
  [[nodiscard]] bool waits() const {
    return !receivers_[0].front().empty() || !receivers_[1].front().empty();
  }

  /// When look() is due.
  [[nodiscard]] uint64_t due_ns() const {
    return std::min(senders_[0].due_ns(), senders_[1].due_ns());
  }
  void look(uint64_t now_ns) {
    senders_[0].look(now_ns);
    senders_[1].look(now_ns);
  }
  /// When the peer was last heard.
  [[nodiscard]] uint64_t heard_ns() const { return heard_ns_; }
  /// A number that changes when units are sent or received.
  [[nodiscard]] uint32_t units() const {
    return senders_[0].pushed() + senders_[1].pushed() + receivers_[0].given() +
           receivers_[1].given();
  }
  /// Whether the peer has everything.
  [[nodiscard]] bool all_there() const {
    return senders_[0].kept() == 0 && senders_[1].kept() == 0;
  }

 private:
  [[nodiscard]] Sender& sender(UnitKind lane) { return senders_[static_cast<size_t>(lane)]; }
  [[nodiscard]] Receiver& receiver(UnitKind lane) { return receivers_[static_cast<size_t>(lane)]; }
  [[nodiscard]] int put(UnitKind lane, const Part& part);
  bool offer(UnitKind lane);
  [[nodiscard]] size_t write(std::span<uint8_t> out, Datagram& datagram);

  const Agreed agreed_;
  const uint32_t more_bytes_;  // of a datagram, around its units
  const uint32_t unit_bytes_;
  Intake* const intake_;
  Congestion congestion_;
  std::array<Sender, kLanes> senders_;
  std::array<Receiver, kLanes> receivers_;
  Replay replay_;
  uint64_t number_ = 0;
  uint64_t heard_ns_;
  uint32_t unanswered_ = 0;  // units that have arrived since the last report to the peer
  bool answer_now_ = false;
};

}  // namespace rio::wire::udp
