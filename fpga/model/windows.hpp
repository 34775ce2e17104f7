/// @file
/// Memory of a process that a partner has mapped, so that it can copy the bytes of messages from
/// there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rio::model {

/// Ranges of a process's addresses, and where they are mapped in this process. The owner of the
/// memory has a list, too, which tells what its partner can reach. One thread at a time.
class Windows {
 public:
  /// Most windows of a process.
  static constexpr size_t kMost = 8;

  struct Window {
    uint64_t from = 0;  ///< address in the owner's process
    uint64_t len_bytes = 0;
    const uint8_t* at = nullptr;  ///< address in this process
  };

  void add(const Window& window) { all_.push_back(window); }
  void clear() {
    all_.clear();
    last_ = {};
  }
  [[nodiscard]] bool empty() const { return all_.empty(); }

  /// Hot. Where [from, from + len) is; null: not in one window. Safe for any values.
  [[nodiscard]] const uint8_t* find(uint64_t from, uint64_t len) {
    return holds(last_, from, len) ? last_.at + (from - last_.from) : look_up(from, len);
  }

 private:
  [[nodiscard]] static bool holds(const Window& window, uint64_t from, uint64_t len) {
    return len <= window.len_bytes && from - window.from <= window.len_bytes - len;
  }
  [[gnu::noinline]] [[nodiscard]] const uint8_t* look_up(uint64_t from, uint64_t len) {
    for (const Window& window : all_) {
      if (holds(window, from, len)) {
        last_ = window;
        return window.at + (from - window.from);
      }
    }
    return nullptr;
  }

  std::vector<Window> all_;
  Window last_;  // of the last find() that found something
};

}  // namespace rio::model
