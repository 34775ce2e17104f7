/// @file
/// The RAM of a QEMU guest: a file that both the guest and this process map.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "base/fd.hpp"
#include "base/mapping.hpp"

namespace rio::cardsim {

/// A guest's RAM. The file may appear after the object: it is mapped at first use. One thread.
class GuestRam {
 public:
  /// A contiguous piece of memory from a guest address on.
  struct Run {
    uint8_t* va = nullptr;
    uint64_t len_bytes = 0;
    uint64_t file_offset = 0;
  };

  /// @param path the file of memory-backend-file.
  explicit GuestRam(std::string path) : path_(std::move(path)) {}

  /// Find the memory at a guest-physical address. @return false: there is no RAM there, or no file
  /// yet (checked at most every 10 ms; stderr says why, once).
  [[nodiscard]] bool find(uint64_t address, Run* out);
  /// Get a 64-bit word, which the guest may be writing. @param address a multiple of 8. @return
  /// null: there is no RAM there. Valid as long as this object.
  [[nodiscard]] const uint64_t* word(uint64_t address);
  /// Find the run of a pointer into the memory. @return false: not such a pointer.
  [[nodiscard]] bool run_of(const uint8_t* va, Run* out) const;
  /// Descriptor of the file, not valid if it is not open yet. Stays this object's.
  [[nodiscard]] const base::Fd& fd() const { return fd_; }

 private:
  [[nodiscard]] bool map();
  [[nodiscard]] bool refuse(const char* why);

  std::string path_;
  base::Fd fd_;
  base::Mapping memory_;
  uint64_t low_bytes_ = 0;  ///< the part below 4 GiB
  bool told_ = false;
  std::chrono::steady_clock::time_point next_try_;
};

}  // namespace rio::cardsim
