/// @file
/// Receives plain messages of one segment into the shared queue: in runs from one sender, or, the
/// fastest path from the wire to the host, one for a host that waits for it.
#pragma once

#include "fpga/model/core/responder.hpp"
#include "fpga/model/fast/plain.hpp"

namespace rio::model {

class RxPlain {
 public:
  RxPlain(Core& core, Responder& responder) : core_(core), responder_(responder) {}

  /// Take a run that begins with `first`. @param bytes_to_end bytes from `first` to the end of the
  /// ring's memory. @param tag tag of the ring's lap. @return bytes taken; 0: use another path for
  /// `first`.
  [[nodiscard]] uint32_t take_run(const InFrame& first, uint32_t bytes_to_end, uint32_t tag);

  /// The result of aim().
  struct Aim {
    Pair* pair = nullptr;
    Ring* ring = nullptr;
    uint64_t mailboxes = 0;  ///< mailboxes that lead to `ring`, one bit each
    uint64_t begin = 0;      ///< bus address of the host's memory
    uint64_t last = 0;       ///< last offset at which the longest payload fits
    uint8_t* va = nullptr;
    uint64_t time = 0;  ///< ticks, in the upper half
    uint32_t dest_id = 0;
    uint32_t map_entry = 0;
  };

  /// Compute which messages take_single() may handle: those for the destID that has received last.
  /// @return false: none. Valid until the next step.
  [[nodiscard]] bool aim();
  /// The result of the last aim() that returned true.
  [[nodiscard]] const Aim& aimed() const { return lane_; }
  /// Hot. Take the next message; the answer is the responder's to send. @param word its
  /// load_frame_word(). @return false: nothing was done; use another path.
  [[nodiscard]] bool take_single(const Inbound& in, uint64_t word);

 private:
  [[nodiscard]] Pair* target(const InFrame& frame);
  /// @tparam full the card has the landing quirk: it writes all 256 bytes of a last segment.
  /// @tparam brief completions are short.
  template <bool full, bool brief>
  [[nodiscard]] uint32_t run(Pair& pair, const InFrame& first, uint32_t bytes_to_end, uint32_t tag);

  Core& core_;
  Responder& responder_;
  Aim lane_;
};

inline bool RxPlain::take_single(const Inbound& in, uint64_t word) {
  FrameReader& reader = *in.requests;
  const uint8_t* const at = reader.next();
  Ring& ring = *lane_.ring;
  const auto frame = plain::Arrived::read(at);
  const uint32_t length = frame.length();
  const uint32_t place = frame.place();
  const uint32_t source = frame.source();
  const uint32_t bytes = frame_bytes(length);
  const uint32_t index = ring.head;
  if (ring.posted() == 0 && core_.read_tail(ring) == 0) [[unlikely]] {
    return false;  // the entry is that of a lap before
  }
  const uint64_t offset = load64(ring.entry(index, 3)) - lane_.begin;
  if (word != plain::kind_of(length) || frame.shape >> 24 != plain::kOneSegment ||
      length - 1 >= plain::kFull || frame.route >> 32 != lane_.dest_id ||
      (lane_.mailboxes >> (place & 63) & 1) == 0 || source - in.first_source > in.more_sources ||
      bytes > reader.to_end() || offset > lane_.last ||
      !responder_.ready_for_one(source, lane_.dest_id)) [[unlikely]] {
    return false;
  }
  const uint32_t landed = padded(length);
  plain::land_plain(lane_.va + offset, at + sizeof(Frame), landed,
                    core_.config.quirk_last_full_256);
  const plain::Completion completion = {frame.route, lane_.time,
                                        static_cast<uint64_t>(ring.phase()) << 32, lane_.map_entry};
  plain::end_entry(core_, *lane_.pair, ring, completion, index, landed, 1, place);
  // The answer is sent at the next look or step. Its cache line may be another core's, and a reply
  // that the host sends before that would wait for it.
  responder_.answer_later(Ack::of(place, 0, Answer::kDone), &reader);
  reader.pop_bytes(bytes);
  return true;
}

}  // namespace rio::model
