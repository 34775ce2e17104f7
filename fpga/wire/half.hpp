/// @file
/// Memory shared by two members: each makes a half, which only it writes, and lets the other read
/// it. Each also gives the other an eventfd to ring.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/fork.hpp"
#include "base/trouble.hpp"
#include "base/wake_fd.hpp"
#include "fpga/model/frame_ring.hpp"
#include "fpga/model/wire.hpp"

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
  std::atomic<uint32_t> pulls;  ///< the member can read the memory of the other's process
  std::atomic<uint32_t> maps;   ///< the member has mapped the memory that the other has offered
  alignas(64) model::LeaseWords leases;
};
static_assert(sizeof(Heads) <= kHeadsBytes);

/// The eventfd of another process's thread.
class EventBell : public model::Bell {
 public:
  /// @param fd stays the caller's.
  explicit EventBell(int fd) : fd_(fd) {}
  void ring() override { base::wake(fd_); }

 private:
  int fd_;
};

/// A mapped half.
class Half {
 public:
  /// Make this process's own half. @param fd for the other process, which can neither write it nor
  /// change its size. @return the failure of this process.
  [[nodiscard]] static base::Trouble create(Half* out, base::Fd* fd);
  /// Map the other process's half for reading. @param sound false: the memory could vanish while it
  /// is read, or has another size; then nothing is mapped. @return the failure of this process.
  [[nodiscard]] static base::Trouble map(const base::Fd& fd, Half* out, bool* sound);

  /// Tell the other process whether it has to ring after sending. Call make_stores_seen() before
  /// the last look at its rings.
  void set_asleep(bool asleep) const;

  [[nodiscard]] Heads* heads() const { return reinterpret_cast<Heads*>(at_.get()); }
  [[nodiscard]] uint8_t* requests() const { return at_.get() + kHeadsBytes; }
  [[nodiscard]] uint8_t* responses() const { return requests() + kRequestRingBytes; }

 private:
  struct Unmap {
    void operator()(uint8_t* at) const { base::unmap_shared(at); }
  };
  /// Map a half. @return whether that was possible; errno.
  [[nodiscard]] bool map_at(int protection, const base::Fd& fd);

  std::unique_ptr<uint8_t, Unmap> at_;
};

/// The memory and the eventfds that two connected members share.
struct Joint {
  Half mine;
  Half theirs;
  base::Fd bell;  ///< the other member rings it
  base::Fd their_bell;

  /// Make this process's part. @param memory of `mine`, to be sent together with `bell`. @return
  /// the failure of this process.
  [[nodiscard]] base::Trouble make(base::Fd* memory);
  /// Take the other member's part. @param fds foreign: those of its message. @param sound false: no
  /// member sends such descriptors. @return the failure of this process.
  [[nodiscard]] base::Trouble take(std::vector<base::Fd>& fds, bool* sound);
};

/// The rings of a complete Joint, which outlives them: writers in `mine`, readers in `theirs`.
struct Rings {
  explicit Rings(const Joint& joint);

  /// Ring because frames were taken, which the other member has to know if it sleeps.
  void ring_if_asleep();

  EventBell bell;
  const Heads* their_heads;
  alignas(64) model::FrameWriter out_requests;
  alignas(64) model::FrameWriter out_responses;
  alignas(64) model::FrameReader in_requests;
  alignas(64) model::FrameReader in_responses;
};

// A memory fence for both sides of a flag, paid by the side that rarely needs it.

/// Called once by each process whose stores others may want to see. @return a log line: why
/// make_stores_seen() will not be fast; empty: it will.
[[nodiscard]] std::string let_others_see_us();
/// On return, the other processes have seen our stores, and we see the stores that they had made.
/// Slow: some microseconds.
void make_stores_seen();

}  // namespace rio::wire
