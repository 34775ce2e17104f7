/// @file
/// A QEMU guest's RAM: a file that the guest and this process map.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "base/fd.hpp"
#include "base/mapping.hpp"

namespace rio::cardsim {

/// One thread. The file may appear after the object: it is mapped when it is first asked for.
class GuestRam {
 public:
  /// Memory that a guest address begins, as far as it is in one piece.
  struct Run {
    uint8_t* va = nullptr;
    uint64_t len_bytes = 0;
    uint64_t file_offset = 0;
  };

  /// @param path the file of memory-backend-file.
  explicit GuestRam(std::string path) : path_(std::move(path)) {}

  /// Memory from a guest-physical address on. @return false: there is no RAM there, or no file yet
  /// (looked for at most every 10 ms; stderr tells why not, once).
  [[nodiscard]] bool find(uint64_t address, Run* out);
  /// A 64-bit word, which the guest may write meanwhile. @param address multiple of 8. @return
  /// null: no RAM there. Valid as long as this object.
  [[nodiscard]] const uint64_t* word(uint64_t address);
  /// Find the run of a pointer into the memory. @return false: it is none.
  [[nodiscard]] bool run_of(const uint8_t* va, Run* out) const;
  /// The file, not valid if it is not open yet. This object's.
  [[nodiscard]] const base::Fd& fd() const { return fd_; }

 private:
  [[nodiscard]] bool map();
  [[nodiscard]] bool refuse(const char* why);

  std::string path_;
  base::Fd fd_;
  base::Mapping memory_;
  uint64_t low_bytes_ = 0;  ///< of them below 4 GiB
  bool told_ = false;
  std::chrono::steady_clock::time_point next_try_;
};

}  // namespace rio::cardsim
