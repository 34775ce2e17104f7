/// @file
/// The rails block: writes how busy the card is to host memory, and answers the same question of
/// other nodes without the host. docs/card.md, Rails [S3]
#pragma once

#include <cstdint>

#include "fpga/model/core/core.hpp"
#include "fpga/model/core/dma_engine.hpp"
#include "fpga/model/core/responder.hpp"
#include "fpga/model/reference/rx_engine.hpp"
#include "fpga/model/reference/tx_engine.hpp"

namespace rio::model {

class RailBlock {
 public:
  RailBlock(Core& core, const DmaEngine& dma, const TxEngine& tx, const RxEngine& rx,
            Responder& responder)
      : core_(core), dma_(dma), tx_(tx), rx_(rx), responder_(responder) {}
  RailBlock(const RailBlock&) = delete;
  RailBlock& operator=(const RailBlock&) = delete;

  /// Look at CONTROL, and write a status if one is due. Called where timers are checked, so that a
  /// card without a user of the block pays for it as rarely as for those.
  void work();
  /// The card is being reset: disable the block, until the host writes another generation.
  void reset();

  /// Whether a request touches the bytes of the status.
  [[nodiscard]] bool claims(const InFrame& request) const {
    const uint64_t bytes_behind = ~request.address;  // from its first byte to the end of all
    return bytes_behind < uint64_t{kBytes} - 1 + request.length && core_.config.rail;
  }
  /// Whether a kLongRequest may touch them.
  [[nodiscard]] bool claims_long(const InFrame& request) const {
    return ~request.address < kDmaBytesMax + uint64_t{kBytes} && core_.config.rail;
  }
  /// Whether a request that claims() holds for is the one that gets a status.
  [[nodiscard]] bool answers(const InFrame& request);
  /// Answer that request. @return false: no room for the answer; leave the frame in the ring.
  [[nodiscard]] bool on_read(const InFrame& request);

 private:
  static constexpr uint32_t kBytes = sizeof(regs::RailStatus);
  static_assert(kBytes == regs::kRailBelowEndBytes);

  /// The card's work, for the words BUSY, TX_BYTES and RX_BYTES.
  struct Load {
    bool reading = false;
    uint64_t tx_bytes = 0;
    uint64_t rx_bytes = 0;
  };

  void change(uint32_t control);
  void write();
  [[nodiscard]] regs::RailStatus status() const;
  [[nodiscard]] Load load() const;
  static void add(const Flow& flow, Load* load);

  Core& core_;
  const DmaEngine& dma_;
  const TxEngine& tx_;
  const RxEngine& rx_;
  Responder& responder_;
  uint32_t control_ = 0;  // the last one looked at
  bool enabled_ = false;
  uint64_t base_iova_ = 0;
  uint64_t period_ns_ = 0;
  uint64_t written_ns_ = 0;
  uint32_t sequence_ = 0;  // of the last write
};

}  // namespace rio::model
