#include "pmd/dev/entry_window.hpp"

#include <cerrno>
#include <new>

namespace rio::pmd {

int EntryWindow::create(uint32_t log2, uint32_t start_index) {
  const uint32_t count = 1u << log2;
  cookies_.reset(new (std::nothrow) uint64_t[count]());
  sizes_.reset(new (std::nothrow) uint32_t[count]());
  marks_.reset(new (std::nothrow) uint8_t[count]());
  if (!cookies_ || !sizes_ || !marks_) {
    return -ENOMEM;
  }
  head_ = start_index;
  oldest_ = start_index;
  mask_ = count - 1;
  marked_ = 0;
  return 0;
}

bool EntryWindow::complete(uint32_t index) {
  const uint32_t slot = index & mask_;
  if (index - oldest_ >= used() || marks_[slot] != 0) {
    return false;
  }
  marks_[slot] = kDone;
  ++marked_;
  if (index != oldest_) {
    return true;
  }
  // Each entry is passed once, so a completion costs a constant on the average.
  while (oldest_ != head_ && marks_[oldest_ & mask_] != 0) {
    marks_[oldest_ & mask_] = 0;
    --marked_;
    ++oldest_;
  }
  return true;
}

}  // namespace rio::pmd
