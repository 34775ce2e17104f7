/// @file
/// The PCI functions of a card: their identity blocks, and the table that gives queue pairs to the
/// virtual ones. docs/card.md, Virtual functions
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "fpga/model/core/core.hpp"

namespace rio::model {

/// Zero the host's words of a block: all pages but the first, which the card writes.
void clear_block(const Bar& bar, uint32_t base, uint32_t size_bytes);
/// Zero the host's words of a queue pair. @param slot its number in the BAR.
void clear_pair(const Bar& bar, uint32_t slot);

class Functions {
 public:
  /// @param reset forgets all messages under way of a queue pair, and stops its rings.
  Functions(Core& core, std::function<void(Pair&)> reset)
      : core_(core), reset_pair_(std::move(reset)) {}

  /// Write the card's words of all functions; the physical one has all queue pairs.
  void power_on();
  /// Show a queue pair in the BAR of a function, whose words it has from now on. @param last the
  /// list of blocks ends with it.
  void give(Pair& pair, const Function& function, uint32_t slot, bool last);
  /// Process the table's words, and the resets that virtual functions ask for.
  void scan();
  /// The physical function was reset: it has all queue pairs again. The pairs are not reset here.
  void take_all_back();
  /// As Card::replug_vf().
  void replug(uint32_t vf, const FunctionEnds& ends);
  /// Write a word in the BARs of all functions.
  void tell(uint32_t offset, uint32_t value);

 private:
  /// The queue pairs of a virtual function.
  struct Vf {
    uint32_t control = 0;  // of the table, in force
    uint32_t first = 0;
    uint32_t count = 0;  // 0: it is not enabled
  };

  [[nodiscard]] const Function& function(uint32_t vf) const { return core_.functions[vf + 1]; }
  void tell_identity(const Function& function, uint32_t pairs);
  void give_all(uint32_t vf);
  void change(uint32_t vf, uint32_t control);
  [[nodiscard]] bool may_have(uint32_t first, uint32_t count) const;
  void take_back(uint32_t vf);

  Core& core_;
  std::function<void(Pair&)> reset_pair_;
  std::vector<Vf> vfs_ = std::vector<Vf>(core_.config.vfs);
};

}  // namespace rio::model
