/// @file
/// The standard capability and command/status registers of the card's RapidIO side.
#pragma once

#include <cstdint>
#include <map>

namespace rio::model {

class Csr {
 public:
  Csr();
  /// @param offset multiple of 4. Unknown registers read 0. RIO Part 1 §5.1
  [[nodiscard]] uint32_t read(uint32_t offset) const;
  /// Writes to read-only bits and unknown registers have no effect.
  void write(uint32_t offset, uint32_t value);
  /// Update the bits that show the state of the link.
  void set_link(bool up);
  void set_dest_id(uint32_t dest_id, uint32_t size_code);

 private:
  struct Word {
    uint32_t value;
    uint32_t writable;
  };
  std::map<uint32_t, Word> words_;
};

}  // namespace rio::model
