/// @file
/// Memory that one member of a link lets the other map, so that the other's card copies the bytes
/// of messages straight from there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/fork.hpp"
#include "base/shared_memory.hpp"
#include "base/trouble.hpp"
#include "fpga/model/windows.hpp"

namespace rio::wire::shm {

/// A range of a member's memory, as a greeting names it; its descriptor goes along.
struct GreetedWindow {
  uint64_t from = 0;  ///< address in the member's process
  uint64_t len_bytes = 0;
};

/// Largest window that a member maps.
inline constexpr uint64_t kWindowBytesMax = 64ull << 20;

/// The memory that this process offers to a partner. Each member function is called by one thread
/// at a time.
class Offer {
 public:
  /// Choose the windows. @param areas null: none.
  void choose(const base::ReadableAreas* areas);
  /// Write what a greeting says of the windows, and append their descriptors. @return how many.
  uint32_t tell(std::span<GreetedWindow> out, std::vector<int>* fds) const;
  /// Close the descriptors, once the greeting is sent.
  void close();
  /// List the windows that have not gone. @param areas of choose().
  void list(const base::ReadableAreas& areas, model::Windows* out) const;

 private:
  std::vector<base::ReadableAreas::Area> areas_;
};

/// Take the descriptors from number `first` on off a list.
[[nodiscard]] std::vector<base::Fd> split_off(std::vector<base::Fd>& fds, size_t first);

/// A partner's memory, mapped for reading.
class PartnerMemory {
 public:
  /// Map it. @param windows, fds foreign. @param sound false: no member sends such; then nothing is
  /// mapped. @return the failure of this process: nothing is mapped, and nothing need be.
  [[nodiscard]] base::Trouble map(std::span<const GreetedWindow> windows,
                                  std::span<const base::Fd> fds, bool* sound);
  [[nodiscard]] model::Windows& windows() { return windows_; }

 private:
  struct Unmap {
    void operator()(uint8_t* at) const { base::unmap_shared(at); }
  };
  std::vector<std::unique_ptr<uint8_t, Unmap>> mapped_;
  model::Windows windows_;
};

}  // namespace rio::wire::shm
