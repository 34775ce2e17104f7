/// @file
/// The card's PCIe master: reads and writes host memory, checked against the host's mappings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/random.hpp"
#include "fpga/model/config.hpp"
#include "fpga/model/host_memory.hpp"

namespace rio::model {

class HostPort {
 public:
  /// @param config if pcie_seed is not 0, writes are posted, and reach memory later, completions
  /// word by word; if torn, the words of one write of completions in any order.
  HostPort(HostMemory* memory, const Config& config)
      : memory_(memory),
        posting_(config.pcie_seed != 0),
        torn_(config.torn),
        rng_(config.pcie_seed) {}

  /// Address of [iova, iova + len) for reading; null: not mapped, or in more than one window. Valid
  /// until the end of the step.
  [[nodiscard]] const uint8_t* readable(uint64_t iova, uint64_t len) {
    if (read_window_.holds(iova, len)) [[likely]] {
      return read_window_.at(iova);
    }
    return look_up(iova, len, &read_window_);
  }

  /// Address of [iova, iova + len) for writing; null as in readable(), or if writes are posted:
  /// then use write().
  [[nodiscard]] uint8_t* writable(uint64_t iova, uint64_t len) {
    if (write_window_.holds(iova, len)) [[likely]] {
      return write_window_.at(iova);
    }
    return posting_ ? nullptr : look_up(iova, len, &write_window_);
  }

  /// Address of [iova, iova + len) in one piece, as readable() or, if `written`, writable(), whose
  /// windows stay: for large data, which is mostly in another window than messages.
  [[nodiscard]] uint8_t* large(uint64_t iova, uint64_t len, bool written);
  /// The window of the last large() that wrote; possibly empty, or another one if memory may go
  /// without notice.
  [[nodiscard]] const HostWindow& large_write_window() const { return large_windows_[1]; }
  /// As large_write_window(), of the last large() that did not write.
  [[nodiscard]] const HostWindow& large_read_window() const { return large_windows_[0]; }

  /// A ring's memory in one piece; null: refused, and counted. Valid until begin_step() returns
  /// true.
  [[nodiscard]] uint8_t* ring_memory(uint64_t iova, uint64_t len, bool written);

  /// Whether all of [iova, iova + len) is mapped. A refusal is counted.
  [[nodiscard]] bool mapped(uint64_t iova, uint64_t len);
  /// Copy from host memory, across any number of windows. @return false: a byte is not mapped.
  [[nodiscard]] bool read(uint64_t iova, void* to, uint64_t len);
  /// Copy to host memory. A refused write is lost and counted; a real card cannot notice it either.
  /// @param relaxed parts of such writes may pass each other, but no other write.
  void write(uint64_t iova, const void* from, uint64_t len, bool relaxed = false);
  /// Post a completion, or several of 16 bytes, as one write, if writes are posted. It becomes
  /// visible after all earlier writes.
  void post_completion(uint64_t iova, const uint32_t* words, uint32_t count);

  /// Write words, each as a whole: the first one before all others, the last one after them. If
  /// writes are posted, as post_completion(). A refused write is lost and counted. @param iova a
  /// multiple of the size of all words, a power of two of at most 4096 bytes.
  void write_words(uint64_t iova, const uint32_t* words, uint32_t count);

  /// The windows of the last readable() and writable(), for runs; possibly empty.
  [[nodiscard]] const HostWindow& read_window() const { return read_window_; }
  [[nodiscard]] const HostWindow& write_window() const { return write_window_; }

  /// Called once a step: forget windows if the host has unmapped memory, and let some posted writes
  /// reach memory. @return whether the host has unmapped memory.
  [[nodiscard]] bool begin_step() {
    const bool changed = memory_->generation() != generation_;
    if (changed) [[unlikely]] {
      forget();
    }
    if (posting_) [[unlikely]] {
      drain(rng_.below(24));
    }
    return changed;
  }
  /// Let all posted writes reach memory. A card waits for that before it reads memory, or tells the
  /// host that something is done; nothing else pushes them, a register read by the host neither.
  void flush() { drain(~0u); }

  [[nodiscard]] bool posting() const { return posting_; }
  /// Whether memory may go without notice: then no address may be given away.
  [[nodiscard]] bool is_silent() const { return memory_->is_silent(); }
  /// Whether any posted write has not reached memory.
  [[nodiscard]] bool writes_wait() const { return !posted_.empty(); }
  [[nodiscard]] uint32_t generation() const { return generation_; }
  /// Whether the cached windows are still valid; if not, begin_step() will drop them.
  [[nodiscard]] bool current() const { return memory_->generation() == generation_; }
  /// Accesses to memory that is not mapped, for tests; a real card's IOMMU counts them.
  [[nodiscard]] uint64_t refused() const { return refused_; }
  /// The first address that was not mapped or not permitted, if refused() is not 0.
  [[nodiscard]] uint64_t first_refused() const { return first_refused_; }
  [[nodiscard]] base::Random& rng() { return rng_; }

 private:
  /// A posted write of at most 64 bytes.
  struct Posted {
    uint64_t iova;
    uint32_t len;
    bool of_completion;  ///< one word
    uint8_t bytes[64];
  };

  uint8_t* look_up(uint64_t iova, uint64_t len, HostWindow* window);
  [[nodiscard]] bool find(uint64_t iova, bool written, HostWindow* window);
  void refuse(uint64_t iova);
  void forget();
  void drain(uint32_t count);
  void post(uint64_t iova, const void* from, uint32_t len, bool of_completion);
  void mix(size_t count);
  void write_now(uint64_t iova, const void* from, uint64_t len);
  /// The window of the last accesses of a kind by large(), read(), mapped() and write().
  [[nodiscard]] HostWindow& large_window(bool written) { return large_windows_[written ? 1 : 0]; }
  [[nodiscard]] bool is_in_large_window(uint64_t iova, uint64_t len, bool written) {
    return large_window(written).holds(iova, len) && current();
  }
  template <class Fn>
  [[nodiscard]] bool each_piece(uint64_t iova, uint64_t len, bool written, Fn fn);

  HostWindow read_window_;
  HostWindow write_window_;
  // Mostly other ones than those of short messages, and another one for reading than for writing.
  HostWindow large_windows_[2];
  HostMemory* memory_;
  uint32_t generation_ = 0;
  bool posting_;
  bool torn_;
  size_t relaxed_ = 0;  // the last posted writes, which may pass each other
  uint64_t refused_ = 0;
  uint64_t first_refused_ = 0;
  base::Random rng_;
  std::deque<Posted> posted_;
};

}  // namespace rio::model
