/// @file
/// A file that stands for the guest's RAM.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace rio::test {

/// The test's own mapping. Sparse: only touched pages exist.
class RamFile {
 public:
  RamFile(const std::string& path, size_t len_bytes) : len_bytes_(len_bytes) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(ftruncate(fd, static_cast<off_t>(len_bytes)), 0);
    void* const va = mmap(nullptr, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT_NE(va, MAP_FAILED);
    va_ = static_cast<uint8_t*>(va);
    close(fd);
  }
  ~RamFile() { munmap(va_, len_bytes_); }
  RamFile(const RamFile&) = delete;
  RamFile& operator=(const RamFile&) = delete;

  /// Address of an offset in the file.
  [[nodiscard]] uint8_t* at(uint64_t offset) { return va_ + offset; }
  void put(uint64_t offset, uint64_t value) { std::memcpy(va_ + offset, &value, sizeof value); }

 private:
  size_t len_bytes_;
  uint8_t* va_;
};

}  // namespace rio::test
