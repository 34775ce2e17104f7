/// @file
/// Memory of this process that other processes may map, and the list of what they may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "base/trouble.hpp"

namespace rio::base {

/// F_SEAL_FUTURE_WRITE of Linux 5.1, which older headers lack: mappings that were made before may
/// write, and nothing else can write or punch holes.
inline constexpr int kSealFutureWrite = 0x0010;

/// Whether memory of another process has this length, all of it is there, and stays: a page that is
/// missing, is taken away, or is a huge page that cannot be had would raise a signal in its reader.
/// Any thread.
/// @param fd foreign. @param lasting set to the answer; false after a failure.
/// @return a system call that failed, not because of the foreign descriptor.
[[nodiscard]] Trouble check_lasting(const Fd& fd, size_t len_bytes, bool* lasting);

/// Zeroed memory behind a descriptor, which cannot change its size. A forked child finds a copy of
/// its own. One thread at a time; any thread may use the memory. Control path only.
class SharedMemory {
 public:
  SharedMemory() = default;
  ~SharedMemory() { reset(); }
  SharedMemory(SharedMemory&& other) noexcept = default;
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(fd_, other.fd_);
    return *this;
  }

  /// The access that other processes get.
  enum class Others : uint8_t { kWrite, kRead };
  /// Take memory. @param align_bytes a power of two. @param out set only on success. @return 0,
  /// -errno: the system has no such memory, or, for kRead, cannot keep others from writing.
  [[nodiscard]] static int create(size_t len_bytes, size_t align_bytes, Others others,
                                  SharedMemory* out);

  /// @return null: there is no memory.
  [[nodiscard]] uint8_t* va() const { return memory_.va(); }
  [[nodiscard]] size_t len_bytes() const { return memory_.len_bytes(); }
  /// To be sent to another process.
  [[nodiscard]] const Fd& fd() const { return fd_; }
  [[nodiscard]] bool valid() const { return memory_.valid(); }
  void reset();

 private:
  Mapping memory_;
  Fd fd_;  // kept open: a forked child maps its copy from it
};

/// The memory of a process that its partners may map. Thread-safe. Control path only.
class ReadableAreas {
 public:
  /// An area, and a number that no other one has had.
  struct Area {
    uint64_t number = 0;
    uint8_t* va = nullptr;
    size_t len_bytes = 0;
    Fd fd;  ///< nothing can write through it
  };

  /// Add memory that others may only read. The caller removes it before it goes.
  void add(const SharedMemory& memory);
  /// Remove memory. @param va its begin; that of no area: nothing is done.
  void remove(const uint8_t* va);
  /// The largest areas, with descriptors of the caller's. @param most how many. @return fewer if
  /// there are no more, or no descriptors.
  [[nodiscard]] std::vector<Area> largest(size_t most) const;
  /// Whether an area is still there.
  [[nodiscard]] bool has(uint64_t number) const;

 private:
  struct Listed {
    uint8_t* va;
    size_t len_bytes;
    int fd;
  };

  mutable std::mutex mutex_;
  std::map<uint64_t, Listed> areas_;  // by number
  uint64_t next_number_ = 1;
};

}  // namespace rio::base
