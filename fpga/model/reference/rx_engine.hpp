/// @file
/// The receive side of the message controller, segment by segment: segments land, messages
/// complete. docs/card.md, Receiving
#pragma once

#include <vector>

#include "fpga/model/core/responder.hpp"
#include "fpga/model/reference/admission.hpp"

namespace rio::model {

class RxEngine {
 public:
  RxEngine(Core& core, Responder& responder, Admission& admission);

  /// Receive a segment, or a message that travels as one frame (TxMsg::whole). @return false: no
  /// room for the answer; leave the frame in the ring.
  [[nodiscard]] bool on_message(const InFrame& frame);
  /// Receive a doorbell. @return false: no room for the answer; leave the frame in the ring.
  [[nodiscard]] bool on_doorbell(const InFrame& frame);
  /// Whether no message of several segments can begin.
  [[nodiscard]] bool full() const;
  /// Bytes still to come of messages that have begun; a missing segment counts as a full one.
  [[nodiscard]] uint64_t missing_bytes() const;
  /// The partner `source` is gone: end its partial messages.
  void lose(uint32_t source);
  /// Check receive time-outs.
  void check_timers();
  /// Stop a ring: drop its partial messages, and flush its posted entries.
  void stop(Ring& ring);
  /// The pair was reset: drop its partial messages without a completion.
  void forget(const Pair& pair);

  // Used by fast/.
  /// Whether the length, segments and mailbox of a whole message are consistent.
  [[nodiscard]] static bool sane(const Frame& frame);
  /// Write the bytes of a whole message where its segments would land.
  void land_whole(const Landing& landing, const InFrame& frame);

 private:
  /// Why later segments of a message, whose buffer was taken away, are answered ERROR: its segments
  /// do not fit together, or came too late, after some were answered DONE.
  enum class Poison : uint8_t { kNone, kBroken, kGivenUp };
  /// A message of several segments that is being reassembled, or was, and may have segments on the
  /// way.
  struct Reassembly : Landing {
    Poison poison = Poison::kNone;
    uint16_t ssize = 0;
    uint16_t last_len = 0;
    uint16_t missing = 0;  ///< segments that have not arrived, one bit each
    uint64_t message = 0;  ///< Frame::address of its segments
    uint64_t since_ns = 0;
  };

  [[nodiscard]] static bool well_formed(const InFrame& frame);
  [[nodiscard]] Reassembly* find(const InFrame& frame);
  [[nodiscard]] Answer take(const InFrame& frame);
  [[nodiscard]] Answer take_whole(const InFrame& frame);
  [[nodiscard]] Answer take_doorbell(const InFrame& frame);
  [[nodiscard]] Answer take_first(const InFrame& frame);
  [[nodiscard]] Answer take_next(Reassembly& context, const InFrame& frame);
  /// End a message, and keep its context until its sender is silent.
  void drop(Reassembly& context, regs::Status status, Poison poison = Poison::kBroken);

  Core& core_;
  Responder& responder_;
  Admission& admission_;
  std::vector<Reassembly> contexts_;
};

}  // namespace rio::model
