/// @file
/// Maintenance: access to the card's own CARs and CSRs and to those of other devices, and
/// port-writes.
#pragma once

#include <array>
#include <optional>

#include "fpga/model/core/core.hpp"
#include "fpga/model/core/csr.hpp"
#include "fpga/model/core/responder.hpp"
#include "fpga/model/core/transactions.hpp"

namespace rio::model {

class MaintEngine {
 public:
  MaintEngine(Core& core, Transactions& transactions, Responder& responder)
      : core_(core), transactions_(transactions), responder_(responder) {}

  void run(Ring& ring);
  /// Answer a request. @return false: no room for the answer; leave the frame in the ring.
  [[nodiscard]] bool on_request(const InFrame& frame);
  void on_port_write(const InFrame& frame);
  void on_end(const Transaction& transaction, regs::Status status);
  void forget(const Pair& pair) {
    if (pair.number == 0) {  // no other pair has the ring
      operations_ = {};
    }
  }
  [[nodiscard]] Csr& csr() { return csr_; }

 private:
  struct Operation {
    Ring* ring = nullptr;  // null: free
    regs::MaintDesc desc{};
    uint32_t index = 0;
  };

  /// @return how the operation has ended; nullopt: its response will end it.
  [[nodiscard]] std::optional<regs::Status> start(const Operation& operation);
  [[nodiscard]] regs::Status local(const regs::MaintDesc& desc);
  void finish(Operation& operation, regs::Status status, uint32_t bytes, uint32_t retries);

  Core& core_;
  Transactions& transactions_;
  Responder& responder_;
  std::array<Operation, 16> operations_{};
  Csr csr_;
};

}  // namespace rio::model
