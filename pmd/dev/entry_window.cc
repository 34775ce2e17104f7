#include "pmd/dev/entry_window.hpp"

#include <cerrno>

#include "pmd/bus/bus.hpp"

namespace rio::pmd {
namespace {

constexpr size_t kCacheLineBytes = 64;

}  // namespace

EntryWindow::~EntryWindow() {
  if (bus_ != nullptr) {
    bus_->shared_free(cookies_);
  }
}

int EntryWindow::create(Bus& bus, uint32_t log2, uint32_t start_index) {
  const size_t count = size_t{1} << log2;
  void* const memory = bus.shared_alloc(
      count * (sizeof *cookies_ + sizeof *sizes_ + sizeof *marks_), kCacheLineBytes);
  if (memory == nullptr) {
    return -ENOMEM;
  }
  bus_ = &bus;
  cookies_ = static_cast<uint64_t*>(memory);
  sizes_ = reinterpret_cast<uint32_t*>(cookies_ + count);
  marks_ = reinterpret_cast<uint8_t*>(sizes_ + count);
  head_ = start_index;
  oldest_ = start_index;
  mask_ = static_cast<uint32_t>(count - 1);
  marked_ = 0;
  return 0;
}

}  // namespace rio::pmd
