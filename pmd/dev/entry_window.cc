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

}  // namespace rio::pmd
