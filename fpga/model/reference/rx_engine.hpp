/// @file
/// The receive side of the message controller, segment by segment: segments land, messages
/// complete. docs/card.md, Receiving
#pragma once

#include <map>
#include <tuple>
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
  [[nodiscard]] bool full() const { return contexts_.size() >= core_.config.rx_contexts; }
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
  /// A message of several segments that is being reassembled.
  struct Reassembly : Landing {
    bool broken = false;  ///< its buffer was taken away: later segments are answered ERROR
    uint16_t ssize = 0;
    uint16_t last_len = 0;
    uint16_t missing = 0;  ///< segments that have not arrived, one bit each
    uint64_t message = 0;  ///< Frame::address of its segments
    uint64_t since_ns = 0;
  };
  /// Identifies the segments of a message.
  using Place = std::tuple<uint32_t, uint32_t, uint8_t>;  // source, destID, place

  [[nodiscard]] static bool well_formed(const InFrame& frame);
  [[nodiscard]] Reassembly* find(const InFrame& frame);
  [[nodiscard]] Answer take(const InFrame& frame);
  [[nodiscard]] Answer take_whole(const InFrame& frame);
  [[nodiscard]] Answer take_doorbell(const InFrame& frame);
  [[nodiscard]] Answer take_first(const InFrame& frame);
  [[nodiscard]] Answer take_next(Reassembly& context, const InFrame& frame);
  void drop(Reassembly& context, regs::Status status);
  /// End partial messages. @param is_over tells which.
  template <class Predicate>
  void give_up_if(Predicate is_over);
  void remember(const Reassembly& context);
  [[nodiscard]] bool given_up(const InFrame& frame);

  Core& core_;
  Responder& responder_;
  Admission& admission_;
  std::vector<Reassembly> contexts_;
  /// For each Place, the message (Frame::address) that was given up without telling its sender;
  /// until a segment of another message arrives.
  std::map<Place, uint64_t> given_up_;
};

}  // namespace rio::model
