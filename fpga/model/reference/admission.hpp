/// @file
/// Decides where a message goes (receive map, dedicated rings, shared queue), and writes its bytes
/// there. docs/card.md, Receiving
#pragma once

#include "fpga/model/core/core.hpp"

namespace rio::model {

/// The destination of a message: an entry of a ring of its receiver.
struct Landing {
  Ring* ring;  ///< shared or dedicated
  uint32_t source;
  uint32_t dest_id;
  uint8_t place;  ///< mailbox and letter
  uint8_t segments;
  uint32_t index;     ///< index of the entry
  uint32_t cookie;    ///< dedicated rings only
  uint32_t size;      ///< dedicated rings only: size of the entry
  uint32_t arrival;   ///< shared queue only
  uint8_t map_entry;  ///< shared queue only: of the receive map
  uint64_t addr;
};

class Admission {
 public:
  explicit Admission(Core& core) : core_(core) {}

  /// The queue pair that receives a message, by the receive map. @return null: none; this is
  /// counted.
  [[nodiscard]] Pair* target(const InFrame& frame);
  /// The open dedicated ring for a message. @return null: none.
  [[nodiscard]] static Ring* dedicated_ring(Pair& pair, const InFrame& frame);
  /// Find the destination of a message, at its first segment or of a whole one. @return DONE: *out
  /// is set and the entry is taken; ERROR, RETRY: the answer to the sender.
  /// @param pair from target(). @param whole_bytes padded length of the message; 0: not known yet.
  [[nodiscard]] Answer admit(const InFrame& frame, Pair* pair, uint32_t whole_bytes, Landing* out);
  /// Write a segment. @param bytes padded length. @param offset in the message, by the segment's
  /// number.
  void land(const Landing& landing, const InFrame& frame, uint32_t segment, uint32_t offset,
            const uint8_t* bytes, uint32_t len);
  /// Complete the entry. @param bytes how many landed.
  void complete(const Landing& landing, uint32_t bytes, regs::Status status);

 private:
  [[nodiscard]] Answer admit_dedicated(const InFrame& frame, uint32_t whole_bytes, Landing* out);
  /// The entry does not fit the message: complete it and stop its ring.
  [[nodiscard]] Answer mismatch(const Landing& landing, regs::Status status);

  Core& core_;
};

}  // namespace rio::model
