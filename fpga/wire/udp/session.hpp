/// @file
/// A connection that is up: units of both lanes, there and back, sealed where there is a key.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "fpga/wire/udp/congestion.hpp"
#include "fpga/wire/udp/datagram.hpp"
#include "fpga/wire/udp/key.hpp"
#include "fpga/wire/udp/receiver.hpp"
#include "fpga/wire/udp/sender.hpp"

namespace rio::wire::udp {

/// Which connection, and what both sides have agreed on.
struct Agreed {
  uint32_t session = 0;         ///< what datagrams to us bear
  uint32_t their_session = 0;   ///< what datagrams to the peer bear
  uint32_t datagram_bytes = 0;  ///< the longest that may be sent
  bool sealed = false;
  KeyBytes out_key{};
  KeyBytes in_key{};
};

/// Takes what comes in order, without a copy where that is possible.
class Intake {
 public:
  virtual ~Intake() = default;
  /// @return false: there is no room for it now; it is offered again. Nothing was taken.
  [[nodiscard]] virtual bool take(Lane lane, std::span<const uint8_t> unit) = 0;
};

/// Used by one thread. Without I/O; times are the caller's, of a clock that never goes back.
class Session {
 public:
  Session(const Agreed& agreed, Intake* intake, uint64_t now_ns);

  /// Bytes that a unit has at most.
  [[nodiscard]] uint32_t unit_bytes() const { return unit_bytes_; }
  /// As Sender::begin() and Sender::end(). Not more than can be sent soon is taken.
  [[nodiscard]] std::span<uint8_t> begin_unit(Lane lane);
  void end_unit(Lane lane, size_t bytes) { sender(lane).end(bytes); }

  /// A datagram has come for this session. @param bytes foreign; opened in place.
  /// @return 0; -EACCES: it does not open; -EALREADY: it was here before; -EPROTO: its sender does
  /// not keep the rules, and is not worth being listened to any more.
  [[nodiscard]] int take(std::span<uint8_t> bytes, uint64_t now_ns);
  /// Offer what had no room before. @return whether something was taken.
  bool offer_again();

  /// The next datagram to be sent. @param out datagram_bytes() to be written. @return bytes of it,
  /// sealed where there is a key; 0: nothing may be sent now.
  [[nodiscard]] size_t send(uint64_t now_ns, std::span<uint8_t> out);
  /// Whether the peer has to be told something, and no unit carries it. @param at_once not only
  /// what cannot wait.
  [[nodiscard]] bool owes_answer(bool at_once) const {
    return answer_now_ || (at_once && unanswered_ > 0);
  }
  /// Write a datagram that only acknowledges. @param asks whether the peer shall answer.
  /// @param out kHeaderBytes + kTagBytes. @return bytes of it.
  [[nodiscard]] size_t answer(std::span<uint8_t> out, bool asks);
  /// Bytes that a datagram has at most.
  [[nodiscard]] uint32_t datagram_bytes() const { return unit_bytes_ + more_bytes_; }
  /// Whether something has come that had no room.
  [[nodiscard]] bool waits() const {
    return !receivers_[0].front().empty() || !receivers_[1].front().empty();
  }

  /// When look() is due.
  [[nodiscard]] uint64_t due_ns() const;
  void look(uint64_t now_ns);
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
  [[nodiscard]] Sender& sender(Lane lane) { return senders_[static_cast<size_t>(lane)]; }
  [[nodiscard]] Receiver& receiver(Lane lane) { return receivers_[static_cast<size_t>(lane)]; }
  [[nodiscard]] int put(Lane lane, const Part& part);
  bool offer(Lane lane);
  [[nodiscard]] size_t write(std::span<uint8_t> out, Datagram& datagram);

  const Agreed agreed_;
  const uint32_t more_bytes_;  // of a datagram around its units
  const uint32_t unit_bytes_;
  Intake* const intake_;
  Congestion congestion_;
  std::array<Sender, kLanes> senders_;
  std::array<Receiver, kLanes> receivers_;
  Replay replay_;
  uint64_t number_ = 0;
  uint64_t heard_ns_;
  uint32_t unanswered_ = 0;  // units that have come since the peer was last told
  bool answer_now_ = false;
};

}  // namespace rio::wire::udp
