#include "base/mapping.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rio::base {
namespace {

void unmap(uint8_t* va, size_t len_bytes) {
  if (len_bytes != 0) {
    munmap(va, len_bytes);
  }
}

}  // namespace

int Mapping::of_file(const Fd& file, uint64_t offset_bytes, size_t len_bytes, Mapping* out) {
  void* const va = mmap(nullptr, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(),
                        static_cast<off_t>(offset_bytes));
  if (va == MAP_FAILED) {
    return -errno;
  }
  *out = Mapping(va, len_bytes);
  return 0;
}

int Mapping::of_memory(size_t len_bytes, size_t align_bytes, Mapping* out) {
  return aligned(len_bytes, align_bytes, PROT_READ | PROT_WRITE, out);
}

int Mapping::of_addresses(size_t len_bytes, size_t align_bytes, Mapping* out) {
  return aligned(len_bytes, align_bytes, PROT_NONE, out);
}

int Mapping::aligned(size_t len_bytes, size_t align_bytes, int protection, Mapping* out) {
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t slack_bytes = align_bytes > page_bytes ? align_bytes - page_bytes : 0;
  const size_t whole = (len_bytes + page_bytes - 1) & ~(page_bytes - 1);
  if (whole < len_bytes || whole + slack_bytes < whole) {
    return -ENOMEM;
  }
  void* const space =
      mmap(nullptr, whole + slack_bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (space == MAP_FAILED) {
    return -errno;
  }
  auto* const first = static_cast<uint8_t*>(space);
  const size_t before = -reinterpret_cast<uintptr_t>(space) & (align_bytes - 1) & -page_bytes;
  unmap(first, before);
  unmap(first + before + whole, slack_bytes - before);
  *out = Mapping(first + before, len_bytes);
  return 0;
}

void Mapping::reset() {
  unmap(std::exchange(va_, nullptr), std::exchange(len_bytes_, 0));
}

int put_ones_over(void* va, size_t len_bytes) {
  void* const ones =
      mmap(nullptr, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (ones == MAP_FAILED) {
    return -errno;
  }
  std::memset(ones, 0xFF, len_bytes);
  if (mremap(ones, len_bytes, len_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, va) == MAP_FAILED) {
    const int rc = -errno;
    munmap(ones, len_bytes);
    return rc;
  }
  return 0;
}

}  // namespace rio::base
