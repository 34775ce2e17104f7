/// @file
/// The initiator of reads, writes and atomics on remote memory.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "fpga/model/core/core.hpp"
#include "fpga/model/core/transactions.hpp"
#include "fpga/model/core/way_choice.hpp"

namespace rio::model {

class DmaEngine {
 public:
  DmaEngine(Core& core, Transactions& transactions) : core_(core), transactions_(transactions) {}

  /// Fetch descriptors while operations are free.
  void run(Ring& ring);
  /// A part of a read whose bytes are leased: they are not asked for.
  struct Leased {
    Flow* flow;
    Transaction read;
    uint64_t va;     ///< address in the partner's process
    uint64_t lease;  ///< see Puller::lease_number()
  };

  /// Send packets of the operations under way. @param may_read whether leased() may have parts.
  void progress(bool may_read);
  /// Parts that the last progress() lets the caller read. It calls on_end(), send_in_packets() or
  /// ask() for each of them. Less than kLeasedBytesMax + kLongBytesMax.
  [[nodiscard]] std::span<const Leased> leased() const { return leased_; }
  [[nodiscard]] bool busy() const { return used_ != 0; }
  /// Whether progress() has something to do.
  [[nodiscard]] bool has_unsent() const { return unsent_ != 0; }
  /// Bytes of the operations under way, for the rail status.
  struct Load {
    uint64_t write_bytes = 0;  ///< of writes that have not ended
    uint64_t read_bytes = 0;   ///< of reads, without those that have come
    bool sends = false;        ///< bytes of a write have not been sent
  };
  [[nodiscard]] Load load() const;
  void on_end(const Transaction& transaction, regs::Status status);
  /// The partner has done nothing of a kLongRequest: send its requests one by one.
  void send_in_packets(const Transaction& transaction);
  /// A part was leased no more when it was read: ask for it.
  void ask(const Transaction& transaction);
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
    bool long_flies = false;  // a kLongRequest is in flight, and nothing else
    bool in_packets = false;  // no more kLongRequests
    bool ends_timed = false;  // the time of its end is needed
    uint32_t long_min = 0;    // fewest bytes of a kLongRequest; 0: not decided yet
  };
  /// The operation that is timed for the choice.
  struct Timed {
    const Operation* operation = nullptr;  // null: none
    bool is_long = false;
    uint64_t since_ns = 0;
  };
  static constexpr uint32_t kOperations = 64;
  static constexpr uint32_t kLeasedBytesMax = 512 * 1024;  // a step that has so many adds no more

  [[nodiscard]] bool acceptable(const regs::DmaDesc& desc) const;
  [[nodiscard]] uint32_t packet_bytes(const Operation& operation) const;
  [[nodiscard]] uint32_t long_min(Operation& operation);
  [[nodiscard]] uint32_t long_bytes(Operation& operation);
  [[nodiscard]] Transaction next_request(const Operation& operation, uint32_t long_bytes);
  [[nodiscard]] Leased leased_part(const Operation& operation, uint32_t bytes);
  void add_leased(Operation& operation, const Leased& part);
  void end_timed(const Operation& operation);
  void issue(Operation& operation, bool may_read);
  void progress(uint64_t unsent, bool may_read);
  [[nodiscard]] bool writes_to(const Flow& flow) const;
  void finish_if_over(Operation& operation);
  void free(const Operation& operation) {
    used_ &= ~bit_of(operation);
    unsent_ &= ~bit_of(operation);
    writes_ &= ~bit_of(operation);
  }
  [[nodiscard]] uint64_t bit_of(const Operation& operation) const {
    return uint64_t{1} << (&operation - operations_.data());
  }

  Core& core_;
  Transactions& transactions_;
  std::array<Operation, kOperations> operations_{};
  // Operations that are not free, and those of them with bytes to send, one bit each.
  uint64_t used_ = 0;
  uint64_t unsent_ = 0;
  uint64_t writes_ = 0;  // operations that are not free and not reads
  std::vector<Leased> leased_;
  uint32_t leased_bytes_ = 0;
  uint32_t next_ = 0;  // number of the operation behind the last one that had a part in leased_
  WayChoice choice_;
  Timed timed_;
  uint64_t last_end_ns_ = 0;    // of the last operation with `ends_timed`
  const Flow* full_ = nullptr;  // for which there was no room, in this call of progress()
  // Most operations of one pair, so that no pair blocks another.
  uint32_t share_ = static_cast<uint32_t>(operations_.size() / core_.pairs.size());
};

}  // namespace rio::model
