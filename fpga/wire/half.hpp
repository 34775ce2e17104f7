/// @file
/// Memory between two members: each makes a half, writes it alone, and shows it to the other to be
/// read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/fd.hpp"
#include "base/trouble.hpp"
#include "fpga/model/frame_ring.hpp"

namespace rio::wire {

/// Layout of a half: how far its owner has read the other's rings, then its own rings.
inline constexpr uint32_t kRequestRingBytes = 64 * 1024;
inline constexpr uint32_t kResponseRingBytes = 32 * 1024;
inline constexpr size_t kHeadsBytes = 4096;
inline constexpr size_t kHalfBytes = kHeadsBytes + kRequestRingBytes + kResponseRingBytes;

/// A member's part of the shared state: how far it has read the other member's rings.
struct Heads {
  model::FrameRingShared requests;
  model::FrameRingShared responses;
  std::atomic<uint32_t> pulls;  ///< it can read memory of the other's process
};
static_assert(sizeof(Heads) <= kHeadsBytes);

/// The eventfd of another process's thread.
class EventBell : public model::Bell {
 public:
  /// @param fd stays the caller's.
  explicit EventBell(int fd) : fd_(fd) {}
  void ring() override;

 private:
  int fd_;
};

/// A mapping.
class Half {
 public:
  Half() = default;
  ~Half();
  Half(Half&& other) noexcept;
  Half& operator=(Half&& other) noexcept;

  /// Make this process's own. @param fd for the other process, which cannot write to it or change
  /// its size. @return the failure of this process.
  [[nodiscard]] static base::Trouble create(Half* out, base::Fd* fd);
  /// Map the other process's for reading. @param sound false: the memory could vanish while it is
  /// read, or has another size; nothing is mapped then. @return the failure of this process.
  [[nodiscard]] static base::Trouble map(const base::Fd& fd, Half* out, bool* sound);

  /// Tell the other process whether it has to ring for what it sends.
  void set_asleep(bool asleep) const;

  [[nodiscard]] Heads* heads() const { return reinterpret_cast<Heads*>(at_); }
  [[nodiscard]] uint8_t* requests() const { return at_ + kHeadsBytes; }
  [[nodiscard]] uint8_t* responses() const { return requests() + kRequestRingBytes; }

 private:
  uint8_t* at_ = nullptr;
};

}  // namespace rio::wire
