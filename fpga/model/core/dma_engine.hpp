/// @file
/// The initiator of reads, writes and atomics on remote memory.
#pragma once

#include <array>

#include "fpga/model/core/core.hpp"
#include "fpga/model/core/transactions.hpp"

namespace rio::model {

class DmaEngine {
 public:
  DmaEngine(Core& core, Transactions& transactions) : core_(core), transactions_(transactions) {}

  /// Fetch descriptors while operations are free.
  void run(Ring& ring);
  /// Send packets of the operations under way.
  void progress();
  [[nodiscard]] bool busy() const { return busy_ != 0; }
  /// Bytes of the operations under way, for the rail status.
  struct Load {
    uint64_t write_bytes = 0;  ///< of writes that have not ended
    uint64_t read_bytes = 0;   ///< of reads, without those that have come
    bool sends = false;        ///< bytes of a write have not been sent
  };
  [[nodiscard]] Load load() const;
  void on_end(const Transaction& transaction, regs::Status status);
  /// Begin to stop the ring. Transfers under way continue.
  void begin_stop(Ring& ring);
  void forget(const Pair& pair);

 private:
  /// A descriptor under way.
  struct Operation {
    Ring* ring = nullptr;  // null: free
    Flow* flow = nullptr;
    regs::DmaDesc desc{};
    uint32_t index = 0;
    uint32_t issued = 0;
    uint32_t done = 0;
    uint32_t flying = 0;
    uint32_t retries = 0;
    regs::Status status = regs::Status::kOk;
  };

  [[nodiscard]] bool acceptable(const regs::DmaDesc& desc) const;
  [[nodiscard]] uint32_t packet_bytes(const Operation& operation) const;
  void issue(Operation& operation);
  void finish_if_over(Operation& operation);

  Core& core_;
  Transactions& transactions_;
  std::array<Operation, 64> operations_{};
  // Most operations of one pair, so that no pair blocks another.
  uint32_t share_ = static_cast<uint32_t>(operations_.size() / core_.pairs.size());
  uint32_t busy_ = 0;
};

}  // namespace rio::model
