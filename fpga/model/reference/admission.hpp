/// @file
/// Where messages go to: the receive map, dedicated rings, the shared queue, and how bytes land
/// there. docs/card.md, Receiving
#pragma once

#include "fpga/model/core/core.hpp"

namespace rio::model {

/// The place of a message in its receiver's memory: an entry of a ring.
struct Landing {
  Pair* pair;
  uint32_t source;
  uint32_t dest_id;
  uint8_t place;  ///< mailbox and letter
  uint8_t segments;
  uint8_t ring;      ///< shared or dedicated
  uint32_t index;    ///< of the entry
  uint32_t cookie;   ///< dedicated
  uint32_t size;     ///< dedicated: of the entry
  uint32_t arrival;  ///< shared
  uint64_t addr;
};

class Admission {
 public:
  explicit Admission(Core& core) : core_(core) {}

  /// The queue pair that gets a message, by the receive map. @return null: there is none, which is
  /// counted.
  [[nodiscard]] Pair* target(const InFrame& frame);
  /// The open dedicated ring for a message. @return -1: none.
  [[nodiscard]] static int dedicated_ring(const Pair& pair, const InFrame& frame);
  /// First segment of a message, or a whole one: where does it go? With DONE an entry is taken;
  /// ERROR and RETRY are for the sender.
  /// @param pair target(). @param whole_bytes of the message, padded; 0: not known yet.
  [[nodiscard]] Answer admit(const InFrame& frame, Pair* pair, uint32_t whole_bytes, Landing* out);
  /// Write a segment. @param bytes padded. @param offset that its number gives it.
  void land(const Landing& landing, const InFrame& frame, uint32_t segment, uint32_t offset,
            const uint8_t* bytes, uint32_t len);
  /// Complete the entry. @param bytes that landed.
  void complete(const Landing& landing, uint32_t bytes, regs::Status status);

 private:
  [[nodiscard]] Answer admit_dedicated(const InFrame& frame, uint32_t whole_bytes, Landing* out);
  /// The entry does not fit: it completes, and its ring stops.
  [[nodiscard]] Answer mismatch(const Landing& landing, regs::Status status);

  Core& core_;
};

}  // namespace rio::model
