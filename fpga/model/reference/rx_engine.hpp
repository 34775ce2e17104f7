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

  /// A segment has come. @return false: no room for the answer, come again.
  [[nodiscard]] bool on_segment(const InFrame& frame);
  /// Whether no message of several segments can begin.
  [[nodiscard]] bool full() const { return contexts_.size() >= core_.config.rx_contexts; }
  /// Nothing will come any more from `source`: its partial messages end.
  void lose(uint32_t source);
  /// Receive time-outs.
  void check_timers();
  /// Drop the partial messages of a ring that is being stopped, flush what is posted.
  void stop(Pair& pair, uint32_t ring);
  /// The card was reset: partial messages are dropped without a completion.
  void forget() { contexts_.clear(); }

 private:
  /// A message of several segments that is being put together.
  struct Reassembly : Landing {
    bool broken = false;  ///< its buffer is gone: later segments are answered ERROR
    uint16_t ssize = 0;
    uint16_t last_len = 0;
    uint16_t missing = 0;  ///< segments still to come, a bit each
    uint64_t message = 0;  ///< Frame::address of its segments
    uint64_t since_ns = 0;
  };
  /// Where the segments of a message come from and go to.
  using Place = std::tuple<uint32_t, uint32_t, uint8_t>;  // source, destID, place

  [[nodiscard]] static bool well_formed(const InFrame& frame);
  [[nodiscard]] Reassembly* find(const InFrame& frame);
  [[nodiscard]] Answer take(const InFrame& frame);
  [[nodiscard]] Answer take_only(const InFrame& frame);
  [[nodiscard]] Answer take_first(const InFrame& frame);
  [[nodiscard]] Answer take_next(Reassembly& context, const InFrame& frame);
  void drop(Reassembly& context, regs::Status status);
  void give_up(size_t i);
  void remember(const Reassembly& context);
  [[nodiscard]] bool given_up(const InFrame& frame);

  Core& core_;
  Responder& responder_;
  Admission& admission_;
  std::vector<Reassembly> contexts_;
  /// Of each lane: the message (Frame::address) that was given up last without its sender's being
  /// told, as long as that is the last of which anything came.
  std::map<Place, uint64_t> given_up_;
};

}  // namespace rio::model
