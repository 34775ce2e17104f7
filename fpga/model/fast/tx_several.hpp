/// @file
/// Sends plain messages of several segments through the ring between two cards, each as one frame
/// that its reader sees at once.
#pragma once

#include "fpga/model/fast/plain.hpp"
#include "fpga/model/reference/tx_engine.hpp"

namespace rio::model {

class TxSeveral {
 public:
  TxSeveral(Core& core, TxEngine& tx) : core_(core), tx_(tx) {}

  /// Send posted messages to the last destination, from the head of the ring on, as far as letters,
  /// contexts and contiguous room allow. @param count posted entries. @return messages sent; 0: use
  /// another path for the first one.
  [[nodiscard]] uint32_t send(Pair& pair, Ring& ring, uint32_t count);
  /// Hot. Send the message at the head of the ring, which is the only one posted, to a destination
  /// that can be reached. The caller counts it. @param decoder, route of that destination. @return
  /// false: nothing was done; use another path.
  [[nodiscard]] bool send_single(Flow& flow, const plain::Decoder& decoder, uint64_t route,
                                 Ring& ring);
  /// Whether the message at the head of the ring waits only for a letter. @param count as in
  /// send().
  [[nodiscard]] bool waits_for_letter(const Pair& pair, const Ring& ring, uint32_t count) const;

 private:
  [[nodiscard]] bool send_head(Flow& flow, const plain::Decoder& decoder, uint64_t route,
                               Ring& ring);

  Core& core_;
  TxEngine& tx_;
};

}  // namespace rio::model
